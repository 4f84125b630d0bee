"""A trace that is still being indexed: its lanes so far, their titles, and how busy they were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np

from ..base.arrays import F64, I64
from ..base.clock import Clocks
from ..index.format import LaneKind
from ..index.lanes import stands_aside
from ..read.coarse import LANE_BUCKETS, Coarse, LaneName, nothing, read_coarse
from .cells import clipped_edges
from .titles import lane_title, process_title
from .window import bulk

FAR = 10_000
"""What is further from the rest than so many times its span does not set the window: while little has been
read, the parts of a sound trace lie far apart as well.
"""


@dataclass(frozen=True)
class SketchLane:
    """A lane that events have been met of."""

    number: int  # in the picture
    name: LaneName
    title: str


@dataclass(frozen=True)
class SketchProcess:
    """A process that has lanes, as far as is known."""

    pid: str
    title: str
    lanes: tuple[SketchLane, ...]
    aside: bool  # no process but the profiler's own notes


class Sketch:
    """One picture of an unfinished trace. Immutable; times are ns of trace time, clocks at zero."""

    def __init__(self, coarse: Coarse, processes: Sequence[SketchProcess]) -> None:
        self.coarse = coarse
        self.processes = tuple(processes)
        self._bounds = np.searchsorted(coarse.lane, np.arange(len(coarse.lanes) + 1)).tolist()
        self._starts = coarse.bucket << coarse.shift
        self._sums = np.concatenate(([0], np.cumsum(np.minimum(coarse.busy, coarse.width))))

    @classmethod
    def empty(cls) -> Sketch:
        """Return the picture before anything was read."""
        return cls(nothing(), ())

    @classmethod
    def read(cls, path: Path) -> Sketch:
        """Read the file that an indexing process has written; CacheError where it is gone."""
        coarse, entries = read_coarse(path)
        processes = []
        for process in entries:
            lanes = []
            for number, text in process["lanes"]:
                name = coarse.lanes[number]
                title = lane_title(LaneKind(name.kind), name.tid, text)
                lanes.append(SketchLane(number, name, title))
            title = process_title(process["pid"], process["name"], process["labels"])
            aside = stands_aside(process["pid"], process["name"])
            processes.append(SketchProcess(process["pid"], title, tuple(lanes), aside))
        return cls(coarse, processes)

    @cached_property
    def lanes(self) -> tuple[SketchLane, ...]:
        """All lanes in display order."""
        return tuple(chain.from_iterable(process.lanes for process in self.processes))

    @cached_property
    def span(self) -> tuple[int, int]:
        """(start, end) over everything met so far, to the bucket."""
        if not len(self._starts):
            return (0, 0)
        return int(self._starts.min()), int(self._starts.max()) + self.coarse.width

    @property
    def clocks(self) -> Clocks:
        return Clocks()

    def span_at(self, clocks: Clocks) -> tuple[int, int]:
        """Return the span; the clocks of what is still being read stand still."""
        return self.span

    @cached_property
    def opening_span(self) -> tuple[int, int]:
        """The span without events that lie absurdly far away."""
        if not len(self._starts):
            return (0, 0)
        bits = self.coarse.shift
        buckets = np.unique(self.coarse.bucket)
        while len(buckets) > LANE_BUCKETS:  # finer than this it does not matter, and costs time
            bits, buckets = bits + 1, np.unique(buckets >> 1)
        start, end = bulk(buckets << bits, (buckets + 1) << bits, FAR)
        return max(start, self.span[0]), min(end, self.span[1])

    def shares(self, lane: SketchLane, edges: Sequence[int] | I64) -> F64:
        """Return how busy a lane was in each cell between the edges, 0..1, -1 where nothing was met.

        Within a bucket busy time counts as spread evenly.
        """
        bounds = clipped_edges(edges)
        a, b = self._bounds[lane.number], self._bounds[lane.number + 1]
        starts, width = self._starts[a:b], self.coarse.width
        left, right = bounds[:-1], np.maximum(bounds[1:], bounds[:-1] + 1)
        # A bucket touches a cell if it begins before the cell's end and ends after its begin.
        some = np.searchsorted(starts, right, "left") > np.searchsorted(starts, left - width, "right")
        room = (right - left).astype(np.float64)
        busy = self._until(a, starts, right) - self._until(a, starts, left)
        return np.where(some, np.clip(busy / room, 0.0, 1.0), -1.0)

    def _until(self, first: int, starts: I64, times: I64) -> F64:
        """Return a lane's busy ns before each time."""
        if not len(starts):
            return np.zeros(len(times))
        width = self.coarse.width
        at = np.searchsorted(starts, times, "right") - 1
        bucket = np.maximum(at, 0)
        inside = np.clip((times - starts[bucket]) / width, 0.0, 1.0)
        before = self._sums[first + bucket] - self._sums[first]
        own = self._sums[first + bucket + 1] - self._sums[first + bucket]
        return np.where(at >= 0, before + own * inside, 0.0)
