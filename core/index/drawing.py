"""The row table's drawing columns, written after all lanes: sums and pyramids, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..base.arrays import I64, AnyArray
from .column_files import ColumnFiles
from .format import LONG, RowKind
from .pyramid import category_sums, extremes, longest, pyramid_sizes, sums_begin

BATCH = 1 << 20
"""Slices or samples treated at once; a longer row is treated alone."""


class Drawing:
    """Reads finished slice and sample columns back and fills in the row table."""

    def __init__(self, columns: ColumnFiles, rows: AnyArray, categories: int) -> None:
        """`rows` is filled in; `categories`: how many there are."""
        self._columns, self._rows = columns, rows
        self._categories = categories
        self._sums = self._row_categories = self._pyramid = self._samples = 0

    def write(self, check: Callable[[], None]) -> None:
        """Write all drawing columns; `check` is called now and then and may raise."""
        for batch in self._batches(RowKind.SLICES):
            check()
            self._slices(batch)
        for batch in self._batches(RowKind.SAMPLES):
            check()
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
        duration = columns.read("slices.duration")[begin:end].astype(np.int64)
        long = np.flatnonzero(duration == LONG)
        if len(long):
            entries = np.searchsorted(columns.read("long.position"), (long + begin).astype(np.uint32))
            duration[long] = columns.read("long.duration")[entries]

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

    def _series(self, batch: I64) -> None:
        rows = self._rows
        count = rows["count"][batch].astype(np.int64)
        begin = int(rows["first"][batch[0]])
        value = self._columns.read("samples.value")[begin : begin + int(count.sum())]
        low, high = extremes(count, value)
        self._columns.writer("pyramid.low").append(low)
        self._columns.writer("pyramid.high").append(high)
        rows["pyramid"][batch] = self._samples + _before(pyramid_sizes(count))
        self._samples += len(low)


def _before(sizes: I64) -> AnyArray:
    """Return what stands before each: running sums without their own."""
    return (np.cumsum(sizes) - sizes).astype(np.uint64)
