"""Rank by rank: step time, compute, communication and idle; who keeps the others waiting, step by step."""

from __future__ import annotations

<<<<<<< HEAD
from collections.abc import Mapping, Sequence
=======
from collections import Counter
from collections.abc import Sequence
>>>>>>> a678e1e (Sum ranks up by host and parallel group, and say each rank step by step)
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..base.arrays import I64
from ..index.captures import Capture, ranks_text
from .alignment import RankClock
from .attribution import steps_of_work
from .breakdown import device_times
from .devices import KERNEL_CATEGORIES
from .groups import Groups
from .rank_groups import host_of_source
from .scope import Scope
from .skew import Skew, skew
from .step_choice import Steps, find_steps
from .work import Work, work_of

STAMPED = RankClock(0, 0)


@dataclass(frozen=True)
class RankTimes:
    """What one rank did in a scope, ns; times of devices are None where the rank shows none.

    `waited_ns` is the time it spent in collectives before the last rank came, `kept_waiting_ns` that of all
    others in those it came to last, which are `last` of `collectives`.
    """

    source: int
    rank: int
    title: str
    host: str
    path: str
    clock: RankClock
    steps: int
    step_ns: int | None  # median
    kernels: int
    kernel_time_ns: int | None
    busy_ns: int | None
    compute_ns: int | None
    comm_ns: int | None
    memory_ns: int | None
    collectives: int
    last: int
    waited_ns: int
    kept_waiting_ns: int
    position: int  # of the collective in which it waited longest, else of its first step; -1 for neither

    @property
    def idle_ns(self) -> int | None:
        """The part of the devices' time in which nothing runs."""
        if self.kernel_time_ns is None or self.busy_ns is None:
            return None
        return self.kernel_time_ns - self.busy_ns


@dataclass(frozen=True)
class RankStep:
    """One step on all ranks; a rank's own time is its wall time without its waiting in collectives."""

    label: str
    ranks: int
    wall_ns: int  # the longest
    slowest: int  # source of the rank with the longest own time
    slowest_own_ns: int
    fastest_own_ns: int
    position: int  # the slowest rank's step
    awaited: int | None  # source of the rank that the others waited for most; None where nobody waited
    kept_waiting_ns: int  # by that rank


@dataclass(frozen=True)
class RankInStep:
    """One rank in one step; `turn` tells steps of one label apart, from 1 on."""

    source: int
    label: str
    turn: int
    wall_ns: int
    own_ns: int
    waited_ns: int
    kept_waiting_ns: int  # by its coming last to collectives that the step launched
    position: int


@dataclass(frozen=True)
class Ranks:
    """The ranks of a scope, their collectives and steps, and how their clocks were set."""

    scope: str
    ranks: tuple[RankTimes, ...]
    skew: Skew
    in_steps: tuple[RankInStep, ...]
    steps: tuple[RankStep, ...]
    missing: tuple[int, ...]
    alignment: str

    @property
    def notes(self) -> tuple[str, ...]:
        """What must be known beside the numbers."""
        notes = [self.alignment] if self.alignment else []
        if self.missing:
            notes.append(f"missing: rank{'s' if len(self.missing) > 1 else ''} {ranks_text(self.missing)}")
        if len(self.ranks) > 1 and not len(self.skew):
            notes.append("no collective is on two ranks: nothing tells who waits for whom")
        return tuple(notes)

    @property
    def worst_first(self) -> tuple[RankTimes, ...]:
        """The ranks, first the one that the others wait for most."""
        return tuple(sorted(self.ranks, key=lambda rank: -rank.kept_waiting_ns))

    def number(self, source: int) -> int:
        """Return the rank of a source."""
        return self._numbers[source]

<<<<<<< HEAD
    @cached_property
    def _numbers(self) -> Mapping[int, int]:
        return {rank.source: rank.rank for rank in self.ranks}
=======

def ranks(scope: Scope) -> Ranks:
    """Return what each rank of a scope did; a trace without ranks counts its files."""
    trace = scope.trace
    own = trace.alignment.ranks
    files = range(len(trace.members) or len(trace.indexes))
    sources = own or tuple(at for at in files if trace.rank(at) is not None) or tuple(files)
    clocks = dict(zip(own, trace.alignment.rank_clocks))
    waiting = skew(scope)
    waits, caused_by = waiting.waits, _caused(waiting)
    works: dict[int, list[Work]] = {source: [] for source in sources}
    for work in work_of(scope):
        works.setdefault(work.device.source, []).append(work)
    of_step = {source: steps for source in sources if (steps := _steps(scope, source)) is not None}
    rows = []
    for column, source in enumerate(sources):
        steps = of_step.get(source)
        walls = np.empty(0, np.int64) if steps is None else steps.ends - steps.starts
        times = _Devices.of(works[source])
        mine = waits[:, column] if own else np.empty(0, np.int64)
        caused = caused_by[:, column] if own else np.empty(0, np.int64)
        position = -1
        if len(mine) and mine.any():
            position = int(waiting.positions[int(mine.argmax()), column])
        elif steps is not None and len(steps):
            position = int(steps.positions[0])
        member = trace.members[source] if source < len(trace.members) else None
        rank = trace.rank(source)
        rows.append(
            RankTimes(
                source=source,
                rank=source if rank is None else rank,
                title=member.title if member is not None else str(source),
                host=host_of_source(trace, source),
                path=str(trace.sources[source].path),
                clock=clocks.get(source, STAMPED),
                steps=len(walls),
                step_ns=int(np.median(walls)) if len(walls) else None,
                kernels=times.kernels,
                kernel_time_ns=times.kernel_time_ns,
                busy_ns=times.busy_ns,
                compute_ns=times.compute_ns,
                comm_ns=times.comm_ns,
                memory_ns=times.memory_ns,
                collectives=int(waiting.has[:, column].sum()) if own else 0,
                last=int((waiting.late & (waiting.last == column)).sum()) if own else 0,
                waited_ns=waiting.waiting(column).length if own else 0,
                kept_waiting_ns=int(caused.sum()),
                position=position,
            )
        )
    in_steps = tuple(
        row for source, steps in of_step.items() for row in _in_steps(scope, waiting, caused_by, steps)
    )
    members = tuple(member for member in trace.members if member.rank is not None)
    missing = Capture("", members).missing if len(members) > 1 else ()
    shared = _shared_steps(in_steps)
    return Ranks(scope.text, tuple(rows), waiting, in_steps, shared, missing, trace.alignment.text)


def _caused(waiting: Skew) -> I64:
    """Return by collective and rank how long the others waited for it, added up: 0 where it was not last."""
    caused = np.zeros(waiting.has.shape, np.int64)
    rows = np.flatnonzero(waiting.late)
    caused[rows, waiting.last[rows]] = waiting.waits[rows].sum(axis=1)
    return caused
>>>>>>> a678e1e (Sum ranks up by host and parallel group, and say each rank step by step)


@dataclass(frozen=True)
class RankDevices:
    """The sums over one rank's devices, ns; None where it shows none."""

    kernels: int = 0
    kernel_time_ns: int | None = None
    busy_ns: int | None = None
    compute_ns: int | None = None
    comm_ns: int | None = None
    memory_ns: int | None = None

    @classmethod
    def of(cls, works: Sequence[Work]) -> RankDevices:
        """Return the sums over the work of one rank's devices."""
        if not works:
            return cls()
        times = [device_times(work) for work in works]
        return cls(
            sum(_kernels(work) for work in works),
            sum(one.kernel_time_ns for one in times),
            sum(one.busy_ns for one in times),
            sum(one.compute_ns for one in times),
            sum(one.comm_ns for one in times),
            sum(one.memory_ns for one in times),
        )


@dataclass(frozen=True)
class RankFacts:
    """What is known of one rank by itself, before it is compared with others; steps in trace time."""

    source: int
    rank: int
    title: str
    host: str
    path: str
    clock: RankClock
    steps: Steps | None
    devices: RankDevices


def ranks(scope: Scope) -> Ranks:
    """Return what each rank of a scope did; a trace without ranks counts its files."""
    trace = scope.trace
    own = trace.alignment.ranks
    files = range(len(trace.members) or len(trace.indexes))
    sources = own or tuple(at for at in files if trace.rank(at) is not None) or tuple(files)
    clocks = dict(zip(own, trace.alignment.rank_clocks))
    works: dict[int, list[Work]] = {source: [] for source in sources}
    for work in work_of(scope):
        works.setdefault(work.device.source, []).append(work)
    facts = []
    for source in sources:
        member = trace.members[source] if source < len(trace.members) else None
        rank = trace.rank(source)
        facts.append(
            RankFacts(
                source=source,
                rank=source if rank is None else rank,
                title=member.title if member is not None else str(source),
                host=member.host if member is not None else "",
                path=str(trace.sources[source].path),
                clock=clocks.get(source, STAMPED),
                steps=_steps(scope, source),
                devices=RankDevices.of(works[source]),
            )
        )
    members = tuple(member for member in trace.members if member.rank is not None)
    missing = Capture("", members).missing if len(members) > 1 else ()
    return compared_ranks(scope.text, facts, skew(scope), missing, trace.alignment.text)


def compared_ranks(
    scope: str, facts: Sequence[RankFacts], found: Skew, missing: tuple[int, ...], alignment: str
) -> Ranks:
    """Return ranks held against each other by the collectives that they share."""
    rows = []
    for fact in facts:
        column = found.columns.get(fact.source)
        steps, devices = fact.steps, fact.devices
        walls = steps.ends - steps.starts if steps is not None else np.empty(0, np.int64)
        position = -1 if column is None else found.longest_wait(column)
        if position < 0 and steps is not None and len(steps):
            position = int(steps.positions[0])
        rows.append(
            RankTimes(
                source=fact.source,
                rank=fact.rank,
                title=fact.title,
                host=fact.host,
                path=fact.path,
                clock=fact.clock,
                steps=len(walls),
                step_ns=int(np.median(walls)) if len(walls) else None,
                kernels=devices.kernels,
                kernel_time_ns=devices.kernel_time_ns,
                busy_ns=devices.busy_ns,
                compute_ns=devices.compute_ns,
                comm_ns=devices.comm_ns,
                memory_ns=devices.memory_ns,
                collectives=0 if column is None else len(found.who.of_rank(column)),
                last=0 if column is None else int(found.came_last[column]),
                waited_ns=0 if column is None else found.waiting(column).length,
                kept_waiting_ns=0 if column is None else int(found.caused[column]),
                position=position,
            )
        )
    shared = _rank_steps(found, {fact.source: fact.steps for fact in facts if fact.steps is not None})
    return Ranks(scope, tuple(rows), found, shared, missing, alignment)


def _kernels(work: Work) -> int:
    is_kernel = np.array([category in KERNEL_CATEGORIES for category in work.index.categories], np.bool_)
    return int(np.count_nonzero(is_kernel[work.categories]))


def _steps(scope: Scope, source: int) -> Steps | None:
    """Return a source's steps that lie in the scope's range wholly."""
    steps = find_steps(scope.trace, source, scope.clocks, scope.steps or None)
    if steps is None or scope.range is None:
        return steps
    inside = np.flatnonzero((steps.starts >= scope.range[0]) & (steps.ends <= scope.range[1]))
    return replace(
        steps,
        positions=steps.positions[inside],
        starts=steps.starts[inside],
        ends=steps.ends[inside],
        labels=tuple(steps.labels[at] for at in inside.tolist()),
        groups=tuple(steps.groups[at] for at in inside.tolist()),
        processes=steps.processes[inside],
    )


def _in_steps(scope: Scope, waiting: Skew, caused_by: I64, steps: Steps) -> list[RankInStep]:
    """Return a rank step by step. A collective belongs to the step that launched it on the rank that came
    last; waiting is what of the step's own time it covers.
    """
    walls = steps.ends - steps.starts
    waited, caused = np.zeros(len(steps), np.int64), np.zeros(len(steps), np.int64)
    if steps.source in waiting.sources:
        column = waiting.sources.index(steps.source)
        waited = waiting.waiting(column).covered(steps.starts, steps.ends)
        rows = np.flatnonzero(caused_by[:, column])
        rows = rows[np.argsort(waiting.positions[rows, column])]
        held = steps_of_work(scope, steps, waiting.positions[rows, column]).steps
        inside = held >= 0
        caused = Groups(held[inside], len(steps)).sums(caused_by[rows[inside], column])
    turns: Counter[str] = Counter()
    in_steps = []
    columns = zip(*(values.tolist() for values in (walls, waited, caused, steps.positions)))
    for label, (wall, wait, cost, position) in zip(steps.labels, columns):
        turns[label] += 1
        in_steps.append(
            RankInStep(steps.source, label, turns[label], wall, wall - wait, wait, cost, position)
        )
    return in_steps


def _shared_steps(rows: Sequence[RankInStep]) -> tuple[RankStep, ...]:
    """Return the steps that at least two ranks have: the k-th of a label is the same step on each."""
<<<<<<< HEAD
    met: dict[tuple[str, int], list[tuple[int, int, int, int]]] = {}  # (source, wall, own, position)
    for source, steps in of_step.items():
        own = steps.ends - steps.starts
        column = found.columns.get(source)
        if column is not None:
            own = own - found.waiting(column).covered(steps.starts, steps.ends)
        counts: dict[str, int] = {}
        for at, label in enumerate(steps.labels):
            counts[label] = counts.get(label, 0) + 1
            entry = (source, int(steps.ends[at] - steps.starts[at]), int(own[at]), int(steps.positions[at]))
            met.setdefault((label, counts[label]), []).append(entry)
    rows = []
    for (label, _), entries in met.items():
        if len(entries) > 1:
            source, _, longest, position = max(entries, key=lambda entry: entry[2])
            wall, shortest = max(entry[1] for entry in entries), min(entry[2] for entry in entries)
            rows.append(RankStep(label, len(entries), wall, source, longest, shortest, position))
    return tuple(rows)
=======
    by_step: dict[tuple[str, int], list[RankInStep]] = {}
    for row in rows:
        by_step.setdefault((row.label, row.turn), []).append(row)
    steps = []
    for (label, _), alike in by_step.items():
        if len(alike) > 1:
            slowest = max(alike, key=lambda row: row.own_ns)
            awaited = max(alike, key=lambda row: row.kept_waiting_ns)
            steps.append(
                RankStep(
                    label,
                    len(alike),
                    max(row.wall_ns for row in alike),
                    slowest.source,
                    slowest.own_ns,
                    min(row.own_ns for row in alike),
                    slowest.position,
                    awaited.source if awaited.kept_waiting_ns else None,
                    awaited.kept_waiting_ns,
                )
            )
    return tuple(steps)
>>>>>>> a678e1e (Sum ranks up by host and parallel group, and say each rank step by step)
