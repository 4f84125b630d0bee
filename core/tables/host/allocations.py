"""One model of memory: allocators, the records of what they gave and took back, and the allocations that
these make, by address, wherever they are recorded: as `[memory]` of PyTorch's profiler, in a snapshot of its
memory (`core/read/snapshot.py` writes the same records), or on an AIU as slices on the device's lanes.

Allocators are never summed up: a trace may record one device twice (on AIU by PyTorch's allocator and by the
runtime's), and the sum of both would mean nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...base.arrays import I64, distinct, running_sums, sum_of
from ...base.kineto import ANNOTATIONS, BEFORE_RECORD, MEMORY_RECORD, OPS
from ...index.format import RowKind
from ...index.store import Index
from ...query.lookup import lanes_of, promoted_of, slice_at
from ...trace.devices import Device, allocates_by_memset, allocations_of, devices, rank_of
from ..frame.scope import Scope

TYPE_NAMES = {
    0: "CPU", 1: "CUDA", 2: "MKLDNN", 3: "OPENGL", 4: "OPENCL", 5: "IDEEP", 6: "HIP", 7: "FPGA", 8: "MAIA",
    9: "XLA", 10: "VULKAN", 11: "METAL", 12: "XPU", 13: "MPS", 14: "META", 15: "HPU", 16: "VE", 17: "LAZY",
    18: "IPU", 19: "MTIA", 20: "PrivateUse1",
}  # fmt: skip
"""c10::DeviceType by number."""
HOST_TYPES = (0, 2, 5)
"""The types of CPU and its kin."""
OWNERS = {1: "runtime", 20: "PyTorch"}
"""The allocator of a record, by device type, where two types record the same device (AIU)."""
NO_RECORD = -1
NO_TYPE = -(1 << 20)
NO_TOTAL = np.iinfo(np.int64).min
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
        if self.records.slices[record] != NO_RECORD:
            return int(self.records.slices[record])
        return op_around(self.index, int(self.records.instants[record]))


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


def memory_records(index: Index) -> I64:
    """Return the instants that are records of an allocator."""
    return _instants_named(index, MEMORY_RECORD)


def _instants_named(index: Index, name: str) -> I64:
    numbers = np.array(index.string_numbers(name), np.uint32)
    return np.flatnonzero(np.isin(index.column("instants.name"), numbers))


def allocators(scope: Scope) -> tuple[Allocator, ...]:
    """Return the allocators on a scope's lanes, the host's first, over the whole trace."""
    return tuple(one for source in scope.sources for one in _of_source(scope, source))


def _of_source(scope: Scope, source: int) -> list[Allocator]:
    index = scope.trace.indexes[source]
    rows = memory_records(index)
    if not len(rows):
        return []
    lanes = lanes_of(index, rows, RowKind.INSTANTS)
    inside = scope.has_lanes(source, lanes)
    rows, lanes = rows[inside], lanes[inside]
    pids = [index.string(int(process["pid"])) for process in index.processes]
    process = index.lanes["process"][lanes]
    times = index.column("instants.start")[rows].astype(np.int64) + scope.lane_offsets(source)[lanes]
    order = np.lexsort((index.column("instants.ordinal")[rows], times))
    rows, times, process = rows[order], times[order], process[order]
    keys = allocator_keys(index, rows)
    there = [device for device in devices(scope.trace) if device.source == source]
    pairs = [type_and_id(key) for key in distinct(keys).tolist()]
    kinds = {pair: {k for k, n in pairs if n == pair[1]} for pair in pairs}
    earlier = _instants_of(scope, source, BEFORE_RECORD)
    earlier_keys = allocator_keys(index, earlier)
    result = []
    for pair in pairs:
        if pair[0] == NO_TYPE:
            continue
        mask = keys == (pair[0] << 32) + pair[1]
        device = allocators_device(there, pair)
        title = allocator_title(pair, device, set(OWNERS) <= kinds[pair])
        used = tuple(pids[at] for at in distinct(process[mask]).tolist())
        before = _earlier(
            index, earlier[earlier_keys == (pair[0] << 32) + pair[1]], int(np.count_nonzero(mask))
        )
        records, totals = _records(index, rows[mask], times[mask]), _totals(index, rows[mask])
        if device is not None and allocates_by_memset(device.word) and (records.changes <= 0).all():
            by_size = _by_size(scope, source, device)
            if len(by_size.times):
                # No allocation has an address, so those of releases say nothing either.
                both = by_size.merged(replace(records, addresses=np.zeros(len(records.times), np.int64)))
                records, totals = both, (*_summed(both, BY_SIZE), None)
        of = (source, rank_of(index, source), index, *pair)
        result.append(Allocator(*of, title, device, records, before, *totals, used))
    return result


def allocator_keys(index: Index, rows: I64) -> I64:
    """Return the device type and id of instants as one number each; without a type it is far below 0."""
    kind = promoted_of(index, "device_type", rows, NO_TYPE, "instant")
    number = promoted_of(index, "device_id", rows, of="instant")
    return (kind << 32) + number  # both are small, -1 for the host


def type_and_id(key: int) -> tuple[int, int]:
    """Return the device type and id that a number of `allocator_keys` is made of; the id may be -1."""
    kind = (key + 1) >> 32
    return kind, key - (kind << 32)


def _instants_of(scope: Scope, source: int, name: str) -> I64:
    index = scope.trace.indexes[source]
    rows = _instants_named(index, name)
    return rows[scope.has_lanes(source, lanes_of(index, rows, RowKind.INSTANTS))]


def _earlier(index: Index, rows: I64, count: int) -> Allocations:
    sizes, addresses = (promoted_of(index, key, rows, of="instant") for key in ("bytes", "addr"))
    begins = np.full(len(rows), NO_RECORD, np.int64)
    return Allocations(addresses, sizes, begins, np.full(len(rows), count, np.int64), rows)


def _records(index: Index, rows: I64, times: I64) -> Records:
    changes, addresses = (promoted_of(index, key, rows, of="instant") for key in ("bytes", "addr"))
    return Records(times, changes, addresses, rows, np.full(len(rows), NO_RECORD, np.int64))


def _by_size(scope: Scope, source: int, device: Device) -> Records:
    """Return the slices that are allocations on the lanes of an AIU's device, which have sizes alone."""
    index = scope.trace.indexes[source]
    positions = np.flatnonzero(np.isin(index.column("slices.name"), allocations_of(index)))
    lanes = lanes_of(index, positions)
    own = scope.has_lanes(source, lanes) & (index.lanes["process"][lanes] == device.process)
    positions, lanes = positions[own], lanes[own]
    times = index.column("slices.start")[positions].astype(np.int64) + scope.lane_offsets(source)[lanes]
    order = np.argsort(times, kind="stable")
    sizes = promoted_of(index, "bytes", positions[order])
    none = np.full(len(positions), NO_RECORD, np.int64)
    return Records(times[order], sizes, np.zeros(len(positions), np.int64), none, positions[order])


def _totals(index: Index, rows: I64) -> tuple[I64, str, I64 | None]:
    """Return (totals, how they are known, reserved) of some records."""
    keys = ("total_allocated", "total_reserved")
    total, reserved = (promoted_of(index, key, rows, NO_TOTAL, "instant") for key in keys)
    has_total_reserved = bool((reserved != NO_TOTAL).all() and reserved.any())
    own = reserved if has_total_reserved else None
    if (total != NO_TOTAL).all() and not (total < 0).any():
        return total, RECORDED, own
    return *_summed(_records(index, rows, rows)), own


def _summed(records: Records, known_by: str = "") -> tuple[I64, str]:
    """Return the sums of changes, from the least level before them, and how they are known."""
    nothing = np.empty(0, np.int64)
    allocations = allocations_by_address(records, Allocations(*[nothing] * 5))
    before = sum_of(allocations.bytes[allocations.begins == NO_RECORD])
    lowest = int(running_sums(records.changes).min(initial=0))
    before = min(max(before, -lowest), np.iinfo(np.int64).max)
    sums = running_sums(np.concatenate([np.array([before], np.int64), records.changes]))
    return sums[1:], known_by or (FROM_LEAST if before else SUMMED)


def unnamed(scope: Scope) -> int:
    """Return how many records name no device that the index knows: they belong to no allocator."""
    count = 0
    for source in scope.sources:
        index = scope.trace.indexes[source]
        rows = memory_records(index)
        types = promoted_of(index, "device_type", rows, NO_TYPE, "instant")
        count += int(np.count_nonzero(types == NO_TYPE))
    return count


def allocators_device(there: list[Device], pair: tuple[int, int]) -> Device | None:
    """Return the device of a type and id, None for the host's; where none has the number the only one, as
    under a mask of visible devices numbers differ.
    """
    kind, number = pair
    if kind in HOST_TYPES:
        return None
    named = [device for device in there if device.number == number]
    return named[0] if named else there[0] if len(there) == 1 else None


def allocator_title(pair: tuple[int, int], device: Device | None, both: bool) -> str:
    """Return what an allocator of a device type and id is called; `both`: another one has the same device."""
    kind, number = pair
    if kind in HOST_TYPES:
        return TYPE_NAMES[kind]
    if device is not None and device.number == number:
        name = device.label
    else:
        name = f"{TYPE_NAMES.get(kind, f'device type {kind}')} {number}"
    return f"{name} {OWNERS[kind]}" if both and kind in OWNERS else name
