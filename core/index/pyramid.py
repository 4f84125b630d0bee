"""What makes drawing a row cost the same at any zoom: category sums, longest slices, extremes of samples; and
how they are written after all lanes, batch by batch.

All rows of a batch at once: traces may have 100,000 rows of a few slices each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..base.arrays import F64, I64, U32, AnyArray, concatenated_ranges, pieces
from .format import BLOCK, FANOUT, LONG, NO_SUMS, RowKind

if TYPE_CHECKING:
    from .column_files import ColumnFiles

SUMS_ALWAYS = 4096
"""A row may have this many category sums, or two per slice; rows with a great many categories store none."""
_TABLE = 1 << 20
"""Largest table of (row, category) that is looked up directly."""


class CategorySums(NamedTuple):
    """The categories of each row of a batch, and the prefix sums of their time."""

    categories: AnyArray  # per row, ascending
    category_count: I64  # per row
    sums: I64
    sums_count: I64  # per row; 0 where none are stored


def blocks_of(count: I64, size: int) -> I64:
    return -(-count // size)


def category_sums(count: I64, duration: I64, category: AnyArray, categories: int) -> CategorySums:
    """Return per row the ns before each block of BLOCK slices by category, and the totals as a last block.
    `count`: slices per row; `duration` and `category` of all slices, row by row; `categories`: how many there
    are.
    """
    rows = len(count)
    key = np.repeat(np.arange(rows) * categories, count)
    key += category
    if rows * categories <= _TABLE:
        present = np.bincount(key, minlength=rows * categories) > 0
        pairs = np.flatnonzero(present)
        number = np.cumsum(present) - 1
    else:
        pairs, key = np.unique(key, return_inverse=True)
        number = np.arange(len(pairs))
    category_count = np.bincount(pairs // categories, minlength=rows)
    blocks = blocks_of(count, BLOCK)
    size = (blocks + 1) * category_count
    size[size > np.maximum(SUMS_ALWAYS, 2 * count)] = 0
    first = np.cumsum(size) - size
    sums = np.zeros(int(size.sum()), np.int64)
    # Where the sum of a block and category lies: what the block adds to the category's number in all rows.
    before = first - np.cumsum(category_count) + category_count
    block = concatenated_ranges(np.ones(rows, np.int64), blocks)
    block = block * np.repeat(category_count, blocks) + np.repeat(before, blocks)
    entry = number.take(key)
    entry += np.repeat(block, _block_lengths(count, blocks))
    stored = size > 0
    if bool(stored.all()):
        np.add.at(sums, entry, duration)
    else:
        some = np.flatnonzero(np.repeat(stored, count))
        np.add.at(sums, entry[some], duration[some])
    for r in np.flatnonzero((blocks > 1) & (size > 0)).tolist():
        table = sums[first[r] : first[r] + size[r]].reshape(-1, category_count[r])
        np.cumsum(table, axis=0, out=table)
    return CategorySums(pairs % categories, category_count, sums, size)


def _block_lengths(count: I64, blocks: I64) -> I64:
    """Return how many slices each block of each row has: all but the last of a row are full."""
    lengths = np.full(int(blocks.sum()), BLOCK)
    lasts = np.cumsum(blocks)[blocks > 0] - 1
    lengths[lasts] = ((count - 1) % BLOCK + 1)[blocks > 0]
    return lengths


def sums_begin(first: I64, size: I64) -> AnyArray:
    """Return the row table's `sums` of rows whose sums begin at `first`; NO_SUMS where they have none."""
    return np.where(size > 0, first.astype(np.uint64), np.uint64(NO_SUMS))


def pyramid_sizes(count: I64) -> I64:
    """Return the number of pyramid entries of each row."""
    sizes = np.zeros(len(count), np.int64)
    level = np.where(count > BLOCK, blocks_of(count, BLOCK), 0)
    while bool((level > 0).any()):
        sizes += level
        level = np.where(level > 1, blocks_of(level, FANOUT), 0)
    return sizes


def longest(count: I64, duration: I64) -> U32:
    """Return per row and level the index (in the batch) of the longest slice per block, first of equals."""
    out = np.empty(int(pyramid_sizes(count).sum()), np.uint32)
    entries = _tall(count)
    for groups, entry, onward in _climb(count):
        entries = entries[_first_greatest(duration[entries], groups)]
        out[entry] = entries
        entries = entries[onward]
    return out


def _first_greatest(values: I64, groups: I64) -> I64:
    """Return where the greatest value of each group stands, the first of equals; `groups`: their begins."""
    most = np.maximum.reduceat(values, groups)
    hits = np.flatnonzero(values == np.repeat(most, np.diff(np.append(groups, len(values)))))
    return hits[np.searchsorted(hits, groups)]


def extremes(count: I64, value: F64) -> tuple[F64, F64]:
    """Return per row and pyramid level the least and greatest sample per block."""
    size = int(pyramid_sizes(count).sum())
    low, high = np.empty(size), np.empty(size)
    lows = highs = value[_tall(count)]
    for groups, entry, onward in _climb(count):
        lows, highs = np.fmin.reduceat(lows, groups), np.fmax.reduceat(highs, groups)
        low[entry], high[entry] = lows, highs
        lows, highs = lows[onward], highs[onward]
    return low, high


def _tall(count: I64) -> I64:
    """Return the indices (in the batch) of all entries of rows that have a pyramid."""
    tall = count > BLOCK
    return concatenated_ranges((np.cumsum(count) - count)[tall], count[tall])


def _climb(count: I64) -> Iterator[tuple[I64, I64, AnyArray]]:
    """Yield per level: where each block begins among the level's entries, its entry in the pyramids, and
    which of the blocks are entries of a further level.
    """
    sizes = pyramid_sizes(count)
    tall = count > BLOCK
    entries, first, size = count[tall], (np.cumsum(sizes) - sizes)[tall], BLOCK
    while len(entries):
        blocks = blocks_of(entries, size)
        number = concatenated_ranges(np.zeros(len(blocks), np.int64), blocks)
        further = blocks > 1
        groups = np.repeat(np.cumsum(entries) - entries, blocks) + number * size
        yield groups, np.repeat(first, blocks) + number, np.repeat(further, blocks)
        entries, first, size = blocks[further], (first + blocks)[further], FANOUT


BATCH = 1 << 18
"""Slices or samples treated at once, a multiple of BLOCK; a longer row is treated alone, piece by piece."""


class Drawing:
    """Reads finished slice and sample columns back and fills in the row table."""

    def __init__(self, columns: ColumnFiles, rows: AnyArray, categories: int) -> None:
        """`rows` is filled in; `categories`: how many there are."""
        self._columns, self._rows = columns, rows
        self._categories = categories
        self._sums = self._row_categories = self._pyramid = self._samples = 0

    def write(self, check: Callable[[], None]) -> None:
        """Write all drawing columns; `check` is called now and then and may raise."""
        counts = self._rows["count"]
        for batch in self._batches(RowKind.SLICES):
            check()
            if counts[batch[0]] > BATCH:
                self._long_row(int(batch[0]), check)
            else:
                self._slices(batch)
        for batch in self._batches(RowKind.SAMPLES):
            check()
            if counts[batch[0]] > BATCH:
                self._long_series(int(batch[0]))
            else:
                self._series(batch)

    def _batches(self, kind: RowKind) -> Iterator[I64]:
        """Yield numbers of rows that follow one another in their table, at most BATCH entries or one row."""
        numbers = np.flatnonzero(self._rows["kind"] == kind)
        ends = np.cumsum(self._rows["count"][numbers]).astype(np.int64)
        at = done = 0
        while at < len(numbers):
            stop = max(at + 1, int(np.searchsorted(ends, done + BATCH, side="right")))
            yield numbers[at:stop]
            at, done = stop, int(ends[stop - 1])

    def _slices(self, batch: I64) -> None:
        columns, rows = self._columns, self._rows
        count = rows["count"][batch].astype(np.int64)
        begin = int(rows["first"][batch[0]])
        end = begin + int(count.sum())
        category = columns.read("slices.category")[begin:end]
        duration = self._durations(begin, end)

        sums = category_sums(count, duration, category, self._categories)
        columns.writer("row_categories").append(sums.categories)
        rows["category_count"][batch] = sums.category_count
        rows["categories"][batch] = self._row_categories + _before(sums.category_count)
        rows["sums"][batch] = sums_begin(self._sums + _before(sums.sums_count), sums.sums_count)
        columns.writer("category_sums").append(sums.sums)
        self._row_categories += len(sums.categories)
        self._sums += len(sums.sums)

        sizes = pyramid_sizes(count)
        rows["pyramid"][batch] = self._pyramid + _before(sizes)
        columns.writer("pyramid.longest").append(longest(count, duration) + np.uint32(begin))
        self._pyramid += int(sizes.sum())

    def _durations(self, begin: int, end: int) -> I64:
        duration = self._columns.read("slices.duration")[begin:end].astype(np.int64)
        long = np.flatnonzero(duration == LONG)
        if len(long):
            positions = self._columns.read("long.position")
            entries = np.searchsorted(positions, (long + begin).astype(np.uint32))
            duration[long] = self._columns.read("long.duration")[entries]
        return duration

    def _long_row(self, number: int, check: Callable[[], None]) -> None:
        """Write what `_slices` writes, of one row in pieces: sums so far are added to those of the next."""
        row, columns = self._rows[number : number + 1], self._columns
        first, count = int(row["first"][0]), int(row["count"][0])
        category = columns.read("slices.category")[first : first + count]
        is_present = np.zeros(self._categories, np.bool_)
        for own in pieces(count, BATCH):
            is_present[category[own]] = True
        categories = np.flatnonzero(is_present)
        number_of, kinds = np.cumsum(is_present) - 1, len(categories)
        size = (-(-count // BLOCK) + 1) * kinds
        has_sums = size <= max(SUMS_ALWAYS, 2 * count)
        before = np.zeros(kinds, np.int64)
        sums = columns.writer("category_sums")
        sums.append(before[: kinds * has_sums])
        entries, durations = [], []
        for own in pieces(count, BATCH):
            check()
            duration = self._durations(first + own.start, first + own.stop)
            groups = np.arange(0, len(duration), BLOCK)
            if has_sums:
                table = np.zeros((len(groups), kinds), np.int64)
                np.add.at(table, (np.arange(len(duration)) // BLOCK, number_of[category[own]]), duration)
                table[0] += before
                np.cumsum(table, axis=0, out=table)
                sums.append(table.ravel())
                before = table[-1].copy()
            longest_of = _first_greatest(duration, groups)
            entries.append((longest_of + (first + own.start)).astype(np.uint32))
            durations.append(duration[longest_of])
        row["category_count"], row["categories"] = kinds, self._row_categories
        row["sums"] = self._sums if has_sums else NO_SUMS
        row["pyramid"] = self._pyramid
        columns.writer("row_categories").append(categories)
        level, values = np.concatenate(entries), np.concatenate(durations)
        while True:
            columns.writer("pyramid.longest").append(level)
            self._pyramid += len(level)
            if len(level) == 1:
                break
            longest_of = _first_greatest(values, np.arange(0, len(level), FANOUT))
            level, values = level[longest_of], values[longest_of]
        self._row_categories += kinds
        self._sums += size * has_sums

    def _series(self, batch: I64) -> None:
        count = self._rows["count"][batch].astype(np.int64)
        begin = int(self._rows["first"][batch[0]])
        value = self._columns.read("samples.value")[begin : begin + int(count.sum())]
        self._rows["pyramid"][batch] = self._samples + _before(pyramid_sizes(count))
        self._write_extremes(*extremes(count, value))

    def _long_series(self, number: int) -> None:
        """Write what `_series` writes, of one row in pieces."""
        row = self._rows[number : number + 1]
        first, count = int(row["first"][0]), int(row["count"][0])
        value = self._columns.read("samples.value")[first : first + count]
        row["pyramid"] = self._samples
        blocks = [(value[own], np.arange(0, own.stop - own.start, BLOCK)) for own in pieces(count, BATCH)]
        low = np.concatenate([np.fmin.reduceat(*block) for block in blocks])
        high = np.concatenate([np.fmax.reduceat(*block) for block in blocks])
        while True:
            self._write_extremes(low, high)
            if len(low) == 1:
                break
            groups = np.arange(0, len(low), FANOUT)
            low, high = np.fmin.reduceat(low, groups), np.fmax.reduceat(high, groups)

    def _write_extremes(self, low: F64, high: F64) -> None:
        self._columns.writer("pyramid.low").append(low)
        self._columns.writer("pyramid.high").append(high)
        self._samples += len(low)


def _before(sizes: I64) -> AnyArray:
    """Return what stands before each: running sums without their own."""
    return (np.cumsum(sizes) - sizes).astype(np.uint64)
