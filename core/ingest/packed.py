"""Decoded numbers as raw native values; `struct` packs a list two to four times as fast as numpy reads it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any


def packed_integers(values: Sequence[Any]) -> bytes | None:
    """Return JSON integers as int64; None where a value is anything else or larger."""
    if set(map(type, values)) != {int}:
        return None
    try:
        return struct.pack(f"{len(values)}q", *values)
    except struct.error:
        return None


def packed_floats(values: Sequence[Any]) -> bytes | None:
    """Return JSON numbers as float64; None where a value is anything else or larger."""
    if not set(map(type, values)) <= {int, float}:
        return None
    try:
        return struct.pack(f"{len(values)}d", *values)
    except (OverflowError, struct.error):
        return None


def packed_numbers(values: Sequence[int]) -> bytes:
    """Return numbers of strings or tracks as uint32."""
    return struct.pack(f"{len(values)}I", *values)
