"""Compiled regions as a tree, the graphs that they call, and both by step."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ...base.arrays import I64, distinct, sum_of
from ...base.numbers import whole_number
from ...trace.devices import rank_of
from ...trace.step_choice import Steps, find_steps
from ..frame.frame import Frame
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.shape import Shape, first, flagged, n, statistic, text, total
from ..frame.table import Table
from ..frame.text_column import TextColumn
from ..host.tree_nodes import ROOT, TreeBuilder, depth_first, depths_of, paths_of
from .artefacts import Artefacts
from .compile_phases import COMPILERS, GRAPH, GRAPH_HASH, LOOKUP, REGION, REGION_ID, calls

INDENT = "  "
LABELS = 4
"""Steps that are named where a graph does not run in all of them."""
NESTED = "graph break or disabled region"
AGAIN = "compiled again"
TEXTS = ("title", "frame", "compile", "note", "reason")
"""What is said of a region in words."""

COMPILE_REGIONS = Shape(
    "compile_regions",
    "Compiled regions",
    {
        "rank": text("rank"),
        "name": ("region", text("title")),
        "frame": text("frame"),
        "compile": text("compile"),
        "depth": flagged(first("depth"), "statistic"),
        "count": n(),
        "total_ns": total("dur"),
        "self_ns": ("without inner", total("own_ns")),
        "mean_ns": flagged(statistic("mean_ns", "dur"), "statistic"),
        "first_ns": flagged(first("dur"), "statistic"),
        "max_ns": ("longest", flagged(statistic("max_ns", "dur"), "statistic")),
        "note": text("note"),
        "reason": ("why", text("reason")),
    },
    {"chief": ("name", "total_ns", "count", "self_ns")},
)
COMPILE_GRAPHS = Shape(
    "compile_graphs",
    "Compiled graphs",
    {
        "rank": text("rank"),
        "name": ("FxGraph", text("hash")),
        "count": ("calls", n()),
        "total_ns": total("dur"),
        "mean_ns": flagged(statistic("mean_ns", "dur"), "statistic"),
        "max_ns": ("longest", flagged(statistic("max_ns", "dur"), "statistic")),
        "steps": text("ran_in"),
    },
    {"chief": ("name", "total_ns", "count", "mean_ns")},
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


def region_table(regions: Frame, artefacts: Artefacts) -> Table:
    """Return the regions as a tree: a row per path of regions that lie in each other, in order of time."""
    builder, words, around = TreeBuilder(), regions.name, regions.around
    names = builder.labels.codes(words.texts)[words.codes]
    depths = depths_of(around)
    regions = regions.plus(node=paths_of(builder, names, around, depths, ROOT), depth=depths)
    groups = regions.group("source", "node")
    firsts = groups.first()
    rows = zip(regions.name[firsts].tolist(), regions.depth[firsts].tolist())
    texts = [_texts(name, depth, artefacts) for name, depth in rows]
    columns = {key: TextColumn(groups.codes, [own[at] for own in texts]) for at, key in enumerate(TEXTS)}
    parents = np.append(groups.codes, -1)[around[firsts]]
    order = depth_first(parents, np.lexsort((firsts, parents)))
    notes = ["a region in another: a graph break, or a region in which compilation is disabled"]
    table = COMPILE_REGIONS.of(
        replace(groups, frame=regions.plus(**columns)), jump="dur", notes=notes if regions.depth.any() else ()
    )
    return table.take(order)


def _texts(name: str, depth: int, artefacts: Artefacts) -> tuple[str, ...]:
    """Return the TEXTS of a region."""
    match = REGION_ID.match(name)
    frame, compiled = (match["frame"], match["compile"]) if match else ("", "")
    title = INDENT * depth + (f"{frame}/{compiled}" if match else name)
    notes = [NESTED] * (depth > 0) + [AGAIN] * (compiled not in ("", "0"))
    return title, frame, compiled, ", ".join(notes), artefacts.reasons_of(f"{frame}/{compiled}")


def recompiled_frames(regions: Frame) -> tuple[Recompiled, ...]:
    """Return the frames of which several compilations ran."""
    result = []
    for one in regions.by("source"):
        runs: dict[int, dict[int, int]] = defaultdict(dict)
        for name, count in Counter(one.name.tolist()).items():
            if match := REGION_ID.match(name):
                of_frame = runs[whole_number(match["frame"])]
                number = whole_number(match["compile"])
                of_frame[number] = of_frame.get(number, 0) + count
        result += [
            Recompiled(rank_of(one.index, one.source_number), frame, dict(sorted(of_frame.items())))
            for frame, of_frame in sorted(runs.items())
            if len(of_frame) > 1 or max(of_frame) > 0
        ]
    return tuple(result)


def graph_table(graphs: Frame) -> Table:
    """Return a row per compiled FxGraph, by its hash, and in which steps it ran; most time first."""
    scope, groups, sources = graphs.scope, graphs.group("source", "name_number"), distinct(graphs.source)
    steps = {at: find_steps(scope.trace, at, scope.clocks, scope.steps or None) for at in sources.tolist()}
    matches = [GRAPH_HASH.fullmatch(text) for text in graphs.name.texts]
    hashes = [match["hash"] if match else text for match, text in zip(matches, graphs.name.texts)]
    ran_in = [_listed(part.start, steps[part.source_number]) for part in groups.parts]
    graphs = graphs.plus(hash=TextColumn(graphs.name.codes, hashes), ran_in=TextColumn(groups.codes, ran_in))
    notes = ("None: the back end gives its graphs no hash, so several may be one row",)
    return COMPILE_GRAPHS.of(
        replace(groups, frame=graphs),
        jump="dur",
        sort="total_ns",
        notes=notes if "None" in hashes else (),
    )


def _steps_of(times: I64, steps: Steps) -> list[int]:
    """Return the numbers of the steps in which any of the times lies."""
    rows: list[int] = distinct(steps.holding(times)).tolist()
    return [at for at in rows if at >= 0]


def _listed(times: I64, steps: Steps | None) -> str:
    """Return the labels of the steps in which any of the times lies."""
    if steps is None:
        return ""
    labels = [steps.labels[at] for at in _steps_of(times, steps)]
    if len(labels) == len(steps):
        return f"all {len(steps)}"
    if not labels:
        return "outside the steps"
    text = ", ".join(labels[:LABELS])
    return f"{len(labels)} of {len(steps)}: {text}{', …' if len(labels) > LABELS else ''}"


def step_table(scope: Scope) -> Table:
    """Return per step how many regions, graphs, cache lookups and compilations begin in it."""
    rows: list[dict[str, Any]] = []
    jumps: list[tuple[int, int]] = []
    notes: list[str] = []
    for source in scope.sources:
        steps = find_steps(scope.trace, source, scope.clocks, scope.steps or None)
        if steps is None:
            continue
        own, rank = scope.of_source(source), str(rank_of(scope.trace.indexes[source], source))
        regions, graphs = calls(own, REGION), calls(own, GRAPH, GRAPH_HASH)
        lookups, compiling = calls(own, LOOKUP), calls(own, "(dynamo_timed)", COMPILERS)
        lookups_by_step = _joined(lookups.start, regions.start, steps)
        compiled: set[str] = set()
        if not any(_steps_of(one.start, steps) for one in (regions, graphs, compiling)):
            notes.append(f"nothing of torch.compile begins in a step ({steps.choice}, {steps.reason})")
            continue
        notes.append(f"steps: {steps.choice} ({steps.reason})")
        for number in range(len(steps)):
            span = int(steps.starts[number]), int(steps.ends[number])
            if scope.range is not None and not (span[0] < scope.range[1] and span[1] > scope.range[0]):
                continue
            names = set(graphs.name[_within(graphs, span)].tolist())
            inside = _within(regions, span)
            of_lookups = (lookups_by_step >= span[0]) & (lookups_by_step < span[1])
            of_compiling = _within(compiling, span)
            nested, count = (np.count_nonzero(one) for one in (regions.around[inside] >= 0, of_lookups))
            times = {"lookup_ns": sum_of(lookups.dur[of_lookups]), "lookups": count, "nested": nested}
            times["compile_ns"] = sum_of(compiling.dur[of_compiling])
            parts = {"regions": inside, "graph_calls": _within(graphs, span), "compilations": of_compiling}
            counts = {key: part.stop - part.start for key, part in parts.items()}
            counts |= {"graphs": len(names), "new_graphs": len(names - compiled)}
            rows.append({"rank": rank, "name": steps.labels[number], **counts, **times})
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


def _within(calls: Frame, span: tuple[int, int]) -> slice:
    """Return which of the calls, in order of start, begin in a stretch of time."""
    begin, end = np.searchsorted(calls.start, np.array(span, np.int64), "left").tolist()
    return slice(begin, end)
