"""The states of devices, moment by moment, as values: what `device_state` counts and the first picture draws.

States, where several hold at once the first of them (`PRECEDENCE`):

- *compute*: a kernel that computes runs
- *collective_moving*: a collective runs for which all its members have come
- *collective_unsplit*: a collective runs of which it is not known whether it moves data or waits for a peer
- *copy*: memory is copied or set
- *prepare*: work is prepared on the device itself, as its own stamps tell (`preparing_slices`)
- *collective_waiting*: only collectives run, and a member that is in the files has yet to come
- *idle*: nothing of all that, with the cause of the gap as `idle` tells it

Waiting runs from a member's own start to the latest start among the members that are in the files, on aligned
clocks: that much is certain. What follows is moving where all members of the group are in the files, else not
split; nothing is split for a single rank, or where clocks were set otherwise than by the collectives' ends.
What receives in a FLEX job trace waits until its peer has sent, as its own stamps tell (`flex_stamps`).
Waiting is not busy; all other states but idle are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np

from ...base.arrays import EMPTY, F64, I64, U8, AnyArray, Intervals
from ..frame.work_device import GAP_CLASSES, WorkDevice

PRECEDENCE = (
    "compute", "collective_moving", "collective_unsplit", "copy", "prepare", "collective_waiting", "idle",
)  # fmt: skip
"""The states; of those that hold at once the first counts. Their order gives the numbers in `states`."""
COMPUTE, MOVING, UNSPLIT, COPY, PREPARE, WAITING, IDLE = range(len(PRECEDENCE))
BUSY = (COMPUTE, MOVING, UNSPLIT, COPY, PREPARE)
"""The states in which a device does something: it is neither idle nor waits for a peer."""
STATE_KEYS = ("kernel", "collective", "memcpy", "overhead")
"""The colour keys of what devices are drawn doing."""
CAUSES = (*GAP_CLASSES, "")
"""Why a device is idle; the last where nothing ends the gap, and of all other states."""
UNKNOWN = len(GAP_CLASSES)


@dataclass(frozen=True, eq=False)
class DeviceState:
    """The n states of one device one after the other, without holes over [edges[0], edges[n]), in ns."""

    device: WorkDevice
    edges: I64  # n + 1
    states: U8  # places in PRECEDENCE; neighbours differ in state or cause
    causes: U8  # places in CAUSES
    longest: int  # position of the longest piece of work
    layers: tuple[Intervals, ...] = (EMPTY,) * IDLE  # when each state but idle holds, whatever else does

    @property
    def waits(self) -> Intervals:
        """When collectives wait for a peer, whatever else runs."""
        return self.layers[WAITING]

    @property
    def of_ns(self) -> int:
        """The time that is looked at."""
        return int(self.edges[-1] - self.edges[0])

    @property
    def ns(self) -> Mapping[str, int]:
        """The time in each state; together they are `of_ns`."""
        times = np.zeros(len(PRECEDENCE), np.int64)
        np.add.at(times, self.states, np.diff(self.edges))
        return dict(zip(PRECEDENCE, times.tolist()))

    def moved(self, ns: int) -> DeviceState:
        """Return the states on a clock that is ahead by some ns."""
        layers = tuple(Intervals(layer.starts + ns, layer.ends + ns) for layer in self.layers)
        return replace(self, edges=self.edges + ns, layers=layers)

    def within(self, start: int, end: int) -> DeviceState:
        start, end = max(start, int(self.edges[0])), min(end, int(self.edges[-1]))
        first = max(0, int(np.searchsorted(self.edges, start, "right")) - 1)
        last = max(first + 1, int(np.searchsorted(self.edges, end, "left")))
        edges = np.clip(self.edges[first : last + 1], start, max(start, end))
        states, causes = self.states[first:last], self.causes[first:last]
        return replace(self, edges=edges, states=states, causes=causes)

    def in_cells(self, edges: I64, layered: bool = False) -> I64:
        """Return the ns of each state between each two of W + 1 ascending times: PRECEDENCE x W; `layered`:
        whatever else holds then, so that they add up to more than the time.
        """
        spent_in = (*self.layers, self.spent[IDLE]) if layered else self.spent
        before = np.stack([spent.before(edges) for spent in spent_in])
        return np.asarray(before[:, 1:] - before[:, :-1])

    def idle_between(self, starts: I64, ends: I64) -> I64:
        """Return for how long the device does nothing in each of some stretches of time, ns."""
        return np.asarray(self.spent[IDLE].before(ends) - self.spent[IDLE].before(starts))

    @cached_property
    def spent(self) -> tuple[Intervals, ...]:
        """The time in each state."""
        starts, ends = self.edges[:-1], self.edges[1:]
        return tuple(
            Intervals(starts[here], ends[here])
            for here in (np.flatnonzero(self.states == state) for state in range(len(PRECEDENCE)))
        )

    @property
    def busy_ns(self) -> int:
        return sum(self.spent[state].length for state in BUSY)


def longest_in(states: Sequence[DeviceState], names: Collection[str]) -> tuple[int, int] | None:
    """Return the longest time that one of some devices spends in a row in states of these names, which of
    idle time are its causes; the first of equals, None where there is none.
    """
    longest: tuple[int, int] | None = None
    working = [name in names and name != PRECEDENCE[IDLE] for name in PRECEDENCE]
    idle = [name in names for name in CAUSES]
    for one in states:
        here = np.array(working)[one.states] | ((one.states == IDLE) & np.array(idle)[one.causes])
        begins = np.flatnonzero(np.diff(here.astype(np.int8), prepend=0) == 1)
        ends = np.flatnonzero(np.diff(here.astype(np.int8), append=0) == -1) + 1
        if len(begins):
            lengths = one.edges[ends] - one.edges[begins]
            at = int(lengths.argmax())
            if longest is None or lengths[at] > longest[1] - longest[0]:
                longest = int(one.edges[begins[at]]), int(one.edges[ends[at]])
    return longest


class StateCells(NamedTuple):
    """What devices do in each of W cells of time."""

    busy: F64  # the share of its time in which they work: 0 to 1
    kinds: I64  # what takes most of it: places in STATE_KEYS
    waits: AnyArray  # whether they wait for a peer for longer than they work


def state_cells(states: Sequence[DeviceState], edges: I64, part: int | None = None) -> StateCells:
    """Return what devices do between each two of W + 1 ascending times; with a place in STATE_KEYS that
    alone, whatever else runs.
    """
    # As floats, which are drawn: of several devices cells of a century do not fit int64.
    ns: F64 = reduce(np.add, [one.in_cells(edges, part is not None).astype(np.float64) for one in states])
    kinds = np.stack([ns[COMPUTE], ns[MOVING] + ns[UNSPLIT], ns[COPY], ns[PREPARE]])
    if part is not None:
        kinds[[at != part for at in range(len(STATE_KEYS))]] = 0
        ns[WAITING] *= STATE_KEYS[part] == "collective"
    busy: F64 = reduce(np.add, kinds)
    waits = ns[WAITING] > busy
    largest = np.where(waits, STATE_KEYS.index("collective"), kinds.argmax(axis=0))
    return StateCells(busy / (np.maximum(1, np.diff(edges)) * len(states)), largest, waits)
