"""From rows of the index to runs, marks and levels, cached by (row, window, clocks)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from tracelane.core.base.arrays import F64, I64
from tracelane.core.base.clock import Clocks
from tracelane.core.base.ids import SliceId
from tracelane.core.base.safe_text import safe
from tracelane.core.base.short_names import short_name
from tracelane.core.index.format import RowKind, SliceFlag
from tracelane.core.index.store import Index
from tracelane.core.logs.log_index import LogIndex
from tracelane.core.query.busy import UNION_ROWS, lane_cells, spans, work_cells
from tracelane.core.query.cells import GREATEST, LOWEST, Cells, Span, row_cells
from tracelane.core.query.hit_marks import HitMarks, RowSpan
from tracelane.core.query.leading_names import RowSlices, leading_names
from tracelane.core.query.rowview import RowView, RowViews
from tracelane.core.query.samples import instant_cells, sample_cells
from tracelane.core.trace import Lane, Trace

from ..session import GapId, Selectable, Viewport
from .argument_colours import BY_ARGUMENT, ArgumentColours
from .drawn_rows import BusyRow, DrawnRow, InstantRow, SampleRow, SliceRow
from .palette import key_of, key_of_name
from .presets import device_lanes
from .quiet import no_work
from .runs import FULL, HIT, OVERLAP, RAGGED, WHOLE, Facts, InstantCell, ManyNames, Run, slice_runs
from .segments import COUNT_FROM, levels_of

if TYPE_CHECKING:
    from tracelane.core.query.hits import Hits

KEPT_ROWS = 1500
"""Drawn rows that are kept: several screens, so that going back up queries nothing."""
KEPT_NAMES = 100_000
BUSY_LANES = 8
"""A line that stands for many lanes reads at most this many: the time of a frame must not depend on their
number.
"""


ABOUT = "≈"
"""Stands before a share that was estimated from a sample of the slices."""
GAP = -1
"""The index of a selected gap: no slice has it."""


@dataclass(frozen=True)
class Selected:
    """The selection, found in the index: where it lies and when (trace time without clocks, ns)."""

    source: int
    row: int
    index: int
    start: int
    end: int
    kind: RowKind


@dataclass(frozen=True)
class LaneEdges:
    """The edges of a window's cells in lane time: exact, and as an int64 array for the queries."""

    times: list[int]
    array: Sequence[int]
    per_eighth: F64  # eighths of a cell that a ns takes


_UNCLOSED, _OVERLAPS = int(SliceFlag.UNCLOSED), int(SliceFlag.OVERLAP)

DIMMED = "quiet"
"""The colour of what a search does not match."""


class RowReader:
    """Draws rows of one trace, each once per window.

    `queries` counts the rows that were queried: moving the selection and scrolling back need none.
    """

    def __init__(self, trace: Trace, eighths: bool = False) -> None:
        """Draw rows of this trace, slice edges in eighths of a cell if asked for."""
        self.trace = trace
        self.eighths = eighths
        self.queries = 0
        self._rows: OrderedDict[tuple[object, ...], DrawnRow] = OrderedDict()
        self._names: dict[tuple[int, int, int, int, str], tuple[str, str]] = {}
        self._labels: dict[tuple[int, int], str] = {}
        self._scales: dict[tuple[int, int], tuple[float, float]] = {}
        self._extents: dict[tuple[int, int], tuple[float, float] | None] = {}
        self._by_argument = ArgumentColours()
        self._edges_of: tuple[Viewport, int] | None = None
        self._edges_made = LaneEdges([], [], np.empty(0))
        self._selected: tuple[Selectable | None, Selected | None] = (None, None)

        self._marked: RowViews | None = None
        self._marks: HitMarks | None = None
        self._left: RowViews | None = None
        self._sought = ("", "")
        self._searches = 0

    def look_for(self, search: Hits | None, left: Hits | None) -> None:
        """Mark what a search found, and draw only what a filter left; the rows drawn so far stay kept."""
        marked, filtered = self._sought
        if (self._marked and self._marked.hits) is not search:
            self._marked = None if search is None else RowViews(search)
            self._marks = None if search is None else HitMarks(search)
            marked = self._sought_key(search)
        if (self._left and self._left.hits) is not left:
            self._left = None if left is None else RowViews(left)
            filtered = self._sought_key(left)
        self._sought = marked, filtered

    def _sought_key(self, hits: Hits | None) -> str:
        """Return the cache key of rows drawn with these hits: the text, and which search for it."""
        self._searches += 1
        return "" if hits is None else f"{self._searches} {hits.filter.text}"

    # -- rows -----------------------------------------------------------------------------------------------

    def row(self, lane: Lane, depth: int, view: Viewport, clocks: Clocks, colour_by: str) -> DrawnRow:
        """Return what one row of a lane shows."""
        number = lane.rows[depth]
        offset = clocks.offset(lane.source, lane.pid)
        key = (lane.source, number, view, offset, colour_by, *self._sought)
        row = self._rows.get(key)
        if row is None:
            self.queries += 1
            row = self._keep(key, self._draw(lane, number, view, offset, colour_by))
        else:
            self._rows.move_to_end(key)
        return row

    def busy(self, lanes: tuple[int, ...], view: Viewport, clocks: Clocks) -> BusyRow:
        """Return the busy time of what stands for some lanes (of the BUSY_LANES with most slices)."""
        key = ("busy", lanes, view, frozenset(clocks.offsets.items()), *self._sought)
        row = self._rows.get(key)
        if isinstance(row, BusyRow):
            self._rows.move_to_end(key)
            return row
        busiest = [self.trace.lanes[number] for number in lanes]
        if len(busiest) > BUSY_LANES:
            busiest = sorted(busiest, key=lambda lane: -lane.slices)[:BUSY_LANES]
        rows = [
            (lane.source, lane.rows.start, lane.rows.stop)
            for lane in map(self.trace.lanes.__getitem__, lanes)
        ]
        busy_row = replace(self._busy(busiest, view, clocks), hits=self.hits_in(rows, view))
        self._keep(key, busy_row)
        return busy_row

    def hits_in(self, rows: Sequence[RowSpan], view: Viewport) -> tuple[bool, ...]:
        """Return in which cells of a window hits of these rows lie; empty where none does."""
        rows = [span for span in rows if self._marks and span[0] < len(self._marks.hits.indexes)]
        if self._marks is None or not rows:
            return ()
        touched = self._marks.touched(rows, view.edges())
        return tuple(touched.tolist()) if touched.any() else ()

    @property
    def hits(self) -> Hits | None:
        """What a search found, as it is marked."""
        return None if self._marked is None else self._marked.hits

    @property
    def left(self) -> Hits | None:
        """What a filter left, as it is drawn."""
        return None if self._left is None else self._left.hits

    def _keep(self, key: tuple[object, ...], row: DrawnRow) -> DrawnRow:
        self._rows[key] = row
        if len(self._rows) > KEPT_ROWS:
            self._rows.popitem(last=False)
        return row

    def _edges(self, view: Viewport, offset: int) -> LaneEdges:
        """Return the cells' edges for lanes with this clock offset, made once per window."""
        if self._edges_of != (view, offset):
            times = [edge - offset for edge in view.edges()]
            array = np.array([min(max(time, LOWEST), GREATEST) for time in times], np.int64)
            # Queries would convert a list again for every row.
            self._edges_made = LaneEdges(
                times, cast("Sequence[int]", array), FULL / np.maximum(array[1:] - array[:-1], 1)
            )
            self._edges_of = (view, offset)
        return self._edges_made

    def _index(self, source: int) -> Index:
        return self.trace.indexes[source]

    def _draw(self, lane: Lane, number: int, view: Viewport, offset: int, colour_by: str) -> DrawnRow:
        index = self._index(lane.source)
        row = index.rows[number]
        kind = int(row["kind"])
        if kind == RowKind.SLICES:
            return self._slices(lane, index, number, self._edges(view, offset), colour_by)
        if kind == RowKind.INSTANTS:
            return self._instants(lane.source, index, number, self._edges(view, offset), colour_by)
        return self._samples(lane, index, number, self._edges(view, offset))

    # -- slices ---------------------------------------------------------------------------------------------

    def _slices(self, lane: Lane, index: Index, number: int, edges: LaneEdges, colour_by: str) -> SliceRow:
        source = lane.source
        cells = self._cells(source, index, number, edges.array)
        drawn = spans(index, number, cells)
        if not drawn:
            return SliceRow(())
        first = int(index.rows[number]["first"])
        positions = np.array([span.at for span in drawn], np.int64) + first
        facts = self._facts(source, index, positions, drawn, colour_by)
        names = self._many_names(source, index, number, drawn, edges)
        levels: list[int] = covered_levels(cells, edges.per_eighth).tolist()
        runs = slice_runs(drawn, facts, edges.times, names, self.eighths, levels)
        return SliceRow(self._with_hits(runs, source, number, edges), lane.index in device_lanes(self.trace))

    def _many_names(
        self, source: int, index: Index, number: int, drawn: list[Span], edges: LaneEdges
    ) -> dict[int, ManyNames]:
        """Return the labels of the spans of several slices that are wide enough for one."""
        wide = [i for i, span in enumerate(drawn) if not span.whole and span.right - span.left >= COUNT_FROM]
        if not wide:
            return {}
        row, left = index.rows[number], self._view(self._left, source, number)
        first, count = int(row["first"]), int(row["count"])
        starts = index.column("slices.start")[first : first + count] if left is None else left.starts
        slices = RowSlices(index, first, starts, None if left is None else left.indices)
        leads = leading_names(
            slices, [edges.array[drawn[i].left] for i in wide], [edges.array[drawn[i].right] for i in wide]
        )
        names = {}
        for i, lead in zip(wide, leads):
            name = lead.name
            if name < 0:
                name = int(index.column("slices.name")[first + drawn[i].at])
            share = share_label(lead.share, lead.is_exact)
            label = self._labels.get((source, name))
            if label is None:
                if len(self._labels) >= KEPT_NAMES:
                    self._labels.clear()
                label = self._labels[source, name] = safe(short_name(index.string(name)))
            names[i] = ManyNames(label, share, lead.slices)
        return names

    def _view(self, views: RowViews | None, source: int, number: int) -> RowView | None:
        if views is None or source >= len(views.hits.indexes):
            return None
        return views.of(source, number)

    def _cells(self, source: int, index: Index, number: int, edges: Sequence[int]) -> Cells:
        left = self._view(self._left, source, number)
        return row_cells(index, number, edges) if left is None else left.cells(edges)

    def _with_hits(
        self, runs: tuple[Run, ...], source: int, number: int, edges: LaneEdges
    ) -> tuple[Run, ...]:
        if self._marked is None or not self._marked.hits.count:
            return runs
        view = self._view(self._marked, source, number)
        touched = None if view is None or not view.count else view.cells(edges.array).count > 0
        if view is None or touched is None or not touched.any():
            return tuple(run._replace(key=DIMMED) for run in runs)
        indices = np.array([run.at for run in runs], np.int64)
        is_hit = np.isin(indices, view.indices).tolist()
        return tuple(
            run._replace(flags=run.flags | HIT)
            if (hit if run.flags & WHOLE else bool(touched[run.left : run.right].any()))
            else run._replace(key=DIMMED)
            for run, hit in zip(runs, is_hit)
        )

    def _facts(
        self, source: int, index: Index, positions: np.ndarray, drawn: list[Span], colour_by: str
    ) -> list[Facts]:
        names = index.column("slices.name")[positions].tolist()
        starts = index.column("slices.start")[positions].tolist()
        durations = index.duration(positions).tolist()
        flags = _sparse(index, "flags", positions, 0)
        cnames = _sparse(index, "promoted.cname", positions, -1)
        known = self._names
        facts: list[Facts] = []
        for span, name, start, duration, flag, cname in zip(drawn, names, starts, durations, flags, cnames):
            looked_up = known.get((source, name, span.category, cname, colour_by))
            if looked_up is None:
                looked_up = self._look_up(source, index, name, span.category, cname, colour_by)
            bits = 0
            if flag:
                bits = (RAGGED if flag & _UNCLOSED else 0) | (OVERLAP if flag & _OVERLAPS else 0)
            facts.append(Facts(looked_up[0], looked_up[1], start, start + duration, bits))
        if colour_by.startswith(BY_ARGUMENT):
            keys = self._by_argument.keys(source, index, colour_by, positions)
            return [fact._replace(key=key) for fact, key in zip(facts, keys)]
        return facts

    def _look_up(
        self, source: int, index: Index, name: int, category: int, cname: int, colour_by: str
    ) -> tuple[str, str]:
        raw = index.string(name)
        label = safe(short_name(raw))
        key = key_of(
            index.categories[category] if category >= 0 else "",
            raw if raw.startswith("nccl") else label,
            index.string(cname) if cname >= 0 else "",
            colour_by,
        )
        if len(self._names) >= KEPT_NAMES:
            self._names.clear()
        self._names[source, name, category, cname, colour_by] = (key, label)
        return key, label

    # -- instants and samples -------------------------------------------------------------------------------

    def _instants(
        self, source: int, index: Index, number: int, edges: LaneEdges, colour_by: str
    ) -> InstantRow:
        cells = instant_cells(index, number, edges.array)
        occupied = np.flatnonzero(cells.count)
        at = cells.first[occupied] + int(index.rows[number]["first"])
        names = index.column("instants.name")[at].tolist()
        categories = index.column("instants.category")[at].tolist()
        marks = []
        for cell, count, first, name, category in zip(
            occupied.tolist(),
            cells.count[occupied].tolist(),
            cells.first[occupied].tolist(),
            names,
            categories,
        ):
            looked_up = self._names.get((source, name, category, -1, colour_by))
            if looked_up is None:
                looked_up = self._look_up(source, index, name, category, -1, colour_by)
            marks.append(InstantCell(cell, looked_up[0], count, first))
        return InstantRow(tuple(marks))

    def _samples(self, lane: Lane, index: Index, number: int, edges: LaneEdges) -> SampleRow:
        cells = sample_cells(index, number, edges.array)
        least, most = self._scale(lane.source, index, number)
        extent = self._extents[lane.source, number]
        series = safe(index.string(int(index.rows[number]["series"])))
        key, values = key_of_name(lane.name or series), tuple(cells.last.tolist())
        if extent is None:  # a value that never varies is a thin line
            flat = [(-1, -1) if value != value else (0, 0) for value in cells.high.tolist()]
            return SampleRow(tuple(flat), values, series, "quiet")
        levels = levels_of(cells.low.tolist(), cells.high.tolist(), least, most)
        return SampleRow(tuple(levels), values, series, key, extent)

    def _scale(self, source: int, index: Index, number: int) -> tuple[float, float]:
        """Return the least and greatest value of the whole series, zero included: its scale does not jump.

        A log's series has a scale of its own: temperatures are never near zero.
        """
        scale = self._scales.get((source, number))
        if scale is None:
            if isinstance(index, LogIndex):
                self._extents[source, number] = _extent(*(index.metrics[number].series.bounds or (0.0, 0.0)))
                scale = self._scales[source, number] = index.scale(number)
                return scale
            row = index.rows[number]
            whole = [int(row["start"]), int(row["end"]) + 1]
            cells = sample_cells(index, number, whole)
            low, high = float(cells.low[0]), float(cells.high[0])
            self._extents[source, number] = _extent(low, high)
            finite = [value for value in (low, high, 0.0) if np.isfinite(value)]
            scale = self._scales[source, number] = (min(finite), max(finite))
        return scale

    # -- folded lines ---------------------------------------------------------------------------------------

    def _busy(self, lanes: list[Lane], view: Viewport, clocks: Clocks) -> BusyRow:
        width = view.width
        best = np.full(width, -1, np.int64)
        keys = ["quiet"] * width
        for lane in lanes:
            self.queries += 1
            index = self._index(lane.source)
            edges = self._edges(view, clocks.offset(lane.source, lane.pid))
            cells = self._lane_cells(lane, index, edges.array)
            level = np.where(cells.count > 0, covered_levels(cells, edges.per_eighth), -1)
            better = (level > best).nonzero()[0]
            categories = cells.category[better].tolist()
            key = {
                number: key_of(index.categories[number], lane.title)
                for number in {*categories}
                if number >= 0
            }
            for cell, number in zip(better.tolist(), categories):
                if number >= 0:
                    keys[cell] = key[number]
            best[better] = level[better]
        return BusyRow(tuple(best.tolist()), tuple(keys))

    def _lane_cells(self, lane: Lane, index: Index, edges: Sequence[int]) -> Cells:
        """Return a folded lane's cells; under a filter of what is left: the busiest row of each cell."""
        if self._left is None or not (lane.slices or lane.unclosed):
            if lane.slices and lane.index in device_lanes(self.trace):
                return work_cells(index, lane.number, edges, leaving_out=no_work(index))
            return lane_cells(index, lane.number, edges)
        width = len(edges) - 1
        count, busy = np.zeros(width, np.int64), np.full(width, -1, np.int64)
        longest, category = np.full(width, -1, np.int64), np.full(width, -1, np.int64)
        for number in lane.rows[:UNION_ROWS]:
            if int(index.rows[number]["kind"]) != RowKind.SLICES:
                continue
            cells = self._cells(lane.source, index, number, edges)
            better = (cells.count > 0) & (cells.busy > busy)
            longest[better], category[better] = cells.longest[better], cells.category[better]
            busy[better] = cells.busy[better]
            np.maximum(count, cells.count, out=count)
        return Cells(count, longest, category, np.maximum(busy, 0))

    # -- selection ------------------------------------------------------------------------------------------

    def selected(self, selection: Selectable | None) -> Selected | None:
        """Return where the selection lies; looked up once per selection, never per frame."""
        if selection != self._selected[0]:
            self._selected = (selection, None if selection is None else self._find(selection))
        return self._selected[1]

    def _find(self, selection: Selectable) -> Selected | None:
        if not 0 <= selection.source < len(self.trace.indexes):
            return None
        index = self._index(selection.source)
        if isinstance(selection, SliceId | GapId):
            position = index.position_of(selection.ordinal)
            if position is None:
                return None
            row = index.row_of(position)
            first = int(index.rows[row]["first"])
            if isinstance(selection, GapId):
                from tracelane.core.tables.gap import gap_ended_by  # frames are drawn without analyses

                gap_row, clocks = self.trace.row_number(selection.source, row), self.trace.clocks
                gap = gap_ended_by(self.trace, gap_row, position - first, clocks)
                if gap is None:
                    return None
                offset = clocks.offset(gap_row.source, gap_row.pid)
                start, end = gap.start - offset, gap.end - offset
                return Selected(selection.source, row, GAP, start, end, RowKind.SLICES)
            start = index.start(position)
            return Selected(
                selection.source, row, position - first, start, index.end(position), RowKind.SLICES
            )
        for item, kind, column in (
            (index.instant_of(selection.ordinal), RowKind.INSTANTS, "instants.start"),
            (index.sample_of(selection.ordinal), RowKind.SAMPLES, "samples.start"),
        ):
            if item is None:
                continue
            rows = index.rows
            hit = np.flatnonzero(
                (rows["kind"] == kind) & (rows["first"] <= item) & (item < rows["first"] + rows["count"])
            )
            if len(hit):
                row = int(hit[0])
                start = int(index.column(column)[item])
                return Selected(selection.source, row, item - int(rows[row]["first"]), start, start, kind)
        return None


def share_label(share: float, is_exact: bool) -> str:
    """Return the share of one name in the time of several slices as text, "" where there is no other name."""
    if share in (0.0, 1.0):
        return ""
    percent = round(100 * share)
    mark = "" if is_exact else ABOUT
    if is_exact and not 1 <= percent <= 99:
        mark = "<" if percent < 1 else ">"
    return f"{mark}{min(99, max(1, percent))} %"


def _sparse(index: Index, column: str, positions: I64, missing: int) -> list[int]:
    """Return a sparse column's value at each of some ascending positions, or `missing`."""
    stored = index.column(f"{column}.position")
    if not len(stored):
        return [missing] * len(positions)
    ends = np.array((positions[0], positions[-1] + 1), stored.dtype)
    low, high = stored.searchsorted(ends).tolist()
    if low == high:
        return [missing] * len(positions)
    nearest = np.minimum(stored.searchsorted(positions.astype(stored.dtype)), len(stored) - 1)
    values = index.column(f"{column}.value")[nearest].astype(np.int64)
    at: list[int] = np.where(stored[nearest] == positions, values, missing).tolist()
    return at


def _extent(low: float, high: float) -> tuple[float, float] | None:
    """Return the least and greatest value of a series, None where it never varies."""
    return (low, high) if np.isfinite(low) and np.isfinite(high) and low < high else None


def covered_levels(cells: Cells, per_eighth: F64) -> I64:
    """Return how many eighths of each cell's time slices cover: 0 where none lies, else 1..8."""
    levels = np.rint(cells.busy * per_eighth)
    np.minimum(levels, FULL, out=levels)
    np.maximum(levels, cells.count > 0, out=levels)
    return levels.astype(np.int64)
