"""Rank by rank: step time, compute, communication and idle; who keeps the others waiting, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..index.captures import Capture, ranks_text
from .alignment import RankClock
from .breakdown import device_times
from .devices import KERNEL_CATEGORIES
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


@dataclass(frozen=True)
class Ranks:
    """The ranks of a scope, their collectives and steps, and how their clocks were set."""

    scope: str
    ranks: tuple[RankTimes, ...]
    skew: Skew
    steps: tuple[RankStep, ...]
    missing: tuple[int, ...]
    alignment: str

    @property
    def notes(self) -> tuple[str, ...]:
        """What must be known beside the numbers."""
        found = [self.alignment] if self.alignment else []
        if self.missing:
            found.append(f"missing: rank{'s' if len(self.missing) > 1 else ''} {ranks_text(self.missing)}")
        if len(self.ranks) > 1 and not len(self.skew):
            found.append("no collective is on two ranks: nothing tells who waits for whom")
        return tuple(found)

    def number(self, source: int) -> int:
        """Return the rank of a source."""
        return self._numbers[source]

    @cached_property
    def _numbers(self) -> Mapping[int, int]:
        return {rank.source: rank.rank for rank in self.ranks}


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
    wanted = np.array([category in KERNEL_CATEGORIES for category in work.index.categories], np.bool_)
    return int(np.count_nonzero(wanted[work.categories]))


def _steps(scope: Scope, source: int) -> Steps | None:
    """Return a source's steps that lie in the scope's range wholly."""
    found = find_steps(scope.trace, source, scope.clocks, scope.steps or None)
    if found is None or scope.range is None:
        return found
    inside = np.flatnonzero((found.starts >= scope.range[0]) & (found.ends <= scope.range[1]))
    return replace(
        found,
        positions=found.positions[inside],
        starts=found.starts[inside],
        ends=found.ends[inside],
        labels=tuple(found.labels[at] for at in inside.tolist()),
        groups=tuple(found.groups[at] for at in inside.tolist()),
    )


def _rank_steps(found: Skew, of_step: dict[int, Steps]) -> tuple[RankStep, ...]:
    """Return the steps that at least two ranks have: the k-th of a label is the same step on each."""
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
