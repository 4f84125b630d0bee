"""What each lane of an index is: a device's, the host's, telemetry or the profiler's own.

Decided once, when the index is built; everything above asks `Lane.role`. A lane has its role by the first of
these rules that tells:

1. a counter is telemetry; processes that Kineto names "Spans" and "Traces" are the profiler's own;
2. FLEX job traces have neither categories nor labels: a lane that holds device work by name is a device's;
3. the categories of its slices: one of a device's (kernel, copy, device annotation, wait) makes the lane a
   device's; if all are the host's (operators, runtime calls, Python frames) it is the host's, though its
   process may have a device's label, where profilers put thread 0; if all are overhead the profiler's;
4. the process: slices without a category that tells are a device's where the process has a device's label
   ("AIU 0"), or only a device and its number as its name ("GPU2");
   Ranges that a program marked (NVTX, ROCTX) and that a tool projects to a device are derived;
5. the shape of names, in files without any category or label: a lane nine tenths of whose slices are called
   as compilers call kernels (`void f<…>(…)`) or as profilers call copies (`[MEMCPY] HtoD`), and none of which
   lies in another, is a device's.

Where the file's producer is known, what its row says of a lane comes before 2 to 5 (core/index/producers.py).

Everything else is the host's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from ..base.arrays import U8, AnyArray, concatenated_ranges, distinct
from ..base.kineto import ANNOTATIONS, GROUPS, RANGES, RUNTIME, Categories, vendor_of
from .flex import flex_work, is_flex
from .format import LaneKind, LaneRole, RowKind
from .producers import lane_signs, producer_of
from .store import Index

DEVICE = GROUPS["device"]
PROFILER = frozenset({"overhead", "Trace"})
HOST: Categories = RUNTIME | GROUPS["op"] | GROUPS["python"] | PROFILER | ANNOTATIONS
"""Categories of what only the host does, beside what the profiler does."""
PROFILERS_OWN = frozenset({'"Spans"', '"Traces"'})
"""Pids, as JSON texts, under which Kineto files notes about itself."""
KINDS = "GPU|AIU|SPYRE|CUDA|XPU|MTIA|HPU|NPU|TPU|MPS"
LABEL = re.compile(rf"^\s*({KINDS})\b[ :#]*(\d+)?", re.IGNORECASE)
NAME = re.compile(rf"^\s*(?:/device:(?=GPU|TPU))?({KINDS})[ :#_-]?(\d+)\s*$", re.IGNORECASE)
SHAPE = re.compile(
    r"^(void |_Z)\w|^(ampere|sm\d\d|turing|volta|maxwell|hopper|nvjet|cutlass|triton)_\w|^Cijk_"
    r"|^[nr]ccl\w*Kernel|<.*>\(.*\)|\[(MEMCPY|MEMSET)\]|^Mem(cpy|set) ?\(?(HtoD|DtoH|DtoD|PtoP|Device)",
    re.IGNORECASE,
)
"""What compilers and profilers call device work, whoever wrote the file."""
LOOKED_AT, SHAPED = 256, 0.9
"""So many slices of a lane are looked at, and this share of them must have such a name."""
KNOWN_VENDORS = {"cuda": "CUDA", "xpu": "XPU", "mtia": "MTIA", "privateuse1": "PRIVATEUSEONE"}
"""How categories begin -> what torch calls the devices; also those of ROCm begin with "cuda"."""


def lane_roles(index: Index) -> U8:
    """Return the LaneRole of each lane of an index, by the rules at the top of this file."""
    lanes = index.lanes
    texts = [tuple(map(index.string, ids[:3])) for ids in index.processes.tolist()]  # pid, name, labels
    roles = np.full(len(lanes), LaneRole.HOST, np.uint8)
    if is_flex(index):
        roles[_lanes_of(index, np.isin(index.column("slices.name"), flex_work(index)))] = LaneRole.DEVICE
    else:
        labelled = [bool(device_label(index, labels) or NAME.match(name)) for _, name, labels in texts]
        in_labelled = np.array(labelled, np.bool_)[lanes["process"]]
        beyond_host = _lanes_holding(index, lambda category: category not in HOST)
        beyond_profiler = _lanes_holding(index, lambda category: category not in PROFILER)
        roles[(lanes["slices"] > 0) & ~beyond_profiler] = LaneRole.PROFILER
        roles[_lanes_holding(index, DEVICE.__contains__) | (beyond_host & in_labelled)] = LaneRole.DEVICE
        ranges = [index.string(int(name)).lower().startswith(RANGES) for name in lanes["name"]]
        marked = _lanes_holding(index, ANNOTATIONS.__contains__) & ~beyond_host
        roles[(np.array(ranges, np.bool_) | marked) & in_labelled & (lanes["slices"] > 0)] = LaneRole.DERIVED
        producer = producer_of(index)
        if producer is not None:
            for number, sign in lane_signs(index, producer).items():
                roles[number] = sign.role
        elif not any(index.categories) and not any(labelled):
            roles[[lane for lane in range(len(lanes)) if _is_shaped(index, lane)]] = LaneRole.DEVICE
    is_own = np.array([pid in PROFILERS_OWN and not name for pid, name, _ in texts], np.bool_)
    roles[is_own[lanes["process"]]] = LaneRole.PROFILER
    roles[lanes["kind"] == LaneKind.COUNTER] = LaneRole.TELEMETRY
    return roles


def _lanes_holding(index: Index, is_one: Callable[[str], bool]) -> AnyArray:
    """Return which lanes hold a slice of a category for which this is true, from what the rows list."""
    mask = np.array([is_one(category) for category in index.categories], np.bool_)
    rows = index.rows[index.rows["kind"] == RowKind.SLICES]
    counts = rows["category_count"].astype(np.int64)
    listed = index.column("row_categories")[concatenated_ranges(rows["categories"].astype(np.int64), counts)]
    holding = np.zeros(len(index.lanes), np.bool_)
    holding[np.repeat(rows["lane"], counts)[mask[listed]]] = True
    return holding


def _is_shaped(index: Index, lane: int) -> bool:
    """Tell whether a lane's slices are named as device work is, and none lies in another: calls of a host's
    functions in C++ have such names too.
    """
    first, count = int(index.lanes["first_row"][lane]), int(index.lanes["rows"][lane])
    rows = index.rows[first : first + count]
    rows = rows[(rows["kind"] == RowKind.SLICES) & (rows["count"] > 0)]
    if len(rows) != 1:
        return False
    names = index.column("slices.name")
    begin, end = int(rows["first"][0]), int(rows["first"][0]) + int(rows["count"][0])
    chosen = names[distinct(np.linspace(begin, end - 1, LOOKED_AT).astype(np.int64))]
    return sum(bool(SHAPE.search(text)) for text in index.strings(chosen)) >= SHAPED * len(chosen)


def _lanes_of(index: Index, chosen: AnyArray) -> AnyArray:
    """Return which lanes hold one of the slices that a mask over all positions chooses."""
    rows = index.rows[index.rows["kind"] == RowKind.SLICES]
    rows = rows[np.argsort(rows["first"], kind="stable")]
    at = np.searchsorted(rows["first"], np.flatnonzero(chosen), "right") - 1
    holding = np.zeros(len(index.lanes), np.bool_)
    holding[rows["lane"][at]] = True
    return holding


def device_label(index: Index, labels: str) -> re.Match[str] | None:
    """Return the device that a process's labels name, as (kind, number): "AIU 0", or "MUSA 1" in a file whose
    runtime is that vendor's.
    """
    if not labels:
        return None
    if match := LABEL.match(labels):
        return match
    words = "|".join(re.escape(word) for word in vendors(tuple(index.categories)))
    return re.match(rf"^\s*({words})\b[ :#]*(\d+)?", labels, re.IGNORECASE) if words else None


@lru_cache(maxsize=64)
def vendors(categories: tuple[str, ...]) -> tuple[str, ...]:
    """Return what the devices are called whose runtimes a file has calls of, as its categories tell."""
    known = [
        word
        for vendor, word in KNOWN_VENDORS.items()
        if any(category.startswith(f"{vendor}_") for category in categories)
    ]
    others = [vendor_of(category).upper() for category in categories if category in RUNTIME]
    return tuple(dict.fromkeys([*known, *filter(None, others)]))
