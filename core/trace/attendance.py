"""Which rank takes part in which collective, stored sparsely: memory and time grow with the entries that
exist, not with ranks times collectives.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..base.arrays import I64, AnyArray, added_up, concatenated_ranges


@dataclass(frozen=True, eq=False)
class Attendance:
    """Entries (collective, rank) sorted by collective, then by rank; no collective is without one.

    Values of entries are columns of the same length beside it.
    """

    collectives: int
    ranks: int
    collective: I64
    rank: I64

    def __len__(self) -> int:
        return len(self.collective)

    @cached_property
    def bounds(self) -> I64:
        """Where the entries of each collective begin, and the end."""
        return np.searchsorted(self.collective, np.arange(self.collectives + 1)).astype(np.int64)

    @cached_property
    def sizes(self) -> I64:
        """How many ranks take part in each collective."""
        return np.diff(self.bounds)

    @cached_property
    def by_rank(self) -> I64:
        """The entries sorted by rank."""
        return np.argsort(self.rank, kind="stable").astype(np.int64)

    @cached_property
    def rank_bounds(self) -> I64:
        """Where the entries of each rank begin in `by_rank`, and the end."""
        return np.searchsorted(self.rank[self.by_rank], np.arange(self.ranks + 1)).astype(np.int64)

    def of_rank(self, rank: int) -> I64:
        """Return the entries of a rank, by collective."""
        return self.by_rank[self.rank_bounds[rank] : self.rank_bounds[rank + 1]]

    def of_ranks(self, ranks: I64) -> I64:
        """Return the entries of several ranks."""
        return self.by_rank[_entries(self.rank_bounds, ranks)]

    def of_collectives(self, collectives: I64) -> I64:
        """Return the entries of several collectives."""
        return _entries(self.bounds, collectives)

    def least(self, values: I64) -> I64:
        """Return the least value of each collective."""
        return np.minimum.reduceat(values, self.bounds[:-1]) if self.collectives else values[:0]

    def most(self, values: I64) -> I64:
        """Return the greatest value of each collective."""
        return np.maximum.reduceat(values, self.bounds[:-1]) if self.collectives else values[:0]

    def sums(self, values: AnyArray) -> I64:
        """Return the sum of the values of each collective."""
        whole = values.astype(np.int64)
        return added_up(whole, self.bounds[:-1]) if self.collectives else whole[:0]

    def take(self, entries: AnyArray, least: int = 2) -> tuple[Attendance, I64]:
        """Return the table of some entries (a mask) without the collectives that fewer than `least` of them
        are in, and which entries those are, as they stand here.
        """
        mask = np.asarray(entries, np.bool_)
        stays = mask & (self.sums(mask) >= least)[self.collective]
        left = np.flatnonzero(stays).astype(np.int64)
        present, collective = np.unique(self.collective[left], return_inverse=True)
        return Attendance(len(present), self.ranks, collective.astype(np.int64), self.rank[left]), left


def medians(groups: I64, values: I64, size: int) -> tuple[I64, I64]:
    """Return of each group (the median of its values, how many there are), exact; 0 for an empty one."""
    ordered = values[np.lexsort((values, groups))]
    counts = np.bincount(groups, minlength=size).astype(np.int64)
    firsts = np.cumsum(counts) - counts
    some = counts > 0
    low = ordered[(firsts + (counts - 1) // 2)[some]]
    high = ordered[(firsts + counts // 2)[some]]
    middle = np.zeros(size, np.int64)
    middle[some] = low + (high - low) // 2
    return middle, counts


def _entries(bounds: I64, numbers: I64) -> I64:
    """Return the integers from bounds[n] up to bounds[n + 1] for each number n, one after another."""
    return concatenated_ranges(bounds[numbers], bounds[numbers + 1] - bounds[numbers])
