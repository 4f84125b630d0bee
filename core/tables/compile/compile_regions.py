"""Compiled regions as a tree, the graphs that they call, and both by step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...base.arrays import I64, AnyArray, distinct, mean_of, means_of, sum_of
from ...base.numbers import whole_number
from ...query.groups import Groups, Labels
from ...trace.step_choice import Steps, find_steps
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.table import Table
from ..host.tree import ROOT, TreeBuilder, paths_of
from .artefacts import Artefacts
from .compile_phases import COMPILERS, GRAPH, GRAPH_HASH, LOOKUP, REGION, REGION_ID, Calls, calls

INDENT = "  "
LABELS = 4
"""Steps that are named where a graph does not run in all of them."""
NESTED = "graph break or disabled region"
AGAIN = "compiled again"

COMPILE_REGIONS = TableSchema(
    "compile_regions",
    "Compiled regions",
    (
        Column("rank", "rank", "text"),
        Column("name", "region", "text"),
        Column("frame", "frame", "text"),
        Column("compile", "compile", "text"),
        Column("depth", "depth", "count", statistic=True),
        Column("count", "count", "count"),
        Column("total_ns", "total", "ns"),
        Column("self_ns", "without inner", "ns"),
        Column("mean_ns", "mean", "ns", statistic=True),
        Column("first_ns", "first", "ns", statistic=True),
        Column("max_ns", "longest", "ns", statistic=True),
        Column("note", "note", "text"),
        Column("reason", "why", "text"),
    ),
    chief=("name", "total_ns", "count", "self_ns"),
)
COMPILE_GRAPHS = TableSchema(
    "compile_graphs",
    "Compiled graphs",
    (
        Column("rank", "rank", "text"),
        Column("name", "FxGraph", "text"),
        Column("count", "calls", "count"),
        Column("total_ns", "total", "ns"),
        Column("mean_ns", "mean", "ns", statistic=True),
        Column("max_ns", "longest", "ns", statistic=True),
        Column("steps", "steps", "text"),
    ),
    chief=("name", "total_ns", "count", "mean_ns"),
)
COMPILE_STEPS = TableSchema(
    "compile_steps",
    "Compiled code by step",
    (
        Column("rank", "rank", "text"),
        Column("name", "step", "text"),
        Column("regions", "regions", "count"),
        Column("nested", "nested", "count"),
        Column("graph_calls", "graph calls", "count"),
        Column("graphs", "graphs", "count"),
        Column("new_graphs", "new", "count"),
        Column("lookups", "cache lookups", "count"),
        Column("lookup_ns", "lookup time", "ns"),
        Column("compilations", "compilations", "count"),
        Column("compile_ns", "compile time", "ns"),
    ),
    jumps_to="the step",
    chief=("name", "compilations", "compile_ns", "graph_calls"),
)


class Recompiled(NamedTuple):
    """A frame of which several compilations ran: how often each did."""

    rank: int
    frame: int
    runs: dict[int, int]


def region_table(scope: Scope, sources: list[Calls], artefacts: Artefacts) -> Table:
    """Return the regions as a tree: a row per path of regions that lie in each other, in order of time."""
    rows: list[dict[str, Any]] = []
    jumps: list[tuple[int, int]] = []
    for one in sources:
        for row, position in _tree(one, artefacts):
            rows.append(row)
            jumps.append((one.source, position))
    notes = ["a region in another: a graph break, or a region in which compilation is disabled"]
    return Table.from_rows(
        COMPILE_REGIONS, scope.text, rows, jumps, notes=notes if any(row["depth"] for row in rows) else ()
    )


def _tree(one: Calls, artefacts: Artefacts) -> list[tuple[dict[str, Any], int]]:
    """Return the rows of one source, each after the row of what it lies in."""
    if not len(one):
        return []
    path = paths_of(TreeBuilder(Labels(zip(one.texts, range(len(one.texts))))), one.name, one.around, ROOT)
    groups = Groups(path, int(path.max()) + 1)
    first, total = groups.first(), groups.sums(one.durations)
    columns: dict[str, AnyArray] = {"count": groups.counts, "total_ns": total}
    columns["self_ns"] = groups.sums(one.own_ns)
    columns |= {"mean_ns": means_of(total, groups.counts), "max_ns": groups.most(one.durations)}
    longest = groups.longest(one.durations)
    children: dict[int, list[int]] = defaultdict(list)
    for number in np.argsort(first, kind="stable").tolist():
        outer = int(one.around[first[number]])
        children[-1 if outer < 0 else int(path[outer])].append(number)
    versions: dict[str, set[str]] = defaultdict(set)
    ids = [REGION_ID.match(text) for text in one.texts]
    for match in ids:
        if match:
            versions[match["frame"]].add(match["compile"])
    rows = []
    todo = [(number, 0) for number in reversed(children[-1])]
    while todo:
        number, depth = todo.pop()
        todo += [(child, depth + 1) for child in reversed(children[number])]
        at = int(first[number])
        match = ids[int(one.name[at])]
        frame, compiled = (match["frame"], match["compile"]) if match else ("", "")
        notes = [NESTED] if depth else []
        if compiled not in ("", "0"):
            notes.append(AGAIN)
        name = INDENT * depth + (f"{frame}/{compiled}" if match else one.texts[int(one.name[at])])
        what = {"rank": str(one.rank), "name": name, "frame": frame, "compile": compiled, "depth": depth}
        why = {"note": ", ".join(notes), "reason": artefacts.reasons_of(f"{frame}/{compiled}")}
        times = {key: values[number] for key, values in columns.items()}
        row = {**what, **times, "first_ns": int(one.durations[at]), **why}
        rows.append((row, int(one.positions[longest[number]])))
    return rows


def recompiled_frames(sources: list[Calls]) -> tuple[Recompiled, ...]:
    """Return the frames of which several compilations ran."""
    result = []
    for one in sources:
        runs: dict[int, dict[int, int]] = defaultdict(dict)
        times = np.bincount(one.name, minlength=len(one.texts))
        for text, count in zip(one.texts, times.tolist()):
            match = REGION_ID.match(text)
            if match:
                of_frame = runs[whole_number(match["frame"])]
                number = whole_number(match["compile"])
                of_frame[number] = of_frame.get(number, 0) + count
        result += [
            Recompiled(one.rank, frame, dict(sorted(of_frame.items())))
            for frame, of_frame in sorted(runs.items())
            if len(of_frame) > 1 or max(of_frame) > 0
        ]
    return tuple(result)


def graph_table(scope: Scope, sources: list[Calls]) -> Table:
    """Return a row per compiled FxGraph, by its hash, and in which steps it ran; most time first."""
    rows: list[dict[str, Any]] = []
    jumps: list[tuple[int, int]] = []
    for one in sources:
        steps = find_steps(scope.trace, one.source, scope.clocks, scope.steps or None)
        for number, text in enumerate(one.texts):
            at = np.flatnonzero(one.name == number)
            durations = one.durations[at]
            match = GRAPH_HASH.fullmatch(text)
            labels = [] if steps is None else [steps.labels[i] for i in _steps_of(one.starts[at], steps)]
            where = _listed(labels, 0 if steps is None else len(steps))
            what = {"rank": str(one.rank), "name": match["hash"] if match else text, "steps": where}
            times = {"total_ns": sum_of(durations), "mean_ns": mean_of(durations)}
            rows.append({**what, "count": len(at), **times, "max_ns": int(durations.max())})
            jumps.append((one.source, int(one.positions[at[int(np.argmax(durations))]])))
    nameless = any(row["name"] == "None" for row in rows)
    return Table.from_rows(
        COMPILE_GRAPHS,
        scope.text,
        rows,
        jumps,
        notes=("None: the back end gives its graphs no hash, so several may be one row",) if nameless else (),
    ).sort("total_ns")


def _steps_of(times: I64, steps: Steps) -> list[int]:
    """Return the numbers of the steps in which any of the times lies."""
    rows: list[int] = distinct(steps.holding(times)).tolist()
    return [at for at in rows if at >= 0]


def _listed(labels: list[str], steps: int) -> str:
    if not steps:
        return ""
    if len(labels) == steps:
        return f"all {steps}"
    if not labels:
        return "outside the steps"
    text = ", ".join(labels[:LABELS])
    return f"{len(labels)} of {steps}: {text}{', …' if len(labels) > LABELS else ''}"


def step_table(scope: Scope, sources: Sequence[int]) -> Table:
    """Return per step how many regions, graphs, cache lookups and compilations begin in it."""
    rows: list[dict[str, Any]] = []
    jumps: list[tuple[int, int]] = []
    notes: list[str] = []
    for source in sources:
        steps = find_steps(scope.trace, source, scope.clocks, scope.steps or None)
        if steps is None:
            continue
        regions, graphs = calls(scope, source, REGION), calls(scope, source, GRAPH, GRAPH_HASH)
        lookups, compiling = calls(scope, source, LOOKUP), calls(scope, source, "(dynamo_timed)", COMPILERS)
        lookups_by_step = _joined(lookups.starts, regions.starts, steps)
        compiled: set[str] = set()
        if not any(_steps_of(one.starts, steps) for one in (regions, graphs, compiling)):
            notes.append(f"nothing of torch.compile begins in a step ({steps.choice}, {steps.reason})")
            continue
        notes.append(f"steps: {steps.choice} ({steps.reason})")
        for number in range(len(steps)):
            span = int(steps.starts[number]), int(steps.ends[number])
            if scope.range is not None and not (span[0] < scope.range[1] and span[1] > scope.range[0]):
                continue
            names = {graphs.texts[i] for i in distinct(graphs.name[_within(graphs, span)]).tolist()}
            inside = _within(regions, span)
            of_lookups = (lookups_by_step >= span[0]) & (lookups_by_step < span[1])
            of_compiling = _within(compiling, span)
            nested, count = (np.count_nonzero(one) for one in (regions.around[inside] >= 0, of_lookups))
            times = {"lookup_ns": sum_of(lookups.durations[of_lookups]), "lookups": count, "nested": nested}
            times["compile_ns"] = sum_of(compiling.durations[of_compiling])
            parts = {"regions": inside, "graph_calls": _within(graphs, span), "compilations": of_compiling}
            counts = {key: part.stop - part.start for key, part in parts.items()}
            counts |= {"graphs": len(names), "new_graphs": len(names - compiled)}
            rows.append({"rank": str(regions.rank), "name": steps.labels[number], **counts, **times})
            compiled |= names
            jumps.append((source, int(steps.positions[number])))
    return Table.from_rows(COMPILE_STEPS, scope.text, rows, jumps, notes=tuple(dict.fromkeys(notes)))


def _joined(lookups: I64, regions: I64, steps: Steps) -> I64:
    """Return the time by which each cache lookup counts: its own, else that of the region that follows it.

    Where the steps are compiled regions themselves, the lookup for a step stands right before it.
    """
    after = np.searchsorted(regions, lookups, "left")
    follows = (steps.holding(lookups) < 0) & (after < len(regions))
    joined = lookups.copy()
    joined[follows] = regions[after[follows]]
    return joined


def _within(calls: Calls, span: tuple[int, int]) -> slice:
    """Return which of the slices, in order of start, begin in a stretch of time."""
    begin, end = np.searchsorted(calls.starts, np.array(span, np.int64), "left").tolist()
    return slice(begin, end)
