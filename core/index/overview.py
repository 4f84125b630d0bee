"""The stored view of a long row over the whole trace, so that first paint and reset read nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..ingest.columns import I64, AnyArray
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
    end = start + duration
    begin = np.searchsorted(start, bounds, side="left")
    first = np.minimum(begin, np.searchsorted(end, bounds, side="right"))[:-1]
    last = begin[1:].copy()
    last[-1] = np.searchsorted(start, bounds[-1], side="right")
    cells = np.flatnonzero((last > first) & (bounds[1:] > bounds[:-1]))
    categories, local = np.unique(category, return_inverse=True)
    found = []
    longest = []
    for cell, a, b in zip(cells.tolist(), first[cells].tolist(), last[cells].tolist()):
        most = a + int(np.argmax(duration[a:b]))
        # Only the outermost two can reach beyond the cell.
        inside = np.minimum(end[a:b], bounds[cell + 1]) - np.maximum(start[a:b], bounds[cell])
        spent = np.zeros(len(categories), np.int64)
        np.add.at(spent, local[a:b], np.maximum(inside, 0))
        own = int(local[most])
        found.append(own if spent[own] == spent.max() else int(spent.argmax()))
        longest.append(most)
    return Overview(
        cells,
        (last - first)[cells],
        categories[np.array(found, np.int64)].astype(np.int64),
        np.array(longest, np.int64),
    )
