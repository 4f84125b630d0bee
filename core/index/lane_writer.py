"""Slices of lanes to their columns: matched, put in order and in rows, with parents, self times and flows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ..base.arrays import I64, U8, U32, U64, AnyArray, Bools, pieces
from ..read.batch import Table
from .checks import require
from .column_files import ColumnFiles, Scratch
from .events import FlowEvents, LaneEvents
from .format import COLUMNS, LONG, NONE, SliceFlag
from .loops import BEGINS, CLOSING, ENDS, INSTANT, SLICE, Correlations, LaneFlows, LaneRows
from .workers import BuildJob, Loops, Worker

# Arithmetic with the enum's members takes longer than the numpy call it is for.
_OVERLAP, _UNCLOSED, _PAIR = int(SliceFlag.OVERLAP), int(SliceFlag.UNCLOSED), int(SliceFlag.PAIR)
_CLAMPED = int(SliceFlag.CLAMPED)  # the same bit as EventFlag.CLAMPED
PIECE = 1 << 16
"""Slices that are written at once."""
PLACED = ("start", "duration", "self", "name", "category", "ordinal", "parent")
"""Columns of slices that are written at the slices' positions."""

_KIND: U8 = np.full(256, INSTANT, np.uint8)
_KIND[list(b"X" + BEGINS)] = SLICE
_IS_BEGIN: U8 = np.zeros(256, np.uint8)
_IS_BEGIN[list(BEGINS)] = 1
_IS_END: U8 = np.zeros(256, np.uint8)
_IS_END[list(ENDS)] = 1
_B = ord("B")


@dataclass(eq=False)
class Group:
    """What came of consecutive lanes; arrays have an entry per lane where nothing else is said."""

    lanes: range
    rows: U32
    depth: U32  # greatest number of slices open at once, unclosed ones left out where others are there
    overlapping: U64  # likewise
    slices: I64
    instants: I64
    unclosed: I64
    unmatched_ends: I64
    pairs: I64
    start: I64  # of the first slice
    end: I64  # last end of a slice
    row_size: U32  # per row of slices
    row_start: I64
    row_end: I64
    mismatched_ends: int = 0  # ends of threads' slices that name another slice
    closed: list[tuple[int, int]] = field(default_factory=list)
    """First start and last end of pieces of threads' slices, but unclosed ones."""
    sparse: dict[str, list[AnyArray]] = field(default_factory=dict)  # pieces of the columns of few slices


class LaneWriter:
    """Writes the slices of lanes, group by group, in any order and on any thread."""

    def __init__(
        self,
        events: LaneEvents,
        is_thread: Sequence[bool],
        flows: FlowEvents,
        correlations: Correlations,
        columns: ColumnFiles,
        slot_of: U32,
        scratch: Scratch,
    ) -> None:
        """Write the lanes, of which `is_thread` says whether each is a thread; the others are async. The
        position of each flow event's slice is written to `flows.bound`, that of the slice that an event
        begins or ends to `slot_of`.
        """
        self.groups: dict[int, Group] = {}
        """By their first lanes."""
        self._events, self._flows, self._correlations = events, flows, correlations
        self._slot_of, self._scratch = slot_of, scratch
        self._is_thread = np.array(is_thread, np.bool_)
        self._threads_before = np.cumsum([0, *is_thread])
        self._positions = np.cumsum([0, *events.slices.tolist()])
        self._columns = {name: columns.writer(f"slices.{name}") for name in (PLACED if self.slices else ())}

    @property
    def slices(self) -> int:
        return int(self._positions[-1])

    def jobs(self) -> list[BuildJob]:
        return [partial(self._write, lanes) for lanes in self._events.groups()]

    def _write(self, lanes: range, worker: Worker) -> None:
        loops, events = worker.loops, self._events.some(lanes)
        begin = self._events.bounds[lanes.start]
        bounds = (self._events.bounds[lanes.start : lanes.stop + 1] - begin).astype(np.uint64)
        kind, mismatched = self._matched(worker, lanes, events)
        order, sizes = loops.order(bounds, events["start"], events["duration"], events["ordinal"], kind)
        if order is not None:
            for values in (*events.values(), *(() if kind is None else (kind,))):
                loops.reorder(values, order)
        count = sizes[:, SLICE].copy()
        flags = events["flags"]
        has_flags = bool(flags.any())
        closed_only = self._without_unclosed(worker, bounds, count, events) if has_flags else {}
        rows = self._rows(worker, bounds, count, events)
        ends = np.cumsum(rows.row_sizes, dtype=np.int64)
        firsts, lasts = rows.order[ends - rows.row_sizes], rows.order[ends - 1]
        none = np.zeros(len(lanes), np.int64)

        def flagged(flag: int) -> I64:
            return _per_lane(lambda own: (flags[own] & flag) != 0, bounds) if has_flags else none

        def is_loose(own: slice) -> Bools:
            assert kind is not None
            loose: Bools = (_IS_END.take(events["phase"][own]) != 0) & (kind[own] == INSTANT)
            return loose

        unclosed = flagged(_UNCLOSED)
        group = Group(
            lanes,
            rows=rows.lane_rows,
            depth=rows.lane_depth,
            overlapping=rows.lane_overlaps,
            slices=sizes[:, SLICE].astype(np.int64) - unclosed,
            instants=sizes[:, INSTANT].astype(np.int64),
            unclosed=unclosed,
            unmatched_ends=none if kind is None else _per_lane(is_loose, bounds),
            pairs=flagged(_PAIR),
            start=events["start"][bounds[:-1].astype(np.int64)],
            end=rows.lane_end,
            row_size=rows.row_sizes.copy(),
            row_start=events["start"][firsts],
            row_end=events["start"][lasts] + events["duration"][lasts],
            mismatched_ends=mismatched,
        )
        for lane, (depth, overlapping) in closed_only.items():
            group.depth[lane], group.overlapping[lane] = depth, overlapping
        self._write_columns(loops, group, rows, events, has_flags)
        self._bind(loops, lanes, bounds, count, rows, events)
        self.groups[lanes.start] = group

    # -- what events become -------------------------------------------------------------------------------

    def _matched(self, worker: Worker, lanes: range, events: Table) -> tuple[U8 | None, int]:
        """Match begins and ends and make the begins slices; return what each event is, None if all are
        slices, and how many ends of threads name another slice. A begin without name or category takes those
        of its end, one without an end reaches to the end of its stack. Ends without a begin become instants.
        """
        loops, room, n = worker.loops, worker.rooms.room, len(events["phase"])
        phase, flags, start = (events[name] for name in ("phase", "flags", "start"))
        if bool(flags.any()):
            flags &= _CLAMPED
        kind, is_begin = room("kind", n, "u1"), room("is_begin", n, "u1")
        are_slices, has_pairs = True, False
        for own in pieces(n):
            kind[own], is_begin[own] = _KIND.take(phase[own]), _IS_BEGIN.take(phase[own])
            are_slices &= not kind[own].any()
            has_pairs |= bool(is_begin[own].any() or _IS_END.take(phase[own]).any())
        if not has_pairs:
            return (None if are_slices else kind), 0
        stacks = self._stacks(worker, lanes)
        order, _ = loops.order(stacks, start, None, events["ordinal"])
        if order is not None:
            for values in (*events.values(), is_begin, kind):
                loops.reorder(values, order)
        partner = loops.match(stacks, phase, events["name"])
        events["end_ordinal"] = self._scratch.full(n, "u4", NONE)
        mismatched, unclosed = 0, []
        for own in pieces(n):
            worker.check()
            begin = own.start + np.flatnonzero(is_begin[own])
            end = partner[begin]
            if len(one := begin[end == NONE]):
                unclosed.append(one.astype(np.uint32))
            begin, end = begin[end != NONE], end[end != NONE]
            mismatched += _joined(events, begin, end)
            kind[end] = CLOSING
        if unclosed:
            self._reach_to_the_end(worker, stacks, unclosed, events)
        return kind, mismatched

    def _stacks(self, worker: Worker, lanes: range) -> U64:
        """Return where each stack of some lanes begins among their events, and the last one's end."""
        first, last = (int(self._events.bounds[lane]) for lane in (lanes.start, lanes.stop))
        own = slice(*np.searchsorted(self._events.stacks, (first, last)).tolist())
        stacks = worker.rooms.room("stacks", own.stop - own.start + 1, "u8")
        np.subtract(self._events.stacks[own], first, out=stacks[:-1], casting="unsafe")
        stacks[-1] = last - first
        return stacks

    def _reach_to_the_end(self, worker: Worker, stacks: U64, unclosed: Sequence[U32], events: Table) -> None:
        """Let begins without an end reach to the end of their stack."""
        start, duration = events["start"], events["duration"]
        ends = worker.rooms.room("ends", len(start), "i8")
        np.add(start, duration, out=ends)
        last = np.maximum.reduceat(ends, stacks[:-1].view(np.int64))
        for some in unclosed:
            stack = np.searchsorted(stacks, some.astype(np.uint64), side="right") - 1
            duration[some] = last[stack] - start[some]
            events["flags"][some] = _UNCLOSED

    def _rows(self, worker: Worker, bounds: U64, count: U64, events: Table) -> LaneRows:
        """Return where slices stand. On lanes with annotations of devices work stands below all of these, so
        that it keeps its row whether or not one is above it; one within work counts as work.
        """
        loops, n = worker.loops, len(events["start"])
        times = events["start"], events["duration"]
        rows = loops.rows(bounds, count, *times)
        if not self._events.annotations.any():
            return rows
        is_above = worker.rooms.room("is_above", n, "u1").view(np.bool_)
        for own in pieces(n):
            is_above[own] = self._events.annotations.take(events["category"][own])
        if not is_above.any():
            return rows
        begins, counts = bounds.astype(np.int64), count.astype(np.int64)
        for begin, end in zip((begins[:-1] + counts).tolist(), begins[1:].tolist()):
            is_above[begin:end] = False
        nested = _where(lambda own: is_above[own] & (rows.parent[own] != NONE), n)
        parent = rows.parent[nested]
        while len(within := nested[is_above[nested] & ~is_above[parent]]):
            is_above[within] = False
        alone = _per_lane(is_above.__getitem__, bounds).astype(np.uint64)
        ends = np.cumsum(np.append(0, alone), dtype=np.uint64)
        some = _where(is_above.__getitem__, n)
        above = loops.rows(ends, alone, *(values[some] for values in times))
        least = worker.rooms.room("least", n, "u4")
        least[:] = above.lane_rows if len(alone) == 1 else np.repeat(above.lane_rows, np.diff(begins))
        least[some] = 0
        return loops.rows(bounds, count, *times, least)

    def _without_unclosed(
        self, worker: Worker, bounds: U64, count: U64, events: Table
    ) -> dict[int, tuple[int, int]]:
        """Return (depth, overlapping slices) of lanes with unclosed slices as if these were not there."""
        result = {}
        times = [events[name] for name in ("start", "duration")]
        for lane, (begin, size) in enumerate(zip(bounds.tolist(), count.tolist())):
            flags = events["flags"][begin : begin + size]
            closed = sum(int(np.count_nonzero((flags[own] & _UNCLOSED) == 0)) for own in pieces(size))
            if closed == size:
                continue
            own_times = [values[begin : begin + size] for values in times]
            if closed:
                rooms = [worker.rooms.room(f"closed.{number}", closed, "i8") for number in range(2)]
                at = 0
                for own in pieces(size):
                    some = own.start + np.flatnonzero((flags[own] & _UNCLOSED) == 0)
                    for values, room in zip(own_times, rooms):
                        room[at : at + len(some)] = values[some]
                    at += len(some)
                own_times = rooms
            number = np.array([len(own_times[0])], np.uint64)
            rows = worker.loops.rows(np.zeros(1, np.uint64), number, *own_times)
            result[lane] = int(rows.lane_depth[0]), int(rows.lane_overlaps[0]) if closed else 0
        return result

    # -- columns ------------------------------------------------------------------------------------------

    def _write_columns(
        self, loops: Loops, group: Group, rows: LaneRows, events: Table, has_flags: bool
    ) -> None:
        first = int(self._positions[group.lanes.start])
        is_thread = self._is_thread[group.lanes.start : group.lanes.stop]
        lane_ends = np.cumsum(group.slices + group.unclosed)
        if not has_flags and bool(is_thread.any()):
            some = is_thread & (group.slices > 0)
            _widen(group.closed, group.start[some], group.end[some])
        unusual = has_flags or bool(group.overlapping.any())
        for at in range(0, len(rows.order), PIECE):
            order = rows.order[at : at + PIECE]
            n = len(order)
            for what, times in (("duration", events["duration"]), ("self time", rows.self_time)):
                require(int(loops.take(times, order).min()) >= 0, f"a slice has a negative {what}")
            columns = loops.slices(rows, range(at, at + n), first, events, self._slot_of)
            for name, values in columns.items():
                self._columns[name].put(first + at, values)
            for name in ("name", "category"):
                self._columns[name].put(first + at, loops.take(events[name], order))
            long = np.flatnonzero(columns["duration"] == LONG)  # self time is never longer
            if len(long):
                self._keep(group, "long.position", long + (first + at))
                self._keep(group, "long.duration", events["duration"][order[long]])
                self._keep(group, "long.self", rows.self_time[order[long]])
            if unusual:
                lane = np.searchsorted(lane_ends, np.arange(at, at + n), side="right")
                self._unusual(group, rows, events, order, first + at, is_thread[lane], has_flags)

    def _unusual(
        self,
        group: Group,
        rows: LaneRows,
        events: Table,
        order: U32,
        first: int,
        is_thread: AnyArray,
        has_flags: bool,
    ) -> None:
        """Write what few slices of a lane have: flags, and ends of their own."""
        flags = events["flags"].take(order)
        if has_flags:
            closed = order[is_thread & ((flags & _UNCLOSED) == 0)]
            start = events["start"].take(closed)
            _widen(group.closed, start, start + events["duration"].take(closed))
        flags |= np.where(rows.overlap.take(order) != 0, _OVERLAP, 0).astype(np.uint8)
        some = np.flatnonzero(flags)
        self._keep(group, "flags.position", some + first)
        self._keep(group, "flags.value", flags[some])
        some = np.flatnonzero((flags & _PAIR) != 0)
        if len(some):
            ordinal = events["end_ordinal"].take(order[some])
            self._slot_of[ordinal] = some + first
            self._keep(group, "ends.position", some + first)
            self._keep(group, "ends.ordinal", ordinal)

    def _keep(self, group: Group, name: str, values: AnyArray) -> None:
        """Keep a piece of a column whose place is known only when all groups are written."""
        piece = self._scratch.array(len(values), COLUMNS[name].dtype)
        piece[:] = values
        group.sparse.setdefault(name, []).append(piece)

    def _bind(
        self, loops: Loops, lanes: range, bounds: U64, count: U64, rows: LaneRows, events: Table
    ) -> None:
        flow_bounds = self._flows.bounds[self._threads_before[lanes.start : lanes.stop + 1]]
        own = slice(int(flow_bounds[0]), int(flow_bounds[-1]))
        if own.start == own.stop:
            return
        columns = {name: values[own] for name, values in self._flows.columns.items()}
        flows = LaneFlows(
            (flow_bounds - own.start).astype(np.uint64), columns, self._flows.bound[own], self._correlations
        )
        first = int(self._positions[lanes.start])
        loops.bind(rows, bounds, count, first, events, flows)


def _widen(bounds: list[tuple[int, int]], starts: I64, ends: I64) -> None:
    if len(starts):
        bounds.append((int(starts.min()), int(ends.max())))


def _joined(events: Table, begin: AnyArray, end: AnyArray) -> int:
    """Make slices of begins and their ends; return how many ends of threads name another slice."""
    events["duration"][begin] = events["start"][end] - events["start"][begin]
    own, its = events["name"][begin], events["name"][end]
    mismatched = int(((own != its) & (its != 0) & (own != 0) & (events["phase"][begin] == _B)).sum())
    for name in ("name", "category"):
        own = events[name][begin]
        events[name][begin] = np.where(own == 0, events[name][end], own)
    flags = events["flags"]
    flags[begin] = (flags[begin] | flags[end]) & _CLAMPED | _PAIR
    events["end_ordinal"][begin] = events["ordinal"][end]
    return mismatched


def _where(mask: Callable[[slice], Bools], size: int) -> U32:
    """Return where a mask, asked piece by piece, is true."""
    some = [(own.start + np.flatnonzero(mask(own))).astype(np.uint32) for own in pieces(size)]
    return np.concatenate([np.zeros(0, np.uint32), *some])


def _per_lane(mask: Callable[[slice], AnyArray], bounds: U64) -> I64:
    """Return how many events of each lane, none of which is empty, the mask has; of one lane it is asked
    piece by piece, as that may be large.
    """
    if len(bounds) == 2:
        return np.array([sum(np.count_nonzero(mask(own)) for own in pieces(int(bounds[1])))])
    counts: I64 = np.add.reduceat(mask(slice(None)), bounds[:-1].astype(np.int64), dtype=np.int64)
    return counts
