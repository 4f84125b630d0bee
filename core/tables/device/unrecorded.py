"""Fills of memory that the profiler of a trace never records: they lack their work at the same places of each
step, while nothing else lacks any. What is lost is lost by the piece of a buffer, kernels with it, and never
the same in every step. Some of the fills in which cuDNN and cuBLAS clear their workspace are such.
"""

from __future__ import annotations

import numpy as np

from ...base.arrays import I64, AnyArray
from ...base.kineto import StartedWork, started_work
from ...index.store import Index
from ...query.groups import dense
from ...query.lookup import lanes_of
from ...query.lost import StartingCalls
from ...trace.step_choice import find_steps
from ..frame.scope import Scope

MIN_STEPS = 3
"""In so many steps the same is no chance."""


def are_fills(index: Index, calls: I64) -> AnyArray:
    """Tell which calls, by their names, only fill memory."""
    name, numbers = dense(index.column("slices.name")[calls])
    fills = [started_work(text) is StartedWork.FILL for text in index.strings(numbers)]
    return np.asarray(np.array(fills, np.bool_)[name])


def steps_alike(scope: Scope, source: int, calls: StartingCalls) -> int:
    """Return in how many steps the same fills lack their work, at least MIN_STEPS; 0 where they differ, or
    other calls lack theirs, too.
    """
    # Fills with and without work in three steps: + - + | + - + | + - +. As one row for each step they are
    # three equal ones.
    index = scope.trace.indexes[source]
    is_fill = are_fills(index, calls.positions)
    if not calls.is_lost.any() or (calls.is_lost & ~is_fill).any():
        return 0
    steps = find_steps(scope.trace, source, scope.clocks)
    if steps is None or len(steps) < MIN_STEPS:
        return 0
    positions, is_lost = calls.positions[is_fill], calls.is_lost[is_fill]
    step, lanes = steps.holding(scope.starts(source, positions)), lanes_of(index, positions)
    order = np.lexsort((lanes, step))  # and by start, as they are now
    order = order[step[order] >= 0]
    counts = np.bincount(step[order], minlength=len(steps))
    if len(order) < np.count_nonzero(is_lost) or (counts != counts[0]).any():
        return 0
    rows = is_lost[order].reshape(len(steps), -1)
    return len(steps) if (rows == rows[0]).all() else 0
