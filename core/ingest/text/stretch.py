"""A stretch of text with its events and keys found, from which columns are read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..columns import I64, U8
from ..separator import Separator
from ..window import PAD

KEY_END = b'":'
"""What ends a key, and stands nowhere else in sound events without a backslash."""
_PIECE = 1 << 19
"""So many bytes are searched at once: more would not stay in the processor's cache."""
_BACKSLASH = ord("\\")

Mask = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Wanted:
    """A text to be compared, as words of eight bytes: numpy compares texts byte by byte."""

    length: int
    words: Words  # the last byte the highest of the last word; the first word is filled up with zeros
    mask: np.uint64  # the bytes of the first word that are part of the text

    @property
    def count(self) -> int:
        """How many words there are."""
        return len(self.words)

    @property
    def size(self) -> int:
        """How many bytes the words have."""
        return 8 * len(self.words)

    @classmethod
    def of(cls, text: bytes) -> Wanted:
        """Return a text as words."""
        count = -(-len(text) // 8)
        words = np.frombuffer(text.rjust(8 * count, b"\0"), "<u8")
        unused = 8 * (8 * count - len(text))
        return cls(len(text), words, np.uint64((1 << 64) - (1 << unused)))

    def is_in(self, words: Words) -> Mask:
        """Tell at which places, given a row per word, the text is what the first words end with."""
        differing = words[: self.count] ^ self.words[:, None]
        differing[0] &= self.mask
        return np.asarray(np.bitwise_or.reduce(differing, axis=0) == 0)


@dataclass(frozen=True)
class Stretch:
    """Whole events joined by one separator; all places are offsets in `text`, in which they stand."""

    text: bytes
    begins: I64  # of each event: its opening brace
    ends: I64  # behind its closing brace
    keys: I64  # where all keys end; in events with a backslash perhaps others, too
    first: I64  # number of each event's first key
    counts: I64  # keys in each event
    escaped: Mask | None  # events with a backslash somewhere

    def taken(self, places: I64, count: int) -> Words:
        """Return so many words of eight bytes from each place on, the first byte the lowest; a row per place.

        Taken as bytes: numpy takes numbers that lie anywhere four times as slowly. How many it takes from a
        place hardly counts.
        """
        return _taken(self.text, places, count)


def stretch_of(data: bytes, start: int, end: int, separator: Separator) -> Stretch:
    """Find events and keys in a part of some text that begins with an event and ends with one."""
    if start < PAD or len(data) - end < PAD:
        margin = bytes(PAD)
        data = b"".join((margin, memoryview(data)[start:end], margin))
        start, end = PAD, PAD + end - start
    letters = np.frombuffer(data, np.uint8)
    wanted = Wanted.of(separator.text)
    behind = len(separator.text) - separator.end + 1  # from the brace on
    keys, braces = [], []
    for low in range(start, end, _PIECE):
        high = min(low + _PIECE, end)
        keys.append(_pairs(letters, low, high, *KEY_END))
        low, high = max(low, start + separator.end - 1), min(high, end - behind)
        places = _pairs(letters, low, high, *separator.text[separator.end - 1 : separator.end + 1])
        braces.append(
            places[wanted.is_in(by_word(_taken(data, places - (wanted.size - behind), wanted.count)))]
        )
    all_keys, between = np.concatenate(keys), np.concatenate(braces)
    begins = np.concatenate(([start], between + (1 + separator.begin - separator.end)))
    ends = np.concatenate((between + 1, [end]))
    bounds = np.searchsorted(all_keys, np.append(begins, end))
    escaped = None
    if data.find(b"\\", start, end) >= 0:
        escaped = np.zeros(len(begins), np.bool_)
        backslashes = start + np.flatnonzero(letters[start:end] == _BACKSLASH)
        escaped[np.searchsorted(ends, backslashes, "right")] = True
    return Stretch(data, begins, ends, all_keys, bounds[:-1], np.diff(bounds), escaped)


def _pairs(letters: U8, low: int, high: int, letter: int, following: int) -> I64:
    """Return where, between two places, a letter stands with another one behind it."""
    found = letters[low:high] == letter
    found &= letters[low + 1 : max(low, high) + 1] == following
    places = np.flatnonzero(found)
    places += low
    return places


def _taken(data: bytes, places: I64, count: int) -> Words:
    view = np.ndarray((len(data) - 8 * count + 1,), f"V{8 * count}", data, 0, (1,))
    return view[places].view("<u8").reshape(-1, count)


def by_word(taken: Words) -> Words:
    """Return words that were taken, a row per word: all first ones together, and so on."""
    return np.array(taken.T, np.uint64, order="C")
