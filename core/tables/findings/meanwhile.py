"""What the host does meanwhile: one activity at a time, of all its threads together, over the time looked at.

Activities, where several hold at once the first of them (`ACTIVITIES`):

- *unrecorded*: the records of the devices cannot be trusted, or the file does not hold the time
- *profiler*: the profiler itself is at work
- *compile*: a phase of the compiler, or what comes before a compiled kernel's first launch (`first_launches`)
- *loader*: the data loader, or what programs call to get the next input
- *allocation*: a thread takes memory from the driver, or gives it back
- *runtime*: a thread is in another call of the runtime that does not wait
- *operator*: a thread runs an operator, or pauses for no longer than is usual between its operators and calls
- *wait*: a thread waits for the device, and no other works
- *nothing*: none of all that: the host sleeps, or does what is not in the file

They divide the time: what rules claim of them never adds up to more than it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, TypeAlias

import numpy as np

from ...base.arrays import EMPTY, I64, U8, AnyArray, Bools, Intervals
from ..device.device_state import flattened
from ..frame.frame import Frame

Activity: TypeAlias = Literal[
    "unrecorded", "profiler", "compile", "loader", "allocation", "runtime", "operator", "wait", "nothing"
]
ACTIVITIES: Final[tuple[Activity, ...]] = (
    *("unrecorded", "profiler", "compile", "loader", "allocation", "runtime", "operator", "wait", "nothing"),
)
ENQUEUEING: Final[tuple[Activity, ...]] = ("runtime", "operator", "wait")
"""What a host does that waits for a device and then gives it work."""
USUAL_NS, USUAL_TIMES = 100_000, 8
"""A pause between operators and calls is usual up to this (ns), or so many times their lower quartile."""
COMPILING_NS = 10_000_000
"""What comes before a kernel's first launch is no compiling where it takes less (ns)."""
ALIKE = 0.5
"""A pause that takes at least this share of another one's time is one of the same kind."""


@dataclass(frozen=True, eq=False)
class Meanwhile:
    """What the host does between each two ascending times: places in ACTIVITIES."""

    edges: I64
    activities: U8

    @cached_property
    def times(self) -> Mapping[Activity, Intervals]:
        """The time of each activity; they are disjoint, and together the time that was looked at."""
        return {name: self.of(name) for name in ACTIVITIES}

    def of(self, *activities: Activity) -> Intervals:
        """Return the time of some activities."""
        is_one = np.zeros(len(ACTIVITIES), np.bool_)
        is_one[[ACTIVITIES.index(name) for name in activities]] = True
        # Of a loader from 0, a call from 2 and a wait from 5 to 9 the latter two are one stretch, from 2 to
        # 9: its edges are those at which it turns whether one of them goes on.
        holds = is_one[self.activities] & (self.edges[1:] > self.edges[:-1])
        turns = np.flatnonzero(np.diff(np.concatenate([[False], holds, [False]])))
        return Intervals(self.edges[turns[::2]], self.edges[turns[1::2]])

    def split(self, gaps: Intervals) -> Mapping[Activity, I64]:
        """Return for how long the host does each in each of some gaps, ns; each gap's parts add up to it."""
        return {name: time.covered(gaps.starts, gaps.ends) for name, time in self.times.items()}


def meanwhile(layers: Mapping[Activity, Intervals], window: tuple[int, int]) -> Meanwhile:
    """Return what the host does in a window, by the time in which it may be said to do each; pauses between
    its operators, calls and waits that are not unusual are part of its operators.
    """
    own = {name: layers.get(name, EMPTY).clipped(*window) for name in ACTIVITIES[:-1]}
    pauses = usual_pauses(own["operator"].union(own["runtime"], own["wait"], own["allocation"]))
    own["operator"] = own["operator"].union(pauses)
    return Meanwhile(*flattened(list(own.values()), window))


def usual_pauses(doing: Intervals) -> Intervals:
    """Return the pauses between stretches of time that are no longer than is usual there."""
    starts, ends = doing.ends[:-1], doing.starts[1:]
    if not len(starts):
        return EMPTY
    length = ends - starts
    usual = max(USUAL_NS, USUAL_TIMES * int(np.quantile(length, 0.25, method="lower")))
    return Intervals(starts[length <= usual], ends[length <= usual])


def first_launches(work: Frame, is_first: Bools, idle: Intervals, doing: Intervals) -> Intervals:
    """Return the time in which a host does nothing that is recorded (it is not `doing` anything) before the
    first launches of compiled kernels (Triton's), while devices idle: the kernels are compiled then, unless
    the host pauses as long where no such launch follows. `work` and `is_first` are `SourceFacts.launched`.
    """
    if not len(work):
        return EMPTY
    quiet = idle.without(doing)
    long = quiet.ends - quiet.starts >= COMPILING_NS
    starts, ends = quiet.starts[long], quiet.ends[long]
    following = np.searchsorted(work.call_start, ends)  # the launch with which the host goes on
    known = following < len(work)
    starts, ends, following = starts[known], ends[known], following[known]
    is_compiled: AnyArray = (is_first & work.is_kind("triton"))[following]
    other = int((ends - starts)[~is_compiled].max(initial=0))
    is_compiled &= ALIKE * (ends - starts) > other
    return Intervals(starts[is_compiled], ends[is_compiled])
