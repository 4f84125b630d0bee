"""Busy time per cell of a whole lane or of the whole trace, for folded lanes and the minimap; counter series
and instants seen through the cells of a viewport, in O(cells x log n).
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..base.arrays import F64, I64
from ..index.format import RowKind
from ..index.store import Index
from .cells import (
    Cells,
    InstantCells,
    SampleCells,
    Span,
    clipped_edges,
    first_where,
    has_categories,
    level_sizes,
    ragged,
    row_cells,
    visit,
)


class SeriesRange(NamedTuple):
    """The least and the greatest value of a whole counter series, between which it is drawn."""

    low: float  # nan or infinite where it has no others
    high: float

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
    """Return the range of a whole counter series: its scale is the same in every window."""
    row = index.rows[row_number]
    cells = sample_cells(index, row_number, [int(row["start"]), int(row["end"]) + 1])
    return SeriesRange(float(cells.low[0]), float(cells.high[0]))


UNION_ROWS = 24
"""The most rows, beside the top row, that are read of a lane with overlaps."""


@dataclass(frozen=True, eq=False)
class Busy:
    """How busy lanes are in each cell, 0..1: the mean over the lanes, and the busiest of them.

    `lanes` of `of` lanes were asked (an even sample where there are very many). `count` > 0 wherever
    anything lies.
    """

    mean: F64
    peak: F64
    count: I64
    lanes: int
    of: int


def lane_cells(
    index: Index,
    lane_number: int,
    edges: Sequence[int] | I64,
    offset: int = 0,
    leaving_out: Collection[int] = (),
) -> Cells:
    """Return the cells of a folded lane: its top row; where slices of the categories `leaving_out`
    (annotations) lie there, what they hold; where slices overlap, the busiest row.

    All nested slices lie under the top row, so its busy time is exactly that of the lane. A slice that
    overlaps the end of a top slice without lying in it is counted in its own row: there, and where a cell has
    slices of several rows under annotations, the busy time is a lower bound. A cell with nothing but
    annotations has a category and no busy time.
    """
    lane = index.lanes[lane_number]
    first, rows = int(lane["first_row"]), int(lane["rows"])
    if not _is_slices(index, first):
        nothing = np.full(len(edges) - 1, -1, np.int64)
        count = _marks(index, lane_number, edges, offset)
        return Cells(count, nothing, nothing, np.zeros(len(edges) - 1, np.int64))
    cells, number = row_cells(index, first, edges, offset, leaving_out), first
    while number + 1 < first + min(rows, UNION_ROWS) and _is_slices(index, number + 1):
        if int(lane["overlapping"]) == 0 and not has_categories(index, number, leaving_out):
            break
        number += 1
        below = row_cells(index, number, edges, offset, leaving_out)
        category = np.where(below.busy > cells.busy, below.category, cells.category)
        count, busy = np.maximum(cells.count, below.count), np.maximum(cells.busy, below.busy)
        cells = Cells(count, cells.longest, category, busy)
    return cells


def work_cells(
    index: Index,
    lane_number: int,
    edges: Sequence[int] | I64,
    offset: int = 0,
    leaving_out: Collection[int] = (),
) -> Cells:
    """Return the cells of a device's lane; slices of the categories `leaving_out` (annotations) are no work.

    The work of a stream never overlaps, whatever rows it is stored in, so its time adds up over the rows. A
    cell without work is empty; category and longest slice are those of the row with the most work in the
    cell. `longest` holds positions in the index, not in a row.
    """
    lane = index.lanes[lane_number]
    first, rows = int(lane["first_row"]), int(lane["rows"])
    width = len(edges) - 1
    busy, most, count = (np.zeros(width, np.int64) for _ in range(3))
    longest, category = (np.full(width, -1, np.int64) for _ in range(2))
    bounds = clipped_edges(edges)
    for number in range(first, first + min(rows, UNION_ROWS)):
        if _is_slices(index, number):
            cells = row_cells(index, number, edges, offset, leaving_out)
            works = cells.busy > 0
            better = works & (cells.busy > most)
            begin = int(index.rows[number]["first"])
            longest[better], category[better] = begin + cells.longest[better], cells.category[better]
            most[better] = cells.busy[better]
            busy += cells.busy
            np.maximum(count, np.where(works, cells.count, 0), out=count)
    return Cells(count, longest, category, np.minimum(busy, bounds[1:] - bounds[:-1]))


def busy_of(
    lanes: Sequence[tuple[Index, int, int]], edges: Sequence[int] | I64, *, of: int | None = None
) -> Busy:
    """Return how busy these lanes are, given as (index, lane number, clock offset)."""
    bounds = [int(edge) for edge in edges]
    width = len(bounds) - 1
    spans = np.maximum(np.array([b - a for a, b in itertools.pairwise(bounds)], np.float64), 1.0)
    total, peak = np.zeros(width), np.zeros(width)
    count = np.zeros(width, np.int64)
    for index, lane_number, offset in lanes:
        cells = lane_cells(index, lane_number, bounds, offset)
        share = np.minimum(cells.busy / spans, 1.0)
        total += share
        np.maximum(peak, share, out=peak)
        count += cells.count
    return Busy(total / max(1, len(lanes)), peak, count, len(lanes), len(lanes) if of is None else of)


def _is_slices(index: Index, row_number: int) -> bool:
    return row_number < len(index.rows) and int(index.rows[row_number]["kind"]) == RowKind.SLICES


def _marks(index: Index, lane_number: int, edges: Sequence[int] | I64, offset: int) -> I64:
    """Count the instants and samples per cell of a lane without slices."""
    lane = index.lanes[lane_number]
    first, rows = int(lane["first_row"]), int(lane["rows"])
    count = np.zeros(len(clipped_edges(edges)) - 1, np.int64)
    for row_number in range(first, first + min(rows, UNION_ROWS)):
        kind = int(index.rows[row_number]["kind"])
        if kind == RowKind.INSTANTS:
            count += instant_cells(index, row_number, edges, offset).count
        elif kind == RowKind.SAMPLES:
            count += sample_cells(index, row_number, edges, offset).count
    return count


def spans(index: Index, row_number: int, cells: Cells) -> list[Span]:
    """Return the spans of a row's cells from left to right; empty cells lie in none.

    A slice alone in several neighbouring cells is one whole span; neighbouring cells with several slices each
    and one dominant category are one span that stands for the longest of them.
    """
    count, longest, category = cells.count, cells.longest, cells.category
    if not count.any():
        return []
    alone = count == 1
    key = np.where(alone, longest, -2 - category)  # -1 for an empty cell: it has no category
    changes = (key[1:] != key[:-1]).nonzero()[0]
    edges = np.zeros(len(changes) + 2, np.int64)
    edges[1:-1], edges[-1] = changes + 1, len(key)
    lefts, rights = edges[:-1], edges[1:]
    drawn = key[lefts] != -1
    merged = (count > 1).nonzero()[0]
    best, fullest = longest[lefts], count[lefts]
    if len(merged):
        ns = np.full(len(key), -1, np.int64)
        ns[merged] = index.duration(int(index.rows[row_number]["first"]) + longest[merged])
        most = np.maximum.reduceat(ns, lefts)
        best = longest[first_where(ns == most.repeat(rights - lefts), lefts)]
        fullest = np.maximum.reduceat(count, lefts)
    columns = (lefts, rights, category[lefts], best, fullest, alone[lefts])
    return list(map(Span, *(column[drawn].tolist() for column in columns)))
