"""What was copied and set on the devices: bytes, time and bandwidth by kind."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from ..base.arrays import F64, I64, AnyArray
from ..base.safe_text import safe
from ..base.short_names import short_name
from ..index.store import Index
from .devices import ALLOCATION_NAMES, is_aiu
from .kinds import KERNEL_TYPES
from .schema import Column, TableSchema
from .scope import Scope
from .table import Table
from .work import Work, promoted_values, work_of

COPIES = TableSchema(
    "copies",
    "Copies",
    (
        Column("rank", "rank", "text"),
        Column("device", "device", "text"),
        Column("name", "kind", "text"),
        Column("memory", "memory", "text"),
        Column("count", "count", "count"),
        Column("bytes", "bytes", "bytes"),
        Column("time_ns", "time", "ns"),
        Column("bandwidth", "bandwidth", "bytes/s", statistic=True),
        Column("recorded_mean", "recorded mean", "bytes/s", statistic=True),
        Column("recorded_max", "recorded max", "bytes/s", statistic=True),
        Column("max_ns", "longest", "ns", statistic=True),
        Column("without_bytes", "without bytes", "count"),
    ),
    chief=("memory", "bytes", "time_ns", "bandwidth", "count", "rank"),
)
MEMORY_TYPE = KERNEL_TYPES.index("memory")
GB = 1e9
"""The unit of the profiler's "memory bandwidth (GB/s)", in bytes."""
WORDS = {"HOST": "H", "DEVICE": "D"}
_KIND = re.compile(r"\b([HDAP])to([HDAP])\b")
_ROCM = re.compile(r"Copy(Host|Device)To(Host|Device)", re.IGNORECASE)
_MEMORY = re.compile(r"\(([^()>]*)->([^()]*)\)")


ALLOCATION = "Allocation"


def kind_of(name: str, aiu: bool = False) -> tuple[str, str]:
    """Return (kind, from which memory to which) of a copy by its name: ("HtoD", "Pageable → Device").

    On an AIU a Memset (Device) is no copy: it is where memory was allocated.
    """
    if aiu and name in ALLOCATION_NAMES:
        return ALLOCATION, ""
    way = _MEMORY.search(name)
    memory = f"{way[1].strip()} → {way[2].strip()}" if way else ""
    if match := _KIND.search(name):
        return match[0], memory
    if rocm := _ROCM.search(name):
        return "to".join(WORDS[side.upper()] for side in rocm.groups()), memory
    if re.match(r"(hip)?Memset|FillBuffer", name, re.IGNORECASE):
        return "Memset", memory
    return safe(name) if name.startswith("Memcpy") else short_name(name), memory


def copies(scope: Scope) -> Table:
    """Return a row per device, kind and memory of the copies that start in a scope, most time first.

    They count whole. `bandwidth` is all bytes by all time of those whose bytes are known; `recorded_…` is
    what the profiler wrote of each, its mean weighted by time.
    """
    rows: list[dict[str, Any]] = []
    jumps: list[tuple[int, int]] = []
    for work in work_of(replace(scope, allocations=True)):
        for row, position in _rows(scope, work):
            rows.append(row)
            jumps.append((work.device.source, position))
    totals = {key: sum(row[key] for row in rows) for key in ("count", "bytes", "time_ns")}
    return Table.from_rows(COPIES, scope.text, rows, jumps, totals=totals).sort("time_ns")


def _rows(scope: Scope, work: Work) -> list[tuple[dict[str, Any], int]]:
    index = work.index
    chosen = work.kinds() == MEMORY_TYPE
    if scope.range is not None:
        offset = scope.clocks.offset(work.device.source, work.device.pid)
        chosen &= index.column("slices.start")[work.positions] + offset == work.starts
    positions = work.positions[chosen]
    number, numbers = work.distinct_names
    aiu = is_aiu(index)
    labels: dict[tuple[str, str], int] = {}
    has_copies = np.bincount(number[chosen], minlength=len(numbers)) > 0
    codes = np.zeros(len(numbers), np.int64)
    for at in np.flatnonzero(has_copies).tolist():
        codes[at] = labels.setdefault(kind_of(index.string(int(numbers[at])), aiu), len(labels))
    group = codes[number[chosen]]
    duration = index.duration(positions)
    size, has_size = promoted_values(index, "bytes", positions)
    recorded, has_recorded = recorded_bandwidth(index, positions)
    rows = []
    for (kind, memory), code in labels.items():
        mask = group == code
        moves = kind != ALLOCATION  # what moves no bytes has no bandwidth, though one is recorded
        sized, spoken = mask & has_size, mask & has_recorded & moves
        total, of_sized = int(size[sized].sum()), int(duration[sized].sum())
        weight = int(duration[spoken].sum())
        row = {
            "rank": str(work.rank),
            "device": work.title,
            "name": kind,
            "memory": memory,
            "count": int(mask.sum()),
            "bytes": total,
            "time_ns": int(duration[mask].sum()),
            "bandwidth": total * 10**9 / of_sized if of_sized and moves else None,
            "recorded_mean": float((recorded[spoken] * duration[spoken]).sum()) / weight if weight else None,
            "recorded_max": float(recorded[spoken].max()) if spoken.any() else None,
            "max_ns": int(duration[mask].max()),
            "without_bytes": int((mask & ~has_size).sum()),
        }
        rows.append((row, int(positions[mask][np.argmax(duration[mask])])))
    return rows


def recorded_bandwidth(index: Index, positions: AnyArray) -> tuple[F64, AnyArray]:
    """Return (bytes/s that the profiler wrote of each slice, whether it wrote any)."""
    known, values = index.column("promoted.bandwidth.position"), index.column("promoted.bandwidth.value")
    if not len(known) or not len(positions):
        return np.zeros(len(positions)), np.zeros(len(positions), np.bool_)
    at: I64 = np.minimum(np.searchsorted(known, positions.astype(np.uint32)), len(known) - 1)
    has = known[at] == positions
    return np.where(has, values[at] * GB, 0.0), has
