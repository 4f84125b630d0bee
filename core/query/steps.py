"""The iterations that a profiler marked: `ProfilerStep#N` annotations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.ids import SliceId
from ..index.format import RowKind
from ..index.store import SCAN_CHUNK, Index

STEP_NAME = "ProfilerStep#"
HOST_CATEGORY = "user_annotation"
DEVICE_CATEGORY = "gpu_user_annotation"


@dataclass(frozen=True)
class Step:
    """One iteration; lane time in ns, in time order."""

    label: str  # what stands behind the "#"
    start: int
    end: int
    id: SliceId
    position: int
    lane: int


def steps_of(index: Index, source: int) -> list[Step]:
    """Return the steps of a source in time order: those of the host, of the device only where there are none.

    Looks only through rows that hold annotations (rows whose category list names them).
    """
    names = index.string_numbers(STEP_NAME, prefix=True)
    if not names:
        return []
    wanted = np.array(names, np.uint32)
    for category in (HOST_CATEGORY, None, DEVICE_CATEGORY):
        found = _collect(index, source, wanted, category)
        if found:
            return sorted(found, key=lambda step: (step.start, step.end))
    return []


def _collect(index: Index, source: int, wanted: np.ndarray, category: str | None) -> list[Step]:
    numbers = {number for number, name in enumerate(index.categories) if name == category}
    excluded = {
        number for number, name in enumerate(index.categories) if name in (HOST_CATEGORY, DEVICE_CATEGORY)
    }
    kinds, names = index.column("row_categories"), index.column("slices.name")
    categories = index.column("slices.category")
    found: list[Step] = []
    for row in index.rows[index.rows["kind"] == RowKind.SLICES]:
        first, count = int(row["categories"]), int(row["category_count"])
        here = set(kinds[first : first + count].tolist())
        if category is not None and not here & numbers:
            continue
        if category is None and here <= excluded:
            continue
        begin, end = int(row["first"]), int(row["first"]) + int(row["count"])
        for low in range(begin, end, SCAN_CHUNK):
            part = names[low : min(end, low + SCAN_CHUNK)]
            for position in (low + np.flatnonzero(np.isin(part, wanted))).tolist():
                kind = int(categories[position])
                if (kind not in numbers) if category is not None else (kind in excluded):
                    continue
                label = index.string(int(names[position]))[len(STEP_NAME) :]
                ordinal = int(index.column("slices.ordinal")[position])
                found.append(
                    Step(
                        label,
                        index.start(position),
                        index.end(position),
                        SliceId(source, ordinal),
                        position,
                        int(row["lane"]),
                    )
                )
    return found
