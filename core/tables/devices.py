"""Which lanes are an accelerator's, what it is called, and what its slices are by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import AnyArray
from ..base.kineto import RUNTIME, vendor_of
from ..index.format import RowKind
from ..index.store import Index
from ..query.lookup import lanes_of
from ..query.titles import plain
from .flex import flex_work, is_flex
from .kinds import COPY_CATEGORIES, KERNEL_TYPES, KernelKind, kind_table

if TYPE_CHECKING:
    from ..trace import Trace

KERNEL_CATEGORIES = frozenset(
    {
        "kernel",
        "Kernel",
        "hpu_op",
        "mtia_ccp_events",
        "collective_comm",
    }
)
WORK = KERNEL_CATEGORIES | COPY_CATEGORIES
"""Categories of what a device does; annotations and waits on its lanes are no work."""

LABEL = re.compile(r"^\s*(GPU|AIU|SPYRE|CUDA|XPU|MTIA|HPU|NPU|TPU|MPS)\b[ :#]*(\d+)?", re.IGNORECASE)
ALLOCATION_NAMES = ("Memset (Device)", "Memory (Allocation)")
"""What AIU profilers call an allocation of the device's memory."""
KNOWN_VENDORS = {"cuda": "CUDA", "xpu": "XPU", "mtia": "MTIA", "privateuse1": "PRIVATEUSEONE"}
"""How categories begin -> what torch calls the devices; also those of ROCm begin with "cuda"."""


@dataclass(frozen=True)
class Device:
    """One accelerator of one source; `lanes` are places in Trace.lanes that hold slices."""

    source: int
    process: int  # number in the source's process table
    pid: str
    label: str  # "AIU 0", "GPU 3"
    word: str  # as PyTorch's columns call it: "AIU", "CUDA", "XPU"
    number: int | None
    lanes: tuple[int, ...]


def devices(trace: Trace) -> tuple[Device, ...]:
    """Return the accelerators in display order: processes labelled as one or holding device work."""
    result = []
    flex_lanes: dict[int, set[int]] = {}
    for process in trace.processes:
        lanes = [trace.lanes[at] for at in process.lanes]
        lanes = [lane for lane in lanes if lane.slices + lane.unclosed]
        index = trace.indexes[process.source]
        labelled = LABEL.match(process.labels) or _vendor_label(index, process.labels)
        flex = labelled is None and is_flex(index)
        if flex:
            own = flex_lanes.setdefault(process.source, _flex_lanes(index))
            lanes = [lane for lane in lanes if lane.number in own]
        elif labelled is None:
            # A process of the host may hold streams too: only those lanes are the device's then.
            lanes = [lane for lane in lanes if lane_categories(index, lane.rows) & WORK]
        if lanes:
            label = process.labels.strip() if labelled else f"AIU {plain(process.pid)}" if flex else "device"
            number = (
                int(labelled[2]) if labelled and labelled[2] else flex_rank(process.pid) if flex else None
            )
            rows = tuple(lane.index for lane in lanes)
            word = _word(index, "AIU" if flex else labelled[1].upper() if labelled else "")
            result.append(Device(process.source, process.number, process.pid, label, word, number, rows))
    return tuple(result)


def _vendor_label(index: Index, labels: str) -> re.Match[str] | None:
    """Return a label such as "MUSA 1", in a file whose runtime is that vendor's, as LABEL matches others."""
    words = "|".join(re.escape(word) for word in _vendors(index))
    return re.match(rf"^\s*({words})\b[ :#]*(\d+)?", labels, re.IGNORECASE) if words and labels else None


def _flex_lanes(index: Index) -> set[int]:
    """Return the numbers of the lanes in which a FLEX job trace holds device work."""
    positions = np.flatnonzero(np.isin(index.column("slices.name"), flex_work(index)))
    return set(np.unique(lanes_of(index, positions)).tolist())


def flex_rank(pid: str) -> int | None:
    """Return the rank that a pid of a FLEX job trace is, None where it is no small number."""
    text = plain(pid)
    return int(text) if text.isdigit() and len(text) < 7 else None


def ranks_of_processes(trace: Trace) -> dict[int, int]:
    """Return the rank of each process, by its number, where one FLEX job trace holds several ranks; empty
    otherwise.
    """
    if len(trace.indexes) != 1 or not is_flex(trace.indexes[0]):
        return {}
    ranks = {device.process: flex_rank(device.pid) for device in devices(trace)}
    known = {process: rank for process, rank in ranks.items() if rank is not None}
    return known if len(known) > 1 and len(set(known.values())) == len(ranks) else {}


def device_keys(trace: Trace) -> dict[str, Device]:
    """Return the devices by key: the pid as people write it, with the source's number where pids repeat."""
    all_devices = devices(trace)
    pids = [plain(device.pid) for device in all_devices]
    return {
        pid if pids.count(pid) == 1 else f"{device.source}:{pid}": device
        for pid, device in zip(pids, all_devices)
    }


def device_title(trace: Trace, device: Device) -> str:
    """Return what sentences call a device, where several files have some with its rank or file."""
    title = device.label if device.label != "device" else f"device {plain(device.pid)}"
    if all(other.source == device.source for other in devices(trace)):
        return title
    rank = trace.rank(device.source)
    return f"{title} of {Path(trace.sources[device.source].path).name if rank is None else f'rank {rank}'}"


def device_word(trace: Trace) -> str:
    """Return what the accelerators of a trace are called in columns; "Device" where nothing tells."""
    return next((device.word for device in devices(trace)), "Device")


def _word(index: Index, word: str) -> str:
    if word not in ("", "GPU"):
        return word
    # A process labelled "GPU n" says not whose; the categories do.
    return next(iter(_vendors(index)), "CUDA" if word else "Device")


def _vendors(index: Index) -> tuple[str, ...]:
    """Return what the devices are called whose runtimes a file has calls of, as its categories tell."""
    known = [
        word
        for vendor, word in KNOWN_VENDORS.items()
        if any(category.startswith(f"{vendor}_") for category in index.categories)
    ]
    others = [vendor_of(category).upper() for category in index.categories if category in RUNTIME]
    return tuple(dict.fromkeys([*known, *filter(None, others)]))


def is_aiu(index: Index) -> bool:
    """Tell whether a file was written by an AIU's profiler: by the categories of its runtime, or as FLEX."""
    return any(category.startswith("privateuse1_") for category in index.categories) or is_flex(index)


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


def kernel_types(index: Index, names: AnyArray, categories: AnyArray) -> AnyArray:
    """Return the type of each of many device slices as places in KERNEL_TYPES; one look per distinct pair."""
    return _by_kind(index, names, categories, lambda kind: KERNEL_TYPES.index(kind.type))


def kernel_kinds(index: Index, names: AnyArray, categories: AnyArray) -> AnyArray:
    """Return the kind of each of many device slices as places in the names of the table of kinds."""
    codes = {name: at for at, name in enumerate(kind_table().names)}
    return _by_kind(index, names, categories, lambda kind: codes[kind.name])


def _by_kind(
    index: Index, names: AnyArray, categories: AnyArray, number: Callable[[KernelKind], int]
) -> AnyArray:
    table = kind_table()
    pairs, which = np.unique(names.astype(np.int64) << 32 | categories.astype(np.int64), return_inverse=True)
    table.look_at([index.string(pair >> 32) for pair in pairs.tolist()] if table.own_rows else ())
    numbers = [
        number(table.kind_of(index.string(pair >> 32), index.categories[pair & 0xFFFF_FFFF]))
        for pair in pairs.tolist()
    ]
    return np.array(numbers, np.uint8)[which]
