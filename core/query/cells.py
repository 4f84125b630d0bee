"""What a row shows in each cell of a viewport, exactly, in O(cells x log n)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..index.format import BLOCK, NO_SUMS
from ..index.store import Index
from ..ingest.columns import F64, I64, U32, AnyArray
from .ranges import first_where, level_sizes, ragged, visit

MANY = 1 << 20
"""Largest table of (cell, category) that is summed up in."""
LOWEST, GREATEST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True)
class Cells:
    """A row of slices seen through a viewport: arrays of length `width`, one entry per cell.

    A slice belongs to every cell [bounds[i], bounds[i+1]) that it touches; a zero-length slice to the one
    that holds its stamp. A cell with count > 0 is never blank.
    """

    count: I64  # slices touching the cell
    longest: I64  # index *within the row* of the longest one (by full duration; the first of equals), -1
    category: I64  # index of the category with most ns inside the cell (ties: the longest's), -1 if empty
    busy: I64  # ns of the cell covered by slices


@dataclass(frozen=True)
class SampleCells:
    """A counter series seen through a viewport; step-wise: a value holds until the next sample."""

    count: I64  # samples inside the cell
    low: F64  # least and greatest value that holds anywhere in the cell; nan before the first sample
    high: F64
    last: F64  # value at the cell's end


@dataclass(frozen=True)
class InstantCells:
    """Instants seen through a viewport."""

    count: I64
    first: I64  # index within the row of the first instant of the cell, -1 if none


@dataclass(frozen=True)
class Span:
    """Cells [left, right) of a row that are drawn alike.

    One slice that fills the cells alone (count 1), or neighbouring cells in which several slices lie and the
    same category has most time.
    """

    left: int
    right: int
    category: int
    index: int  # index within the row: the slice itself, or the longest of those it stands for
    count: int  # slices it stands for (in the fullest cell)
    whole: bool  # True: one single slice


Bounds = I64
__all__ = [
    "U32",
    "AnyArray",
    "Bounds",
    "Cells",
    "InstantCells",
    "SampleCells",
    "Span",
    "clipped_edges",
    "row_cells",
]


class _Touch(NamedTuple):
    """Which slices of the row lie in each cell."""

    first: I64  # W + 1: slices of the row that start before each edge
    crossing: AnyArray  # W bools: the slice before `first` reaches into the cell from the left
    begin: int  # first position of the row
    inside: I64  # W: ns of the crossing slice inside the cell
    beyond: I64  # W: ns by which the last slice starting in the cell reaches past its right edge


def clipped_edges(edges: Sequence[int], offset: int = 0) -> I64:
    """Return trace-time cell edges as lane time (`edge - offset`), held within int64."""
    if not isinstance(edges, np.ndarray):
        return np.array([min(max(edge - offset, LOWEST), GREATEST) for edge in edges], np.int64)
    return clipped_edges(edges.tolist(), offset) if offset else edges.astype(np.int64, copy=False)


def row_cells(index: Index, row_number: int, edges: Sequence[int], offset: int = 0) -> Cells:
    """Return what W cells of a row of slices show.

    `edges`: W + 1 ascending times in trace time, ns, of any magnitude; `offset`: trace time - lane time.
    """
    row = index.rows[row_number]
    bounds = clipped_edges(edges, offset)
    width, rows_slices = len(bounds) - 1, int(row["count"])
    empty = np.full(width, -1, np.int64)
    if width <= 0 or not rows_slices or int(row["start"]) >= bounds[-1] or int(row["end"]) < bounds[0]:
        return Cells(np.zeros(max(width, 0), np.int64), empty, empty, np.zeros(max(width, 0), np.int64))
    touch = _touched(index, row, bounds)
    begin, kinds = int(row["categories"]), int(row["category_count"])
    row_categories = index.column("row_categories")[begin : begin + kinds].astype(np.int64)
    dense = int(touch.first[-1] - touch.first[0]) > BLOCK * (width + 1)
    longest, longest_ns = (_longest_dense if dense else _longest_few)(index, row, touch)
    crossing = np.flatnonzero(touch.crossing)
    spanning = touch.first[:-1][crossing] - 1
    better = index.duration(touch.begin + spanning) >= longest_ns[crossing]  # it stands first: wins a tie
    longest[crossing[better]] = spanning[better]
    count = np.diff(touch.first) + touch.crossing
    some = np.flatnonzero(count)
    shares = _edge_shares(index, touch, row_categories)
    of_longest = _local(row_categories, index.column("slices.category")[touch.begin + longest[some]])
    category = empty
    if width * kinds > MANY or (dense and int(row["sums"]) == NO_SUMS):
        best, busy = _dominant_of_many(index, touch, row_categories, shares, some, of_longest)
    else:
        spent = (
            _spent_dense(index, row, touch, row_categories)
            if dense
            else _spent_few(index, touch, row_categories)
        )
        np.add.at(spent.reshape(-1), shares[0], shares[1])
        spent_some, lines = spent[some], np.arange(len(some))
        most = spent_some.argmax(axis=1) if len(some) else np.empty(0, np.int64)
        tied = spent_some[lines, of_longest] == spent_some[lines, most]
        best, busy = np.where(tied, of_longest, most), spent.sum(axis=1)
    if len(some):
        category = empty.copy()
        category[some] = row_categories[best]
    return Cells(count, longest, category, busy)


def _touched(index: Index, row: np.void, bounds: I64) -> _Touch:
    begin, count = int(row["first"]), int(row["count"])
    starts = index.column("slices.start")[begin : begin + count]
    first = np.searchsorted(starts, bounds, "left").astype(np.int64)
    before = np.maximum(first - 1, 0)
    ends = starts[before] + index.duration(begin + before)  # end of the last slice before each edge
    ends = np.where(first > 0, ends, LOWEST)
    left, right = bounds[:-1], bounds[1:]
    crossing = ends[:-1] > left
    inside = np.where(crossing, np.minimum(ends[:-1], right) - np.where(crossing, left, 0), 0)
    inside = np.where(right > left, inside, 0)
    starting = first[1:] > first[:-1]
    past = starting & (ends[1:] > right)
    beyond = np.where(past, np.where(past, ends[1:], 0) - np.where(past, right, 0), 0)
    return _Touch(first, crossing, begin, inside, beyond)


def _edge_shares(index: Index, touch: _Touch, categories: I64) -> tuple[I64, I64]:
    """Return what slices that cross a cell's edges change of the sums over slices starting in the cells.

    As (cell x categories + category, ns) pairs: the crossing one's part inside is added, the part of the last
    one that lies beyond the right edge is taken off.
    """
    crossing, reaching = np.flatnonzero(touch.crossing), np.flatnonzero(touch.beyond)
    places = touch.begin + np.concatenate((touch.first[crossing], touch.first[reaching + 1])) - 1
    local = _local(categories, index.column("slices.category")[places])
    ns = np.concatenate((touch.inside[crossing], -touch.beyond[reaching]))
    return np.concatenate((crossing, reaching)) * len(categories) + local, ns


def _longest_few(index: Index, row: np.void, touch: _Touch) -> tuple[I64, I64]:
    """Find the longest slice starting in each cell from the window's slices themselves."""
    width = len(touch.first) - 1
    low, high = int(touch.first[0]), int(touch.first[-1])
    longest, longest_ns = np.full(width, -1, np.int64), np.full(width, -1, np.int64)
    if high > low:
        ns = index.durations_between(touch.begin + low, touch.begin + high)
        starting = np.diff(touch.first)
        cells = np.flatnonzero(starting)
        begins = touch.first[:-1][cells] - low
        most = np.maximum.reduceat(ns, begins)
        hits = ns == np.repeat(most, starting[cells])
        longest[cells], longest_ns[cells] = first_where(hits, begins) + low, most
    return longest, longest_ns


def _spent_few(index: Index, touch: _Touch, categories: I64) -> I64:
    """Sum the full durations of the slices starting in each cell, by category, one by one."""
    width, kinds = len(touch.first) - 1, len(categories)
    spent = np.zeros((width, kinds), np.int64)
    low, high = touch.begin + int(touch.first[0]), touch.begin + int(touch.first[-1])
    if high > low:
        ns = index.durations_between(low, high)
        cells = np.repeat(np.arange(width), np.diff(touch.first))
        local = _local(categories, index.column("slices.category")[low:high])
        np.add.at(spent.reshape(-1), cells * kinds + local, ns)
    return spent


def _dominant_of_many(
    index: Index, touch: _Touch, categories: I64, shares: tuple[I64, I64], some: I64, of_longest: I64
) -> tuple[I64, I64]:
    """Return (dominant category of the cells in `some`, busy ns of all) where a table of all categories per
    cell would be too large: from the window's slices, sorted by cell and category.
    """
    width, kinds = len(touch.first) - 1, len(categories)
    low, high = touch.begin + int(touch.first[0]), touch.begin + int(touch.first[-1])
    cells = np.repeat(np.arange(width), np.diff(touch.first))
    local = _local(categories, index.column("slices.category")[low:high])
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


def _local(categories: I64, raw: AnyArray) -> I64:
    """Map category numbers to their places in the row's own (ascending) list of categories."""
    if not len(raw):
        return np.empty(0, np.int64)
    if int(categories[-1]) < 1 << 16:
        table = np.zeros(int(categories[-1]) + 1, np.int64)
        table[categories] = np.arange(len(categories))
        mapped: I64 = table[raw]
        return mapped
    return np.searchsorted(categories, raw.astype(np.int64)).astype(np.int64)


def _longest_dense(index: Index, row: np.void, touch: _Touch) -> tuple[I64, I64]:
    """Find the longest slice starting in each cell through the row's max pyramid."""
    width = len(touch.first) - 1
    longest, longest_ns = np.full(width, -1, np.int64), np.full(width, -1, np.int64)
    sizes = level_sizes(int(row["count"]))
    base = int(row["pyramid"])
    bases = [0, *(base + sum(sizes[:k]) for k in range(len(sizes)))]
    pyramid = index.column("pyramid.longest")

    def fold(level: int, which: I64, first: I64, last: I64) -> None:
        entries, begins = ragged(first, last)
        if level:
            entries = pyramid[bases[level] + entries].astype(np.int64) - touch.begin
        ns = index.duration(touch.begin + entries)
        most = np.maximum.reduceat(ns, begins)
        hits = ns == np.repeat(most, last - first)
        where = entries[first_where(hits, begins)]
        old = longest_ns[which]
        better = (most > old) | ((most == old) & (where < longest[which]))
        longest[which[better]], longest_ns[which[better]] = where[better], most[better]

    visit(len(sizes), touch.first[:-1], touch.first[1:], fold)
    return longest, longest_ns


def _spent_dense(index: Index, row: np.void, touch: _Touch, categories: I64) -> I64:
    """Sum the full durations of the slices starting in each cell, by category, from the stored prefix
    sums.
    """
    kinds, count = len(categories), int(row["count"])
    blocks = -(-count // BLOCK)
    base = int(row["sums"])
    sums = index.column("category_sums")[base : base + (blocks + 1) * kinds].reshape(blocks + 1, kinds)
    edges, inverse = np.unique(touch.first, return_inverse=True)
    block = edges // BLOCK
    before: I64 = sums[block].astype(np.int64)  # a copy: the remainders are added to it
    rest = np.flatnonzero(edges > block * BLOCK)
    if len(rest):
        entries, begins = ragged(block[rest] * BLOCK, edges[rest])
        ns = index.duration(touch.begin + entries)
        if kinds == 1:
            before[rest, 0] += np.add.reduceat(ns, begins)
        else:
            local = _local(categories, index.column("slices.category")[touch.begin + entries])
            lines = np.repeat(rest, edges[rest] - block[rest] * BLOCK)
            np.add.at(before.reshape(-1), lines * kinds + local, ns)
    return np.diff(before[inverse.reshape(-1)], axis=0)
