"""What a row shows in each cell of a viewport, exactly, in O(cells x log n); reductions over many ranges of
one row at once, through the row's pyramid, in O(ranges x log n).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from ..base.arrays import F64, I64, AnyArray, concatenated_ranges
from ..index.format import BLOCK, FANOUT, LONG, NO_SUMS
from ..index.store import Index

Reduce: TypeAlias = Callable[[int, I64, I64, I64], None]
"""Called with (level, which ranges, first entries, last entries + 1): fold these entries of a level in.
Level 0 are the row's own elements, level 1 one entry per BLOCK of them, level k one per FANOUT of level
k-1."""


def level_sizes(count: int) -> list[int]:
    """Return the number of entries of each pyramid level of a row, finest first; none up to BLOCK
    elements.
    """
    if count <= BLOCK:
        return []
    sizes = [-(-count // BLOCK)]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // FANOUT))
    return sizes


def ragged(first: I64, last: I64) -> tuple[I64, I64]:
    """Return all integers of the (non-empty) ranges one after another, and where each range begins there."""
    lengths = last - first
    return concatenated_ranges(first, lengths), np.cumsum(lengths) - lengths


def visit(levels: int, first: I64, last: I64, reduce: Reduce, lowest: int = 0) -> None:
    """Cover each range [first, last) of the lowest level's entries by ones as coarse as fit, and reduce."""
    # Slices 10 to 1,199 of a row are the slices 10 to 63 and 1,152 to 1,199, and between them the blocks 1 to
    # 17 of 64 each: 119 entries in place of 1,190. Up to 199,999 it would be the same slices at the left,
    # blocks 1 to 15 and 3,120 to 3,124, of the next level 1 to 15 and 192 to 194, and 1 to 11 of the one
    # after. So each level costs a piece at either end, shorter than one entry of the next, for all ranges at
    # once.
    which = (last > first).nonzero()[0]
    low, high = first[which], last[which]
    for level in range(lowest, levels + 1):
        size = BLOCK if level == 0 else FANOUT
        if level == levels:
            _emit(level, which, low, high, reduce)
            return
        up, down = -(-low // size), high // size
        whole = up < down
        _emit(level, which, low, np.where(whole, up * size, high), reduce)
        right = np.where(whole, down * size, high)
        _emit(level, which, right, high, reduce)
        which, low, high = which[whole], up[whole], down[whole]
        if not len(which):
            return


def _emit(level: int, which: I64, first: I64, last: I64, reduce: Reduce) -> None:
    some = last > first
    if some.any():
        reduce(level, which[some], first[some], last[some])


def first_where(hits: AnyArray, begins: I64) -> I64:
    """Return the first true entry at or after each begin (the caller knows there is one in its segment)."""
    at = hits.nonzero()[0]
    firsts: I64 = at[at.searchsorted(begins)]
    return firsts


def local_categories(categories: I64, raw: AnyArray) -> I64:
    """Return the index of each category number in the row's own (ascending) list of categories.

    One that the list lacks, as only a crafted index has it, counts as the list's last.
    """
    if not len(raw) or len(categories) == 1:
        return np.zeros(len(raw), np.int64)
    last = int(categories[-1])
    if last < 1 << 16:
        table = np.full(last + 1, len(categories) - 1, np.int64)
        table[categories] = np.arange(len(categories))
        mapped: I64 = table.take(raw, mode="clip")
        return mapped
    at = np.searchsorted(categories, raw.astype(np.int64)).astype(np.int64)
    return np.minimum(at, len(categories) - 1)


MANY = 1 << 20
"""The largest table of (cell, category) in which sums are made; beyond it the slices are sorted."""
LOWEST, GREATEST, HALF = -(1 << 63), (1 << 63) - 1, 1 << 62
_NO_NS = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Cells:
    """A row of slices seen through a viewport: arrays of length `width`, one entry per cell.

    A slice belongs to every cell [bounds[i], bounds[i+1]) that it touches; a zero-length slice to the one
    that holds its stamp. A cell with count > 0 is never blank.
    """

    count: I64  # slices touching the cell
    longest: I64  # index *within the row* of the longest one (by full duration; the first of equals), -1
    category: I64  # index of the category with most ns inside the cell (ties: the longest's), -1 if empty
    busy: I64  # ns of the cell covered by slices


@dataclass(frozen=True, eq=False)
class SampleCells:
    """A counter series seen through a viewport; step-wise: a value holds until the next sample."""

    count: I64  # samples inside the cell
    low: F64  # least and greatest value that holds anywhere in the cell; nan before the first sample
    high: F64
    last: F64  # value at the cell's end


@dataclass(frozen=True, eq=False)
class InstantCells:
    """Instants seen through a viewport."""

    count: I64
    first: I64  # index within the row of the first instant of the cell, -1 if none


class Span(NamedTuple):
    """Cells [left, right) of a row that are drawn as one run: cells that one slice fills alone, or
    neighbouring cells with several slices each and the same dominant category.
    """

    left: int
    right: int
    category: int
    at: int  # index within the row: the slice itself, or the longest of those it stands for
    slices: int  # how many it stands for (in the fullest cell)
    whole: bool  # True: one single slice


class _Touch(NamedTuple):
    """Which slices of the row lie in each cell."""

    begin: int  # first position of the row
    first: I64  # W + 1: slices of the row that start before each edge
    starting: I64  # W: slices that start in each cell
    crossing: I64  # cells that the slice before `first` reaches into from the left
    crossing_ns: I64  # its duration
    inside: I64  # how much of it lies inside the cell
    reaching: I64  # cells whose last slice reaches past the right edge
    beyond: I64  # by how many ns


def clipped_edges(edges: Sequence[int] | I64, offset: int = 0) -> I64:
    """Return ascending trace-time cell edges as lane time (`edge - offset`), held within int64."""
    try:
        bounds = np.asarray(edges, np.int64)
    except OverflowError:
        bounds = None
    if bounds is not None and (not offset or not len(bounds)):
        return bounds
    if bounds is not None and abs(offset) < HALF and bounds[0] > -HALF and bounds[-1] < HALF:
        return bounds - offset
    return np.array([min(max(int(edge) - offset, LOWEST), GREATEST) for edge in edges], np.int64)


def row_cells(
    index: Index,
    row_number: int,
    edges: Sequence[int] | I64,
    offset: int = 0,
    leaving_out: Collection[int] = (),
) -> Cells:
    """Return what W cells of a row of slices show; categories in `leaving_out` count as no busy time.

    `edges`: W + 1 ascending times in trace time, ns, of any magnitude; `offset`: trace time - lane time.
    """
    row = index.rows[row_number]
    bounds = clipped_edges(edges, offset)
    width, begin, slices = len(bounds) - 1, int(row["first"]), int(row["count"])
    if width <= 0 or not slices or int(row["start"]) >= bounds[-1] or int(row["end"]) < bounds[0]:
        return _nothing(max(width, 0))
    starts = index.column("slices.start")[begin : begin + slices]
    low, high = starts.searchsorted(bounds[::width], "left").tolist()
    categories = categories_of(index, row)
    if low == high:
        return _crossed(index, begin + low - 1, low - 1, bounds, categories, leaving_out)
    touch = _touched(index, begin, starts, bounds)
    dense = high - low > BLOCK * (width + 1)
    blocks = EdgeBlocks(index, row, touch.first) if dense else None
    ns = _NO_NS if dense else index.durations_between(begin + low, begin + high)
    longest, longest_ns = longest_of(blocks) if blocks else _longest_few(touch, ns)
    better = touch.crossing_ns >= longest_ns[touch.crossing]  # it stands first: wins a tie
    crossed = touch.crossing[better]
    longest[crossed] = touch.first[crossed] - 1
    count = touch.starting.copy()
    count[touch.crossing] += 1
    category = np.full(width, -1, np.int64)
    some = count.nonzero()[0]
    if len(categories) == 1 and not dense:
        category[some] = categories[0]
        is_left_out = int(categories[0]) in leaving_out
        return Cells(count, longest, category, _nothing(width).busy if is_left_out else _spent(touch, ns))
    shares = _edge_shares(index, touch, categories)
    of_longest = local_categories(categories, index.column("slices.category")[begin + longest[some]])
    if width * len(categories) > MANY or (dense and int(row["sums"]) == NO_SUMS):
        best, busy = _dominant_of_many(index, touch, categories, shares, some, of_longest)
    else:
        spent = spent_in(blocks, categories) if blocks else _spent_few(index, touch, categories, ns)
        np.add.at(spent.reshape(-1), shares[0], shares[1])
        if leaving_out:
            spent[:, [number in leaving_out for number in categories.tolist()]] = 0
        spent_some, lines = spent[some], np.arange(len(some))
        most = spent_some.argmax(axis=1)
        tied = spent_some[lines, of_longest] == spent_some[lines, most]
        best, busy = np.where(tied, of_longest, most), spent.sum(axis=1)
    category[some] = categories[best]
    return Cells(count, longest, category, busy)


@lru_cache(maxsize=16)
def _nothing(width: int) -> Cells:
    """Return the cells of a row without slices: arrays that nobody may write to."""
    none, empty = np.zeros(width, np.int64), np.full(width, -1, np.int64)
    none.flags.writeable = empty.flags.writeable = False
    return Cells(none, empty, empty, none)


def categories_of(index: Index, row: np.void) -> I64:
    """Return the categories of a row's slices by number, ascending; none of rows of other things."""
    begin = int(row["categories"])
    categories: I64 = index.column("row_categories")[begin : begin + int(row["category_count"])]
    return categories.astype(np.int64)


def has_categories(index: Index, row_number: int, categories: Collection[int]) -> bool:
    return bool(categories) and not set(categories).isdisjoint(
        categories_of(index, index.rows[row_number]).tolist()
    )


def _crossed(
    index: Index, position: int, at: int, bounds: I64, categories: I64, leaving_out: Collection[int]
) -> Cells:
    """Return the cells of a window in which no slice starts: of the one before it, as far as it reaches."""
    width = len(bounds) - 1
    if at < 0:
        return _nothing(width)
    end = min(int(index.column("slices.start")[position]) + int(index.duration([position])[0]), GREATEST)
    cells = int(bounds[:-1].searchsorted(end, "left"))  # those that begin before it ends
    if not cells:
        return _nothing(width)
    local = local_categories(categories, index.column("slices.category")[position : position + 1])
    number = int(categories[local[0]])
    count, busy = np.zeros(width, np.int64), np.zeros(width, np.int64)
    longest, category = np.full(width, -1, np.int64), np.full(width, -1, np.int64)
    count[:cells], longest[:cells], category[:cells] = 1, at, number
    if number not in leaving_out:
        np.subtract(bounds[1 : cells + 1], bounds[:cells], out=busy[:cells])
        busy[cells - 1] = min(end, int(bounds[cells])) - int(bounds[cells - 1])
    return Cells(count, longest, category, busy)


def _touched(index: Index, begin: int, starts: AnyArray, bounds: I64) -> _Touch:
    first = starts.searchsorted(bounds, "left").astype(np.int64)
    before = np.maximum(first - 1, 0)
    ns = index.duration(begin + before)
    ends = np.where(first > 0, starts[before] + ns, LOWEST)  # end of the last slice before each edge
    left, right = bounds[:-1], bounds[1:]
    starting = first[1:] - first[:-1]
    crossing = (ends[:-1] > left).nonzero()[0]
    inside = np.minimum(ends[crossing], right[crossing]) - left[crossing]
    reaching = ((starting > 0) & (ends[1:] > right)).nonzero()[0]
    beyond = ends[1:][reaching] - right[reaching]
    return _Touch(begin, first, starting, crossing, ns[crossing], inside, reaching, beyond)


def _edge_shares(index: Index, touch: _Touch, categories: I64) -> tuple[I64, I64]:
    """Return what slices that cross a cell's edges change of the sums over slices starting in the cells.

    As (cell x categories + category, ns) pairs: the crossing one's part inside is added, the part of the last
    one that lies beyond the right edge is taken off.
    """
    slices_at = np.concatenate((touch.first[touch.crossing], touch.first[1:][touch.reaching]))
    local = local_categories(categories, index.column("slices.category")[touch.begin - 1 + slices_at])
    ns = np.concatenate((touch.inside, -touch.beyond))
    return np.concatenate((touch.crossing, touch.reaching)) * len(categories) + local, ns


def _longest_few(touch: _Touch, ns: I64) -> tuple[I64, I64]:
    """Find the longest slice starting in each cell from the durations of the window's slices."""
    width, low = len(touch.starting), touch.first[0]
    longest, longest_ns = np.full(width, -1, np.int64), np.full(width, -1, np.int64)
    cells = touch.starting.nonzero()[0]
    begins = touch.first[cells] - low
    most = np.maximum.reduceat(ns, begins)
    hits = ns == most.repeat(touch.starting[cells])
    longest[cells], longest_ns[cells] = first_where(hits, begins) + low, most
    return longest, longest_ns


def _spent(touch: _Touch, ns: I64) -> I64:
    """Return how many ns of each cell slices take, whatever their category."""
    before = np.zeros(len(ns) + 1, np.int64)
    np.cumsum(ns, out=before[1:])
    until = before[touch.first - touch.first[0]]
    spent: I64 = until[1:] - until[:-1]
    spent[touch.crossing] += touch.inside
    spent[touch.reaching] -= touch.beyond
    return spent


def _spent_few(index: Index, touch: _Touch, categories: I64, ns: I64) -> I64:
    """Sum the full durations of the slices starting in each cell, by category, one by one."""
    width, kinds = len(touch.starting), len(categories)
    spent = np.zeros((width, kinds), np.int64)
    low, high = touch.begin + int(touch.first[0]), touch.begin + int(touch.first[-1])
    cells = np.arange(0, width * kinds, kinds).repeat(touch.starting)
    local = local_categories(categories, index.column("slices.category")[low:high])
    np.add.at(spent.reshape(-1), cells + local, ns)
    return spent


def _dominant_of_many(
    index: Index, touch: _Touch, categories: I64, shares: tuple[I64, I64], some: I64, of_longest: I64
) -> tuple[I64, I64]:
    """Return (dominant category of the cells in `some`, busy ns of all) where a table of all categories per
    cell would be too large: from the window's slices, sorted by cell and category.
    """
    width, kinds = len(touch.starting), len(categories)
    low, high = touch.begin + int(touch.first[0]), touch.begin + int(touch.first[-1])
    cells = np.arange(width).repeat(touch.starting)
    local = local_categories(categories, index.column("slices.category")[low:high])
    keys = np.concatenate((cells * kinds + local, shares[0]))
    pairs, number = np.unique(keys, return_inverse=True)
    spent = np.zeros(len(pairs), np.int64)
    np.add.at(spent, number, np.concatenate((index.durations_between(low, high), shares[1])))
    busy = np.zeros(width, np.int64)
    np.add.at(busy, pairs // kinds, spent)
    begins = np.searchsorted(pairs, some * kinds)
    most = np.maximum.reduceat(spent, begins) if len(some) else np.empty(0, np.int64)
    hits = spent == np.repeat(most, np.diff(np.append(begins, len(pairs))))
    best = pairs[first_where(hits, begins)] % kinds
    tied = spent[np.searchsorted(pairs, some * kinds + of_longest)] == most
    return np.where(tied, of_longest, best), busy


FEW_CATEGORIES = 8
_COLUMNS = np.arange(BLOCK)


class EdgeBlocks:
    """The durations of the blocks that the cell edges fall into: one line of BLOCK slices per edge.

    `first`: slices of the row that start before each of the W + 1 edges.
    """

    def __init__(self, index: Index, row: np.void, first: I64) -> None:
        self.index, self.row, self.first = index, row, first
        self.begin, self.count = int(row["first"]), int(row["count"])
        self.block = first // BLOCK
        self.inside = (first - self.block * BLOCK)[:, None]  # index of the edge in its block
        self.before = self.inside > _COLUMNS  # slices of the block that start before the edge
        raw = self.take(index.column("slices.duration"))
        self.ns: I64 = raw.astype(np.int64)
        if (raw == LONG).any():
            positions = self.begin + self.block[:, None] * BLOCK + _COLUMNS
            self.ns = index.resolve_long(raw, positions)

    def take(self, column: AnyArray) -> AnyArray:
        """Return the edges' blocks of a column of slices; 0 behind the row's end."""
        part = column[self.begin : self.begin + self.count]
        full = self.count // BLOCK
        lines: AnyArray = part[: full * BLOCK].reshape(full, BLOCK)[np.minimum(self.block, full - 1)]
        tail = self.block >= full
        if tail.any():
            rest = np.zeros(BLOCK, column.dtype)
            rest[: self.count - full * BLOCK] = part[full * BLOCK :]
            lines[tail] = rest
        return lines


def longest_of(edges: EdgeBlocks) -> tuple[I64, I64]:
    """Return (index within the row, duration) of the longest slice starting in each cell: of equals the
    first; -1 where none starts.
    """
    index, block, first = edges.index, edges.block, edges.first
    lines = np.arange(len(first) - 1)
    same = (block[1:] == block[:-1])[:, None]
    after = ~edges.before[:-1] & (~same | edges.before[1:])
    left = np.where(after, edges.ns[:-1], -1)
    best = left.argmax(axis=1)
    longest_ns = left[lines, best]
    longest = np.where(longest_ns >= 0, block[:-1] * BLOCK + best, -1)

    sizes = level_sizes(edges.count)
    base = int(edges.row["pyramid"])
    bases = [0, *(base + sum(sizes[:k]) for k in range(len(sizes)))]
    pyramid = index.column("pyramid.longest")

    def fold(level: int, which: I64, begin: I64, end: I64) -> None:
        entries, begins = ragged(begin, end)
        positions = pyramid[bases[level] + entries].astype(np.int64)
        ns = index.duration(positions)
        most = np.maximum.reduceat(ns, begins)
        hits = ns == np.repeat(most, end - begin)
        where = positions[first_where(hits, begins)] - edges.begin
        old = longest_ns[which]
        better = (most > old) | ((most == old) & (where < longest[which]))
        longest[which[better]], longest_ns[which[better]] = where[better], most[better]

    visit(len(sizes), block[:-1] + 1, block[1:], fold, lowest=1)
    right = np.where(edges.before[1:] & ~same, edges.ns[1:], -1)
    best = right.argmax(axis=1)
    ns = right[lines, best]
    better = ns > longest_ns  # these stand last: a tie is not theirs
    longest[better], longest_ns[better] = (block[1:] * BLOCK + best)[better], ns[better]
    return longest, longest_ns


def spent_in(edges: EdgeBlocks, categories: I64) -> I64:
    """Sum the full durations of the slices starting in each cell, by category (W x categories)."""
    kinds, blocks = len(categories), -(-edges.count // BLOCK)
    base = int(edges.row["sums"])
    sums = edges.index.column("category_sums")[base : base + (blocks + 1) * kinds]
    before: I64 = sums.reshape(blocks + 1, kinds)[edges.block].astype(np.int64)
    ns = np.where(edges.before, edges.ns, 0)
    if kinds > 1:
        raw = edges.take(edges.index.column("slices.category"))
        if kinds <= FEW_CATEGORIES:
            rest = ns.sum(axis=1)
            for kind in range(1, kinds):
                part = np.where(raw == categories[kind], ns, 0).sum(axis=1)
                before[:, kind] += part
                rest -= part
            before[:, 0] += rest
        else:
            lines, columns = np.nonzero(edges.before)
            local = local_categories(categories, raw[lines, columns])
            np.add.at(before.reshape(-1), lines * kinds + local, ns[lines, columns])
    else:
        before[:, 0] += ns.sum(axis=1)
    return np.diff(before, axis=0)
