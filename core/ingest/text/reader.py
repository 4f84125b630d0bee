"""Reads stretches of text as columns: events that are written alike together, the others by the decoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import orjson

from ..columns import I64, U32
from ..separator import Separator
from .spellings import Spellings
from .stretch import stretch_of
from .templates import Templates
from .values import Alike, ValueReader

STRETCH_SIZE = 6 << 20
"""So much text is read at once: a call of numpy costs what hundreds of events do."""
LONGEST_PAUSE = 32
"""At most so many stretches are left to the decoder before this is tried again where it did not pay."""


@dataclass(frozen=True)
class ReadText:
    """A stretch that is sound JSON, read."""

    length: int
    begins: I64  # of its events, from its first byte
    ends: I64
    alike: Sequence[Alike]
    others: U32  # events that were decoded
    text: bytes  # of these, joined by commas
    events: Sequence[object]
    spellings: Spellings


class TextReader:
    """Reads stretches, and learns how events are written."""

    def __init__(self) -> None:
        """Begin with nothing learned."""
        self._templates = Templates()
        self._values = ValueReader()
        self._pause = 0  # so many stretches are left to the decoder
        self._failures = 0

    def is_due(self) -> bool:
        """Whether to try the next stretch, to be asked once for each: not where the last ones did not pay."""
        self._pause -= 1
        return self._pause < 0

    def read(self, data: bytes, start: int, end: int, separator: Separator) -> ReadText | None:
        """Return a part of some text, whole events, as columns; None where it is not sound, or only decoding
        tells exactly what it says.
        """
        read = self._read(data, start, end, separator)
        if read is None or 2 * len(read.others) > len(read.begins):
            self._failures += 1
            self._pause = min(1 << self._failures, LONGEST_PAUSE)
        else:
            self._failures = self._pause = 0
        return read

    def _read(self, data: bytes, start: int, end: int, separator: Separator) -> ReadText | None:
        self._values.forget()
        stretch = stretch_of(data, start, end, separator)
        other = np.ones(len(stretch.begins), np.bool_)
        try:
            alike = self._values.read(list(self._templates.parted(stretch)))
            for found in alike:
                other[found.places] = False
            others = np.flatnonzero(other)
            bounds = zip(stretch.begins[others].tolist(), stretch.ends[others].tolist())
            texts = [stretch.text[a:b] for a, b in bounds]
            decoded = list(map(orjson.loads, texts))  # one by one: what is sound only together is none
        except (ValueError, RecursionError):
            return None
        return ReadText(
            end - start,
            stretch.begins - stretch.begins[0],
            stretch.ends - stretch.begins[0],
            alike,
            others.astype(np.uint32),
            b",".join(texts),
            decoded,
            self._values.spellings,
        )
