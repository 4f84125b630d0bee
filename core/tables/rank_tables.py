"""The tables of the ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.arrays import AnyArray
from .ranks import Ranks, RankTimes, ranks
from .scope import Scope
from .table import Column, Table, Tables, Values

RANK_COLUMNS = (
    Column("rank", "rank", "count"),
    Column("host", "host", "text"),
    Column("steps", "steps", "count"),
    Column("step_ns", "step", "ns"),
    Column("compute_ns", "compute", "ns"),
    Column("comm_ns", "communication", "ns"),
    Column("idle_ns", "idle", "ns"),
    Column("kernels", "kernels", "count"),
    Column("waited_ns", "waited", "ns"),
    Column("last", "came last", "count"),
    Column("kept_waiting_ns", "kept waiting", "ns"),
    Column("offset_ns", "clock moved", "ns"),
    Column("residual_ns", "residual", "ns"),
    Column("path", "file", "text", detail=True),
    Column("correction_ns", "clock corrected", "ns", detail=True),
    Column("residual_median_ns", "residual median", "ns", statistic=True, detail=True),
    Column("residual_p95_ns", "residual p95", "ns", statistic=True, detail=True),
    Column("matched", "matched", "count", detail=True),
    Column("kernel_time_ns", "kernel time", "ns", detail=True),
    Column("busy_ns", "busy", "ns", detail=True),
    Column("memory_ns", "memory", "ns", detail=True),
    Column("collectives", "collectives", "count", detail=True),
)
COLLECTIVE_COLUMNS = (
    Column("name", "collective", "text"),
    Column("group", "group", "text"),
    Column("number", "number", "number"),
    Column("ranks", "ranks", "object"),
    Column("start_ns", "start", "ns", moment=True),
    Column("spread_ns", "starts apart", "ns"),
    Column("waited_ns", "waited", "ns"),
    Column("last", "last rank", "text"),
    Column("together_ns", "together", "ns"),
    Column("end_spread_ns", "ends apart", "ns"),
    Column("starts_ns", "starts", "object", detail=True),
    Column("ends_ns", "ends", "object", detail=True),
    Column("last_rank", "last rank", "id", statistic=True, detail=True),
)
STEP_COLUMNS = (
    Column("step", "step", "text"),
    Column("ranks", "ranks", "count"),
    Column("wall_ns", "longest", "ns"),
    Column("slowest", "slowest rank", "count"),
    Column("slowest_own_ns", "its own time", "ns"),
    Column("fastest_own_ns", "fastest's", "ns"),
)


def analyse_ranks(scope: Scope) -> Tables:
    """Return the ranks, the slowest rank of each step, and the collectives."""
    found = ranks(scope)
    tables = {
        "ranks": lambda: ranks_table(found),
        "steps": lambda: rank_steps_table(found),
        "collectives": lambda: collectives_table(found, scope.origin),
    }
    return Tables(found.scope, scope.origin, tables)


def ranks_table(found: Ranks) -> Table:
    """Return a row per rank, first the one that the others wait for most; Enter leads to the collective in
    which it waited longest.
    """
    worst_first = sorted(found.ranks, key=lambda rank: -rank.kept_waiting_ns)
    rows = [_row(rank) for rank in worst_first]
    jumps = [(rank.source, rank.position) for rank in worst_first]
    totals = {"alignment": found.alignment, "missing": list(found.missing)}
    return Table.from_rows(
        "ranks", "Ranks", found.scope, RANK_COLUMNS, rows, jumps, totals=totals, notes=found.notes
    )


def collectives_table(found: Ranks, start_ns: int) -> Table:
    """Return a row per collective, counted from `start_ns`; Enter leads to the rank that came last."""
    skew = found.skew
    last = skew.last
    numbers = [found.number(source) for source in skew.sources]
    cuts = skew.who.bounds[1:-1]
    present = [part.tolist() for part in np.split(skew.who.rank, cuts)] if len(skew) else []
    names, groups = [family[1] for family in skew.families], [family[0] for family in skew.families]
    data: dict[str, Values] = {
        "name": [names[place] for place in skew.family.tolist()],
        "group": [groups[place] for place in skew.family.tolist()],
        "number": skew.number,
        "ranks": [[numbers[at] for at in places] for places in present],
        "start_ns": skew.first_start - start_ns,
        "spread_ns": skew.spread,
        "waited_ns": skew.waited,
        "last": [str(numbers[at]) if late else "" for at, late in zip(last.tolist(), skew.late.tolist())],
        "together_ns": _together(found),
        "end_spread_ns": skew.end_spread,
        "starts_ns": [part.tolist() for part in np.split(skew.starts - start_ns, cuts)] if len(skew) else [],
        "ends_ns": [part.tolist() for part in np.split(skew.ends - start_ns, cuts)] if len(skew) else [],
        "last_rank": [numbers[at] if late else None for at, late in zip(last.tolist(), skew.late.tolist())],
    }
    positions = skew.positions[skew.last_entry]
    sources = np.array(skew.sources, np.int64)[last]
    return Table(
        "collectives",
        "Collectives",
        found.scope,
        COLLECTIVE_COLUMNS,
        data,
        positions=positions,
        sources=sources,
    )


def rank_steps_table(found: Ranks) -> Table:
    """Return a row per step that several ranks have; Enter leads to the slowest rank's."""
    rows = [
        {
            "step": step.label,
            "ranks": step.ranks,
            "wall_ns": step.wall_ns,
            "slowest": found.number(step.slowest),
            "slowest_own_ns": step.slowest_own_ns,
            "fastest_own_ns": step.fastest_own_ns,
        }
        for step in found.steps
    ]
    jumps = [(step.slowest, step.position) for step in found.steps]
    notes = ("a rank's own time is that of its step without its waiting for others in collectives",)
    title = "Slowest rank of each step"
    return Table.from_rows("steps", title, found.scope, STEP_COLUMNS, rows, jumps, notes=notes)


def _row(rank: RankTimes) -> dict[str, Any]:
    return {
        "rank": rank.rank,
        "host": rank.host,
        "path": rank.path,
        "steps": rank.steps,
        "step_ns": rank.step_ns,
        "compute_ns": rank.compute_ns,
        "comm_ns": rank.comm_ns,
        "idle_ns": rank.idle_ns,
        "kernels": rank.kernels,
        "waited_ns": rank.waited_ns,
        "last": rank.last,
        "kept_waiting_ns": rank.kept_waiting_ns,
        "offset_ns": rank.clock.offset_ns,
        "residual_ns": rank.clock.residual_ns,
        "correction_ns": rank.clock.correction_ns,
        "residual_median_ns": rank.clock.median_ns,
        "residual_p95_ns": rank.clock.p95_ns,
        "matched": rank.clock.matched,
        "kernel_time_ns": rank.kernel_time_ns,
        "busy_ns": rank.busy_ns,
        "memory_ns": rank.memory_ns,
        "collectives": rank.collectives,
    }


def _together(found: Ranks) -> AnyArray:
    """Return of each collective the ns in which all its ranks are in it: what it takes by itself."""
    together: AnyArray = np.maximum(0, found.skew.first_end - found.skew.last_start)
    return together
