"""How many slices of a lane are open at each start, and whose children those of one level are."""

from __future__ import annotations

import numpy as np

from ..ingest.columns import I64
from .order import concatenated_ranges


def open_levels(start: I64, end: I64, zero_length: I64) -> I64:
    """Return how many slices are open at each start, the slice itself included (>= 1)."""
    n = len(start)
    until = np.arange(1, n + 1)  # the first slice that begins at or after each end: mostly the next
    inner = np.flatnonzero(end[:-1] > start[1:])
    until[inner] = np.searchsorted(start, end[inner], side="left")
    until[zero_length] = np.searchsorted(start, start[zero_length], side="left")
    level = np.arange(1, n + 1)
    level -= np.cumsum(np.bincount(until, minlength=n)[:n])
    if len(zero_length):
        # Counted as closed were also the slices of length zero that begin at the same time but are not before
        # this one.
        stamps, zeros = np.unique(start[zero_length], return_counts=True)
        first = np.searchsorted(start, stamps, side="left")
        last = np.searchsorted(start, stamps, side="right")
        index = concatenated_ranges(first, last - first)
        level[index] += np.minimum(np.repeat(zeros, last - first), np.repeat(last, last - first) - index)
    return level


class Families:
    """Slices by level and start, in which the children of each slice stand together.

    A slice is the first child of the one before it where its level is higher (by one, it cannot be more);
    all that follow in its level, up to the next first child there, are its siblings.
    """

    def __init__(self, level: I64, order: I64) -> None:
        """`order` is by (level, index)."""
        n = len(level)
        base = level[order]
        self._order = order
        self._top = int(np.searchsorted(base, 2))  # those of the first level are nobody's children
        begins = np.zeros(n, np.bool_)
        np.greater(level[1:], level[:-1], out=begins[1:])
        begins = begins[order]
        base *= n
        owner = np.where(begins, order + base, base)
        owner -= 1
        np.maximum.accumulate(owner, out=owner)
        owner -= base
        owner[: self._top] = -1
        self._owner = owner  # by (level, index)
        self._first = np.flatnonzero(begins)  # of each family, its place in that order

    def parent(self) -> I64:
        """Return each slice's parent, -1 at the top."""
        parent = np.empty(len(self._order), np.int64)
        parent[self._order] = self._owner
        return parent

    def nest(self, end: I64) -> bool:
        """Tell whether all children lie within their parents."""
        if not len(self._first):
            return True
        last = np.maximum.reduceat(end[self._order[self._top :]], self._first - self._top)
        return bool((end[self._owner[self._first]] >= last).all())

    def self_time(self, duration: I64) -> I64:
        """Return duration minus that of the children, where all nest: siblings have no time in common."""
        self_time = duration.copy()
        if len(self._first):
            children = duration[self._order[self._top :]]
            self_time[self._owner[self._first]] -= np.add.reduceat(children, self._first - self._top)
        return self_time
