"""The iterations that a profiler marked: `ProfilerStep#N` annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..base.arrays import I64, U32, AnyArray
from ..base.cached_per_object import cached_per_object
from ..base.kineto import DEVICE_ANNOTATION
from ..index.format import RowKind
from ..index.store import SCAN_CHUNK, Index
from .lookup import names_with_prefix
from .views import SliceId

STEP_NAME = "ProfilerStep#"
HOST_CATEGORY = "user_annotation"


class SourceStep(NamedTuple):
    """One iteration; lane time in ns, in time order."""

    label: str  # what stands behind the "#"
    start: int
    end: int
    id: SliceId
    position: int
    lane: int


@cached_per_object()
def steps_of(index: Index, source: int) -> Sequence[SourceStep]:
    """Return the steps of a source in time order, found once: those of the host, of the device only where
    there are none.

    Looks only through rows that hold annotations (rows whose category list names them).
    """
    numbers = names_with_prefix(index, STEP_NAME)
    if not len(numbers):
        return ()
    for category in (HOST_CATEGORY, None, DEVICE_ANNOTATION):
        steps = _collect(index, source, numbers, category)
        if steps:
            return tuple(sorted(steps, key=lambda step: (step.start, step.end)))
    return ()


def _collect(index: Index, source: int, step_names: U32, category: str | None) -> list[SourceStep]:
    others = (HOST_CATEGORY, DEVICE_ANNOTATION)
    right = np.array(
        [name not in others if category is None else name == category for name in index.categories], np.bool_
    )
    kinds, names = index.column("row_categories"), index.column("slices.name")
    is_step = np.zeros(index.length("strings.offset"), np.bool_)
    is_step[step_names] = True
    steps: list[SourceStep] = []
    for row in index.rows[index.rows["kind"] == RowKind.SLICES]:
        first, count = int(row["categories"]), int(row["category_count"])
        if not right[kinds[first : first + count]].any():
            continue
        begin, end = int(row["first"]), int(row["first"]) + int(row["count"])
        for low in range(begin, end, SCAN_CHUNK):
            at = low + np.flatnonzero(is_step[names[low : min(end, low + SCAN_CHUNK)]])
            at = at[right[index.column("slices.category")[at]]]
            if len(at):
                steps += _steps_at(index, source, at, row)
    return steps


def _steps_at(index: Index, source: int, positions: I64, row: AnyArray) -> list[SourceStep]:
    starts = index.column("slices.start")[positions]
    values = (
        index.strings(index.column("slices.name")[positions].tolist()),
        starts.tolist(),
        (starts + index.duration(positions)).tolist(),
        index.column("slices.ordinal")[positions].tolist(),
        positions.tolist(),
    )
    lane = int(row["lane"])
    return [
        SourceStep(name[len(STEP_NAME) :], start, end, SliceId(source, ordinal), position, lane)
        for name, start, end, ordinal, position in zip(*values)
    ]
