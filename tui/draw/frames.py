"""Python frames that hold nothing beside one another: the bottom of a stack, drawn as one line."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tracelane.core.base.arrays import AnyArray
from tracelane.core.index.format import NO_SUMS, RowKind
from tracelane.core.index.store import Index
from tracelane.core.query.lookup import totals_of_rows
from tracelane.core.trace import Lane, Trace

LEAST_FRAMES = 3
"""Fewer frames are drawn one by one."""
WIDE = 0.9
"""A frame that takes this share of its lane's extent is there nearly all the time."""
LITTLE = 0.1
"""Rows of Python frames below them that fill less of the extent are folded with them."""
PYTHON = "python_function"


class FoldedFrames(NamedTuple):
    """Rows of a lane that one line stands for: their depths, and the one that is drawn on it."""

    depths: range
    drawn: int


NOTHING_FOLDED = FoldedFrames(range(0), -1)


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


def folded_frames(trace: Trace, lane: Lane) -> FoldedFrames:
    """Return which frames of a lane one line stands for: at least three that span it one below the other, or
    that fill little of it below such a one.
    """
    if lane.depth < LEAST_FRAMES or lane.source >= len(trace.indexes):
        return NOTHING_FOLDED
    index = trace.indexes[lane.source]
    rows = index.rows[lane.rows.start : lane.rows.stop]
    python = _python_rows(index)[lane.rows.start : lane.rows.stop]
    extent = max(1, lane.end - lane.start)
    wide = python & (rows["count"] == 1) & (rows["end"] - rows["start"] >= WIDE * extent)
    first = int(wide.argmax())
    if not wide[first]:
        return NOTHING_FOLDED
    end = first + _leading(wide[first:])
    below = end + _leading(python[end:] & _is_little(_busy(index, rows[end:]), extent))
    return FoldedFrames(range(first, below), end - 1) if below - first >= LEAST_FRAMES else NOTHING_FOLDED


def _is_little(busy: AnyArray, extent: int) -> AnyArray:
    little: AnyArray = (busy >= 0) & (busy < LITTLE * extent)
    return little


def _leading(holds: AnyArray) -> int:
    """Return for how many items from the first on something holds."""
    others = np.flatnonzero(~holds)
    return int(others[0]) if len(others) else len(holds)
