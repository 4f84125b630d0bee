"""The sources, processes, lanes and rows of a trace, and the cells that are drawn of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import I64
from ..base.clock import NO_CLOCKS, Clocks
from ..base.kineto import RUNTIME
from ..base.short_names import short_name
from ..index.format import LaneRole, RowKind
from ..index.member import Member
from ..index.store import Index
from ..query.busy import Busy, SeriesRange, busy_of, lane_cells, sample_cells, series_range, spans, work_cells
from ..query.cells import Cells, SampleCells, Span, row_cells
from ..query.drawn import LeadingName, MarkFacts, SpanFacts, mark_facts, span_facts, span_names
from ..query.lanes import (
    LaneList,
    RowColumns,
    categories_besides_work,
    drawn_categories,
    make_lane,
    make_processes,
    make_row,
    make_source,
    ns_by_lane,
)
from ..query.lookup import category_of_slice
from ..query.own_clock import end_of_lanes
from ..query.views import Lane, Process, Row, SliceId, SourceInfo

if TYPE_CHECKING:
    from ..query.rowview import RowView
    from .owners import Owners

MINIMAP_LANES = 512
"""Lanes that the minimap reads at most; of more lanes it reads an even sample."""
ROWS_HELD = 1 << 14
"""Rows that are held in memory, or a frame would make a new one of each that it shows."""


class TraceLanes:
    """The lanes of one or several indexes; methods take and give trace time (lane time + clock offset)."""

    def __init__(self, indexes: Sequence[Index], members: Sequence[Member] = ()) -> None:
        """Serve the lanes of these indexes, each the file of a member."""
        self.indexes, self.members = tuple(indexes), tuple(members)
        self.lane_bases = [0, *accumulate(len(index.lanes) for index in self.indexes)]
        self.lanes = LaneList(self.lane_bases[-1], self._make_lane)
        self._rows: dict[tuple[int, int], Row] = {}
        self._positions: dict[SliceId, int] = {}
        self._owners: dict[int, Owners] = {}
        self._spans: dict[Clocks, tuple[int, int]] = {}
        self._besides_work: dict[int, frozenset[int]] = {}

    def close(self) -> None:
        """Release all mappings and locks."""
        captures = (index for owners in self._owners.values() for index in owners.indexes[1:])
        for index in (*self.indexes, *captures):
            index.close()

    def rank(self, source: int) -> int | None:
        """Return the rank whose file a source is, None for a host process or a telemetry log."""
        return self.members[source].rank if source < len(self.members) else None

    # -- contents ----------------------------------------------------------------------------------------

    @property
    def source_count(self) -> int:
        """How many sources there are, logs and computed counters among them."""
        return len(self.indexes)

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
        processes = (
            make_processes(index, source, base)
            for source, (index, base) in enumerate(zip(self.indexes, self.lane_bases))
        )
        return tuple(chain.from_iterable(processes))

    @cached_property
    def _process_bases(self) -> list[int]:
        return [0, *accumulate(len(index.processes) for index in self.indexes)]

    def _make_lane(self, lane_index: int) -> Lane:
        source = bisect_right(self.lane_bases, lane_index) - 1
        index, number = self.indexes[source], lane_index - self.lane_bases[source]
        process = self._processes[self._process_bases[source] + int(index.lanes[number]["process"])]
        return make_lane(index, process, lane_index, number)

    def lanes_of(self, source: int) -> Sequence[Lane]:
        """Return the lanes of a source."""
        return self.lanes[self.lane_bases[source] : self.lane_bases[source + 1]]

    def row(self, lane: Lane | int, depth: int) -> Row:
        """Return the row at a depth (0 is topmost) of a lane, which may be given by its index in `lanes`."""
        lane = self.lanes[lane] if isinstance(lane, int) else lane
        return self._row(lane, lane.rows[depth])

    def row_number(self, source: int, number: int) -> Row:
        """Return the row with this number in a source's row table."""
        lane_index = self.lane_bases[source] + int(self.indexes[source].rows[number]["lane"])
        return self._row(self.lanes[lane_index], number)

    def rows(self, lane: Lane | int) -> list[Row]:
        """Return all rows of a lane, topmost first."""
        lane = self.lanes[lane] if isinstance(lane, int) else lane
        return [self.row_number(lane.source, number) for number in lane.rows]

    def row_columns(self, lane: Lane) -> RowColumns:
        """Return what the rows of a lane hold, from their sums."""
        return RowColumns(self.indexes[lane.source], lane.rows)

    @cached_property
    def launching_lanes(self) -> Mapping[int, int]:
        """The places in `lanes` of the host's threads that call a device's runtime, and for how many ns."""
        ns_of: dict[int, int] = {}
        for index, base in zip(self.indexes, self.lane_bases):
            calls = [number for number, category in enumerate(index.categories) if category in RUNTIME]
            for number, ns in ns_by_lane(index, calls).items():
                if ns and index.lanes[number]["role"] == LaneRole.HOST:
                    ns_of[base + number] = ns
        return MappingProxyType(ns_of)

    @cached_property
    def device_lanes(self) -> frozenset[int]:
        """The places in `lanes` of devices' lanes, and of counters of processes that have some."""
        lanes = set()
        for index, base in zip(self.indexes, self.lane_bases):
            is_device = index.lanes["role"] == LaneRole.DEVICE
            owners = index.lanes["process"][is_device]
            measured = (index.lanes["role"] == LaneRole.TELEMETRY) & np.isin(index.lanes["process"], owners)
            lanes.update((base + np.flatnonzero(is_device | measured)).tolist())
        return frozenset(lanes)

    @cached_property
    def drawn_categories(self) -> tuple[str, ...]:
        """The categories of all slices and instants, source by source, each once; "" for none at all."""
        return tuple(
            dict.fromkeys(
                index.categories[number] for index in self.indexes for number in drawn_categories(index)
            )
        )

    # -- time ---------------------------------------------------------------------------------------------

    def span_at(self, clocks: Clocks = NO_CLOCKS) -> tuple[int, int]:
        """Return the time [start, end) of everything that is drawn, in trace time under these clocks.

        An instant takes 1 ns: the span ends after it.
        """
        if clocks not in self._spans:
            self._spans[clocks] = self._span_at(clocks)
        return self._spans[clocks]

    def _span_at(self, clocks: Clocks) -> tuple[int, int]:
        starts, ends = [], []
        for process in self.processes:
            if len(process.lanes):
                index, base = self.indexes[process.source], self.lane_bases[process.source]
                part = index.lanes[process.lanes.start - base : process.lanes.stop - base]
                offset = clocks.offset(process.source, process.pid)
                starts.append(int(part["start"].min()) + offset)
                ends.append(end_of_lanes(index, part) + offset)
        return (min(starts), max(ends)) if starts else (0, 0)

    # -- drawing ------------------------------------------------------------------------------------------

    def cells(
        self,
        row: Row,
        edges: Sequence[int] | I64,
        clocks: Clocks = NO_CLOCKS,
        leaving_out: Collection[int] = (),
    ) -> Cells:
        """Return what the W cells between W + 1 edges show of a row of slices; slices of categories that are
        left out take no time, and lead only where nothing else lies.
        """
        offset = clocks.offset(row.source, row.pid)
        return row_cells(self.indexes[row.source], row.number, edges, offset, leaving_out)

    def besides_work(self, source: int) -> frozenset[int]:
        """Return the categories, by number, that are no work: annotations, and on devices' lanes waits."""
        if source not in self._besides_work:
            self._besides_work[source] = categories_besides_work(self.indexes[source])
        return self._besides_work[source]

    def spans(self, row: Row, cells: Cells) -> list[Span]:
        """Return the spans that a row of slices with these cells is drawn as."""
        return spans(self.indexes[row.source], row.number, cells)

    def span_facts(self, row: Row, spans: Sequence[Span]) -> SpanFacts:
        """Return what is known of the slices that the spans of a row stand for (lane time)."""
        return span_facts(self.indexes[row.source], row.number, spans)

    def span_names(
        self,
        row: Row,
        spans: Sequence[Span],
        edges: I64,
        left: RowView | None = None,
        leaving_out: Collection[int] = (),
    ) -> list[LeadingName]:
        """Return which name has most time in each span of several slices, between edges in lane time; `left`
        is what a filter leaves of the row. Slices of categories that are left out lead where no others are.
        """
        return span_names(self.indexes[row.source], row.number, spans, edges, left, leaving_out)

    def mark_facts(self, row: Row, edges: Sequence[int] | I64) -> MarkFacts:
        """Return the cells between edges (lane time) that hold instants of a row, and what the first are."""
        return mark_facts(self.indexes[row.source], row.number, edges)

    def sample_cells(self, row: Row, edges: Sequence[int] | I64, clocks: Clocks = NO_CLOCKS) -> SampleCells:
        """Return what the cells show of a counter series."""
        offset = clocks.offset(row.source, row.pid)
        return sample_cells(self.indexes[row.source], row.number, edges, offset)

    def series_range(self, row: Row) -> SeriesRange:
        """Return which values a counter series has, and the range that it is drawn in."""
        return series_range(self.indexes[row.source], row.number)

    def lane_cells(self, lane: Lane | int, edges: Sequence[int] | I64, clocks: Clocks = NO_CLOCKS) -> Cells:
        """Return what the cells show of a lane folded into one line: annotations where there is no other."""
        lane = self.lanes[lane] if isinstance(lane, int) else lane
        index, offset = self.indexes[lane.source], clocks.offset(lane.source, lane.pid)
        return lane_cells(index, lane.number, edges, offset, self.besides_work(lane.source))

    def work_cells(self, lane: Lane, edges: Sequence[int] | I64, clocks: Clocks = NO_CLOCKS) -> Cells:
        """Return what the cells show of the work on a device's lane: annotations and waits are none."""
        index, offset = self.indexes[lane.source], clocks.offset(lane.source, lane.pid)
        return work_cells(index, lane.number, edges, offset, self.besides_work(lane.source))

    def busy(
        self, edges: Sequence[int] | I64, clocks: Clocks = NO_CLOCKS, lanes: Sequence[int] | None = None
    ) -> Busy:
        """Return how busy these lanes (default: all) are per cell; an even sample of very many lanes."""
        lane_indices = range(len(self.lanes)) if lanes is None else lanes
        sampled: Sequence[int] = lane_indices
        if len(lane_indices) > MINIMAP_LANES:
            sampled = [lane_indices[i * len(lane_indices) // MINIMAP_LANES] for i in range(MINIMAP_LANES)]
        parts = []
        for lane_index in sampled:
            lane = self.lanes[lane_index]
            parts.append((self.indexes[lane.source], lane.number, clocks.offset(lane.source, lane.pid)))
        return busy_of(parts, edges, of=len(lane_indices))

    def categories(self, source: int) -> Sequence[str]:
        """Return the categories of a source, in the order of their numbers in cells and spans."""
        return self.indexes[source].categories

    def text(self, source: int, number: int) -> str:
        """Return a text of a source by its number in facts."""
        return self.indexes[source].string(number)

    def slice_category(self, row: Row, at: int) -> str:
        """Return the category of the slice at an index within its row."""
        return category_of_slice(self.indexes[row.source], self.position(row, at))

    def text_count(self, source: int) -> int:
        """Return how many different texts (names, categories, values) a source has."""
        return max(0, self.indexes[source].length("strings.offset") - 1)

    def name(self, row: Row, at: int) -> str:
        """Return the raw name of the slice or instant at an index within its row; a sample's series."""
        index = self.indexes[row.source]
        if row.kind is RowKind.SAMPLES:
            return row.series
        column = "slices.name" if row.kind is RowKind.SLICES else "instants.name"
        return index.string(int(index.column(column)[self.position(row, at)]))

    def label(self, row: Row, at: int) -> str:
        """Return the short name of the slice or instant at an index within its row."""
        return short_name(self.name(row, at))

    # -- inner --------------------------------------------------------------------------------------------

    def _row(self, lane: Lane, number: int) -> Row:
        row = self._rows.get((lane.source, number))
        if row is None:
            if len(self._rows) >= ROWS_HELD:
                self._rows.clear()
            row = self._rows[lane.source, number] = make_row(self.indexes[lane.source], lane, number)
        return row

    def position(self, row: Row, at: int) -> int:
        """Return the position of what stands at an index within a row; IndexError outside the row."""
        if not 0 <= at < row.count:
            raise IndexError(at)
        return int(self.indexes[row.source].rows[row.number]["first"]) + at

    def _lane_time(self, row: Row, time: int, clocks: Clocks) -> int:
        return time - clocks.offset(row.source, row.pid)
