"""When a device was busy, to be integrated exactly between any times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .series import F64, I64


@dataclass(frozen=True)
class BusyTime:
    """The union of a process's busy intervals: disjoint, in order, ns."""

    starts: I64
    ends: I64
    before: I64  # busy ns before each interval

    @classmethod
    def of(cls, starts: I64, ends: I64) -> BusyTime:
        """Merge intervals that touch or overlap, given in any order."""
        order = np.argsort(starts, kind="stable")
        starts, ends = np.asarray(starts, np.int64)[order], np.asarray(ends, np.int64)[order]
        if not len(starts):
            return cls(starts, ends, starts)
        reach = np.maximum.accumulate(ends)
        opens = np.concatenate([[True], starts[1:] > reach[:-1]])
        first = np.flatnonzero(opens)
        merged_ends = reach[np.concatenate([first[1:] - 1, [len(reach) - 1]])]
        merged_starts = starts[first]
        lengths = merged_ends - merged_starts
        return cls(merged_starts, merged_ends, np.cumsum(lengths) - lengths)

    def __bool__(self) -> bool:
        return len(self.starts) > 0

    def until(self, times: I64) -> I64:
        """Return the busy ns before each time."""
        if not len(self.starts):
            return np.zeros_like(times)
        place = np.searchsorted(self.starts, times, side="right") - 1
        before = np.maximum(place, 0)
        inside = np.minimum(times, self.ends[before]) - self.starts[before]
        return np.where(place < 0, 0, self.before[before] + inside)

    def share(self, starts: I64, ends: I64) -> F64:
        """Return the busy share of each interval, 0 to 1."""
        busy: F64 = (self.until(ends) - self.until(starts)) / np.maximum(ends - starts, 1)
        return busy
