"""What devices did, as lines show it: a colour for each state, hatched where collectives wait for a peer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tracelane.core.base.arrays import I64, AnyArray, distinct
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
HATCH_FROM = 4
"""Lines of ranks hatch from so many cells on what device lanes hatch where they have room for words."""
GAP_WORDS = ("host late", "between kernels", "unexplained")
"""What the classes of gaps are called, as `i` says them, in the order of GAP_CLASSES."""
MIN_DETAIL = 8
"""Cells behind the length of a gap from which on they say what the host did."""


class LaneGaps(NamedTuple):
    """The gaps in the work on a lane of a device, by start: trace time in ns, the position of the slice that
    ends each, and why it is there.
    """

    starts: I64
    ends: I64
    after: AnyArray
    causes: AnyArray  # places in GAP_WORDS
    details: Mapping[int, str]  # what the host did, of the longest, by their number

    def mostly_in(self, start: int, end: int) -> int | None:
        """Return the gap of which most lies in a time and which takes most of that; None where none does."""
        inside = np.minimum(self.ends, end) - np.maximum(self.starts, start)
        chosen = np.flatnonzero((2 * inside > self.ends - self.starts) & (2 * inside > end - start))
        return int(chosen[0]) if len(chosen) else None

    def full_text(self, number: int) -> str:
        """Return why a gap is there, how long it is, and what the host did."""
        text = f"{GAP_WORDS[self.causes[number]]} {about_ns(int(self.ends[number] - self.starts[number]))}"
        detail = self.details.get(number, "")
        return f"{text} · {detail}" if detail else text

    def text(self, number: int, cells: int) -> str:
        """Return why a gap is there, as much as fits: "host late 15.7 ms · flatten", its cause at least."""
        cause = GAP_WORDS[self.causes[number]]
        text = f"{cause} {about_ns(int(self.ends[number] - self.starts[number]))}"
        full = self.full_text(number)
        if len(text) + MIN_DETAIL <= cells or len(full) <= cells:
            return full
        return text if len(text) <= cells else cause


class PeerWaits(NamedTuple):
    """When a rank waits in collectives for one that comes last, by start: trace time in ns, and the number of
    the rank that it waits for.
    """

    starts: I64
    ends: I64
    ranks: I64

    def text(self, start: int, end: int, cells: int) -> str:
        """Return for whom a rank waits in some time and how long, as much as fits; "" where nobody knows.
        What is there by less than half counts for other times.
        """
        inside = np.minimum(self.ends, end) - np.maximum(self.starts, start)
        counted = (inside > 0) & (2 * inside >= np.minimum(self.ends - self.starts, end - start))
        ranks = distinct(self.ranks[counted])
        if not len(ranks):
            return ""
        whom = f"rank {ranks[0]}" if len(ranks) == 1 else f"{len(ranks)} ranks"
        length = about_ns(int((self.ends - self.starts)[counted].sum()))
        texts = (f"waits for {whom} · {length}", f"waits for {whom}", f"for {whom}", whom)
        return next((text for text in texts if len(text) <= cells), "")


@dataclass(frozen=True, eq=False)
class DrawnStates:
    """The states of a trace's devices on some clocks, by the places of their lanes."""

    clocks: Clocks
    by_lane: Mapping[int, DeviceState]
    gaps: Mapping[int, LaneGaps]
    awaited: Mapping[int, PeerWaits] = field(default_factory=dict)  # by source

    @classmethod
    def of(
        cls,
        clocks: Clocks,
        states: Iterable[DeviceState],
        gaps: Mapping[int, LaneGaps] = MappingProxyType({}),
        awaited: Mapping[int, PeerWaits] = MappingProxyType({}),
    ) -> DrawnStates:
        return cls(clocks, {lane: one for one in states for lane in one.device.device.lanes}, gaps, awaited)

    def moved(self, clocks: Clocks, pair: RunPair) -> DrawnStates:
        """Return the same on clocks that move the second of two runs."""
        ns = pair.move(clocks) - pair.move(self.clocks)
        states = self.of_devices
        gaps = {
            lane: one._replace(starts=one.starts + ns, ends=one.ends + ns) if second else one
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


def line_runs(
    state: DeviceState, row: BusyRow, drawn: DrawnStates, edges: I64, has_gaps: bool
) -> tuple[Run, ...]:
    """Return what is hatched on the line of a device: where it waits, and if asked for where it does nothing
    for HATCH_FROM cells; why, in the words of its lanes, where HATCH_LABEL cells have room for that.
    """
    runs = []
    bounds = edges.tolist()
    awaited = drawn.awaited.get(state.device.device.source)
    for left, right in _alike(np.array(row.hatched, np.bool_)):
        if right - left >= HATCH_LABEL:
            text = awaited.text(bounds[left], bounds[right], right - left - HATCH_MARGIN) if awaited else ""
            runs.append(Run(left, right, "collective", text or WAITS, -1, 0, HATCH))
    return tuple(sorted([*runs, *(_idle_runs(state, row, drawn, edges) if has_gaps else ())]))


def _alike(flags: AnyArray) -> Iterable[tuple[int, int]]:
    """Return the runs [left, right) of cells that are set."""
    changes = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return zip(changes[::2].tolist(), changes[1::2].tolist())


def _idle_runs(state: DeviceState, row: BusyRow, drawn: DrawnStates, edges: I64) -> Iterable[Run]:
    """Yield the times in which a device is idle, where they take enough cells."""
    from tracelane.core.tables.device.states import IDLE

    known = [drawn.gaps[lane] for lane in state.device.device.lanes if lane in drawn.gaps]
    idle = np.flatnonzero((state.states == IDLE) & (state.causes < len(GAP_WORDS)))
    starts, ends = state.edges[idle], state.edges[idle + 1]
    lefts = np.searchsorted(edges, np.maximum(starts, edges[0]))
    rights = np.searchsorted(edges, np.minimum(ends, edges[-1]), "right") - 1
    for at in np.flatnonzero(rights - lefts >= HATCH_FROM).tolist():
        left, right = int(lefts[at]), int(rights[at])
        if max(row.levels[left:right]) >= 0:
            continue
        cells, start, end = right - left - HATCH_MARGIN, int(starts[at]), int(ends[at])
        texts = (
            one.text(number, cells) for one in known if (number := one.mostly_in(start, end)) is not None
        )
        cause = GAP_WORDS[state.causes[idle[at]]]
        length = f"{cause} {about_ns(end - start)}"
        yield Run(left, right, "sync", next(texts, length if len(length) <= cells else cause), -1, 0, HATCH)


def with_waits(
    runs: Sequence[Run], waits: I64, busy: I64, awaited: PeerWaits | None, edges: I64
) -> tuple[Run, ...]:
    """Return the runs of a lane in which collectives are hatched where waiting takes most of their time: both
    in ns per cell. They say for whom, as far as that is known: `edges` are the cells' in trace time.
    """
    is_waiting = waits > busy - waits
    out: list[Run] = []
    for run in runs:
        if run.key == "collective" and is_waiting[run.left : run.right].any():
            out.extend(_parts(run, is_waiting, awaited, edges))
        else:
            out.append(run)
    return tuple(out)


def outlined(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return the runs of a lane with collectives as outlines: which of them wait is not known yet."""
    return tuple(run._replace(flags=run.flags | BRACKET) if run.key == "collective" else run for run in runs)


def _parts(run: Run, is_waiting: AnyArray, awaited: PeerWaits | None, edges: I64) -> Iterable[Run]:
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
        if here[left]:
            start, end = int(edges[piece.left]), int(edges[piece.right])
            text = awaited.text(start, end, right - left - HATCH_MARGIN) if awaited is not None else ""
            piece = piece._replace(flags=run.flags | HATCH, label=text or WAITS)
        yield piece


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
