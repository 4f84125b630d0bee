"""The ranks of a source: one, or several whose files were merged into it.

A profiler writes the operators and calls of one process, so where several processes have some, or mark steps,
each of them is a rank. A rank has the slices of its own process and those that belong to no rank: threads of
other processes, and work whose launch is not known on a device for which no launch is known at all.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

import numpy as np

from ..base.arrays import I64, AnyArray
from ..base.kineto import OPS, RUNTIME
from ..index.store import Index
from ..query.titles import plain
from ..trace.devices import devices, lane_categories, ranks_of_processes
from .attribution import owners_of_work
from .frame_columns import work_of
from .op_events import HOST
from .scope import Scope, Where
from .step_choice import Steps, find_steps


@dataclass(frozen=True)
class RankPart:
    """One rank: the slices of a scope; `process` is the number of its process, None: the whole source."""

    scope: Scope
    process: int | None = None
    title: str = ""  # "rank 3", "process 4711"; empty for a whole source


def parts_of(scope: Scope, steps: Steps | None, ranks: Mapping[int, int]) -> tuple[RankPart, ...]:
    """Return the ranks of a scope of one source, itself where it is one; `ranks` are those of its processes,
    where the file tells them.
    """
    trace, source = scope.trace, scope.source or 0
    marking = set() if steps is None else set(steps.processes.tolist()) & _processes_holding(scope, HOST)
    accelerators = {device.process for device in devices(trace) if device.source == source}
    calling = _processes_holding(scope, RUNTIME) - accelerators  # those may hold queues of calls, too
    processes = sorted(_processes_holding(scope, OPS) | calling | marking | set(ranks))
    if len(processes) < 2:
        return (RankPart(scope),)
    work = work_of(replace(scope, range=None, where=None, lanes=None, work=None))
    positions = np.unique(work.position)
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
