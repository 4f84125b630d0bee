"""What devices did, as lines show it: a colour for each state, hatched where collectives wait for a peer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from tracelane.core.base.arrays import I64, AnyArray
from tracelane.core.base.clock import Clocks
from tracelane.core.base.units import about_ns
from tracelane.core.trace import Lane

from .ranks import RANK_PARTS
from .runs import BRACKET, FULL, HATCH, HATCH_LABEL, HATCH_MARGIN, BusyRow, Run

if TYPE_CHECKING:
    from tracelane.core.tables.compare.run_pair import RunPair
    from tracelane.core.tables.device.states import DeviceState

MAX_SLICES = 3_000_000
"""Of more slices it would take seconds of processor time to count exactly what a device does."""
WAITS = "waits for a peer"
GAP_WORDS = ("host late", "between kernels", "unexplained")
"""What the classes of gaps are called, as `i` says them, in the order of GAP_CLASSES."""
MIN_DETAIL = 8
"""Cells behind the length of a gap from which on they say what the host did."""


@dataclass(frozen=True, eq=False)
class LaneGaps:
    """The gaps in the work on a lane of a device, by start: trace time in ns, the position of the slice that
    ends each, and why it is there.
    """

    starts: I64
    ends: I64
    after: AnyArray
    causes: AnyArray  # places in GAP_WORDS
    details: Mapping[int, str]  # what the host did, of the longest, by their number

    def text(self, number: int, cells: int) -> str:
        """Return why a gap is there, as much as fits: "host late 15.7 ms · flatten", its cause at least."""
        cause, detail = GAP_WORDS[self.causes[number]], self.details.get(number, "")
        text = f"{cause} {about_ns(int(self.ends[number] - self.starts[number]))}"
        full = f"{text} · {detail}" if detail else text
        if len(text) + MIN_DETAIL <= cells or len(full) <= cells:
            return full
        return text if len(text) <= cells else cause


@dataclass(frozen=True, eq=False)
class DrawnStates:
    """The states of a trace's devices on some clocks, by the places of their lanes."""

    clocks: Clocks
    by_lane: Mapping[int, DeviceState]
    gaps: Mapping[int, LaneGaps]

    @classmethod
    def of(
        cls,
        clocks: Clocks,
        states: Iterable[DeviceState],
        gaps: Mapping[int, LaneGaps] = MappingProxyType({}),
    ) -> DrawnStates:
        return cls(clocks, {lane: one for one in states for lane in one.device.device.lanes}, gaps)

    def moved(self, clocks: Clocks, pair: RunPair) -> DrawnStates:
        """Return the same on clocks that move the second of two runs."""
        ns = pair.move(clocks) - pair.move(self.clocks)
        states = self.of_devices
        gaps = {
            lane: replace(one, starts=one.starts + ns, ends=one.ends + ns) if second else one
            for lane, one in self.gaps.items()
            for second in [pair.lanes[lane].source >= pair.first]
        }
        return DrawnStates.of(
            clocks, [one.moved(ns) if one.device.device.source >= pair.first else one for one in states], gaps
        )

    @property
    def of_devices(self) -> tuple[DeviceState, ...]:
        """The states, once each."""
        return tuple({id(one): one for one in self.by_lane.values()}.values())

    def gaps_of(self, lane: Lane, clocks: Clocks) -> LaneGaps | None:
        """Return the gaps in a lane's work, None where they are not known."""
        return self.gaps.get(lane.index) if self._of(lane, clocks) is not None else None

    def of_lanes(self, lanes: Sequence[Lane], clocks: Clocks) -> tuple[DeviceState, ...]:
        """Return the states of the devices that lanes are all lanes of; nothing where one is another's, or
        where clocks were set otherwise.
        """
        states = [self._of(lane, clocks) for lane in lanes if lane.slices]
        known = {id(one): one for one in states if one is not None}
        numbers = {lane.index for lane in lanes}
        is_whole = all(numbers.issuperset(one.device.device.lanes) for one in known.values())
        return tuple(known.values()) if is_whole and None not in states else ()

    def _of(self, lane: Lane, clocks: Clocks) -> DeviceState | None:
        own = self.clocks.offset(lane.source, lane.pid) == clocks.offset(lane.source, lane.pid)
        return self.by_lane.get(lane.index) if own else None

    def waits(self, lane: Lane, clocks: Clocks, edges: I64) -> I64 | None:
        """Return how long collectives of a lane's device wait for a peer in each cell between edges of trace
        time, ns; None where they are not known to wait.
        """
        state = self._of(lane, clocks)
        if state is None or not len(state.waits):
            return None
        return state.waits.covered(edges[:-1], edges[1:])


def state_row(states: Sequence[DeviceState], edges: I64, part: str = "") -> BusyRow:
    """Return how busy devices are between edges of trace time: as high as they work, in the colour of what
    takes most of that; hatched where waiting for a peer takes more. With one of RANK_PARTS: of that alone,
    whatever else runs.
    """
    from tracelane.core.tables.device.states import STATE_KEYS, state_cells

    cells = state_cells(states, edges, RANK_PARTS.index(part) if part else None)
    levels = np.where(cells.busy > 0, np.clip(np.rint(FULL * cells.busy), 1, FULL), -1).astype(np.int64)
    keys = tuple(STATE_KEYS[kind] for kind in cells.kinds.tolist())
    return BusyRow(tuple(levels.tolist()), keys, hatched=tuple(cells.waits.tolist()))


def with_waits(runs: Sequence[Run], waits: I64, busy: I64) -> tuple[Run, ...]:
    """Return the runs of a lane in which collectives are hatched where waiting takes most of their time: both
    in ns per cell.
    """
    is_waiting = waits > busy - waits
    out: list[Run] = []
    for run in runs:
        if run.key == "collective" and is_waiting[run.left : run.right].any():
            out.extend(_parts(run, is_waiting))
        else:
            out.append(run)
    return tuple(out)


def outlined(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return the runs of a lane with collectives as outlines: which of them wait is not known yet."""
    return tuple(run._replace(flags=run.flags | BRACKET) if run.key == "collective" else run for run in runs)


def _parts(run: Run, is_waiting: AnyArray) -> Iterable[Run]:
    here = is_waiting[run.left : run.right]
    bounds = [0, *(np.flatnonzero(here[1:] != here[:-1]) + 1).tolist(), len(here)]
    for left, right in pairwise(bounds):
        piece = run._replace(
            left=run.left + left,
            right=run.left + right,
            left_eighths=0 if left else run.left_eighths,
            right_eighths=FULL if right < len(here) else run.right_eighths,
            levels=run.levels[left:right],
        )
        yield piece._replace(flags=run.flags | HATCH, label=WAITS) if here[left] else piece


def with_gaps(runs: Sequence[Run], gaps: LaneGaps, positions: range, edges: I64) -> tuple[Run, ...]:
    """Return the runs of a row with its gaps of at least HATCH_LABEL cells hatched where nothing lies; a gap
    belongs to the row of the slice that ends it, of which `positions` are all in the index.
    """
    lefts = np.searchsorted(edges, np.maximum(gaps.starts, edges[0]))
    rights = np.searchsorted(edges, np.minimum(gaps.ends, edges[-1]), "right") - 1
    own = (gaps.after >= positions.start) & (gaps.after < positions.stop)
    wide = np.flatnonzero(own & (rights - lefts >= HATCH_LABEL))
    if not len(wide):
        return tuple(runs)
    out = list(runs)
    for number in wide.tolist():
        left, right = int(lefts[number]), int(rights[number])
        others = [(run.left, run.right) for run in runs if run.left < right and left < run.right]
        bounds = [left, *(edge for pair in others for edge in pair), right]
        free = max(zip(bounds[::2], bounds[1::2]), key=lambda pair: pair[1] - pair[0])
        if free[1] - free[0] >= HATCH_LABEL:
            out.append(Run(*free, "sync", gaps.text(number, free[1] - free[0] - HATCH_MARGIN), -1, 0, HATCH))
    return tuple(sorted(out))
