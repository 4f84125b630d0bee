"""Cells merged into spans: what is drawn as one piece."""

from __future__ import annotations

import numpy as np

from ..index.store import Index
from .cells import Cells, Span
from .ranges import first_where


def spans(index: Index, row_number: int, cells: Cells) -> list[Span]:
    """Return the spans of a row's cells from left to right; empty cells lie in none.

    A slice alone in several neighbouring cells is one whole span; neighbouring cells with several slices each
    and one dominant category are one span that stands for the longest of them.
    """
    count, longest, category = cells.count, cells.longest, cells.category
    if not count.any():
        return []
    alone = count == 1
    key = np.where(alone, longest, -2 - category)  # -1 for an empty cell: it has no category
    changes = (key[1:] != key[:-1]).nonzero()[0] + 1
    lefts = np.concatenate(([0], changes))
    rights = np.concatenate((changes, [len(key)]))
    drawn = key[lefts] != -1
    begin = int(index.rows[row_number]["first"])
    merged = (count > 1).nonzero()[0]
    best = longest[lefts]
    if len(merged):
        ns = np.full(len(key), -1, np.int64)
        ns[merged] = index.duration(begin + longest[merged])
        most = np.maximum.reduceat(ns, lefts)
        best = longest[first_where(ns == most.repeat(rights - lefts), lefts)]
    fullest = np.maximum.reduceat(count, lefts)
    columns = (lefts, rights, category[lefts], best, fullest, alone[lefts])
    return list(map(Span, *(column[drawn].tolist() for column in columns)))
