"""Groups of rows: the group of each row, and sums, extremes and statistics of each group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..base.arrays import (
    BY_RUNS,
    F64,
    I64,
    MAX,
    AnyArray,
    add_at,
    added_up,
    group_numbers,
    pieces,
    run_starts,
)
from ..index.store import Index

STATISTICS = (
    *("count", "total_ns", "mean_ns", "median_ns", "p95_ns"),
    *("min_ns", "max_ns", "stdev_ns", "longest"),
)
BITS = 63
"""The bits of a sort key that holds group and duration in one int64."""
FEW_NUMBERS = 1 << 22
"""Up to so many possible numbers a table of all of them is cheaper than sorting."""


class Labels(dict[str, int]):
    """Texts and their numbers, in order of appearance; the same text of several sources is one number."""

    def codes(self, texts: Sequence[str]) -> I64:
        """Return the number of each text; new ones are added."""
        return np.array([self.setdefault(text, len(self)) for text in texts], np.int64)

    def of_slices(self, index: Index, positions: AnyArray, label: Callable[[str], str] = str) -> I64:
        """Return the number of the label of each slice's name; each distinct name is read once."""

        def codes(numbers: I64) -> I64:
            return self.codes([label(text) for text in index.strings(numbers)])

        return of_distinct(index.column("slices.name")[positions], codes)


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each of n rows, as numbers from 0 to `size` - 1. Values below are arrays of n numbers."""

    codes: I64
    size: int

    @cached_property
    def counts(self) -> I64:
        """How many rows each group has."""
        return np.bincount(self.codes, minlength=self.size).astype(np.int64)

    def counts_where(self, mask: AnyArray) -> I64:
        return np.bincount(self.codes[mask], minlength=self.size).astype(np.int64)

    def sums(self, values: I64) -> I64:
        """Return the sum of each group, exact in int64, beyond which it stays at the limits."""
        sums = np.zeros(self.size, np.int64)
        add_at(sums, self.codes, values)
        return sums

    def most(self, values: I64, nothing: int = 0) -> I64:
        """Return the greatest value of each group, at least `nothing`."""
        most = np.full(self.size, nothing, np.int64)
        np.maximum.at(most, self.codes, values)
        return most

    def least(self, values: I64) -> I64:
        """Return the least value of each group, the greatest int64 of an empty one."""
        least = np.full(self.size, np.iinfo(np.int64).max)
        np.minimum.at(least, self.codes, values)
        return least

    def first(self) -> I64:
        """Return the first row of each group; n where it has none."""
        first = np.full(self.size, len(self.codes), np.int64)
        for piece in pieces(len(self.codes)):
            np.minimum.at(first, self.codes[piece], np.arange(piece.start, piece.stop))
        return first

    def longest(self, values: I64, most: I64 | None = None) -> I64:
        """Return the row of each group's greatest value, the first of equal ones; 0 of an empty group."""
        most = self.most(values, np.iinfo(np.int64).min) if most is None else most
        longest = np.zeros(self.size, np.int64)
        hits = np.flatnonzero(values == most[self.codes])[::-1]
        longest[self.codes[hits]] = hits  # the last one written is the first in order
        return longest

    def covered(self, starts: I64, ends: I64) -> I64:
        """Return how much time the spans [start, end) of each group cover, overlaps counted once."""
        covered = np.zeros(self.size, np.int64)
        if not len(starts):
            return covered
        order = np.lexsort((starts, self.codes))
        codes, starts, ends = self.codes[order], starts[order], ends[order]
        # How far the spans before each one of its group reach: a running maximum of (group, rank of the end),
        # as the ends 5 9 7 | 2 of two groups have the ranks 1 3 2 | 0 and the maxima 1 3 3 | 4 + 0.
        by_end = np.argsort(ends, kind="stable")
        ranks = np.empty(len(ends), np.int64)
        ranks[by_end] = np.arange(len(ends))
        highest = np.maximum.accumulate(codes * len(ends) + ranks)
        reach = ends[by_end[highest[:-1] % len(ends)]]
        parts = ends - starts
        twice = np.minimum(ends[1:], reach) - np.minimum(starts[1:], reach)
        parts[1:] -= np.where(codes[1:] == codes[:-1], twice, 0)
        return Groups(codes, self.size).sums(parts)

    def ordered(self, values: I64) -> I64:
        """Return the values by (group, value)."""
        # One sort of plain numbers is several times as fast as one by two keys. 7, 9, 5 of the groups 1, 0,
        # 1 are 2, 4, 0 above the least, which takes 3 bits: with the group above them 10, 4, 8. In order
        # that is 4, 8, 10, of which the lower 3 bits are 4, 0, 2: the values 9 | 5, 7.
        low = int(values.min())
        width = (int(values.max()) - low).bit_length()
        if width + self.size.bit_length() <= BITS:
            keys = (self.codes << width) | (values - low)
            keys.sort()
            keys &= (1 << width) - 1
            keys += low
            return keys
        return values[np.lexsort((values, self.codes))]

    def quantiles(self, values: I64, *shares: float) -> list[F64]:
        """Return quantiles of each group, linear between two neighbours; no group is without a value."""
        if not len(values):
            return [np.empty(0, np.float64) for _ in shares]
        ordered, count = self.ordered(values), self.counts
        begins = np.cumsum(count) - count
        return [_quantile(ordered, begins, count, share) for share in shares]

    def statistics(self, values: I64) -> dict[str, AnyArray]:
        """Return count, sum, mean, median, p95, min, max, sample deviation and the row of the longest, by
        the names in STATISTICS. Sums are int64; every group has at least one value.
        """
        if not len(values):
            return dict.fromkeys(STATISTICS, np.empty(0, np.int64))
        ordered, count = self.ordered(values), self.counts
        begins = np.cumsum(count) - count
        total = added_up(ordered, begins)
        mean = total / count
        if np.any(total == MAX):
            mean = np.add.reduceat(ordered.astype(np.float64), begins) / count
        lowest, highest = ordered[begins], ordered[begins + count - 1]
        squares = ordered - np.repeat(mean, count)
        np.square(squares, out=squares)
        with np.errstate(invalid="ignore", divide="ignore"):
            stdev = np.sqrt(np.add.reduceat(squares, begins) / (count - 1))
        stdev[count == 1] = np.nan
        return {
            "count": count,
            "total_ns": total,
            "mean_ns": mean,
            "median_ns": _quantile(ordered, begins, count, 0.5),
            "p95_ns": _quantile(ordered, begins, count, 0.95),
            "min_ns": lowest,
            "max_ns": highest,
            "stdev_ns": stdev,
            "longest": self.longest(values, highest),
        }


def concatenated(parts: Sequence[AnyArray]) -> AnyArray:
    """Return the arrays as one; an empty one without any."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def concatenated_columns(parts: Iterable[Sequence[AnyArray]], size: int) -> tuple[AnyArray, ...]:
    """Return the columns of parts as one, of which there are at most `size` rows; none without any part. Each
    part is written in as it comes: held until the last has come, all of them would take as much memory again.
    """
    columns: list[AnyArray] = []
    rows = 0
    for part in parts:
        columns = columns or [np.empty(size, column.dtype) for column in part]
        begin, rows = rows, rows + len(part[0])
        for column, values in zip(columns, part):
            column[begin:rows] = values
    return tuple(column[:rows] for column in columns)


def groups_alike(columns: Iterable[AnyArray], count: int) -> Groups:
    """Return so many rows by columns of whole numbers: a group of rows that are alike in all of them, in the
    order of the numbers.
    """
    codes, size = np.zeros(count, np.int64), min(1, count)
    for values in columns:
        low = int(values.min(initial=0))
        width = int(values.max(initial=0)) - low + 1
        codes, distinct = dense(codes * width + (values.astype(np.int64) - low))
        size = len(distinct)
    return Groups(codes, size)


def dense(values: AnyArray) -> tuple[I64, I64]:
    """Return (the index of each value among the distinct ones, these ascending) of whole numbers."""
    distinct = [np.empty(0, np.int64)]

    def rows_of(numbers: I64) -> I64:
        distinct.append(numbers)
        return np.arange(len(numbers))

    rows = of_distinct(values, rows_of)
    return rows, distinct[-1]


def of_distinct(values: AnyArray, answers: Callable[[I64], I64]) -> I64:
    """Return what is answered of each of some whole numbers: `answers` is asked once, of the distinct ones,
    ascending; they are found by a table where that is smaller.
    """
    if not len(values):
        return np.empty(0, np.int64)
    low, high = int(values.min()), int(values.max())
    if high - low > max(FEW_NUMBERS, 2 * len(values)):
        order = np.argsort(values, kind=BY_RUNS)
        ordered, of_values = values[order], np.empty(len(values), np.int64)
        of_values[order] = answers(ordered[run_starts(ordered)].astype(np.int64))[group_numbers(ordered)]
        return of_values
    # 70, 50, 70, 52 are present at 20, 0, 20, 2 of a table of 21, which gets the answers of 50, 52 and 70 at
    # 0, 2 and 20.
    present, shifted = np.zeros(high - low + 1, np.bool_), values - values.dtype.type(low)
    present[shifted] = True
    at = np.flatnonzero(present)
    table = np.zeros(len(present), np.int64)
    table[at] = answers(at + low)
    every: I64 = table[shifted]
    return every


def _quantile(ordered: I64, begins: I64, count: I64, share: float) -> F64:
    """Return a quantile of each group, linear between its two neighbours."""
    at = (count - 1) * share
    below = np.floor(at).astype(np.int64)
    above = np.minimum(below + 1, count - 1)
    low = ordered[begins + below]
    result: F64 = low + (ordered[begins + above] - low) * (at - below)
    return result
