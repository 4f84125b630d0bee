"""Events lane by lane, those of threads placed out of the batches, those of async ids beside them; then what
belongs to events: flows on their way to arrows between slices, promoted arguments on theirs to columns.

Lanes stand in display order, so that a slice's position follows from how many slices lie in the lanes before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..base.arrays import I64, PIECE, U8, U32, U64, AnyArray, pieces
from ..base.kineto import DEVICE_ANNOTATION
from ..read.batch import TABLES, Table
from ..read.promoted import PROMOTED, Kind, Promoted
from .batches import NumberedBatches
from .column_files import ColumnFiles, Scratch, smallest_integer
from .format import FLOW_COUNTS
from .id_lanes import AsyncEvents, AsyncLane
from .loops import BEGINS, Correlations
from .workers import BuildJob, Worker

THREAD_COLUMNS = ("phase", "flags", "ordinal", "category", "name", "start", "duration")
FLOW_COLUMNS = ("phase", "flags", "ordinal", "category", "id_kind", "id_value", "start")
ARROW_COLUMNS = ("source", "target", "source_ordinal", "target_ordinal", "category")
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
    annotations: AnyArray  # per category, whether annotations of devices have it

    def some(self, lanes: range) -> Table:
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
        if rest:
            makes_slice = _MAKES_SLICE.take(self.some(lanes)["phase"])
            firsts = np.array([0, *(one - first for one in rest)])
            self.slices[lanes.start : lanes.stop] = np.add.reduceat(makes_slice, firsts, dtype=np.int64)
        else:
            phase = self.some(lanes)["phase"]
            counts = (np.count_nonzero(_MAKES_SLICE.take(phase[own])) for own in pieces(len(phase)))
            self.slices[lanes.start] = sum(counts)


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

    stacks, groups, begins = _stacks(lanes, bounds, asyncs, scratch)
    if len(groups):
        jobs.append(partial(_place_asyncs, asyncs, groups, begins, columns))
    categories = map(batches.strings.text, batches.categories)
    annotations = np.array([category == DEVICE_ANNOTATION for category in categories], np.bool_)
    return LaneEvents(columns, bounds, stacks, np.zeros(len(lanes), np.int64), annotations), jobs


def _stacks(
    lanes: Sequence[int | AsyncLane], bounds: I64, asyncs: AsyncEvents, scratch: Scratch
) -> tuple[I64, I64, I64]:
    """Return where each stack begins; then of async ids, lane by lane, their groups and where these do."""
    counts = [1 if isinstance(lane, int) else lane.ids for lane in lanes]
    ids = sum(lane.ids for lane in lanes if isinstance(lane, AsyncLane))
    stacks, groups, begins = (scratch.array(size, "i8") for size in (sum(counts), ids, ids))
    done = at = 0
    for lane, begin, count in zip(lanes, bounds.tolist(), counts):
        if isinstance(lane, int):
            stacks[done] = begin
        for own in pieces(count if isinstance(lane, AsyncLane) else 0):
            assert isinstance(lane, AsyncLane)
            ends = begin + np.cumsum(asyncs.sizes(lane.groups[own]))
            n = len(ends)
            groups[at : at + n] = lane.groups[own]
            begins[at], begins[at + 1 : at + n] = begin, ends[:-1]
            stacks[done + own.start : done + own.stop] = begins[at : at + n]
            at, begin = at + n, int(ends[-1])
        done += count
    return stacks, groups, begins


def _place_asyncs(asyncs: AsyncEvents, groups: I64, begins: I64, columns: Table, worker: Worker) -> None:
    """Put the events of async ids where `begins` says, some ids at a time."""
    done = 0
    while done < len(groups):
        worker.check()
        end = max(done + 1, int(np.searchsorted(begins, begins[done] + PIECE, "right")) - 1)
        entries, slots = asyncs.entries(groups[done:end]), asyncs.slots(groups[done:end], begins[done:end])
        for name, values in columns.items():
            values[slots] = 0 if name == "duration" else asyncs.events[name][entries]
        done = end


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


# -- flows --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FlowPairs:
    """Pairs of flow events, and per category how many there are of what (FLOW_COUNTS)."""

    source: U32  # entries of FlowEvents
    target: U32
    counts: I64

    def by_category(self) -> dict[int, dict[str, int]]:
        occurring = np.flatnonzero(self.counts.any(axis=1)).tolist()
        return {number: dict(zip(FLOW_COUNTS, self.counts[number].tolist())) for number in occurring}


def paired(flows: FlowEvents, batches: NumberedBatches, worker: Worker) -> FlowPairs:
    pid = worker.rooms.room("pid", int(flows.bounds[-1]), "u4")
    numbers, bounds = batches.track_pid[flows.tracks].tolist(), flows.bounds.tolist()
    for number, begin, end in zip(numbers, bounds, bounds[1:]):
        pid[begin:end] = number
    return FlowPairs(*worker.loops.pair(flows.columns, pid, len(batches.categories)))


def write_flows(arrows: FlowPairs, flows: FlowEvents, columns: ColumnFiles, worker: Worker) -> None:
    """Write the columns of arrows, by source, latest target first; only the keys of their order are there for
    all of them at once.
    """
    loops, ordinal, n = worker.loops, flows.columns["ordinal"], len(arrows.source)
    position, later, tie = (
        worker.rooms.room(f"arrows.{name}", n, dtype)
        for name, dtype in (("position", "i8"), ("later", "i8"), ("tie", "u4"))
    )
    for own in pieces(n):
        worker.check()
        source, target = arrows.source[own], arrows.target[own]
        position[own] = flows.bound.take(source)
        later[own] = -ordinal.take(target).astype(np.int64)
        tie[own] = ordinal.take(source)
    every = np.array([0, n], np.uint64)
    order, _ = loops.order(every, position, later, tie)
    out = {name: columns.writer(f"flows.{name}") for name in ARROW_COLUMNS}
    for own in pieces(n):
        worker.check()
        entries = own if order is None else order[own]
        source, target = arrows.source[entries], arrows.target[entries]
        targets = flows.bound.take(target)
        out["source"].append(flows.bound.take(source))
        out["target"].append(targets)
        out["source_ordinal"].append(ordinal.take(source))
        out["target_ordinal"].append(ordinal.take(target))
        out["category"].append(flows.columns["category"].take(source))
        position[own], tie[own] = targets, np.arange(own.start, own.stop)
    order, _ = loops.order(every, position, None, tie)
    columns.writer("flows.by_target").append(tie if order is None else order)


def correlations(batches: NumberedBatches, scratch: Scratch) -> tuple[Correlations, BuildJob]:
    """Return room for the correlations of all events, and the job that fills it."""
    some = [number for number, batch in enumerate(batches.batches) if "correlation" in batch.promoted]
    ends = np.cumsum([len(batches.batches[number].promoted["correlation"]["ordinal"]) for number in some])
    size = int(ends[-1]) if some else 0
    ordinal, value = scratch.array(size, "u4"), scratch.array(size, "i8")

    def fill(worker: Worker) -> None:
        for number, end in zip(some, ends.tolist()):
            worker.check()
            column = batches.batches[number].promoted["correlation"]
            own = slice(end - len(column["ordinal"]), end)
            ordinal[own] = column["ordinal"]
            ordinal[own] += np.uint32(batches.first_ordinal[number])
            value[own] = column["value"]

    return Correlations(ordinal, value), fill


# -- promoted arguments -------------------------------------------------------------------------------------

SLOTS_PIECE = 1 << 18
"""Slots that are looked through at once: positions of slices, then indexes of instants."""
_PROMOTED_DTYPES = {Kind.TEXT: "u4", Kind.FLOAT: "f8", Kind.INTEGER: "i8"}


def promoted_jobs(
    batches: NumberedBatches, slices: int, instants: int, slot_of: U32, columns: ColumnFiles
) -> list[BuildJob]:
    """Return a job per argument that occurs, which writes its columns; those of many batches first."""
    occurrences = Counter(key for batch in batches.batches for key in batch.promoted)
    arguments = sorted(PROMOTED, key=lambda one: -occurrences[one.key])
    return [
        partial(_write_promoted, batches, argument, slices, instants, slot_of, columns)
        for argument in arguments
        if occurrences[argument.key]
    ]


def _write_promoted(
    batches: NumberedBatches,
    argument: Promoted,
    slices: int,
    instants: int,
    slot_of: U32,
    columns: ColumnFiles,
    worker: Worker,
) -> None:
    slots = slices + instants
    dense = worker.rooms.room("promoted", slots, "i8").view(_PROMOTED_DTYPES[argument.kind])[:slots]
    present = worker.rooms.room("present", slots // 64 + 1, "u8")
    present.fill(0)
    limits = []
    for number, batch in enumerate(batches.batches):
        column = batch.promoted.get(argument.key)
        if column is None:
            continue
        values = column["value"]
        if argument.kind is Kind.TEXT:
            values = batches.strings.maps[batch.table].take(values)
        own = slot_of[batches.first_ordinal[number] :][: batch.events]
        ordinals = np.ascontiguousarray(column["ordinal"], np.uint32)
        values = np.ascontiguousarray(values, dense.dtype)
        limits.append(worker.loops.promote(ordinals, values, own, dense, present))
    dtype = _PROMOTED_DTYPES[argument.kind]
    integers = [one for one in limits if one is not None]
    if integers:
        dtype = smallest_integer(min(low for low, _ in integers), max(high for _, high in integers))
    name = f"promoted.{argument.key}"
    for where, value, begin, end in (
        ("position", "value", 0, slices), ("instant", "instant_value", slices, slots)
    ):  # fmt: skip
        for at in range(begin, end, SLOTS_PIECE):
            positions, values = worker.loops.compact(dense, present, at, min(at + SLOTS_PIECE, end), begin)
            if len(positions):
                columns.writer(f"{name}.{where}", "u4").append(positions)
                columns.writer(f"{name}.{value}", dtype).append(values)
    columns.finish(*(f"{name}.{suffix}" for suffix in ("position", "value", "instant", "instant_value")))
