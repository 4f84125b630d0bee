"""To which step device work belongs: that of the call that launched it.

A device runs behind the host: by the host's clock its work falls into a later step, or after the last one. So
a piece of device work belongs, by the first of these rules that tells:

1. *launch*: to the step in which its launch begins, among the steps of the launching process (of all, where
   that process marks none);
2. *annotation*: without a known launch, to the step whose name an annotation on its own stream spans
   (`gpu_user_annotation`);
3. *start*: to the step in which it begins itself (of its own process, where that marks steps); unless it was
   launched before the recording began (`_launched_before`).

What none tells belongs to no step. Counts, times and bytes over all steps and what belongs to none add up to
the whole exactly; busy times (unions) need not, as the work of two steps may overlap.

TensorBoard instead lengthens a step to the end of what it launched, HTA cuts device work at the host's
window; the latter is the second view here (`by window`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...base.arrays import I64, U32, AnyArray, distinct, merge, places_in, run_starts
from ...base.cached_per_object import cached_per_object
from ...base.errors import UsageError
from ...base.kineto import DEVICE_ANNOTATION
from ...index.format import NONE
from ...index.store import Index
from ...query.groups import concatenated
from ...query.launches import launches_of
from ...query.lookup import category_mask, lanes_of, processes_of
from ...trace.step_choice import Steps
from ...trace.step_spans import StepSpans, step_spans
from ..frame.frame import Frame
from ..frame.frame_columns import NEVER, work_of
from ..frame.schema import Column
from ..frame.scope import Scope, StepWork
from ..frame.table import Table, concat

if TYPE_CHECKING:
    from ...trace import Trace

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
    begins = scope.starts(steps.source, calls)
    result[launched] = steps_at_times(steps, begins, processes_of(index, calls))
    rules[launched] = np.where(result[launched] >= 0, StepRule.LAUNCH, StepRule.NONE)

    alone = np.flatnonzero(launch == NONE)
    if len(alone):
        by_annotation = _annotated(scope, index, steps, positions[alone])
        begins = scope.starts(steps.source, positions[alone])
        by_start = steps_at_times(steps, begins, processes_of(index, positions[alone]))
        by_start[_launched_before(scope, steps, positions[alone], by_start)] = -1
        result[alone] = np.where(by_annotation >= 0, by_annotation, by_start)
        rules[alone[by_start >= 0]] = StepRule.START
        rules[alone[by_annotation >= 0]] = StepRule.ANNOTATION
    return StepsOfWork(positions, result, rules)


class _Firsts(NamedTuple):
    """The first launched work of each stream of a source, in the order of their lanes."""

    lanes: I64  # of the source
    work: I64  # positions
    calls: I64  # positions of what launched it
    names: I64  # of all launched work: numbers, ascending


@cached_per_object()
def _firsts_of(index: Index) -> _Firsts:
    launches = launches_of(index)
    rows = np.flatnonzero(launches.launch != NONE)
    work, calls = launches.kernels[rows].astype(np.int64), launches.launch[rows].astype(np.int64)
    lanes = lanes_of(index, work).astype(np.int64)
    order = np.lexsort((index.column("slices.start")[work], lanes))
    first = order[run_starts(lanes[order])] if len(order) else order
    return _Firsts(lanes[first], work[first], calls[first], distinct(index.column("slices.name")[work]))


def _launched_before(scope: Scope, steps: Steps, positions: U32, at: I64) -> AnyArray:
    """Tell which device work without a known launch was launched before the recording began: it stands before
    all launched work of its stream, begins in a step (`at`, its place) in which the first of that is launched
    or in a later one, and others of its name have launches.
    """
    # A stream runs its work in order: a, b, C, D of which the calls of C and D are in the file. Those of a
    # and b were made before that of C, which step 0 makes: so they are of no step, though step 0 lasts while
    # they run. Kernels whose calls are never recorded, as of a driver's, stay where they begin.
    index = scope.trace.indexes[steps.source]
    firsts, starts = _firsts_of(index), index.column("slices.start")
    of = places_in(firsts.lanes, lanes_of(index, positions).astype(np.int64))
    begins = np.append(starts[firsts.work], NEVER)[of]
    called = np.append(scope.starts(steps.source, firsts.calls), NEVER)[of]
    is_before = (of >= 0) & (starts[positions] < begins)
    is_before &= (at >= 0) & (np.append(steps.ends, NEVER)[at] > called)
    return np.asarray(is_before & np.isin(index.column("slices.name")[positions], firsts.names))


class WorkBySteps(NamedTuple):
    """All device work of a trace by the steps of all its sources."""

    spans: StepSpans
    work: Mapping[int, StepsOfWork]  # by source; its steps are places in the StepSpans

    def of_step(self, at: int) -> StepWork:
        return StepWork(
            {source: one.positions[one.steps == at] for source, one in self.work.items()},
            {source: one.positions for source, one in self.work.items()},
        )

    def steps_of(self, source: int, positions: AnyArray, others: I64 | int = -1) -> I64:
        """Return the place of each slice's step: of work by launch (-1: none), else `others`."""
        one = self.work.get(source)
        if one is None:
            return np.full(len(positions), others, np.int64)
        at = places_in(one.positions, positions)
        return np.where(at >= 0, np.append(one.steps, -1)[at], others)


def work_by_steps(scope: Scope, spans: StepSpans) -> WorkBySteps:
    """Return the step of all device work of a trace, whatever the scope's range and filter."""
    work = work_of(replace(scope, range=None, where=None, lanes=None, work=None))
    result = {}
    for source in range(len(scope.trace.indexes)):
        device = work.position[work.source == source]
        positions = distinct(np.concatenate([scope.trace.launches(source).kernels, device]))
        if source not in spans.of_source:
            none, rules = np.full(len(positions), -1, np.int64), np.zeros(len(positions), np.uint8)
            result[source] = StepsOfWork(positions, none, rules)
            continue
        steps, rows = spans.of_source[source]
        one = steps_of_work(scope, steps, positions)
        at = np.where(one.steps >= 0, rows[np.maximum(one.steps, 0)], -1)
        result[source] = replace(one, steps=at)
    return WorkBySteps(spans, result)


def with_steps(work: Frame) -> Frame:
    """Return the work with the place of each row's step by launch (by window: by start), -1 for none."""
    if work.steps is None:
        return work.plus(step=np.full(len(work), -1, np.int64))
    if work.scope.attribute == "window":
        return work.plus(step=work.steps.holding(work.start))
    steps_of = work_by_steps(work.scope, work.steps).steps_of
    return work.plus(step=work.from_parts(lambda part: steps_of(part.source_number, part.position)))


def work_in_windows(work: Frame, spans: Steps | StepSpans) -> Frame:
    """Return device work cut at the steps' windows, with the place of the step of each row.

    A piece has a row for each step that it reaches into, and one of step -1 for what lies in no window. A
    piece of no length counts where it stands, one that ends where a window begins does not; into a window of
    no length nothing reaches.
    """
    by_start = np.argsort(work.start, kind="stable")
    starts, reach = work.start[by_start], np.maximum.accumulate(work.end[by_start])
    rest, is_outside = outside_windows(spans, work.start, work.end)
    outside = np.flatnonzero(is_outside)
    rows, held = [], []
    for at, (low, high) in enumerate(zip(spans.starts.tolist(), spans.ends.tolist())):
        # Before the first piece whose end or an earlier one's lies in the window nothing reaches into it.
        first, last = np.searchsorted(reach, low), np.searchsorted(starts, high)
        near = by_start[first:last]
        inside = near[((work.start[near] >= low) | (work.end[near] > low)) & (low < high)]
        rows.append(np.sort(inside))
        held.append(np.full(len(inside), at, np.int64))
    at_row, steps = concatenated([*rows, outside]), concatenated([*held, np.full(len(outside), -1)])
    order = np.argsort(at_row, kind="stable")  # positions ascend, as everywhere
    at_row, steps = at_row[order], steps[order]
    ends = work.start[at_row] + rest[at_row]
    ends = np.where(steps < 0, ends, np.minimum(work.end[at_row], spans.ends[steps]))
    starts = np.where(steps < 0, work.start[at_row], np.maximum(work.start[at_row], spans.starts[steps]))
    return work.separate(at_row, start=starts, end=ends, step=steps)


def outside_windows(steps: Steps | StepSpans, starts: I64, ends: I64) -> tuple[I64, AnyArray]:
    """Return of each piece of work [start, end) how many ns lie in no step's window, and whether any part of
    it does; a piece of no length lies where it stands.
    """
    windows = merge(steps.starts, steps.ends)
    rest: I64 = ends - starts - windows.covered(starts, ends)
    window = np.searchsorted(windows.starts, starts, "right") - 1
    stands_inside = (window >= 0) & (starts < np.append(windows.ends, 0)[window])
    return rest, (rest > 0) | ((starts == ends) & ~stands_inside)


def steps_of_slices(scope: Scope) -> WorkBySteps | None:
    """Return what tells the steps of a trace's slices, None where it has none; by window, device work has
    none by its launch either.
    """
    spans = step_spans(scope.trace, scope.clocks, scope.steps or None)
    if spans is None or scope.attribute == "window":
        return None if spans is None else WorkBySteps(spans, {})
    return work_by_steps(replace(scope, range=None, where=None, lanes=None, source=None, work=None), spans)


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
    """Yield title and scope of the steps wholly in a scope's range, at most `most`, evenly spread."""
    low, high = scope.range or (int(steps.starts.min()), int(steps.ends.max()))
    inside = np.flatnonzero((steps.starts >= low) & (steps.ends <= high))
    if most is not None and len(inside) > most:
        inside = inside[distinct(np.linspace(0, len(inside) - 1, most).astype(np.int64))]
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
        raise UsageError(f"no step is wholly in the range; there are {len(steps):,}, {steps.choice}")
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
    for device in distinct(devices[owners < 0]).tolist():
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
    for process in distinct(steps.processes).tolist():
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
    starts, lanes = scope.starts(steps.source, positions), lanes_of(index, positions)
    span_starts, span_lanes = scope.starts(steps.source, spans), lanes_of(index, spans)
    span_ends = span_starts + index.duration(spans)
    for lane in distinct(span_lanes).tolist():
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
