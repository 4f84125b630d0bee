"""One argument of all events, read from the source block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.arrays import I64, AnyArray
from ..base.progress import CancelledCallback, never
from ..index.blockstore import read_blocks
from ..index.store import Index
from ..query.args import LARGEST, arguments_in, elements_of
from ..query.scan import json_value_text, key_needle

LIMIT = 1 << 63


def scanned_argument(index: Index, key: str, cancelled: CancelledCallback = never) -> tuple[I64, AnyArray]:
    """Return (event ordinals, values) of all events that have an argument of this key; the end of a pair of
    events (E, e) counts for its begin. Values are whole numbers if all are, else numbers if all are, else
    texts: strings as they are, all else as JSON. Raises UnreadableError when the source has gone or changed,
    Cancelled.
    """
    begins = dict(
        zip(
            index.column("ends.ordinal").tolist(),
            index.column("slices.ordinal")[index.column("ends.position")].tolist(),
        )
    )
    firsts, counts = index.column("blocks.ordinal").tolist(), index.column("blocks.count").tolist()
    lengths = index.column("blocks.length")
    needle = key_needle(key)
    ordinals: list[int] = []
    values: list[Any] = []
    blocks = [at for at, count in enumerate(counts) if count and int(lengths[at]) <= LARGEST]
    for block, data in read_blocks(index, blocks, cancelled):
        if not needle.may_hold(data):
            continue
        for at, event in enumerate(elements_of(data, bool(index.column("blocks.repaired")[block]))):
            if isinstance(event, dict) and event.get("ph") != "M":
                value = arguments_in(event).get(key)
                if value is not None:
                    ordinal = firsts[block] + at
                    ordinals.append(begins.get(ordinal, ordinal))
                    values.append(value)
    return np.array(ordinals, np.int64), _column(values)


def _column(values: list[Any]) -> AnyArray:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    if numbers and all(isinstance(value, int) and -LIMIT <= value < LIMIT for value in values):
        return np.array(values, np.int64)
    if numbers:
        return np.array(values, np.float64)
    column = np.empty(len(values), object)
    column[:] = [json_value_text(value) for value in values]
    return column
