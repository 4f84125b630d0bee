"""Types of numpy arrays that columns have; groups of equal keys and ranges in them, without a loop; sets of
time as sorted, disjoint, half-open intervals [start, end) in int64 ns, exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:  # texts below: numpy.typing would take half a millisecond of every start
    import numpy.typing as npt

U8: TypeAlias = "npt.NDArray[np.uint8]"
U16: TypeAlias = "npt.NDArray[np.uint16]"
U32: TypeAlias = "npt.NDArray[np.uint32]"
U64: TypeAlias = "npt.NDArray[np.uint64]"
I64: TypeAlias = "npt.NDArray[np.int64]"
F64: TypeAlias = "npt.NDArray[np.float64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"
AnyArray: TypeAlias = "npt.NDArray[Any]"
MIN, MAX = -(1 << 63), (1 << 63) - 1
"""The range of int64; sums beyond it stay at its edge."""
PIECE = 1 << 16
"""So many values are treated at once where all of them may be more than memory should hold."""
BY_RUNS: Literal["stable"] = "stable"
"""How columns of times and positions are sorted, which mostly consist of a few ascending runs: merging these
takes a fifth of the time of numpy's usual sort, and a fiftieth where all is one run.
"""
TABLED = 8
"""Numbers that span no more than so many times as many as are asked for are found by a table of the span,
which takes a fifth of the time of a search for each.
"""


def concatenated_ranges(first: I64, count: I64) -> I64:
    """Return first[0], first[0]+1, … for count[0] values, then those of the next range, and so on."""
    # Of 5 6 7 | 2 3 each value is one more than the one before, but for 2, which is 5 less: they are the
    # running sum of 5 1 1 -5 1.
    some = count > 0
    first, count = first[some], count[some]
    steps = np.ones(int(count.sum()), np.int64)
    steps[:1] = first[:1]
    steps[np.cumsum(count[:-1])] = first[1:] - (first[:-1] + count[:-1] - 1)
    return np.cumsum(steps, out=steps)


def pieces(size: int, piece: int = PIECE) -> Iterator[slice]:
    """Yield where the pieces of `size` values lie: what numpy makes of one is small, whatever the whole."""
    for begin in range(0, size, piece):
        yield slice(begin, min(begin + piece, size))


def places_in(ascending: AnyArray, values: AnyArray) -> I64:
    """Return where each value stands among ascending ones, the first of equal ones, -1 for one that is not
    there; both are whole numbers.
    """
    if not len(ascending):
        return np.full(len(values), -1, np.int64)
    low, high = int(ascending[0]), int(ascending[-1])
    if max(high - low, len(ascending)) > TABLED * len(values):
        at = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
        return np.where(ascending[at] == values, at, -1)
    # Of 50, 52, 53 a table says that 50 to 53 stand at 0, nowhere, 1, 2: filled from behind, so that the
    # first of equal ones stays.
    table = np.full(high - low + 1, -1, np.int32)
    table[_above(ascending[::-1], ascending[0])] = np.arange(len(ascending) - 1, -1, -1, dtype=np.int32)
    inside = (values >= low) & (values <= high)
    at = np.full(len(values), -1, np.int64)
    at[inside] = table[_above(values[inside], ascending[0])]
    return at


def _above(values: AnyArray, least: AnyArray) -> I64:
    """Return how far whole numbers of any type are above the least one, which fits int64."""
    return np.subtract(values, least, dtype=np.int64, casting="unsafe")


def distinct(values: AnyArray) -> AnyArray:
    """Return the distinct values, ascending. Asked for these alone np.unique hashes them, which takes twelve
    times as long as sorting a million, and loads numpy.ma (6 ms); so do union1d, setdiff1d and intersect1d.
    """
    ordered = np.sort(values, axis=None, kind=BY_RUNS)
    return ordered[run_starts(ordered)]


def distinct_rows(*columns: AnyArray) -> tuple[AnyArray, ...]:
    """Return the distinct rows of columns, ascending by the first column, then by the next."""
    order = np.lexsort(columns[::-1])
    ordered = [column[order] for column in columns]
    begins = run_starts(*ordered)
    return tuple(column[begins] for column in ordered)


def sum_of(values: AnyArray | Iterable[int]) -> int:
    """Return the sum of whole numbers (counts, bytes, ns), exact; beyond int64 it stays at its limits. Sums
    of a file's times are made by this, `added_up` or `add_at`: three of a century do not fit int64.
    """
    if not isinstance(values, np.ndarray):
        total = sum(values)
    elif _peak(values) * len(values) < 1 << 63:
        return int(values.sum())
    else:
        total = (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())
    return min(max(total, MIN), MAX)


def mean_of(values: I64) -> float:
    """Return the mean of numbers, exact where their sum fits int64."""
    total = sum_of(values)
    return total / len(values) if MIN < total < MAX else float(values.mean())


def means_of(totals: I64, counts: I64) -> F64:
    """Return totals by counts, NaN where a total stays at the limit: of what lies beyond nothing is known."""
    return np.where(totals < MAX, totals / np.maximum(counts, 1), np.nan)


def added_up(values: I64, begins: I64) -> I64:
    """Return the sums of values from each beginning to the next, exact; beyond int64 they stay at its limits.
    Where numpy's own sums could wrap around, the upper and lower halves of the values are added up apart:
    [2^62, 2^62] is [2^30, 2^30] and [0, 0], of which the sum of the first does not fit 31 bits any more.
    """
    if _peak(values) * len(values) < 1 << 63:
        return np.asarray(np.add.reduceat(values, begins), np.int64)
    return of_halves(*(np.add.reduceat(half, begins) for half in (values >> 32, values & 0xFFFFFFFF)))


def of_halves(high: I64, low: I64) -> I64:
    """Return high * 2^32 + low, which are sums of halves of numbers; beyond int64 it stays at its limits."""
    high = high + (low >> 32)
    sums = (high << 32) + (low & 0xFFFFFFFF)
    return np.where(high >= 1 << 31, MAX, np.where(high < -(1 << 31), MIN, sums))


def running_sums(values: I64) -> I64:
    """Return the sums up to each value; beyond int64 they stay at its limits."""
    if _peak(values) * len(values) < 1 << 63:
        return np.cumsum(values, dtype=np.int64)
    return of_halves(np.cumsum(values >> 32), np.cumsum(values & 0xFFFFFFFF))


def sums_between(values: I64, low: I64, high: I64) -> I64:
    """Return the sum of values[low:high] for each pair; beyond int64 it stays at its limits."""
    if _peak(values) * len(values) < 1 << 63:
        before = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
        return np.asarray(before[high] - before[low], np.int64)
    halves = (np.concatenate([[0], np.cumsum(half)]) for half in (values >> 32, values & 0xFFFFFFFF))
    return of_halves(*(sums[high] - sums[low] for sums in halves))


def add_at(sums: I64, at: AnyArray, values: I64) -> None:
    """Add each value to the sum that it belongs to; beyond int64 sums stay at its limits."""
    if not len(values):
        return
    if _peak(values) * len(values) + _peak(sums) < 1 << 63:
        np.add.at(sums, at, values)
        return
    order = np.argsort(at, kind="stable")
    begins = run_starts(at[order])
    own, more = at[order[begins]], added_up(values[order], begins)
    before = sums[own]
    sums[own] = of_halves((before >> 32) + (more >> 32), (before & 0xFFFFFFFF) + (more & 0xFFFFFFFF))


def added_upwards(own: I64, parent: AnyArray) -> I64:
    """Return for each node of a tree the sum of its value and of all below it; -1 is the parent of a root."""
    total, at = np.zeros(len(own), np.int64), np.flatnonzero(own)
    values = own[at]
    while len(at):
        add_at(total, at, values)
        at = parent[at].astype(np.int64)
        at, values = at[at >= 0], values[at >= 0]
    return total


def greatest_upwards(own: I64, parent: AnyArray) -> I64:
    """Return for each node of a tree the greatest of its value and of all below it; values are at least 0."""
    greatest, at = np.zeros(len(own), np.int64), np.flatnonzero(own)
    values = own[at]
    while len(at):
        np.maximum.at(greatest, at, values)
        at = parent[at].astype(np.int64)
        at, values = at[at >= 0], values[at >= 0]
    return greatest


def _peak(values: AnyArray) -> int:
    return max(int(values.max()), -int(values.min())) if len(values) else 0


def group_numbers(*ordered: AnyArray) -> I64:
    """Return for entries in order the number of their distinct key, ascending from 0."""
    changed = np.zeros(len(ordered[0]), np.bool_)
    for key in ordered:
        changed[1:] |= key[1:] != key[:-1]
    return np.cumsum(changed)


def sorted_groups(keys: Sequence[AnyArray], within: Sequence[AnyArray]) -> tuple[I64, I64]:
    """Return (order, group): the order by `keys`, then by `within`, the first key the most significant; and
    for each entry of that order the number, ascending from 0, of its distinct `keys`.
    """
    n = len(keys[0])
    order = np.lexsort((*within[::-1], *keys[::-1])) if n else np.zeros(0, np.int64)
    return order, group_numbers(*(key[order] for key in keys))


def run_starts(*ordered: AnyArray) -> I64:
    """Return where each run of equal keys begins."""
    n = len(ordered[0])
    begins = np.zeros(n, np.bool_)
    begins[:1] = True
    for key in ordered:
        begins[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(begins)


@dataclass(frozen=True, eq=False)
class Intervals:
    """Sorted, disjoint, non-empty intervals; touching ones are one."""

    starts: I64
    ends: I64

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def length(self) -> int:
        return int((self.ends - self.starts).sum())  # disjoint: less than from the first to the last

    def clipped(self, start: int, end: int) -> Intervals:
        if len(self) and start <= self.starts[0] and self.ends[-1] <= end:
            return self
        low, high = np.searchsorted(self.ends, start, "right"), np.searchsorted(self.starts, end)
        if low >= high or start >= end:
            return EMPTY
        return Intervals(np.maximum(self.starts[low:high], start), np.minimum(self.ends[low:high], end))

    def intersection(self, other: Intervals) -> Intervals:
        # Each meets those of the other set, in a row, that end behind its start and start before its end.
        few, many = (self, other) if len(self) < len(other) else (other, self)
        first = np.searchsorted(many.ends, few.starts, "right")
        count = np.searchsorted(many.starts, few.ends) - first
        at, of = concatenated_ranges(first, count), np.repeat(np.arange(len(few)), count)
        return Intervals(np.maximum(many.starts[at], few.starts[of]), np.minimum(many.ends[at], few.ends[of]))

    def union(self, *others: Intervals) -> Intervals:
        some = [one for one in (self, *others) if len(one)]
        if len(some) < 2:
            return some[0] if some else EMPTY
        return merge(*(np.concatenate(edges) for edges in zip(*((one.starts, one.ends) for one in some))))

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
    """Return the union of any intervals; empty and reversed ones are left out.

    Starts and ends are sorted apart: nothing is open right before a start where as many intervals have ended
    as began before it. [0, 9), [2, 3) and [12, 15) start at 0, 2, 12 and end at 3, 9, 15: before 2 one began
    and none had ended, before 12 two began and two had ended.
    """
    keep = ends > starts
    if not keep.all():
        starts, ends = starts[keep], ends[keep]
    if not len(starts):
        return EMPTY
    # One by one: what was not in order is gone when the next is sorted.
    starts = np.sort(starts, kind=BY_RUNS).astype(np.int64, copy=False)
    ends = np.sort(ends, kind=BY_RUNS).astype(np.int64, copy=False)
    gaps = np.flatnonzero(starts[1:] > ends[:-1])
    return Intervals(np.append(starts[0], starts[gaps + 1]), np.append(ends[gaps], ends[-1]))
