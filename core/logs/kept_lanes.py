"""The lanes that are made of a trace for its first picture, kept beside its index: to make them of 41,000
records takes 26 ms of the 200 that the picture takes.
"""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..base.arrays import AnyArray
from ..base.clock import NO_CLOCKS
from ..base.private import read_sealed_json
from ..tables.frame.cached import usual_cache_file, write_cached
from ..trace import Trace
from .more_sources import Counter

NAME = "lanes"
MAX_SAMPLES = 1 << 18
"""More samples are made again as quickly as they are read."""
COLUMNS = {"starts": "<i8", "values": "<f8", "events": "<i8"}


def kept_file(trace: Trace) -> Path | None:
    """Return where the lanes of a trace are kept, None where they are not: of two runs side by side, say."""
    return usual_cache_file(trace, NO_CLOCKS, NAME)


def kept_lanes(trace: Trace) -> list[Counter] | None:
    """Return the lanes that were made of a trace before, None where they have to be made."""
    path = kept_file(trace)
    if path is None:
        return None
    try:
        return [_counter(one, trace) for one in read_sealed_json(path)]
    except (OSError, KeyError, TypeError, ValueError, OverflowError):
        return None


def keep_lanes(trace: Trace, lanes: Sequence[Counter]) -> None:
    """Keep the lanes that were made of a trace; a failure is ignored, they are made again the next time."""
    path = kept_file(trace)
    if path is not None and sum(len(one.starts) for one in lanes) <= MAX_SAMPLES:
        write_cached(path, [_stored(one) for one in lanes])


def _stored(one: Counter) -> dict[str, Any]:
    columns = {key: None if (of := getattr(one, key)) is None else _text(of, COLUMNS[key]) for key in COLUMNS}
    return one._asdict() | columns


def _counter(stored: dict[str, Any], trace: Trace) -> Counter:
    """Return a stored lane; ValueError or TypeError where it is none of this trace."""
    columns = {key: None if stored[key] is None else _array(stored[key], COLUMNS[key]) for key in COLUMNS}
    one = Counter(**stored | columns)
    texts, numbers = (one.kind, one.heading, one.title), (one.source, one.process)
    if not all(type(text) is str for text in texts) or not all(type(number) is int for number in numbers):
        raise TypeError("not a lane")
    if not (
        0 <= one.source < len(trace.indexes) and 0 <= one.process < len(trace.indexes[one.source].processes)
    ):
        raise ValueError("a lane of no process")
    lengths = {len(column) for column in columns.values() if column is not None}
    if one.starts is None or one.values is None or len(lengths) > 1 or (np.diff(one.starts) < 0).any():
        raise ValueError("samples that belong to no time")
    return one


def _text(values: AnyArray, dtype: str) -> str:
    return binascii.b2a_base64(values.astype(dtype).tobytes(), newline=False).decode("ascii")


def _array(text: str, dtype: str) -> AnyArray:
    values = np.frombuffer(binascii.a2b_base64(text, strict_mode=True), dtype)
    return values.astype(np.dtype(dtype).newbyteorder("="))
