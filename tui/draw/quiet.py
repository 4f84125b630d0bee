"""Which threads are too quiet to get a line of their own."""

from __future__ import annotations

from functools import lru_cache

from tracelane.core.trace import Lane, LaneKind, LaneRole, Trace

FEW = 100
"""A thread with more slices and instants than this is never quiet."""
QUIET_SHARE = 0.001
"""A thread busy for less than this share of the opening span, with few slices, is quiet."""
LEAST_FOLDED = 2


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
    is_device = lane.role is LaneRole.DEVICE
    if lane.kind != LaneKind.THREAD or lane.slices + lane.instants > FEW or lane.unclosed or is_device:
        return False
    if not lane.slices or lane.end - lane.start < limit:
        return True
    return int(trace.row_columns(lane).busy[0]) < limit
