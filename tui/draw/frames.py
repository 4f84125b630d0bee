"""Python frames that hold little beside one another: the bottom of a stack, drawn as one line."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tracelane.core.base.arrays import AnyArray
from tracelane.core.index.format import NO_SUMS, RowKind
from tracelane.core.index.store import Index
from tracelane.core.query.lookup import slice_at, totals_of_rows
from tracelane.core.trace import Lane, Trace

LEAST_FRAMES = 3
"""Fewer frames are drawn one by one."""
WIDE = 0.9
"""A frame that takes this share of its lane's extent is there nearly all the time."""
NEARLY_ALL = 0.99
"""A frame that takes this share may have others in its row: slices of a row are disjoint, so that they take a
hundredth at most. Rows of a capture with 18 such frames have 0.4 % beside them.
"""
LITTLE = 0.1
"""Rows of Python frames below them that fill less of the extent are folded with them."""
PYTHON = "python_function"


class FoldedFrames(NamedTuple):
    """Rows of a lane that one line stands for: their depths, and the one that is drawn on it."""

    depths: range
    drawn: int


@lru_cache(maxsize=64)
def _python_rows(index: Index) -> AnyArray:
    """Tell of each row whether it holds Python frames and nothing else."""
    if PYTHON not in index.categories:
        return np.zeros(len(index.rows), bool)
    rows, number = index.rows, index.categories.index(PYTHON)
    python: AnyArray = (rows["kind"] == RowKind.SLICES) & (rows["count"] > 0) & (rows["category_count"] == 1)
    some = np.flatnonzero(python)
    python[some] = index.column("row_categories")[rows["categories"][some].astype(np.int64)] == number
    return python


def _busy(index: Index, rows: AnyArray) -> AnyArray:
    """Return the ns that the slices of rows of one category take, -1 where the index has no sum of them."""
    stored = rows["sums"] != NO_SUMS
    busy = np.where(rows["count"] == 1, rows["end"] - rows["start"], -1)
    busy[stored] = index.column("category_sums")[totals_of_rows(rows[stored])]
    return busy


def folded_frames(trace: Trace, lane: Lane) -> tuple[FoldedFrames, ...]:
    """Return which frames of a lane one line each stands for, from above: at least three that span the lane
    one below the other, and those below such ones that fill little of it. Beside a frame that takes 99 % of
    the extent there may be others in its row, which together are at most a hundredth.
    """
    if lane.depth < LEAST_FRAMES or lane.source >= len(trace.indexes):
        return ()
    return _folded(trace.indexes[lane.source], lane.rows.start, lane.depth, max(1, lane.end - lane.start))


@lru_cache(maxsize=1024)
def _folded(index: Index, first_row: int, depth: int, extent: int) -> tuple[FoldedFrames, ...]:
    rows = index.rows[first_row : first_row + depth]
    python = _python_rows(index)[first_row : first_row + depth]
    long = (rows["kind"] == RowKind.SLICES) & (rows["end"] - rows["start"] >= WIDE * extent)
    wide = np.zeros(len(rows), bool)
    for row in np.flatnonzero(long).tolist():
        wide[row] = spanning_frame(index, first_row + row, extent) is not None
    little = python & _is_little(_busy(index, rows), extent)
    groups: list[FoldedFrames] = []
    row = 0
    while row < len(rows):
        end = row + _leading(wide[row:])
        below = end + _leading(little[end:]) if end > row else row + 1
        if below - row >= LEAST_FRAMES:
            groups.append(FoldedFrames(range(row, below), end - 1))
        row = below
    return tuple(groups)


def spanning_frame(index: Index, row_number: int, extent: int) -> int | None:
    """Return the place in its row of a Python frame that takes nearly all of a lane's extent: alone in its
    row 90 % of it, else 99 %; None where there is none.
    """
    row = index.rows[row_number]
    if PYTHON not in index.categories or int(row["kind"]) != RowKind.SLICES or not int(row["count"]):
        return None
    least = WIDE if int(row["count"]) == 1 else NEARLY_ALL
    start, end = int(row["start"]), int(row["end"])
    at = slice_at(index, row_number, start + (end - start) // 2)  # a frame that long covers the middle
    if at is None:
        return None
    position = int(row["first"]) + at
    is_python = int(index.column("slices.category")[position]) == index.categories.index(PYTHON)
    return at if is_python and int(index.duration([position])[0]) >= least * extent else None


def _is_little(busy: AnyArray, extent: int) -> AnyArray:
    little: AnyArray = (busy >= 0) & (busy < LITTLE * extent)
    return little


def _leading(holds: AnyArray) -> int:
    """Return for how many items from the first on something holds."""
    others = np.flatnonzero(~holds)
    return int(others[0]) if len(others) else len(holds)
