"""One model of memory: allocators, the records of what they gave and took back, and the allocations that
these make, by address, wherever they are recorded: as `[memory]` of PyTorch's profiler, in a snapshot of its
memory (`core/read/snapshot.py` writes the same records), by allocators of XLA and TensorFlow, or on an AIU as
slices on the device's lanes. `allocators.py` reads them.

Allocators are never summed up: a trace may record one device twice (on AIU by PyTorch's allocator and by the
runtime's), and the sum of both would mean nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...base.arrays import I64
from ...base.kineto import ANNOTATIONS, OPS
from ...index.format import RowKind
from ...index.producers import named_events
from ...index.store import Index
from ...query.lookup import lanes_of, slice_at
from ...trace.devices import Device

HOST_TYPES = (0, 2, 5)
"""The types of CPU and its kin."""
NO_RECORD = -1
RECORDED, SUMMED = "recorded", "summed from 0"
FROM_LEAST, BY_SIZE = "summed, start unknown", "by size, start unknown"
"""How totals are known: the file has them; they are sums of changes, from 0 or, where more is released than
was allocated, from the least level that is possible; or of allocations of which only the sizes are known.
"""


@dataclass(frozen=True, eq=False)
class Allocations:
    """The allocations that records tell of, columns of equal length. `begins` and `ends` are records: the
    one that allocated it, NO_RECORD for what was there before; the one that released it or used its address
    again, the count of records for none.
    """

    addresses: I64
    bytes: I64
    begins: I64
    ends: I64
    instants: I64  # that stands where it was allocated; NO_RECORD where none does

    def __len__(self) -> int:
        return len(self.bytes)


@dataclass(frozen=True, eq=False)
class Records:
    """What an allocator did, in order of time: columns of equal length, trace time in ns, bytes."""

    times: I64
    changes: I64
    addresses: I64  # 0: not known
    instants: I64  # their numbers, NO_RECORD for slices
    slices: I64  # their positions, NO_RECORD for instants

    def merged(self, other: Records) -> Records:
        """Return these and others, in order of time; at one time these come first."""
        pairs = zip(vars(self).values(), vars(other).values())
        columns = [np.concatenate(pair) for pair in pairs]
        order = np.argsort(columns[0], kind="stable")
        return Records(*(column[order] for column in columns))


@dataclass(frozen=True, eq=False)
class Allocator:
    """The n records of one allocator; `total` is what is allocated after each, never negative."""

    source: int
    rank: int
    index: Index
    device_type: int
    device_id: int
    title: str
    device: Device | None  # where its lanes belong; None: the host, or a device that has no lanes
    records: Records
    earlier: Allocations  # what a snapshot says was allocated before its history
    total: I64
    known_by: str  # how the totals are known
    reserved: I64 | None
    pids: tuple[str, ...]  # of the threads that it was called on

    def __len__(self) -> int:
        return len(self.times)

    @property
    def times(self) -> I64:
        return self.records.times

    @property
    def changes(self) -> I64:
        return self.records.changes

    @property
    def host(self) -> bool:
        return self.device_type in HOST_TYPES

    @property
    def releases_only(self) -> bool:
        """Whether only releases are recorded, so that the totals are no amounts."""
        return bool((self.changes <= 0).all() and (self.changes < 0).any()) and not len(self.earlier)

    @property
    def ordinals(self) -> I64:
        """Which events of the file the records are."""
        ordinals: I64 = np.empty(len(self), np.int64)
        for name, rows in (
            ("instants.ordinal", self.records.instants),
            ("slices.ordinal", self.records.slices),
        ):
            own = rows != NO_RECORD
            ordinals[own] = self.index.column(name)[rows[own]]
        return ordinals

    @cached_property
    def allocations(self) -> Allocations:
        """All allocations, also those of which only the release is recorded; none where no record has an
        address.
        """
        return allocations_by_address(self.records, self.earlier)

    def live(self, at: int) -> I64:
        """Return the numbers of the allocations that were live after record `at`."""
        return np.flatnonzero((self.allocations.begins <= at) & (self.allocations.ends > at))

    def unreleased(self, begin: int, end: int) -> I64:
        """Return the numbers of the allocations by records [begin, end) that none of these releases."""
        begins = self.allocations.begins
        return np.flatnonzero((begins >= begin) & (begins < end) & (self.allocations.ends >= end))

    def between(self, span: tuple[int, int] | None) -> tuple[int, int]:
        """Return the records [begin, end) of a stretch of time, all without one."""
        if span is None:
            return 0, len(self)
        begin, end = np.searchsorted(self.times, np.array(span, np.int64), "left").tolist()
        return begin, end

    def op_at(self, record: int) -> int | None:
        """Return the position of the innermost op or annotation around a record, else of any slice."""
        position = int(self.records.slices[record])
        if position == NO_RECORD:
            return op_around(self.index, int(self.records.instants[record]))
        around = None if self.known_by == BY_SIZE else slice_around(self.index, position)
        return position if around is None else around

    def op_of(self, allocation: int) -> int | None:
        """Return what `op_at` says of where an allocation was made; None where no record tells of that."""
        begin, instant = (
            int(column[allocation]) for column in (self.allocations.begins, self.allocations.instants)
        )
        if begin != NO_RECORD:
            return self.op_at(begin)
        return None if instant == NO_RECORD else op_around(self.index, instant)

    def moments(self, numbers: I64) -> tuple[I64, I64]:
        """Return (lanes, lane times in ns) where allocations were made; lane NO_RECORD: not known."""
        lanes, times = np.full(len(numbers), NO_RECORD, np.int64), np.zeros(len(numbers), np.int64)
        begins = self.allocations.begins[numbers]
        slices = np.where(begins == NO_RECORD, NO_RECORD, self.records.slices[np.maximum(begins, 0)])
        for name, kind, rows in (
            ("instants.start", RowKind.INSTANTS, self.allocations.instants[numbers]),
            ("slices.start", RowKind.SLICES, slices),
        ):
            own = np.flatnonzero(rows != NO_RECORD)
            lanes[own] = lanes_of(self.index, rows[own], kind)
            times[own] = self.index.column(name)[rows[own]]
        return lanes, times


def allocations_by_address(records: Records, earlier: Allocations) -> Allocations:
    """Return the allocations that records make, and those that are known to be earlier."""
    count = len(records.times)
    if not records.addresses.any():
        return earlier
    before, after = np.full(count, NO_RECORD, np.int64), np.full(count, count, np.int64)
    order = np.argsort(records.addresses, kind="stable")
    same = records.addresses[order[1:]] == records.addresses[order[:-1]]
    before[order[1:][same]] = order[:-1][same]
    after[order[:-1][same]] = order[1:][same]
    begun = np.flatnonzero(records.changes > 0)
    alone = np.flatnonzero((records.changes < 0) & (before == NO_RECORD))  # released, and allocated before
    unknown = np.full(len(alone), NO_RECORD, np.int64)
    of_records = np.concatenate([begun, alone])
    own = Allocations(
        records.addresses[of_records],
        np.abs(records.changes[of_records]),
        np.concatenate([begun, unknown]),
        np.concatenate([after[begun], alone]),
        np.concatenate([records.instants[begun], unknown]),
    )
    return Allocations(*(np.concatenate(pair) for pair in zip(vars(own).values(), vars(earlier).values())))


def op_around(index: Index, instant: int) -> int | None:
    """Return the position of the innermost op or annotation around an instant, else of any slice."""
    row = _row_of(index, instant)
    time = int(index.column("instants.start")[instant])
    innermost = None
    for number in reversed(slice_rows(index, int(index.rows[row]["lane"]))):
        op_row = slice_at(index, number, time)
        if op_row is not None:
            position = int(index.rows[number]["first"]) + op_row
            category = index.categories[int(index.column("slices.category")[position])]
            if category in OPS | ANNOTATIONS:
                return position
            innermost = position if innermost is None else innermost
    return innermost


def slice_around(index: Index, position: int) -> int | None:
    """Return the position of the innermost slice around one that is no record of an allocator."""
    records = set(named_events(index).tolist())
    parent = index.parent(position)
    while parent is not None and int(index.column("slices.name")[parent]) in records:
        parent = index.parent(parent)
    return parent


def slice_rows(index: Index, lane_number: int) -> list[int]:
    """Return the rows of a lane that hold slices, the outermost first."""
    lane = index.lanes[lane_number]
    first = int(lane["first_row"])
    rows = range(first, first + int(lane["rows"]))
    return [row for row in rows if int(index.rows[row]["kind"]) == RowKind.SLICES]


def _row_of(index: Index, instant: int) -> int:
    rows = index.rows
    is_here = (rows["first"] <= instant) & (instant < rows["first"] + rows["count"])
    return int(np.flatnonzero((rows["kind"] == RowKind.INSTANTS) & is_here)[0])
