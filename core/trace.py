"""The front door: `open_trace(paths)` gives a Trace, and a Trace answers everything the viewer asks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .analysis.alignment import Alignment, align
from .base.clock import Clocks
from .base.ids import SliceId
from .base.progress import CancelledCallback, ProgressCallback, never, no_progress
from .base.short_names import short_name
from .index.captures import Capture, Member
from .index.choice import Choice
from .index.format import LaneKind, RowKind
from .index.store import Index
from .ingest.columns import I64
from .query import lookup, samples
from .query.args import Arguments
from .query.args import arguments as read_arguments
from .query.busy import Busy, busy_of, lane_cells
from .query.cells import Cells, InstantCells, SampleCells, Span, row_cells
from .query.chain import chain_of
from .query.detail import (
    InstantDetail,
    SampleDetail,
    SliceDetail,
    instant_detail,
    sample_detail,
    slice_detail,
)
from .query.flows import Flow, flows_in, flows_out
from .query.lanes import LaneList, make_lane, make_processes, make_row, make_source
from .query.launches import Launched, Launches, kernels_under, launches_of
from .query.spans import spans
from .query.steps import Step as LaneStep
from .query.steps import steps_of
from .query.titles import plain
from .query.views import Arrow, Lane, Link, Process, Row, SourceInfo, Step
from .query.window import FAR, end_of_lanes, opening_window

if TYPE_CHECKING:
    from .index.opening import Opened

MINIMAP_LANES = 512
"""Lanes that the minimap asks at most; of more, an even sample."""
REMEMBERED = 1 << 16
NO_CLOCKS = Clocks()
NEWEST = Choice()


class Trace:
    """An opened capture of one or several sources. Immutable; every answer depends on its arguments only.

    Query methods take and give trace time (lane time + the clocks' offset), in integer ns.
    """

    def __init__(
        self,
        indexes: Sequence[Index],
        members: Sequence[Member] = (),
        captures: Sequence[Capture] = (),
        shown: int | None = None,
    ) -> None:
        """Hold indexes and whose they are; `captures` are those that there were to open, `shown` which is."""
        self.indexes = tuple(indexes)
        self.members = tuple(members)
        self.captures, self.shown_capture = tuple(captures), shown
        self._lane_bases = [0, *accumulate(len(index.lanes) for index in self.indexes)]
        self.lanes = LaneList(self._lane_bases[-1], self._make_lane)
        self._positions: dict[SliceId, int] = {}
        self._launches: dict[int, Launches] = {}
        self._spans: dict[Clocks, tuple[int, int]] = {}

    def close(self) -> None:
        """Let go of all mappings and locks."""
        for index in self.indexes:
            index.close()

    # -- what is there ------------------------------------------------------------------------------------

    @cached_property
    def sources(self) -> tuple[SourceInfo, ...]:
        """The files of the trace."""
        return tuple(make_source(index, number) for number, index in enumerate(self.indexes))

    @property
    def processes(self) -> tuple[Process, ...]:
        """All processes in display order, those without lanes among them."""
        return self._processes

    @cached_property
    def _processes(self) -> tuple[Process, ...]:
        """All processes as the sources' tables have them, source by source."""
        made = (
            make_processes(index, source, base)
            for source, (index, base) in enumerate(zip(self.indexes, self._lane_bases))
        )
        return tuple(chain.from_iterable(made))

    @cached_property
    def _process_bases(self) -> list[int]:
        return [0, *accumulate(len(index.processes) for index in self.indexes)]

    def _make_lane(self, place: int) -> Lane:
        source = bisect_right(self._lane_bases, place) - 1
        index, number = self.indexes[source], place - self._lane_bases[source]
        process = self._processes[self._process_bases[source] + int(index.lanes[number]["process"])]
        return make_lane(index, process, place, number)

    def row(self, lane: Lane | int, depth: int) -> Row:
        """Return the row at a place (0 = topmost) of a lane, given as such or as its place in `lanes`."""
        lane = self.lanes[lane] if isinstance(lane, int) else lane
        return self.row_number(lane.source, lane.rows[depth])

    def row_number(self, source: int, number: int) -> Row:
        """Return the row with this number in a source's row table."""
        place = self._lane_bases[source] + int(self.indexes[source].rows[number]["lane"])
        return make_row(self.indexes[source], self.lanes[place], number)

    def rows(self, lane: Lane | int) -> list[Row]:
        """Return all rows of a lane, topmost first."""
        lane = self.lanes[lane] if isinstance(lane, int) else lane
        return [self.row_number(lane.source, number) for number in lane.rows]

    def rank(self, source: int) -> int | None:
        """Return the rank whose file a source is, None for a host process or a telemetry log."""
        return self.members[source].rank if source < len(self.members) else None

    @cached_property
    def alignment(self) -> Alignment:
        """How the clocks of the ranks relate; nothing where there are not two."""
        return align(self.indexes, self.members)

    @property
    def clocks(self) -> Clocks:
        """The clocks that the trace opens with: its ranks aligned."""
        return self.alignment.clocks

    # -- time ---------------------------------------------------------------------------------------------

    def span_at(self, clocks: Clocks = NO_CLOCKS) -> tuple[int, int]:
        """Return the time [start, end) of everything that is drawn, in trace time under these clocks.

        What has no length has a place too: where an instant is the last thing, it stands in the last ns.
        """
        if clocks not in self._spans:
            self._spans[clocks] = self._span_at(clocks)
        return self._spans[clocks]

    def _span_at(self, clocks: Clocks) -> tuple[int, int]:
        starts, ends = [], []
        for process in self.processes:
            if len(process.lanes):
                index, base = self.indexes[process.source], self._lane_bases[process.source]
                part = index.lanes[process.lanes.start - base : process.lanes.stop - base]
                offset = clocks.offset(process.source, process.pid)
                starts.append(int(part["start"].min()) + offset)
                ends.append(end_of_lanes(index, part) + offset)
        return (min(starts), max(ends)) if starts else (0, 0)

    @cached_property
    def span(self) -> tuple[int, int]:
        """(start, end) in trace time over everything that is drawn, under the clocks it opens with."""
        return self.span_at(self.clocks)

    @cached_property
    def opening_span(self) -> tuple[int, int]:
        """(start, end) without wild outliers: what the first window shows."""
        start, end = (
            opening_window([(index, self.clocks.offset(n)) for n, index in enumerate(self.indexes)])
            or self.span
        )
        return start, self.span[1] if self.span[1] == end + 1 else end

    @property
    def has_outliers(self) -> bool:
        """Whether the opening span leaves out something absurdly far away."""
        (start, end), (first, last) = self.opening_span, self.span
        return last - first > FAR * max(end - start, 1)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The profiler's steps in time order, under the clocks that the trace opens with."""
        return self.steps_at(self.clocks)

    def steps_at(self, clocks: Clocks = NO_CLOCKS) -> tuple[Step, ...]:
        """Return the profiler's steps in time order, in trace time under these clocks."""
        found = []
        for source, source_steps in enumerate(self._lane_steps):
            for step in source_steps:
                self._remember(step.id, step.position)
                lane = self.lanes[self._lane_bases[source] + step.lane]
                offset = clocks.offset(source, lane.pid)
                found.append(Step(step.label, step.start + offset, step.end + offset, step.id))
        return tuple(sorted(found, key=lambda step: (step.start, step.end)))

    @cached_property
    def _lane_steps(self) -> list[list[LaneStep]]:
        return [steps_of(index, source) for source, index in enumerate(self.indexes)]

    # -- drawing ------------------------------------------------------------------------------------------

    def cells(self, row: Row, edges: Sequence[int] | I64, clocks: Clocks = NO_CLOCKS) -> Cells:
        """Return what the W cells between W + 1 edges show of a row of slices."""
        return row_cells(self.indexes[row.source], row.number, edges, clocks.offset(row.source, row.pid))

    def spans(self, row: Row, edges: Sequence[int] | I64, clocks: Clocks = NO_CLOCKS) -> list[Span]:
        """Return the spans that a row of slices is drawn as."""
        return spans(self.indexes[row.source], row.number, self.cells(row, edges, clocks))

    def instant_cells(self, row: Row, edges: Sequence[int] | I64, clocks: Clocks = NO_CLOCKS) -> InstantCells:
        """Return what the cells show of a row of instants."""
        offset = clocks.offset(row.source, row.pid)
        return samples.instant_cells(self.indexes[row.source], row.number, edges, offset)

    def sample_cells(self, row: Row, edges: Sequence[int] | I64, clocks: Clocks = NO_CLOCKS) -> SampleCells:
        """Return what the cells show of a counter series."""
        offset = clocks.offset(row.source, row.pid)
        return samples.sample_cells(self.indexes[row.source], row.number, edges, offset)

    def lane_cells(self, lane: Lane | int, edges: Sequence[int] | I64, clocks: Clocks = NO_CLOCKS) -> Cells:
        """Return what the cells show of a lane folded into one line."""
        lane = self.lanes[lane] if isinstance(lane, int) else lane
        offset = clocks.offset(lane.source, lane.pid)
        return lane_cells(self.indexes[lane.source], lane.number, edges, offset)

    def busy(
        self, edges: Sequence[int] | I64, clocks: Clocks = NO_CLOCKS, lanes: Sequence[int] | None = None
    ) -> Busy:
        """Return how busy these lanes (default: all) are per cell; an even sample of very many lanes."""
        places = range(len(self.lanes)) if lanes is None else lanes
        asked: Sequence[int] = places
        if len(places) > MINIMAP_LANES:
            asked = [places[i * len(places) // MINIMAP_LANES] for i in range(MINIMAP_LANES)]
        parts = []
        for place in asked:
            lane = self.lanes[place]
            parts.append((self.indexes[lane.source], lane.number, clocks.offset(lane.source, lane.pid)))
        return busy_of(parts, edges, of=len(places))

    def category(self, row: Row, number: int) -> str:
        """Return a category by its number in cells and spans."""
        return self.indexes[row.source].categories[number]

    def name(self, row: Row, at: int) -> str:
        """Return the raw name of the slice or instant at an index within its row; a sample's series."""
        index = self.indexes[row.source]
        if row.kind is RowKind.SAMPLES:
            return row.series
        column = "slices.name" if row.kind is RowKind.SLICES else "instants.name"
        return index.string(int(index.column(column)[self._place(row, at)]))

    def label(self, row: Row, at: int) -> str:
        """Return the short name of the slice or instant at an index within its row."""
        return short_name(self.name(row, at))

    # -- moving -------------------------------------------------------------------------------------------

    def bounds(self, row: Row, at: int, clocks: Clocks = NO_CLOCKS) -> tuple[int, int]:
        """Return (start, end) in trace time of what lies at an index within its row."""
        index, offset = self.indexes[row.source], clocks.offset(row.source, row.pid)
        start = int(lookup.row_starts(index, row.number)[at])
        ns = int(index.duration([self._place(row, at)])[0]) if row.kind is RowKind.SLICES else 0
        return start + offset, start + ns + offset

    def slice_at(self, row: Row, time: int, clocks: Clocks = NO_CLOCKS) -> int | None:
        """Return the index within the row of the slice that covers a time, None in a gap."""
        if row.kind is not RowKind.SLICES:
            return None
        return lookup.slice_at(self.indexes[row.source], row.number, self._lane_time(row, time, clocks))

    def next_after(self, row: Row, time: int, clocks: Clocks = NO_CLOCKS) -> int | None:
        """Return the index within the row of the first thing that starts after a time."""
        return lookup.next_after(self.indexes[row.source], row.number, self._lane_time(row, time, clocks))

    def previous_before(self, row: Row, time: int, clocks: Clocks = NO_CLOCKS) -> int | None:
        """Return the index within the row of the last thing that starts before a time."""
        return lookup.previous_before(
            self.indexes[row.source], row.number, self._lane_time(row, time, clocks)
        )

    def nearest(self, row: Row, time: int, clocks: Clocks = NO_CLOCKS) -> int | None:
        """Return the index within the row of what lies at a time or closest to it."""
        return lookup.nearest(self.indexes[row.source], row.number, self._lane_time(row, time, clocks))

    def slice_id(self, row: Row, at: int) -> SliceId:
        """Return the identity of the slice at an index within its row."""
        return self._id(row.source, self._place(row, at))

    def ordinal(self, row: Row, at: int) -> int:
        """Return the event ordinal of what lies at an index within its row, of any kind."""
        index = self.indexes[row.source]
        column = {
            RowKind.SLICES: "slices.ordinal",
            RowKind.INSTANTS: "instants.ordinal",
            RowKind.SAMPLES: "samples.ordinal",
        }[row.kind]
        return int(index.column(column)[self._place(row, at)])

    def find(self, slice_id: SliceId) -> tuple[Row, int] | None:
        """Return (row, index within the row) of a slice, None when there is no such slice."""
        position = self._position(slice_id)
        if position is None:
            return None
        number, at = lookup.place_of(self.indexes[slice_id.source], position)
        return self.row_number(slice_id.source, number), at

    def find_instant(self, source: int, ordinal: int) -> tuple[Row, int] | None:
        """Return (row, index within the row) of an instant or counter sample by its event's ordinal."""
        if not 0 <= source < len(self.indexes):
            return None
        index = self.indexes[source]
        for kind, place in (
            (RowKind.INSTANTS, index.instant_of(ordinal)),
            (RowKind.SAMPLES, index.sample_of(ordinal)),
        ):
            if place is not None:
                rows = index.rows
                mask = (
                    (rows["kind"] == kind)
                    & (rows["first"] <= place)
                    & (place < rows["first"] + rows["count"])
                )
                number = int(np.flatnonzero(mask)[0])
                return self.row_number(source, number), place - int(rows[number]["first"])
        return None

    def parent(self, slice_id: SliceId) -> SliceId | None:
        """Return the innermost slice that contains this one whole."""
        position = self._position(slice_id)
        parent = None if position is None else self.indexes[slice_id.source].parent(position)
        return None if parent is None else self._id(slice_id.source, parent)

    def ancestors(self, slice_id: SliceId, limit: int = 1000) -> list[SliceId]:
        """Return the slices around this one, innermost first, at most `limit`."""
        position = self._position(slice_id)
        if position is None:
            return []
        around = lookup.ancestors(self.indexes[slice_id.source], position, limit)
        return [self._id(slice_id.source, ancestor) for ancestor in around]

    def child_at(self, slice_id: SliceId, time: int, clocks: Clocks = NO_CLOCKS) -> SliceId | None:
        """Return the direct child that covers a time, else the one nearest to it."""
        found = self.find(slice_id)
        if found is None:
            return None
        row, at = found
        index = self.indexes[row.source]
        child = lookup.child_at(index, self._place(row, at), self._lane_time(row, time, clocks))
        return None if child is None else self._id(row.source, child)

    def children(self, slice_id: SliceId, limit: int | None = 1000) -> list[SliceId]:
        """Return the direct children in time order, at most `limit`."""
        position = self._position(slice_id)
        if position is None:
            return []
        found = lookup.children(self.indexes[slice_id.source], position, limit)
        return [self._id(slice_id.source, child) for child in found]

    # -- one slice in full --------------------------------------------------------------------------------

    def detail(self, slice_id: SliceId) -> SliceDetail | None:
        """Return what the index knows about a slice (lane time), None when there is no such slice."""
        position = self._position(slice_id)
        if position is None:
            return None
        return slice_detail(self.indexes[slice_id.source], slice_id.source, position)

    def instant_detail(self, row: Row, at: int) -> InstantDetail:
        """Return what the index knows about an instant (lane time)."""
        return instant_detail(self.indexes[row.source], row.source, row.number, at)

    def sample_detail(self, row: Row, at: int) -> SampleDetail:
        """Return what the index knows about a counter sample (lane time)."""
        return sample_detail(self.indexes[row.source], row.source, row.number, at)

    def arguments(self, slice_id: SliceId) -> Arguments:
        """Return the arguments of a slice, read from the source; trouble is told in the answer's
        `problem`.
        """
        index = self.indexes[slice_id.source]
        position = self._position(slice_id)
        end = None if position is None else index.end_ordinal(position)
        return read_arguments(index, slice_id.ordinal, end)

    def event_arguments(self, source: int, ordinal: int) -> Arguments:
        """Return the arguments of any event by its ordinal: instants, counter samples, flows."""
        return read_arguments(self.indexes[source], ordinal, None)

    def flows_in(self, slice_id: SliceId, limit: int | None = 1000) -> list[Arrow]:
        """Return the flows that end in a slice."""
        return self._arrows(slice_id, flows_in, limit)

    def flows_out(self, slice_id: SliceId, limit: int | None = 1000) -> list[Arrow]:
        """Return the flows that start in a slice."""
        return self._arrows(slice_id, flows_out, limit)

    def _arrows(
        self, slice_id: SliceId, ask: Callable[[Index, int, int | None], list[Flow]], limit: int | None
    ) -> list[Arrow]:
        position = self._position(slice_id)
        if position is None:
            return []
        source = slice_id.source
        return [
            Arrow(
                flow.category,
                None if flow.source_position is None else self._id(source, flow.source_position),
                None if flow.target_position is None else self._id(source, flow.target_position),
            )
            for flow in ask(self.indexes[source], position, limit)
        ]

    def chain(self, slice_id: SliceId, clocks: Clocks = NO_CLOCKS) -> list[Link]:
        """Return kernel <- launch <- op <- annotation from this slice outward, itself first."""
        position = self._position(slice_id)
        if position is None:
            return []
        source, index = slice_id.source, self.indexes[slice_id.source]
        found = []
        for link in chain_of(index, position):
            number, at = lookup.place_of(index, link.position)
            row = self.row_number(source, number)
            start, end = self.bounds(row, at, clocks)
            name = self.name(row, at)
            category = index.categories[int(index.column("slices.category")[link.position])]
            found.append(
                Link(
                    link.role,
                    link.via,
                    self._id(source, link.position),
                    name,
                    short_name(name),
                    category,
                    start,
                    end - start,
                )
            )
        return found

    def launches(self, source: int) -> Launches:
        """Return which launch all device work of a source comes from; found out once."""
        if source not in self._launches:
            self._launches[source] = launches_of(self.indexes[source])
        return self._launches[source]

    def kernels_under(self, slice_id: SliceId) -> Launched | None:
        """Return the device work launched within a slice's time on its lane; None for no such slice."""
        position = self._position(slice_id)
        if position is None:
            return None
        return kernels_under(self.indexes[slice_id.source], self.launches(slice_id.source), position)

    # -- inner --------------------------------------------------------------------------------------------

    def _place(self, row: Row, at: int) -> int:
        if not 0 <= at < row.count:
            raise IndexError(at)
        return int(self.indexes[row.source].rows[row.number]["first"]) + at

    def _lane_time(self, row: Row, time: int, clocks: Clocks) -> int:
        return time - clocks.offset(row.source, row.pid)

    def _id(self, source: int, position: int) -> SliceId:
        slice_id = SliceId(source, int(self.indexes[source].column("slices.ordinal")[position]))
        self._remember(slice_id, position)
        return slice_id

    def _remember(self, slice_id: SliceId, position: int) -> None:
        """Keep where a slice lies: finding it by its ordinal again would look through the column."""
        if len(self._positions) >= REMEMBERED:
            self._positions.clear()
        self._positions[slice_id] = position

    def _position(self, slice_id: SliceId) -> int | None:
        found = self._positions.get(slice_id)
        if found is None and 0 <= slice_id.source < len(self.indexes):
            found = self.indexes[slice_id.source].position_of(slice_id.ordinal)
            if found is not None:
                self._remember(slice_id, found)
        return found


def open_trace(
    paths: str | Path | Sequence[str | Path],
    *,
    index_dir: Path | None = None,
    decoder: str = "orjson",
    workers: int | None = None,
    force: bool = False,
    choice: Choice = NEWEST,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> Trace:
    """Open one or several trace files, indexing those that are not indexed yet.

    Of several captures among them the newest is opened, unless the choice is another; what is left out, and
    which ranks are missing, is told in the notes. In a folder what is no trace is passed by and told in the
    notes, unless nothing else is there. Raises UnreadableError when an input is no trace, UsageError for a
    choice that leaves nothing, CacheError when no index can be written anywhere.
    """
    from .index.opening import open_indexes

    opened = open_indexes(
        [paths] if isinstance(paths, str | Path) else list(paths),
        choice=choice,
        index_dir=index_dir,
        decoder=decoder,
        workers=workers,
        force=force,
        progress=progress,
        cancelled=cancelled,
    )
    return _trace_of(opened)


def trace_of(path: str | Path, index: Index) -> Trace:
    """Return the trace of one file whose index is open already."""
    from .index.opening import opened_alone

    return _trace_of(opened_alone(path, index))


def _trace_of(opened: Opened) -> Trace:
    trace = Trace(opened.indexes, opened.members, opened.captures, opened.shown)
    if trace.alignment.text:
        opened.indexes[0].notes += (trace.alignment.text,)
    return trace


__all__ = [
    "Arguments",
    "Arrow",
    "Busy",
    "Cells",
    "InstantCells",
    "InstantDetail",
    "Lane",
    "LaneKind",
    "LaneList",
    "Launched",
    "Link",
    "Process",
    "Row",
    "RowKind",
    "SampleCells",
    "SampleDetail",
    "SliceDetail",
    "SourceInfo",
    "Span",
    "Step",
    "Trace",
    "open_trace",
    "plain",
    "trace_of",
]
