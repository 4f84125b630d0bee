"""The stored view of a long row over the whole trace, so that first paint and reset read nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.arrays import I64, AnyArray
from .format import OVERVIEW_CELLS


@dataclass(frozen=True)
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
