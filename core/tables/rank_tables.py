"""The tables and the JSON object of the ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ingest.columns import AnyArray
from .ranks import Ranks, RankTimes
from .table import Column, Table

SCHEMA = 1
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
)
COLLECTIVE_COLUMNS = (
    Column("name", "collective", "text"),
    Column("group", "group", "text"),
    Column("number", "number", "number"),
    Column("ranks", "ranks", "count"),
    Column("start_ns", "start", "ns", moment=True),
    Column("spread_ns", "starts apart", "ns"),
    Column("waited_ns", "waited", "ns"),
    Column("last", "last rank", "text"),
    Column("together_ns", "together", "ns"),
    Column("end_spread_ns", "ends apart", "ns"),
)
STEP_COLUMNS = (
    Column("step", "step", "text"),
    Column("ranks", "ranks", "count"),
    Column("wall_ns", "longest", "ns"),
    Column("slowest", "slowest rank", "count"),
    Column("slowest_own_ns", "its own time", "ns"),
    Column("fastest_own_ns", "fastest's", "ns"),
)


def ranks_table(found: Ranks) -> Table:
    """Return a row per rank; Enter leads to the collective in which it waited longest."""
    rows = [{**_row(rank), "rank": rank.rank, "host": rank.host} for rank in found.ranks]
    jumps = [(rank.source, rank.position) for rank in found.ranks]
    return Table.from_rows("ranks", "Ranks", found.scope, RANK_COLUMNS, rows, jumps, notes=found.notes)


def collectives_table(found: Ranks, start_ns: int) -> Table:
    """Return a row per collective, counted from `start_ns`; Enter leads to the rank that came last."""
    skew = found.skew
    last = skew.last
    columns = np.arange(len(skew))
    numbers = [found.number(source) for source in skew.sources]
    names, groups = [family[1] for family in skew.families], [family[0] for family in skew.families]
    data: dict[str, AnyArray | list[str]] = {
        "name": [names[place] for place in skew.family.tolist()],
        "group": [groups[place] for place in skew.family.tolist()],
        "number": skew.number,
        "ranks": skew.has.sum(axis=1).astype(np.int64),
        "start_ns": skew.first_start - start_ns,
        "spread_ns": skew.spread,
        "waited_ns": skew.waits.sum(axis=1),
        "last": [str(numbers[at]) if late else "" for at, late in zip(last.tolist(), skew.late.tolist())],
        "together_ns": _together(found),
        "end_spread_ns": skew.end_spread,
    }
    positions = skew.positions[columns, last] if len(skew) else np.empty(0, np.int64)
    sources = np.array(skew.sources, np.int64)[last] if len(skew) else np.empty(0, np.int64)
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
    return Table.from_rows("rank_steps", title, found.scope, STEP_COLUMNS, rows, jumps, notes=notes)


def ranks_object(found: Ranks) -> dict[str, Any]:
    """Return the JSON object: ranks, collectives with every rank's times in trace time, steps."""
    return {
        "schema": SCHEMA,
        "table": "ranks",
        "scope": found.scope,
        "alignment": found.alignment,
        "missing": list(found.missing),
        "ranks": [_rank_object(rank) for rank in found.ranks],
        "collectives": _collective_objects(found),
        "steps": list(rank_steps_table(found).rows()),
        "notes": list(found.notes),
    }


def _row(rank: RankTimes) -> dict[str, Any]:
    return {
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
    }


def _rank_object(rank: RankTimes) -> dict[str, Any]:
    return {
        "rank": rank.rank,
        "host": rank.host,
        "path": rank.path,
        **_row(rank),
        "correction_ns": rank.clock.correction_ns,
        "residual_median_ns": rank.clock.median_ns,
        "residual_p95_ns": rank.clock.p95_ns,
        "matched": rank.clock.matched,
        "kernel_time_ns": rank.kernel_time_ns,
        "busy_ns": rank.busy_ns,
        "memory_ns": rank.memory_ns,
        "collectives": rank.collectives,
    }


def _collective_objects(found: Ranks) -> list[dict[str, Any]]:
    skew = found.skew
    numbers = [found.number(source) for source in skew.sources]
    spread, end_spread, waited = (
        skew.spread.tolist(),
        skew.end_spread.tolist(),
        skew.waits.sum(axis=1).tolist(),
    )
    last, late = skew.last.tolist(), skew.late.tolist()
    objects = []
    for row, (family, number) in enumerate(zip(skew.family.tolist(), skew.number.tolist())):
        there = np.flatnonzero(skew.has[row]).tolist()
        group, name = skew.families[family]
        objects.append(
            {
                "name": name,
                "group": group,
                "number": number,
                "ranks": [numbers[column] for column in there],
                "starts_ns": skew.starts[row, there].tolist(),
                "ends_ns": skew.ends[row, there].tolist(),
                "spread_ns": spread[row],
                "end_spread_ns": end_spread[row],
                "waited_ns": waited[row],
                "last_rank": numbers[last[row]] if late[row] else None,
            }
        )
    return objects


def _together(found: Ranks) -> AnyArray:
    """Return by row the ns in which all ranks are in the collective: what it takes by itself."""
    skew = found.skew
    ends = np.where(skew.has, skew.ends, np.iinfo(np.int64).max).min(axis=1, initial=np.iinfo(np.int64).max)
    together: AnyArray = np.maximum(0, ends - skew.last_start)
    return together
