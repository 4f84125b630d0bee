"""What stands beside the slices when all lanes are written: lane and row tables, instants, samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..base.arrays import I64, U32, AnyArray, concatenated_ranges, pieces
from .column_files import ColumnFiles
from .events import LaneEvents
from .format import LANE, ROW, LaneKind, RowKind
from .id_lanes import CounterLane, CounterSamples, SampleSeries
from .lane_writer import Group, LaneWriter
from .lanes import LaneEntry

INSTANT_COLUMNS = ("start", "name", "category", "ordinal", "phase")
_NOTHING = np.zeros(0, np.int64)


class NumberedLane(NamedTuple):
    """A lane to be written: its process, and the numbers of its texts."""

    entry: LaneEntry
    process: int
    tid: int
    name: int


@dataclass(frozen=True, eq=False)
class LaneTables:
    """The tables, and what all lanes come to; `threads` are of threads' lanes, `asyncs` of async ones."""

    lanes: AnyArray
    rows: AnyArray
    slices: int
    instants: int
    samples: int
    start_ns: int | None  # first start and last end of threads' slices, but unclosed ones
    end_ns: int | None
    pairs: int  # threads' slices that have a begin and an end
    unmatched_ends: dict[LaneKind, int]
    mismatched_ends: int


def write_lane_tables(
    lanes: Sequence[NumberedLane],
    writer: LaneWriter,
    events: LaneEvents,
    counters: CounterSamples,
    columns: ColumnFiles,
    slot_of: U32,
    check: Callable[[], None],
) -> LaneTables:
    """Write what is not at the slices' positions, in display order; return the tables. The slot of each
    instant's event, its index after all slices, is written to `slot_of`.
    """
    groups = [writer.groups[first] for first in sorted(writer.groups)]
    for name in sorted({name for group in groups for name in group.sparse}):
        out = columns.writer(name)
        for group in groups:
            for piece in group.sparse.pop(name, ()):
                out.append(piece)

    kinds = np.array([lane.entry.kind for lane in lanes], np.uint8)
    drawn, counted = np.flatnonzero(kinds != LaneKind.COUNTER), np.flatnonzero(kinds == LaneKind.COUNTER)
    contents = [lane.entry.content for lane in lanes]
    series = [counters.contents(one) for one in contents if isinstance(one, CounterLane)]
    slice_rows, instants = _joined(groups, "rows"), _joined(groups, "instants")

    table = _described(lanes)
    table["rows"][drawn] = slice_rows + (instants > 0)
    table["rows"][counted] = [len(one) for one in series]
    table["first_row"] = np.cumsum(table["rows"]) - table["rows"]
    unclosed = _joined(groups, "unclosed")
    for name, values in (
        ("slices", _joined(groups, "slices")), ("unclosed", unclosed), ("instants", instants),
        ("depth", _joined(groups, "depth")), ("overlapping", _joined(groups, "overlapping")),
        ("start", _joined(groups, "start")), ("end", _joined(groups, "end")),
    ):  # fmt: skip
        table[name][drawn] = values

    rows = np.zeros(int(table["rows"].sum()), ROW)
    rows["lane"] = np.repeat(np.arange(len(lanes)), table["rows"])
    _slice_rows(rows, table[drawn], slice_rows, groups)
    drawn_lanes = table[drawn]
    _write_instants(rows, drawn_lanes, slice_rows, events, columns, slot_of, check)
    table[drawn] = drawn_lanes
    samples = _write_samples(rows, table, counted, series, columns)

    closed = [bounds for group in groups for bounds in group.closed]
    is_thread = kinds[drawn] == LaneKind.THREAD
    unmatched = _joined(groups, "unmatched_ends")
    return LaneTables(
        table, rows, writer.slices, int(instants.sum()), samples,
        min((start for start, _ in closed), default=None), max((end for _, end in closed), default=None),
        int(_joined(groups, "pairs")[is_thread].sum()),
        {LaneKind.THREAD: int(unmatched[is_thread].sum()), LaneKind.ASYNC: int(unmatched[~is_thread].sum())},
        sum(group.mismatched_ends for group in groups),
    )  # fmt: skip


def _joined(groups: Sequence[Group], name: str) -> AnyArray:
    return np.concatenate([_NOTHING, *(getattr(group, name).astype(np.int64) for group in groups)])


def _described(lanes: Sequence[NumberedLane]) -> AnyArray:
    """Return the lane table with what is known of lanes without their contents."""
    table = np.zeros(len(lanes), LANE)
    for number, lane in enumerate(lanes):
        entry = lane.entry
        table["kind"][number], table["process"][number] = entry.kind, lane.process
        table["tid"][number], table["name"][number] = lane.tid, lane.name
        table["ids"][number], table["sort"][number] = entry.ids, entry.sort
    return table


def _slice_rows(rows: AnyArray, lanes: AnyArray, slice_rows: I64, groups: Sequence[Group]) -> None:
    at = concatenated_ranges(lanes["first_row"].astype(np.int64), slice_rows)
    size = _joined(groups, "row_size")
    rows["depth"][at] = concatenated_ranges(np.zeros(len(lanes), np.int64), slice_rows)
    rows["first"][at] = np.cumsum(size) - size
    rows["count"][at] = size
    rows["start"][at], rows["end"][at] = _joined(groups, "row_start"), _joined(groups, "row_end")


def _write_instants(
    rows: AnyArray,
    lanes: AnyArray,
    slice_rows: I64,
    events: LaneEvents,
    columns: ColumnFiles,
    slot_of: U32,
    check: Callable[[], None],
) -> None:
    """Write the instants of lanes: events that stand after the slices of their lane."""
    done, slices = 0, int(events.slices.sum())
    for number in np.flatnonzero(lanes["instants"]).tolist():
        check()
        lane = lanes[number]
        first = int(events.bounds[number] + events.slices[number])
        own = slice(first, first + int(lane["instants"]))
        for name in INSTANT_COLUMNS:
            columns.writer(f"instants.{name}").append(events.columns[name][own])
        n, start = int(lane["instants"]), events.columns["start"][own]
        for some in pieces(n):
            check()
            slots = np.arange(slices + done + some.start, slices + done + some.stop)
            slot_of[events.columns["ordinal"][own][some]] = slots
        row = rows[int(lane["first_row"]) + int(slice_rows[number]) :][:1]
        row["kind"], row["depth"], row["first"], row["count"] = RowKind.INSTANTS, slice_rows[number], done, n
        row["start"], row["end"] = start[0], start[-1]
        lane["start"], lane["end"] = min(lane["start"], start[0]), max(lane["end"], start[-1])
        done += n


def _write_samples(
    rows: AnyArray,
    table: AnyArray,
    counted: I64,
    series: Sequence[Sequence[SampleSeries]],
    columns: ColumnFiles,
) -> int:
    """Write the samples of all counters, a row per series; return how many there are."""
    done = 0
    for number, own in zip(counted.tolist(), series):
        first_row, before = int(table["first_row"][number]), done
        for depth, one in enumerate(own):
            for name in ("start", "value", "ordinal"):
                columns.writer(f"samples.{name}").append(getattr(one, name))
            row = rows[first_row + depth :][:1]
            row["kind"], row["depth"], row["series"] = RowKind.SAMPLES, depth, one.series
            row["first"], row["count"] = done, len(one.start)
            row["start"], row["end"] = one.start[0], one.start[-1]
            done += len(one.start)
        table["samples"][number] = done - before
        table["start"][number] = min(int(one.start[0]) for one in own)
        table["end"][number] = max(int(one.start[-1]) for one in own)
    return done
