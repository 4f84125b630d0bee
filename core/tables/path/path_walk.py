"""The critical path of a window: from its end back along what released each point, without holes or overlap.

The path runs through device work, and along the threads of the host through the innermost slice of each
moment. Between two points that do not touch lies what took the time: the delay of a launch, the wait in a
queue, the return of a call that waited.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ...base.arrays import I64, U8, AnyArray, Bools, distinct
from ...base.errors import UsageError
from ...base.kineto import STEP
from ...index.captures import ranks_text
from ...query.cells import ragged
from ...query.lookup import lanes_of, names_with_prefix
from ..frame.frame_columns import NEVER
from ..host.op_events import ANNOTATION, I32
from .path_graph import PathGraph
from .path_points import COLLECTIVE, LAUNCH, SYNC, THREAD, HostThread

KINDS = (
    *("host", "host_idle", "launch_delay", "queue_wait", "kernel", "copy", "communication"),
    *("wait_for_rank", "sync_return"),
)
"""What a segment of the path is; idle is a thread in which nothing runs but what marks the step."""
(HOST, IDLE, LAUNCH_DELAY, QUEUE_WAIT, KERNEL, COPY, COMMUNICATION, WAIT_FOR_RANK, SYNC_RETURN) = range(
    len(KINDS)
)
OF_TYPE = (KERNEL, COMMUNICATION, COPY)
"""The kind of device work by its type; what has none is a kernel."""
CHECKED = 1 << 14
"""Segments between two looks at whether the answer is still wanted."""


@dataclass(frozen=True, eq=False)
class PathParts:
    """What a path goes along, by time (trace time, ns): segments that are not of a thread, and spans of
    threads, each with its moments [first, last).
    """

    starts: I64
    ends: I64
    via: AnyArray  # what released its start, as in path_points.VIA
    inferred: AnyArray
    sources: I64
    lanes: I64  # places in Trace.lanes
    rows: I64  # of device work in the graph, -1 for the host
    first: I64
    last: I64


@dataclass(frozen=True, eq=False)
class Moments:
    """Where the innermost slice of a thread changes, of one thread after the other; before these there is one
    for each part that is not of a thread. Of the columns by slice the last is for -1: nothing runs.
    """

    times: I64
    slices: I32
    kinds: U8
    positions: I64


class Segments:
    """The n segments of a path by time (trace time, ns), each with the slice that it is part of. Columns are
    made when they are first asked for: those of a long path have millions of values.
    """

    # A thread is in a from 0, in b within it from 2 to 5, and in nothing from 9: moments at 0, 2, 5 and 9. A
    # span of it from 3 to 7 has those of 2 and 5: two segments, from 3 to 5 in b and from 5 to 7 in a.

    def __init__(self, parts: PathParts, moments: Moments) -> None:
        self._parts, self._moments = parts, moments
        self._at, self._begins = ragged(parts.first, parts.last)

    def __len__(self) -> int:
        return len(self._at)

    @cached_property
    def _of(self) -> I64:
        """The part of each."""
        return np.repeat(np.arange(len(self._begins)), self._parts.last - self._parts.first)

    @cached_property
    def starts(self) -> I64:
        starts = self._moments.times[self._at]
        starts[self._begins] = np.maximum(starts[self._begins], self._parts.starts)
        return starts

    @cached_property
    def ends(self) -> I64:
        """Each ends where the next one starts."""
        return np.append(self.starts[1:], self._parts.ends[-1:])

    @cached_property
    def durations(self) -> I64:
        return np.diff(self.starts, append=self._parts.ends[-1:])

    @cached_property
    def _slices(self) -> I32:
        return self._moments.slices[self._at]

    @cached_property
    def kinds(self) -> U8:
        return self._moments.kinds[self._slices]

    @cached_property
    def positions(self) -> I64:
        """The slice that each is part of, -1 for none."""
        return self._moments.positions[self._slices]

    @cached_property
    def via(self) -> U8:
        """What released the start of each, as in path_points.VIA."""
        via = np.full(len(self), THREAD, np.uint8)
        via[self._begins] = self._parts.via
        return via

    @cached_property
    def inferred(self) -> Bools:
        inferred = np.zeros(len(self), np.bool_)
        inferred[self._begins] = self._parts.inferred
        return inferred

    @cached_property
    def sources(self) -> I64:
        return self._parts.sources[self._of]

    def jumps(self, rows: I64) -> tuple[I64, I64]:
        """Return (source, position) of the slices that some of the segments are part of."""
        of = np.searchsorted(self._begins, rows, "right") - 1
        return self._parts.sources[of], self._moments.positions[self._moments.slices[self._at[rows]]]

    @cached_property
    def lanes(self) -> I64:
        """Places in Trace.lanes."""
        return self._parts.lanes[self._of]

    @cached_property
    def rows(self) -> I64:
        """The row of device work in the graph, -1 for the host."""
        return self._parts.rows[self._of]


@dataclass
class _Walk:
    """The walk so far, from the end: segments of device work and between points, spans of threads."""

    graph: PathGraph
    segments: list[tuple[int, int, int, int, int, int, bool]] = field(default_factory=list)
    """(start, end, kind, row of the work or -1, position of a call or -1, via, inferred)"""
    spans: list[tuple[int, int, int, int, bool]] = field(default_factory=list)
    """(thread, start, end, via, inferred)"""

    def run(self, thread: int, row: int, time: int) -> None:
        """Walk back from a thread, or where that is -1 from a row of device work, to the window's start."""
        graph, (low, _) = self.graph, self.graph.window
        of_type = np.array([*OF_TYPE, *[KERNEL] * (256 - len(OF_TYPE))], np.uint8)
        columns = (graph.work.start, graph.work.end, of_type[graph.work.type])
        starts, ends, kinds = (column.tolist() for column in columns)
        via, by, at, inferred = (
            values.tolist() for values in (graph.via, graph.by, graph.at, graph.inferred)
        )
        until, last = graph.until.tolist(), graph.last.tolist()
        points = [
            tuple(values.tolist() for values in (p.times, p.via, p.by, p.at, p.positions, p.inferred))
            for p in graph.points
        ]
        seen: set[tuple[int, int]] = set()  # points at `time`: none is gone through twice
        now = time
        while time > low:
            if len(self.segments) + len(self.spans) & (CHECKED - 1) == 0:
                graph.scope.check()
            if time < now:
                now = time
                seen.clear()
            if thread >= 0:
                own = points[thread]
                number = bisect_right(own[0], time) - 1
                while number >= 0 and own[0][number] == time and (thread, number) in seen:
                    number -= 1
                begin = max(own[0][number], low) if number >= 0 else low
                code, guess = (own[1][number], own[5][number]) if number >= 0 else (0, False)
                self.span(thread, begin, time, code, guess)
                time = begin
                if number < 0 or begin == low:
                    return
                seen.add((thread, number))
                time = max(own[3][number], low)
                if code == SYNC:
                    row = own[2][number]
                    self.segment(time, begin, SYNC_RETURN, row, own[4][number], code, guess)
                    thread = -1
                else:
                    self.span(thread, time, begin, code, guess)
                    thread = own[2][number]
                continue
            end, start = min(ends[row], time), starts[row]
            if start < until[row] < end and last[row] >= 0:
                self.segment(until[row], end, kinds[row], row, -1, COLLECTIVE, False)
                time, row = until[row], last[row]
                start = min(starts[row], time)
            elif start < until[row] and last[row] < 0:
                # The window may end before the last rank comes.
                come = min(until[row], end)
                self.segment(come, end, kinds[row], row, -1, COLLECTIVE, False)
                self.segment(start, come, WAIT_FOR_RANK, row, -1, via[row], inferred[row])
            else:
                self.segment(start, end, kinds[row], row, -1, via[row], inferred[row])
            kind = LAUNCH_DELAY if via[row] == LAUNCH else QUEUE_WAIT
            time = max(at[row], low) if via[row] else low
            self.segment(time, start, kind, row, -1, via[row], inferred[row])
            thread, row = (by[row], -1) if via[row] == LAUNCH else (-1, by[row])

    def segment(
        self, start: int, end: int, kind: int, row: int, position: int, via: int, inferred: bool
    ) -> None:
        if end > start:
            self.segments.append((start, end, kind, row, position, via, inferred))

    def span(self, thread: int, start: int, end: int, via: int, inferred: bool) -> None:
        if end > start:
            self.spans.append((thread, start, end, via, inferred))


@dataclass(frozen=True, eq=False)
class PathEnd:
    """Where a path ends, and what else could end its window: device work, and a thread at a time."""

    thread: int  # -1: device work
    row: int  # -1: a thread
    time: int
    rows: I64
    host: int  # -1: none
    host_time: int


def walked(graph: PathGraph, end: PathEnd) -> Segments:
    """Return the critical path of a graph's window back from its end. Raises Cancelled."""
    walk = _Walk(graph)
    if max(end.thread, end.row) >= 0:
        walk.run(end.thread, end.row, end.time)
    return _segments(graph, walk)


def path_end(graph: PathGraph, rank: int | None = None) -> PathEnd:
    """Return where the path of a window ends: over several ranks at the one that ends last, or that given.

    Of a step that is its mark on the host or the last work that it launched; else the work that is still
    running at the window's end, else the thread that goes on longest. UsageError for an unknown rank.
    """
    work, scope, (_, high) = graph.work, graph.scope, graph.window
    source = None if rank is None else _source_of(graph, rank)
    own = np.ones(len(work), np.bool_) if source is None else work.source == source
    threads = [at for at, one in enumerate(graph.threads) if source in (None, one.source)]
    if scope.work is not None:
        of_step = work.from_parts(lambda part: scope.is_whole(part.source_number, part.position))
        own &= of_step.astype(np.bool_)  # numbers where there is no work
    reach = [_reach(graph.threads[at], scope.range[1] if scope.range else high) for at in threads]
    best = max(zip(reach, [-at for at in threads]), default=None)
    host, host_time = (-1, NEVER) if best is None else (-best[1], best[0][0])
    rows = np.flatnonzero(own)
    device = int(work.end[rows].max(initial=NEVER))
    last = max(host_time, device)
    time = high if source is None else last
    if last == NEVER:
        return PathEnd(-1, -1, graph.window[0], rows, -1, NEVER)
    if device < host_time:
        return PathEnd(host, -1, time, rows, host, host_time)
    there = rows[work.end[rows] == device]  # which an annotation may outlast
    return PathEnd(-1, int(there[np.argmin(graph.ids[there])]), min(time, device), rows, host, host_time)


def _reach(thread: HostThread, until: int) -> tuple[int, tuple[bool, int]]:
    """Return (until when a thread has slices, whether one ends right then and how much is done in it)."""
    ends = np.minimum(thread.ends, until)
    last = int(ends.max(initial=NEVER))
    rows = np.flatnonzero(ends == last)
    exact = bool((thread.index.duration(thread.positions[rows]) == last - thread.starts[rows]).any())
    return last, (exact, thread.activity.length)


def _source_of(graph: PathGraph, rank: int) -> int:
    sources = {graph.scope.trace.rank(source): source for source in graph.scope.sources}
    if rank not in sources:
        ranks = sorted(one for one in sources if one is not None)
        known = (
            f", but rank{'s' * (len(ranks) > 1)} {ranks_text(ranks)}" if ranks else ": no file names its rank"
        )
        raise UsageError(f"there is no rank {rank}{known}")
    return sources[rank]


def _segments(graph: PathGraph, walk: _Walk) -> Segments:
    """Return the segments of a walk: of a thread's spans the innermost slice of each moment."""
    threads, bases = graph.threads, graph.scope.trace.lane_bases
    starts, ends, kinds, rows, calls, via, inferred = np.array(walk.segments, np.int64).reshape(-1, 7).T
    positions = np.where(calls >= 0, calls, graph.work.position[rows]) if len(rows) else rows
    sources = graph.work.source[rows] if len(rows) else rows
    lanes = np.zeros(len(rows), np.int64)
    for source in distinct(sources).tolist():
        own = sources == source
        lanes[own] = lanes_of(graph.scope.trace.indexes[source], positions[own]) + bases[source]
    number, of_work = np.arange(len(rows)), np.where(calls >= 0, -1, rows)
    parts = [(starts, ends, via, inferred, sources, lanes, of_work, number, number + 1)]
    moments = [(np.full(len(rows), NEVER), number.astype(np.int32))]
    slices = [(kinds.astype(np.uint8), positions)]
    spans = np.array(walk.spans, np.int64).reshape(-1, 5)
    for at in distinct(spans[:, 0]).tolist():
        thread = threads[at]
        starts, ends, via, inferred = spans[spans[:, 0] == at, 1:].T
        times, inner = (np.append(*pair) for pair in zip((NEVER, -1), thread.innermost))
        base, before = (sum(len(own[0]) for own in columns) for columns in (moments, slices))
        first, last = np.searchsorted(times, starts, "right") - 1 + base, np.searchsorted(times, ends) + base
        source, lane, no_row = (np.full(len(starts), one) for one in (thread.source, thread.lane, -1))
        parts.append((starts, ends, via, inferred, source, lane, no_row, first, last))
        moments.append((times, np.where(inner < 0, -1, inner + before).astype(np.int32)))
        slices.append((_kinds_of(thread), thread.positions))
    slices.append((np.array([IDLE], np.uint8), np.array([-1])))
    columns = [np.concatenate(column) for column in zip(*parts)]
    order = np.argsort(columns[0])
    return Segments(
        PathParts(*(column[order] for column in columns)),
        Moments(*(np.concatenate(column) for rows in (moments, slices) for column in zip(*rows))),
    )


def _kinds_of(thread: HostThread) -> U8:
    """Return what a segment of each slice of a thread is: the marks of steps do nothing."""
    names = thread.index.column("slices.name")[thread.positions]
    is_mark = (thread.kinds == ANNOTATION) & np.isin(names, names_with_prefix(thread.index, STEP))
    return np.where(is_mark, IDLE, HOST).astype(np.uint8)
