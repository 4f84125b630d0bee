"""The times in which host and device are busy, by kind and role: of a source, or of one of its processes."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..base.arrays import I64, AnyArray
from ..base.intervals import Intervals, merge
from ..base.kineto import KERNEL_CATEGORIES, OPS, RUNTIME
from ..index.flex import host_calls, is_flex
from ..index.format import NONE, RowKind
from ..index.store import Index
from ..query.lookup import category_mask, lanes_of, promoted_of
from ..query.steps import STEP_NAME
from .attribution import StepsOfWork, owners_of_work, steps_of_work
from .devices import kernel_types
from .frame_columns import work_of
from .kinds import KERNEL_TYPES
from .scope import Scope
from .step_choice import Steps

ROLES = ("Kernel", "Memcpy", "Memset", "Communication", "Runtime", "DataLoader", "CpuOp")
"""TensorBoard's categories, in this order: each gets the part of a step that those before it left. The rest
is Other.
"""
COLLECTIVE_OPS = ("nccl:", "gloo:")
LOADERS = "enumerate(DataLoader)"
COMPUTE, COMMUNICATION, MEMORY = map(KERNEL_TYPES.index, ("compute", "communication", "memory"))


class Owned(NamedTuple):
    """The part of a source that belongs to one of its processes: the positions of device work, and for each
    slice of the source whether it may count.
    """

    work: I64
    slices: AnyArray


class StepSets:
    """The times in which host and device of one source are busy, by kind and by TensorBoard's role."""

    def __init__(self, scope: Scope, chosen: Steps, of_process: Owned | None = None) -> None:
        index = scope.trace.indexes[chosen.source]
        self.scope, self.chosen = scope, chosen
        self.index, self.check = index, scope.check
        self.offsets = scope.lane_offsets(chosen.source)
        self.counted = _counted_slices(scope, chosen.source)
        if of_process is None:
            whole = replace(scope, range=None, source=chosen.source, work=None)
            self.work = np.sort(work_of(whole).position.astype(np.int64))
        else:
            self.work = of_process.work
            counted = of_process.slices
            self.counted = counted if self.counted is None else self.counted & counted
        self.work_start, self.work_end = self.times(self.work)
        names = index.column("slices.name")[self.work]
        categories = index.column("slices.category")[self.work]
        self.kind = kind = kernel_types(index, names, categories)
        self.is_kernel = (kind == COMPUTE) | (kind == COMMUNICATION)
        self.device = merge(self.work_start, self.work_end)
        self.kinds: dict[str, Intervals] = {
            name: merge(self.work_start[kind == number], self.work_end[kind == number])
            for number, name in enumerate(KERNEL_TYPES)
        }
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
        collective, loader = (self.starting(ops, prefix) for prefix in (COLLECTIVE_OPS, (LOADERS,)))
        noted = notes[self.starting(notes, COLLECTIVE_OPS)]
        ids = promoted_of(index, "external_id", np.concatenate([ops[collective], noted]))
        own = promoted_of(index, "external_id", self.work)
        joint = np.isin(own, ids[ids != 0])
        is_kernel = self.categorised(self.work, KERNEL_CATEGORIES)
        copies = self.categorised(self.work, frozenset({"gpu_memcpy", "Memcpy"}))
        sets = self.categorised(self.work, frozenset({"gpu_memset", "Memset"}))
        if is_flex(index):  # which has no categories
            is_kernel, joint, copies = self.is_kernel, self.kind == COMMUNICATION, self.kind == MEMORY
            called = np.isin(index.column("slices.name"), host_calls(index))
            calls = self.left(np.flatnonzero(called).astype(np.int64))
        return self.merged(np.concatenate([ops, calls])), {
            "Kernel": self.merged(self.work[is_kernel & ~joint]),
            "Memcpy": self.merged(self.work[copies]),
            "Memset": self.merged(self.work[sets]),
            "Communication": self.merged(
                np.concatenate([self.work[is_kernel & joint], ops[collective], noted])
            ),
            "Runtime": self.merged(calls),
            "DataLoader": self.merged(ops[loader]),
            "CpuOp": self.merged(ops[~collective & ~loader]),
        }

    @cached_property
    def owners(self) -> I64:
        """The process with steps to which each piece of device work belongs, -1 for none."""
        processes = np.unique(self.chosen.processes)
        return owners_of_work(self.scope.trace, self.chosen.source, self.work, processes)

    @cached_property
    def by_process(self) -> tuple[tuple[I64, StepSets], ...]:
        """For each process: the rows of its steps, and the sets of its own slices and of those that no
        process owns.
        """
        chosen = self.chosen
        processes = np.unique(chosen.processes)
        if len(processes) < 2:
            return ((np.arange(len(chosen)), self),)
        parts = []
        for process in processes.tolist():
            rows = np.flatnonzero(chosen.processes == process)
            owned = Owned(
                self.work[(self.owners == process) | (self.owners < 0)],
                _slices_of_processes(self.index, processes[processes != process]),
            )
            parts.append((rows, StepSets(self.scope, chosen.take(rows), owned)))
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
        """The step of all device work, by launch."""
        return steps_of_work(self.scope, self.chosen, self.work)

    def positions(self, categories: Container[str]) -> I64:
        """Return the positions of all slices of these categories."""
        mask = category_mask(self.index, categories)
        return self.left(np.flatnonzero(mask[self.index.column("slices.category")]).astype(np.int64))

    def left(self, positions: I64) -> I64:
        """Return those of the positions that the scope's lanes and filter leave."""
        return positions if self.counted is None else positions[self.counted[positions]]

    def categorised(self, positions: I64, categories: frozenset[str]) -> AnyArray:
        """Return which of these slices have one of the categories."""
        of_slices: AnyArray = self.index.column("slices.category")[positions]
        return category_mask(self.index, categories)[of_slices]

    def starting(self, positions: I64, prefixes: tuple[str, ...]) -> AnyArray:
        """Return which of these slices have a name that starts with one of the prefixes."""
        numbers = [n for prefix in prefixes for n in self.index.string_numbers(prefix, prefix=True)]
        return np.isin(self.index.column("slices.name")[positions], np.array(numbers, np.uint32))

    def times(self, positions: I64) -> tuple[I64, I64]:
        """Return (starts, ends) in trace time."""
        self.check()
        start: I64 = self.index.column("slices.start")[positions].astype(np.int64)
        if self.offsets.any():
            start += self.offsets[lanes_of(self.index, positions)]
        return start, start + self.index.duration(positions)

    def merged(self, positions: I64) -> Intervals:
        """Return the time that these slices cover; those inside another of them need not be looked at."""
        member = np.zeros(len(self.index.column("slices.start")), np.bool_)
        member[positions] = True
        above = self.index.column("slices.parent")[positions]
        known = above != NONE
        inside = np.zeros(len(positions), np.bool_)
        inside[known] = member[above[known]]
        return merge(*self.times(positions[~inside]))


def _slices_of_processes(index: Index, others: I64) -> AnyArray:
    """Return of each slice whether it is of none of these processes."""
    mask = np.ones(len(index.column("slices.start")), np.bool_)
    for row in index.rows[index.rows["kind"] == RowKind.SLICES]:
        if int(index.lanes["process"][int(row["lane"])]) in others:
            mask[int(row["first"]) : int(row["first"]) + int(row["count"])] = False
    return mask


def _counted_slices(scope: Scope, source: int) -> AnyArray | None:
    """Return of each slice of a source whether the scope's lanes and filter leave it, None where all are."""
    if scope.lanes is None and scope.where is None:
        return None
    index = scope.trace.indexes[source]
    counted = np.zeros(len(index.column("slices.start")), np.bool_)
    for chunk in replace(scope, range=None, source=source, work=None).chunks():
        counted[chunk.positions] = True
    return counted
