"""The call tree of a scope: which names lie in which, how often, how long; from the top or from the bottom.

A node is a path of names: all slices that lie in slices of those names, in that order, whatever the lane. Its
*total* is the time of these slices, its *self* the part of it that no slice of the tree inside them takes,
its *calls* their number; times are cut to the range of the scope. Annotations on a device's lanes are left
out: each repeats one of the host's, and lasts from its first work to its last, idle time included. What the
host's own annotation launched stands below it in the tree by launch. The profiler's own notes (lanes of no
process) are left out too. The steps of the profiler are one name.

From the bottom a node is a path from a name to its callers. Its self time is that of the name when called so,
its total likewise; a name that lies in itself counts once, by its outermost slice.

By launch a tree holds what device work was launched by: the host's stack at the launch call, then the name of
the work, whose whole time counts for all above it. The calls of a node of the host are those that launched
something. Below the launch of a graph stands, where a capture says it, the stack in which the work was
launched into the graph: its calls are replays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from ...base.arrays import (
    BY_RUNS,
    I64,
    add_at,
    added_upwards,
    distinct,
    greatest_upwards,
    sum_of,
)
from ...base.kineto import STEP
from ...base.safe_text import safe
from ...index.format import LaneRole
from ...query.groups import Groups, Labels, concatenated
from ...query.lookup import depths_of_slices, rows_around, with_ancestors
from ...trace.captured_graphs import captured_stack
from ..frame.frame import Frame
from ..frame.frame_columns import work_of
from ..frame.schema import Column, TableSchema
from ..frame.scope import Chunk, Scope
from ..frame.table import Table, Tables
from ..frame.table_rows import Values
from .kept_trees import keep_tree, kept_tree
from .tree_nodes import ROOT, CallTree, TreeBuilder, depths_of, nodes_of, paths_of

if TYPE_CHECKING:
    from ...index.store import Index

TreeRoots: TypeAlias = Literal["all", "thread", "launch"]
OUTSIDE = -2
MAX_ADDED = 1_000_000
"""Callers are listed until so many nodes were looked at, five times those of large real traces: a chain of n
has n²/2."""
FROM_BOTTOM = ", from the bottom"
UNKNOWN_LAUNCH = "(no launch known)"
TREE = TableSchema(
    "tree",
    "Call tree",
    (
        Column("name", "name", "text", is_name=True),
        Column("total_ns", "total", "ns"),
        Column("share", "share", "share"),
        Column("self_ns", "self", "ns"),
        Column("calls", "calls", "count"),
        Column("depth", "depth", "count", detail=True),
        Column("node", "node", "id", detail=True),
        Column("parent", "parent", "id", detail=True),
    ),
    keys=("node",),
    chief=("name", "total_ns", "self_ns", "calls"),
)


_NUMBERED = re.compile(rf"^{STEP}#\d+")


def name_in_tree(name: str) -> str:
    """Return the name of the node that a slice belongs to: its own, the profiler's steps without number."""
    return _NUMBERED.sub(f"{STEP}#*", name)


def call_tree(scope: Scope, by: TreeRoots = "all") -> CallTree:
    """Return the call tree of a scope: of all threads, of each thread, or by launch; that of a whole large
    trace is built once. Raises Cancelled.
    """
    tree = kept_tree(scope, by)
    if tree is None:
        tree = _built(scope, by)
        keep_tree(scope, by, tree)
    return tree


def _built(scope: Scope, by: TreeRoots) -> CallTree:
    builder = TreeBuilder()
    if by == "launch":
        for part in work_of(scope).by("source"):
            _add_launched(builder, part)
        return builder.tree()
    for source, lane, pieces in slices_by_lane(scope):
        root = ROOT
        if by == "thread":
            own = scope.trace.lanes[lane]
            root = builder.node(ROOT, int(builder.labels.codes([f"{own.process.title} · {own.title}"])[0]))
        _add_lane(builder, scope.trace.indexes[source], source, pieces, root)
    return builder.tree()


def bottom_up(tree: CallTree, leaves_only: bool = False, only: int | None = None) -> CallTree:
    """Return a tree from the bottom: each name, or one of `texts` alone, with its callers below it.

    With `leaves_only` paths begin only at nodes without children, such as device work in a tree by launch.
    """
    is_parent = np.zeros(len(tree) + 1, np.bool_)
    is_parent[tree.parents] = True
    begun = tree.calls > 0
    if leaves_only:
        begun &= ~is_parent[: len(tree)]
    if only is not None:
        begun &= tree.names == only
    builder = TreeBuilder(Labels(zip(tree.texts, range(len(tree.texts)))))
    start = np.flatnonzero(begun)
    total = np.where(tree.nested(), 0, tree.total)
    cursor = start.copy()
    above = np.full(len(start), ROOT, np.int64)
    levels, added = 0, 0
    while len(cursor) and added < MAX_ADDED:
        levels, added = levels + 1, added + len(cursor)
        nodes = nodes_of(builder, above, tree.names[cursor])
        builder.add_nodes(nodes, tree, start, total)
        cursor = tree.parents[cursor]
        go_on = cursor >= 0
        start, cursor, above = start[go_on], cursor[go_on], nodes[go_on]
    return replace(builder.tree(), levels=levels if len(cursor) else 0)


def below(tree: CallTree, only: int) -> CallTree:
    """Return a tree of one of `texts`: its outermost nodes, and what lies in them, merged."""
    builder = TreeBuilder(Labels(zip(tree.texts, range(len(tree.texts)))))
    depths, nodes = depths_of(tree.parents), np.full(len(tree), OUTSIDE, np.int64)
    for depth in range(int(depths.max(initial=-1)) + 1):
        rows = np.flatnonzero(depths == depth)
        above = np.where(tree.parents[rows] >= 0, nodes[tree.parents[rows]], OUTSIDE)
        begins = (above == OUTSIDE) & (tree.names[rows] == only)
        is_inside = begins | (above != OUTSIDE)
        rows, above = rows[is_inside], np.where(begins, ROOT, above)[is_inside]
        nodes[rows] = nodes_of(builder, above, tree.names[rows])
    inside = np.flatnonzero(nodes >= 0)
    builder.add_nodes(nodes[inside], tree, inside, tree.total)
    return builder.tree()


def sandwich(table: Table, parents: I64, name: str) -> tuple[Table, Table]:
    """Return what calls a name and what it calls, merged over all of a table of a tree from the top: two
    tables that both begin with the name, its callers below it in the first, its callees in the second.
    `parents` are the rows around each, ROOT for none.
    """
    labels = Labels()
    names = labels.codes(table.texts("name"))
    total, own, calls = (table.numbers(key) for key in ("total_ns", "self_ns", "calls"))
    if table.positions is None or table.sources is None:
        raise ValueError("a table of a tree leads to slices")
    times = total, own, calls, total
    tree = CallTree(names, tuple(labels), parents, *times, table.positions, table.sources)
    whole, only = int(table.totals["self_ns"]), labels[name]
    callers, callees = bottom_up(tree, only=only), below(tree, only)
    return (
        _listed(callers, whole, f"Callers of {name}", table.scope),
        _listed(callees, whole, f"Callees of {name}", table.scope),
    )


def analyse_tree(
    scope: Scope, by: TreeRoots = "all", bottom_up: bool = False, limit: int | None = None
) -> Tables:
    """Return the call tree of a scope, depth first, of `limit` nodes the largest ones."""
    return Tables(scope.text, scope.origin, {"tree": lambda: tree_table(scope, by, bottom_up, limit)})


def tree_table(
    scope: Scope, by: TreeRoots = "all", from_bottom: bool = False, limit: int | None = None
) -> Table:
    """Return the call tree as a table, depth first; `node` and `parent` say which row lies in which."""
    tree = call_tree(scope, by)
    whole = sum_of(tree.own)
    if from_bottom:
        tree = bottom_up(tree, leaves_only=by == "launch")
    title = {"all": "Call tree", "thread": "Call tree by thread", "launch": "Device time by launch"}[by]
    return _listed(tree, whole, title + (FROM_BOTTOM if from_bottom else ""), scope.text, limit)


def _listed(tree: CallTree, whole: int, title: str, scope: str, limit: int | None = None) -> Table:
    """Return a tree as a table, depth first, with shares of `whole` ns."""
    order = tree.order()
    notes: tuple[str, ...] = ()
    if limit is not None and len(tree) > limit:
        order = order[tree.largest(limit)[order]]
        notes = (f"the {limit:,} nodes with most time, of {len(tree):,}",)
    if tree.levels:
        notes += (f"callers above the first {tree.levels - 1:,} are left out: there are too many",)
    shares = tree.total[order] / whole if whole else np.zeros(len(order))
    data: dict[str, Values] = {
        "name": [tree.texts[name] for name in tree.names[order].tolist()],
        "total_ns": tree.total[order],
        "share": shares,
        "self_ns": tree.own[order],
        "calls": tree.calls[order],
        "depth": depths_of(tree.parents)[order],
        "node": order,
        "parent": tree.parents[order],
    }
    return Table.from_arrays(
        replace(TREE, title=title),
        scope,
        data,
        totals={"self_ns": whole, "nodes": len(tree)},
        notes=notes,
        positions=tree.positions[order],
        sources=np.maximum(tree.sources[order], 0),
    )


def largest_rows(table: Table, count: int) -> Table:
    """Return the rows of a table of a tree with the greatest totals, with all that is above them."""
    if len(table) <= count:
        return table
    rows = np.sort(np.lexsort((table.numbers("depth"), -table.numbers("total_ns")))[:count])
    note = f"the {count:,} nodes with most time, of {len(table):,}"
    return replace(table.take(rows), notes=(*table.notes, note))


def indented(table: Table) -> Table:
    """Return a table of a tree for people: short names, each two characters to the right of its parent's."""
    forms = table.short_forms.get("name", {})
    names = [
        "  " * depth + (forms.get(name) or name)
        for name, depth in zip(table.texts("name"), table.numbers("depth").tolist())
    ]
    columns = tuple(replace(column, is_name=False) for column in table.columns)
    return replace(table, columns=columns, data={**table.data, "name": names})


MAX_FOLDED_DEPTH = 500


def folded_lines(tables: Tables) -> Iterator[str]:
    """Yield a table of a tree as folded stacks, for speedscope and flamegraph.pl: a path, and its self ns. A
    line names every call above it, so that their lengths would grow with the square of the depth: what lies
    deeper than MAX_FOLDED_DEPTH calls is one frame, which says so.
    """
    table = tables["tree"]
    nodes, parents, own = (table.numbers(key).tolist() for key in ("node", "parent", "self_ns"))
    left = dict(zip(nodes, own))
    if FROM_BOTTOM in table.title:
        # There a node has the time of all paths through it; its own is what its callers lack.
        for parent, ns in zip(parents, own):
            if parent != ROOT:
                left[parent] -= ns
    paths: dict[int, str] = {}
    depths = table.numbers("depth").tolist()
    deeper = dict[int, int]()
    shallow: dict[int, int] = {}  # the deepest call above a node that has a path of its own
    for node, parent, depth in zip(nodes, parents, depths):
        shallow[node] = node if depth < MAX_FOLDED_DEPTH else shallow[parent]
        if depth >= MAX_FOLDED_DEPTH and left[node] > 0:
            deeper[shallow[node]] = deeper.get(shallow[node], 0) + left[node]
    for name, node, parent, depth in zip(table.texts("name"), nodes, parents, depths):
        if depth >= MAX_FOLDED_DEPTH:
            continue
        text = safe(name).replace(";", ":").strip() or "(no name)"
        paths[node] = f"{paths[parent]};{text}" if parent in paths else text
        if left[node] > 0:
            yield f"{paths[node]} {left[node]}\n"
        if node in deeper:
            yield f"{paths[node]};(deeper than {MAX_FOLDED_DEPTH} calls) {deeper[node]}\n"


def slices_by_lane(scope: Scope, everything: bool = False) -> Iterator[tuple[int, int, list[Chunk]]]:
    """Yield (source, place of the lane, its slices in pieces); `everything`: also the profiler's own notes,
    lanes that repeat others, and the annotations on devices' lanes.

    The slices of a lane follow each other in the chunks of a scope.
    """
    own_notes = (lane for lane in scope.trace.lanes if lane.process.aside or lane.role is LaneRole.DERIVED)
    aside = set() if everything else {lane.index for lane in own_notes}
    source, lane, pieces = -1, -1, list[Chunk]()
    for whole in scope.chunks():
        chunk = whole if everything else whole.take(~whole.is_device_annotation)
        if not len(chunk):
            continue
        edges = [0, *(np.flatnonzero(np.diff(chunk.lanes)) + 1).tolist(), len(chunk)]
        for begin, end in pairwise(edges):
            own = int(chunk.lanes[begin])
            if own in aside:
                continue
            if (chunk.source, own) != (source, lane):
                if pieces:
                    yield source, lane, pieces
                source, lane, pieces = chunk.source, own, []
            pieces.append(chunk.take(slice(begin, end)))
    if pieces:
        yield source, lane, pieces


# -- inner ------------------------------------------------------------------------------------------------


def _add_lane(builder: TreeBuilder, index: Index, source: int, pieces: Sequence[Chunk], root: int) -> None:
    positions = concatenated([piece.positions for piece in pieces])
    starts, ends = (concatenated([getattr(piece, key) for piece in pieces]) for key in ("starts", "ends"))
    names = builder.labels.of_slices(index, positions, name_in_tree)
    around, depths = rows_around(index, positions), depths_of_slices(index, positions)
    own = own_times(starts, ends, around, depths)
    nodes = paths_of(builder, names, around, depths, root)
    builder.add(nodes, ends - starts, own, 1, positions, source)
    if root != ROOT:
        top = around < 0
        duration = sum_of((ends - starts)[top])
        longest = int(np.argmax(np.where(top, ends - starts, -1)))
        builder.add(np.array([root]), np.array([duration], np.int64), 0, 0, positions[[longest]], source)


def own_times(starts: I64, ends: I64, around: I64, depths: I64) -> I64:
    """Return the time of each slice without that of these slices inside it; they are in order of position."""
    durations = ends - starts
    inner = np.flatnonzero(around >= 0)
    inside = Groups(around[inner], len(starts)).sums(durations[inner])
    if bool((depths[inner] == depths[around[inner]] + 1).all()):
        return durations - inside  # those in one slice lie in one row, where nothing overlaps
    # Of those in one slice each row is in order of start: where any overlap, one row begins before the row
    # ahead of it ends.
    order = inner[np.argsort(around[inner], kind=BY_RUNS)]
    same = around[order[1:]] == around[order[:-1]]
    overlapping = distinct(around[order[1:]][same & (starts[order[1:]] < ends[order[:-1]])])
    if len(overlapping):
        some = inner[np.isin(around[inner], overlapping)]
        groups = Groups(np.searchsorted(overlapping, around[some]), len(overlapping))
        inside[overlapping] = groups.covered(starts[some], ends[some])
    own: I64 = durations - inside
    return own


def _add_launched(builder: TreeBuilder, work: Frame) -> None:
    """Add the device work of a source below what launched it; work without a known launch below one name."""
    index, source, launch = work.index, work.source_number, work.launched
    positions, durations = work.position.astype(np.int64), work.dur
    is_known = launch >= 0
    stack = with_ancestors(index, distinct(launch[is_known]))
    around = rows_around(index, stack)
    names, depths = builder.labels.of_slices(index, stack, name_in_tree), depths_of_slices(index, stack)
    nodes = paths_of(builder, names, around, depths, ROOT)
    calls = np.searchsorted(stack, launch[is_known])
    above = np.full(len(positions), ROOT, np.int64)
    above[is_known] = nodes[calls]
    if not is_known.all():
        above[~is_known] = builder.node(ROOT, int(builder.labels.codes([UNKNOWN_LAUNCH])[0]))
    for book in distinct(work.book[work.is_by_capture]).tolist():
        rows = np.flatnonzero(work.book == book)
        above[rows] = _captured_nodes(builder, work[rows], above[rows])
    leaves = nodes_of(builder, above, builder.labels.of_slices(index, positions, name_in_tree))
    builder.add(leaves, durations, durations, 1, positions, source)

    # The time of work counts for every slice around its launch.
    spent = np.zeros(len(stack), np.int64)
    add_at(spent, calls, durations[is_known])
    if len(stack):
        spent = added_upwards(spent, around)
        builder.add(nodes, spent, 0, 1, stack, source)
    if not is_known.all():
        builder.add(above[~is_known], durations[~is_known], 0, 0, positions[~is_known], source)


def _captured_nodes(builder: TreeBuilder, work: Frame, launches: I64) -> I64:
    """Add the stacks of a capture in which work was launched into graphs, below the nodes that launched
    these; return the node of each captured launch.
    """
    index, nodes = work.owner_index, np.empty(len(work), np.int64)
    for launch in distinct(launches).tolist():
        rows = np.flatnonzero(launches == launch)
        owners, durations, own = work.owner[rows], work.dur[rows], work.position[rows].astype(np.int64)
        stack = captured_stack(index, distinct(owners))
        around = rows_around(index, stack)
        names = builder.labels.of_slices(index, stack, name_in_tree)
        paths = paths_of(builder, names, around, depths_of_slices(index, stack), launch)
        calls = np.searchsorted(stack, owners)
        nodes[rows] = paths[calls]
        spent, longest = np.zeros(len(stack), np.int64), np.zeros(len(stack), np.int64)
        add_at(spent, calls, durations)
        order = np.argsort(durations, kind="stable")
        longest[calls[order]] = np.arange(1, len(rows) + 1)  # the place in the order, from 1
        longest = greatest_upwards(longest, around)
        replays = greatest_upwards(np.bincount(calls, minlength=len(stack)).astype(np.int64), around)
        spent = added_upwards(spent, around)
        builder.add(paths, spent, 0, replays, own[order[longest - 1]], work.source_number)
    return nodes
