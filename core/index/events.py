"""Events lane by lane: those of threads are placed out of the parts, those of async ids beside them.

Lanes stand in display order, so that a slice's position follows from how many slices lie in the lanes before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..base.arrays import I64, U8, U32, U64, AnyArray, concatenated_ranges
from ..read.columns import TABLES, Table
from .batches import NumberedBatches
from .column_files import Scratch
from .id_lanes import AsyncEvents, AsyncLane
from .loops import BEGINS
from .workers import BuildJob, Worker

THREAD_COLUMNS = ("phase", "flags", "ordinal", "category", "name", "start", "duration")
FLOW_COLUMNS = ("phase", "flags", "ordinal", "category", "id_kind", "id_value", "start")
GROUP = 1 << 16
"""Lanes that follow one another are treated together up to so many events."""

_MAKES_SLICE: U8 = np.zeros(256, np.uint8)
_MAKES_SLICE[list(b"X" + BEGINS)] = 1


@dataclass(frozen=True, eq=False)
class LaneEvents:
    """The events of lanes, lane after lane; of each in file order until the lane is written."""

    columns: Table
    bounds: I64  # where each lane begins, and the last one's end
    stacks: I64  # where each stack of begins and ends begins: a thread's is its lane, an async id has its own
    slices: I64  # per lane, how many slices will come of it, once `count_slices` has run

    def some(self, lanes: range) -> Table:
        """Return the columns of consecutive lanes (views)."""
        own = slice(int(self.bounds[lanes.start]), int(self.bounds[lanes.stop]))
        return {name: values[own] for name, values in self.columns.items()}

    def groups(self) -> list[range]:
        """Return consecutive lanes that are treated together, the largest groups first."""
        bounds = self.bounds.tolist()
        firsts = [0] if len(bounds) > 1 else []
        for lane in range(1, len(bounds) - 1):
            if bounds[lane + 1] - bounds[firsts[-1]] > GROUP:
                firsts.append(lane)
        groups = [range(a, b) for a, b in zip(firsts, [*firsts[1:], len(bounds) - 1])]
        return sorted(groups, key=lambda lanes: bounds[lanes.start] - bounds[lanes.stop])

    def count_slices(self, lanes: range, worker: Worker) -> None:
        """Count the slices that will come of consecutive lanes, none of which is empty."""
        worker.check()
        first, *rest = self.bounds[lanes.start : lanes.stop].tolist()
        makes_slice = _MAKES_SLICE.take(self.some(lanes)["phase"])
        if rest:
            firsts = np.array([0, *(one - first for one in rest)])
            self.slices[lanes.start : lanes.stop] = np.add.reduceat(makes_slice, firsts, dtype=np.int64)
        else:
            self.slices[lanes.start] = np.count_nonzero(makes_slice)


def lane_events(
    batches: NumberedBatches,
    lanes: Sequence[int | AsyncLane],
    asyncs: AsyncEvents,
    scratch: Scratch,
    threads: int,
) -> tuple[LaneEvents, list[BuildJob]]:
    """Return room for the events of lanes (tracks by number, async ids), and the jobs that fill it."""
    in_track = batches.track_counts("timed")
    sizes = [int(in_track[one]) if isinstance(one, int) else asyncs.size(one) for one in lanes]
    bounds = np.cumsum([0, *sizes])
    dtypes = {**TABLES["timed"], "category": batches.category_dtype}
    columns = _room(int(bounds[-1]), dtypes, THREAD_COLUMNS, scratch)
    first_of_track = np.zeros(len(batches.tracks), np.uint64)
    thread_lanes = [(number, one) for number, one in enumerate(lanes) if isinstance(one, int)]
    first_of_track[[track for _, track in thread_lanes]] = bounds[[number for number, _ in thread_lanes]]
    jobs = _placing_jobs(batches, "timed", columns, first_of_track, threads)

    runs = [(number, one.groups) for number, one in enumerate(lanes) if isinstance(one, AsyncLane)]
    stacks = bounds[[number for number, _ in thread_lanes]]
    if runs:
        groups = np.concatenate([own for _, own in runs])
        entries, run_sizes = asyncs.entries(groups)
        lane_of_run = np.repeat([number for number, _ in runs], [len(own) for _, own in runs])
        before = np.cumsum(run_sizes) - run_sizes
        first_of_lane = np.flatnonzero(np.diff(lane_of_run, prepend=-1))
        shift = bounds[lane_of_run[first_of_lane]] - before[first_of_lane]
        run_starts = before + np.repeat(shift, np.diff(np.append(first_of_lane, len(before))))
        slots = concatenated_ranges(run_starts, run_sizes)
        stacks = np.sort(np.concatenate((stacks, run_starts)))

        def place_asyncs(worker: Worker) -> None:
            for name, values in columns.items():
                worker.check()
                values[slots] = 0 if name == "duration" else asyncs.events[name][entries]

        jobs.append(place_asyncs)
    return LaneEvents(columns, bounds, stacks, np.zeros(len(lanes), np.int64)), jobs


@dataclass(frozen=True, eq=False)
class FlowEvents:
    """The flow events of tracks, track after track."""

    columns: Table
    tracks: I64
    bounds: I64  # where those of each track begin, and the last one's end
    bound: U32  # position of the slice that each belongs to, once its lane is written; NONE


def flow_events(
    batches: NumberedBatches, tracks: Sequence[int], scratch: Scratch, threads: int
) -> tuple[FlowEvents, list[BuildJob]]:
    """Return room for all flow events, those of these tracks first, and the jobs that fill it."""
    counts = batches.track_counts("flows")
    is_other = counts > 0
    is_other[tracks] = False
    order = np.concatenate((np.array(tracks, np.int64), np.flatnonzero(is_other)))
    bounds = np.cumsum(np.concatenate(([0], counts[order])))
    columns = _room(int(bounds[-1]), TABLES["flows"], FLOW_COLUMNS, scratch)
    first_of_track = np.zeros(len(batches.tracks), np.uint64)
    first_of_track[order] = bounds[:-1]
    bound = scratch.array(int(bounds[-1]), "u4")
    jobs = _placing_jobs(batches, "flows", columns, first_of_track, threads)
    return FlowEvents(columns, order, bounds, bound), jobs


def _room(size: int, dtypes: Mapping[str, str], names: Sequence[str], scratch: Scratch) -> Table:
    return {name: scratch.array(size, dtypes[name]) for name in names}


def _placing_jobs(
    batches: NumberedBatches, table: str, columns: Table, first_of_track: U64, threads: int
) -> list[BuildJob]:
    """Return jobs that put the events of all batches where their tracks lie, in file order; each takes
    batches that follow one another.
    """
    lengths = np.array(batches.lengths(table), np.int64)
    if not lengths.sum():
        return []
    cuts = np.searchsorted(np.cumsum(lengths), np.arange(1, threads) * (lengths.sum() / threads))
    jobs: list[BuildJob] = []
    following = first_of_track
    ranges = np.split(np.arange(len(lengths)), cuts)
    for numbers in ranges:
        some = numbers.tolist()
        jobs.append(partial(_place_events_of, batches, table, columns, some, following.copy()))
        if numbers is not ranges[-1]:
            following = following + batches.track_counts(table, some).astype(np.uint64)
    return jobs


def _place_events_of(
    batches: NumberedBatches,
    table: str,
    columns: Table,
    numbers: Sequence[int],
    following: U64,
    worker: Worker,
) -> None:
    for number in numbers:
        if table not in batches.batches[number].tables:
            continue
        slots = worker.loops.slots(batches.values(number, table, "track"), following)
        for name, out in columns.items():
            values: AnyArray = batches.values(number, table, name)
            worker.loops.put(np.ascontiguousarray(values, out.dtype), slots, out)
