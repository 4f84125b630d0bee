"""How far apart ranks come to their collectives: who was last, and how long the others waited."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.arrays import I64, AnyArray
from ..base.intervals import Intervals, merge
from .collectives import NOTHING, Matched
from .op_events import slice_lanes
from .scope import Scope

EARLY = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Skew:
    """The collectives of a scope in order of time, a row for each, a column per rank; trace time in ns."""

    sources: tuple[int, ...]  # by column
    families: tuple[tuple[str, str], ...]
    family: I64
    number: I64
    has: AnyArray  # row × rank
    positions: I64
    starts: I64
    ends: I64

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.family)

    @property
    def first_start(self) -> I64:
        """When the first rank began, by row."""
        found: I64 = np.where(self.has, self.starts, EARLY).min(axis=1, initial=EARLY)
        return found

    @property
    def last_start(self) -> I64:
        """When the last rank began, by row."""
        found: I64 = np.where(self.has, self.starts, NOTHING).max(axis=1, initial=NOTHING)
        return found

    @property
    def spread(self) -> I64:
        """Ns from the first start to the last, by row."""
        return self.last_start - self.first_start

    @property
    def end_spread(self) -> I64:
        """Ns from the first end to the last, by row."""
        low = np.where(self.has, self.ends, EARLY).min(axis=1, initial=EARLY)
        high = np.where(self.has, self.ends, NOTHING).max(axis=1, initial=NOTHING)
        found: I64 = high - low
        return found

    @property
    def last(self) -> I64:
        """The column of the rank that began last, by row."""
        if not len(self):
            return np.empty(0, np.int64)
        column: I64 = np.where(self.has, self.starts, NOTHING).argmax(axis=1).astype(np.int64)
        return column

    @property
    def waits(self) -> I64:
        """Ns that each rank spent in a collective before the last one came; 0 where it has no part."""
        until = np.minimum(self.last_start[:, None], self.ends)
        found: I64 = np.where(self.has, np.maximum(0, until - self.starts), 0)
        return found

    def waiting(self, column: int) -> Intervals:
        """Return the time in which a rank waits in one collective at least."""
        there = self.has[:, column]
        starts = self.starts[there, column]
        return merge(starts, starts + self.waits[there, column])

    @property
    def late(self) -> AnyArray:
        """By row: whether one rank began later than every other."""
        began = np.where(self.has, self.starts, NOTHING)
        latest: AnyArray = (began == self.last_start[:, None]).sum(axis=1) == 1
        return latest


def skew(scope: Scope) -> Skew:
    """Return the collectives that begin in a scope's range, under its clocks; of a scope of some lanes or
    slices only, those that two ranks still have.
    """
    alignment = scope.trace.alignment
    matched = alignment.matched
    if matched is None:
        matched = _no_collectives(len(alignment.ranks))
    moved = np.array(
        [
            scope.clocks.offset(source) - clock.base_ns
            for source, clock in zip(alignment.ranks, alignment.rank_clocks)
        ],
        np.int64,
    )
    has = matched.has.copy()
    shift = np.broadcast_to(moved, has.shape).copy()
    for column, source in enumerate(alignment.ranks):
        there = np.flatnonzero(has[:, column])
        positions = matched.positions[there, column]
        shift[there, column] += _device_offsets(scope, source, positions)
        has[there, column] = _inside(scope, source, positions)
    starts = np.where(has, matched.starts + shift, NOTHING)
    ends = np.where(has, matched.ends + shift, NOTHING)
    first = np.where(has, starts, EARLY).min(axis=1, initial=EARLY)
    rows = np.argsort(first, kind="stable")
    rows = rows[has.sum(axis=1)[rows] > 1]
    if scope.range is not None:
        rows = rows[(first[rows] >= scope.range[0]) & (first[rows] < scope.range[1])]
    return Skew(
        alignment.ranks,
        matched.families,
        matched.family[rows],
        matched.number[rows],
        has[rows],
        matched.positions[rows],
        starts[rows],
        ends[rows],
    )


def _device_offsets(scope: Scope, source: int, positions: I64) -> I64:
    """Return what is to be added to the times of slices because their devices have clocks of their own."""
    found = np.zeros(len(positions), np.int64)
    own = scope.clocks.of_processes(source)
    if own and len(positions):
        index = scope.trace.indexes[source]
        pids = [index.string(int(process["pid"])) for process in index.processes]
        of_process = np.array([own.get(pid, 0) for pid in pids], np.int64)
        found += of_process[index.lanes["process"][slice_lanes(index, positions)]]
    return found


def _inside(scope: Scope, source: int, positions: I64) -> AnyArray:
    """Return which slices are on the scope's lanes and match its filter."""
    index = scope.trace.indexes[source]
    inside = np.ones(len(positions), np.bool_)
    if scope.lanes is not None:
        base = sum(len(other.lanes) for other in scope.trace.indexes[:source])
        inside &= np.isin(slice_lanes(index, positions) + base, np.array(sorted(scope.lanes), np.int64))
    if scope.where is not None:
        inside &= scope.where(index, positions)
    return inside


def _no_collectives(ranks: int) -> Matched:
    none, wide = np.empty(0, np.int64), np.empty((0, ranks), np.int64)
    return Matched((), none, none, wide, wide, wide)
