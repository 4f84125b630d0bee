"""Which lanes are device lanes, and which threads are too quiet to get a line of their own."""

from __future__ import annotations

import re
from functools import lru_cache

from tracelane.core.trace import Lane, LaneKind, Trace

from .palette import key_of

FEW = 100
"""A thread with more slices and instants than this is never quiet."""
QUIET_SHARE = 0.001
"""A thread busy for less than this share of the opening span, with few slices, is quiet."""
LEAST_FOLDED = 2

_DEVICE_LABEL = re.compile(r"\b(gpu|aiu|xpu|npu|hpu|tpu|mtia|device|spyre|accelerator)\b", re.IGNORECASE)
_DEVICE_TITLE = re.compile(r"\bstream\b", re.IGNORECASE)


def is_device(lane: Lane) -> bool:
    """Tell whether a lane belongs to an accelerator: by its process's labels and name, or as a stream."""
    return names_device(lane.process.labels, lane.process.name, lane.name)


@lru_cache(maxsize=65536)
def names_device(labels: str, process: str, lane: str) -> bool:
    """Tell the same of names."""
    if labels and "cpu" in labels.lower().split():
        return bool(_DEVICE_TITLE.search(lane))
    return bool(_DEVICE_LABEL.search(f"{labels} {process}") or _DEVICE_TITLE.search(lane))


@lru_cache(maxsize=64)
def no_work(trace: Trace, source: int) -> frozenset[int]:
    """Return the categories that are no device's work: annotations, and what happens on the host."""
    families = ("annotation", "cpu_op", "python", "runtime", "driver", "trace")
    numbers = (n for n, category in enumerate(trace.categories(source)) if key_of(category, "") in families)
    return frozenset(numbers)


@lru_cache(maxsize=4)
def quiet_lanes(trace: Trace) -> frozenset[int]:
    """Return the numbers of the threads that fold into one line per process.

    Never device lanes, never all lanes of the trace, and only where a process has at least two of them.
    """
    start, end = trace.opening_span
    limit = max(1, round((end - start) * QUIET_SHARE))
    folded: set[int] = set()
    loud = 0
    for process in trace.processes:
        quiet = [number for number in process.lanes if _is_quiet(trace, trace.lanes[number], limit)]
        loud += len(process.lanes) - len(quiet)
        if len(quiet) >= LEAST_FOLDED:
            folded.update(quiet)
    return frozenset(folded) if loud else frozenset()


def _is_quiet(trace: Trace, lane: Lane, limit: int) -> bool:
    if lane.kind != LaneKind.THREAD or lane.slices + lane.instants > FEW or lane.unclosed or is_device(lane):
        return False
    if not lane.slices or lane.end - lane.start < limit:
        return True
    return int(trace.row_columns(lane).busy[0]) < limit
