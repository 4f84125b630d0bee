"""Hashes of spans of text, many at once."""

from __future__ import annotations

import hashlib
import secrets

import numpy as np

from ..columns import I64
from .spans import MOST_WORDS, Spans
from .stretch import Words, by_word

_FIRST = 8 * MOST_WORDS
_CHUNK_WORDS = 8
_CHUNK = 8 * _CHUNK_WORDS
_ENDS = 64 * np.arange(1, _CHUNK_WORDS + 1)[:, None]
"""In bits, of the words of a chunk."""


class SpanHash:
    """Hashes with a secret of their own, so that no trace can be made whose texts collide."""

    def __init__(self) -> None:
        """Draw the secret."""
        drawn = np.array([secrets.randbits(64) | 1 for _ in range(_CHUNK_WORDS + 5)], np.uint64)
        self._keys = drawn[:_CHUNK_WORDS, None]
        self._length, self._place, self._first, self._second, self._third = drawn[_CHUNK_WORDS:]
        self._nothing = self._mixed_words(np.zeros((_CHUNK_WORDS, 1), np.uint64))[:, 0]

    def of(self, spans: Spans) -> Words:
        """Return an odd 64-bit hash per span."""
        lengths = spans.lengths
        hashes = lengths.astype(np.uint64)
        hashes *= self._length
        hashes ^= self._folded(spans.words, lengths)
        long = np.flatnonzero(lengths > _FIRST)
        if long.size:
            hashes[long] += self._rest(spans, long)
        return self.mixed(hashes)

    def _rest(self, spans: Spans, long: I64) -> Words:
        """Return a word per span made of what lies behind its first words, the chunks of all at once."""
        lengths = spans.lengths[long] - _FIRST
        counts = -(-lengths // _CHUNK)
        begins = np.cumsum(counts) - counts
        number = np.arange(int(counts.sum())) - np.repeat(begins, counts)
        offsets = _CHUNK * number
        places = np.repeat(spans.starts[long] + _FIRST, counts) + offsets
        words = by_word(spans.stretch.taken(places, _CHUNK_WORDS))
        folded = self._folded(words, np.repeat(lengths, counts) - offsets)
        folded ^= number.view(np.uint64) * self._place
        return np.asarray(np.add.reduceat(self._stirred(folded), begins))

    def _folded(self, words: Words, left: I64) -> Words:
        """Return a word made of some words of each span, or of so many of their bytes as are left of it."""
        unused = _ENDS[: len(words)] - 8 * left
        np.maximum(unused, 0, out=unused)
        folded = self._mixed_words(words << unused.view(np.uint64))  # a shift by 64 leaves nothing
        return np.asarray(folded.sum(axis=0) + self._nothing[len(words) :].sum())

    def _mixed_words(self, words: Words) -> Words:
        keys = self._keys[: len(words)]
        words ^= keys
        words *= self._first
        words ^= words >> np.uint64(32)
        words *= keys
        return words

    def of_text(self, text: bytes) -> np.uint64:
        """Return a hash of one text, other than that of the same text in a stretch."""
        digest = hashlib.blake2b(text, digest_size=8, key=self._first.tobytes()).digest()
        return np.uint64(int.from_bytes(digest, "little"))

    def joined(self, one: Words, other: Words) -> Words:
        """Return a hash of two hashes, in this order."""
        return self.mixed(one * self._third ^ other)

    def mixed(self, hashes: Words) -> Words:
        """Return hashes whose high bits depend on all others."""
        hashes = self._stirred(self._stirred(hashes))
        return hashes | np.uint64(1)

    def _stirred(self, hashes: Words) -> Words:
        hashes = hashes * self._first
        hashes ^= hashes >> np.uint64(31)
        hashes *= self._second
        hashes ^= hashes >> np.uint64(29)
        return hashes
