"""The analysis `critical_path`: what the length of a window hangs on, and how long it would be otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from ...base.arrays import I64, AnyArray, distinct, sum_of
from ...base.kineto import OPS, STEP
from ...query.groups import Groups, Labels, dense
from ...query.lookup import category_mask, names_with_prefix, nearest_around
from ..frame.metrics import ratio
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.table import Table, Tables
from ..frame.table_rows import Values
from ..frame.text_column import TextColumn, groups_of_texts
from ..host.op_events import ANNOTATION, PYTHON, host_kinds
from ..host.slice_table import slice_ids
from .path_change import TimeChange, new_length, scale_of
from .path_graph import PathGraph, graph_of
from .path_points import VIA
from .path_walk import COMMUNICATION, COPY, HOST, KERNEL, KINDS, PathEnd, Segments, path_end, walked

WORKS = (HOST, KERNEL, COPY, COMMUNICATION)
"""Kinds of segments in which something is done."""
LESS = 0.1
"""The part of a name's time that a gain is told for."""
NO_NAME, NO_OP, NO_RANK = "(nothing runs)", "(no op)", "(no rank)"
SEGMENTS = TableSchema(
    "segments",
    "Critical path",
    (
        Column("start_ns", "at", "ns", moment=True),
        Column("duration_ns", "time", "ns"),
        Column("kind", "kind", "text"),
        Column("name", "name", "text", is_name=True),
        Column("lane", "lane", "text"),
        Column("rank", "rank", "id"),
        Column("slice_id", "slice", "id", detail=True),
        Column("via", "released by", "text"),
        Column("inferred", "inferred", "number"),
    ),
    keys=("start_ns",),
    chief=("start_ns", "duration_ns", "kind", "name"),
)
PATH_SUMMARY = TableSchema(
    "path_summary",
    "Length of the critical path",
    (
        Column("elapsed_ns", "elapsed", "ns"),
        Column("nodes", "points", "count"),
        Column("edges", "segments", "count"),
        Column("length_ns", "length", "ns"),
        *(Column(f"{kind}_share", kind.replace("_", " "), "share") for kind in KINDS),
    ),
    keys=("elapsed_ns",),
)
PATH = TableSchema(
    "path",
    "Critical path by {}",
    (
        Column("name", "name", "text", is_name=True),
        Column("count", "segments", "count"),
        Column("duration_ns", "time", "ns"),
        Column("share", "of the path", "share"),
    ),
    read_by="duration_ns",
)
WHAT_IF = TableSchema(
    "what_if",
    "With other times",
    (
        Column("name", "slices of the name", "text", is_name=True),
        Column("factor", "times", "number"),
        Column("elapsed_ns", "elapsed", "ns"),
        Column("new_ns", "would be", "ns"),
        Column("saved_ns", "shorter by", "ns"),
    ),
)


def analyse_critical_path(
    scope: Scope,
    by: str = "",
    without: Sequence[str] = (),
    scale: Sequence[str] = (),
    start_rank: int | None = None,
) -> Tables:
    """Return the critical path of the window that a scope looks at, its summary, and the lengths that it
    would have with other times of slices. UsageError for an unknown name or rank. Raises Cancelled.
    """
    path = cache(lambda: critical_path(scope, start_rank))
    tables: dict[str, Callable[[], Table]] = {
        "segments": lambda: path().table(),
        "path_summary": lambda: path().summary(),
    }
    if by:
        tables = {"path": lambda: path().by(by), **tables}
    if changes := [*((name, 0.0) for name in without), *map(scale_of, scale)]:
        tables = {"what_if": lambda: path().with_changes(changes), **tables}
    return Tables(scope.text, scope.origin, tables)


def critical_path(scope: Scope, rank: int | None = None) -> CriticalPath:
    """Return the critical path of the window that a scope looks at; over several ranks from the one that
    ends last, or the one given. UsageError for an unknown rank. Raises Cancelled.
    """
    graph = graph_of(scope)
    end = path_end(graph, rank)
    return CriticalPath(graph, end, walked(graph, end))


class PathGain(NamedTuple):
    """What takes most time on a path, and how much shorter that is with a tenth less of it; in ns."""

    name: str
    path_ns: int
    less_ns: int  # a tenth of all of its time in the window
    saved_ns: int
    segment: int  # its longest one


class CriticalPath:
    """A path with its graph; tables of it."""

    def __init__(self, graph: PathGraph, end: PathEnd, segments: Segments) -> None:
        self.graph, self.end, self.segments = graph, end, segments

    @property
    def elapsed_ns(self) -> int:
        """From the window's start to where the path ends."""
        return self.end.time - self.graph.window[0]

    @property
    def ns_by_kind(self) -> list[int]:
        groups = Groups(self.segments.kinds.astype(np.int64), len(KINDS))
        return list(groups.sums(self.segments.durations).tolist())

    @cached_property
    def names(self) -> TextColumn:
        return self._named(self.segments.positions, NO_NAME)

    @property
    def ops(self) -> TextColumn:
        """The innermost operators around what the host does, and around the launches of device work."""
        one, work = self.segments, self.graph.work
        around = np.full(len(one), -1, np.int64)
        for source, own in self._of_sources(np.where(one.rows < 0, one.positions, -1)):
            index = self.graph.scope.trace.indexes[source]
            members = np.flatnonzero(category_mask(index, OPS)[index.column("slices.category")])
            around[own] = nearest_around(index, one.positions[own], members, itself=True)
        ops = self._named(around, NO_OP)
        if not len(work):
            return ops
        launched = len(ops.texts) + work.op.codes[one.rows]
        return TextColumn(np.where(one.rows < 0, ops.codes, launched), (*ops.texts, *work.op.texts))

    def _named(self, positions: I64, nothing: str) -> TextColumn:
        """Return the names of slices by their positions, one for each segment; -1 is nothing."""
        labels = Labels({nothing: 0})
        codes = np.zeros(len(positions), np.int32)
        for source, own in self._of_sources(positions):
            codes[own] = labels.of_slices(self.graph.scope.trace.indexes[source], positions[own])
        return TextColumn(codes, tuple(labels))

    def _of_sources(self, positions: I64) -> Iterator[tuple[int, I64]]:
        """Yield (source, its segments) of those for which there is a position."""
        known = np.flatnonzero(positions >= 0)
        if len(self.graph.scope.trace.indexes) == 1 and len(known):
            yield 0, known
            return
        sources = self.segments.sources[known]
        for source in distinct(sources).tolist():
            yield source, known[sources == source]

    @property
    def _ranks(self) -> list[int | None]:
        """The rank of each source, None where a file names none."""
        trace = self.graph.scope.trace
        return [trace.rank(at) for at in range(len(trace.indexes))]

    def _texts(self, key: str) -> TextColumn:
        """Return the name, kind, rank or op of each segment."""
        if key == "kind":
            return TextColumn(self.segments.kinds, KINDS)
        if key == "rank":
            texts = [NO_RANK if rank is None else str(rank) for rank in self._ranks]
            return TextColumn(self.segments.sources, texts)
        return self.names if key == "name" else self.ops

    def table(self) -> Table:
        """Return a row per segment, by time."""
        one, trace = self.segments, self.graph.scope.trace
        ranks = np.array([np.nan if rank is None else rank for rank in self._ranks], np.float64)
        lanes, numbers = dense(one.lanes)
        titles = TextColumn(lanes, [trace.lanes[number].title for number in numbers.tolist()])
        ids = np.full(len(one), np.nan)
        for source, own in self._of_sources(one.positions):
            ids[own] = slice_ids(trace.indexes[source], source, one.positions[own])
        data: dict[str, Values] = {
            "start_ns": one.starts,
            "duration_ns": one.durations,
            "kind": self._texts("kind"),
            "name": self.names,
            "lane": titles,
            "rank": ranks[one.sources],
            "slice_id": ids,
            "via": TextColumn(one.via, VIA),
            "inferred": one.inferred,
        }
        totals = {"elapsed_ns": self.elapsed_ns, "length_ns": sum_of(one.durations)}
        scope, at, sources = self.graph.scope.text, one.positions, one.sources
        return Table.from_arrays(SEGMENTS, scope, data, totals=totals, positions=at, sources=sources)

    def summary(self) -> Table:
        """Return the length, the number of points and segments, and the share of each kind."""
        times = self.ns_by_kind
        row = {
            "elapsed_ns": self.elapsed_ns,
            "nodes": len(self.segments) + (len(self.segments) > 0),
            "edges": len(self.segments),
            "length_ns": sum_of(times),
            **{f"{kind}_share": ratio(ns, sum_of(times)) for kind, ns in zip(KINDS, times)},
        }
        return Table.from_rows(PATH_SUMMARY, self.graph.scope.text, [row])

    def by(self, key: str) -> Table:
        """Return the time of the path by name, kind, rank or op; the jump leads to the longest segment."""
        groups, texts = groups_of_texts(self._texts(key))
        times = groups.sums(self.segments.durations)
        longest = groups.longest(self.segments.durations)
        data: dict[str, Values] = {
            "name": texts,
            "count": groups.counts,
            "duration_ns": times,
            "share": times / max(sum_of(times), 1),
        }
        schema = replace(PATH, title=PATH.title.format(key))
        totals, scope = {"length_ns": sum_of(times)}, self.graph.scope.text
        sources, at = self.segments.jumps(longest)
        table = Table.from_arrays(schema, scope, data, totals=totals, positions=at, sources=sources)
        return table.sort("duration_ns")

    def with_changes(self, changes: Sequence[tuple[str, float]]) -> Table:
        """Return how long the window would be with other times of slices of a name, each change alone."""
        rows = []
        for name, factor in changes:
            new = new_length(self.graph, TimeChange.of(self.graph, name, factor), self.end)
            times = {"elapsed_ns": self.elapsed_ns, "new_ns": new, "saved_ns": self.elapsed_ns - new}
            rows.append({"name": name, "factor": factor, **times})
        return Table.from_rows(WHAT_IF, self.graph.scope.text, rows)

    def gain(self) -> PathGain | None:
        """Return what takes most of the path, None where nothing does. Raises Cancelled."""
        one = self.segments
        rows = np.flatnonzero(np.isin(one.kinds, WORKS) & ~self._is_frame)
        if not len(rows):
            return None
        groups, names = groups_of_texts(self.names[rows])
        times = groups.sums(one.durations[rows])
        top = int(np.argmax(times))
        change = TimeChange.of(self.graph, names[top], 1 - LESS)
        saved = self.elapsed_ns - new_length(self.graph, change, self.end)
        less = round(LESS * change.length(self.graph))
        segment = int(rows[groups.longest(one.durations[rows])[top]])
        return PathGain(names[top], int(times[top]), less, saved, segment)

    @property
    def _is_frame(self) -> AnyArray:
        """Which segments are parts of annotations, steps or Python's frames: what they do is not known."""
        one = self.segments
        is_frame = np.zeros(len(one), np.bool_)
        for source, own in self._of_sources(np.where(one.rows < 0, one.positions, -1)):
            index = self.graph.scope.trace.indexes[source]
            positions = one.positions[own]
            kinds = host_kinds(index)[index.column("slices.category")[positions]]
            steps = np.isin(index.column("slices.name")[positions], names_with_prefix(index, STEP))
            is_frame[own] = np.isin(kinds, (ANNOTATION, PYTHON)) | steps
        return is_frame
