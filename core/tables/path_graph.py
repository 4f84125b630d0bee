"""What released each point of a window, the steps of which the critical path walks back.

- The *start of device work* is released by what ended latest of: the work before it on its stream, work whose
  event its stream waits for, work before it of the same graph launch, the start of its launch. Of two that
  ended at the same ns the slice with the smaller id counts. Where none is known, by the work that ended last
  on its device.
- The *end of a call that waits* is released by the last work that it waits for, where that ended in the call.
- The *first activity of a thread after a pause* is released by what ended in the pause: the slice from which
  an arrow comes, or the activity of a thread with which it takes turns (autograd's and its caller).

Which stream or event is meant is told by the profiler's cuda_sync records where there are some. Else it is
inferred. A call that waits for a stream means that on which its thread launched last, one for an event the
last work that its thread launched before it recorded one, all others all streams; none means work launched
after the call began. A stream that waits for an event waits for what ended last on another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..base.arrays import I64, U8, AnyArray, places_in
from ..base.intervals import Intervals, merge
from ..base.kineto import LAUNCH_FLOWS
from ..index.format import NONE, LaneRole
from ..index.store import Index
from ..query.groups import concatenated
from ..query.lookup import category_mask, lanes_of, promoted_of
from ..query.promoted_terms import argument_values
from .device_state import looked_at, peers_of
from .frame import Frame
from .frame_columns import NEVER, work_of
from .host_columns import ANY_COPY, WAITS
from .op_events import ANNOTATION, PYTHON, RUNTIME, host_kinds
from .scope import Scope
from .slice_table import SOURCE_BITS
from .tree import slices_by_lane

VIA = ("", "stream", "event", "launch", "graph", "sync", "flow", "thread", "collective", "device")
"""Why a point follows another; the last for work of which nothing else is known."""
STREAM, EVENT, LAUNCH, GRAPH, SYNC, FLOW, THREAD, COLLECTIVE, DEVICE = range(1, len(VIA))
RECORD = re.compile(r"EventRecord", re.IGNORECASE)
WAIT_EVENT = re.compile(r"StreamWaitEvent", re.IGNORECASE)
OF_STREAM, OF_EVENT = re.compile(r"Stream|Queue"), re.compile(r"Event")
AUTOGRAD = "autograd::engine::evaluate_function"
"""How the names of what PyTorch's thread for the backward pass does begin."""
ALL, NO_STREAM = -1, -2


@dataclass(frozen=True, eq=False)
class Points:
    """Moments of one thread that something else released, by time (trace time, ns)."""

    times: I64
    via: U8
    by: I64  # the row of the work, or the number of the thread
    at: I64  # when that ended
    positions: I64  # of the call that waits, else of nothing: -1
    inferred: AnyArray


@dataclass(frozen=True, eq=False)
class Waits:
    """The calls that wait, whether or not that took time, and pairs (call, row) of what they wait for."""

    threads: I64
    starts: I64
    ends: I64
    at: I64  # when that ended which held it up, NEVER where nothing did
    calls: I64
    rows: I64

    @classmethod
    def joined(cls, parts: Sequence[Waits]) -> Waits:
        """Return those of several sources."""
        keys = ("threads", "starts", "ends", "at", "rows")
        columns = {key: concatenated([getattr(part, key) for part in parts]) for key in keys}
        bases = np.cumsum([0, *(len(part.threads) for part in parts)])
        return cls(**columns, calls=concatenated([part.calls + base for part, base in zip(parts, bases)]))


@dataclass(frozen=True, eq=False)
class HostThread:
    """The slices of a thread of the host in a window, by position; trace time (ns), cut to the window."""

    source: int
    lane: int  # place in Trace.lanes
    index: Index
    positions: I64
    starts: I64
    ends: I64
    kinds: AnyArray  # as in op_events
    depths: I64

    @cached_property
    def activity(self) -> Intervals:
        """When operators and calls run: neither Python's frames nor annotations alone."""
        rows = ~np.isin(self.kinds, (ANNOTATION, PYTHON))
        return merge(self.starts[rows], self.ends[rows])

    @cached_property
    def innermost(self) -> tuple[I64, I64]:
        """(times, the row of the innermost slice from each on, -1 for none).

        Of a (0..9) around b (2..5) these are 0: a, 2: b, 5: a, 9: none.
        """
        rows = np.flatnonzero(self.ends > self.starts)
        row_of = np.full(len(self.positions), -1, np.int64)
        above = self.index.column("slices.parent")[self.positions[rows]].astype(np.int64)
        row_of[rows] = places_in(self.positions, above)
        times = np.concatenate([self.starts[rows], self.ends[rows]])
        depth = self.depths[rows]
        is_start = np.arange(len(times)) >= len(rows)
        is_start = ~is_start
        order = np.lexsort((np.concatenate([depth, -depth]), is_start, times))
        times, owner = times[order], np.concatenate([rows, row_of[rows]])[order]
        todo = np.flatnonzero(owner >= 0)
        while len(todo):  # slices that overlap end before those inside them
            todo = todo[self.ends[owner[todo]] <= times[todo]]
            owner[todo] = row_of[owner[todo]]
            todo = todo[owner[todo] >= 0]
        last = np.append(times[1:] != times[:-1], True) if len(times) else np.zeros(0, np.bool_)
        return times[last], owner[last]


@dataclass(frozen=True, eq=False)
class PathGraph:
    """The device work and the threads of a window, and what released their points."""

    scope: Scope
    window: tuple[int, int]
    work: Frame
    ids: I64  # of the slices of the work
    threads: Sequence[HostThread]
    launched: I64  # when each piece of work was launched (NEVER where that is not known)
    thread: I64  # the thread that launched it, -1 for none
    via: U8  # what released its start
    by: I64  # a row of the work, or a thread for a launch; -1
    at: I64  # and when that ended; NEVER
    inferred: AnyArray
    until: I64  # until when a collective waits for the last rank
    last: I64  # the row of that rank's, -1 where there is none
    points: Sequence[Points]
    before: tuple[I64, I64]  # pairs of rows: what each piece of work has to come after
    group: I64  # the collective that each is part of, -1 for none
    waits: Waits


def graph_of(scope: Scope) -> PathGraph:
    """Return what released each point of the window that a scope looks at. Raises Cancelled."""
    window = looked_at(scope)
    whole = replace(scope, range=window, work=None, where=None, lanes=None)
    work = work_of(whole)
    work = work[~work.is_type("sync")]
    ids = work.from_parts(lambda part: _ids(part.index, part.source_number, part.position))
    threads = threads_of(whole)
    calls = [_Calls.of(whole, source, threads) for source in scope.sources]
    launched, thread = _launches(work, threads)
    table = _Work(work, ids, launched, thread)
    waits = [pair for one in calls for pair in one.event_waits(table)]
    via, by, at, inferred, before = _releases(table, waits)
    until, last, group = _collectives(whole, work)
    syncs = [one.sync_points(table) for one in calls]
    points = _points(whole, threads, [points for points, _ in syncs], ids)
    awaited = Waits.joined([of_calls for _, of_calls in syncs])
    return PathGraph(
        scope, window, work, ids, threads, launched, thread, via, by, at, inferred, until, last, points,
        before, group, awaited,
    )  # fmt: skip


def threads_of(scope: Scope) -> list[HostThread]:
    """Return the threads of the host in a scope's range, in display order."""
    lanes = frozenset(lane.index for lane in scope.trace.lanes if lane.role is LaneRole.HOST)
    threads = []
    for source, lane, pieces in slices_by_lane(replace(scope, lanes=lanes)):
        index = scope.trace.indexes[source]
        keys = ("positions", "starts", "ends", "categories", "rows")
        columns = [concatenated([getattr(piece, key) for piece in pieces]) for key in keys]
        positions, starts, ends, categories, rows = columns
        depths = index.rows["depth"].astype(np.int64)[rows]
        kinds = host_kinds(index)[categories]
        threads.append(
            HostThread(source, lane, index, positions.astype(np.int64), starts, ends, kinds, depths)
        )
    return threads


def lane_bases(scope: Scope) -> I64:
    """Return where the lanes of each source begin in those of the trace."""
    return np.cumsum([0, *(len(index.lanes) for index in scope.trace.indexes)])


def latest(groups: I64, times: I64, ids: I64, of: I64, until: I64) -> I64:
    """Return for each query the row of its group with the latest time up to `until`, of equal ones that with
    the smallest id; -1 for none.
    """
    if not len(groups):
        return np.full(len(of), -1, np.int64)
    distinct = np.unique(times)
    ranks = np.searchsorted(distinct, times)
    order = np.lexsort((-ids, ranks, groups))
    keys = groups[order] * (len(distinct) + 1) + ranks[order]
    queries = of * (len(distinct) + 1) + np.searchsorted(distinct, until, "right") - 1
    at = np.searchsorted(keys, queries, "right") - 1
    rows = order[np.maximum(at, 0)]
    return np.where((at >= 0) & (groups[rows] == of), rows, -1)


@dataclass(frozen=True, eq=False)
class _Work:
    """Device work with its ids and launches, and its streams in the order of launches."""

    work: Frame
    ids: I64
    launched: I64
    thread: I64

    @cached_property
    def streams(self) -> dict[int, tuple[I64, I64]]:
        """(rows, when they were launched at the earliest) of each stream, in its order: where a launch is not
        in the file, not before those of what came before it.
        """
        parts = self._in_order(self.work.stream, self.work.start)
        return {key: (rows, np.maximum.accumulate(self.launched[rows])) for key, rows in parts}

    @cached_property
    def by_thread(self) -> dict[int, tuple[I64, I64]]:
        """(rows, launches) of what each thread launched, by launch."""
        parts = self._in_order(self.thread, self.launched)
        return {key: (rows, self.launched[rows]) for key, rows in parts}

    def _in_order(self, keys: I64, times: I64) -> Iterator[tuple[int, I64]]:
        """Yield each key with its rows by time, of equal ones those with the smallest id first."""
        rows = np.lexsort((self.ids, times, keys))
        begins = np.flatnonzero(np.diff(keys[rows], prepend=-2))
        yield from ((int(keys[part[0]]), part) for part in np.split(rows, begins)[1:])

    def last_before(self, where: tuple[I64, I64] | None, times: I64) -> I64:
        """Return the row launched last before each time among those of a stream or thread, -1 for none."""
        if where is None:
            return np.full(len(times), -1, np.int64)
        at = np.searchsorted(where[1], times) - 1
        return np.where(at >= 0, where[0][np.maximum(at, 0)], -1)

    def named(self, source: int, stream: int) -> list[int]:
        """Return the streams of a source that a record calls by a number."""
        of = self.work.source
        return [at for at, (rows, _) in self.streams.items()
                if self.work.streams[at] == str(stream) and int(of[rows[0]]) == source]  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Calls:
    """The calls into the runtime of one source, by start, and the records of waits."""

    source: int
    index: Index
    positions: I64
    starts: I64
    ends: I64
    threads: I64
    names: list[str]
    name: I64

    @classmethod
    def of(cls, scope: Scope, source: int, threads: Sequence[HostThread]) -> _Calls:
        """Return the calls of some threads, also those before the window: what they started may run in it."""
        index = scope.trace.indexes[source]
        may_call = host_kinds(index) >= RUNTIME  # calls, and what has no kind
        positions = np.flatnonzero(may_call[index.column("slices.category")] if len(may_call) else [])
        thread_of = np.full(len(index.lanes) + 1, -1, np.int64)
        for number, one in enumerate(threads):
            if one.source == source:
                thread_of[one.lane - lane_bases(scope)[source]] = number
        own = thread_of[lanes_of(index, positions)]
        positions, own = positions[own >= 0], own[own >= 0]
        starts = scope.starts(source, positions)
        order = np.argsort(starts, kind="stable")
        positions, starts, own = positions[order], starts[order], own[order]
        numbers, name = np.unique(index.column("slices.name")[positions], return_inverse=True)
        ends = starts + index.duration(positions)
        return cls(source, index, positions, starts, ends, own, index.strings(numbers), name)

    def named(self, pattern: re.Pattern[str]) -> I64:
        """Return the calls with a matching name."""
        fits = np.array([bool(pattern.search(text)) for text in self.names], np.bool_)
        return np.flatnonzero(fits[self.name]) if len(fits) else np.empty(0, np.int64)

    @cached_property
    def records(self) -> list[tuple[str, int, dict[str, int]]]:
        """(name, call, arguments) of the profiler's records of waits whose call is in the window."""
        mask = category_mask(self.index, {"cuda_sync", "xpu_sync"})
        is_record = mask[self.index.column("slices.category")] if mask.any() else np.zeros(0, np.bool_)
        positions = np.flatnonzero(is_record)
        if not len(positions):
            return []
        of_call = promoted_of(self.index, "correlation", self.positions)
        calls = {int(number): at for at, number in enumerate(of_call.tolist()) if number}
        keys = ("correlation", "stream", "wait_on_stream", "wait_on_cuda_event_record_corr_id")
        values = [list(argument_values(self.index, key, positions)) for key in keys]
        names = self.index.strings(self.index.column("slices.name")[positions])
        records = []
        for name, correlation, *rest in zip(names, *values):
            if correlation in calls:
                known = {key: value for key, value in zip(keys[1:], rest) if isinstance(value, int)}
                if (recorded := known.pop(keys[3], None)) in calls:
                    known["recorded"] = calls[recorded]
                records.append((name, calls[correlation], known))
        return records

    def _event_row(self, table: _Work, known: dict[str, int]) -> int:
        """Return the last work on a stream launched before its event was recorded, -1 where unknown."""
        if "recorded" not in known:
            return -1
        time = self.starts[[known["recorded"]]]
        rows = [
            int(table.last_before(table.streams[at], time)[0])
            for at in table.named(self.source, known.get("wait_on_stream", NO_STREAM))
        ]
        return max(rows, key=lambda row: int(table.launched[row]) if row >= 0 else NEVER, default=-1)

    def _recorded_before(self, table: _Work, calls: I64) -> I64:
        """Return for each call the last work that its thread launched before it last recorded an event."""
        recorded, rows = self.named(RECORD), np.full(len(calls), -1, np.int64)
        for thread in np.unique(self.threads[calls]).tolist():
            own, here = (
                recorded[self.threads[recorded] == thread],
                np.flatnonzero(self.threads[calls] == thread),
            )
            at = np.searchsorted(self.starts[own], self.starts[calls[here]]) - 1
            here, at = here[at >= 0], at[at >= 0]
            rows[here] = table.last_before(table.by_thread.get(thread), self.starts[own[at]])
        return rows

    def event_waits(self, table: _Work) -> list[tuple[int, int, bool]]:
        """Return (work, work that it waits for, whether that is inferred) where streams wait for events."""
        waits = []
        for name, call, known in self.records:
            if "wait" in name.lower() and (row := self._event_row(table, known)) >= 0:
                for at in table.named(self.source, known.get("stream", NO_STREAM)):
                    rows, launches = table.streams[at]
                    after = int(np.searchsorted(launches, self.starts[call], "right"))
                    if after < len(rows):
                        waits.append((int(rows[after]), row, False))
        return waits or self._inferred_waits(table)

    def _inferred_waits(self, table: _Work) -> list[tuple[int, int, bool]]:
        """Return the same without records: what a thread launches next after a call to wait for an event
        waits for what ended last before it on another stream, of work launched before the call.
        """
        waits: dict[int, int] = {}  # work -> call
        calls, work = self.named(WAIT_EVENT), table.work
        for thread in np.unique(self.threads[calls]).tolist():
            own = calls[self.threads[calls] == thread]
            rows, launches = table.by_thread.get(thread, (own[:0], own[:0]))
            after = np.searchsorted(launches, self.starts[own], "right")
            waits |= zip(rows[after[after < len(rows)]].tolist(), own[after < len(rows)].tolist())
        pairs = []
        waiting = np.array(list(waits), np.int64)
        for stream in np.unique(work.stream[waiting]).tolist():
            here = waiting[work.stream[waiting] == stream]
            others = np.flatnonzero((work.stream != stream) & (work.source == self.source))
            group = np.zeros(len(others), np.int64)
            until = work.start[here] - (work.end[here] == work.start[here])
            of = latest(group, work.end[others], table.ids[others], np.zeros(len(here), np.int64), until)
            for row, awaited in zip(here[of >= 0].tolist(), others[of[of >= 0]].tolist()):
                if table.launched[awaited] < self.starts[waits[row]]:
                    pairs.append((row, awaited, True))
        return pairs

    def sync_points(self, table: _Work) -> tuple[tuple[Any, ...], Waits]:
        """Return (thread, end, work waited for, its end, position, inferred) of the calls that waited, and
        all that wait.
        """
        calls = self.named(WAITS)
        row_of = {call: at for at, call in enumerate(calls.tolist())}
        only, row = np.full(len(calls), ALL, np.int64), np.full(len(calls), -1, np.int64)
        inferred = np.ones(len(calls), np.bool_)
        of_stream, of_event = (self._are(calls, pattern) for pattern in (OF_STREAM, OF_EVENT))
        for thread in np.unique(self.threads[calls]).tolist():
            here = np.flatnonzero(of_stream & (self.threads[calls] == thread))
            last = table.last_before(table.by_thread.get(thread), self.starts[calls[here]])
            only[here] = np.where(last >= 0, table.work.stream[last] if len(table.ids) else ALL, ALL)
        row[of_event] = self._recorded_before(table, calls[of_event])
        for name, call, known in self.records:
            at = row_of.get(call, -1)
            if at < 0 or "wait" in name.lower():
                continue
            inferred[at], only[at] = False, ALL
            if "stream" in name.lower():
                only[at] = next(iter(table.named(self.source, known.get("stream", NO_STREAM))), NO_STREAM)
            row[at] = self._event_row(table, known)
        return self._waited(table, calls, only, row, inferred)

    def _are(self, calls: I64, pattern: re.Pattern[str]) -> AnyArray:
        return np.isin(calls, self.named(pattern))

    def _waited(
        self, table: _Work, calls: I64, only: I64, row: I64, inferred: AnyArray
    ) -> tuple[tuple[Any, ...], Waits]:
        """Return what `sync_points` does: of work launched before a call, what ended in it last."""
        starts, ends = self.starts[calls], self.ends[calls]
        best, at = np.full(len(calls), -1, np.int64), np.full(len(calls), NEVER)
        pairs: list[tuple[I64, I64]] = []

        def take(rows: I64, allowed: AnyArray) -> None:
            some = np.flatnonzero(allowed & (rows >= 0))
            pairs.append((some, rows[some]))
            own = table.work.end[rows[some]]
            fits = (own > starts[some]) & (own <= ends[some])
            some, rows, own = some[fits], rows[some][fits], own[fits]
            known = best[some] >= 0
            better = (own > at[some]) | (
                (own == at[some]) & known & (table.ids[rows] < table.ids[np.maximum(best[some], 0)])
            )
            best[some[better]], at[some[better]] = rows[better], own[better]

        before = {
            stream: table.last_before(where, starts)
            for stream, where in table.streams.items()
            if int(table.work.source[where[0][0]]) == self.source
        }
        take(row, row >= 0)
        for stream, rows in before.items():
            take(rows, (only == stream) | ((only == ALL) & (row < 0)))
        unknown = inferred & (best < 0)
        for rows in before.values():
            take(rows, unknown)
        copies = self._copies(table)
        rows = np.flatnonzero(best >= 0)
        columns = (self.threads[calls[rows]], ends[rows], best[rows], at[rows], self.positions[calls[rows]])
        points = tuple(np.concatenate(pair) for pair in zip((*columns, inferred[rows]), copies))
        some, awaited = (concatenated(column) for column in zip(*pairs))
        own = table.work.call_start[copies[2]], copies[1], copies[3], len(calls) + np.arange(len(copies[0]))
        times = [np.concatenate(pair) for pair in zip((starts, ends, at, some), own)]
        threads = np.concatenate([self.threads[calls], copies[0]])
        waits = Waits(threads, times[0], times[1], times[2], times[3], np.concatenate([awaited, copies[2]]))
        return points, waits

    def _copies(self, table: _Work) -> tuple[I64, I64, I64, I64, I64, AnyArray]:
        """Return the points of calls that copied and returned when their own copy was done."""
        work = table.work
        is_own = (work.source == self.source) & (work.launch >= 0) & work.is_type("memory")
        rows = np.flatnonzero(is_own & (work.end <= work.call_start + work.call_ns))
        names = work[rows].names_of("launch")
        fits = np.array([bool(ANY_COPY.search(text)) for text in names.texts], np.bool_)
        rows = rows[fits[names.codes]] if len(rows) else rows
        rows = rows[(table.thread[rows] >= 0) & (work.end[rows] > work.call_start[rows])]
        ends = work.call_start[rows] + work.call_ns[rows]
        inferred = np.ones(len(rows), np.bool_)
        return table.thread[rows], ends, rows, work.end[rows], work.launch[rows], inferred


def _ids(index: Index, source: int, positions: AnyArray) -> I64:
    ordinals: I64 = index.column("slices.ordinal")[positions].astype(np.int64)
    return ordinals + (source << SOURCE_BITS)


def _launches(work: Frame, threads: Sequence[HostThread]) -> tuple[I64, I64]:
    """Return when each piece of work was launched, and by which thread; NEVER and -1 where neither is known,
    its own start and -1 where the launch begins after it.
    """
    number = {thread.lane: at for at, thread in enumerate(threads)}
    bases = lane_bases(work.scope)

    def times(part: Frame) -> I64:
        starts, known = np.full(len(part), NEVER), np.flatnonzero(part.launched >= 0)
        starts[known] = part.scope.starts(part.source_number, part.launched[known])
        return starts

    def lanes(part: Frame) -> I64:
        own, known = np.full(len(part), -1, np.int64), np.flatnonzero(part.launched >= 0)
        lanes = lanes_of(part.index, part.launched[known]) + bases[part.source_number]
        own[known] = [number.get(lane, -1) for lane in lanes.tolist()]
        return own

    launched, thread = work.from_parts(times), work.from_parts(lanes)
    is_late = launched > work.start
    return np.where(is_late, work.start, launched), np.where(is_late, -1, thread)


def _releases(
    table: _Work, waits: Sequence[tuple[int, int, bool]]
) -> tuple[U8, I64, I64, AnyArray, tuple[I64, I64]]:
    """Return (via, by, at, inferred) of the start of each piece of work, and pairs of work that comes after
    other work.
    """
    work, ids = table.work, table.ids
    size = len(work)
    via, inferred = np.zeros(size, np.uint8), np.zeros(size, np.bool_)
    by, at = np.full(size, -1, np.int64), np.full(size, NEVER)
    best_id = np.zeros(size, np.int64)
    pairs: list[tuple[I64, I64]] = [(by[:0], by[:0])]

    def offer(rows: I64, times: I64, slice_ids: I64, of: I64, code: int, guessed: AnyArray | bool) -> None:
        fits = times <= work.start[rows]
        better = fits & ((times > at[rows]) | ((times == at[rows]) & (slice_ids < best_id[rows])))
        chosen = rows[better]
        if code in (STREAM, EVENT, GRAPH):
            pairs.append((rows[fits], of[fits]))
        at[chosen], best_id[chosen], by[chosen], via[chosen] = (
            times[better], slice_ids[better], of[better], code,
        )  # fmt: skip
        inferred[chosen] = guessed if isinstance(guessed, bool) else guessed[better]

    # What takes no time cannot wait for itself, nor for another that takes none at the same ns.
    until = work.start - (work.end == work.start)

    def offer_latest(groups: I64, code: int, guessed: bool) -> None:
        mine = (
            np.flatnonzero((groups >= 0) & (at == NEVER)) if code == DEVICE else np.flatnonzero(groups >= 0)
        )
        members = np.flatnonzero(groups >= 0)
        ends = work.end[members]
        before = latest(groups[members], ends, ids[members], groups[mine], until[mine])
        mine, before = mine[before >= 0], members[before[before >= 0]]
        offer(mine, work.end[before], ids[before], before, code, guessed)

    offer_latest(work.stream, STREAM, False)
    known = np.flatnonzero(table.thread >= 0)
    calls = work[known].from_parts(lambda part: _ids(part.index, part.source_number, part.launched))
    offer(known, table.launched[known], calls, table.thread[known], LAUNCH, False)
    offer_latest(_graphs(work), GRAPH, True)
    for row, awaited, guessed in waits:
        rows, of = np.array([row]), np.array([awaited])
        if work.end[awaited] <= until[row]:
            offer(rows, work.end[of], ids[of], of, EVENT, guessed)
    offer_latest(work.device_row, DEVICE, True)
    rows, of = (np.concatenate(column) for column in zip(*pairs))
    return via, by, at, inferred, (rows, of)


def _graphs(work: Frame) -> I64:
    """Return a number for each launch call that started several pieces of work, -1 for the work of others."""
    keys = np.where(work.launch >= 0, work.source << SOURCE_BITS | work.launch, -1)
    _, codes, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return np.where((keys >= 0) & (counts[codes] > 1), codes, -1)


def _collectives(scope: Scope, work: Frame) -> tuple[I64, I64, I64]:
    """Return until when each piece of work waits for the last rank (its own start: it does not), and the row
    of that rank's work, -1 where it is not in the window; and which collective it is, -1 for none.
    """
    until, last = work.start.copy(), np.full(len(work), -1, np.int64)
    group: I64 = last.copy()
    peers = peers_of(replace(scope, range=None, source=None))
    if peers is None or not len(work):
        return until, last, group
    skew, who = peers.waiting, peers.waiting.who
    sources = np.array(skew.sources, np.int64)[who.rank] * (not peers.in_one_file)
    keys = work.source << SOURCE_BITS | work.position.astype(np.int64)
    order = np.argsort(keys, kind="stable")
    entries = sources << SOURCE_BITS | skew.positions
    at = places_in(keys[order], entries)
    rows = np.where(at >= 0, order[at], -1)
    latest_entry = skew.last_entry[who.collective]
    here = np.flatnonzero(rows >= 0)
    own = rows[here]
    until[own] = np.clip(skew.starts[latest_entry[here]], work.start[own], work.end[own])
    last[own] = np.where(latest_entry[here] == here, -1, rows[latest_entry[here]])
    group[own] = who.collective[here]
    return until, last, group


def _points(
    scope: Scope, threads: Sequence[HostThread], syncs: Sequence[tuple[Any, ...]], ids: I64
) -> list[Points]:
    """Return the points of each thread: ends of calls that waited, ends of pauses."""
    turns = _turns(scope, threads)
    columns = [concatenated([sync[key] for sync in syncs]) for key in range(6)]
    points = []
    for number in range(len(threads)):
        own = np.flatnonzero(columns[0] == number)
        times, by, at, positions, inferred = (column[own] for column in columns[1:])
        order = np.lexsort((ids[by], -at, times))  # of calls that end together the one that waited longest
        order = order[np.diff(times[order], prepend=NEVER) != 0]
        pauses = turns[number]
        parts = (
            (times[order], np.full(len(order), SYNC, np.uint8), by[order], at[order], positions[order],
             inferred[order]),
            pauses,
        )  # fmt: skip
        merged = [np.concatenate(pair) for pair in zip(*parts)]
        order = np.lexsort((merged[1], merged[0]))
        points.append(Points(*(column[order] for column in merged)))
    return points


def _turns(scope: Scope, threads: Sequence[HostThread]) -> list[tuple[AnyArray, ...]]:
    """Return of each thread (time, via, thread, when that ended, -1, inferred) of the ends of pauses that
    another thread ended.
    """
    offers: list[list[tuple[AnyArray, ...]]] = [[] for _ in threads]  # pause, time, thread, via
    linked = _arrows(scope, threads, offers)
    for one, other in linked:
        for mine, theirs in ((one, other), (other, one)):
            begins, active = threads[mine].activity.starts, threads[theirs].activity
            at = np.searchsorted(active.starts, begins, "right") - 1
            ended = active.ends[np.maximum(at, 0)] if len(active) else begins
            fits = np.flatnonzero((at >= 0) & (ended <= begins))
            offers[mine].append((fits, ended[fits], np.full(len(fits), theirs), np.full(len(fits), THREAD)))
    turns: list[tuple[AnyArray, ...]] = []
    nothing = (np.empty(0, np.int64),) * 4
    for thread, own in zip(threads, offers):
        pause, time, by, via = (concatenated(column) for column in zip(nothing, *own))
        is_later = time > np.concatenate([[NEVER], thread.activity.ends])[pause]
        pause, time, by, via = (column[is_later] for column in (pause, time, by, via))
        order = np.lexsort((by, via, -time, pause))
        order = order[np.diff(pause[order], prepend=-1) != 0]
        none = np.full(len(order), -1, np.int64)
        turns.append(
            (thread.activity.starts[pause[order]], via[order].astype(np.uint8), by[order], time[order], none,
             via[order] == THREAD)
        )  # fmt: skip
    return turns


def _arrows(
    scope: Scope, threads: Sequence[HostThread], offers: list[list[tuple[AnyArray, ...]]]
) -> set[tuple[int, int]]:
    """Offer the ends of slices from which arrows come to the pauses before their targets; return the pairs of
    threads that take turns: those of arrows from the forward to the backward pass, else of autograd's names.
    """
    linked: set[tuple[int, int]] = set()
    for source in scope.sources:
        own = [number for number, thread in enumerate(threads) if thread.source == source]
        index = scope.trace.indexes[source]
        lane = {threads[number].lane - int(lane_bases(scope)[source]): number for number in own}
        from_, to = index.column("flows.source"), index.column("flows.target")
        usable: AnyArray = (from_ != NONE) & (to != NONE)
        usable &= ~category_mask(index, LAUNCH_FLOWS)[index.column("flows.category")] if len(to) else usable
        from_, to = from_[usable].astype(np.int64), to[usable].astype(np.int64)
        ends = [
            np.array([lane.get(at, -1) for at in lanes_of(index, one).tolist()], int) for one in (from_, to)
        ]
        some = np.flatnonzero((ends[0] != ends[1]) & (ends[0] >= 0) & (ends[1] >= 0))
        done = scope.starts(source, from_[some]) + index.duration(from_[some])
        begun = scope.starts(source, to[some])
        for number in np.unique(ends[1][some]).tolist():
            mine = np.flatnonzero(ends[1][some] == number)
            active = threads[number].activity
            pause = np.searchsorted(active.starts, begun[mine], "right") - 1
            fits = np.append(active.starts, NEVER)[pause] >= done[mine]
            mine, pause = mine[fits], pause[fits]
            by = ends[0][some[mine]]
            offers[number].append((pause, done[mine], by, np.full(len(mine), FLOW)))
        is_back = category_mask(index, {"fwdbwd"})[index.column("flows.category")[usable][some]]
        pairs = np.unique(np.sort(np.stack(ends)[:, some[is_back]], axis=0), axis=1)
        linked |= set(zip(*pairs.tolist())) or _autograd(index, threads, own)
    return linked


def _autograd(index: Index, threads: Sequence[HostThread], own: Sequence[int]) -> set[tuple[int, int]]:
    """Return the thread of the backward pass with the busiest other one, where there is just one of it."""
    numbers = np.array(index.string_numbers(AUTOGRAD, prefix=True), np.uint32)
    names = index.column("slices.name")
    back = [at for at in own if np.isin(names[threads[at].positions], numbers).any()] if len(numbers) else []
    rest = [at for at in own if at not in back]
    if len(back) != 1 or not rest:
        return set()
    other = max(rest, key=lambda at: threads[at].activity.length)
    return {(min(back[0], other), max(back[0], other))}
