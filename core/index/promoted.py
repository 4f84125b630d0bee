"""Promoted arguments from events to slices and instants: sparse columns, in the smallest dtype.

A slot is a slice's position, or after all slices the index of an instant.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..ingest.columns import U32
from ..ingest.lifted import LIFTED, Kind, Lifted
from .columns_out import Columns, smallest_integer
from .merge import Merged
from .workers import Job, Worker

PIECE = 1 << 18
"""Slots that are looked through at once."""
_DTYPES = {Kind.TEXT: "u4", Kind.FLOAT: "f8", Kind.INTEGER: "i8"}


def promoted_jobs(merged: Merged, slices: int, instants: int, slot_of: U32, columns: Columns) -> list[Job]:
    """Return a job per argument that occurs, which writes its columns; those of many values first."""
    sizes = {lifted: sum(map(len, _ordinals(merged, lifted))) for lifted in LIFTED}
    return [
        partial(_write, merged, lifted, slices, instants, slot_of, columns)
        for lifted, size in sorted(sizes.items(), key=lambda item: -item[1])
        if size
    ]


def _write(
    merged: Merged,
    lifted: Lifted,
    slices: int,
    instants: int,
    slot_of: U32,
    columns: Columns,
    worker: Worker,
) -> None:
    slots = slices + instants
    dense = worker.rooms.room("promoted", slots, "i8").view(_DTYPES[lifted.kind])[:slots]
    present = worker.rooms.room("present", slots // 64 + 1, "u8")
    present.fill(0)
    limits = []
    for number, part in enumerate(merged.parts):
        column = part.lifted.get(lifted.key)
        if column is None or not len(column.ordinals):
            continue
        ordinals, values = column.ordinals, column.values
        if bool((ordinals[1:] < ordinals[:-1]).any()):  # of two events of one slice the later one's holds
            order = np.argsort(ordinals, kind="stable")
            ordinals, values = ordinals[order], values[order]
        if lifted.kind is Kind.TEXT:
            values = merged.strings.maps[number].take(values)
        ordinals, values = (
            np.ascontiguousarray(ordinals, np.uint32),
            np.ascontiguousarray(values, dense.dtype),
        )
        own = slot_of[merged.first_ordinal[number] :][: part.events]
        limits.append(worker.loops.promote(ordinals, values, own, dense, present))
    dtype = _DTYPES[lifted.kind]
    integers = [one for one in limits if one is not None]
    if integers:
        dtype = smallest_integer(min(low for low, _ in integers), max(high for _, high in integers))
    name = f"lifted.{lifted.key}"
    for where, value, begin, end in (
        ("position", "value", 0, slices), ("instant", "instant_value", slices, slots)
    ):  # fmt: skip
        for at in range(begin, end, PIECE):
            places, values = worker.loops.compact(dense, present, at, min(at + PIECE, end), begin)
            if len(places):
                columns.writer(f"{name}.{where}", "u4").append(places)
                columns.writer(f"{name}.{value}", dtype).append(values)
    columns.finish(*(f"{name}.{suffix}" for suffix in ("position", "value", "instant", "instant_value")))


def _ordinals(merged: Merged, lifted: Lifted) -> list[U32]:
    columns = (part.lifted.get(lifted.key) for part in merged.parts)
    return [column.ordinals for column in columns if column is not None]
