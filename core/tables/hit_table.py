"""Slices that a search or a node of a call tree means; hits as a table in order of time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import I64, AnyArray
from ..base.errors import Cancelled
from ..base.progress import CancelledCallback, never
from ..base.units import format_count, format_ns
from ..index.format import NONE
from ..index.store import Index
from ..query.groups import Labels, concatenated
from ..query.hits import Hits
from ..query.lookup import lanes_of, starts_of
from ..trace.hit_search import hits_at
from .frame_columns import work_of
from .schema import schema_from
from .scope import Scope, rows_around
from .table import Table
from .tree import ROOT, UNKNOWN_LAUNCH, TreeRoots, name_in_tree, slices_by_lane, with_ancestors

if TYPE_CHECKING:
    from ..trace import Trace


HITS = schema_from("""
    found: What was found; jumps_to go there;
    name: text, start_ns (moment), duration_ns, lane: text, category: text, self_ns
""")


@dataclass(frozen=True, eq=False)
class HitTable:
    """A table of hits; `ranks` are, per column of text, the place of each row's text in the alphabet."""

    table: Table
    ranks: Mapping[str, I64]


def hit_table(trace: Trace, hits: Hits, cancelled: CancelledCallback = never) -> HitTable:
    """Return the hits in order of (start, source, position); starts count from the trace's start, ns.

    Raises Cancelled.
    """
    positions, sources, starts, durations, own, codes = [], [], [], [], [], []
    texts: dict[str, list[str]] = {"name": [], "lane": [], "category": []}
    for source, index in enumerate(hits.indexes):
        if cancelled():
            raise Cancelled
        at = hits.positions[source].astype(np.int64)
        lane_of = {lane.number: lane.title for lane in trace.lanes if lane.source == source}
        columns = {
            "name": _distinct(index.column("slices.name")[at], index.string, texts["name"]),
            "lane": _distinct(lanes_of(index, at), lane_of.__getitem__, texts["lane"]),
            "category": _distinct(
                index.column("slices.category")[at], index.categories.__getitem__, texts["category"]
            ),
        }
        codes.append(columns)
        positions.append(at)
        sources.append(np.full(len(at), source, np.uint32))
        starts.append(starts_of(index, at, hits.offsets[source]))
        durations.append(index.duration(at))
        own.append(index.self_time(at))
    start = concatenated(starts)
    order = np.argsort(start, kind="stable")  # hits of equal start keep the order of source and position
    data: dict[str, AnyArray | list[str]] = {
        "start_ns": start[order],
        "duration_ns": concatenated(durations)[order],
        "self_ns": concatenated(own)[order],
    }
    ranks = {}
    for key, known in texts.items():
        code = concatenated([columns[key] for columns in codes])[order]
        distinct, number = np.unique(np.array(known, object), return_inverse=True)
        ranks[key] = number.astype(np.int64)[code] if len(known) else code
        data[key] = distinct[ranks[key]] if len(known) else np.empty(0, object)
    total = f"{format_count(hits.count)} slices, {format_ns(hits.total_ns)} together"
    table = Table.from_arrays(
        HITS,
        f"{hits.filter.text}: {total}",
        data,
        positions=concatenated(positions)[order],
        sources=concatenated(sources)[order],
    )
    return HitTable(table.counted_from(trace.opening_span[0]), ranks)


def _distinct(numbers: AnyArray, text: Callable[[int], str], known: list[str]) -> I64:
    """Return for each number the place of its text in `known`, to which those of this source are added."""
    distinct, which = np.unique(numbers, return_inverse=True)
    first = len(known)
    known.extend(text(number) for number in distinct.tolist())
    rows: I64 = which.astype(np.int64) + first
    return rows


def slices_of_node(
    scope: Scope, path: Sequence[str], by: TreeRoots = "all", from_bottom: bool = False
) -> Hits:
    """Return the slices of the node that a path of names leads to, from its root on. Raises Cancelled."""
    parts: list[list[I64]] = [[] for _ in scope.trace.indexes]
    if by == "launch":
        chain = list(path if from_bottom else reversed(path))
        for source, index in enumerate(scope.trace.indexes):
            parts[source] += _launched(scope, source, index, chain, from_bottom)
    else:
        names = list(path[1:] if by == "thread" else path)
        chain = names if from_bottom else names[::-1]
        for source, lane, pieces in slices_by_lane(scope):
            own = scope.trace.lanes[lane]
            if by == "thread" and path[0] != f"{own.process.title} · {own.title}":
                continue
            index = scope.trace.indexes[source]
            positions = concatenated([piece.positions.astype(np.int64) for piece in pieces])
            around = rows_around(index, positions)
            codes, chain_codes = _codes(index, positions, chain)
            parts[source].append(positions[_chained(codes, around, chain_codes, from_bottom)])
    positions_of = [np.unique(concatenated(part)).astype(np.uint32) for part in parts]
    return hits_at(scope.trace, positions_of, scope.clocks, " › ".join(path))


def _codes(index: Index, positions: I64, names: Sequence[str]) -> tuple[I64, list[int]]:
    """Return the number of each slice's name, and those of some names; ROOT where no slice is called so."""
    labels = Labels()
    codes = labels.of_slices(index, positions, name_in_tree)
    return codes, [labels.get(name, ROOT) for name in names]


def _chained(codes: I64, around: I64, chain_codes: Sequence[int], from_bottom: bool) -> I64:
    """Return which of the slices lie in slices of these names, their own name first; unless
    `from_bottom`, in no other ones. Of no name: those that lie in nothing.
    """
    members = np.flatnonzero(codes == chain_codes[0]) if chain_codes else np.arange(len(codes))
    cursor = around[members] if chain_codes else np.where(around < 0, ROOT, 0)
    for code in chain_codes[1:]:
        matching = (cursor >= 0) & (codes[cursor] == code)
        members, cursor = members[matching], around[cursor[matching]]
    return members if from_bottom and chain_codes else members[cursor < 0]


def _launched(scope: Scope, source: int, index: Index, chain: Sequence[str], from_bottom: bool) -> list[I64]:
    """Return device work of these names: its own, then that of its launch and what that lies in; and what
    on the host is called so itself, where the chain begins there.
    """
    work = work_of(replace(scope, source=source)).position.astype(np.int64)
    launches = scope.trace.launches(source).launches_at(work).astype(np.int64)
    is_known = launches != NONE
    if chain[0] == UNKNOWN_LAUNCH:
        return [work[~is_known]]
    own, chain_codes = _codes(index, work, chain[:1])
    fits = own == chain_codes[0]
    if UNKNOWN_LAUNCH in chain:
        return [work[fits & ~is_known]]
    stack = with_ancestors(index, np.unique(launches[is_known]))
    around = rows_around(index, stack)
    codes, chain_codes = _codes(index, stack, chain)
    if len(chain) == 1 and from_bottom:
        return [work[fits]]
    below = stack[_chained(codes, around, chain_codes[1:], from_bottom)] if len(chain) > 1 else work[:0]
    parts = [work[fits & is_known & np.isin(launches, below)]]
    return parts if from_bottom else [*parts, stack[_chained(codes, around, chain_codes, False)]]
