"""Sets of time as sorted, disjoint, half-open intervals [start, end) in int64 ns, exact."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .arrays import I64, sum_of


@dataclass(frozen=True, eq=False)
class Intervals:
    """Sorted, disjoint, non-empty intervals; touching ones are one."""

    starts: I64
    ends: I64

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def length(self) -> int:
        return sum_of(self.ends - self.starts)

    def clipped(self, start: int, end: int) -> Intervals:
        return merge(np.clip(self.starts, start, end), np.clip(self.ends, start, end))

    def intersection(self, other: Intervals) -> Intervals:
        if not len(self) or not len(other):
            return EMPTY
        # Sweep over all edges: time is in both where two intervals are open.
        edges = np.concatenate([self.starts, other.starts, self.ends, other.ends])
        step = np.ones(len(edges), np.int8)
        step[len(self) + len(other) :] = -1
        # Ends before starts at equal stamps, so that touching intervals do not meet.
        order = np.lexsort((step, edges))
        depth = np.cumsum(step[order], dtype=np.int64)
        both = np.flatnonzero(depth[:-1] == 2)
        times = edges[order]
        return merge(times[both], times[both + 1])

    def union(self, other: Intervals) -> Intervals:
        return merge(np.concatenate([self.starts, other.starts]), np.concatenate([self.ends, other.ends]))

    def without(self, other: Intervals) -> Intervals:
        if not len(self) or not len(other):
            return self
        low, high = int(self.starts[0]), int(self.ends[-1])
        return self.intersection(other.gaps(low, high))

    def gaps(self, start: int, end: int) -> Intervals:
        inside = self.clipped(start, end)
        starts = np.concatenate([[start], inside.ends]).astype(np.int64)
        ends = np.concatenate([inside.starts, [end]]).astype(np.int64)
        keep = starts < ends
        return Intervals(starts[keep], ends[keep])

    def covered(self, starts: I64, ends: I64) -> I64:
        """Return, for each query [start, end), how many ns of it are covered."""
        return self.before(ends) - self.before(starts)

    def before(self, times: I64) -> I64:
        """Return how many ns are covered before each time."""
        at = np.searchsorted(self.starts, times, "right")
        beyond = np.where(at > 0, np.maximum(0, self.ends[at - 1] - times), 0) if len(self) else 0
        return np.asarray(self._sums[at] - beyond, np.int64)

    @cached_property
    def _sums(self) -> I64:
        """The ns covered by the intervals before each, and by all."""
        return np.concatenate([[0], np.cumsum(self.ends - self.starts)]).astype(np.int64)


EMPTY = Intervals(np.empty(0, np.int64), np.empty(0, np.int64))


def merge(starts: I64, ends: I64) -> Intervals:
    """Return the union of any intervals; empty and reversed ones are left out."""
    keep = ends > starts
    starts, ends = starts[keep], ends[keep]
    if not len(starts):
        return EMPTY
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    opens = np.concatenate([[True], starts[1:] > reach[:-1]])
    closes = np.concatenate([opens[1:], [True]])
    return Intervals(starts[opens].astype(np.int64, copy=False), reach[closes].astype(np.int64, copy=False))
