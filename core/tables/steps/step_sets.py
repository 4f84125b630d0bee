"""The times in which host and device are busy, by kind and role: of a source, or of one of its processes."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

import numpy as np

from ...base.arrays import I64, AnyArray, Intervals, distinct, merge
from ...base.errors import UnreadableError
from ...base.kineto import KERNEL_CATEGORIES, NOTED_COLLECTIVES, OPS, RUNTIME
from ...index.flex import host_calls, is_flex
from ...index.format import NONE
from ...query.lookup import category_mask, processes_of, promoted_of, starts_of
from ...query.steps import STEP_NAME
from ...trace.cycle_stamps import preparing_slices
from ...trace.step_choice import Steps
from ..frame.frame import Frame
from ..frame.frame_columns import work_of
from ..frame.scope import Scope
from .attribution import StepsOfWork, owners_of_work, steps_of_work

ROLES = ("Kernel", "Memcpy", "Memset", "Communication", "Runtime", "DataLoader", "CpuOp")
"""TensorBoard's categories, in this order: each gets the part of a step that those before it left. The rest
is Other.
"""
LOADERS = "enumerate(DataLoader)"


class StepSets:
    """The times in which host and device of one source are busy, by TensorBoard's role; of one of its
    processes with the `work` and the slices (a mask of all of the source) that are its own.
    """

    def __init__(
        self, scope: Scope, chosen: Steps, work: Frame | None = None, own: AnyArray | None = None
    ) -> None:
        self.scope, self.chosen = scope, chosen
        self.index, self.offsets = scope.trace.indexes[chosen.source], scope.lane_offsets(chosen.source)
        self.counted = _counted_slices(scope, chosen.source)
        if own is not None:
            self.counted = own if self.counted is None else self.counted & own
        if work is None:
            whole = work_of(replace(scope, range=None, source=chosen.source, work=None))
            work = whole[np.argsort(whole.position, kind="stable")]
        self.work, self.device = work, work.union()
        self.host, self.roles = self._host_and_roles()

    def _host_and_roles(self) -> tuple[Intervals, dict[str, Intervals]]:
        """Return the times in which the host is busy, and those of each of ROLES.

        As in TensorBoard, a kernel whose External id is that of a collective op is communication.
        """
        index = self.index
        ops = self.positions(OPS)
        # What marks a step is no op in it; profilers of 2021 write their steps as ops.
        ops = ops[~(self.starting(ops, (STEP_NAME,)) | np.isin(ops, self.chosen.positions))]
        notes = self.positions(frozenset({"user_annotation"}))
        calls = self.positions(RUNTIME)
        collective, loader = (self.starting(ops, prefix) for prefix in (NOTED_COLLECTIVES, (LOADERS,)))
        noted = notes[self.starting(notes, NOTED_COLLECTIVES)]
        ids = promoted_of(index, "external_id", np.concatenate([ops[collective], noted]))
        work = self.work
        joint = np.isin(promoted_of(index, "external_id", work.position), ids[ids != 0])
        kinds = (KERNEL_CATEGORIES, ("gpu_memcpy", "Memcpy"), ("gpu_memset", "Memset"))
        is_kernel, copies, sets = (category_mask(index, kind)[work.category] for kind in kinds)
        if is_flex(index):  # which has no categories
            is_kernel = work.is_type("compute", "communication")
            joint, copies = work.is_type("communication"), work.is_type("memory")
            called = np.isin(index.column("slices.name"), host_calls(index))
            with suppress(UnreadableError):  # the file has gone: nothing is known of its stamps
                called[preparing_slices(index)] = False
            calls = self.left(np.flatnonzero(called).astype(np.int64))
        collectives = self.merged(ops[collective])
        of_host = {
            "Runtime": self.merged(calls),
            "DataLoader": self.merged(ops[loader]),
            "CpuOp": self.merged(ops[~collective & ~loader]),
        }
        return collectives.union(*of_host.values()), {
            "Kernel": work.union(is_kernel & ~joint),
            "Memcpy": work.union(copies),
            "Memset": work.union(sets),
            "Communication": work.union(is_kernel & joint).union(collectives, self.merged(noted)),
            **of_host,
        }

    @cached_property
    def owners(self) -> I64:
        """The process with steps to which each piece of device work belongs, -1 for none."""
        processes = distinct(self.chosen.processes)
        return owners_of_work(self.scope.trace, self.chosen.source, self.work.position, processes)

    @property
    def by_process(self) -> tuple[tuple[I64, StepSets], ...]:
        """For each process: the rows of its steps, the sets of its slices and of those of no process."""
        return self._several or ((np.arange(len(self.chosen)), self),)

    @cached_property
    def _several(self) -> tuple[tuple[I64, StepSets], ...]:
        """`by_process` of several processes: nothing that is kept here holds these sets themselves."""
        chosen = self.chosen
        processes = distinct(chosen.processes)
        if len(processes) < 2:
            return ()
        everything = processes_of(self.index, np.arange(self.index.length("slices.start")))
        parts = []
        for process in processes.tolist():
            rows = np.flatnonzero(chosen.processes == process)
            work = self.work[(self.owners == process) | (self.owners < 0)]
            own = ~np.isin(everything, processes[processes != process])
            parts.append((rows, StepSets(self.scope, chosen.take(rows), work, own)))
        return tuple(parts)

    @property
    def owned(self) -> Iterator[tuple[StepSets, AnyArray]]:
        """Yield the sets of each process with a mask of the device work that is its alone; last, the sets of
        the whole source with a mask of the work that no process owns.
        """
        parts = self.by_process
        if len(parts) < 2:
            yield self, np.ones(len(self.work), np.bool_)
            return
        for _, part in parts:
            yield part, self.owners == int(part.chosen.processes[0])
        yield self, self.owners < 0

    @cached_property
    def steps_of_work(self) -> StepsOfWork:
        return steps_of_work(self.scope, self.chosen, self.work.position)

    @cached_property
    def stepped(self) -> Frame:
        """The device work, with the place of the step that launched each piece."""
        return self.work.plus(step=self.steps_of_work.steps)

    def positions(self, categories: Container[str]) -> I64:
        mask = category_mask(self.index, categories)
        return self.left(np.flatnonzero(mask[self.index.column("slices.category")]).astype(np.int64))

    def left(self, positions: I64) -> I64:
        """Return those of the positions that the scope's lanes and filter leave."""
        return positions if self.counted is None else positions[self.counted[positions]]

    def starting(self, positions: I64, prefixes: tuple[str, ...]) -> AnyArray:
        """Return which of these slices have a name that starts with one of the prefixes."""
        numbers = [n for prefix in prefixes for n in self.index.string_numbers(prefix, prefix=True)]
        return np.isin(self.index.column("slices.name")[positions], np.array(numbers, np.uint32))

    def times(self, positions: I64) -> tuple[I64, I64]:
        """Return (starts, ends) in trace time."""
        self.scope.check()
        start = starts_of(self.index, positions, self.offsets)
        return start, start + self.index.duration(positions)

    def merged(self, positions: I64) -> Intervals:
        """Return the time that these slices cover; those inside another of them need not be looked at."""
        member = np.zeros(self.index.length("slices.start"), np.bool_)
        member[positions] = True
        above = self.index.column("slices.parent")[positions]
        known = above != NONE
        inside = np.zeros(len(positions), np.bool_)
        inside[known] = member[above[known]]
        return merge(*self.times(positions[~inside]))


def _counted_slices(scope: Scope, source: int) -> AnyArray | None:
    """Return of each slice of a source whether the scope's lanes and filter leave it, None where all are."""
    if scope.lanes is None and scope.where is None:
        return None
    index = scope.trace.indexes[source]
    counted = np.zeros(index.length("slices.start"), np.bool_)
    for chunk in replace(scope, range=None, source=source, work=None).chunks():
        counted[chunk.positions] = True
    return counted
