"""Reductions over many ranges of one row at once, through the row's pyramid: O(ranges x log n)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ..base.arrays import I64, AnyArray, concatenated_ranges
from ..index.format import BLOCK, FANOUT

Reduce: TypeAlias = Callable[[int, I64, I64, I64], None]
"""Called with (level, which ranges, first entries, last entries + 1): fold these entries of a level in.
Level 0 are the row's own elements, level 1 one entry per BLOCK of them, level k one per FANOUT of level
k-1."""


def level_sizes(count: int) -> list[int]:
    """Return the number of entries of each pyramid level of a row, finest first; none up to BLOCK
    elements.
    """
    if count <= BLOCK:
        return []
    sizes = [-(-count // BLOCK)]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // FANOUT))
    return sizes


def ragged(first: I64, last: I64) -> tuple[I64, I64]:
    """Return all integers of the (non-empty) ranges one after another, and where each range begins there."""
    lengths = last - first
    return concatenated_ranges(first, lengths), np.cumsum(lengths) - lengths


def visit(levels: int, first: I64, last: I64, reduce: Reduce, lowest: int = 0) -> None:
    """Cover each range [first, last) of the lowest level's entries by ones as coarse as fit, and reduce."""
    which = (last > first).nonzero()[0]
    low, high = first[which], last[which]
    for level in range(lowest, levels + 1):
        size = BLOCK if level == 0 else FANOUT
        if level == levels:
            _emit(level, which, low, high, reduce)
            return
        up, down = -(-low // size), high // size
        whole = up < down
        _emit(level, which, low, np.where(whole, up * size, high), reduce)
        right = np.where(whole, down * size, high)
        _emit(level, which, right, high, reduce)
        which, low, high = which[whole], up[whole], down[whole]
        if not len(which):
            return


def _emit(level: int, which: I64, first: I64, last: I64, reduce: Reduce) -> None:
    some = last > first
    if some.any():
        reduce(level, which[some], first[some], last[some])


def first_where(hits: AnyArray, begins: I64) -> I64:
    """Return the first true entry at or after each begin (the caller knows there is one in its segment)."""
    at = hits.nonzero()[0]
    firsts: I64 = at[at.searchsorted(begins)]
    return firsts


def local_categories(categories: I64, raw: AnyArray) -> I64:
    """Return the index of each category number in the row's own (ascending) list of categories.

    One that the list lacks, as only a crafted index has it, counts as the list's last.
    """
    if not len(raw) or len(categories) == 1:
        return np.zeros(len(raw), np.int64)
    last = int(categories[-1])
    if last < 1 << 16:
        table = np.full(last + 1, len(categories) - 1, np.int64)
        table[categories] = np.arange(len(categories))
        mapped: I64 = table.take(raw, mode="clip")
        return mapped
    at = np.searchsorted(categories, raw.astype(np.int64)).astype(np.int64)
    return np.minimum(at, len(categories) - 1)
