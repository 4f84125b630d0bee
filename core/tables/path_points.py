"""Points of a critical path: what may release them, and the threads of the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from ..base.arrays import I64, U8, AnyArray, places_in
from ..base.intervals import Intervals, merge
from ..index.format import LaneRole
from ..index.store import Index
from ..query.groups import concatenated
from .op_events import ANNOTATION, PYTHON, host_kinds
from .scope import Scope
from .tree import slices_by_lane

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
        """Return those of several sources."""
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
    depths: I64

    @cached_property
    def activity(self) -> Intervals:
        """When operators and calls run: neither Python's frames nor annotations alone."""
        rows = ~np.isin(self.kinds, (ANNOTATION, PYTHON))
        return merge(self.starts[rows], self.ends[rows])

    @cached_property
    def innermost(self) -> tuple[I64, I64]:
        """(times, the row of the innermost slice from each on, -1 for none).

        Of a (0..9) around b (2..5) these are 0: a, 2: b, 5: a, 9: none.
        """
        rows = np.flatnonzero(self.ends > self.starts)
        row_of = np.full(len(self.positions), -1, np.int64)
        above = self.index.column("slices.parent")[self.positions[rows]].astype(np.int64)
        row_of[rows] = places_in(self.positions, above)
        times = np.concatenate([self.starts[rows], self.ends[rows]])
        depth = self.depths[rows]
        is_start = np.arange(len(times)) < len(rows)
        order = np.lexsort((np.concatenate([depth, -depth]), is_start, times))
        times, owner = times[order], np.concatenate([rows, row_of[rows]])[order]
        todo = np.flatnonzero(owner >= 0)
        while len(todo):  # slices that overlap end before those inside them
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
        depths = index.rows["depth"].astype(np.int64)[rows]
        kinds = host_kinds(index)[categories]
        threads.append(
            HostThread(source, lane, index, positions.astype(np.int64), starts, ends, kinds, depths)
        )
    return threads


def latest(groups: I64, times: I64, ids: I64, of: I64, until: I64) -> I64:
    """Return for each query the row of its group with the latest time up to `until`, of equal ones that with
    the smallest id; -1 for none.
    """
    if not len(groups):
        return np.full(len(of), -1, np.int64)
    distinct = np.unique(times)
    ranks = np.searchsorted(distinct, times)
    order = np.lexsort((-ids, ranks, groups))
    keys = groups[order] * (len(distinct) + 1) + ranks[order]
    queries = of * (len(distinct) + 1) + np.searchsorted(distinct, until, "right") - 1
    at = np.searchsorted(keys, queries, "right") - 1
    rows = order[np.maximum(at, 0)]
    return np.where((at >= 0) & (groups[rows] == of), rows, -1)
