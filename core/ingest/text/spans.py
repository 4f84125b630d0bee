"""Spans of text, many at once, with the first bytes of each as words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..columns import I64
from .stretch import Mask, Stretch, Words

MOST_WORDS = 4
"""Of each span at most so many words of eight bytes are kept: no number that is read here is longer."""


@dataclass(frozen=True)
class Spans:
    """Texts that stand in a stretch."""

    stretch: Stretch
    starts: I64
    lengths: I64
    words: Words  # a row per word, as many as the longest text needs; behind shorter ones the text goes on

    @classmethod
    def joined(cls, spans: Sequence[Spans]) -> Spans:
        """Return the spans of all, one behind the other."""
        if len(spans) == 1:
            return spans[0]
        rows = max(len(one.words) for one in spans)
        words = np.zeros((rows, sum(len(one) for one in spans)), np.uint64)
        at = 0
        for one in spans:
            words[: len(one.words), at : at + len(one)] = one.words
            at += len(one)
        starts, lengths = ([getattr(one, name) for one in spans] for name in ("starts", "lengths"))
        return cls(spans[0].stretch, np.concatenate(starts), np.concatenate(lengths), words)

    def __len__(self) -> int:
        """Return how many spans there are."""
        return len(self.starts)

    def only(self, chosen: Mask | I64) -> Spans:
        """Return some of the spans."""
        return Spans(self.stretch, self.starts[chosen], self.lengths[chosen], self.words[:, chosen])

    def text(self, number: int) -> bytes:
        """Return the text of one span."""
        start = int(self.starts[number])
        return self.stretch.text[start : start + int(self.lengths[number])]


def words_needed(length: int) -> int:
    """Return how many words are kept of spans the longest of which has so many bytes."""
    return min(max(1, -(-length // 8)), MOST_WORDS)
