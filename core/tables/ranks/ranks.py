"""Rank by rank: step time, compute, communication and idle; who keeps the others waiting, step by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from ...base.arrays import EMPTY, I64, Intervals, sum_of
from ...base.kineto import KERNEL_CATEGORIES
from ...index.captures import Capture
from ...index.flex import is_flex
from ...query.lookup import category_mask
from ...trace.alignment import RankClock
from ...trace.devices import ranks_of_processes
from ...trace.step_choice import Steps, find_steps
from ..device.breakdown import device_table
from ..frame.frame import Frame
from ..frame.frame_columns import timed_work
from ..frame.scope import Scope
from ..frame.table_rows import Values
from ..peers.collective_steps import Parts, collective_parts, part_columns
from ..peers.messages import MessagesOf, messages_of
from ..peers.skew import RankPart, Skew, attended, notes_on_ranks, parts_in_one_file, skew, skew_of_parts
from ..steps.attribution import steps_at_times, steps_of_work
from .rank_groups import host_of_source

STAMPED = RankClock(0, 0)
MAX_FILES = 16
"""The most files that are named below a table; those that the others wait for most come first."""


@dataclass(frozen=True)
class RankDevices:
    """The sums over one rank's devices, ns; None where it shows none."""

    kernels: int = 0
    kernel_time_ns: int | None = None
    busy_ns: int | None = None
    compute_ns: int | None = None
    comm_ns: int | None = None
    memory_ns: int | None = None

    @property
    def idle_ns(self) -> int | None:
        if self.kernel_time_ns is None or self.busy_ns is None:
            return None
        return self.kernel_time_ns - self.busy_ns

    @classmethod
    def of(cls, work: Frame) -> RankDevices:
        if not len(work):
            return cls()
        table = device_table(work)
        keys = ("kernel_time_ns", "busy_ns", "compute_ns", "comm_ns", "memory_ns")
        sums = (sum_of(table.numbers(key)) for key in keys)
        return cls(sum(map(_kernels, work.by("source"))), *sums)


@dataclass(frozen=True, eq=False, kw_only=True)
class RankTimes(RankDevices):
    """What one rank did in a scope, ns: by itself, then held against the others.

    `waited_ns` is the time it spent in collectives before the last rank came, `kept_waiting_ns` that of all
    others in those it came to last, which are `last` of `collectives`.
    """

    source: int
    rank: int
    title: str
    host: str
    path: str
    clock: RankClock
    own_steps: Steps | None  # in trace time
    step_of_collective: I64 | None = None
    """Of each of its collectives, as the Skew orders them, the place of its step or -1; None: by start."""
    collectives: int = 0
    last: int = 0
    waited_ns: int = 0
    kept_waiting_ns: int = 0
    longest_wait: int = -1  # the position of the collective in which it waited longest, -1 for none

    @cached_property
    def walls(self) -> I64:
        steps = self.own_steps
        return np.empty(0, np.int64) if steps is None else steps.ends - steps.starts

    @property
    def steps(self) -> int:
        return len(self.walls)

    @property
    def step_ns(self) -> int | None:
        return int(np.median(self.walls)) if len(self.walls) else None

    @property
    def position(self) -> int:
        """Where it waited longest, else its first step; -1 for neither."""
        if self.longest_wait >= 0 or self.own_steps is None or not len(self.own_steps):
            return self.longest_wait
        return int(self.own_steps.positions[0])

    def compared_by(self, waiting: Skew) -> RankTimes:
        """Return the rank held against those with which it shares collectives."""
        column = waiting.columns.get(self.source)
        if column is None:
            return self
        return replace(
            self,
            collectives=len(waiting.who.of_rank(column)),
            last=int(waiting.came_last[column]),
            waited_ns=waiting.waiting(column).length,
            kept_waiting_ns=int(waiting.caused[column]),
            longest_wait=waiting.longest_wait(column),
        )


class RankInStep(NamedTuple):
    """One rank in one step; `turn` tells steps of one label apart, from 1 on. A rank's own time is its wall
    time without its waiting in collectives.
    """

    source: int
    label: str
    turn: int
    wall_ns: int
    own_ns: int
    waited_ns: int
    kept_waiting_ns: int  # by its coming last to collectives that the step launched
    position: int


Attended: TypeAlias = Callable[[], tuple[Skew, MessagesOf]]
"""What is asked when single collectives are: when which rank was in which, and what it moved."""
PartColumns: TypeAlias = Callable[[Skew], Mapping[str, Values]]
"""Collectives -> columns of what they consist of and cost."""


def no_parts(skew: Skew) -> Mapping[str, Values]:
    """Return the columns of collectives of which only summaries are there."""
    texts: Mapping[str, Values] = {key: [""] * len(skew) for key in ("algorithm", "peers")}
    numbers = ("steps", "enqueue_ns", "host_wait_ns", "exposed_ns", "exposed_share")
    return {**texts, **{key: [None] * len(skew) for key in numbers}}


@dataclass(frozen=True)
class Ranks:
    """The ranks of a scope, their collectives and steps, and how their clocks were set."""

    scope: str
    ranks: tuple[RankTimes, ...]
    skew: Skew
    in_steps: tuple[RankInStep, ...]
    steps: tuple[Sequence[RankInStep], ...]  # those that several ranks have: each on all of them
    missing: tuple[int, ...]
    alignment: str
    attended: Attended  # all collectives, those of one rank too
    parts: PartColumns = no_parts
    in_one_file: bool = False  # sources are then numbers of its processes
    numbered: bool = False  # no file says its rank: they are counted

    def file_of(self, source: int) -> int:
        """Return the file in which the slices of a rank are."""
        return 0 if self.in_one_file else source

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes below the tables: how clocks were set, which ranks are missing, which files there are."""
        notes = notes_on_ranks(self.alignment, self.missing, len(self.ranks), self.skew)
        if not self.numbered:
            return notes
        said = [
            f"rank {one.rank} is {one.title if self.in_one_file else Path(one.path).name}"
            for one in self.worst_first[:MAX_FILES]
        ]
        more = ["…"] if len(self.ranks) > MAX_FILES else []
        why = "the file does not say which rank a process is, so they are counted:"
        if not self.in_one_file:
            why = "no file says its rank, so they are counted by host and pid:"
        return (*notes, why, *said, *more)

    @property
    def worst_first(self) -> tuple[RankTimes, ...]:
        """The ranks, first the one that the others wait for most."""
        return tuple(sorted(self.ranks, key=lambda rank: -rank.kept_waiting_ns))

    def number(self, source: int) -> int:
        return self._numbers[source]

    @cached_property
    def _numbers(self) -> Mapping[int, int]:
        return {rank.source: rank.rank for rank in self.ranks}


def ranks(scope: Scope) -> Ranks:
    """Return what each rank of a scope did; a trace without ranks counts its files."""
    trace = scope.trace
    parts = parts_in_one_file(scope)
    if len(parts) > 1:
        return _ranks_in_one_file(scope, parts)
    own = trace.alignment.ranks
    files = range(len(trace.members) or len(trace.indexes))
    sources = own or tuple(at for at in files if trace.rank(at) is not None) or tuple(files)
    clocks = dict(zip(own, trace.alignment.rank_clocks))
    waiting = skew(scope)
    work = timed_work(scope)
    of_source = {part.source_number: part for part in work.by("source")}
    facts = []
    for source in sources:
        steps = _steps(scope, source)
        member = trace.members[source] if source < len(trace.members) else None
        rank = trace.rank(source)
        facts.append(
            RankTimes(
                source=source,
                rank=source if rank is None else rank,
                title=member.title if member is not None else str(source),
                host=host_of_source(trace, source),
                path=str(trace.sources[source].path),
                clock=clocks.get(source, STAMPED),
                own_steps=steps,
                **vars(RankDevices.of(of_source.get(source, work[:0]))),
                step_of_collective=None if steps is None else _steps_by_launch(scope, waiting, steps),
            )
        )
    members = tuple(member for member in trace.members if member.rank is not None)
    missing = Capture("", members).missing if len(members) > 1 else ()
    result = compared_ranks(
        scope.text,
        facts,
        waiting,
        missing,
        trace.alignment.text,
        lambda: (attended(scope, parts), partial(messages_of, trace)),
    )

    def compute(source: int) -> Intervals:
        part = of_source.get(source)
        return EMPTY if part is None else part.union(part.is_type("compute"))

    def parts_of_source(source: int, positions: I64) -> Parts:
        return collective_parts(trace.indexes[source], positions)

    numbered = any(member.numbered for member in members)
    return replace(
        result, numbered=numbered, parts=partial(part_columns, parts=parts_of_source, compute=compute)
    )


def _ranks_in_one_file(scope: Scope, parts: Sequence[RankPart]) -> Ranks:
    """Return what each rank did of a file whose processes are ranks: they share a clock, except in
    a job trace. Where the file does not say which, they are counted.
    """
    trace, steps = scope.trace, _steps(scope, 0)
    pids = {process.number: process.pid for process in trace.processes}
    clocks = dict(zip(trace.alignment.pids, trace.alignment.rank_clocks))
    ranks_said = ranks_of_processes(trace)
    facts = [
        RankTimes(
            source=process,
            rank=ranks_said.get(process, number),
            title=part.title,
            host=host_of_source(trace, 0),
            path=str(trace.sources[0].path),
            clock=clocks.get(pids[process], STAMPED),
            own_steps=None if steps is None else steps.take(np.flatnonzero(steps.processes == process)),
            **vars(RankDevices.of(timed_work(part.scope))),
        )
        for number, part in enumerate(parts)
        if (process := part.process) is not None
    ]
    waiting = skew_of_parts(scope, parts)
    result = compared_ranks(
        scope.text,
        facts,
        waiting,
        (),
        trace.alignment.text,
        lambda: (attended(scope, parts), lambda _, positions: messages_of(trace, 0, positions)),
    )
    scopes = {part.process: part.scope for part in parts}

    def compute(process: int) -> Intervals:
        work = timed_work(scopes[process])
        return work.union(work.is_type("compute"))

    def parts_of_process(process: int, positions: I64) -> Parts:
        return collective_parts(trace.indexes[0], positions, process)

    parted = partial(part_columns, parts=parts_of_process, compute=compute)
    return replace(result, in_one_file=True, numbered=not ranks_said, parts=parted)


def compared_ranks(
    scope: str,
    facts: Sequence[RankTimes],
    waiting: Skew,
    missing: tuple[int, ...],
    alignment: str,
    everything: Attended,
) -> Ranks:
    """Return ranks held against each other by the collectives that they share."""
    rows = tuple(fact.compared_by(waiting) for fact in facts)
    in_steps = tuple(row for fact in facts for row in _in_steps(fact, waiting))
    shared = _shared_steps(in_steps)
    return Ranks(scope, rows, waiting, in_steps, shared, missing, alignment, everything)


def _kernels(work: Frame) -> int:
    if is_flex(work.index):  # which has no categories
        return int(np.count_nonzero(~work.is_type("memory")))
    return int(np.count_nonzero(category_mask(work.index, KERNEL_CATEGORIES)[work.category]))


def _steps(scope: Scope, source: int) -> Steps | None:
    """Return a source's steps that lie in the scope's range wholly."""
    steps = find_steps(scope.trace, source, scope.clocks, scope.steps or None)
    return None if steps is None else steps.take(steps.within(scope.range))


def _steps_by_launch(scope: Scope, waiting: Skew, steps: Steps) -> I64 | None:
    """Return the step that launched each of a rank's collectives, in the order of the Skew; -1 for none."""
    column = waiting.columns.get(steps.source)
    if column is None:
        return None
    positions = waiting.positions[waiting.who.of_rank(column)]
    order = np.argsort(positions, kind="stable")
    held = np.empty(len(positions), np.int64)
    held[order] = steps_of_work(scope, steps, positions[order]).steps
    return held


def _in_steps(fact: RankTimes, waiting: Skew) -> list[RankInStep]:
    """Return a rank step by step: what it waits, and how long others wait for it in collectives."""
    steps, column = fact.own_steps, waiting.columns.get(fact.source)
    if steps is None:
        return []
    waited, caused = np.zeros(len(steps), np.int64), np.zeros(len(steps), np.int64)
    if column is not None:
        waited = waiting.waiting(column).covered(steps.starts, steps.ends)
        own = waiting.who.of_rank(column)
        held = fact.step_of_collective
        if held is None:
            held = steps_at_times(steps, waiting.starts[own], np.full(len(own), -1, np.int64))
        collective = waiting.who.collective[own]
        guilty = (held >= 0) & waiting.late[collective] & (waiting.last[collective] == column)
        step_of = np.full(len(waiting), -1, np.int64)
        step_of[collective[guilty]] = held[guilty]
        caused = waiting.waited_by(step_of, len(steps))
    turns: Counter[str] = Counter()
    rows = []
    columns = zip(*(values.tolist() for values in (fact.walls, waited, caused, steps.positions)))
    for label, (wall, wait, cost, position) in zip(steps.labels, columns):
        turns[label] += 1
        rows.append(RankInStep(fact.source, label, turns[label], wall, wall - wait, wait, cost, position))
    return rows


def _shared_steps(rows: Sequence[RankInStep]) -> tuple[Sequence[RankInStep], ...]:
    """Return the steps that at least two ranks have: the k-th of a label is the same step on each."""
    by_step: dict[tuple[str, int], list[RankInStep]] = {}
    for row in rows:
        by_step.setdefault((row.label, row.turn), []).append(row)
    return tuple(alike for alike in by_step.values() if len(alike) > 1)
