"""The times of many blocks at once: exact ns of plain numbers, or that a block needs a closer look."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from ..base.exact import ns_from_floats, ns_from_texts
from .columns import I64, TIME_LIMIT
from .columns_time import are_short, written_times

LONGEST = 1 << 54
"""Durations of so many ns (208 days) and more are looked at one by one."""


def settled(
    texts: Sequence[bytes], starts: Sequence[bytes], durations: Sequence[bytes]
) -> list[tuple[I64, I64] | None]:
    """Return (starts, durations) of the events and slices of each block, given in float64 µs; None where they
    cannot be told without its events.
    """
    begin, last = _settled("ts", texts, starts), _settled("dur", texts, durations)
    return [
        None if start is None or duration is None or _is_unusual(start, duration) else (start, duration)
        for start, duration in zip(begin, last)
    ]


def _settled(key: str, texts: Sequence[bytes], packed: Sequence[bytes]) -> list[I64 | None]:
    micros = np.frombuffer(b"".join(packed), np.float64)
    ns, unsure = ns_from_floats(micros, lambda: all(map(are_short, texts)))
    result: list[I64 | None] = []
    for text, (a, b) in zip(texts, pairwise(accumulate([0, *(len(raw) // 8 for raw in packed)]))):
        doubtful = unsure is not None and bool(unsure[a:b].any())
        result.append(_written(key, text, b - a) if doubtful else ns[a:b])
    return result


def _written(key: str, text: bytes, count: int) -> I64 | None:
    """Return the times from the text of a block in which `count` events have the key, if no other does."""
    found = written_times(key, text)
    return None if found is None or len(found) != count else ns_from_texts(found)


def _is_unusual(start: I64, duration: I64) -> bool:
    """Tell whether a duration is negative, or an end may lie beyond TIME_LIMIT."""
    if not len(duration):
        return False
    return bool(duration.min() < 0 or duration.max() >= LONGEST or start.max() > TIME_LIMIT - LONGEST)
