"""Lanes that are no threads: async events by id, counter samples by counter and id."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from ..base.arrays import F64, I64, PIECE, U32, AnyArray, concatenated_ranges, pieces, run_starts
from ..read.batch import ASYNCS, COUNTERS, IdKind, Table
from .batches import NumberedBatches
from .column_files import Scratch
from .workers import Worker

MAX_LANES = 1000
"""A process's category with more ids than this shares lanes among them."""
_EVERYWHERE = 0xFFFF_FFFF

Key: TypeAlias = Callable[[slice], AnyArray]
"""Returns whole numbers within int64 for a piece of a table."""


@dataclass(frozen=True, eq=False)
class AsyncLane:
    """One async lane and the groups (ids) in it."""

    pid: int  # pid number
    category: int
    id_kind: int  # of its only id; NONE where several share the lane
    id_value: int
    pack: int  # which of the shared lanes; 0 for a lane of its own
    groups: U32

    @property
    def ids(self) -> int:
        return len(self.groups)


class AsyncEvents:
    """All async events of a trace, by id; they lie in scratch, and memory does not grow with them."""

    def __init__(self, batches: NumberedBatches, scratch: Scratch, worker: Worker) -> None:
        events = batches.all("asyncs", tuple(ASYNCS), scratch.array)
        self._scratch, n = scratch, len(events["ordinal"])
        pid, owner = events["pid"], events["owner"] = scratch.array(n, "u4"), scratch.array(n, "u4")
        for own in pieces(n):
            pid[own] = batches.track_pid.take(events["track"][own])
            kind = events["id_kind"][own]
            is_shared = (kind == IdKind.GLOBAL) | (kind == IdKind.SCOPED)
            owner[own] = np.where(is_shared, _EVERYWHERE, pid[own])

        def of_groups(own: slice) -> AnyArray:
            kind_and_owner = _joined(events["id_kind"][own], owner[own], 32)
            return _joined(events["category"][own], kind_and_owner, 35)

        _sort(events, (events["start"].__getitem__, events["id_value"].__getitem__, of_groups), worker)
        self.events: Table = events
        """By group, start and ordinal."""
        self._first = _begins(events, ("category", "id_kind", "owner", "id_value"), scratch)
        self.lanes: Sequence[AsyncLane] = tuple(self._lanes(worker))
        """Unordered; every group lies in one of them."""

    def sizes(self, groups: AnyArray) -> I64:
        """Return how many events groups have."""
        return self._first[groups.astype(np.int64) + 1] - self._first[groups]

    def size(self, lane: AsyncLane) -> int:
        return sum(int(self.sizes(lane.groups[own]).sum()) for own in pieces(lane.ids))

    def entries(self, groups: AnyArray) -> slice | I64:
        """Return where the events of groups lie, one group after the other."""
        return self.slots(groups, self._first[groups])

    def slots(self, groups: AnyArray, begins: I64) -> slice | I64:
        """Return where they lie if each group begins elsewhere; of one, which may be large, a slice."""
        sizes = self.sizes(groups)
        if len(groups) == 1:
            return slice(int(begins[0]), int(begins[0] + sizes[0]))
        return concatenated_ranges(begins, sizes)

    def _lanes(self, worker: Worker) -> Iterator[AsyncLane]:
        columns = ("pid", "category", "id_kind", "id_value")

        def of_group(name: str, groups: AnyArray) -> AnyArray:
            return self.events[name][self._first[groups]]

        n = len(self._first) - 1
        groups = {"group": self._scratch.array(n, "u4")}
        for own in pieces(n):
            groups["group"][own] = np.arange(own.start, own.stop)

        def family(own: slice) -> AnyArray:
            some = groups["group"][own]
            return _joined(of_group("pid", some), of_group("category", some), 32)

        _sort(groups, (family,), worker)
        begin = 0
        while begin < n:
            pid, category = (
                int(of_group(name, groups["group"][begin : begin + 1])[0]) for name in columns[:2]
            )
            end = _end_of_run(family, begin, n)
            members = groups["group"][begin:end]
            if end - begin <= MAX_LANES:
                kinds, values = (of_group(name, members).tolist() for name in columns[2:])
                for number, (kind, value) in enumerate(zip(kinds, values)):
                    yield AsyncLane(pid, category, kind, value, 0, members[number : number + 1])
            else:
                for pack, some in enumerate(self._packed(members, worker)):
                    yield AsyncLane(pid, category, IdKind.NONE, 0, pack, some)
            begin = end

    def _packed(self, groups: U32, worker: Worker) -> list[U32]:
        """Divide groups into lanes in which no two share an instant; each goes to the lowest free lane."""
        n, start = len(groups), self.events["start"]
        begin, end, lane_of = (
            worker.rooms.room(f"packed.{one}", n, "i8") for one in ("begin", "end", "lane")
        )
        ordinal = worker.rooms.room("packed.ordinal", n, "u4")
        for own in pieces(n):
            first = self._first[groups[own]]
            begin[own], ordinal[own] = start[first], self.events["ordinal"][first]
            end[own] = start[first + self.sizes(groups[own]) - 1]
        order, _ = worker.loops.order(np.array([0, n], np.uint64), begin, end, ordinal)
        members = self._scratch.array(n, "u4")
        # Groups of 0 to 10, 2 to 5, 6 to 9 and 11 to 12 go to the lanes 0, 1, 1 and 0: at 6 the second lane
        # is free again, at 11 both are. Lanes that are taken lie in a heap by when they are free, the others
        # in one by number, so that ten thousand groups cost ten thousand steps and not their square.
        busy: list[tuple[int, int]] = []
        free: list[int] = []
        count = 0
        for own in pieces(n):
            worker.check()
            some: AnyArray = np.arange(own.start, own.stop) if order is None else order[own]
            members[own] = groups[some]
            lanes = array("q")
            for began, stop in zip(begin[some].tolist(), end[some].tolist()):
                while busy and busy[0][0] < began:
                    heappush(free, heappop(busy)[1])
                lane = heappop(free) if free else count
                count = max(count, lane + 1)
                lanes.append(lane)
                heappush(busy, (stop, lane))
            lane_of[own] = lanes
        sizes = np.bincount(lane_of, minlength=count)
        _sort({"group": members}, (lane_of.__getitem__,), worker)
        ends = np.cumsum(sizes).tolist()
        return [members[end - size : end] for end, size in zip(ends, sizes.tolist())]


@dataclass(frozen=True, eq=False)
class SampleSeries:
    """The samples of one series by (start, ordinal)."""

    series: int  # string number
    start: I64
    value: F64
    ordinal: U32


class CounterLane(NamedTuple):
    """One counter: bounds of its samples in the order of `CounterSamples`."""

    pid: int  # pid number
    name: int  # string number
    id_kind: int
    id_value: int
    first: int
    last: int


class CounterSamples:
    """All samples of counters, by counter and series; they lie in scratch like async events. `events` is how
    many events they are of.
    """

    def __init__(self, batches: NumberedBatches, scratch: Scratch, worker: Worker) -> None:
        events = batches.all("counters", tuple(COUNTERS), scratch.array)
        self._strings, n = batches.strings, len(events["ordinal"])
        self.events = len(_begins(events, ("ordinal",), scratch)) - 1  # its values still stand together
        pid = events["pid"] = scratch.array(n, "u4")
        for own in pieces(n):
            pid[own] = batches.track_pid.take(events["track"][own])

        def of_counters(own: slice) -> AnyArray:
            return _joined(pid[own], _joined(events["name"][own], events["id_kind"][own], 3), 35)

        columns = (events[name].__getitem__ for name in ("start", "series", "id_value"))
        _sort(events, (*columns, of_counters), worker)
        self._events = events
        self._first = _begins(events, ("pid", "name", "id_kind", "id_value"), scratch)

    def lanes(self) -> Iterator[CounterLane]:
        events, first = self._events, self._first.tolist()
        for a, b in pairwise(first):
            yield CounterLane(
                int(events["pid"][a]), int(events["name"][a]), int(events["id_kind"][a]),
                int(events["id_value"][a]), a, b,
            )  # fmt: skip

    def contents(self, lane: CounterLane) -> list[SampleSeries]:
        """Return a lane's series in the order in which the file names them, those of one event by text."""
        part = {key: values[lane.first : lane.last] for key, values in self._events.items()}
        series, begin, n = [], 0, lane.last - lane.first
        while begin < n:
            end = _end_of_run(part["series"].__getitem__, begin, n)
            own, number = slice(begin, end), int(part["series"][begin])
            samples = SampleSeries(number, part["start"][own], part["value"][own], part["ordinal"][own])
            series.append((int(samples.ordinal.min()), self._strings.text(number), samples))
            begin = end
        series.sort(key=lambda entry: entry[:2])
        return [samples for _, _, samples in series]


def _joined(high: AnyArray, low: AnyArray, bits: int) -> AnyArray:
    """Return numbers that sort by `high`, then by `low`, which has so many bits; together less than 64."""
    return (high.astype(np.int64) << bits) | low.astype(np.int64)


def _sort(table: Table, keys: Sequence[Key], worker: Worker) -> None:
    """Sort a table where it lies by some keys, the first of which counts least; of equal ones that come first
    whose `ordinal` is less, or those that came first where there is none. A key is computed of rows as they
    lie when its turn comes.
    """
    n = len(next(iter(table.values())))
    key, tie = worker.rooms.room("sort.key", n, "i8"), worker.rooms.room("sort.tie", n, "u4")
    for number, of in enumerate(keys):
        for own in pieces(n):
            worker.check()
            key[own] = of(own)
            by_ordinal = number == 0 and "ordinal" in table
            tie[own] = table["ordinal"][own] if by_ordinal else np.arange(own.start, own.stop)
        order, _ = worker.loops.order(np.array([0, n], np.uint64), key, None, tie)
        if order is not None:
            for values in table.values():
                worker.loops.reorder(values, order)


def _begins(table: Table, names: Sequence[str], scratch: Scratch) -> I64:
    """Return where each run of rows begins that are equal in some columns, and the last one's end."""
    columns, n = [table[name] for name in names], len(table[names[0]])

    def begins(own: slice) -> I64:
        before = own.start - (own.start > 0)  # a row that is there to compare with
        first_of_all = before == own.start
        runs = run_starts(*(values[before : own.stop] for values in columns))
        return np.asarray(before + runs[0 if first_of_all else 1 :], np.int64)

    count = sum(len(begins(own)) for own in pieces(n))
    every = scratch.array(count + 1, "i8")
    every[-1], at = n, 0
    for own in pieces(n):
        some = begins(own)
        every[at : at + len(some)] = some
        at += len(some)
    return every


def _end_of_run(key: Key, begin: int, end: int) -> int:
    """Return where the run of equal keys ends that begins at `begin`."""
    value, size = key(slice(begin, begin + 1))[0], 1
    while begin < end:
        size = min(2 * size, PIECE)  # most runs are short
        others = np.flatnonzero(key(slice(begin, min(begin + size, end))) != value)
        if len(others):
            return begin + int(others[0])
        begin += size
    return end
