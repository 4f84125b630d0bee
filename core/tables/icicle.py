"""A call tree laid out as a drawing: each node as wide as its time, callees below callers, those with most
time first (what speedscope calls left heavy).

    a ──────────────────────────────  100 ns
    b ─────────────────── c ────────   60 + 40 ns
    d ──────────                       30 ns

Here d begins where b begins, and the time that b spends itself stays free behind d.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..base.arrays import I64
from ..query.groups import Groups
from .table import Table
from .tree import ROOT

if TYPE_CHECKING:
    from ..trace import Trace


WIDE = 0.99
"""A node counts as wide as the drawing from this share of its width on."""
LEAST_FOLDED = 3
"""From this many nodes below each other on, all but the last are drawn as one line."""


class IcicleBox(NamedTuple):
    """Cells [left, right) of a line of the drawing, and the row of the node that they show."""

    left: int
    right: int
    row: int
    nodes: int  # how many nodes it stands for: of a single cell, those that begin in it


class IcicleLine(NamedTuple):
    """The depths that a line of the drawing stands for, several where each is one node as wide as it."""

    first: int
    last: int

    @property
    def folded(self) -> int:
        """How many depths it stands for beyond one."""
        return self.last - self.first


@dataclass(frozen=True, eq=False)
class Icicle:
    """Where the rows of a table of a call tree lie, ns from the left edge; rows are depth first."""

    starts: I64
    ends: I64
    depths: I64
    parents: I64  # the row of the node above each, ROOT for none
    behind: I64  # the first row that no longer lies below each

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def levels(self) -> tuple[I64, ...]:
        """The rows of each depth, from left to right."""
        order = np.argsort(self.depths, kind="stable")  # depth first is from left to right within a depth
        edges = np.searchsorted(self.depths[order], np.arange(int(self.depths.max(initial=-1)) + 2))
        return tuple(order[begin:end] for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist()))

    @cached_property
    def _edges(self) -> tuple[tuple[I64, I64], ...]:
        """Starts and ends of the nodes of each depth."""
        return tuple((self.starts[rows], self.ends[rows]) for rows in self.levels)

    @property
    def width(self) -> int:
        """Ns of the whole drawing."""
        return int(self.ends[self.levels[0][-1]]) if len(self) else 0

    def window(self, row: int) -> tuple[int, int]:
        """Return where a node lies; of ROOT the whole drawing."""
        return (0, self.width) if row == ROOT else (int(self.starts[row]), int(self.ends[row]))

    def rows_below(self, row: int) -> tuple[int, int]:
        """Return the first row of a node with all below it, and the first one behind; of ROOT all."""
        return (0, len(self)) if row == ROOT else (row, int(self.behind[row]))

    def boxes(self, depth: int, window: tuple[int, int], cells: int) -> list[IcicleBox]:
        """Return what a line of so many cells, maybe none, shows of a depth: the node at each cell's middle.

        Costs a search for each cell, however many nodes there are.
        """
        if not 0 <= depth < len(self.levels) or window[1] <= window[0] or cells < 1:
            return []
        starts, ends = self._edges[depth]
        left, span = window[0], window[1] - window[0]
        halves = [left + half * span // (2 * cells) for half in range(2 * cells + 1)]
        begun = np.searchsorted(starts, np.array(halves[::2], np.int64)).tolist()
        middles = np.array(halves[1::2], np.int64)
        members = np.searchsorted(starts, middles, "right") - 1
        members[middles >= ends[np.maximum(members, 0)]] = -1
        boxes, cell = [], 0
        for member, run in groupby(members.tolist()):
            right = cell + sum(1 for _ in run)
            if member >= 0:  # of several cells all middles lie in one node
                nodes = max(1, begun[right] - begun[cell]) if right - cell == 1 else 1
                boxes.append(IcicleBox(cell, right, int(self.levels[depth][member]), nodes))
            cell = right
        return boxes

    def lines(self, row: int) -> list[IcicleLine]:
        """Return the lines of the drawing of a node and all below it; of ROOT, of all.

        Nodes one below the other that are all as wide as the drawing say little: they are one line.
        """
        first, last = self.rows_below(row)
        if first == last:
            return []
        top = int(self.depths[first])
        counts = np.bincount(self.depths[first:last] - top)
        widths = self.ends[first:last] - self.starts[first:last]
        alone = 0  # depths below the first that hold nothing but one node as wide as the drawing
        while alone + 1 < len(counts) and counts[alone + 1] == 1 and widths[alone + 1] >= widths[0] * WIDE:
            alone += 1
        if counts[0] > 1 or alone < LEAST_FOLDED:
            alone = 0
        lines = [IcicleLine(top + 1, top + alone - 1)] if alone else []
        lines += [IcicleLine(top + depth, top + depth) for depth in range(max(1, alone), len(counts))]
        return [IcicleLine(top, top), *lines]

    def neighbour(self, row: int, direction: int, least_ns: int) -> int:
        """Return the next node of the same depth to the right (+1) or left (-1) that takes so much time; the
        same where there is none.
        """
        rows = self.levels[int(self.depths[row])]
        member = int(np.searchsorted(rows, row)) + direction
        while 0 <= member < len(rows):
            if int(self.ends[rows[member]] - self.starts[rows[member]]) >= least_ns:
                return int(rows[member])
            member += direction
        return row

    def child(self, row: int) -> int:
        """Return the node with most time below another, the same where there is none."""
        return row + 1 if row + 1 < int(self.behind[row]) else row


def icicle_of(table: Table) -> Icicle:
    """Return how a table of a call tree, depth first, is drawn."""
    depths = table.numbers("depth").astype(np.int64)
    nodes = table.numbers("node").astype(np.int64)
    above = table.numbers("parent").astype(np.int64)
    count = len(table)
    rows = np.arange(count)
    by_node = np.argsort(nodes)
    parents = np.full(count, ROOT, np.int64)
    inner = above != ROOT
    if inner.any():
        parents[inner] = by_node[np.searchsorted(nodes[by_node], above[inner])]
    widths = table.numbers("total_ns").astype(np.int64)
    levels = [rows[depths == depth] for depth in range(int(depths.max(initial=-1)) + 1)]
    behind = rows + 1
    for level in reversed(levels[1:]):
        # Calls that overlap may take more time together than the one that they lie in.
        sums = Groups(parents[level], count).sums(widths[level])
        np.maximum(widths, sums, out=widths)
        np.maximum.at(behind, parents[level], behind[level])
    starts = np.zeros(count, np.int64)
    for level in levels:
        before = np.cumsum(widths[level]) - widths[level]
        own = parents[level]
        is_first = np.diff(own, prepend=ROOT - 1) != 0  # of the children of one node
        first = np.maximum.accumulate(np.where(is_first, np.arange(len(level)), 0))
        edges = np.where(own >= 0, starts[np.maximum(own, 0)], 0)
        starts[level] = edges + before - before[first]
    return Icicle(starts, starts + widths, depths, parents, behind)


def row_categories(trace: Trace, table: Table) -> list[str]:
    """Return the category of the slice that each row leads to, "" where there is none."""
    categories = [""] * len(table)
    if table.positions is None or table.sources is None:
        return categories
    for source, index in enumerate(trace.indexes):
        rows = np.flatnonzero((table.sources == source) & (table.positions >= 0))
        numbers = index.column("slices.category")[table.positions[rows]]
        for row, number in zip(rows.tolist(), numbers.tolist()):
            categories[row] = index.categories[number]
    return categories
