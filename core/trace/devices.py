"""Which lanes are an accelerator's, what it is called, and what its slices are by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..base.arrays import AnyArray
from ..base.cached_per_object import cached_per_object
from ..base.late_pattern import late_pattern
from ..base.numbers import whole_number
from ..base.vendors import DEVICE_WORDS, VENDORS, vendor_of_device
from ..index.flex import is_flex
from ..index.format import LaneRole, RowKind
from ..index.producers import producer_of
from ..index.roles import NAME, device_label, vendors
from ..index.store import Index
from ..query.views import Process, plain
from .lanes import TraceLanes

XLA = late_pattern(r"^\s*/device:(\w+):")
PATH = late_pattern(rf"/(?:device:)?({DEVICE_WORDS}):(\d+)/", re.IGNORECASE)
"""A device in a path, as TensorFlow calls its streams: "/device:GPU:0/stream:all Compute"."""
ALLOCATION_NAMES = ("Memset (Device)", "Memory (Allocation)")
"""What AIU profilers call an allocation of the device's memory."""


class Device(NamedTuple):
    """One accelerator of one source; `lanes` are places in Trace.lanes that hold slices."""

    source: int
    process: int  # number in the source's process table
    pid: str
    label: str  # "AIU 0", "GPU 3"
    word: str  # as PyTorch's columns call it: "AIU", "CUDA", "XPU"
    number: int | None
    lanes: tuple[int, ...]


@cached_per_object()
def devices(trace: TraceLanes) -> tuple[Device, ...]:
    """Return the accelerators in display order: processes with lanes of a device in which something ran."""
    result = []
    for process in trace.processes:
        index = trace.indexes[process.source]
        first = int(index.processes[process.number]["first_lane"])
        table = index.lanes[first : first + len(process.lanes)]
        ran = (table["role"] == LaneRole.DEVICE) & (table["slices"] + table["unclosed"] > 0)
        lanes = tuple((process.lanes.start + np.flatnonzero(ran)).tolist())
        if lanes:
            result.append((process, lanes))
    return tuple(_joined(trace, result))


def _joined(trace: TraceLanes, processes: Sequence[tuple[Process, tuple[int, ...]]]) -> Iterator[Device]:
    """Yield the devices, lanes that a producer writes in a process of their own with those of their device
    where their file has just one: collectives of CANN, copies of rocprof.
    """
    for source, group in groupby(processes, lambda one: one[0].source):
        index, members = trace.indexes[source], list(group)
        producer = producer_of(index) if len(members) > 1 else None
        joins = [producer is not None and bool(re.search(producer.joined, one.name)) for one, _ in members]
        owners = [member for member, join in zip(members, joins) if not join]
        if len(owners) == 1 and any(joins):
            members = [(owners[0][0], tuple(sorted(lane for _, lanes in members for lane in lanes)))]
        for process, lanes in members:
            yield _device(index, process, lanes)


def _device(index: Index, process: Process, lanes: tuple[int, ...]) -> Device:
    labelled = device_label(index.categories, process.labels)
    named = NAME.match(process.name) if labelled is None else None
    label, word, number = "device", "", None
    if match := labelled or named:
        label = (process.labels if labelled else XLA.sub(r"\1 ", process.name)).strip()
        word, number = match[1].upper(), whole_number(match[2]) if match[2] else None
    elif match := PATH.search(process.name):
        word, number = match[1].upper(), whole_number(match[2])
        label = f"{word} {number}"
    elif is_flex(index):
        label, word, number = f"AIU {plain(process.pid)}", "AIU", flex_rank(process.pid)
    elif not process.name and any(map(str.isalpha, plain(process.pid))):
        label = plain(process.pid)  # its id is its name
    return Device(process.source, process.number, process.pid, label, _word(index, word), number, lanes)


def flex_rank(pid: str) -> int | None:
    """Return the rank that a pid of a FLEX job trace is, None where it is no small number."""
    text = plain(pid)
    return whole_number(text) if text.isdigit() and len(text) < 7 else None


def rank_of(index: Index, source: int) -> int:
    """Return the rank that a file names, else the number of the source."""
    rank = index.distributed.get("rank")
    return rank if isinstance(rank, int) and not isinstance(rank, bool) else source


def ranks_of_processes(trace: TraceLanes) -> dict[int, int]:
    """Return the rank of each process, by its number, where one FLEX job trace holds several ranks; empty
    otherwise.
    """
    if len(trace.indexes) != 1 or not is_flex(trace.indexes[0]):
        return {}
    ranks = {device.process: flex_rank(device.pid) for device in devices(trace)}
    known = {process: rank for process, rank in ranks.items() if rank is not None}
    return known if len(known) > 1 and len(set(known.values())) == len(ranks) else {}


def device_keys(trace: TraceLanes) -> dict[str, Device]:
    """Return the devices by key: the pid as people write it, with the source's number where pids repeat, and
    as the file writes it where one file has 1 and "1".
    """
    keys: dict[str, Device] = {}
    all_devices = devices(trace)
    pids = [plain(device.pid) for device in all_devices]
    for pid, device in zip(pids, all_devices):
        key = pid if pids.count(pid) == 1 else f"{device.source}:{pid}"
        keys[key if key not in keys else f"{device.source}:{device.pid}"] = device
    return keys


def device_title(trace: TraceLanes, device: Device) -> str:
    """Return what sentences call a device, where several files have some with its rank or file."""
    title = device.label if device.label != "device" else f"device {plain(device.pid)}"
    if all(other.source == device.source for other in devices(trace)):
        return title
    rank = trace.rank(device.source)
    return f"{title} of {Path(trace.sources[device.source].path).name if rank is None else f'rank {rank}'}"


def device_word(trace: TraceLanes) -> str:
    """Return what the accelerators of a trace are called in columns; "Device" where nothing tells."""
    return next((device.word for device in devices(trace)), "Device")


def _word(index: Index, word: str) -> str:
    if word not in ("", "GPU"):
        return word
    # A process labelled "GPU n" says not whose; the categories do.
    return next(iter(vendors(tuple(index.categories))), "CUDA" if word else "Device")


def is_aiu(index: Index) -> bool:
    """Tell whether a file is of an AIU: by the categories of its runtime, what its processes are labelled, or
    as one of FLEX.
    """
    prefixes = tuple(f"{vendor.prefix}_" for vendor in VENDORS if vendor.allocates_by_memset)
    if any(category.startswith(prefixes) for category in index.categories) or is_flex(index):
        return True
    labels = (
        device_label(index.categories, index.string(number)) for number in index.processes["labels"].tolist()
    )
    return any(label is not None and allocates_by_memset(label[1]) for label in labels)


def allocates_by_memset(word: str) -> bool:
    """Tell whether of devices that are called so an allocation stands as a memset on their lanes."""
    vendor = vendor_of_device(word)
    return vendor is not None and vendor.allocates_by_memset


def allocations_of(index: Index) -> AnyArray:
    """Return the string numbers of names that an AIU's profiler gives to allocations on its device's lanes:
    `Memset (Device)` sets nothing there. Empty for files of other devices.
    """
    if not is_aiu(index):
        return np.empty(0, np.uint32)
    numbers = [number for text in ALLOCATION_NAMES for number in index.string_numbers(text)]
    return np.array(numbers, np.uint32)


def lane_categories(index: Index, rows: range) -> set[str]:
    """Return the categories of the slices in these rows."""
    kinds = index.column("row_categories")
    numbers: set[int] = set()
    for number in rows:
        entry = index.rows[number]
        if int(entry["kind"]) == RowKind.SLICES:
            first = int(entry["categories"])
            numbers.update(kinds[first : first + int(entry["category_count"])].tolist())
    return {index.categories[number] for number in numbers}
