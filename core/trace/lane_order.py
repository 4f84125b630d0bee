"""In which order lanes are drawn, and which of them fold: for the viewer and for pictures alike."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.cached_per_object import cached_per_object
from . import Lane, LaneKind, LaneRole, Process, Trace

FEW = 100
"""A thread with more slices and instants than this is never quiet."""
QUIET_SHARE = 0.001
"""A thread busy for less than this share of the opening span, with few slices, is quiet."""
MIN_FOLDED = 2


@cached_per_object()
def drawn_device_lanes(trace: Trace) -> frozenset[int]:
    """Return the lanes of devices, and those of what was measured of them and laid over the trace."""
    measured = (process.lanes for process in trace.processes if _is_measured(trace, process))
    return trace.device_lanes.union(*measured)


def _is_measured(trace: Trace, process: Process) -> bool:
    """Tell whether a process was laid over the trace: a log, or what was computed of a device."""
    return bool(trace.members) and process.source >= len(trace.members) and not process.aside


def devices_first(trace: Trace, processes: Sequence[Process]) -> Sequence[Process]:
    """Return devices, then what launches to them most, then others; what is measured of a process stays
    below it.
    """
    devices, launching = drawn_device_lanes(trace), trace.launching_lanes
    keys: list[tuple[int, int]] = []
    for process in processes:
        if keys and _is_measured(trace, process):
            keys.append(keys[-1])
        elif process.aside:
            keys.append((3, 0))
        elif any(number in devices for number in process.lanes):
            keys.append((0, 0))
        else:
            busiest = max((launching.get(number, 0) for number in process.lanes), default=0)
            keys.append((1, -busiest) if busiest else (2, 0))
    return [process for _, process in sorted(zip(keys, processes), key=lambda pair: pair[0])]


def lanes_devices_first(trace: Trace, process: Process) -> Sequence[int]:
    """Return the places of a process's lanes: devices, then those that launch most."""
    devices, launching = drawn_device_lanes(trace), trace.launching_lanes
    return sorted(process.lanes, key=lambda number: (number not in devices, -launching.get(number, 0)))


@cached_per_object()
def quiet_lanes(trace: Trace) -> frozenset[int]:
    """Return the numbers of the threads that fold into one line per process: quiet ones, where a process has
    at least two of them, and threads of the host that profilers list among a device's streams.

    Never device lanes, never all lanes of the trace.
    """
    start, end = trace.opening_span
    limit = max(1, round((end - start) * QUIET_SHARE))
    folded: set[int] = set()
    loud = 0
    for process in trace.processes:
        quiet = [number for number in process.lanes if _is_quiet(trace, trace.lanes[number], limit)]
        loud += len(process.lanes) - len(quiet)
        if len(quiet) >= MIN_FOLDED:
            folded.update(quiet)
        folded.update(host_threads(trace, process))
    return frozenset(folded) if loud else frozenset()


def host_threads(trace: Trace, process: Process) -> list[int]:
    """Return the threads of the host in a process that stands for a device, by its label."""
    lanes = [trace.lanes[number] for number in process.lanes] if process.labels else []
    if not any(lane.role is LaneRole.DEVICE for lane in lanes):
        return []
    return [lane.index for lane in lanes if lane.role is LaneRole.HOST and lane.kind == LaneKind.THREAD]


@cached_per_object()
def profilers_lanes(trace: Trace) -> frozenset[int]:
    """Return the lanes of the profiler's notes about itself and of marks without a process; nothing where the
    trace has no others.
    """
    own = {
        number
        for process in trace.processes
        if process.aside
        for number in process.lanes
        if trace.lanes[number].role is LaneRole.PROFILER or not trace.lanes[number].slices
    }
    return frozenset(own) if len(own) < len(trace.lanes) else frozenset()


def _is_quiet(trace: Trace, lane: Lane, limit: int) -> bool:
    is_device = lane.role is LaneRole.DEVICE
    if lane.kind != LaneKind.THREAD or lane.slices + lane.instants > FEW or lane.unclosed or is_device:
        return False
    if not lane.slices or lane.end - lane.start < limit:
        return True
    return int(trace.row_columns(lane).busy[0]) < limit
