"""What released each point of a window, the steps of which the critical path walks back.

- The *start of device work* is released by what ended latest of: the work before it on its stream, work whose
  event its stream waits for, work before it of the same graph launch, the start of its launch. Of two that
  ended at the same ns the slice with the smaller id counts. Where none is known, by the work that ended last
  on its device.
  A stream runs in order, but its records may overlap a little (CUPTI 13 stamps nodes of a graph some 60 ns
  before the node before them ends): an end behind the start of the next work on its stream by so little is
  taken for that start.
- The *end of a call that waits* is released by the last work that it waits for, where that ended in the call.
- The *first activity of a thread after a pause* is released by what ended in the pause: the slice from which
  an arrow comes, or the activity of a thread with which it takes turns (autograd's and its caller).

Which stream or event a call waits for is told by the profiler's cuda_sync records where there are some. Else
it is inferred: a call that waits for a stream means that on which its thread launched last, one for an event
the last work that its thread launched before it recorded one, all others all streams; none means work
launched after the call began. A stream that waits for an event waits for what ended last on another one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...base.arrays import I64, U8, AnyArray, concatenated_ranges, distinct, places_in
from ...base.kineto import SYNC_RECORDS, WAITS
from ...index.format import RowKind
from ...index.store import Index
from ...query.args import argument_values
from ...query.groups import concatenated, dense
from ...query.lookup import category_mask, lanes_of, promoted_of
from ..device.device_state import looked_at, peers_of
from ..frame.frame import Frame
from ..frame.frame_columns import NEVER, work_of
from ..frame.scope import Scope
from ..host.host_columns import ANY_COPY
from ..host.op_events import RUNTIME, host_kinds
from ..host.slice_table import SOURCE_BITS, slice_ids
from .path_points import (
    DEVICE,
    EVENT,
    GRAPH,
    LAUNCH,
    STREAM,
    Columns,
    HostThread,
    Points,
    Waits,
    latest,
    points_of,
    threads_of,
)

RECORD = re.compile(r"EventRecord", re.IGNORECASE)
WAIT_EVENT = re.compile(r"StreamWaitEvent", re.IGNORECASE)
OF_STREAM, OF_EVENT = re.compile(r"Stream|Queue"), re.compile(r"Event")
ALL, NO_STREAM = -1, -2
OVERLAP_NS, OVERLAP_SHARE = 1_500, 0.01
"""Work on one stream that overlaps by so few ns, or so small a share of the shorter, does not overlap."""


@dataclass(frozen=True, eq=False)
class LaunchedWork:
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
        order = np.lexsort((self.ids, self.work.start, self.work.stream))
        begins = np.flatnonzero(np.diff(self.work.stream[order], prepend=-2))
        parts = np.split(order, begins)[1:]
        return {
            int(self.work.stream[rows[0]]): (rows, np.maximum.accumulate(self.launched[rows]))
            for rows in parts
        }

    def last_on(self, stream: int, times: I64) -> I64:
        """Return the row launched last on a stream before each time, -1 for none."""
        rows, launches = self.streams[stream]
        at = np.searchsorted(launches, times) - 1
        return np.where(at >= 0, rows[np.maximum(at, 0)], -1)

    def last_launched(self, threads: I64, times: I64) -> I64:
        """Return the row that each thread launched last before a time, -1 for none."""
        return latest(self.thread, self.launched, -self.ids, threads, times - 1)

    def named(self, source: int, stream: int) -> list[int]:
        """Return the streams of a source that a record calls by a number."""
        of = self.work.source
        return [at for at, (rows, _) in self.streams.items()
                if self.work.streams[at] == str(stream) and int(of[rows[0]]) == source]  # fmt: skip


@dataclass(frozen=True, eq=False)
class RuntimeCalls:
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
    def of(
        cls, scope: Scope, source: int, threads: Sequence[HostThread], span: tuple[int, int]
    ) -> RuntimeCalls:
        """Return the calls of some threads in a span of time: what they started may run in the window."""
        index = scope.trace.indexes[source]
        number_of = {one.lane: number for number, one in enumerate(threads) if one.source == source}
        own = replace(scope, source=source, lanes=frozenset(number_of), range=span)
        parts = own.rows_inside(RowKind.SLICES)
        columns = [(part.begin, part.end, number_of[part.lane]) for part in parts]
        begins, ends, thread = np.array(columns, np.int64).reshape(-1, 3).T
        positions, thread = concatenated_ranges(begins, ends - begins), np.repeat(thread, ends - begins)
        may_call = host_kinds(index) >= RUNTIME  # calls, and what has no kind
        is_call = may_call[index.column("slices.category")[positions]] if len(may_call) else positions < 0
        positions, thread = positions[is_call], thread[is_call]
        starts = scope.starts(source, positions)
        order = np.argsort(starts, kind="stable")
        positions, starts, thread = positions[order], starts[order], thread[order]
        name, numbers = dense(index.column("slices.name")[positions])
        ends = starts + index.duration(positions)
        return cls(source, index, positions, starts, ends, thread, index.strings(numbers), name)

    def named(self, pattern: re.Pattern[str]) -> I64:
        fits = np.array([bool(pattern.search(text)) for text in self.names], np.bool_)
        return np.flatnonzero(fits[self.name]) if len(fits) else np.empty(0, np.int64)

    @cached_property
    def records(self) -> list[tuple[str, int, dict[str, int]]]:
        """(name, call, arguments) of the profiler's records of waits whose call is in the window."""
        mask = category_mask(self.index, SYNC_RECORDS)
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

    def _event_row(self, table: LaunchedWork, known: dict[str, int]) -> int:
        """Return the last work on a stream launched before its event was recorded, -1 where unknown."""
        if "recorded" not in known:
            return -1
        time = self.starts[[known["recorded"]]]
        rows = [
            int(table.last_on(at, time)[0])
            for at in table.named(self.source, known.get("wait_on_stream", NO_STREAM))
        ]
        return max(rows, key=lambda row: int(table.launched[row]) if row >= 0 else NEVER, default=-1)

    def _recorded_before(self, table: LaunchedWork, calls: I64) -> I64:
        """Return for each call the last work that its thread launched before it last recorded an event."""
        recorded = self.named(RECORD)
        if not len(recorded):
            return np.full(len(calls), -1, np.int64)
        threads, starts = self.threads[calls], self.starts[recorded]
        at = latest(self.threads[recorded], starts, -recorded, threads, self.starts[calls] - 1)
        return np.where(at >= 0, table.last_launched(threads, starts[at]), -1)

    def event_waits(self, table: LaunchedWork) -> list[tuple[int, int, bool]]:
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

    def _inferred_waits(self, table: LaunchedWork) -> list[tuple[int, int, bool]]:
        """Return the same without records: what a thread launches next after a call to wait for an event
        waits for what ended last before it on another stream, of work launched before the call.
        """
        # A thread calls cudaStreamWaitEvent at 10 and then launches B on stream 2. On stream 1 runs A,
        # launched at 3, until 20, where B begins: B waits for A, whichever event was named, as nothing else
        # ended there last. If A had been launched at 12 only, the call could not have meant it, and B waits
        # for nothing.
        calls, work = self.named(WAIT_EVENT), table.work
        after = -self.starts[calls] - 1
        rows = latest(table.thread, -table.launched, table.ids, self.threads[calls], after)
        waits = dict(zip(rows[rows >= 0].tolist(), calls[rows >= 0].tolist()))  # work -> call
        pairs = []
        waiting = np.array(list(waits), np.int64)
        for stream in distinct(work.stream[waiting]).tolist():
            here = waiting[work.stream[waiting] == stream]
            others = np.flatnonzero((work.stream != stream) & (work.source == self.source))
            group = np.zeros(len(others), np.int64)
            until = work.start[here] - (work.end[here] == work.start[here])
            of = latest(group, work.end[others], table.ids[others], np.zeros(len(here), np.int64), until)
            for row, awaited in zip(here[of >= 0].tolist(), others[of[of >= 0]].tolist()):
                if table.launched[awaited] < self.starts[waits[row]]:
                    pairs.append((row, awaited, True))
        return pairs

    def sync_points(self, table: LaunchedWork) -> tuple[Columns, Waits]:
        """Return (thread, end, work awaited, its end, position, inferred) of calls, and all that wait."""
        calls = self.named(WAITS)
        only, row = np.full(len(calls), ALL, np.int64), np.full(len(calls), -1, np.int64)
        inferred = np.ones(len(calls), np.bool_)
        of_stream, of_event = (np.isin(calls, self.named(pattern)) for pattern in (OF_STREAM, OF_EVENT))
        last = table.last_launched(self.threads[calls], self.starts[calls])
        on_stream = np.flatnonzero(of_stream & (last >= 0))
        only[on_stream] = table.work.stream[last[on_stream]]
        row[of_event] = self._recorded_before(table, calls[of_event])
        of_record = places_in(calls, np.array([call for _, call, _ in self.records], np.int64)).tolist()
        for at, (name, _, known) in zip(of_record, self.records):
            if at < 0 or "wait" in name.lower():
                continue
            inferred[at], only[at] = False, ALL
            if "stream" in name.lower():
                only[at] = next(iter(table.named(self.source, known.get("stream", NO_STREAM))), NO_STREAM)
            row[at] = self._event_row(table, known)
        return self._waited(table, calls, only, row, inferred)

    def _waited(
        self, table: LaunchedWork, calls: I64, only: I64, row: I64, inferred: AnyArray
    ) -> tuple[Columns, Waits]:
        """Return what `sync_points` does: of work launched before a call, what ended in it last."""
        starts, ends = self.starts[calls], self.ends[calls]
        # A call waits for the device from 10 to 30. Launched before it were A, which ended at 8, B, which
        # ended at 25 on stream 1, and C, at 29 on stream 2. It waited for C: of what ended meanwhile that
        # came last. For B if it names stream 1 or an event recorded behind B. Where no record says which
        # stream is meant and the one supposed ended nothing meanwhile, all streams are looked at, and the
        # wait is "inferred".
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
            stream: table.last_on(stream, starts)
            for stream, (rows, _) in table.streams.items()
            if int(table.work.source[rows[0]]) == self.source
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

    def _copies(self, table: LaunchedWork) -> tuple[I64, I64, I64, I64, I64, AnyArray]:
        """Return the points of calls that copied and returned when their own copy was done."""
        work = table.work
        is_own = (work.source == self.source) & (work.launch >= 0) & work.is_type("memory")
        rows = np.flatnonzero(is_own & (work.end <= work.call_end))
        names = work[rows].names_of("launch")
        fits = np.array([bool(ANY_COPY.search(text)) for text in names.texts], np.bool_)
        rows = rows[fits[names.codes]] if len(rows) else rows
        rows = rows[(table.thread[rows] >= 0) & (work.end[rows] > work.call_start[rows])]
        ends = work.call_start[rows] + work.call_ns[rows]
        inferred = np.ones(len(rows), np.bool_)
        return table.thread[rows], ends, rows, work.end[rows], work.launch[rows], inferred


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
    work = one_after_the_other(work[~work.is_type("sync")])
    ids = work.from_parts(lambda part: slice_ids(part.index, part.source_number, part.position))
    threads = threads_of(whole)
    launched, thread = _launches(work, threads)
    # Nothing in the window was launched before that: of earlier calls only those that last until it count.
    since = int(launched.min(initial=window[0]))
    calls = [RuntimeCalls.of(whole, source, threads, (since, window[1] + 1)) for source in scope.sources]
    table = LaunchedWork(work, ids, launched, thread)
    waits = [pair for one in calls for pair in one.event_waits(table)]
    via, by, at, inferred, before = _releases(table, waits)
    until, last, group = _collectives(whole, work)
    syncs = [one.sync_points(table) for one in calls]
    ends = [concatenated(column) for column in zip(*(points for points, _ in syncs))]
    points = points_of(whole, threads, ends, ids)
    awaited = Waits.joined([of_calls for _, of_calls in syncs])
    return PathGraph(
        scope, window, work, ids, threads, launched, thread, via, by, at, inferred, until, last, points,
        before, group, awaited,
    )  # fmt: skip


def one_after_the_other(work: Frame) -> Frame:
    """Return work that ends where the next on its stream starts, where the two overlap by hardly anything.

    On a stream with work at 0..100 and 99..150 µs the first one ends at 99: it released the second.
    """
    ends = work.end.copy()
    for rows in work.by_stream:
        first, after = rows[:-1], rows[1:]
        overlap = work.end[first] - work.start[after]
        shorter = np.minimum(work.dur[first], work.dur[after])
        is_little = overlap <= np.maximum(OVERLAP_NS, (shorter * OVERLAP_SHARE).astype(np.int64))
        cut = (overlap > 0) & is_little & (work.start[after] > work.start[first])
        ends[first[cut]] = work.start[after[cut]]
    return work.plus(end=ends, dur=ends - work.start)


def _launches(work: Frame, threads: Sequence[HostThread]) -> tuple[I64, I64]:
    """Return when each piece of work was launched, and by which thread; NEVER and -1 where neither is known,
    its own start and -1 where the launch begins after it.
    """
    number = np.full(len(work.scope.trace.lanes), -1, np.int64)
    number[[thread.lane for thread in threads]] = np.arange(len(threads))
    bases = work.scope.trace.lane_bases

    def times(part: Frame) -> I64:
        starts, known = np.full(len(part), NEVER), np.flatnonzero(part.launched >= 0)
        starts[known] = part.scope.starts(part.source_number, part.launched[known])
        return starts

    def lanes(part: Frame) -> I64:
        own, known = np.full(len(part), -1, np.int64), np.flatnonzero(part.launched >= 0)
        own[known] = number[lanes_of(part.index, part.launched[known]) + bases[part.source_number]]
        return own

    launched, thread = work.from_parts(times), work.from_parts(lanes)
    is_late = launched > work.start
    return np.where(is_late, work.start, launched), np.where(is_late, -1, thread)


def _releases(
    table: LaunchedWork, waits: Sequence[tuple[int, int, bool]]
) -> tuple[U8, I64, I64, AnyArray, tuple[I64, I64]]:
    """Return (via, by, at, inferred) of the start of each piece of work, and what comes after what."""
    work, ids = table.work, table.ids
    size = len(work)
    via, inferred = np.zeros(size, np.uint8), np.zeros(size, np.bool_)
    by, at = np.full(size, -1, np.int64), np.full(size, NEVER)
    best_id = np.zeros(size, np.int64)
    pairs: list[tuple[I64, I64]] = [(by[:0], by[:0])]

    def offer(rows: I64, times: I64, slice_ids: I64, of: I64, code: int, guessed: bool) -> None:
        fits = times <= work.start[rows]
        better = fits & ((times > at[rows]) | ((times == at[rows]) & (slice_ids < best_id[rows])))
        chosen = rows[better]
        if code in (STREAM, EVENT, GRAPH):
            pairs.append((rows[fits], of[fits]))
        at[chosen], best_id[chosen], by[chosen], via[chosen] = (
            times[better], slice_ids[better], of[better], code,
        )  # fmt: skip
        inferred[chosen] = guessed

    # What takes no time cannot wait for itself, nor for another that takes none at the same ns.
    until = work.start - (work.end == work.start)

    def offer_latest(groups: I64, code: int, guessed: bool) -> None:
        members = np.flatnonzero(groups >= 0)
        mine = members[at[members] == NEVER] if code == DEVICE else members
        ends = work.end[members]
        before = latest(groups[members], ends, ids[members], groups[mine], until[mine])
        mine, before = mine[before >= 0], members[before[before >= 0]]
        offer(mine, work.end[before], ids[before], before, code, guessed)

    offer_latest(work.stream, STREAM, False)
    known = np.flatnonzero(table.thread >= 0)
    calls = work[known].from_parts(lambda part: slice_ids(part.index, part.source_number, part.launched))
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
