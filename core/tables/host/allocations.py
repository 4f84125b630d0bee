"""Allocators: their [memory] records as a curve, and which allocations were live at a time.

Allocators are never summed up: a trace may record one device twice (on AIU by PyTorch's allocator and by the
runtime's), and the sum of both would mean nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...base.arrays import I64, distinct, running_sums
from ...base.kineto import ANNOTATIONS, MEMORY_RECORD, OPS
from ...index.format import RowKind
from ...index.store import Index
from ...query.lookup import lanes_of, promoted_of, slice_at
from ...trace.devices import Device, devices, rank_of
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


@dataclass(frozen=True, eq=False)
class Allocator:
    """The n records of one allocator in order of time: columns of equal length, trace time in ns, bytes.

    `total` is what is allocated after each record: as recorded, else summed up from 0.
    """

    source: int
    rank: int
    index: Index
    device_type: int
    device_id: int
    title: str
    device: Device | None  # where its lanes belong; None: the host, or a device that has no lanes
    times: I64
    changes: I64
    addresses: I64
    total: I64
    recorded: bool
    reserved: I64 | None
    instants: I64  # their numbers
    pids: tuple[str, ...]  # of the threads that it was called on

    def __len__(self) -> int:
        return len(self.times)

    @property
    def host(self) -> bool:
        return self.device_type in HOST_TYPES

    @property
    def releases_only(self) -> bool:
        """Whether only releases are recorded, so that the totals are no amounts."""
        return bool((self.changes <= 0).all())

    @cached_property
    def addressed(self) -> bool:
        return bool(self.addresses.any())

    @cached_property
    def _neighbours(self) -> tuple[I64, I64]:
        count = len(self)
        before, after = np.full(count, NO_RECORD, np.int64), np.full(count, count, np.int64)
        order = np.argsort(self.addresses, kind="stable")
        same = self.addresses[order[1:]] == self.addresses[order[:-1]]
        before[order[1:][same]] = order[:-1][same]
        after[order[:-1][same]] = order[1:][same]
        return before, after

    def ends(self) -> I64:
        """Return for each allocation the record that released it or reused its address; n for none."""
        return self._neighbours[1]

    def live(self, at: int) -> I64:
        """Return the records of the memory that was live after record `at`: allocations up to it that were
        not yet released.

        Memory from before the trace is represented by its later release.
        """
        if not self.addressed:
            return np.empty(0, np.int64)
        before, after = self._neighbours
        number = np.arange(len(self))
        inside = (self.changes > 0) & (number <= at) & (after > at)
        earlier = (self.changes < 0) & (number > at) & (before == NO_RECORD)
        return np.flatnonzero(inside | earlier)

    def unreleased(self, begin: int, end: int) -> I64:
        """Return the allocations among records [begin, end) that none of these releases."""
        if not self.addressed:
            return np.empty(0, np.int64)
        records = begin + np.flatnonzero(self.changes[begin:end] > 0)
        return records[self._neighbours[1][records] >= end]

    def between(self, span: tuple[int, int] | None) -> tuple[int, int]:
        """Return the records [begin, end) of a stretch of time, all without one."""
        if span is None:
            return 0, len(self)
        begin, end = np.searchsorted(self.times, np.array(span, np.int64), "left").tolist()
        return begin, end

    def op_at(self, record: int) -> int | None:
        """Return the position of the innermost op or annotation around a record, else of any slice."""
        at = int(self.instants[record])
        rows = self.index.rows
        is_here = (rows["first"] <= at) & (at < rows["first"] + rows["count"])
        number = np.flatnonzero((rows["kind"] == RowKind.INSTANTS) & is_here)[0]
        lane = self.index.lanes[int(rows[number]["lane"])]
        time = int(self.index.column("instants.start")[at])
        innermost = None
        for row in reversed(range(int(lane["first_row"]), int(lane["first_row"]) + int(lane["rows"]))):
            if int(rows[row]["kind"]) != RowKind.SLICES:
                continue
            op_row = slice_at(self.index, row, time)
            if op_row is not None:
                position = int(rows[row]["first"]) + op_row
                category = self.index.categories[int(self.index.column("slices.category")[position])]
                if category in OPS | ANNOTATIONS:
                    return position
                innermost = position if innermost is None else innermost
        return innermost


def memory_records(index: Index) -> I64:
    """Return the instants that are records of an allocator."""
    numbers = np.array(index.string_numbers(MEMORY_RECORD), np.uint32)
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
    kind = promoted_of(index, "device_type", rows, NO_TYPE, "instant")
    number = promoted_of(index, "device_id", rows, of="instant")
    there = [device for device in devices(scope.trace) if device.source == source]
    # Types and ids are small numbers, -1 for the host: one key holds both.
    keys = (kind << 32) + number
    pairs = [((key + 1) >> 32, key - ((key + 1) >> 32 << 32)) for key in distinct(keys).tolist()]
    kinds = {pair: {k for k, n in pairs if n == pair[1]} for pair in pairs}
    result = []
    for pair in pairs:
        if pair[0] == NO_TYPE:
            continue
        mask = keys == (pair[0] << 32) + pair[1]
        device = None if pair[0] in HOST_TYPES else _device(there, pair[1])
        title = _title(pair, device, set(OWNERS) <= kinds[pair])
        used = tuple(pids[at] for at in distinct(process[mask]).tolist())
        changes, addresses, total, recorded, reserved = _totals(index, rows[mask])
        of = (source, rank_of(index, source), index, *pair)
        known = (changes, addresses, total)
        result.append(
            Allocator(*of, title, device, times[mask], *known, recorded, reserved, rows[mask], used)
        )
    return result


def _totals(index: Index, rows: I64) -> tuple[I64, I64, I64, bool, I64 | None]:
    """Return (changes, addresses, totals, whether these are recorded, reserved) of some records."""
    changes, addresses = (promoted_of(index, key, rows, of="instant") for key in ("bytes", "addr"))
    totals = ("total_allocated", "total_reserved")
    total, reserved = (promoted_of(index, key, rows, NO_TOTAL, "instant") for key in totals)
    recorded = bool((total != NO_TOTAL).all())
    has_total_reserved = bool((reserved != NO_TOTAL).all() and reserved.any())
    total = total if recorded else running_sums(changes)
    return changes, addresses, total, recorded, reserved if has_total_reserved else None


def unnamed(scope: Scope) -> int:
    """Return how many records name no device that the index knows: they belong to no allocator."""
    count = 0
    for source in scope.sources:
        index = scope.trace.indexes[source]
        rows = memory_records(index)
        types = promoted_of(index, "device_type", rows, NO_TYPE, "instant")
        count += int(np.count_nonzero(types == NO_TYPE))
    return count


def _device(there: list[Device], number: int) -> Device | None:
    """Return the device of a number, else the only one: under a mask of visible devices numbers differ."""
    named = [device for device in there if device.number == number]
    return named[0] if named else there[0] if len(there) == 1 else None


def _title(pair: tuple[int, int], device: Device | None, both: bool) -> str:
    kind, number = pair
    if kind in HOST_TYPES:
        return TYPE_NAMES[kind]
    if device is not None and device.number == number:
        name = device.label
    else:
        name = f"{TYPE_NAMES.get(kind, f'device type {kind}')} {number}"
    return f"{name} {OWNERS[kind]}" if both and kind in OWNERS else name
