"""What the records of XLA's and TensorFlow's allocators say besides sizes and addresses: the op and the use
that an allocation is for, how far free memory is in pieces, and what was in use before the trace.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...base.arrays import I64
from ...base.errors import UnreadableError
from ...base.units import format_bytes, format_share
from ...query.args import arguments_read
from ..host.allocations import BY_SIZE, NO_RECORD, Allocator

NOTHING = ("", "(null)")
"""What stands where an annotation has no text."""


class Said(NamedTuple):
    """What a record says of an allocation; empty where it does not."""

    op: str = ""
    kind: str = ""  # its use and the shape of what it is for: "output [3, 512]"


def _arguments_of(one: Allocator, records: I64) -> list[dict[str, Any]]:
    """Return the arguments of records that are slices; none of others, and where the file cannot be read."""
    result: list[dict[str, Any]] = [{} for _ in records]
    own = np.flatnonzero(records != NO_RECORD)
    own = own[one.records.slices[records[own]] != NO_RECORD]
    if not len(own) or one.known_by == BY_SIZE:
        return result
    try:
        for at, arguments in arguments_read(one.index, one.records.slices[records[own]]):
            result[int(own[at])] = arguments
    except (UnreadableError, OSError):
        return [{} for _ in records]
    return result


def _text(value: object) -> str:
    return value if isinstance(value, str) and value not in NOTHING else ""


def _number(value: object) -> float:
    """Return a number that may stand in quotes, NaN for none."""
    try:
        return float(value) if isinstance(value, (str, int, float)) else math.nan
    except (ValueError, OverflowError):
        return math.nan


def records_said(one: Allocator, numbers: I64) -> list[Said]:
    """Return what the records of some allocations say."""
    return [
        Said(
            _text(arguments.get("tf_op")),
            f"{_text(arguments.get('region_type'))} {_text(arguments.get('shape'))}".strip(),
        )
        for arguments in _arguments_of(one, one.allocations.begins[numbers])
    ]


def notes_said(one: Allocator, begin: int, end: int, peak: int | None) -> Iterator[str]:
    """Yield what records [begin, end) say of free memory and of the time before the trace."""
    at_peak = begin if peak is None or peak < begin else peak
    first, top, last = _arguments_of(one, np.array([begin, at_peak, end - 1], np.int64))
    parts = [
        f"{format_share(share)} {when}"
        for share, when in zip(
            (_number(said.get("fragmentation")) for said in (top, last)), ("at the peak", "at the end")
        )
        if 0 <= share <= 1
    ]
    if parts:
        shares = " and ".join(parts)
        yield f"{one.title}: of what is free in its regions {shares} are outside the largest free block"
    earlier, level = _number(first.get("peak_bytes_in_use")), int(one.total[begin:end].max())
    if earlier > level:
        yield f"{one.title}: up to {format_bytes(int(earlier))} were in use before the trace"
