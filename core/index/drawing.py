"""The row table's drawing columns, written after all lanes: sums, pyramids and overviews, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..base.arrays import I64, AnyArray
from .column_files import ColumnFiles
from .format import LONG, OVERVIEW_CELLS, OVERVIEW_FROM, RowKind
from .pyramid import category_sums, extremes, longest, pyramid_sizes, sums_begin

BATCH = 1 << 20
"""Slices or samples treated at once; a longer row is treated alone."""


class Drawing:
    """Reads finished slice and sample columns back and fills in the row table."""

    def __init__(self, columns: ColumnFiles, rows: AnyArray, categories: int) -> None:
        """`rows` is filled in; `categories`: how many there are."""
        self._columns, self._rows = columns, rows
        self._categories = categories
        self._sums = self._row_categories = self._pyramid = self._samples = self._cells = 0

    def write(self, span: tuple[int, int] | None, check: Callable[[], None]) -> None:
        """Write all drawing columns; `span`: what overviews show, None without slices; `check` is called now
        and then and may raise.
        """
        edges = overview_edges(*span) if span is not None else []
        for batch in self._batches(RowKind.SLICES):
            check()
            self._slices(batch, edges, check)
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

    def _slices(self, batch: I64, edges: list[int], check: Callable[[], None]) -> None:
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

        rows["overview"][batch] = self._cells
        if not edges:
            return
        starts = columns.read("slices.start")
        firsts = rows["first"][batch].astype(np.int64)
        for k in np.flatnonzero(count >= OVERVIEW_FROM).tolist():
            first, last = int(firsts[k]), int(firsts[k] + count[k])
            own = slice(first - begin, last - begin)
            check()
            seen = overview(starts[first:last], duration[own], category[own], edges)
            columns.writer("overview.cell").append(seen.cell)
            columns.writer("overview.count").append(seen.count)
            columns.writer("overview.category").append(seen.category)
            columns.writer("overview.longest").append(seen.longest + first)
            rows["overview"][batch[k]], rows["overview_count"][batch[k]] = self._cells, len(seen.cell)
            self._cells += len(seen.cell)

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


@dataclass(frozen=True, eq=False)
class Overview:
    """The cells of one row that some slice touches."""

    cell: I64
    count: I64  # slices touching the cell
    category: I64  # with most ns inside the cell; ties: the longest's
    longest: I64  # index within the row; the first of equals


def overview_edges(start: int, end: int) -> list[int]:
    """Return the OVERVIEW_CELLS + 1 cell edges over [start, end], exact at any magnitude."""
    span = end - start
    return [start + i * span // OVERVIEW_CELLS for i in range(OVERVIEW_CELLS + 1)]


def overview(start: I64, duration: I64, category: AnyArray, edges: list[int]) -> Overview:
    """Return one row's view over ascending cell edges, ns; what begins at the last edge belongs to the last
    cell.
    """
    bounds = np.array(edges, np.int64)
    left, right = bounds[:-1], bounds[1:]
    begin = np.searchsorted(start, bounds, side="left")
    begin[-1] = np.searchsorted(start, bounds[-1], side="right")
    starting = np.diff(begin)
    before = np.maximum(begin - 1, 0)
    ends = np.where(begin > 0, start[before] + duration[before], np.iinfo(np.int64).min)
    crossing = np.flatnonzero((ends[:-1] > left) & (right > left))  # a slice reaches in from the left
    some = slice(int(begin[0]), int(begin[-1]))
    categories, local = _few(category[int(before[0]) : some.stop])
    local_of_before = local[before - before[0]]

    spent = np.zeros((len(left), len(categories)), np.int64)
    full = np.flatnonzero(starting)
    cell = np.repeat(full, starting[full])
    np.add.at(spent.reshape(-1), cell * len(categories) + local[begin[0] - before[0] :], duration[some])
    past = full[ends[1:][full] > right[full]]
    spent[past, local_of_before[1:][past]] -= ends[1:][past] - right[past]
    inside = np.minimum(ends[:-1], right)[crossing] - left[crossing]
    spent[crossing, local_of_before[:-1][crossing]] += inside

    longest = np.full(len(left), -1, np.int64)
    most = np.full(len(left), -1, np.int64)
    if len(full):
        groups = begin[full] - begin[0]
        most[full] = np.maximum.reduceat(duration[some], groups)
        hits = np.flatnonzero(duration[some] == np.repeat(most[full], starting[full]))
        longest[full] = hits[np.searchsorted(hits, groups)] + begin[0]
    wins = crossing[duration[before[crossing]] >= most[crossing]]
    longest[wins] = before[wins]

    cells = np.flatnonzero(longest >= 0)
    spent = spent[cells]
    own = local[longest[cells] - before[0]]
    best = spent.argmax(axis=1)
    lines = np.arange(len(cells))
    chosen = np.where(spent[lines, own] == spent[lines, best], own, best)
    count = starting.copy()
    count[crossing] += 1
    return Overview(cells, count[cells], categories[chosen], longest[cells])


def _few(category: AnyArray) -> tuple[I64, I64]:
    """Return (the categories that occur, ascending; per entry which of them it is)."""
    present = np.bincount(category)
    categories = np.flatnonzero(present)
    return categories, (np.cumsum(present > 0) - 1)[category]
