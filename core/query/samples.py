"""Counter series and instants seen through the cells of a viewport, in O(cells x log n)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..base.arrays import F64, I64
from ..index.store import Index
from .cells import InstantCells, SampleCells, clipped_edges, level_sizes, ragged, visit


class SeriesRange(NamedTuple):
    """The values of a whole counter series, and what it is drawn between."""

    low: float  # its least and its greatest value; nan or infinite where it has no others
    high: float
    least: float  # the bottom and the top of the drawing
    most: float

    @property
    def extent(self) -> tuple[float, float] | None:
        """The least and the greatest value, None of a series that never varies."""
        is_wide = np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high
        return (self.low, self.high) if is_wide else None


def instant_cells(index: Index, row_number: int, edges: Sequence[int] | I64, offset: int = 0) -> InstantCells:
    """Return how many instants each cell [edge, next edge) holds, and which is the first."""
    row = index.rows[row_number]
    begin, count = int(row["first"]), int(row["count"])
    starts = index.column("instants.start")[begin : begin + count]
    first = np.searchsorted(starts, clipped_edges(edges, offset), "left").astype(np.int64)
    number = np.diff(first)
    return InstantCells(number, np.where(number > 0, first[:-1], -1))


def sample_cells(index: Index, row_number: int, edges: Sequence[int] | I64, offset: int = 0) -> SampleCells:
    """Return the band of values of a counter series in each cell.

    The value that holds at a cell's left edge counts unless a sample stands right there; of several samples
    with one stamp all count for the band and the last one holds on.
    """
    row = index.rows[row_number]
    begin, count = int(row["first"]), int(row["count"])
    starts = index.column("samples.start")[begin : begin + count]
    values = index.column("samples.value")[begin : begin + count]
    bounds = clipped_edges(edges, offset)
    first = np.searchsorted(starts, bounds, "left").astype(np.int64)
    width = len(bounds) - 1
    low, high = np.full(width, np.nan), np.full(width, np.nan)
    number = np.diff(first)
    sizes = level_sizes(count)
    base = int(row["pyramid"])
    bases = [0, *(base + sum(sizes[:k]) for k in range(len(sizes)))]

    def fold(level: int, which: I64, begin_entry: I64, end_entry: I64) -> None:
        entries, begins = ragged(begin_entry, end_entry)
        if level:
            below: F64 = index.column("pyramid.low")[bases[level] + entries]
            above: F64 = index.column("pyramid.high")[bases[level] + entries]
        else:
            below = above = values[entries]
        low[which] = np.fmin(low[which], np.fmin.reduceat(below, begins))
        high[which] = np.fmax(high[which], np.fmax.reduceat(above, begins))

    visit(len(sizes), first[:-1], first[1:], fold)
    if count:
        # A sample exactly at the left edge replaces what came before it.
        at_edge = (number > 0) & (starts[np.minimum(first[:-1], count - 1)] == bounds[:-1])
        carried = np.where((first[:-1] > 0) & ~at_edge, values[np.maximum(first[:-1] - 1, 0)], np.nan)
        low, high = np.fmin(low, carried), np.fmax(high, carried)
        last = np.where(first[1:] > 0, values[np.maximum(first[1:] - 1, 0)], np.nan)
    else:
        last = np.full(width, np.nan)
    return SampleCells(number, low, high, last)


def series_range(index: Index, row_number: int) -> SeriesRange:
    """Return the range of a whole counter series, drawn with zero in it, so that its scale never jumps."""
    row = index.rows[row_number]
    cells = sample_cells(index, row_number, [int(row["start"]), int(row["end"]) + 1])
    low, high = float(cells.low[0]), float(cells.high[0])
    finite = [value for value in (low, high, 0.0) if np.isfinite(value)]
    return SeriesRange(low, high, min(finite), max(finite))
