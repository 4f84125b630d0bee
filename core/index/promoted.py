"""Promoted arguments from events to slices and instants: sparse columns, in the smallest dtype.

A slot is a slice's position, or after all slices the index of an instant.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np

from ..base.arrays import U32
from ..read.promoted import PROMOTED, Kind, Promoted
from .batches import NumberedBatches
from .column_files import ColumnFiles, smallest_integer
from .workers import BuildJob, Worker

PIECE = 1 << 18
"""Slots that are looked through at once."""
_DTYPES = {Kind.TEXT: "u4", Kind.FLOAT: "f8", Kind.INTEGER: "i8"}


def promoted_jobs(
    batches: NumberedBatches, slices: int, instants: int, slot_of: U32, columns: ColumnFiles
) -> list[BuildJob]:
    """Return a job per argument that occurs, which writes its columns; those of many batches first."""
    occurrences = Counter(key for batch in batches.batches for key in batch.promoted)
    arguments = sorted(PROMOTED, key=lambda one: -occurrences[one.key])
    return [
        partial(_write, batches, argument, slices, instants, slot_of, columns)
        for argument in arguments
        if occurrences[argument.key]
    ]


def _write(
    batches: NumberedBatches,
    argument: Promoted,
    slices: int,
    instants: int,
    slot_of: U32,
    columns: ColumnFiles,
    worker: Worker,
) -> None:
    slots = slices + instants
    dense = worker.rooms.room("promoted", slots, "i8").view(_DTYPES[argument.kind])[:slots]
    present = worker.rooms.room("present", slots // 64 + 1, "u8")
    present.fill(0)
    limits = []
    for number, batch in enumerate(batches.batches):
        column = batch.promoted.get(argument.key)
        if column is None:
            continue
        values = column.values
        if argument.kind is Kind.TEXT:
            values = batches.promoted_strings(number, values)
        own = slot_of[batches.first_ordinal[number] :][: batch.events]
        ordinals = np.ascontiguousarray(column.ordinals, np.uint32)
        values = np.ascontiguousarray(values, dense.dtype)
        limits.append(worker.loops.promote(ordinals, values, own, dense, present))
    dtype = _DTYPES[argument.kind]
    integers = [one for one in limits if one is not None]
    if integers:
        dtype = smallest_integer(min(low for low, _ in integers), max(high for _, high in integers))
    name = f"promoted.{argument.key}"
    for where, value, begin, end in (
        ("position", "value", 0, slices), ("instant", "instant_value", slices, slots)
    ):  # fmt: skip
        for at in range(begin, end, PIECE):
            positions, values = worker.loops.compact(dense, present, at, min(at + PIECE, end), begin)
            if len(positions):
                columns.writer(f"{name}.{where}", "u4").append(positions)
                columns.writer(f"{name}.{value}", dtype).append(values)
    columns.finish(*(f"{name}.{suffix}" for suffix in ("position", "value", "instant", "instant_value")))
