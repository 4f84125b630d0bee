"""The analysis `critical_path`: what the length of a window hangs on, and how long it would be otherwise.

How long a window would be if some slices took another time: all its points again, in order of time.

Each point comes as long after what released it as it did, and not before anything else that it waits for:

- device work waits for the work before it on its stream, for its event and its graph, and for its launch,
  after the least delay of any launch that released work in the window
- the end of a call that waits, for all work that it waits for, also what did not hold it up
- the end of a pause of a thread, for the thread with which it takes turns
- the end of a collective, for the last rank

Of the host the time in slices of the name changes, with all that they call; what they launch still runs. A
call that takes no time waits for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ...base.arrays import F64, I64, AnyArray, Intervals, distinct, merge, run_starts, sum_of
from ...base.errors import UsageError
from ...base.kineto import OPS, STEP
from ...base.short_names import short_names
from ...query.groups import Groups, Labels, dense
from ...query.lookup import category_mask, nearest_around
from ..frame.frame_columns import NEVER
from ..frame.metrics import ratio
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.table import Table, Tables
from ..frame.table_rows import Values
from ..host.op_events import ANNOTATION, PYTHON, host_kinds
from ..host.slice_table import slice_ids
from .path_graph import PathGraph, graph_of
from .path_points import LAUNCH, SYNC, VIA
from .path_walk import CHECKED, COMMUNICATION, COPY, HOST, KERNEL, KINDS, PathEnd, Segments, path_end, walked

END, CALL_END, MARK, PAUSE_END, LAUNCHED, START = range(6)
"""What happens at the same ns happens in this order; a mark only notes the time of a thread."""
SCALE = re.compile(r"(.+)=(\d+(?:\.\d+)?)", re.DOTALL)


MAX_TIMES = 1_000_000
"""No slice is asked about that takes more times as long."""


def scale_of(text: str) -> tuple[str, float]:
    """Return the name and the factor of NAME=0.5. Raises UsageError."""
    match = SCALE.fullmatch(text)
    if match is None:
        raise UsageError(f"--scale {text!r} is no NAME=FACTOR, as aten::mm=0.5")
    if (factor := float(match[2])) > MAX_TIMES:
        raise UsageError(f"--scale {match[1]}: the factor is {MAX_TIMES:,} at most")
    return match[1], factor


@dataclass(frozen=True, eq=False)
class TimeChange:
    """Other times of slices in a window: a factor for each piece of device work, and by thread the time in
    which slices of the name run.
    """

    factor: float
    work: F64
    host: Mapping[int, Intervals]

    @classmethod
    def of(cls, graph: PathGraph, name: str, factor: float) -> TimeChange:
        """Return the change of all slices of a name, short ones too; UsageError where there are none."""
        texts = graph.work.name.texts
        names = sorted(set(texts))
        short = dict(zip(names, short_names(names)))
        is_chosen = np.array([name in (text, short[text]) for text in texts], np.bool_)
        chosen = is_chosen[graph.work.name.codes] if len(graph.work) else np.zeros(0, np.bool_)
        host = {}
        for number, thread in enumerate(graph.threads):
            numbers = np.array(thread.index.string_numbers(name), np.uint32)
            rows = np.isin(thread.index.column("slices.name")[thread.positions], numbers)
            if rows.any():
                host[number] = merge(thread.starts[rows], thread.ends[rows])
        if not host and not chosen.any():
            raise UsageError(f"no slice in the window is called {name!r}")
        return cls(factor, np.where(chosen, factor, 1.0), host)

    def length(self, graph: PathGraph) -> int:
        """Return the time of all that is changed, ns."""
        durations = (graph.work.end - graph.work.start)[self.work != 1]
        return sum_of(durations) + sum(times.length for times in self.host.values())

    def host_times(self, thread: int, times: I64) -> I64:
        """Return the times of a thread without what is saved before each."""
        if thread not in self.host:
            return times
        saved = self.host[thread].covered(np.full(len(times), NEVER), times) * (1.0 - self.factor)
        return np.asarray(times - np.rint(saved).astype(np.int64))


def new_length(graph: PathGraph, change: TimeChange, end: PathEnd) -> int:
    """Return how long the window of a path with this end would be, in ns. Raises Cancelled."""
    again = _Again(graph, change, end)
    again.run()
    old = [int(graph.work.end[end.rows].max(initial=NEVER))]
    new = [max((again.end[row] for row in end.rows.tolist()), default=NEVER)]
    if end.host >= 0:
        old.append(end.host_time)
        new.append(again.noted[end.host, end.host_time])
    return end.time - graph.window[0] + max(new) - max(old)


class _Again:
    """The points of a window with a change, as far as they have come; times in ns."""

    def __init__(self, graph: PathGraph, change: TimeChange, end: PathEnd) -> None:
        self.graph, self.change = graph, change
        work, waits = graph.work, graph.waits
        self.factor = change.work.tolist()
        self.old_start, self.old_end = work.start.tolist(), work.end.tolist()
        self.start, self.end, self.launch = list(self.old_start), list(self.old_end), graph.launched.tolist()
        self.old_launch = list(self.launch)
        columns = (graph.via, graph.by, graph.at, graph.until, graph.group)
        self.via, self.by, self.at, self.until, self.group = (column.tolist() for column in columns)
        self.thread = graph.thread.tolist()
        self.before = _by_first(*graph.before)
        self.awaited = _by_first(waits.calls, waits.rows)
        self.members = _by_first(graph.group, np.arange(len(work)))
        self.gone = self._gone() if change.factor == 0 else set()
        self.call_start, self.call_end, self.call_at = (
            column.tolist() for column in (waits.starts, waits.ends, waits.at)
        )
        of_launch = work.start[graph.via == LAUNCH] - graph.at[graph.via == LAUNCH]
        self.least_delay = int(of_launch.min(initial=np.iinfo(np.int64).max)) if len(of_launch) else 0
        self.now, self.seen = [graph.window[0]] * len(graph.threads), [graph.window[0]] * len(graph.threads)
        self.noted: dict[tuple[int, int], int] = {}  # (thread, time) -> its new time
        self.events = self._events(end)

    def _gone(self) -> set[int]:
        """Return the calls that wait for as long as what is left out runs around them."""
        waits, calls = self.graph.waits, []
        for number, times in self.change.host.items():
            own = np.flatnonzero(waits.threads == number)
            begins, ends = waits.starts[own], waits.ends[own]
            calls += own[times.covered(begins, ends) == ends - begins].tolist()
        return set(calls)

    def _events(self, end: PathEnd) -> list[tuple[int, int, int, int, int, int]]:
        """Return (time, order, item, thread, time less savings, when what a pause awaits ended)."""
        graph, (low, high) = self.graph, self.graph.window
        rows = np.arange(len(graph.work))
        none = np.full(len(rows), -1, np.int64)
        parts = [
            (graph.work.end, END, rows, none, none, none),
            # Of what begins together that comes first which takes no time.
            (graph.work.start, START, rows, none, none, (graph.work.end > graph.work.start).astype(np.int64)),
        ]
        pauses = [(one.by[one.via != SYNC], one.at[one.via != SYNC]) for one in graph.points]
        queried = _by_first(*(np.concatenate(column) for column in zip(*pauses))) if pauses else {}
        for number, (thread, points) in enumerate(zip(graph.threads, graph.points)):
            mine = np.flatnonzero((graph.thread == number) & (graph.launched >= low))
            calls = np.flatnonzero((graph.waits.threads == number) & (graph.waits.ends > low))
            turns = np.flatnonzero(points.via != SYNC)
            active = thread.activity
            begins = active.ends[np.maximum(np.searchsorted(active.starts, points.times[turns]) - 1, 0)]
            last = np.array([end.host_time] if number == end.host else [], np.int64)
            of_others = np.array(queried.get(number, ()), np.int64)
            marks = np.concatenate([begins, of_others, graph.waits.starts[calls], last])
            for times, order, items, more in (
                (graph.launched[mine], LAUNCHED, mine, mine),
                (graph.waits.ends[calls], CALL_END, calls, calls),
                (points.times[turns], PAUSE_END, points.by[turns], points.at[turns]),
                (marks, MARK, marks, marks),
            ):
                own = np.full(len(times), number, np.int64)
                parts.append((times, order, items, own, self.change.host_times(number, times), more))
        columns = [np.concatenate(
            [np.full(len(part[0]), part[1], np.int64) if key == 1 else part[key] for part in parts]
        ) for key in range(6)]  # fmt: skip
        ordered = np.lexsort((columns[5], columns[1], columns[0]))
        ordered = ordered[columns[0][ordered] <= high]
        return list(zip(*(column[ordered].tolist() for column in columns)))

    def run(self) -> None:
        for number, (time, order, item, thread, host_time, more) in enumerate(self.events):
            if number % CHECKED == 0:
                self.graph.scope.check()
            if order == START:
                self._begin(item)
            elif order == END:
                self._finish(item)
            else:
                passed = host_time - self.seen[thread]
                if order == CALL_END:
                    self._return(item, thread, passed)
                elif order == PAUSE_END:
                    other = self.noted.get((item, more), more)
                    self.now[thread] = max(self.now[thread], other + time - more)
                else:
                    self.now[thread] += passed
                self.seen[thread] = host_time
                if order == LAUNCHED:
                    self.launch[item] = self.now[thread]
                elif order == MARK:
                    self.noted[thread, time] = self.now[thread]

    def _begin(self, row: int) -> None:
        low = self.graph.window[0]
        if self.old_start[row] <= low or not self.via[row]:
            begin = self.old_start[row]
        else:
            base = self.launch[row] if self.via[row] == LAUNCH else self.end[self.by[row]]
            begin = base + self.old_start[row] - self.at[row]
        for other in self.before.get(row, ()):
            begin = max(begin, self.end[other])
        if self.via[row] != LAUNCH and self.thread[row] >= 0:
            delay = min(self.least_delay, self.old_start[row] - self.old_launch[row])
            begin = max(begin, self.launch[row] + delay)
        self.start[row] = begin
        if self.old_end[row] == self.old_start[row]:
            self.end[row] = begin

    def _finish(self, row: int) -> None:
        """Let a piece of work end; a collective begins to move data when its last rank has come."""
        if self.group[row] >= 0:
            members = self.members[self.group[row]]
            moved = max(self.start[at] for at in members) - max(self.old_start[at] for at in members)
            moving = (self.old_end[row] - self.until[row]) * self.factor[row]
            self.end[row] = self.until[row] + moved + round(moving)
        else:
            self.end[row] = self.start[row] + round(
                (self.old_end[row] - self.old_start[row]) * self.factor[row]
            )

    def _return(self, call: int, thread: int, passed: int) -> None:
        begin, end, at = self.call_start[call], self.call_end[call], self.call_at[call]
        arrived = self.noted.get((thread, begin), begin)
        if call in self.gone:
            self.now[thread] = arrived
            return
        until = end if at == NEVER else at
        # What ended after the call was not waited for as long as it took: it may still end that much later.
        ends = [self.end[row] + min(0, until - self.old_end[row]) for row in self.awaited.get(call, ())]
        arrived = self.now[thread] + passed if at == NEVER else arrived
        self.now[thread] = max([arrived, *ends]) + end - until


def _by_first(keys: I64, values: I64) -> dict[int, list[int]]:
    order = np.argsort(keys, kind="stable")
    begins, ordered = run_starts(keys[order]), values[order].tolist()
    bounds = pairwise([*begins.tolist(), len(ordered)])
    return {key: ordered[low:high] for key, (low, high) in zip(keys[order[begins]].tolist(), bounds)}


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

    def _by_source(self, value: Callable[[int, I64], AnyArray], missing: str) -> list[str]:
        """Return a text of each segment: `value` takes a source and positions."""
        texts = np.full(len(self.segments), missing, object)
        known = self.segments.positions >= 0
        for source in distinct(self.segments.sources[known]).tolist():
            own = np.flatnonzero(known & (self.segments.sources == source))
            texts[own] = value(source, self.segments.positions[own])
        return [str(text) for text in texts]

    @property
    def names(self) -> list[str]:
        return self._by_source(self._names_of, NO_NAME)

    def _names_of(self, source: int, positions: I64) -> AnyArray:
        """Return the names of slices; each distinct one is read once."""
        index = self.graph.scope.trace.indexes[source]
        rows, numbers = dense(index.column("slices.name")[positions])
        return np.array(index.strings(numbers), object)[rows]

    @property
    def ops(self) -> list[str]:
        """The innermost operators around what the host does, and around the launches of device work."""
        rows = self.segments.rows
        launched = self.graph.work.op.tolist() if len(self.graph.work) else []

        def of(source: int, positions: I64) -> AnyArray:
            index = self.graph.scope.trace.indexes[source]
            members = np.flatnonzero(category_mask(index, OPS)[index.column("slices.category")])
            around = nearest_around(index, positions, members, itself=True)
            texts = np.full(len(positions), NO_OP, object)
            inside = np.flatnonzero(around >= 0)
            texts[inside] = self._names_of(source, around[inside])
            return texts

        texts = self._by_source(of, NO_OP)
        return [text if row < 0 else launched[row] for text, row in zip(texts, rows.tolist())]

    @property
    def ranks(self) -> AnyArray:
        """The rank of each segment, NaN where a file names none."""
        ranks = [self.graph.scope.trace.rank(at) for at in range(len(self.graph.scope.trace.indexes))]
        numbers = np.array([np.nan if rank is None else rank for rank in ranks], np.float64)
        return numbers[self.segments.sources]

    def table(self) -> Table:
        """Return a row per segment, by time."""
        one, trace = self.segments, self.graph.scope.trace
        titles = {lane: trace.lanes[lane].title for lane in distinct(one.lanes).tolist()}
        ids = np.full(len(one), np.nan)
        for source in distinct(one.sources).tolist():
            own = np.flatnonzero((one.sources == source) & (one.positions >= 0))
            ids[own] = slice_ids(trace.indexes[source], source, one.positions[own])
        data: dict[str, Values] = {
            "start_ns": one.starts,
            "duration_ns": one.durations,
            "kind": [KINDS[kind] for kind in one.kinds.tolist()],
            "name": self.names,
            "lane": [titles[lane] for lane in one.lanes.tolist()],
            "rank": self.ranks,
            "slice_id": ids,
            "via": [VIA[via] for via in one.via.tolist()],
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
        texts = {
            "name": lambda: self.names,
            "kind": lambda: [KINDS[kind] for kind in self.segments.kinds.tolist()],
            "rank": lambda: [NO_RANK if rank != rank else str(int(rank)) for rank in self.ranks.tolist()],
            "op": lambda: self.ops,
        }[key]()
        labels = Labels()
        groups = Groups(labels.codes(texts), len(labels))
        times = groups.sums(self.segments.durations)
        longest = groups.longest(self.segments.durations)
        data: dict[str, Values] = {
            "name": list(labels),
            "count": groups.counts,
            "duration_ns": times,
            "share": times / max(sum_of(times), 1),
        }
        schema = replace(PATH, title=PATH.title.format(key))
        totals, scope = {"length_ns": sum_of(times)}, self.graph.scope.text
        at, sources = self.segments.positions[longest], self.segments.sources[longest]
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
        names, labels = self.names, Labels()
        groups = Groups(labels.codes([names[row] for row in rows.tolist()]), len(labels))
        times = groups.sums(one.durations[rows])
        top = int(np.argmax(times))
        change = TimeChange.of(self.graph, list(labels)[top], 1 - LESS)
        saved = self.elapsed_ns - new_length(self.graph, change, self.end)
        less = round(LESS * change.length(self.graph))
        segment = int(rows[groups.longest(one.durations[rows])[top]])
        return PathGain(list(labels)[top], int(times[top]), less, saved, segment)

    @property
    def _is_frame(self) -> AnyArray:
        """Which segments are parts of annotations, steps or Python's frames: what they do is not known."""
        one = self.segments
        is_frame = np.zeros(len(one), np.bool_)
        for source in distinct(one.sources).tolist():
            index = self.graph.scope.trace.indexes[source]
            own = np.flatnonzero((one.sources == source) & (one.positions >= 0) & (one.rows < 0))
            positions = one.positions[own]
            kinds = host_kinds(index)[index.column("slices.category")[positions]]
            steps = np.isin(index.column("slices.name")[positions], index.string_numbers(STEP, prefix=True))
            is_frame[own] = np.isin(kinds, (ANNOTATION, PYTHON)) | steps
        return is_frame
