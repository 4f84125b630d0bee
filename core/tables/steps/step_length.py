"""How long a step takes: until its work is done, or as long as its device needs where the host runs ahead.

A step begins with its mark on the host and ends with it, or when the last work that it launched is done, but
not after the next step has begun: so marks that lie side by side are as long as they are, and one around a
call that only launches is as long as the work.

A host that enqueues step after step is done with one before the device has begun it:

    host    |1|2|3|                         marks of 2 ms
    device    |-----1-----|-----2-----|     work of 50 ms a step

The *cadence* of a step goes from the start of its own work on the device to that of the next step's, of the
last one to the end of its work (where the host waits for the device, to the end of the step): 50 ms. The
*lag* of a step goes from the start of its mark to that of its work: 0, 48, 96 ms. Cadence and marks agree
where the host waits for the device in each step. They part where the lag reaches a step's length, or grows
from step to step; the host runs ahead there, and the cadence is the step's length.

Work counts for the step that launched it, whatever a scope's filter. For the cadence that one of all streams
counts which computes most: a copy that runs early on a stream of its own tells nothing of when a step begins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...base.arrays import I64, AnyArray, distinct
from ...query.groups import Groups
from ...trace.step_choice import Steps
from ...trace.step_spans import StepSpans
from ..frame.frame import Frame
from ..frame.frame_columns import work_of
from ..frame.scope import Scope
from .attribution import steps_of_work

MIN_GROWING = 5
"""Steps from which on a lag that grows says something."""
GROWING_STEPS = 0.8
"""The share of steps whose lag must be longer than that of the step before, in a lag that grows."""
MIN_GROWTH = 0.05
"""By how much of a step's mark a growing lag is longer at each step, in the mean."""


@dataclass(frozen=True, eq=False)
class StepLengths:
    """How long each step of one source takes, ns."""

    length: I64
    cadence: AnyArray  # float; NaN where some step of the process has no work that could tell
    ahead: AnyArray  # float; by how many steps the host of the step's process runs ahead at most; 0: it waits


def step_lengths(scope: Scope, steps: Steps, stepped: Frame | None = None) -> StepLengths:
    """Return the lengths of the steps of a source, each process by itself; `stepped` is all device work of
    the source with the place of its step, where somebody has that.

    Counted by window (as HTA does), a step is as long as its mark.
    """
    marks = steps.ends - steps.starts
    length, cadence, ahead = marks.copy(), np.full(len(steps), np.nan), np.zeros(len(steps))
    if scope.attribute != "launch" or not len(steps):
        return StepLengths(length, cadence, ahead)
    work = _timed(_stepped(scope, steps) if stepped is None else stepped)
    done = Groups(work.step, len(steps)).most(work.end, np.iinfo(np.int64).min)
    for process in distinct(steps.processes).tolist():
        rows = np.flatnonzero(steps.processes == process)
        length[rows] = _until_done(steps.starts[rows], steps.ends[rows], done[rows])
        edges = _edges(work, rows, len(steps))
        if edges is None:
            continue
        begins, end = edges
        lag = begins - steps.starts[rows]
        cadence[rows] = own = np.diff(np.append(begins, end))
        if _runs_ahead(lag, steps.starts[rows], marks[rows], own):
            ahead[rows] = lag.max() / max(float(np.median(own)), 1.0)
            length[rows] = own
        else:
            cadence[rows[-1]] = length[rows[-1]]  # the next work would come after it, as after the others
    return StepLengths(length, cadence, ahead)


def _until_done(starts: I64, ends: I64, done: I64) -> I64:
    """Return the lengths of steps that end when their work is done (the least int64: they have none), but
    not after the next one's start; the last of several has as much room for that as the others in the median.
    """
    late = np.maximum(done, ends) - ends
    if len(starts) > 1:
        room = np.maximum(starts[1:] - ends[:-1], 0)
        late = np.minimum(late, np.append(room, round(float(np.median(room)))))
    return ends + late - starts


def _stepped(scope: Scope, steps: Steps) -> Frame:
    """Return all device work of the source of some steps, with the place of its step."""
    whole = work_of(
        replace(scope, range=None, where=None, lanes=None, work=None, source=steps.source, label="")
    )
    work = whole[np.argsort(whole.position, kind="stable")]
    return work.plus(step=steps_of_work(scope, steps, work.position).steps)


def _timed(work: Frame) -> Frame:
    """Return what steps launched of some work, without what has no usable times or is on another clock."""
    return work[np.flatnonzero((work.step >= 0) & work.is_timed & ~work.is_elsewhere)]


def _edges(work: Frame, rows: I64, count: int) -> tuple[I64, int] | None:
    """Return when the first work of each of the steps `rows` begins and the last of the last one ends, on the
    stream that computes most for them; None where a step has none there. `count` is the number of all steps.
    """
    own = work[np.flatnonzero(np.isin(work.step, rows))]
    if not len(own):
        return None
    streams = Groups(np.asarray(own.stream, np.int64), int(own.stream.max()) + 1)
    computing = streams.sums(np.where(own.is_type("compute"), own.dur, 0))
    busiest = int((computing if computing.any() else streams.sums(own.dur)).argmax())
    main = own[np.flatnonzero(own.stream == busiest)]
    groups = Groups(main.step, count)
    if not groups.counts[rows].all():
        return None
    ends = groups.most(main.end, np.iinfo(np.int64).min)
    return groups.least(main.start)[rows], int(ends[rows[-1]])


def _runs_ahead(lag: I64, starts: I64, marks: I64, cadence: I64) -> bool:
    """Tell whether the host of a process runs ahead: its device needs longer for a step than it does, and the
    lag is longer than a step on the host (the mark, or the time to the next one), or grows from step to step.

    Work that waits once, for a module to be loaded say, lags too, but the device catches up: its cadence is
    shorter than the marks.
    """
    if len(lag) < 2:
        return False
    usual = max(float(np.median(marks)), float(np.median(np.diff(starts))))
    if float(np.median(cadence)) <= float(np.median(marks)):
        return False
    growth = np.diff(lag)
    grows = len(lag) >= MIN_GROWING and np.count_nonzero(growth > 0) >= GROWING_STEPS * len(growth)
    is_long = float(np.median(lag[len(lag) // 2 :])) > usual
    return is_long or bool(grows and float(growth.mean()) > MIN_GROWTH * usual)


@dataclass(frozen=True, eq=False)
class SpanLengths:
    """How long each step of a trace takes, all its processes together, ns."""

    length: I64
    cadence: AnyArray  # float; NaN where that of some process is not known
    ahead: float  # by how many steps a host runs ahead at most


def span_lengths(scope: Scope, spans: StepSpans) -> SpanLengths:
    """Return the lengths of the steps of a trace: of each the longest that a process needs for it."""
    length, cadence, ahead = np.zeros(len(spans), np.int64), np.zeros(len(spans)), 0.0
    for steps, rows in spans.of_source.values():
        one = step_lengths(scope, steps)
        np.maximum.at(length, rows, one.length)
        with np.errstate(invalid="ignore"):
            np.maximum.at(cadence, rows, one.cadence)  # NaN where one is
        ahead = max(ahead, float(one.ahead.max(initial=0)))
    return SpanLengths(length, cadence, ahead)
