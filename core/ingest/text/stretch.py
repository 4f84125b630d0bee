"""A stretch of text with its events and quotes found, from which columns are read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..columns import I64, U8
from ..separator import Separator

PAD = 64
"""So many bytes stand around the events at least: words are taken from a little beyond them."""
_PIECE = 1 << 18
"""So many bytes are searched at once: more do not fit into the processor's cache."""
_QUOTE, _BRACE, _BACKSLASH = b'"}\\'

I32 = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Wanted:
    """A text to be compared, as words of eight bytes: numpy compares texts byte by byte."""

    length: int
    words: Words  # the first byte the lowest; the last word is filled up with zeros
    mask: np.uint64  # the bytes of the last word that are part of the text

    @classmethod
    def of(cls, text: bytes) -> Wanted:
        """Return a text as words."""
        count = -(-len(text) // 8)
        words = np.frombuffer(text.ljust(8 * count, b"\0"), "<u8")
        return cls(len(text), words, np.uint64((1 << (64 - 8 * (8 * count - len(text)))) - 1))


@dataclass(frozen=True)
class Stretch:
    """Whole events joined by one separator; all places are offsets in `text`, in which they stand."""

    text: bytes
    begins: I64  # of each event: its opening brace
    ends: I64  # behind its closing brace
    quotes: I32  # all quotes, in events with a backslash also those that end no string
    first: I64  # number of each event's first quote
    counts: I64  # quotes in each event
    escaped: Mask | None  # events with a backslash somewhere

    @cached_property
    def letters(self) -> U8:
        """The text as numbers."""
        return np.frombuffer(self.text, np.uint8)

    def words(self, places: I64, count: int = 1) -> Words:
        """Return so many words of eight bytes from each place on, the first byte the lowest; a row per place.

        Taken as bytes: numpy takes numbers that lie anywhere four times as slowly.
        """
        return _words(self.text, places, count)

    def stands(self, wanted: Wanted, places: I64) -> Mask:
        """Tell at which places a text stands."""
        most = len(self.text) - 8 * len(wanted.words)
        if len(places) and (places.max() > most or places.min() < 0):
            inside = (places >= 0) & (places <= most)
            return _stands(self.text, wanted, np.clip(places, 0, most)) & inside
        return _stands(self.text, wanted, places)


def stretch_of(data: bytes, start: int, end: int, separator: Separator) -> Stretch:
    """Find events and quotes in a part of some text that begins with an event and ends with one."""
    if start < PAD or len(data) - end < PAD:
        margin = bytes(PAD)
        data = b"".join((margin, memoryview(data)[start:end], margin))
        start, end = PAD, PAD + end - start
    lead, length = separator.end - 1, len(separator.text)
    braces = _places(data, start, end, _BRACE).astype(np.int64) - lead
    braces = braces[(braces > start) & (braces < end - length)]
    between = braces[_stands(data, Wanted.of(separator.text), braces)]
    begins = np.concatenate(([start], between + separator.begin))
    ends = np.concatenate((between + separator.end, [end]))
    quotes = _places(data, start, end, _QUOTE)
    bounds = np.searchsorted(quotes, np.append(begins, end).astype(np.int32))
    escaped = None
    if data.find(b"\\", start, end) >= 0:
        escaped = np.zeros(len(begins), np.bool_)
        escaped[np.searchsorted(ends, _places(data, start, end, _BACKSLASH), "right")] = True
    return Stretch(data, begins, ends, quotes, bounds[:-1], np.diff(bounds), escaped)


def _words(data: bytes, places: I64, count: int) -> Words:
    view = np.ndarray((len(data) - 8 * count + 1,), f"V{8 * count}", data, 0, (1,))
    return view[places].view("<u8").reshape(-1, count)


def _stands(data: bytes, wanted: Wanted, places: I64) -> Mask:
    count = len(wanted.words)
    words = _words(data, places, count)
    differing = words[:, count - 1] & wanted.mask
    differing ^= wanted.words[count - 1]
    for number in range(count - 1):
        differing |= words[:, number] ^ wanted.words[number]
    return np.asarray(differing == 0)


def _places(data: bytes, start: int, end: int, letter: int) -> I32:
    """Return where a letter stands in a part of some text."""
    letters = np.frombuffer(data, np.uint8)
    pieces = []
    for low in range(start, end, _PIECE):
        found = np.flatnonzero(letters[low : min(low + _PIECE, end)] == letter).astype(np.int32)
        found += low
        pieces.append(found)
    return np.concatenate(pieces)
