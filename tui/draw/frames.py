"""Python frames that hold little beside one another: the bottom of a stack, drawn as one line."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tracelane.core.base.arrays import AnyArray
from tracelane.core.trace import Lane, RowKind, Trace

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


def folded_frames(trace: Trace, lane: Lane) -> tuple[FoldedFrames, ...]:
    """Return which frames of a lane one line each stands for, from above: at least three that span the lane
    one below the other, and those below such ones that fill little of it. Beside a frame that takes 99 % of
    the extent there may be others in its row, which together are at most a hundredth.
    """
    if lane.depth < LEAST_FRAMES or PYTHON not in trace.categories(lane.source):
        return ()
    return _folded(trace, lane.index)


@lru_cache(maxsize=1024)
def _folded(trace: Trace, number: int) -> tuple[FoldedFrames, ...]:
    lane = trace.lanes[number]
    rows, extent = trace.row_columns(lane), max(1, lane.end - lane.start)
    wide = rows.are_slices & (rows.extents >= WIDE * extent)
    for depth in np.flatnonzero(wide).tolist():
        wide[depth] = spanning_frame(trace, lane, depth) is not None
    busy = np.where(rows.counts == 1, rows.extents, rows.busy)
    little = rows.hold_only(PYTHON) & (busy >= 0) & (busy < LITTLE * extent)
    groups: list[FoldedFrames] = []
    row = 0
    while row < lane.depth:
        end = row + _leading(wide[row : lane.depth])
        below = end + _leading(little[end : lane.depth]) if end > row else row + 1
        if below - row >= LEAST_FRAMES:
            groups.append(FoldedFrames(range(row, below), end - 1))
        row = below
    return tuple(groups)


def spanning_frame(trace: Trace, lane: Lane, depth: int) -> int | None:
    """Return the place in its row of a Python frame that takes nearly all of a lane's extent: alone in its
    row 90 % of it, else 99 %; None where there is none.
    """
    row = trace.row(lane, depth)
    if row.kind is not RowKind.SLICES or not row.count:
        return None
    at = trace.slice_at(row, row.start + (row.end - row.start) // 2)  # a frame that long covers the middle
    if at is None or trace.slice_category(row, at) != PYTHON:
        return None
    start, end = trace.bounds(row, at)
    least = WIDE if row.count == 1 else NEARLY_ALL
    return at if end - start >= least * max(1, lane.end - lane.start) else None


def _leading(holds: AnyArray) -> int:
    """Return for how many items from the first on something holds."""
    others = np.flatnonzero(~holds)
    return int(others[0]) if len(others) else len(holds)
