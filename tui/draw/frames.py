"""Python frames that hold nothing beside one another: the bottom of a stack, drawn as one line."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tracelane.core.base.arrays import AnyArray
from tracelane.core.index.format import RowKind
from tracelane.core.index.store import Index
from tracelane.core.trace import Lane, Trace

LEAST_FRAMES = 3
"""Fewer frames are drawn one by one."""
WIDE = 0.9
"""A frame that takes this share of its lane's extent is there nearly all the time."""
PYTHON = "python_function"


@lru_cache(maxsize=64)
def _single_frames(index: Index) -> AnyArray:
    """Tell of each row whether it holds one Python frame and nothing else."""
    if PYTHON not in index.categories:
        return np.zeros(len(index.rows), bool)
    rows, number = index.rows, index.categories.index(PYTHON)
    single: AnyArray = (rows["kind"] == RowKind.SLICES) & (rows["count"] == 1) & (rows["category_count"] == 1)
    some = np.flatnonzero(single)
    single[some] = index.column("row_categories")[rows["categories"][some].astype(np.int64)] == number
    return single


def folded_frames(trace: Trace, lane: Lane) -> range:
    """Return the depths of a lane's outermost frames that span it one below the other; empty for few."""
    if lane.depth < LEAST_FRAMES or lane.source >= len(trace.indexes):
        return range(0)
    index = trace.indexes[lane.source]
    rows = index.rows[lane.rows.start : lane.rows.stop]
    least = WIDE * max(1, lane.end - lane.start)
    wide = _single_frames(index)[lane.rows.start : lane.rows.stop] & (rows["end"] - rows["start"] >= least)
    first = int(wide.argmax())
    if not wide[first]:
        return range(0)
    others = np.flatnonzero(~wide[first:])
    count = int(others[0]) if len(others) else len(wide) - first
    return range(first, first + count) if count >= LEAST_FRAMES else range(0)
