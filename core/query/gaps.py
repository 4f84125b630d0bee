"""Gaps of a row: the time between two slices that follow each other, computed chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..base.arrays import I64
from ..index.store import Index
from .lookup import started_by

CHUNK = 1 << 20
"""Gaps computed together."""


def gap_before(index: Index, row_number: int, at: int) -> tuple[int, int] | None:
    """Return the (start, end), lane time, of the gap that the slice at an index within the row ends.

    None for the row's first slice and where nothing lies between it and the one before.
    """
    row = index.rows[row_number]
    if not 0 < at < int(row["count"]):
        return None
    position = int(row["first"]) + at
    start, end = index.end(position - 1), index.start(position)
    return (start, end) if start < end else None


def gap_at(index: Index, row_number: int, time: int) -> int | None:
    """Return the index within the row of the slice that ends the gap a lane time lies in."""
    at = started_by(index, row_number, time)
    gap = gap_before(index, row_number, at)
    return at if gap is not None and gap[0] <= time < gap[1] else None


def next_gap(index: Index, row_number: int, time: int, least: int = 1) -> int | None:
    """Return the index within the row of the slice that ends the first gap of `least` ns or more that begins
    at or after a lane time.
    """
    row = index.rows[row_number]
    first, count = int(row["first"]), int(row["count"])
    # The slice that ends such a gap starts after the time.
    for low in range(max(1, started_by(index, row_number, time)), count, CHUNK):
        high = min(count, low + CHUNK)
        starts, ends = _edges(index, first, low, high)
        hits = np.flatnonzero((ends - starts >= max(1, least)) & (starts >= time))
        if len(hits):
            return low + int(hits[0])
    return None


def longest_gap(
    index: Index, row_number: int, within: tuple[int, int] | None = None
) -> tuple[int, int] | None:
    """Return (index within the row of the slice that ends it, ns) of the longest gap, the first of equals.

    Of a gap that reaches beyond `within` (lane time) only the part inside counts. None without gaps.
    """
    row = index.rows[row_number]
    first, low, count = int(row["first"]), 1, int(row["count"])
    if within is not None:
        low = max(1, started_by(index, row_number, within[0]))
        count = min(count, started_by(index, row_number, within[1]) + 1)
    best: tuple[int, int] | None = None
    for begin in range(low, count, CHUNK):
        starts, ends = _edges(index, first, begin, min(count, begin + CHUNK))
        if within is not None:
            starts, ends = np.maximum(starts, within[0]), np.minimum(ends, within[1])
        at = int(np.argmax(ends - starts))
        ns = int(ends[at] - starts[at])
        if ns > 0 and (best is None or ns > best[1]):
            best = begin + at, ns
    return best


def gaps_of(index: Index, row_number: int) -> Iterator[tuple[I64, I64, I64]]:
    """Yield (index within the row of the slice that ends it, start, end) of a row's gaps, lane time, as
    columns, piece by piece.
    """
    row = index.rows[row_number]
    first, count = int(row["first"]), int(row["count"])
    for low in range(1, count, CHUNK):
        starts, ends = _edges(index, first, low, min(count, low + CHUNK))
        at = np.flatnonzero(ends > starts)
        yield at + low, starts[at], ends[at]


def _edges(index: Index, first: int, low: int, high: int) -> tuple[I64, I64]:
    """Return start and end of the gaps before the slices [low, high) of a row; empty ones have no length."""
    begin = index.column("slices.start")[first + low - 1 : first + high].astype(np.int64)
    ends: I64 = begin[:-1] + index.durations_between(first + low - 1, first + high - 1)
    return ends, begin[1:]
