"""The nodes of call trees, each a path of names: collected as they are met, then columns."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from ...base.arrays import BY_RUNS, I64, AnyArray, run_starts
from ...query.groups import Groups, Labels, concatenated, dense

ROOT = -1
"""The parent of what lies in nothing."""


@dataclass(frozen=True, eq=False)
class CallTree:
    """Nodes as columns of equal length, each behind its parent; `parents` are places here, ROOT for none.

    `longest` is the longest slice of a node and `positions` and `sources` say which that is.
    """

    names: AnyArray  # places in `texts`
    texts: tuple[str, ...]
    parents: I64
    total: I64
    own: I64
    calls: I64
    longest: I64
    positions: I64
    sources: I64
    levels: int = 0  # how many callers of each are listed, where not all are; else 0

    def __len__(self) -> int:
        return len(self.parents)

    def nested(self) -> AnyArray:
        nested, depths = np.zeros(len(self), np.bool_), depths_of(self.parents).tolist()
        names, path, counts = self.names.tolist(), list[int](), Counter[int]()
        for node in self.order().tolist():
            while len(path) > depths[node]:
                counts[path.pop()] -= 1
            nested[node] = counts[names[node]] > 0
            path.append(names[node])
            counts[names[node]] += 1
        return nested

    def order(self) -> I64:
        """Return the nodes depth first, of those beside each other the greatest total first, then by name."""
        texts = np.array(self.texts, object)[self.names] if len(self) else np.empty(0, object)
        rank = np.argsort(np.argsort(texts.astype(str), kind="stable"), kind="stable")
        return depth_first(self.parents, np.lexsort((rank, -self.own, -self.total, self.parents)))

    def largest(self, count: int) -> AnyArray:
        """Return the `count` nodes with the greatest totals; the nodes above a node are always among them."""
        chosen = np.zeros(len(self), np.bool_)
        # Parents come first and have no smaller total: a stable sort takes them first.
        chosen[np.argsort(-self.total, kind="stable")[:count]] = True
        return chosen


def depths_of(parents: I64) -> I64:
    """Return how many lie above each, by the one right above it; -1 for none."""
    # Five slices in one another: each knows 0 1 1 1 1 above it and looks at -1 0 1 2 3. What that one knows
    # is added, and it is looked where that one looks: 0 1 2 2 2, then 0 1 2 3 4. A stack of 3,000 calls
    # takes 12 rounds over all slices instead of 3,000.
    cursor = parents.copy()
    levels = (cursor >= 0).astype(np.int64)
    while (inner := cursor >= 0).any():  # each step goes twice as far up as the one before
        levels[inner] += levels[cursor[inner]]
        cursor[inner] = cursor[cursor[inner]]
    return levels


def depth_first(parents: I64, siblings: I64) -> I64:
    """Return nodes depth first: those of one parent as in `siblings`, which are ordered by parent."""
    # Nodes 0 and 3 are roots, 2 and 1 lie in 0 in this order: `siblings` is 0 3 2 1, and those of -1, 0, 1 …
    # begin at 0, 2, 4 …. What is taken off the end of `todo` is the next: 0, then of 3 1 2 the 2, 1 and 3.
    begins = np.append(np.searchsorted(parents[siblings], np.arange(-1, len(parents))), len(parents))
    ordered: list[int] = []
    todo = siblings[begins[0] : begins[1]][::-1].tolist()
    while todo:
        node = todo.pop()
        ordered.append(node)
        todo.extend(siblings[begins[node + 1] : begins[node + 2]][::-1].tolist())
    return np.array(ordered, np.int64)


@dataclass(eq=False)
class TreeBuilder:
    """Collects nodes by path, and what belongs to each."""

    labels: Labels = field(default_factory=Labels)
    nodes: dict[tuple[int, int], int] = field(default_factory=dict)  # (parent, name) -> node
    parts: list[tuple[I64, ...]] = field(default_factory=list)  # nodes, total, own, calls, longest, where

    def node(self, parent: int, name: int) -> int:
        """Return the node of a name below another node; a new one is added."""
        return self.nodes.setdefault((parent, name), len(self.nodes))

    def add(
        self,
        nodes: I64,
        total: I64,
        own: int | I64,
        calls: int | I64,
        positions: I64,
        sources: int | I64,
        longest: I64 | None = None,
    ) -> None:
        """Add slices to their nodes, summed up by node: columns of equal length, or a number for all."""
        codes, paths = dense(nodes)
        groups = Groups(codes, len(paths))
        first = groups.longest(total if longest is None else longest)
        most = (total if longest is None else longest)[first]
        where = most, positions[first], np.broadcast_to(sources, len(nodes))[first]
        sums = (groups.counts * n if isinstance(n, int) else groups.sums(n) for n in (total, own, calls))
        self.parts.append((paths, *sums, *where))

    def add_nodes(self, nodes: I64, tree: CallTree, rows: I64, total: I64) -> None:
        """Add nodes of another tree, of equal ones the first source's first, with totals of their own."""
        order = np.argsort(tree.sources[rows], kind="stable")
        rows = rows[order]
        times = total[rows], tree.own[rows], tree.calls[rows]
        self.add(nodes[order], *times, tree.positions[rows], tree.sources[rows], tree.longest[rows])

    def tree(self) -> CallTree:
        size = len(self.nodes)
        columns = [concatenated(column) for column in zip(*self.parts)] or [np.empty(0, np.int64)] * 7
        nodes, total, own, calls, longest, positions, sources = columns
        groups = Groups(nodes, size)
        at = groups.longest(longest)
        some = groups.counts > 0
        where = np.full((3, size), -1, np.int64)
        if len(nodes):
            where[:, some] = np.stack([longest, positions, sources])[:, at[some]]
        keys = np.array(list(self.nodes), np.int64).reshape(-1, 2)
        total, own, calls = map(groups.sums, (total, own, calls))
        return CallTree(keys[:, 1], tuple(self.labels), keys[:, 0], total, own, calls, *where)


def paths_of(builder: TreeBuilder, names: I64, around: I64, levels: I64, root: int) -> I64:
    """Return the node of each slice, level by level from the top; slices of one path share a node. What lies
    around a slice is on a lower level: `depths_of(around)`, or the depth of its row.
    """
    nodes = np.full(len(names), root, np.int64)
    # Slices by position mostly are by level, too: then each level is a stretch of all columns.
    order = None if (levels[1:] >= levels[:-1]).all() else np.argsort(levels, kind=BY_RUNS)
    bounds = [*run_starts(levels if order is None else levels[order]).tolist(), len(levels)]
    for begin, end in pairwise(bounds):
        some = slice(begin, end) if order is None else order[begin:end]
        above = np.where(around[some] >= 0, nodes[around[some]], root)
        nodes[some] = nodes_of(builder, above, names[some])
    return nodes


def nodes_of(builder: TreeBuilder, above: I64, names: AnyArray) -> I64:
    """Return the nodes of names below nodes; each distinct pair is looked up once."""
    width = len(builder.labels) + 1
    which, pairs = dense((above + 1) * width + names)
    keys = zip((pairs // width - 1).tolist(), (pairs % width).tolist())
    return np.array([builder.node(parent, name) for parent, name in keys], np.int64)[which]
