"""The allocators of a scope, from each form of record: `[memory]` of PyTorch's profiler and of snapshots, the
events of XLA's and TensorFlow's allocators, the allocations of an AIU, which have sizes alone.

XLA's and TensorFlow's `BFCAllocator::AddTraceMe` (and their allocator of the host) record each allocation and
release with its chunk's bytes and address, what is in use after it, and the allocator's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from ...base.arrays import I64, distinct, running_sums, sum_of
from ...base.kineto import BEFORE_RECORD, MEMORY_RECORD
from ...base.numbers import whole_number
from ...index.format import RowKind
from ...index.producers import RELEASE_EVENT, named_events
from ...index.store import Index
from ...query.lookup import lanes_of, promoted_of
from ...trace.devices import Device, allocates_by_memset, allocations_of, devices, rank_of
from ..frame.scope import Scope
from .allocations import (
    BY_SIZE,
    FROM_LEAST,
    HOST_TYPES,
    NO_RECORD,
    RECORDED,
    SUMMED,
    Allocations,
    Allocator,
    Records,
    allocations_by_address,
)

TYPE_NAMES = {
    0: "CPU", 1: "CUDA", 2: "MKLDNN", 3: "OPENGL", 4: "OPENCL", 5: "IDEEP", 6: "HIP", 7: "FPGA", 8: "MAIA",
    9: "XLA", 10: "VULKAN", 11: "METAL", 12: "XPU", 13: "MPS", 14: "META", 15: "HPU", 16: "VE", 17: "LAZY",
    18: "IPU", 19: "MTIA", 20: "PrivateUse1",
}  # fmt: skip
"""c10::DeviceType by number."""
OWNERS = {1: "runtime", 20: "PyTorch"}
"""The allocator of a record, by device type, where two types record the same device (AIU)."""
NAMED_DEVICE, NAMED_HOST = (9, NO_RECORD), (0, NO_RECORD)
"""Type and id of allocators known by name: of a device, whose number the name may have, and of the host."""
NUMBER_IN_NAME = re.compile(r"(?<![A-Za-z0-9])(\d+)(?![A-Za-z0-9])")
HOST_NAME = re.compile(r"cpu|host|pinned", re.IGNORECASE)
NO_TYPE = -(1 << 20)
NO_TOTAL = np.iinfo(np.int64).min
SAID = {"bytes": 0, "addr": 0, "total_allocated": NO_TOTAL, "total_reserved": NO_TOTAL}
"""What records of `[memory]` say: promoted arguments, and what stands for one that is missing. They are read
for all records in the order of the index: to look up those of one allocator takes ten times as long.
"""


def memory_records(index: Index) -> I64:
    """Return the instants that are records of an allocator."""
    return _instants_named(index, MEMORY_RECORD)


def _instants_named(index: Index, name: str) -> I64:
    numbers = np.array(index.string_numbers(name), np.uint32)
    return np.flatnonzero(np.isin(index.column("instants.name"), numbers))


def allocators(scope: Scope) -> tuple[Allocator, ...]:
    """Return the allocators on a scope's lanes, the host's first, over the whole trace."""
    return tuple(
        one for source in scope.sources for one in (*_of_source(scope, source), *_with_names(scope, source))
    )


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
    keys = allocator_keys(index, rows)[order]
    said = {key: promoted_of(index, key, rows, missing, "instant")[order] for key, missing in SAID.items()}
    rows, times, process = rows[order], times[order], process[order]
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
        own = {key: values[mask] for key, values in said.items()}
        records, totals = _records(own, rows[mask], times[mask]), _totals(own, rows[mask])
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


def _records(said: Mapping[str, I64], rows: I64, times: I64) -> Records:
    return Records(times, said["bytes"], said["addr"], rows, np.full(len(rows), NO_RECORD, np.int64))


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


def _totals(said: Mapping[str, I64], rows: I64) -> tuple[I64, str, I64 | None]:
    """Return (totals, how they are known, reserved) of some records."""
    total, reserved = said["total_allocated"], said["total_reserved"]
    has_total_reserved = bool((reserved != NO_TOTAL).all() and reserved.any())
    own = reserved if has_total_reserved else None
    if (total != NO_TOTAL).all() and not (total < 0).any():
        return total, RECORDED, own
    return *_summed(_records(said, rows, rows)), own


def _summed(records: Records, known_by: str = "") -> tuple[I64, str]:
    """Return the sums of changes, from the least level before them, and how they are known."""
    nothing = np.empty(0, np.int64)
    allocations = allocations_by_address(records, Allocations(*[nothing] * 5))
    before = sum_of(allocations.bytes[allocations.begins == NO_RECORD])
    lowest = int(running_sums(records.changes).min(initial=0))
    before = min(max(before, -lowest), np.iinfo(np.int64).max)
    sums = running_sums(np.concatenate([np.array([before], np.int64), records.changes]))
    return sums[1:], known_by or (FROM_LEAST if before else SUMMED)


def _with_names(scope: Scope, source: int) -> Iterator[Allocator]:
    """Yield the allocators that a file calls by name, one for each name and process, the host's first."""
    index = scope.trace.indexes[source]
    positions, _ = _named_records(index)
    if not len(positions):
        return
    lanes = lanes_of(index, positions)
    inside = scope.has_lanes(source, lanes)
    positions, lanes = positions[inside], lanes[inside]
    times = index.column("slices.start")[positions].astype(np.int64) + scope.lane_offsets(source)[lanes]
    order = np.lexsort((index.column("slices.ordinal")[positions], times))
    positions, times, process = positions[order], times[order], index.lanes["process"][lanes[order]]
    sizes, addresses, totals, names = (
        promoted_of(index, key, positions, missing)
        for key, missing in (
            ("bytes", 0),
            ("addr", 0),
            ("total_allocated", NO_TOTAL),
            ("allocator", NO_RECORD),
        )
    )
    is_release = np.isin(index.column("slices.name")[positions], index.string_numbers(RELEASE_EVENT))
    changes = np.where(is_release, -sizes, sizes)
    there = [device for device in devices(scope.trace) if device.source == source]
    owners = sorted(set(zip(names.tolist(), process.tolist())), key=lambda one: _rank_of_name(index, one))
    nothing = Allocations(*[np.empty(0, np.int64)] * 5)
    for name, owner in owners:
        own = (names == name) & (process == owner)
        text = index.string(name)
        pair = type_and_id_of_name(text)
        where = np.full(int(np.count_nonzero(own)), NO_RECORD, np.int64)
        records = Records(times[own], changes[own], addresses[own], where, positions[own])
        total, known_by = totals[own], RECORDED
        if (total < 0).any():
            total, known_by = _summed(records)
        several = len({process for number, process in owners if number == name}) > 1
        pid, called = (index.string(int(index.processes[owner][key])) for key in ("pid", "name"))
        title = f"{text} of {called or pid}" if several else text
        yield Allocator(
            source=source,
            rank=rank_of(index, source),
            index=index,
            device_type=pair[0],
            device_id=pair[1],
            title=title,
            device=allocators_device(there, pair),
            records=records,
            earlier=nothing,
            total=total,
            known_by=known_by,
            reserved=None,
            pids=(pid,),
        )


def _named_records(index: Index) -> tuple[I64, int]:
    """Return (the slices that are records of allocators with names, how many are none: they have no name, or
    no record of their allocator has a size).
    """
    events = named_events(index)
    if not len(events):
        return np.empty(0, np.int64), 0
    positions = np.flatnonzero(np.isin(index.column("slices.name"), events))
    names = promoted_of(index, "allocator", positions, NO_RECORD)
    sized = distinct(names[promoted_of(index, "bytes", positions) > 0])
    of_one = np.isin(names, sized[sized != NO_RECORD])
    return positions[of_one], int(np.count_nonzero(~of_one))


def type_and_id_of_name(name: str) -> tuple[int, int]:
    """Return the device type and id that an allocator's name tells of: "GPU_0_bfc", "gpu_host_bfc", "cpu"."""
    number = NUMBER_IN_NAME.search(name)
    if HOST_NAME.search(name) and number is None:
        return NAMED_HOST
    return NAMED_DEVICE if number is None else (NAMED_DEVICE[0], whole_number(number[1]))


def _rank_of_name(index: Index, one: tuple[int, int]) -> tuple[bool, str, int]:
    name = index.string(one[0])
    return type_and_id_of_name(name) != NAMED_HOST, name, one[1]


def unnamed(scope: Scope) -> int:
    """Return how many records name no device that the index knows, or no allocator, or no size: they belong
    to no allocator.
    """
    count = 0
    for source in scope.sources:
        index = scope.trace.indexes[source]
        rows = memory_records(index)
        types = promoted_of(index, "device_type", rows, NO_TYPE, "instant")
        count += int(np.count_nonzero(types == NO_TYPE))
        count += _named_records(index)[1]
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
