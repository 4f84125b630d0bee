"""How long a step takes: as long as the host's mark of it, or as its device needs where the host runs ahead.

A host that only enqueues is done with a step before the device has begun it. Its mark then says how long
enqueuing takes, and the next step's work waits behind that of this one:

    host    |1|2|3|                         marks of 2 ms
    device    |-----1-----|-----2-----|     work of 50 ms a step

The *cadence* of a step goes from the start of its own work on the device to that of the next step's, of the
last one to the end of its work: 50 ms. The *lag* of a step goes from the start of its mark to that of its
work: 0, 48, 96 ms. Cadence and marks agree where the host waits for the device in each step. They part where
the lag reaches a step's length, or grows from step to step; the host runs ahead there, and the cadence is the
step's length.

Work counts for the step that launched it, whatever a scope's filter, and of all streams that one counts which
computes most: a copy that runs early on a stream of its own tells nothing of when a step begins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..base.arrays import I64, AnyArray
from ..query.groups import Groups
from ..query.window import FAR
from .attribution import steps_of_work
from .frame import Frame
from .frame_columns import work_of
from .scope import Scope
from .step_choice import Steps

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


def step_lengths(scope: Scope, steps: Steps) -> StepLengths:
    """Return the lengths of the steps of a source, each process by itself.

    Counted by window (as HTA does), a step is as long as its mark.
    """
    marks = steps.ends - steps.starts
    cadence, ahead = np.full(len(steps), np.nan), np.zeros(len(steps))
    if scope.attribute == "launch" and len(steps) > 1:
        work = _work_of_steps(scope, steps)
        for process in np.unique(steps.processes).tolist():
            rows = np.flatnonzero(steps.processes == process)
            edges = _edges(work, rows, len(steps))
            if edges is None:
                continue
            begins, end = edges
            lag = begins - steps.starts[rows]
            if _is_far(scope, lag):
                continue
            cadence[rows] = own = np.diff(np.append(begins, end))
            if _runs_ahead(lag, steps.starts[rows], marks[rows], own):
                ahead[rows] = lag.max() / max(float(np.median(own)), 1.0)
    length = marks.copy()
    length[ahead > 0] = cadence[ahead > 0].astype(np.int64)
    return StepLengths(length, cadence, ahead)


def _work_of_steps(scope: Scope, steps: Steps) -> Frame:
    """Return the device work that the steps of a source launched, with the place of its step."""
    whole = work_of(
        replace(scope, range=None, where=None, lanes=None, work=None, source=steps.source, label="")
    )
    timed = whole[np.flatnonzero(whole.is_timed)]
    work = timed[np.argsort(timed.position, kind="stable")]
    work = work.plus(step=steps_of_work(scope, steps, work.position).steps)
    return work[np.flatnonzero(work.step >= 0)]


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


def _is_far(scope: Scope, lag: AnyArray) -> bool:
    """Tell whether work is absurdly far from its steps, as where the device's clock is another."""
    low, high = scope.trace.opening_span
    return bool((np.abs(lag) > FAR * max(high - low, 1)).any())


def _runs_ahead(lag: I64, starts: I64, marks: I64, cadence: I64) -> bool:
    """Tell whether the host of a process runs ahead: its device needs longer for a step than it does, and the
    lag is longer than a step on the host (the mark, or the time to the next one), or grows from step to step.

    Work that waits once, for a module to be loaded say, lags too, but the device catches up: its cadence is
    shorter than the marks.
    """
    usual = max(float(np.median(marks)), float(np.median(np.diff(starts))))
    if float(np.median(cadence)) <= float(np.median(marks)):
        return False
    growth = np.diff(lag)
    grows = len(lag) >= MIN_GROWING and np.count_nonzero(growth > 0) >= GROWING_STEPS * len(growth)
    is_long = float(np.median(lag[len(lag) // 2 :])) > usual
    return is_long or bool(grows and float(growth.mean()) > MIN_GROWTH * usual)
