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
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...base.arrays import I64, Bools
from ...query.groups import Groups
from ..frame.table import Table
from .tree_nodes import ROOT

if TYPE_CHECKING:
    from ...trace import Trace


WIDE = 0.99
"""A node counts as wide as the one around it from this share of its width on."""


class IcicleBox(NamedTuple):
    """Cells [left, right) of a line of the drawing, and the row of the node that they show."""

    left: int
    right: int
    row: int
    nodes: int  # how many nodes it stands for: of a single cell, those that begin in it


@dataclass(frozen=True, eq=False)
class Icicle:
    """Where the rows of a table of a call tree lie, ns from the left edge; rows are depth first.

    Of nodes one below the other that are as wide and alone in each other, the first and the last have lines
    of their own; those between are one line, as they say little, and the deepest of them is drawn for all:

        run ────────────────────  run ────────────────────
        _call_impl ─────────────  3 calls … forward ──────
        wrapper ────────────────  mm ─────────── add ─────
        forward ────────────────
        mm ─────────── add ─────
    """

    starts: I64
    ends: I64
    depths: I64
    parents: I64  # the row of the node above each, ROOT for none
    behind: I64  # the first row that no longer lies below each

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def _is_between(self) -> Bools:
        """Which nodes have nothing but one node as wide in them, and are that in the node around them."""
        rows, widths = np.arange(len(self)), self.ends - self.starts
        child = np.minimum(rows + 1, len(self) - 1)
        is_alone = (rows + 1 < self.behind) & (self.behind[child] == self.behind)
        holds = is_alone & (widths[child] >= WIDE * widths)
        is_held = np.zeros(len(self), np.bool_)
        is_held[child[holds]] = True
        between: Bools = holds & is_held
        return between

    @cached_property
    def lines(self) -> I64:
        """The line of each row."""
        lines, between = np.zeros(len(self), np.int64), self._is_between
        for rows in by_level(self.depths)[1:]:
            above = self.parents[rows]
            lines[rows] = lines[above] + ~(between[rows] & between[above])
        return lines

    @cached_property
    def levels(self) -> tuple[I64, ...]:
        """The rows that are drawn on each line, from left to right."""
        between = self._is_between
        is_drawn = ~(between & np.append(between[1:], False))
        drawn = np.flatnonzero(is_drawn)
        return tuple(drawn[rows] for rows in by_level(self.lines[drawn]))

    def drawn_row(self, row: int) -> int:
        """Return the row that is drawn for one: itself, or the deepest of those that are one line."""
        while row + 1 < len(self) and self._is_between[row] and self._is_between[row + 1]:
            row += 1
        return row

    def first_row(self, row: int) -> int:
        """Return the outermost of the rows that a drawn one stands for."""
        while self._is_between[row] and self._is_between[row - 1]:
            row -= 1
        return row

    @cached_property
    def _edges(self) -> tuple[tuple[I64, I64], ...]:
        return tuple((self.starts[rows], self.ends[rows]) for rows in self.levels)

    @property
    def width(self) -> int:
        return int(self.ends[self.levels[0][-1]]) if len(self) else 0

    def window(self, row: int) -> tuple[int, int]:
        """Return where a node lies; of ROOT the whole drawing."""
        return (0, self.width) if row == ROOT else (int(self.starts[row]), int(self.ends[row]))

    def rows_below(self, row: int) -> tuple[int, int]:
        """Return the first row of a node with all below it, and the first one behind; of ROOT all."""
        return (0, len(self)) if row == ROOT else (row, int(self.behind[row]))

    def boxes(self, line: int, window: tuple[int, int], cells: int) -> list[IcicleBox]:
        """Return what a line shows in so many cells, maybe none: the node at each cell's middle.

        Costs a search for each cell, however many nodes there are.
        """
        if not 0 <= line < len(self.levels) or window[1] <= window[0] or cells < 1:
            return []
        starts, ends = self._edges[line]
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
                boxes.append(IcicleBox(cell, right, int(self.levels[line][member]), nodes))
            cell = right
        return boxes

    def lines_below(self, row: int) -> tuple[int, int]:
        """Return the first line of a node and all below it, and the first one behind; of ROOT all."""
        first, behind = self.rows_below(row)
        if first == behind:
            return 0, 0
        return int(self.lines[first]), int(self.lines[first:behind].max()) + 1

    def neighbour(self, row: int, direction: int, least_ns: int) -> int:
        """Return the next node of the line to the right (+1) or left (-1) of some length, else the same."""
        rows = self.levels[int(self.lines[row])]
        member = int(np.searchsorted(rows, self.drawn_row(row))) + direction
        while 0 <= member < len(rows):
            if int(self.ends[rows[member]] - self.starts[rows[member]]) >= least_ns:
                return int(rows[member])
            member += direction
        return row

    def child(self, row: int) -> int:
        """Return the drawn node with most time below another, the same where there is none."""
        row = self.drawn_row(row)
        return self.drawn_row(row + 1) if row + 1 < int(self.behind[row]) else row


def by_level(levels: I64) -> list[I64]:
    """Return the rows of each level, ascending."""
    order = np.argsort(levels, kind="stable")
    edges = np.searchsorted(levels[order], np.arange(int(levels.max(initial=-1)) + 2)).tolist()
    return [order[begin:end] for begin, end in pairwise(edges)]


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
    levels = by_level(depths)
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
