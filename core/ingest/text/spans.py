"""Hashes of spans of text, many at once."""

from __future__ import annotations

import hashlib
import secrets

import numpy as np

from ..columns import I64
from .stretch import Stretch, Words

_WORDS = 4
_CHUNK = 8 * _WORDS
_UNUSED = np.clip(64 - 8 * (np.arange(_CHUNK + 1)[:, None] - np.arange(0, _CHUNK, 8)), 0, 64).astype(
    np.uint64
)
"""Bytes of text in a chunk -> bits that are not text in each of its words; a shift by 64 leaves nothing."""


class SpanHash:
    """Hashes with a secret of their own, so that no trace can be made whose texts collide."""

    def __init__(self) -> None:
        """Draw the secret."""
        drawn = [secrets.randbits(64) | 1 for _ in range(_WORDS + 4)]
        self._keys = np.array(drawn[:_WORDS], np.uint64)
        self._length, self._first, self._second, self._third = (np.uint64(key) for key in drawn[_WORDS:])

    def of(self, stretch: Stretch, starts: I64, lengths: I64) -> Words:
        """Return an odd 64-bit hash per span."""
        hashes = lengths.astype(np.uint64)
        hashes *= self._length
        longest = int(lengths.max(initial=0))
        if longest <= 8:
            words = stretch.words(starts)[:, 0]
            words <<= _UNUSED[np.minimum(lengths, 8), 0]
            hashes ^= words ^ self._keys[0]
            return self.mixed(hashes)
        hashes = self._stirred(hashes ^ self._folded(stretch, starts, lengths))
        active = np.flatnonzero(lengths > _CHUNK)
        for at in range(_CHUNK, longest, _CHUNK):
            folded = self._folded(stretch, starts[active] + at, lengths[active] - at)
            hashes[active] = self._stirred(hashes[active] ^ folded)
            active = active[lengths[active] > at + _CHUNK]
        return self.mixed(hashes)

    def _folded(self, stretch: Stretch, starts: I64, left: I64) -> Words:
        """Return a word made of a chunk from each place on, or of so many bytes of it as are left."""
        words = stretch.words(starts, _WORDS)
        words <<= _UNUSED[np.minimum(left, _CHUNK)]
        words ^= self._keys
        words *= self._first
        words ^= words >> np.uint64(32)
        words *= self._keys
        folded = words[:, 0] + words[:, 1]
        for word in range(2, _WORDS):
            folded += words[:, word]
        return folded

    def of_text(self, text: bytes) -> np.uint64:
        """Return a hash of one text, other than that of the same text in a stretch."""
        digest = hashlib.blake2b(text, digest_size=8, key=self._first.tobytes()).digest()
        return np.uint64(int.from_bytes(digest, "little"))

    def joined(self, one: Words | np.uint64, other: Words) -> Words:
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
        return hashes ^ (hashes >> np.uint64(29))
