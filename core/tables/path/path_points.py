"""Points of a critical path: what may release them, the threads of the host, and what ended their pauses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from ...base.arrays import BY_RUNS, I64, U8, AnyArray, Intervals, distinct, merge
from ...base.kineto import LAUNCH_FLOWS
from ...index.format import NONE, LaneKind, LaneRole
from ...index.store import Index
from ...query.groups import concatenated
from ...query.lookup import category_mask, lanes_of, names_with_prefix, rows_at
from ..frame.frame_columns import NEVER
from ..frame.scope import Scope
from ..host.op_events import ANNOTATION, I32, PYTHON, host_kinds
from ..host.tree import slices_by_lane

VIA = ("", "stream", "event", "launch", "graph", "sync", "flow", "thread", "collective", "device")
"""Why a point follows another; the last for work of which nothing else is known."""
STREAM, EVENT, LAUNCH, GRAPH, SYNC, FLOW, THREAD, COLLECTIVE, DEVICE = range(1, len(VIA))
Columns: TypeAlias = tuple[AnyArray, ...]
"""Columns of one length."""


@dataclass(frozen=True, eq=False)
class Points:
    """Moments of one thread that something else released, by time (trace time, ns)."""

    times: I64
    via: U8
    by: I64  # the row of the work, or the number of the thread
    at: I64  # when that ended
    positions: I64  # of the call that waits, else of nothing: -1
    inferred: AnyArray


@dataclass(frozen=True, eq=False)
class Waits:
    """The calls that wait, whether or not that took time, and pairs (call, row) of what they wait for."""

    threads: I64
    starts: I64
    ends: I64
    at: I64  # when that ended which held it up, NEVER where nothing did
    calls: I64
    rows: I64

    @classmethod
    def joined(cls, parts: Sequence[Waits]) -> Waits:
        keys = ("threads", "starts", "ends", "at", "rows")
        columns = {key: concatenated([getattr(part, key) for part in parts]) for key in keys}
        bases = np.cumsum([0, *(len(part.threads) for part in parts)])
        return cls(**columns, calls=concatenated([part.calls + base for part, base in zip(parts, bases)]))


@dataclass(frozen=True, eq=False)
class HostThread:
    """The slices of a thread of the host in a window, by position; trace time (ns), cut to the window."""

    source: int
    lane: int  # place in Trace.lanes
    index: Index
    positions: I64
    starts: I64
    ends: I64
    kinds: AnyArray  # as in op_events
    depths: I32
    has_overlaps: bool  # whether a slice may end before one that began in it

    @cached_property
    def activity(self) -> Intervals:
        """When operators and calls run: neither Python's frames nor annotations alone."""
        rows = ~np.isin(self.kinds, (ANNOTATION, PYTHON))
        return merge(self.starts[rows], self.ends[rows])

    @property
    def innermost(self) -> tuple[I64, I32]:
        """(times, the row of the innermost slice from each on, -1 for none).

        Of a (0..9) around b (2..5) these are 0: a, 2: b, 5: a, 9: none.
        """
        rows = np.flatnonzero(self.ends > self.starts).astype(np.int32)
        row_of = np.full(len(self.positions), -1, np.int32)
        above = self.index.column("slices.parent")[self.positions[rows]].astype(np.int64)
        above[above == NONE] = -1
        row_of[rows] = rows_at(self.index, self.positions, above)
        # Of what is at one time slices end first, the innermost before those around it; then they start, the
        # outermost first: by depth they mostly lie already.
        if (self.depths[rows][1:] < self.depths[rows][:-1]).any():
            rows = rows[np.argsort(self.depths[rows], kind=BY_RUNS)]
        times = np.concatenate([self.ends[rows[::-1]], self.starts[rows]])
        order = np.argsort(times, kind=BY_RUNS)
        times, owner = times[order], np.concatenate([row_of[rows[::-1]], rows])[order]
        todo = np.flatnonzero(owner >= 0) if self.has_overlaps else owner[:0]
        while len(todo):
            todo = todo[self.ends[owner[todo]] <= times[todo]]
            owner[todo] = row_of[owner[todo]]
            todo = todo[owner[todo] >= 0]
        last = np.append(times[1:] != times[:-1], True) if len(times) else np.zeros(0, np.bool_)
        return times[last], owner[last]


def threads_of(scope: Scope) -> list[HostThread]:
    """Return the threads of the host in a scope's range, in display order."""
    lanes = frozenset(lane.index for lane in scope.trace.lanes if lane.role is LaneRole.HOST)
    threads = []
    for source, lane, pieces in slices_by_lane(replace(scope, lanes=lanes)):
        index = scope.trace.indexes[source]
        keys = ("positions", "starts", "ends", "categories", "rows")
        columns = [concatenated([getattr(piece, key) for piece in pieces]) for key in keys]
        positions, starts, ends, categories, rows = columns
        depths = index.rows["depth"].astype(np.int32)[rows]
        kinds = host_kinds(index)[categories]
        own = index.lanes[lane - scope.trace.lane_bases[source]]
        has_overlaps = int(own["overlapping"]) > 0 or int(own["kind"]) != LaneKind.THREAD
        positions = positions.astype(np.int64)
        threads.append(HostThread(source, lane, index, positions, starts, ends, kinds, depths, has_overlaps))
    return threads


def latest(groups: I64, times: I64, ids: I64, of: I64, until: I64) -> I64:
    """Return for each query its group's row latest up to `until`, then of smallest id; -1 for none."""
    if not len(groups):
        return np.full(len(of), -1, np.int64)
    moments = distinct(times)
    ranks = np.searchsorted(moments, times)
    order = np.lexsort((-ids, ranks, groups))
    keys = groups[order] * (len(moments) + 1) + ranks[order]
    queries = of * (len(moments) + 1) + np.searchsorted(moments, until, "right") - 1
    at = np.searchsorted(keys, queries, "right") - 1
    rows = order[np.maximum(at, 0)]
    return np.where((at >= 0) & (groups[rows] == of), rows, -1)


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
        for number in distinct(ends[1][some]).tolist():
            mine = np.flatnonzero(ends[1][some] == number)
            active = threads[number].activity
            # Thread 2 is busy from 80 to 120, and an arrow leads from a slice of thread 1 that ended at 70 to
            # one that begins at 100, within that stretch: thread 2 may have waited for it until 80. Had the
            # slice of thread 1 ended at 90, thread 2 would have been awake before, whatever woke it.
            pause = np.searchsorted(active.starts, begun[mine], "right") - 1
            fits = np.append(active.starts, NEVER)[pause] >= done[mine]
            mine, pause = mine[fits], pause[fits]
            offer(number, pause, done[mine], ends[0][some[mine]], FLOW)
        is_back = category_mask(index, {"fwdbwd"})[index.column("flows.category")[usable][some]]
        low, high = np.sort(np.stack(ends)[:, some[is_back]], axis=0)
        pairs = [divmod(pair, len(threads)) for pair in distinct(low * len(threads) + high).tolist()]
        linked |= set(pairs) or _autograd(index, threads, own)
    return linked


def _autograd(index: Index, threads: Sequence[HostThread], own: Sequence[int]) -> set[tuple[int, int]]:
    """Return the thread of the backward pass with the busiest other one, where there is just one of it."""
    numbers = names_with_prefix(index, AUTOGRAD)
    names = index.column("slices.name")
    back = [at for at in own if np.isin(names[threads[at].positions], numbers).any()] if len(numbers) else []
    rest = [at for at in own if at not in back]
    if len(back) != 1 or not rest:
        return set()
    other = max(rest, key=lambda at: threads[at].activity.length)
    return {(min(back[0], other), max(back[0], other))}
