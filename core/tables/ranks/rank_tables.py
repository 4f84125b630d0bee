"""The tables of `tracelane ranks`: ranks, groups, steps by rank, heat map, collectives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import numpy as np

from ...base.units import format_ns
from ...index.captures import ranks_text
from ..findings.judge import late_rank
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.table import Table, Tables, row_of_object
from ..frame.table_rows import Values
from ..peers.messages import bandwidths
from .rank_groups import RankOrigin, rank_groups, rank_origins
from .ranks import RankInStep, Ranks, RankTimes, ranks

NO_GROUPS: Mapping[int, str] = MappingProxyType({})
RANKS = TableSchema(
    "ranks",
    "Ranks",
    (
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
    ),
    keys=("rank",),
    chief=("rank", "step_ns", "comm_ns", "waited_ns", "kept_waiting_ns", "compute_ns"),
)
COLLECTIVES = TableSchema(
    "collectives",
    "Collectives",
    (
        Column("name", "collective", "text"),
        Column("group", "group", "text"),
        Column("number", "number", "id"),
        Column("ranks", "ranks", "object"),
        Column("start_ns", "start", "ns", moment=True),
        Column("spread_ns", "starts apart", "ns"),
        Column("wait_ns", "waited", "ns"),
        Column("last", "last rank", "text"),
        Column("together_ns", "together", "ns"),
        Column("bytes", "bytes", "bytes"),
        Column("pure_ns", "shortest", "ns"),
        Column("algbw", "GB/s", "number"),
        Column("busbw", "bus GB/s", "number"),
        Column("ranks_missing", "ranks missing", "count"),
        Column("end_spread_ns", "ends apart", "ns"),
        Column("starts_ns", "starts", "object", detail=True),
        Column("ends_ns", "ends", "object", detail=True),
        Column("algorithm", "algorithm", "text", detail=True),
        Column("peers", "peers", "text", detail=True),
        Column("steps", "parts", "count", detail=True),
        Column("enqueue_ns", "host enqueues", "ns", detail=True),
        Column("host_wait_ns", "host waits", "ns", detail=True),
        Column("exposed_ns", "exposed", "ns", detail=True),
        Column("exposed_share", "exposed %", "share", statistic=True, detail=True),
        Column("dtype", "type", "text", detail=True),
        Column("group_size", "group size", "count", detail=True),
        Column("last_rank", "last rank", "id", statistic=True, detail=True),
    ),
    keys=("name", "group"),
    chief=("name", "spread_ns", "last", "wait_ns", "busbw"),
)
STEPS = TableSchema(
    "steps",
    "Slowest rank of each step",
    (
        Column("step", "step", "text"),
        Column("ranks", "ranks", "count"),
        Column("wall_ns", "longest", "ns"),
        Column("slowest", "slowest rank", "id"),
        Column("slowest_own_ns", "its own time", "ns"),
        Column("fastest_own_ns", "fastest's", "ns"),
        Column("awaited", "waited for", "text"),
        Column("kept_waiting_ns", "kept waiting", "ns"),
    ),
    keys=("step",),
    chief=("step", "wall_ns", "slowest", "awaited", "kept_waiting_ns"),
)
IN_STEP = TableSchema(
    "imbalance",
    "Ranks step by step",
    (
        Column("step", "step", "text"),
        Column("rank", "rank", "count"),
        Column("wall_ns", "wall", "ns"),
        Column("own_ns", "own time", "ns"),
        Column("waited_ns", "waited", "ns"),
        Column("kept_waiting_ns", "kept waiting", "ns"),
    ),
    keys=("step", "rank"),
)
HEAT_MAP = TableSchema(
    "heat",
    "Ranks by steps",
    (
        Column("ranks", "ranks", "text"),
        Column("heat", "by step", "text"),
        Column("kept_waiting_ns", "kept waiting at most", "ns"),
        Column("rank", "by rank", "id"),
        Column("step", "in step", "text"),
    ),
    keys=("ranks",),
)
HEAT = ".123456789"
"""From “no rank waits for this one in the step” to “the longest wait of all ranks and steps”."""
HEAT_ROWS, HEAT_CELLS = 30, 48
"""The most rows and cells of a heat map: further ranks or steps share a cell, which shows the worst of them.
"""
GROUP = Column("group", "group", "text")
GROUPS = TableSchema(
    "groups",
    "Groups of ranks",
    (
        Column("group", "group", "text"),
        Column("ranks", "ranks", "count"),
        Column("worst", "worst rank", "id"),
        Column("step_ns", "step", "ns", statistic=True),
        Column("compute_ns", "compute", "ns", statistic=True),
        Column("comm_ns", "communication", "ns", statistic=True),
        Column("idle_ns", "idle", "ns", statistic=True),
        Column("waited_ns", "waited", "ns"),
        Column("last", "came last", "count"),
        Column("kept_waiting_ns", "kept waiting", "ns"),
    ),
)


def analyse_ranks(scope: Scope, group_by: str = "", worst: int = 0, first: str = "") -> Tables:
    """Return the ranks, the slowest rank of each step, the collectives, and each rank step by step; with
    `group_by` (host, tp, pp, dp) the groups of the ranks before them.

    `worst` leaves only so many ranks (and groups), those that the others wait for most.
    """
    result = ranks(scope)
    origins: Mapping[int, RankOrigin] = {}
    if group_by:
        of_files = rank_origins(scope.trace, sorted({result.file_of(rank.source) for rank in result.ranks}))
        origins = {rank.source: of_files[result.file_of(rank.source)] for rank in result.ranks}
    return tables_of_ranks(result, scope.origin, origins, group_by, worst, first, partial(late_rank, scope))


def tables_of_ranks(
    result: Ranks,
    origin_ns: int,
    origins: Mapping[int, RankOrigin],
    group_by: str = "",
    worst: int = 0,
    first: str = "",
    late: Callable[[], int | None] = lambda: None,
) -> Tables:
    """Return the tables of `analyse_ranks`; moments count from `origin_ns`, groups are of `origins`, `late`
    tells the source of the rank that findings name.
    """
    groups = rank_groups(origins, group_by, result.skew) if group_by else {}
    most = worst or None
    tables: dict[str, Callable[[], Table]] = {
        "ranks": lambda: ranks_table(result, groups, most, late()),
        "steps": lambda: rank_steps_table(result),
        "collectives": lambda: collectives_table(result, origin_ns),
        "imbalance": lambda: imbalance_table(result, most, is_drawn=first == "imbalance"),
        "heat": lambda: heat_table(result, most, is_drawn=first == "heat"),
    }
    if group_by:
        tables = {"groups": lambda: group_table(result, groups, most), **tables}
    if first:
        tables = {first: tables[first], **tables}
    return Tables(result.scope, origin_ns, tables)


def ranks_table(
    result: Ranks,
    groups: Mapping[int, str] = NO_GROUPS,
    most: int | None = None,
    late: int | None = None,
) -> Table:
    """Return a row per rank, the most awaited first; Enter leads to where it waited longest. `late` is the
    source of the rank that keeps the others waiting, None where none stands out.
    """
    worst_first = result.worst_first[:most]
    rows = [{**_row(rank), GROUP.key: groups.get(rank.source, "")} for rank in worst_first]
    jumps = [(result.file_of(rank.source), rank.position) for rank in worst_first]
    straggler = next((rank.rank for rank in result.ranks if rank.source == late), None)
    totals = {"alignment": result.alignment, "missing": list(result.missing), "straggler": straggler}
    rank, *others = RANKS.columns
    schema = replace(RANKS, columns=(rank, GROUP, *others)) if groups else RANKS
    return Table.from_rows(schema, result.scope, rows, jumps, totals=totals, notes=result.notes)


def group_table(result: Ranks, groups: Mapping[int, str], most: int | None = None) -> Table:
    """Return a row per group, the most awaited first; Enter leads to its worst rank's longest wait."""
    members: dict[str, list[RankTimes]] = {}
    for rank in result.worst_first:
        members.setdefault(groups[rank.source], []).append(rank)
    rows, jumps = [], []
    for label, alike in members.items():
        row: dict[str, Any] = {GROUP.key: label, "ranks": len(alike), "worst": alike[0].rank}
        for key in ("step_ns", "compute_ns", "comm_ns", "idle_ns"):
            known = [value for rank in alike if (value := getattr(rank, key)) is not None]
            row[key] = int(np.median(known)) if known else None
        for key in ("waited_ns", "last", "kept_waiting_ns"):
            row[key] = sum(getattr(rank, key) for rank in alike)
        rows.append(row)
        jumps.append((result.file_of(alike[0].source), alike[0].position))
    order = sorted(range(len(rows)), key=lambda at: -rows[at]["kept_waiting_ns"])[:most]
    note = "step, compute, communication and idle are medians over the ranks of a group, the rest are sums"
    rows, jumps = [rows[at] for at in order], [jumps[at] for at in order]
    return Table.from_rows(GROUPS, result.scope, rows, jumps, notes=(note,))


def imbalance_table(result: Ranks, most: int | None = None, *, is_drawn: bool = False) -> Table:
    """Return a row per step and rank, steps in order: how long it took, waited, and kept others waiting."""
    chosen = {rank.source for rank in result.worst_first[:most]}
    turns = {(row.label, row.turn): at for at, row in enumerate(reversed(result.in_steps))}
    ordered = sorted(
        (row for row in result.in_steps if row.source in chosen),
        key=lambda row: (-turns[row.label, row.turn], result.number(row.source)),
    )
    columns = IN_STEP.columns
    rows = [row_of_object(columns, row, step=row.label, rank=result.number(row.source)) for row in ordered]
    jumps = [(result.file_of(row.source), row.position) for row in ordered]
    return Table.from_rows(replace(IN_STEP, is_drawn=is_drawn), result.scope, rows, jumps)


def heat_table(result: Ranks, most: int | None = None, *, is_drawn: bool = False) -> Table:
    """Return ranks by steps: how long the others waited for a rank in each step as a row of digits, a row for
    each rank, or for a run of neighbours where there are many. Enter leads to the worst step. It is drawn
    where there are several steps and somebody waits.
    """
    chosen = {rank.source for rank in result.worst_first[:most]}
    entries = [row for row in result.in_steps if row.source in chosen]
    steps = {key: at for at, key in enumerate(dict.fromkeys((row.label, row.turn) for row in entries))}
    sources = sorted({row.source for row in entries}, key=result.number)
    height, width = min(len(sources), HEAT_ROWS), min(len(steps), HEAT_CELLS)
    line_of = {source: at * height // len(sources) for at, source in enumerate(sources)}
    cells = np.full((height, width), -1, np.int64)
    worst: dict[int, RankInStep] = {}
    for entry in entries:
        line, cell = line_of[entry.source], steps[entry.label, entry.turn] * width // len(steps)
        cells[line, cell] = max(cells[line, cell], entry.kept_waiting_ns)
        if line not in worst or entry.kept_waiting_ns > worst[line].kept_waiting_ns:
            worst[line] = entry
    top = int(cells.max(initial=0))
    rows, jumps = [], []
    for line, entry in sorted(worst.items()):
        of_line = ranks_text([result.number(source) for source in sources if line_of[source] == line])
        shades = (-(-ns * (len(HEAT) - 1) // max(top, 1)) for ns in cells[line].tolist())
        heat = "".join(HEAT[shade] if shade >= 0 else " " for shade in shades)  # blank: no rank has the step
        own = {"ranks": of_line, "heat": heat, "rank": result.number(entry.source), "step": entry.label}
        rows.append(row_of_object(HEAT_MAP.columns, entry, **own))
        jumps.append((result.file_of(entry.source), entry.position))
    most_text = f", {HEAT[-1]}: the others wait {format_ns(top)} in total" if top else ""
    notes = [f"{HEAT[0]}: nobody waits for it in the step{most_text}"]
    schema = replace(HEAT_MAP, is_drawn=is_drawn or (top > 0 and len(steps) > 1))
    return Table.from_rows(schema, result.scope, rows, jumps, notes=notes if rows else ())


def collectives_table(result: Ranks, start_ns: int) -> Table:
    """Return a row per collective, counted from `start_ns`; Enter leads to the rank that came last."""
    skew, messages = result.attended()
    last = skew.last
    numbers = [result.number(source) for source in skew.sources]
    cuts = skew.who.bounds[1:-1]
    present = [part.tolist() for part in np.split(skew.who.rank, cuts)] if len(skew) else []
    groups = [family[0] for family in skew.families]
    data: dict[str, Values] = {
        **bandwidths(skew, messages),
        **result.parts(skew),
        "group": [groups[row] for row in skew.family.tolist()],
        "number": skew.number,
        "ranks": [[numbers[at] for at in rows] for rows in present],
        "start_ns": skew.first_start,
        "spread_ns": skew.spread,
        "last": [str(numbers[at]) if late else "" for at, late in zip(last.tolist(), skew.late.tolist())],
        "together_ns": np.maximum(0, skew.first_end - skew.last_start),
        "end_spread_ns": skew.end_spread,
        "starts_ns": [part.tolist() for part in np.split(skew.starts - start_ns, cuts)] if len(skew) else [],
        "ends_ns": [part.tolist() for part in np.split(skew.ends - start_ns, cuts)] if len(skew) else [],
        "last_rank": [numbers[at] if late else None for at, late in zip(last.tolist(), skew.late.tolist())],
    }
    positions = skew.positions[skew.last_entry]
    sources = np.array([result.file_of(source) for source in skew.sources], np.int64)[last]
    lacking = sum(bool(missing) for missing in data["ranks_missing"])
    notes = [
        f"{lacking:,} of {len(skew):,} collectives lack ranks here: the last to come may be one of them, so "
        "the shortest time is an upper bound, and bandwidths are lower ones"
    ]
    return Table.from_arrays(
        COLLECTIVES, result.scope, data, notes=notes if lacking else (), positions=positions, sources=sources
    )


def rank_steps_table(result: Ranks) -> Table:
    """Return a row per step that several ranks have; Enter leads to the slowest rank's."""
    rows, jumps = [], []
    for alike in result.steps:
        slowest = max(alike, key=attrgetter("own_ns"))
        awaited = max(alike, key=attrgetter("kept_waiting_ns"))
        who: dict[str, Any] = {
            "slowest": result.number(slowest.source),
            "kept_waiting_ns": awaited.kept_waiting_ns,
        }
        who["awaited"] = str(result.number(awaited.source)) if awaited.kept_waiting_ns else ""
        times = {"wall_ns": max(row.wall_ns for row in alike), "slowest_own_ns": slowest.own_ns}
        times["fastest_own_ns"] = min(row.own_ns for row in alike)
        rows.append({"step": slowest.label, "ranks": len(alike), **who, **times})
        jumps.append((result.file_of(slowest.source), slowest.position))
    notes = ("a rank's own time is that of its step without its waiting for others in collectives",)
    return Table.from_rows(STEPS, result.scope, rows, jumps, notes=notes)


def _row(rank: RankTimes) -> dict[str, Any]:
    clock = rank.clock
    residuals = {"residual_median_ns": clock.median_ns, "residual_p95_ns": clock.p95_ns}
    own = {key: getattr(clock, key) for key in ("offset_ns", "residual_ns", "correction_ns", "matched")}
    return row_of_object(RANKS.columns, rank, **own, **residuals)
