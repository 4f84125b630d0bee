"""One gap in full: what lies around it, what the CPU threads did in it, the launch that ended it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..base.clock import Clocks
from ..base.ids import SliceId
from ..index.format import LaneKind, RowKind
from ..query.gaps import gap_before
from ..query.views import Lane, Link, Row
from .devices import devices
from .idle import CLASSES, gap_classes

if TYPE_CHECKING:
    from ..trace import Trace

THREADS = 8
"""Threads told of at most: the launching one first, then those that a slice kept busy."""
LANES_ASKED = 256
"""Threads looked at; very many more would not be read by anybody."""
NO_CLOCKS = Clocks()


@dataclass(frozen=True)
class Doing:
    """What a CPU thread did: the deepest slice that covers more than half of the gap, or None."""

    lane: Lane
    slice: SliceId | None
    label: str
    covered: int  # ns of the gap


@dataclass(frozen=True)
class Gap:
    """A gap of a row; times are trace time in ns."""

    start: int
    end: int
    before: SliceId
    after: SliceId
    launch: Link | None  # of the slice after it
    kind: str | None  # one of CLASSES; None where the lane is no device's
    threads: tuple[Doing, ...]
    more_threads: int  # active in it but not listed

    @property
    def length(self) -> int:
        """Ns in which nothing ran on the row."""
        return self.end - self.start

    @property
    def host_was_late(self) -> bool | None:
        """Whether what ended the gap was launched only after the gap began; None where no launch is known."""
        return None if self.launch is None else self.launch.start > self.start


def gap_of(trace: Trace, row: Row, at: int, clocks: Clocks = NO_CLOCKS) -> Gap | None:
    """Return the gap that the slice at an index within its row ends, None where there is none."""
    bounds = gap_before(trace.indexes[row.source], row.number, at)
    if bounds is None or row.kind is not RowKind.SLICES:
        return None
    offset = clocks.offset(row.source, row.pid)
    start, end = bounds[0] + offset, bounds[1] + offset
    after = trace.slice_id(row, at)
    launch = next((link for link in trace.chain(after, clocks) if link.role == "launch" and link.via), None)
    caller = None if launch is None else trace.find(launch.id)
    threads, more = _threads(trace, row, start, end, clocks, None if caller is None else caller[0].lane)
    kind = None
    if any(row.lane in device.lanes for device in devices(trace)):
        late = launch is not None and launch.start > start
        kind = CLASSES[int(gap_classes(np.array([late]), np.array([end - start]))[0])]
    return Gap(start, end, trace.slice_id(row, at - 1), after, launch, kind, threads, more)


def _threads(
    trace: Trace, row: Row, start: int, end: int, clocks: Clocks, caller: int | None
) -> tuple[tuple[Doing, ...], int]:
    device_lanes = {place for device in devices(trace) for place in device.lanes}
    device_pids = {(device.source, device.pid) for device in devices(trace)}
    found: list[Doing] = []
    asked = 0
    for process in trace.processes:
        if process.source != row.source or process.aside or (process.source, process.pid) in device_pids:
            continue
        for place in process.lanes:
            lane = trace.lanes[place]
            offset = clocks.offset(lane.source, lane.pid)
            outside = lane.start + offset >= end or lane.end + offset <= start
            if lane.kind is not LaneKind.THREAD or place in device_lanes or outside or place == row.lane:
                continue
            asked += 1
            if asked <= LANES_ASKED:
                found.append(_doing(trace, lane, start, end, clocks))
    found = [doing for doing in found if doing.slice is not None or doing.lane.index == caller]
    found.sort(key=lambda doing: (doing.lane.index != caller, -doing.covered))
    return tuple(found[:THREADS]), max(0, len(found) - THREADS) + max(0, asked - LANES_ASKED)


def _doing(trace: Trace, lane: Lane, start: int, end: int, clocks: Clocks) -> Doing:
    """Look down the rows at the gap's middle: what covers more than half of it covers its middle too."""
    best = Doing(lane, None, "", 0)
    for row in trace.rows(lane):
        at = trace.slice_at(row, (start + end) // 2, clocks)
        if at is None:
            continue
        left, right = trace.bounds(row, at, clocks)
        covered = min(right, end) - max(left, start)
        if 2 * covered > end - start:
            best = Doing(lane, trace.slice_id(row, at), trace.label(row, at), covered)
    return best
