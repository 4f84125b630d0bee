"""To which step device work belongs: that of the call that launched it.

A device runs behind the host: by the host's clock its work falls into a later step, or after the last one. So
a piece of device work belongs, by the first of these rules that tells:

1. *launch*: to the step in which its launch begins, among the steps of the launching process (of all, where
   that process marks none);
2. *annotation*: without a known launch, to the step whose name an annotation on its own stream spans
   (`gpu_user_annotation`);
3. *start*: to the step in which it begins itself (of its own process, where that marks steps).

What none tells belongs to no step. Counts, times and bytes over all steps and what belongs to none add up to
the whole exactly; busy times (unions) need not, as the work of two steps may overlap.

TensorBoard instead lengthens a step to the end of what it launched, HTA cuts device work at the host's
window; the latter is the second view here (`by window`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import I64, U32, AnyArray
from ..base.errors import UsageError
from ..base.intervals import merge
from ..base.kineto import DEVICE_ANNOTATION
from ..index.format import NONE
from ..index.store import Index
from ..query.lookup import lanes_of, processes_of
from .groups import category_mask
from .host import trace_starts
from .schema import Column
from .scope import Scope, StepWork
from .step_choice import Steps
from .step_spans import StepSpans, step_spans
from .table import Table, concat
from .work import Work, work_of

if TYPE_CHECKING:
    from ..trace import Trace

STEP = Column("step", "Step", "text")


class StepRule(IntEnum):
    """Which rule assigned a piece of device work to its step (see the top of this file)."""

    NONE = 0
    LAUNCH = 1
    ANNOTATION = 2
    START = 3


@dataclass(frozen=True, eq=False)
class StepsOfWork:
    """The step of each piece of device work, columns of equal length."""

    positions: U32
    steps: I64  # places in the Steps; -1: none
    rules: AnyArray  # u1, StepRule


def steps_of_work(scope: Scope, steps: Steps, positions: AnyArray) -> StepsOfWork:
    """Return the step of each of these slices of the steps' source, positions ascending.

    Slices are taken for device work; launches begin, and windows lie, in trace time under the scope's clocks.
    """
    positions = np.asarray(positions, np.uint32)
    index = scope.trace.indexes[steps.source]
    result = np.full(len(positions), -1, np.int64)
    rules = np.zeros(len(positions), np.uint8)
    if not len(positions) or not len(steps):
        return StepsOfWork(positions, result, rules)

    launch = scope.trace.launches(steps.source).launches_at(positions)
    launched = np.flatnonzero(launch != NONE)
    calls = launch[launched]
    begins = trace_starts(scope, steps.source, calls)
    result[launched] = steps_at_times(steps, begins, processes_of(index, calls))
    rules[launched] = np.where(result[launched] >= 0, StepRule.LAUNCH, StepRule.NONE)

    alone = np.flatnonzero(launch == NONE)
    if len(alone):
        by_annotation = _annotated(scope, index, steps, positions[alone])
        begins = trace_starts(scope, steps.source, positions[alone])
        by_start = steps_at_times(steps, begins, processes_of(index, positions[alone]))
        result[alone] = np.where(by_annotation >= 0, by_annotation, by_start)
        rules[alone[by_start >= 0]] = StepRule.START
        rules[alone[by_annotation >= 0]] = StepRule.ANNOTATION
    return StepsOfWork(positions, result, rules)


@dataclass(frozen=True)
class WorkBySteps:
    """All device work of a trace by the steps of all its sources."""

    work: Mapping[int, StepsOfWork]  # by source; its steps are places in the StepSpans

    def of_step(self, at: int) -> StepWork:
        """Return the work of one step, as a scope takes it."""
        return StepWork(
            {source: one.positions[one.steps == at] for source, one in self.work.items()},
            {source: one.positions for source, one in self.work.items()},
        )

    def steps_at(self, source: int, positions: AnyArray) -> I64:
        """Return the place of the step of each slice of a source, positions ascending; -1 for none."""
        if source not in self.work:
            return np.full(len(positions), -1, np.int64)
        one = self.work[source]
        at = np.minimum(np.searchsorted(one.positions, positions), max(0, len(one.positions) - 1))
        return np.where(one.positions[at] == positions, one.steps[at], -1)


def work_by_steps(scope: Scope, spans: StepSpans) -> WorkBySteps:
    """Return the step of all device work of a trace, whatever the scope's range and filter."""
    works = work_of(replace(scope, range=None, where=None, lanes=None, work=None))
    result = {}
    for source in range(len(scope.trace.indexes)):
        device = [work.positions for work in works if work.device.source == source]
        positions = np.unique(np.concatenate([scope.trace.launches(source).kernels, *device]))
        if source not in spans.of_source:
            none, rules = np.full(len(positions), -1, np.int64), np.zeros(len(positions), np.uint8)
            result[source] = StepsOfWork(positions, none, rules)
            continue
        steps, rows = spans.of_source[source]
        one = steps_of_work(scope, steps, positions)
        at = np.where(one.steps >= 0, rows[np.maximum(one.steps, 0)], -1)
        result[source] = replace(one, steps=at)
    return WorkBySteps(result)


def work_in_windows(work: Work, spans: StepSpans) -> tuple[Work, I64]:
    """Return the work of a device cut at the steps' windows, and the place of the step of each row.

    A piece has a row for each step that it reaches into, and one of step -1 for what lies in no window. A
    piece of no length counts where it stands, one that ends where a window begins does not; into a window of
    no length nothing reaches.
    """
    by_start = np.argsort(work.starts, kind="stable")
    starts, reach = work.starts[by_start], np.maximum.accumulate(work.ends[by_start])
    rows, held = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for at, (low, high) in enumerate(zip(spans.starts.tolist(), spans.ends.tolist())):
        # Before the first piece whose end or an earlier one's lies in the window nothing reaches into it.
        first, last = np.searchsorted(reach, low), np.searchsorted(starts, high)
        near = by_start[first:last]
        inside = near[((work.starts[near] >= low) | (work.ends[near] > low)) & (low < high)]
        rows.append(np.sort(inside))
        held.append(np.full(len(inside), at, np.int64))
    all_rows, numbers = np.concatenate(rows), np.concatenate(held)
    low, high = spans.starts[numbers], spans.ends[numbers]
    cut_starts, cut_ends = np.maximum(work.starts[all_rows], low), np.minimum(work.ends[all_rows], high)
    rest, is_outside = outside_windows(spans, work.starts, work.ends)
    outside = np.flatnonzero(is_outside)
    rows_of = np.concatenate([all_rows, outside])
    order = np.argsort(rows_of, kind="stable")  # positions ascend, as everywhere
    cut = replace(
        work.take(rows_of[order]),
        starts=np.concatenate([cut_starts, work.starts[outside]])[order],
        ends=np.concatenate([cut_ends, work.starts[outside] + rest[outside]])[order],
    )
    return cut, np.concatenate([numbers, np.full(len(outside), -1, np.int64)])[order]


def outside_windows(steps: Steps | StepSpans, starts: I64, ends: I64) -> tuple[I64, AnyArray]:
    """Return of each piece of work [start, end) how many ns lie in no step's window, and whether any part of
    it does; a piece of no length lies where it stands.
    """
    windows = merge(steps.starts, steps.ends)
    rest: I64 = ends - starts - windows.covered(starts, ends)
    window = np.searchsorted(windows.starts, starts, "right") - 1
    stands_inside = (window >= 0) & (starts < np.append(windows.ends, 0)[window])
    return rest, (rest > 0) | ((starts == ends) & ~stands_inside)


def scope_of_step(scope: Scope, spans: StepSpans, at: int, work: WorkBySteps | None = None) -> Scope:
    """Return a scope narrowed to one step: its window, and with `scope.attribute` "launch" the device work
    that it launched. `work` spares finding it for each step of several.
    """
    label = f"step {spans.labels[at]}"
    window = (int(spans.starts[at]), int(spans.ends[at]))
    narrowed = replace(scope, range=window, label=label, work=None)
    if scope.attribute == "window":
        return narrowed
    return replace(narrowed, work=(work or work_by_steps(scope, spans)).of_step(at))


def step_scopes(scope: Scope, steps: StepSpans, most: int | None = None) -> Iterator[tuple[str, Scope]]:
    """Yield title and scope of the steps that lie in a scope's range wholly, evenly spread if only `most` of
    them are wanted.
    """
    low, high = scope.range or (int(steps.starts.min()), int(steps.ends.max()))
    inside = np.flatnonzero((steps.starts >= low) & (steps.ends <= high))
    if most is not None and len(inside) > most:
        inside = inside[np.unique(np.linspace(0, len(inside) - 1, most).astype(np.int64))]
    work = work_by_steps(scope, steps) if scope.attribute == "launch" and len(inside) else None
    for at in inside.tolist():
        yield steps.titles[at], scope_of_step(scope, steps, at, work)


def by_step(scope: Scope, make: Callable[[Scope], Table]) -> Table:
    """Return the tables of all steps that lie in the scope's range wholly, one below the other, with the step
    as first column: each as `make` returns it for that step alone. UsageError where there are no steps.
    """
    steps = step_spans(scope.trace, scope.clocks, scope.steps or None, scope.source)
    if steps is None:
        raise UsageError("this trace has no steps, and nothing in it repeats")
    tables = [(title, make(step)) for title, step in step_scopes(scope, steps)]
    if not tables:
        raise UsageError(f"no step lies wholly in the range; there are {len(steps):,}, {steps.choice}")
    table = concat([each for _, each in tables], STEP, [title for title, _ in tables])
    notes = (f"steps are {steps.choice}: {steps.reason}", *table.notes)
    return replace(table, title=f"{table.title} by step", scope=scope.text, notes=notes)


def owners_of_work(trace: Trace, source: int, positions: AnyArray, processes: I64) -> I64:
    """Return which of some processes launched each piece of device work, else launches most of what its
    device does, else holds it; -1 where that is none of them. Positions ascend.
    """
    index = trace.indexes[source]
    calls = trace.launches(source).calls_of(positions)
    devices = processes_of(index, positions)
    owners = np.full(len(positions), -1, np.int64)
    owners[calls >= 0] = processes_of(index, calls[calls >= 0])
    for device in np.unique(devices[owners < 0]).tolist():
        known = owners[(devices == device) & (owners >= 0)]
        owner = int(np.bincount(known).argmax()) if len(known) else device
        owners[(devices == device) & (owners < 0)] = owner
    return np.where(np.isin(owners, processes), owners, -1)


def steps_at_times(steps: Steps, times: I64, processes: I64) -> I64:
    """Return the place of the step that holds each time, -1 for none; the latest begun where several do.

    Only the steps of the process given for each count, where that has any.
    """
    result = np.full(len(times), -1, np.int64)
    own = np.zeros(len(times), np.bool_)
    for process in np.unique(steps.processes).tolist():
        mine = processes == process
        own |= mine
        rows = np.flatnonzero(steps.processes == process)
        at = steps.take(rows).holding(times[mine])
        result[mine] = np.where(at >= 0, rows[at], -1)
    result[~own] = steps.holding(times[~own])
    return result


def _annotated(scope: Scope, index: Index, steps: Steps, positions: U32) -> I64:
    """Return the step that an annotation of its name spans on the lane of each slice, -1 for none."""
    names, categories = index.column("slices.name"), index.column("slices.category")
    spans = np.flatnonzero(category_mask(index, {DEVICE_ANNOTATION})[categories]).astype(np.uint32)
    result = np.full(len(positions), -1, np.int64)
    if not len(spans):
        return result
    step_of_name: dict[int, list[int]] = {}
    for row, name in enumerate(names[steps.positions].tolist()):
        step_of_name.setdefault(name, []).append(row)
    starts, lanes = trace_starts(scope, steps.source, positions), lanes_of(index, positions)
    span_starts, span_lanes = trace_starts(scope, steps.source, spans), lanes_of(index, spans)
    span_ends = span_starts + index.duration(spans)
    for lane in np.unique(span_lanes).tolist():
        here = np.flatnonzero(span_lanes == lane)
        here = here[np.argsort(span_starts[here], kind="stable")]
        # Where a name repeats, the k-th annotation on a lane is that of the k-th step.
        turns: dict[int, int] = {}
        marks, rows = [], []
        for number in here.tolist():
            name = int(names[spans[number]])
            if name in step_of_name:
                turn = turns.get(name, 0)
                turns[name] = turn + 1
                marks.append(number)
                rows.append(step_of_name[name][min(turn, len(step_of_name[name]) - 1)])
        mine = np.flatnonzero(lanes == lane)
        if not marks or not len(mine):
            continue
        at = np.searchsorted(span_starts[marks], starts[mine], "right") - 1
        inside = (at >= 0) & (starts[mine] < span_ends[marks][np.maximum(at, 0)])
        result[mine[inside]] = np.array(rows, np.int64)[at[inside]]
    return result
