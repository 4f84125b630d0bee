"""What was copied and set on the devices: bytes, time and bandwidth by kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..base.arrays import F64, I64, AnyArray, sum_of
from ..base.safe_text import safe
from ..base.short_names import short_name
from ..query.groups import dense
from ..query.lookup import promoted_of
from ..trace.devices import ALLOCATION_NAMES, is_aiu
from .frame import Frame, FrameGroups, Words
from .frame_columns import NEVER, work_of
from .scope import Scope
from .shape import Ask, Shape, flagged, n, statistic, text, total
from .table import Table
from .table_rows import Values

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


def _bandwidths(g: FrameGroups) -> Values:
    """Return all bytes by all time of the copies whose bytes are known; what moves none has no bandwidth."""
    sums = zip(*(g.sums(g.column(key)).tolist() for key in ("bytes", "sized_ns")), text("way").of(g))
    return np.array([size * 10**9 / ns if ns and way != ALLOCATION else np.nan for size, ns, way in sums])


def _recorded(of: Callable[[F64, I64], float]) -> Ask:
    """Ask for one number of the bandwidths that were recorded, and the time of each."""

    def answers(g: FrameGroups) -> Values:
        parts = (part[~np.isnan(part.recorded)] for part in g.parts)
        return np.array([of(part.recorded, part.full_ns) if len(part) else np.nan for part in parts])

    return flagged(Ask(answers, "bytes/s"), "statistic")


def _mean(speeds: F64, ns: I64) -> float:
    """Return the mean of speeds weighted by time."""
    return float((speeds * ns).sum()) / sum_of(ns) if ns.any() else np.nan


COPIES = Shape(
    "copies",
    "Copies",
    {
        "rank": text("rank"),
        "device": text("device"),
        "name": ("kind", text("way")),
        "memory": text("memory"),
        "count": n(),
        "bytes": total("bytes", "bytes"),
        "time_ns": total("full_ns"),
        "bandwidth": flagged(Ask(_bandwidths), "statistic"),
        "recorded_mean": _recorded(_mean),
        "recorded_max": _recorded(lambda speeds, _: float(speeds.max())),
        "max_ns": ("longest", flagged(statistic("max_ns", "full_ns"), "statistic")),
        "without_bytes": n(lambda copies: ~copies.has_bytes),
    },
    {"chief": ("memory", "bytes", "time_ns", "bandwidth", "count", "rank")},
)


def copies(scope: Scope) -> Table:
    """Return a row per device, kind and memory of the copies that start in a scope, most time first.

    They count whole. `bandwidth` is all bytes by all time of those whose bytes are known; `recorded_…` is
    what the profiler wrote of each, its mean weighted by time.
    """
    work = work_of(replace(scope, allocations=True))
    work = work[work.is_type("memory") & work.is_begun]
    ways: list[tuple[str, str]] = []

    def codes(part: Frame) -> AnyArray:
        rows, numbers = dense(part.name_number)
        aiu = is_aiu(part.index)
        ways.extend(kind_of(name, aiu) for name in part.index.strings(numbers))
        return rows + (len(ways) - len(numbers))

    code = work.from_parts(codes)
    way, memory = (Words(code, [pair[at] for pair in ways]) for at in (0, 1))
    moves = np.array([kind != ALLOCATION for kind in way.texts], np.bool_)[code]
    size = work.from_parts(lambda part: promoted_of(part.index, "bytes", part.position, NEVER))
    recorded = work.from_parts(lambda part: promoted_of(part.index, "bandwidth", part.position, np.nan) * GB)
    has = size != NEVER
    columns = {"bytes": np.where(has, size, 0), "has_bytes": has, "sized_ns": np.where(has, work.full_ns, 0)}
    work = work.plus(way=way, memory=memory, recorded=np.where(moves, recorded, np.nan), **columns)
    groups = work.group("device_row", "way", "memory")
    table = COPIES.of(groups, jump="full_ns", sort="time_ns")
    return replace(table, totals={key: sum_of(table.numbers(key)) for key in ("count", "bytes", "time_ns")})
