"""What ended the pauses of threads: arrows, and threads that take turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from ..base.arrays import I64, AnyArray
from ..base.kineto import LAUNCH_FLOWS
from ..index.format import NONE
from ..index.store import Index
from ..query.groups import concatenated
from ..query.lookup import category_mask, lanes_of
from .frame_columns import NEVER
from .path_points import FLOW, SYNC, THREAD, Columns, HostThread, Points
from .scope import Scope

AUTOGRAD = "autograd::engine::evaluate_function"
"""How the names of what PyTorch's thread for the backward pass does begin."""


def points_of(
    scope: Scope, threads: Sequence[HostThread], columns: Sequence[AnyArray], ids: I64
) -> list[Points]:
    """Return the points of each thread: the ends of calls that waited, by `columns` (thread, time, work, its
    end, position, inferred), and of pauses; `ids` are those of the work.
    """
    thread, times, by, at, positions, inferred = columns
    order = np.lexsort(
        (ids[by], -at, times, thread)
    )  # of calls that end together the one that waited longest
    order = order[_is_first(thread[order], times[order])]
    syncs = (thread, times, np.full(len(times), SYNC, np.uint8), by, at, positions, inferred)
    thread, *merged = (
        np.concatenate([own[order], other]) for own, other in zip(syncs, _turns(scope, threads))
    )
    order = np.lexsort((merged[1], merged[0], thread))
    bounds = np.searchsorted(thread[order], np.arange(len(threads) + 1)).tolist()
    return [Points(*(column[order[low:high]] for column in merged)) for low, high in pairwise(bounds)]


def _is_first(groups: I64, values: I64) -> AnyArray:
    """Return which of the sorted pairs differ from the one before."""
    is_first: AnyArray = (np.diff(groups, prepend=-1) != 0) | (np.diff(values, prepend=NEVER) != 0)
    return is_first


def _turns(scope: Scope, threads: Sequence[HostThread]) -> Columns:
    """Return (thread, time, via, other thread, when that ended, -1, inferred) of the ends of pauses that
    another thread ended.
    """
    nothing = np.empty(0, np.int64)
    offers: list[Columns] = [(nothing,) * 5]  # thread, time, via, other thread, when that ended

    def offer(number: int, pauses: I64, ended: I64, by: I64, via: int) -> None:
        active = threads[number].activity
        is_later = ended > np.concatenate([[NEVER], active.ends])[pauses]
        begins = active.starts[pauses[is_later]]
        same = (np.full(len(begins), value, np.int64) for value in (number, via))
        offers.append((next(same), begins, next(same), by[is_later], ended[is_later]))

    for one, other in _arrows(scope, threads, offer):
        for mine, theirs in ((one, other), (other, one)):
            begins, active = threads[mine].activity.starts, threads[theirs].activity
            at = np.searchsorted(active.starts, begins, "right") - 1
            ended = active.ends[np.maximum(at, 0)] if len(active) else begins
            fits = np.flatnonzero((at >= 0) & (ended <= begins))
            offer(mine, fits, ended[fits], np.full(len(fits), theirs), THREAD)
    thread, time, via, by, ended = (concatenated(column) for column in zip(*offers))
    order = np.lexsort((by, via, -ended, time, thread))
    order = order[_is_first(thread[order], time[order])]
    thread, time, via, by, ended = (column[order] for column in (thread, time, via, by, ended))
    none = np.full(len(order), -1, np.int64)
    return thread, time, via.astype(np.uint8), by, ended, none, via == THREAD


def _arrows(
    scope: Scope, threads: Sequence[HostThread], offer: Callable[[int, I64, I64, I64, int], None]
) -> set[tuple[int, int]]:
    """Offer the ends of slices from which arrows come to the pauses before their targets; return the pairs of
    threads that take turns: those of arrows from the forward to the backward pass, else of autograd's names.
    """
    linked: set[tuple[int, int]] = set()
    bases = scope.trace.lane_bases
    for source in scope.sources:
        own = [number for number, thread in enumerate(threads) if thread.source == source]
        index = scope.trace.indexes[source]
        number_of = np.full(len(index.lanes) + 1, -1, np.int64)
        number_of[[threads[number].lane - int(bases[source]) for number in own]] = own
        from_, to = index.column("flows.source"), index.column("flows.target")
        usable: AnyArray = (from_ != NONE) & (to != NONE)
        usable &= ~category_mask(index, LAUNCH_FLOWS)[index.column("flows.category")] if len(to) else usable
        from_, to = from_[usable].astype(np.int64), to[usable].astype(np.int64)
        ends = [number_of[lanes_of(index, one)] for one in (from_, to)]
        some = np.flatnonzero((ends[0] != ends[1]) & (ends[0] >= 0) & (ends[1] >= 0))
        done = scope.starts(source, from_[some]) + index.duration(from_[some])
        begun = scope.starts(source, to[some])
        for number in np.unique(ends[1][some]).tolist():
            mine = np.flatnonzero(ends[1][some] == number)
            active = threads[number].activity
            pause = np.searchsorted(active.starts, begun[mine], "right") - 1
            fits = np.append(active.starts, NEVER)[pause] >= done[mine]
            mine, pause = mine[fits], pause[fits]
            offer(number, pause, done[mine], ends[0][some[mine]], FLOW)
        is_back = category_mask(index, {"fwdbwd"})[index.column("flows.category")[usable][some]]
        pairs = np.unique(np.sort(np.stack(ends)[:, some[is_back]], axis=0), axis=1)
        linked |= set(zip(*pairs.tolist())) or _autograd(index, threads, own)
    return linked


def _autograd(index: Index, threads: Sequence[HostThread], own: Sequence[int]) -> set[tuple[int, int]]:
    """Return the thread of the backward pass with the busiest other one, where there is just one of it."""
    numbers = np.array(index.string_numbers(AUTOGRAD, prefix=True), np.uint32)
    names = index.column("slices.name")
    back = [at for at in own if np.isin(names[threads[at].positions], numbers).any()] if len(numbers) else []
    rest = [at for at in own if at not in back]
    if len(back) != 1 or not rest:
        return set()
    other = max(rest, key=lambda at: threads[at].activity.length)
    return {(min(back[0], other), max(back[0], other))}
