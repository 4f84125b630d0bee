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
5. shape, in files without any category but those of ranges: a lane nine tenths of whose slices are called as
   Python's frames are the host's, whatever label its process has. Where no process has a label either, one is
   a device's if as many of its slices say their device and stream, or are called as compilers call kernels
   (`void f<…>(…)`) or as profilers call copies (`[MEMCPY] HtoD`), and none lies in another;
6. a device's lane that repeats its other lanes is derived (core/index/repeats.py).

Where the file's producer is known, what its row says of a lane comes before 2 to 6 (core/index/producers.py),
but for ranges that a program marked: no row makes them work.

Everything else is the host's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from ..base.arrays import U8, AnyArray, Bools, concatenated_ranges, distinct
from ..base.kineto import ANNOTATIONS, GROUPS, RANGES, RUNTIME, Categories, vendor_of
from ..base.late_pattern import late_pattern
from ..base.vendors import DEVICE_WORDS, WORDS_OF_PREFIXES, any_of
from .flex import flex_work, is_flex
from .format import LaneKind, LaneRole, RowKind
from .producers import XLA_DEVICE, lane_signs, producer_of
from .repeats import repeating_lanes
from .store import Index

DEVICE = GROUPS["device"]
PROFILER = frozenset({"overhead", "Trace"})
HOST: Categories = RUNTIME | GROUPS["op"] | GROUPS["python"] | PROFILER | ANNOTATIONS
"""Categories of what only the host does, beside what the profiler does."""
PROFILERS_OWN = frozenset({'"Spans"', '"Traces"'})
"""Pids, as JSON texts, under which Kineto files notes about itself."""
LABEL = late_pattern(rf"^\s*({DEVICE_WORDS})\b[ :#]*(\d+)?", re.IGNORECASE)
NAME = late_pattern(rf"^\s*(?:{XLA_DEVICE})?({DEVICE_WORDS})[ :#_-]?(\d+)\s*$", re.IGNORECASE)
SHAPE = late_pattern(
    any_of("kernels") + r"|\[(MEMCPY|MEMSET)\]|^Mem(cpy|set) ?\(?(HtoD|DtoH|DtoD|PtoP|Device)", re.IGNORECASE
)
"""What compilers and profilers call device work, whoever wrote the file."""
FRAME = late_pattern(r"\.pyx?\(\d+\): |^<built-in |^nn\.Module: ")
"""What profilers call Python's frames."""
LOOKED_AT, SHAPED = 256, 0.9
"""The names of so many slices of a lane are looked at, and this share of them must be of a shape."""


def lane_roles(index: Index) -> U8:
    """Return the LaneRole of each lane of an index, by the rules at the top of this file."""
    lanes = index.lanes
    texts = [tuple(map(index.string, ids[:3])) for ids in index.processes.tolist()]  # pid, name, labels
    roles = np.full(len(lanes), LaneRole.HOST, np.uint8)
    if is_flex(index):
        roles[_lanes_of(index, np.isin(index.column("slices.name"), flex_work(index)))] = LaneRole.DEVICE
    else:
        labels = _labels(index, texts)
        labelled = [bool(label) for label in labels]
        in_labelled = np.array(labelled, np.bool_)[lanes["process"]]
        beyond_host = _lanes_holding(index, lambda category: category not in HOST)
        beyond_profiler = _lanes_holding(index, lambda category: category not in PROFILER)
        roles[(lanes["slices"] > 0) & ~beyond_profiler] = LaneRole.PROFILER
        roles[_lanes_holding(index, DEVICE.__contains__) | (beyond_host & in_labelled)] = LaneRole.DEVICE
        ranges = [index.string(int(name)).lower().startswith(RANGES) for name in lanes["name"]]
        marked = _lanes_holding(index, ANNOTATIONS.__contains__) & ~beyond_host
        is_range = (np.array(ranges, np.bool_) | marked) & (lanes["slices"] > 0)
        roles[is_range & in_labelled] = LaneRole.DERIVED
        producer = producer_of(index)
        signs = {} if producer is None else lane_signs(index, producer)
        for number, sign in signs.items():
            derived = is_range[number] and sign.role is LaneRole.DEVICE
            roles[number] = LaneRole.DERIVED if derived else sign.role
        named = [category for category in index.categories if category]
        if not signs and all(category.lower().startswith(RANGES) for category in named):
            _by_shape(index, roles, (lanes["slices"] > 0) & ~is_range, any(labelled))
        own_label = [label if any(map(str.isdigit, label)) else "" for label in labels]
        repeats = repeating_lanes(index, roles, [own_label[process] for process in lanes["process"].tolist()])
        repeats[list(signs)] = False
        roles[repeats] = LaneRole.DERIVED
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


def _labels(index: Index, texts: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the device that each process is by its labels or name, "" for others."""
    matches = [device_label(index.categories, labels) or NAME.match(name) for _, name, labels in texts]
    return ["" if match is None else match[0].strip() for match in matches]


def _by_shape(index: Index, roles: U8, unranged: Bools, is_labelled: bool) -> None:
    """Correct the roles of some lanes of a file without categories by what their slices look like."""
    streamed = None if is_labelled else _says_stream(index)
    for lane in np.flatnonzero(unranged).tolist():
        first, count = int(index.lanes["first_row"][lane]), int(index.lanes["rows"][lane])
        rows = index.rows[first : first + count]
        rows = rows[(rows["kind"] == RowKind.SLICES) & (rows["count"] > 0)]
        begins, ends = rows["first"].astype(np.int64), rows["first"] + rows["count"].astype(np.int64)
        if roles[lane] == LaneRole.DEVICE and _are_called(index, begins[:1], ends[:1], FRAME):
            roles[lane] = LaneRole.HOST
        elif streamed is not None:
            said = np.searchsorted(streamed, ends) - np.searchsorted(streamed, begins)
            # Calls of a host's functions in C++ are named like kernels, but lie in one another.
            if said.sum() >= SHAPED * rows["count"].sum() or (
                len(rows) == 1 and _are_called(index, begins, ends, SHAPE)
            ):
                roles[lane] = LaneRole.DEVICE


def _says_stream(index: Index) -> AnyArray:
    """Return the positions of the slices whose arguments name a device and a stream, ascending."""
    positions = index.column("promoted.stream.position")
    return positions[np.isin(positions, index.column("promoted.device.position"))]


def _are_called(index: Index, begins: AnyArray, ends: AnyArray, pattern: re.Pattern[str]) -> bool:
    """Tell whether most slices of the first of some rows have a name that fits, by LOOKED_AT of them."""
    if not len(begins):
        return False
    at = distinct(np.linspace(int(begins[0]), int(ends[0]) - 1, LOOKED_AT).astype(np.int64))
    texts = index.strings(index.column("slices.name")[at])
    return sum(bool(pattern.search(text)) for text in texts) >= SHAPED * len(texts)


def _lanes_of(index: Index, chosen: AnyArray) -> AnyArray:
    """Return which lanes hold one of the slices that a mask over all positions chooses."""
    rows = index.rows[index.rows["kind"] == RowKind.SLICES]
    rows = rows[np.argsort(rows["first"], kind="stable")]
    at = np.searchsorted(rows["first"], np.flatnonzero(chosen), "right") - 1
    holding = np.zeros(len(index.lanes), np.bool_)
    holding[rows["lane"][at]] = True
    return holding


def device_label(categories: Sequence[str], labels: str) -> re.Match[str] | None:
    """Return the device that a process's labels name, as (kind, number): "AIU 0", or "MUSA 1" in a file whose
    runtime is that vendor's, by its categories.
    """
    if not labels:
        return None
    if match := LABEL.match(labels):
        return match
    words = "|".join(re.escape(word) for word in vendors(tuple(categories)))
    return re.match(rf"^\s*({words})\b[ :#]*(\d+)?", labels, re.IGNORECASE) if words else None


@lru_cache(maxsize=64)
def vendors(categories: tuple[str, ...]) -> tuple[str, ...]:
    """Return what the devices are called whose runtimes a file has calls of, as its categories tell."""
    known = [
        word
        for vendor, word in WORDS_OF_PREFIXES.items()
        if any(category.startswith(f"{vendor}_") for category in categories)
    ]
    others = [vendor_of(category).upper() for category in categories if category in RUNTIME]
    return tuple(dict.fromkeys([*known, *filter(None, others)]))
