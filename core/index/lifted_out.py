"""Lifted arguments from events to slices and instants: sparse columns by position, in the smallest dtype."""

from __future__ import annotations

import numpy as np

from ..base.ids import NONE
from ..ingest.columns import U32, AnyArray
from ..ingest.lifted import LIFTED, Kind, Lifted
from .columns_out import Columns, smallest_integer
from .merge import Merged
from .scratch import Scratch

_CHUNK = 1 << 20
"""Values written at once."""
_PARTS = 16
"""After so many parts, memory of what they were put into is given back."""


class _Dense:
    """Values by position, with a mark where there is one; of two for one position the later holds."""

    def __init__(self, size: int, scratch: Scratch) -> None:
        self.values = scratch.array(size, "i8")
        self.present = scratch.array(size, "?", 0)

    def put(self, positions: AnyArray, values: AnyArray) -> None:
        self.values[positions] = values
        self.present[positions] = True

    def write(self, columns: Columns, position: str, value: str, dtype: str) -> None:
        """Write the sorted positions and their values, and forget them."""
        for at in range(0, len(self.present), _CHUNK):
            found = np.flatnonzero(self.present[at : at + _CHUNK])
            if len(found):
                values = self.values[at : at + _CHUNK][found]
                columns.writer(position, "u4").append(found + at)
                columns.writer(value, dtype).append(values.view(np.float64) if dtype == "f8" else values)
                self.present[at : at + _CHUNK] = False


def write_lifted(
    merged: Merged, place_of: U32, slices: int, instants: int, columns: Columns, scratch: Scratch
) -> None:
    """Write every lifted argument that occurs.

    `place_of`: per ordinal the position of its slice, NONE - 1 - the index of its instant, or NONE.
    """
    by_slice, by_instant = _Dense(slices, scratch), _Dense(instants, scratch)
    for lifted in LIFTED:
        limits = _gather(merged, lifted, place_of, slices, by_slice, by_instant, scratch)
        scratch.let_go()
        if limits is None:
            continue
        dtype = {Kind.TEXT: "u4", Kind.FLOAT: "f8"}.get(lifted.kind) or smallest_integer(*limits)
        name = f"lifted.{lifted.key}"
        by_slice.write(columns, f"{name}.position", f"{name}.value", dtype)
        by_instant.write(columns, f"{name}.instant", f"{name}.instant_value", dtype)
        scratch.let_go()


def _gather(
    merged: Merged,
    lifted: Lifted,
    place_of: U32,
    slices: int,
    by_slice: _Dense,
    by_instant: _Dense,
    scratch: Scratch,
) -> tuple[int, int] | None:
    """Put one argument's values where they belong; return the least and greatest, None if there is none."""
    low, high, found = 0, 0, False
    for i, part in enumerate(merged.parts):
        if i % _PARTS == 0:
            scratch.let_go()
        merged.let_go(i - 1)
        column = part.lifted.get(lifted.key)
        if column is None or not len(column.ordinals):
            continue
        ordinals, values = column.ordinals, column.values
        if bool((ordinals[1:] < ordinals[:-1]).any()):
            order = np.argsort(ordinals, kind="stable")
            ordinals, values = ordinals[order], values[order]
        if lifted.kind is Kind.TEXT:
            values = merged.strings.maps[i][values]
        elif lifted.kind is Kind.FLOAT:
            values = np.ascontiguousarray(values, np.float64).view(np.int64)
        first = merged.first_ordinal[i]
        place = place_of[first : first + part.events][ordinals]
        lost = place == NONE
        if bool(lost.any()):
            place, values = place[~lost], values[~lost]
        if not len(place):
            continue
        if lifted.kind is Kind.INTEGER:
            limits = int(values.min()), int(values.max())
            low, high = (min(low, limits[0]), max(high, limits[1])) if found else limits
        found = True
        is_slice = place < slices
        if bool(is_slice.all()):
            by_slice.put(place, values)
        else:
            by_slice.put(place[is_slice], values[is_slice])
            by_instant.put(NONE - 1 - place[~is_slice].astype(np.int64), values[~is_slice])
    merged.let_go(-1)
    return (low, high) if found else None
