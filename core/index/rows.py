"""Rows of a lane: which slice stands in which row, inside which other slice, and with how much time of its
own.

Input is one lane's slices by (start, -duration, ordinal). Where slices nest, all of it follows from how
many are open at each start: that is the depth, the row, and the key under which the parent is found,
without a loop. Slices that overlap without nesting are rare: an overlapped slice is cut off, for the count
only, where its first overlapper begins, after which everything nests; only slices that begin between there
and the end of the overlapped one (a *conflict window*) are walked one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ..ingest.columns import I64, U32, AnyArray
from .columns_out import smallest_unsigned
from .levels import Families, open_levels
from .order import by_small_key, concatenated_ranges

STRETCH = 1 << 16
"""Slices of a lane that are treated at once, where none is open between them."""
_MOST_RUNS = 1 << 16
"""Rows of so many stretches together are brought together run by run."""
_FREE_BITS = 4096
"""Rows per word of the map of free rows."""
_ALL_FREE = (1 << _FREE_BITS) - 1

Flags = npt.NDArray[np.bool_]
I32 = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Rows:
    """Where a lane's n slices stand; all indices speak of the input order."""

    parent: I64 | I32  # innermost open slice that contains this one whole, -1 if none
    row: AnyArray
    overlap: Flags  # overlaps an open slice without nesting in it
    self_time: I64  # ns, duration minus the union of the direct children
    order: I64 | U32  # indices by (row, start): the order of positions
    depth: int  # greatest number of slices open at once, the new one included


def assign(start: I64, duration: I64) -> Rows:
    """Assign rows to one lane's slices, sorted by (start, -duration, ordinal); start + duration must fit
    int64.
    """
    n = len(start)
    if n <= 1:
        zeros = np.zeros(n, np.int64)
        return Rows(zeros - 1, zeros, np.zeros(n, np.bool_), duration.copy(), zeros, n)
    if _one_after_the_other(start, duration):
        parent, row = np.broadcast_to(np.int64(-1), n), np.broadcast_to(np.int64(0), n)
        return Rows(parent, row, _none(n), duration, np.arange(n, dtype=np.uint32), 1)
    if n > STRETCH and len(cuts := _cuts(start, duration)) > 2:
        return _by_stretches(start, duration, cuts)
    end = start + duration
    zero_length = np.flatnonzero(duration == 0)
    level = open_levels(start, end, zero_length)
    depth = int(level.max())
    order = by_small_key(level, depth)
    families = Families(level, order)
    if families.nest(end):
        self_time = families.self_time(duration)
        level -= 1
        return Rows(families.parent(), level, _none(n), self_time, order, depth)
    del level, order, families
    parent, row, overlap = _with_overlaps(start, end, zero_length)
    siblings = np.argsort(parent, kind="stable")
    self_time = _self_time(duration, start, end, parent, siblings)
    return Rows(parent, row, overlap, self_time, by_small_key(row, int(row.max())), depth)


def _none(n: int) -> Flags:
    """Return that no slice overlaps, which takes no memory."""
    return np.broadcast_to(np.bool_(False), n)


def _one_after_the_other(start: I64, duration: I64) -> bool:
    """Tell whether no slice begins before the one before it has ended."""
    for at in range(0, len(start) - 1, STRETCH):
        before = slice(at, min(at + STRETCH, len(start) - 1))
        if bool((start[before] + duration[before] > start[at + 1 : before.stop + 1]).any()):
            return False
    return True


def _cuts(start: I64, duration: I64) -> list[int]:
    """Return where stretches of about STRETCH slices begin, and the end: nothing is open where one begins."""
    cuts, reach = [0], np.iinfo(np.int64).min
    for at in range(0, len(start), STRETCH):
        some = slice(at, at + STRETCH)
        before = np.maximum.accumulate(np.append(reach, start[some] + duration[some]))
        free = np.flatnonzero(before[:-1] <= start[some])
        # A slice of length zero that ends where it begins does not lie in the one that begins there.
        free = free[start[some][free] > (start[np.maximum(free + at - 1, 0)])]
        if len(free) and at:
            cuts.append(at + int(free[0]))
        reach = before[-1]
    return [*cuts, len(start)]


def _by_stretches(start: I64, duration: I64, cuts: list[int]) -> Rows:
    """Assign rows stretch by stretch, which takes less memory at a time."""
    n = len(start)
    parent, self_time, orders = np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n, np.uint32)
    rows: list[AnyArray] = []
    overlaps: list[Flags] = []
    counts: list[I64] = []  # per stretch, of each row
    depth = 0
    for a, b in pairwise(cuts):
        some = assign(start[a:b], duration[a:b])
        parent[a:b] = np.where(some.parent >= 0, some.parent + a, -1)
        self_time[a:b] = some.self_time
        np.add(some.order, a, out=orders[a:b], casting="unsafe")
        counts.append(np.bincount(some.row))
        rows.append(some.row.astype(smallest_unsigned(len(counts[-1]))))
        overlaps.append(some.overlap if bool(some.overlap.any()) else _none(b - a))
        depth = max(depth, some.depth)
    row = np.concatenate(rows)
    overlap = np.concatenate(overlaps) if any(map(np.any, overlaps)) else _none(n)
    if sum(map(len, counts)) > _MOST_RUNS:
        order = by_small_key(row, int(row.max())).astype(np.uint32)
        return Rows(parent, row, overlap, self_time, order, depth)
    runs: list[tuple[int, int, int]] = []  # (row, where its slices begin in `orders`, and end)
    for at, own in zip(cuts, counts):
        ends = np.cumsum(own) + at
        runs += zip(range(len(own)), (ends - own).tolist(), ends.tolist())
    runs.sort()
    order = np.concatenate([orders[a:b] for _, a, b in runs])
    return Rows(parent, row, overlap, self_time, order, depth)


def _self_time(duration: I64, start: I64, end: I64, parent: I64, siblings: I64) -> I64:
    """Return duration minus the union of direct children; `siblings` has each parent's children together,
    in order.
    """
    of = parent[siblings]
    top = int(np.searchsorted(of >= 0, True)) if of[0] < 0 else 0
    of, child = of[top:], siblings[top:]
    self_time = duration.copy()
    if not len(child):
        return self_time
    first = np.flatnonzero(np.concatenate(([True], of[1:] != of[:-1])))
    self_time[of[first]] -= np.add.reduceat(duration[child], first)
    clash = (end[child[:-1]] > start[child[1:]]) & (of[1:] == of[:-1])
    if clash.any():
        bounds = np.append(first, len(child))
        for group in np.unique(np.searchsorted(first, np.flatnonzero(clash), side="right") - 1).tolist():
            family = child[bounds[group] : bounds[group + 1]]
            reach = np.maximum.accumulate(end[family])
            begin = start[family]
            begin[1:] = np.maximum(begin[1:], reach[:-1])
            owner = of[bounds[group]]
            self_time[owner] = duration[owner] - np.maximum(reach - begin, 0).sum()
    return self_time


def _with_overlaps(start: I64, end: I64, zero_length: I64) -> tuple[I64, I64, Flags]:
    """Return parent, row and overlap flag of a lane in which some slices overlap without nesting."""
    n = len(start)
    victim = _overlapped(start, end)
    overlapper = _first_greater(end, victim)
    cut = end.copy()
    cut[victim] = start[overlapper]
    level = open_levels(start, cut, zero_length)
    parent = Families(level, by_small_key(level, int(level.max()))).parent()
    del cut
    first, last = _windows(start, start[overlapper], end[victim])
    row = np.full(n, -1, np.int64)
    overlap = np.zeros(n, np.bool_)
    walk = _Walk(start, end, parent, row, overlap)
    for a, b in zip(first.tolist(), last.tolist()):
        walk.window(a, b)
    # Outside the windows a slice stands just below its parent: a fixed distance from the next ancestor that
    # was walked, or from the top.
    inside = np.zeros(n, np.bool_)
    inside[concatenated_ranges(first, last - first)] = True
    anchor = np.where(inside | (parent < 0), np.arange(n), parent)
    while True:
        further = anchor[anchor]
        if bool((further == anchor).all()):
            break
        anchor = further
    row[~inside & (parent < 0)] = 0
    return parent, row[anchor] + level - level[anchor], overlap


def _overlapped(start: I64, end: I64) -> I64:
    """Return the slices that a later one overlaps: it begins before their end and ends after it."""
    n = len(start)
    stop = np.searchsorted(start, end, side="left")
    inner = np.flatnonzero(stop > np.arange(1, n + 1))
    size = stop[inner] - inner - 1
    power = np.frexp(size.astype(np.float64))[1] - 1
    by_power = by_small_key(power, 64)
    groups = np.searchsorted(power[by_power], np.arange(int(power.max(initial=0)) + 2))
    found = [np.zeros(0, np.int64)]
    greatest = end  # over 1 << k slices from each on
    for k in range(len(groups) - 1):
        some = inner[by_power[groups[k] : groups[k + 1]]]
        after = np.maximum(greatest[some + 1], greatest[stop[some] - (1 << k)])
        found.append(some[after > end[some]])
        greatest = np.maximum(greatest[: -(1 << k)], greatest[1 << k :])
    return np.sort(np.concatenate(found))


def _first_greater(value: I64, place: I64) -> I64:
    """Return for each place the first later one with a greater value, which must exist: up and down a tree
    of maxima.
    """
    lowest = np.iinfo(np.int64).min
    tree = [value]
    while len(tree[-1]) > 1:
        below = tree[-1] if len(tree[-1]) % 2 == 0 else np.append(tree[-1], lowest)
        tree[-1] = below
        tree.append(np.maximum(below[::2], below[1::2]))
    limit = value[place]
    node = place + 1
    height = np.full(len(place), -1)
    climbing = np.arange(len(place))
    for k, maxima in enumerate(tree):
        at = node[climbing]
        odd = (at & 1 == 1) | (k == len(tree) - 1)
        hit = odd & (maxima[np.minimum(at, len(maxima) - 1)] > limit[climbing])
        height[climbing[hit]] = k
        node[climbing] = np.where(hit, at, (at + odd) >> 1)
        climbing = climbing[~hit]
    for k in range(len(tree) - 1, 0, -1):
        down = np.flatnonzero(height >= k)
        left = node[down] * 2
        node[down] = np.where(tree[k - 1][left] > limit[down], left, left + 1)
    return node


def _windows(start: I64, begin: I64, end: I64) -> tuple[I64, I64]:
    """Return the index ranges of slices that begin in the union of the intervals [begin, end)."""
    order = np.argsort(begin, kind="stable")
    first = np.searchsorted(start, begin[order], side="left")
    last = np.maximum.accumulate(np.searchsorted(start, end[order], side="left"))
    new = np.flatnonzero(np.concatenate(([True], first[1:] > last[:-1])))
    return first[new], last[np.append(new[1:], len(last)) - 1]


class _FreeRows:
    """Which rows are free, as wide integers: the lowest free one from a row on is found without a scan."""

    def __init__(self) -> None:
        self.words: list[int] = []

    def lowest(self, row: int) -> int:
        word, bit = divmod(row, _FREE_BITS)
        while word < len(self.words):
            free = self.words[word] >> bit
            if free:
                return word * _FREE_BITS + bit + (free & -free).bit_length() - 1
            word, bit = word + 1, 0
        return max(row, word * _FREE_BITS)

    def take(self, row: int) -> None:
        word, bit = divmod(row, _FREE_BITS)
        while word >= len(self.words):
            self.words.append(_ALL_FREE)
        self.words[word] &= ~(1 << bit)

    def release(self, row: int) -> None:
        word, bit = divmod(row, _FREE_BITS)
        self.words[word] |= 1 << bit


class _Walk:
    """Places the slices of conflict windows one by one, by the definition; fills parent, row and overlap."""

    def __init__(self, start: I64, end: I64, parent: I64, row: I64, overlap: Flags) -> None:
        self.start, self.end = start, end
        self.parent, self.row, self.overlap = parent, row, overlap

    def window(self, first: int, last: int) -> None:
        """Place the slices first..last-1; all before them have their parents, and rows where they were
        walked.
        """
        chain = self._open_before(first)  # outermost first; at a window's start what is open nests
        free = _FreeRows()
        stack: list[tuple[int, int, int]] = []  # (end, slice, row), ends falling: whom a later one may lie in
        for slice_, row in chain:
            free.take(row)
            stack.append((int(self.end[slice_]), slice_, row))
        busy = [(end, row) for end, _, row in reversed(stack)]  # a heap: ascending
        parents, rows, overlaps = [], [], []
        starts, ends = self.start[first:last].tolist(), self.end[first:last].tolist()
        for slice_, (start, end) in enumerate(zip(starts, ends), first):
            while busy and busy[0][0] <= start:
                free.release(heappop(busy)[1])
            overlaps.append(bool(busy) and busy[0][0] < end)
            least = end if end > start else end + 1  # a slice of length zero needs one that is still open
            while stack and stack[-1][0] < least:
                stack.pop()
            _, parent, above = stack[-1] if stack else (0, -1, -1)
            row = free.lowest(above + 1)
            parents.append(parent)
            rows.append(row)
            if end > start:
                free.take(row)
                heappush(busy, (end, row))
                stack.append((end, slice_, row))
        self.parent[first:last] = parents
        self.row[first:last] = rows
        self.overlap[first:last] = overlaps

    def _open_before(self, first: int) -> list[tuple[int, int]]:
        """Return (slice, row) of what is open when slice `first` begins, outermost first."""
        time, slice_ = int(self.start[first]), first - 1
        while slice_ >= 0 and self.end[slice_] <= time:
            slice_ = int(self.parent[slice_])
        chain: list[int] = []
        while slice_ >= 0:
            chain.append(slice_)
            slice_ = int(self.parent[slice_])
        chain.reverse()
        rows: list[tuple[int, int]] = []
        row = -1
        for slice_ in chain:
            known = int(self.row[slice_])
            row = known if known >= 0 else row + 1
            self.row[slice_] = row
            rows.append((slice_, row))
        return rows
