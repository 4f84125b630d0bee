"""The slices that a node of a call tree stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..base.arrays import I64
from ..index.format import NONE
from ..index.store import Index
from ..query.groups import Labels, concatenated
from ..query.hits import Hits
from ..trace.hit_search import hits_at
from .frame_columns import work_of
from .scope import Scope
from .slices import rows_around
from .tree import (
    ROOT,
    UNKNOWN_LAUNCH,
    TreeRoots,
    name_in_tree,
    slices_by_lane,
    with_ancestors,
)


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
