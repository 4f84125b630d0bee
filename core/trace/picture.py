"""What is drawn of a trace, for the viewer and for pictures alike: in which order lanes stand and which of
them fold; which arrows, those of the selected slice or all that begin or end in view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..base.kineto import DEVICE
from ..index.format import RowKind
from ..query.flows import flows_of_ranges
from ..query.lookup import category_of_slice, positions_within
from ..query.views import SliceId
from . import Lane, LaneKind, LaneRole, Process, Row, Trace

MOST = 64
"""Arrows that are drawn at most."""
MOST_OF_SLICE = 1000
"""Flows of one slice that are looked at."""


@dataclass(frozen=True)
class Arrow:
    """From one slice to another."""

    source: SliceId
    target: SliceId


@dataclass(frozen=True)
class Arrows:
    """The arrows to draw, at most MOST, and how many more there are."""

    drawn: tuple[Arrow, ...] = ()
    more: int = 0


def arrows_of(trace: Trace, identity: SliceId) -> Arrows:
    """Return the flows of a slice, and its launch or its kernels where only an id tells of them."""
    arrows = [
        Arrow(flow.source, flow.target)
        for flow in (*trace.flows_in(identity, MOST_OF_SLICE), *trace.flows_out(identity, MOST_OF_SLICE))
        if flow.source is not None and flow.target is not None and flow.source != flow.target
    ]
    if not any(arrow.target == identity for arrow in arrows):
        links = trace.chain(identity)
        if len(links) > 1 and links[0].role == "kernel" and links[1].via != "enclosing":
            arrows.append(Arrow(links[1].id, identity))
    if not arrows:
        arrows = [Arrow(identity, kernel) for kernel, _ in device_work_of_id(trace, identity, MOST_OF_SLICE)]
    arrows = list(dict.fromkeys(arrows))
    return Arrows(tuple(arrows[:MOST]), max(0, len(arrows) - MOST))


def device_work_of_id(trace: Trace, identity: SliceId, most: int) -> list[tuple[SliceId, str]]:
    """Return device slices with a slice's correlation, else with its External id, and which it was; none for
    device slices.
    """
    index = trace.indexes[identity.source]
    position = index.position_of(identity.ordinal)
    if position is None or category_of_slice(index, position) in DEVICE:
        return []
    for key, via in (("correlation", "correlation"), ("external_id", "external id")):
        value = index.promoted(key, position)
        if not value:  # 0 is what devices write for "none"
            continue
        work = []
        for other in index.promoted_positions(key, int(value))[:most].tolist():
            if other != position and category_of_slice(index, other) in DEVICE:
                work.append((trace.slice_id_of(identity.source, other), via))
        if work:
            return work
    return []


def arrows_in_view(trace: Trace, windows: Sequence[tuple[Row, int, int]]) -> Arrows:
    """Return the flows that begin or end in rows' slices of a window: `windows` holds (row, first ns, end ns)
    in lane time. Of more than MOST an even sample is drawn.
    """
    by_source: dict[int, list[tuple[int, int]]] = {}
    for row, start, end in windows:
        index = trace.indexes[row.source]
        if row.kind is RowKind.SLICES and len(index.column("flows.source")):
            by_source.setdefault(row.source, []).append(positions_within(index, row.number, start, end))
    numbers = {
        source: flows_of_ranges(trace.indexes[source], sorted(set(ranges)))
        for source, ranges in by_source.items()
    }
    total = sum(len(flows) for flows in numbers.values())
    chosen = {total * step // MOST for step in range(MOST)} if total > MOST else set(range(total))
    drawn, at = [], 0
    for source, flows in numbers.items():
        index = trace.indexes[source]
        for number in (int(flows[rank - at]) for rank in sorted(chosen) if at <= rank < at + len(flows)):
            ends = (int(index.column(f"flows.{end}")[number]) for end in ("source", "target"))
            drawn.append(Arrow(*(trace.slice_id_of(source, end) for end in ends)))
        at += len(flows)
    return Arrows(tuple(drawn), total - len(drawn))


FEW = 100
"""A thread with more slices and instants than this is never quiet."""
QUIET_SHARE = 0.001
"""A thread busy for less than this share of the opening span, with few slices, is quiet."""
LEAST_FOLDED = 2


@lru_cache(maxsize=4)
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


@lru_cache(maxsize=4)
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
        if len(quiet) >= LEAST_FOLDED:
            folded.update(quiet)
        folded.update(host_threads(trace, process))
    return frozenset(folded) if loud else frozenset()


def host_threads(trace: Trace, process: Process) -> list[int]:
    """Return the threads of the host in a process that stands for a device, by its label."""
    lanes = [trace.lanes[number] for number in process.lanes] if process.labels else []
    if not any(lane.role is LaneRole.DEVICE for lane in lanes):
        return []
    return [lane.index for lane in lanes if lane.role is LaneRole.HOST and lane.kind == LaneKind.THREAD]


@lru_cache(maxsize=4)
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
