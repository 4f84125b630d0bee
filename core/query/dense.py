"""Cells that hold very many slices: computed from a row's stored sums and pyramid, and from the blocks at the
edges of the cells.
"""

from __future__ import annotations

import numpy as np

from ..base.arrays import I64, AnyArray
from ..index.format import BLOCK, LONG
from ..index.store import Index
from .ranges import first_where, level_sizes, local_categories, ragged, visit

FEW_CATEGORIES = 8
_COLUMNS = np.arange(BLOCK)


class EdgeBlocks:
    """The durations of the blocks that the cell edges fall into: one line of BLOCK slices per edge.

    `first`: slices of the row that start before each of the W + 1 edges.
    """

    def __init__(self, index: Index, row: np.void, first: I64) -> None:
        self.index, self.row, self.first = index, row, first
        self.begin, self.count = int(row["first"]), int(row["count"])
        self.block = first // BLOCK
        self.inside = (first - self.block * BLOCK)[:, None]  # index of the edge in its block
        self.before = self.inside > _COLUMNS  # slices of the block that start before the edge
        raw = self.take(index.column("slices.duration"))
        self.ns: I64 = raw.astype(np.int64)
        if (raw == LONG).any():
            positions = self.begin + self.block[:, None] * BLOCK + _COLUMNS
            self.ns = index.resolve_long(raw, positions)

    def take(self, column: AnyArray) -> AnyArray:
        """Return the edges' blocks of a column of slices; 0 behind the row's end."""
        part = column[self.begin : self.begin + self.count]
        full = self.count // BLOCK
        lines: AnyArray = part[: full * BLOCK].reshape(full, BLOCK)[np.minimum(self.block, full - 1)]
        tail = self.block >= full
        if tail.any():
            rest = np.zeros(BLOCK, column.dtype)
            rest[: self.count - full * BLOCK] = part[full * BLOCK :]
            lines[tail] = rest
        return lines


def longest_of(edges: EdgeBlocks) -> tuple[I64, I64]:
    """Return (index within the row, duration) of the longest slice starting in each cell: of equals the
    first; -1 where none starts.
    """
    index, block, first = edges.index, edges.block, edges.first
    lines = np.arange(len(first) - 1)
    same = (block[1:] == block[:-1])[:, None]
    after = ~edges.before[:-1] & (~same | edges.before[1:])
    left = np.where(after, edges.ns[:-1], -1)
    best = left.argmax(axis=1)
    longest_ns = left[lines, best]
    longest = np.where(longest_ns >= 0, block[:-1] * BLOCK + best, -1)

    sizes = level_sizes(edges.count)
    base = int(edges.row["pyramid"])
    bases = [0, *(base + sum(sizes[:k]) for k in range(len(sizes)))]
    pyramid = index.column("pyramid.longest")

    def fold(level: int, which: I64, begin: I64, end: I64) -> None:
        entries, begins = ragged(begin, end)
        positions = pyramid[bases[level] + entries].astype(np.int64)
        ns = index.duration(positions)
        most = np.maximum.reduceat(ns, begins)
        hits = ns == np.repeat(most, end - begin)
        where = positions[first_where(hits, begins)] - edges.begin
        old = longest_ns[which]
        better = (most > old) | ((most == old) & (where < longest[which]))
        longest[which[better]], longest_ns[which[better]] = where[better], most[better]

    visit(len(sizes), block[:-1] + 1, block[1:], fold, lowest=1)
    right = np.where(edges.before[1:] & ~same, edges.ns[1:], -1)
    best = right.argmax(axis=1)
    ns = right[lines, best]
    better = ns > longest_ns  # these stand last: a tie is not theirs
    longest[better], longest_ns[better] = (block[1:] * BLOCK + best)[better], ns[better]
    return longest, longest_ns


def spent_in(edges: EdgeBlocks, categories: I64) -> I64:
    """Sum the full durations of the slices starting in each cell, by category (W x categories)."""
    kinds, blocks = len(categories), -(-edges.count // BLOCK)
    base = int(edges.row["sums"])
    sums = edges.index.column("category_sums")[base : base + (blocks + 1) * kinds]
    before: I64 = sums.reshape(blocks + 1, kinds)[edges.block].astype(np.int64)
    ns = np.where(edges.before, edges.ns, 0)
    if kinds > 1:
        raw = edges.take(edges.index.column("slices.category"))
        if kinds <= FEW_CATEGORIES:
            rest = ns.sum(axis=1)
            for kind in range(1, kinds):
                part = np.where(raw == categories[kind], ns, 0).sum(axis=1)
                before[:, kind] += part
                rest -= part
            before[:, 0] += rest
        else:
            lines, columns = np.nonzero(edges.before)
            local = local_categories(categories, raw[lines, columns])
            np.add.at(before.reshape(-1), lines * kinds + local, ns[lines, columns])
    else:
        before[:, 0] += ns.sum(axis=1)
    return np.diff(before, axis=0)
