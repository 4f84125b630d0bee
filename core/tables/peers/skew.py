"""How far apart ranks come to their collectives: who was last, and how long the others waited."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from ...base.arrays import I64, AnyArray, Intervals, distinct, merge
from ...base.kineto import HOST_EVENTS, OPS, RUNTIME
from ...index.captures import ranks_text
from ...index.store import Index
from ...query.groups import Groups, dense
from ...query.lookup import lanes_of
from ...query.views import plain
from ...trace.collectives import MESSAGES, Attendance, Matched, collectives_at, collectives_of, match
from ...trace.devices import devices, lane_categories, ranks_of_processes
from ...trace.step_choice import Steps, find_steps
from ..frame.frame_columns import work_of
from ..frame.scope import Scope, Where
from ..steps.attribution import owners_of_work


class RankPart(NamedTuple):
    """One rank: the slices of a scope; `process` is the number of its process, None: the whole source."""

    scope: Scope
    process: int | None = None
    title: str = ""  # "rank 3", "process 4711"; empty for a whole source


def parts_of(scope: Scope, steps: Steps | None, ranks: Mapping[int, int]) -> tuple[RankPart, ...]:
    """Return the ranks of a scope of one source, itself where it is one; `ranks` by process if stated.

    A profiler writes the operators and calls of one process, so where several processes have some, or mark
    steps, each of them is a rank. A rank has the slices of its own process and those that belong to no rank:
    threads of other processes, and work whose launch is not known on a device for which no launch is known.
    """
    trace, source = scope.trace, scope.source or 0
    hosts = _processes_holding(scope, HOST_EVENTS)
    marking = set() if steps is None else set(steps.processes.tolist()) & hosts
    accelerators = {device.process for device in devices(trace) if device.source == source}
    calling = _processes_holding(scope, RUNTIME) - accelerators  # those may hold queues of calls, too
    processes = sorted(_processes_holding(scope, OPS) | calling | marking | set(ranks))
    if len(processes) < 2:
        return (RankPart(scope),)
    work = work_of(replace(scope, range=None, where=None, lanes=None, work=None))
    positions = distinct(work.position)
    owners = owners_of_work(trace, source, positions, np.array(processes))
    pids = {process.number: process for process in trace.processes if process.source == source}
    parts = []
    for number in processes:
        foreign = positions[(owners >= 0) & (owners != number)]
        lanes = {at for process in pids.values() for at in process.lanes}
        lanes -= {at for one in processes if one != number for at in pids[one].lanes}
        where = scope.where
        for one in work.by("device_row"):
            is_foreign, own_lanes = np.isin(one.position, foreign), one.first_device.device.lanes
            if is_foreign.all():
                lanes.difference_update(own_lanes)
                continue
            lanes.update(own_lanes)
            if is_foreign.any():
                where = _without(foreign, scope.where)
        if scope.lanes is not None:
            lanes &= set(scope.lanes)
        title = f"rank {ranks[number]}" if number in ranks else f"process {plain(pids[number].pid)}"
        parts.append(RankPart(replace(scope, lanes=frozenset(lanes), where=where), number, title))
    return tuple(parts)


def parts_in_one_file(scope: Scope) -> tuple[RankPart, ...]:
    """Return the ranks of a trace of one file; none of several files, each of which is a rank."""
    if len(scope.trace.indexes) != 1:
        return ()
    steps = find_steps(scope.trace, 0, scope.clocks, scope.steps or None)
    return parts_of(replace(scope, source=0), steps, ranks_of_processes(scope.trace))


def _processes_holding(scope: Scope, categories: Container[str]) -> set[int]:
    """Return the numbers of the processes of the scope's source that hold slices of some categories."""
    result = set()
    for process in scope.trace.processes:
        if process.source == scope.source:
            index = scope.trace.indexes[process.source]
            rows = [scope.trace.lanes[at].rows for at in process.lanes]
            if any(category in categories for part in rows for category in lane_categories(index, part)):
                result.add(process.number)
    return result


def _without(foreign: AnyArray, where: Where | None) -> Where:
    """Return a filter that leaves out some positions (ascending), beside another filter."""

    def is_own(index: Index, positions: I64) -> AnyArray:
        own: AnyArray = ~np.isin(positions, foreign)
        return own if where is None else own & where(index, positions)

    return is_own


@dataclass(frozen=True, eq=False)
class Skew:
    """The collectives of a scope in order of time, and when each rank was in them; trace time in ns.

    A column is a place in `sources`; `who` has the columns for ranks.
    """

    sources: tuple[int, ...]
    families: tuple[tuple[str, str], ...]
    family: I64  # of each collective
    number: I64
    who: Attendance
    positions: I64  # of each entry of `who`
    starts: I64
    ends: I64
    span: tuple[int, int] | None = None  # the time in which waiting counts, None: all of it

    def __len__(self) -> int:
        return len(self.family)

    @cached_property
    def columns(self) -> Mapping[int, int]:
        return {source: column for column, source in enumerate(self.sources)}

    @cached_property
    def first_start(self) -> I64:
        return self.who.least(self.starts)

    @cached_property
    def last_start(self) -> I64:
        return self.who.most(self.starts)

    @property
    def spread(self) -> I64:
        return self.last_start - self.first_start

    @property
    def first_end(self) -> I64:
        return self.who.least(self.ends)

    @property
    def end_spread(self) -> I64:
        return self.who.most(self.ends) - self.first_end

    def awaiting(self, column: int) -> I64:
        """Return the collectives to which a rank came last, late: those with most waiting for it first."""
        own = np.flatnonzero(self.late & (self.last == column))
        return own[np.argsort(-self.waited[own], kind="stable")]

    @cached_property
    def last_entry(self) -> I64:
        """The entry of the rank that began each collective last; of several the first."""
        latest = np.flatnonzero(self.starts == self.last_start[self.who.collective])
        return latest[np.searchsorted(self.who.collective[latest], np.arange(len(self)))].astype(np.int64)

    @property
    def last(self) -> I64:
        """The column of that rank."""
        return self.who.rank[self.last_entry]

    @cached_property
    def late(self) -> AnyArray:
        """Of each collective: whether one rank of several began later than every other; of what sends and
        receives only where no rank ended before: else these are messages of two ranks, as in a pipeline.
        """
        latest = self.who.sums(self.starts == self.last_start[self.who.collective]) == 1
        may_be_messages = np.array([name in MESSAGES for _, name in self.families], np.bool_)[self.family]
        meets = ~may_be_messages | (self.first_end >= self.last_start)
        return np.asarray(latest & (self.who.sizes > 1) & meets)

    @cached_property
    def waits(self) -> I64:
        """Of each entry: ns that the rank spent in the collective before the last one came, in the span."""
        until = np.minimum(self.last_start[self.who.collective], self.ends)
        if self.span is not None:
            until = np.minimum(until, self.span[1])
        waits: I64 = np.maximum(0, until - self.since)
        return waits

    @cached_property
    def since(self) -> I64:
        """Of each entry: when it begins, in the span."""
        return self.starts if self.span is None else np.maximum(self.starts, self.span[0])

    @cached_property
    def waited(self) -> I64:
        """Of each collective: ns that its ranks waited, added up."""
        return self.who.sums(self.waits)

    @cached_property
    def caused(self) -> I64:
        """By column: ns that the others waited in collectives that this rank alone came last to."""
        return self.waited_by(np.where(self.late, self.last, -1), len(self.sources))

    def waited_by(self, groups: I64, count: int) -> I64:
        """Return how long ranks waited in the collectives of each of `count` groups, those of all ranks added
        up; of what a rank waits for in several at once, as gloo allows, each ns once. `groups` has a number
        for each collective, -1 for none.
        """
        of_entry = groups[self.who.collective]
        own = np.flatnonzero((of_entry >= 0) & (self.waits > 0))
        codes, keys = dense(of_entry[own] * self.who.ranks + self.who.rank[own])
        waited = Groups(codes, len(keys)).covered(self.since[own], self.since[own] + self.waits[own])
        return Groups(keys // self.who.ranks, count).sums(waited)

    @cached_property
    def came_last(self) -> I64:
        """By column: how many collectives the rank began later than every other."""
        return Groups(self.last[self.late], len(self.sources)).counts

    def waiting(self, column: int) -> Intervals:
        """Return the time in which a rank waits in one collective at least."""
        own = self.who.of_rank(column)
        return merge(self.since[own], self.since[own] + self.waits[own])

    def longest_wait(self, column: int) -> int:
        """Return the position of the collective in which a rank waited longest, -1 for none."""
        own = self.who.of_rank(column)
        if not len(own) or not self.waits[own].any():
            return -1
        return int(self.positions[own[int(self.waits[own].argmax())]])


def notes_on_ranks(alignment: str, missing: tuple[int, ...], count: int, waiting: Skew) -> tuple[str, ...]:
    """Return how clocks were set, which ranks are missing, and whether ranks share collectives."""
    notes = [alignment] if alignment else []
    if missing:
        notes.append(f"missing: rank{'s' if len(missing) > 1 else ''} {ranks_text(missing)}")
    if count > 1 and not len(waiting):
        notes.append("no collective is on two ranks: who waits for whom is not known")
    return tuple(notes)


def skew(scope: Scope) -> Skew:
    """Return the collectives that reach into a scope's range; of some lanes what two ranks still have."""
    alignment = scope.trace.alignment
    matched = alignment.matched if alignment.ranks else None
    return _skew_of_files(scope, matched or Matched.nothing(len(alignment.ranks)))


def attended(scope: Scope, parts: Sequence[RankPart]) -> Skew:
    """Return the collectives as `skew` does, with those of one rank; `parts` are the ranks of one file."""
    alignment = scope.trace.alignment
    if len(parts) > 1:
        return skew_of_parts(scope, parts, 1)
    if alignment.matched is None:
        is_one = len(scope.trace.indexes) == 1
        return skew_of_parts(scope, parts or (RankPart(scope),), 1) if is_one else skew(scope)
    moved = zip(alignment.collectives, alignment.rank_clocks)
    return _skew_of_files(scope, match([one.moved(clock.base_ns) for one, clock in moved], 1), 1)


def _skew_of_files(scope: Scope, matched: Matched, least: int = 2) -> Skew:
    alignment = scope.trace.alignment
    who = matched.who
    moved = np.array([-clock.base_ns for clock in alignment.rank_clocks], np.int64)
    shift = moved[who.rank]
    inside = np.ones(len(who), np.bool_)
    for column, source in enumerate(alignment.ranks):
        own = who.of_rank(column)
        own = own[np.argsort(matched.positions[own], kind="stable")]
        positions = matched.positions[own]
        shift[own] += _offsets(scope, source, positions)
        inside[own] = _inside(scope, source, positions)
    return skew_of(alignment.ranks, matched, shift, inside, scope.range, least)


def skew_of_parts(scope: Scope, parts: Sequence[RankPart], least: int = 2) -> Skew:
    """Return the collectives of the ranks of one file; `sources` are their processes, 0 for a whole file."""
    index = scope.trace.indexes[0]
    level, _ = collectives_of(index)
    matched = match([collectives_at(index, level, partial(_inside, part.scope, 0)) for part in parts], least)
    order = np.argsort(matched.positions, kind="stable")
    shift, inside = np.empty(len(order), np.int64), np.empty(len(order), np.bool_)
    positions = matched.positions[order]
    shift[order] = _offsets(scope, 0, positions)
    inside[order] = _inside(scope, 0, positions)
    processes = tuple(part.process or 0 for part in parts)
    return skew_of(processes, matched, shift, inside, scope.range, least)


def skew_of(
    sources: tuple[int, ...],
    matched: Matched,
    shift: I64,
    inside: AnyArray,
    span: tuple[int, int] | None = None,
    least: int = 2,
) -> Skew:
    """Return matched collectives in order of time, `shift` added to the times of their entries; of those
    `inside` only, and of collectives that reach into a span and that at least so many ranks have.
    """
    who, left = matched.who.take(inside, least)
    starts, ends = matched.starts[left] + shift[left], matched.ends[left] + shift[left]
    first = who.least(starts)
    order = np.argsort(first, kind="stable").astype(np.int64)
    if span is not None:
        last = np.maximum(who.most(ends), first + 1)
        order = order[(first[order] < span[1]) & (last[order] > span[0])]
    entries = who.of_collectives(order)
    collective = np.repeat(np.arange(len(order), dtype=np.int64), who.sizes[order])
    origin = matched.who.collective[left[who.bounds[:-1]]][order] if who.collectives else order
    return Skew(
        sources,
        matched.families,
        matched.family[origin],
        matched.number[origin],
        Attendance(len(order), who.ranks, collective, who.rank[entries]),
        matched.positions[left[entries]],
        starts[entries],
        ends[entries],
        span,
    )


def _offsets(scope: Scope, source: int, positions: I64) -> I64:
    """Return what is to be added to the times of slices of a source."""
    return scope.lane_offsets(source)[lanes_of(scope.trace.indexes[source], positions)]


def _inside(scope: Scope, source: int, positions: I64) -> AnyArray:
    """Return which slices lie on the lanes of the scope and match its filter."""
    index = scope.trace.indexes[source]
    inside = scope.has_lanes(source, lanes_of(index, positions))
    if scope.where is not None:
        inside &= scope.where(index, positions)
    return inside
