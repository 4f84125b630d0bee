"""From rows of a trace to runs, marks and levels, cached by (row, window, clocks)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tracelane.core.base.arrays import F64, I64
from tracelane.core.base.clock import Clocks
from tracelane.core.base.colours import drawn_kind, key_of
from tracelane.core.base.kineto import SliceKind
from tracelane.core.base.safe_text import safe
from tracelane.core.base.short_names import short_name
from tracelane.core.index.format import SliceFlag
from tracelane.core.query.busy import SeriesRange
from tracelane.core.query.cells import GREATEST, LOWEST, Cells, Span
from tracelane.core.query.drawn import SpanFacts
from tracelane.core.trace import Lane, LaneRole, Row, RowKind, Trace
from tracelane.core.trace.lane_order import drawn_device_lanes

from ..session import Selectable, Viewport
from .colour import BY_ARGUMENT, ArgumentColours
from .ranks import RANK_PARTS
from .runs import (
    BRACKET,
    FULL,
    HATCH,
    HIT,
    OVERLAP,
    RAGGED,
    WHOLE,
    BusyRow,
    DrawnRow,
    Facts,
    InstantCell,
    InstantRow,
    ManyNames,
    Run,
    SampleRow,
    SliceRow,
    slice_runs,
)
from .segments import COUNT_FROM, compact_count, levels_of, share_label
from .states import DrawnStates, line_runs, outlined, state_row, with_gaps, with_waits

if TYPE_CHECKING:
    from tracelane.core.query.hits import Hits
    from tracelane.core.query.rowview import HitMarks, RowSpan, RowView, RowViews
    from tracelane.core.tables.device.states import DeviceState

KEPT_ROWS = 1500
"""Drawn rows that are kept: several screens, so that going back up queries nothing."""
KEPT_RUNS = 60_000
"""Runs in them, 6 MB: 1500 rows that are dense in 300 columns would take 40 MB."""
KEPT_NAMES = 100_000
KEPT_EDGES = 64
"""Clocks of ranks for which the edges of a window's cells are kept."""
BUSY_LANES = 8
"""A line that stands for many lanes reads at most this many: the time of a frame must not depend on their
number.
"""


LABELLED_PARTS = ("", *RANK_PARTS[:2])
"""Lines of folded ranks that say why nothing is done, or for whom the rank waits."""
GAP = -1
"""The index of a selected gap: no slice has it."""


@dataclass(frozen=True)
class Selected:
    """The selection: where it lies, and when (lane time, ns)."""

    source: int
    row: int
    index: int
    start: int
    end: int


class LaneEdges(NamedTuple):
    """The edges of a window's cells in lane time: exact, and as an array for the queries."""

    times: list[int]
    array: I64
    per_eighth: F64  # eighths of a cell that a ns takes


_UNCLOSED, _OVERLAPS = int(SliceFlag.UNCLOSED), int(SliceFlag.OVERLAP)

DIMMED = "quiet"
"""The colour of what a search does not match."""
DIMMED_LEVEL, HIT_LEVEL = bytes((3,)), bytes((FULL,))
"""How bright that is in eighths, and what it matches: runs of one shade are seen, and take few bytes."""


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
        self._runs = 0  # in those rows
        self._names: dict[tuple[int, int, int, int, str, bool], tuple[str, str, int]] = {}
        self._labels: dict[tuple[int, int], str] = {}
        self._ranges: dict[tuple[int, int], SeriesRange] = {}
        self._by_argument = ArgumentColours()
        self._edges_of: Viewport | None = None
        self._edges_made: dict[int, LaneEdges] = {}  # of that window, by the offset of the lanes' clock
        self._selected: tuple[Selectable | None, Selected | None] = (None, None)

        self._states: DrawnStates | None = None
        self._marked: RowViews | None = None
        self._marks: HitMarks | None = None
        self._left: RowViews | None = None
        self._sought = ("", "")
        self._searches = 0

    def know(self, states: DrawnStates | None) -> None:
        """Draw folded lines of devices by what those did, and hatch what waits; None: as long as it is not
        known, folded lines of devices and their collectives, which may wait, are outlines.
        """
        self._states = states
        self._rows.clear()
        self._runs = 0

    def knows(self, clocks: Clocks) -> bool:
        """Tell whether it is known what devices and ranks do on these clocks."""
        return self._states is not None and self._states.clocks == clocks

    def look_for(self, search: Hits | None, left: Hits | None) -> None:
        """Mark what a search found, and draw only what a filter left; the rows drawn so far stay kept."""
        from tracelane.core.query.rowview import HitMarks, RowViews

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
        number = lane.rows[depth]
        offset = clocks.offset(lane.source, lane.pid)
        key = (lane.source, number, view, offset, colour_by, *self._sought)
        row = self._rows.get(key)
        if row is None:
            self.queries += 1
            row = self._keep(key, self._draw(lane, self.trace.row(lane, depth), view, clocks, colour_by))
        else:
            self._rows.move_to_end(key)
        return row

    def longest_in(self, lane: Lane, depth: int, view: Viewport, clocks: Clocks, cell: int) -> int:
        """Return the index within its row of the longest slice in a cell, -1 where there is none."""
        row = self.trace.row(lane, depth)
        edges = self._edges(view, clocks.offset(lane.source, lane.pid)).array[cell : cell + 2]
        besides = self.trace.besides_work(row.source) if lane.role is LaneRole.DEVICE else ()
        seen = self._view(self._left, row)
        if seen is None:
            return int(self.trace.cells(row, edges, leaving_out=besides).longest[0])
        return int(seen.cells(edges, leaving_out=besides).longest[0])

    def busy(self, lanes: tuple[int, ...], view: Viewport, clocks: Clocks, part: str = "") -> BusyRow:
        """Return the busy time of what stands for some lanes (of the BUSY_LANES with most slices); of one of
        RANK_PARTS, as far as it is known: until then the first shows all.
        """
        key = ("busy", part, lanes, view, frozenset(clocks.offsets.items()), *self._sought)
        row = self._rows.get(key)
        if isinstance(row, BusyRow):
            self._rows.move_to_end(key)
            return row
        stands_for = busiest = [self.trace.lanes[number] for number in lanes]
        if len(busiest) > BUSY_LANES:
            busiest = sorted(busiest, key=lambda lane: -lane.slices)[:BUSY_LANES]
        states: Sequence[DeviceState] = ()
        if self._states is not None and self._left is None:
            states = self._states.of_lanes(stands_for, clocks)
        if states:
            edges = self._edges(view, 0).array
            drawn = state_row(states, edges, part)
            if len(states) == 1 and self._states is not None and part in LABELLED_PARTS:
                drawn = drawn._replace(
                    runs=line_runs(states[0], drawn, self._states, edges, part != RANK_PARTS[1])
                )
        else:
            drawn = self._busy(busiest if part in ("", RANK_PARTS[0]) else [], view, clocks)
            own = [lane for lane in stands_for if lane.slices]
            drawn = drawn._replace(is_outline=bool(own) and all(map(self._is_unknown, own)))
        hits = self.hits_in([(lane.source, lane.rows.start, lane.rows.stop) for lane in stands_for], view)
        if part and hits:  # on the lines with work where they are
            hatched = drawn.hatched or (False,) * view.width
            hits = tuple(
                hit and (level >= 0 or waits) for hit, level, waits in zip(hits, drawn.levels, hatched)
            )
        busy_row = drawn._replace(hits=hits)
        self._keep(key, busy_row)
        return busy_row

    def hits_in(self, rows: Sequence[RowSpan], view: Viewport) -> tuple[bool, ...]:
        """Return in which cells of a window hits of these rows lie; empty where none does."""
        rows = [span for span in rows if self._marks and self._marks.hits.covers(span[0])]
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
        return None if self._left is None else self._left.hits

    def _keep(self, key: tuple[object, ...], row: DrawnRow) -> DrawnRow:
        self._rows[key] = row
        self._runs += _runs_in(row)
        while len(self._rows) > 1 and (len(self._rows) > KEPT_ROWS or self._runs > KEPT_RUNS):
            self._runs -= _runs_in(self._rows.popitem(last=False)[1])
        return row

    def _edges(self, view: Viewport, offset: int) -> LaneEdges:
        """Return the cells' edges for lanes with this clock offset, made once per window."""
        if self._edges_of != view or len(self._edges_made) > KEPT_EDGES:
            self._edges_of, self._edges_made = view, {}
        edges = self._edges_made.get(offset)
        if edges is None:
            times = [edge - offset for edge in view.edges()]
            array = np.array([min(max(time, LOWEST), GREATEST) for time in times], np.int64)
            edges = LaneEdges(times, array, FULL / np.maximum(array[1:] - array[:-1], 1))
            self._edges_made[offset] = edges
        return edges

    def _draw(self, lane: Lane, row: Row, view: Viewport, clocks: Clocks, colour_by: str) -> DrawnRow:
        offset = clocks.offset(lane.source, lane.pid)
        if row.kind is RowKind.SLICES:
            waits, trace_edges = None, self._edges(view, 0).array
            if self._states is not None and lane.role is LaneRole.DEVICE and self._left is None:
                waits = self._states.waits(lane, clocks, trace_edges)
            drawn = self._slices(lane, row, self._edges(view, offset), colour_by, waits, trace_edges)
            return self._with_gaps(drawn, lane, row, view, clocks)
        edges = self._edges(view, offset)
        return (
            self._instants(row, edges, colour_by)
            if row.kind is RowKind.INSTANTS
            else self._samples(row, edges)
        )

    def _with_gaps(self, drawn: SliceRow, lane: Lane, row: Row, view: Viewport, clocks: Clocks) -> SliceRow:
        gaps = None if self._states is None or self._left else self._states.gaps_of(lane, clocks)
        if gaps is None or not row.count:
            return drawn
        first = self.trace.position(row, 0)
        positions = range(first, first + row.count)
        return drawn._replace(runs=with_gaps(drawn.runs, gaps, positions, self._edges(view, 0).array))

    def _is_unknown(self, lane: Lane) -> bool:
        """Tell whether it is not known yet what the device of a lane did."""
        return self._states is None and self._left is None and lane.role is LaneRole.DEVICE

    # -- slices ---------------------------------------------------------------------------------------------

    def _slices(
        self,
        lane: Lane,
        row: Row,
        edges: LaneEdges,
        colour_by: str,
        waits: I64 | None,
        trace_edges: I64,
    ) -> SliceRow:
        left = self._view(self._left, row)
        is_device = lane.role is LaneRole.DEVICE
        besides = self.trace.besides_work(row.source) if is_device else ()
        if left is None:
            cells = self.trace.cells(row, edges.array, leaving_out=besides)
        else:
            cells = left.cells(edges.array, leaving_out=besides)
        drawn = self.trace.spans(row, cells)
        if not drawn:
            return SliceRow(())
        facts = self.trace.span_facts(row, drawn)
        names = self._many_names(row, drawn, facts, edges, left, besides)
        looks = self._facts(row, drawn, facts, colour_by, besides if is_device else None)
        levels = covered_levels(cells, edges.per_eighth).astype(np.uint8).tobytes()
        runs = slice_runs(drawn, looks, edges.times, names, self.eighths, levels)
        if waits is not None and self._states is not None:
            runs = with_waits(runs, waits, cells.busy, self._states.awaited.get(lane.source), trace_edges)
        elif self._is_unknown(lane):
            runs = outlined(runs)
        return SliceRow(self._with_hits(runs, row, edges), lane.index in drawn_device_lanes(self.trace))

    def _many_names(
        self,
        row: Row,
        drawn: list[Span],
        facts: SpanFacts,
        edges: LaneEdges,
        left: RowView | None,
        besides: Collection[int],
    ) -> dict[int, ManyNames]:
        """Return the labels of the spans of several slices that are wide enough for one. Spans of work of
        which an annotation is the longest slice get the name of the work instead, in `facts`.
        """
        covered = [
            category in besides and span.category not in besides
            for span, category in zip(drawn, facts.categories)
        ]
        some = [
            i
            for i, (span, is_covered) in enumerate(zip(drawn, covered))
            if not span.whole and (is_covered or span.right - span.left >= COUNT_FROM)
        ]
        if not some:
            return {}
        names = {}
        leads = self.trace.span_names(row, [drawn[i] for i in some], edges.array, left, besides)
        for i, lead in zip(some, leads):
            if covered[i]:
                facts.names[i] = lead.name
            if drawn[i].right - drawn[i].left < COUNT_FROM:
                continue
            label = self._labels.get((row.source, lead.name))
            if label is None:
                if len(self._labels) >= KEPT_NAMES:
                    self._labels.clear()
                label = safe(short_name(self.trace.text(row.source, lead.name)))
                self._labels[row.source, lead.name] = label
            names[i] = ManyNames(label, share_label(lead.share, lead.is_exact), lead.slices)
        return names

    def _view(self, views: RowViews | None, row: Row) -> RowView | None:
        return views.of(row.source, row.number) if views and views.hits.covers(row.source) else None

    def _with_hits(self, runs: tuple[Run, ...], row: Row, edges: LaneEdges) -> tuple[Run, ...]:
        if self._marked is None or not self._marked.hits.count:
            return runs
        view = self._view(self._marked, row)
        touched = None if view is None or not view.count else view.cells(edges.array).count > 0
        if view is None or touched is None or not touched.any():
            return tuple(map(_dimmed, runs))
        indices = np.array([run.at for run in runs], np.int64)
        is_hit = np.isin(indices, view.indices).tolist()
        lefts, rights = (edges.array[[getattr(run, side) for run in runs]] for side in ("left", "right"))
        ends = view.starts + view.durations
        counts = np.searchsorted(view.starts, rights) - np.searchsorted(ends, lefts, "right")
        return tuple(
            _hit_run(run, self._marked.hits.filter.text, count)
            if (hit if run.flags & WHOLE else bool(touched[run.left : run.right].any()))
            else _dimmed(run)
            for run, hit, count in zip(runs, is_hit, counts.tolist())
        )

    def _facts(
        self,
        row: Row,
        drawn: list[Span],
        of_spans: SpanFacts,
        colour_by: str,
        besides: Collection[int] | None,
    ) -> list[Facts]:
        """Return what is known of spans; `besides` are the categories of no work on a device's lane, None on
        others.
        """
        source, known = row.source, self._names
        positions, *columns = of_spans
        facts: list[Facts] = []
        for span, name, start, duration, flag, cname, _ in zip(drawn, *columns):
            is_work = besides is not None and span.category not in besides
            looked_up = known.get((source, name, span.category, cname, colour_by, is_work))
            if looked_up is None:
                looked_up = self._look_up(source, name, span.category, cname, colour_by, is_work)
            key, label, bits = looked_up
            if besides is None:
                bits &= ~HATCH  # threads that wait are what the host does
            if flag:
                bits |= (RAGGED if flag & _UNCLOSED else 0) | (OVERLAP if flag & _OVERLAPS else 0)
            facts.append(Facts(key, label, start, start + duration, bits))
        if colour_by.startswith(BY_ARGUMENT):
            keys = self._by_argument.keys(self.trace, source, colour_by, positions)
            return [fact._replace(key=key) for fact, key in zip(facts, keys)]
        return facts

    def _look_up(
        self, source: int, name: int, category: int, cname: int, colour_by: str, is_work: bool = False
    ) -> tuple[str, str, int]:
        raw = self.trace.text(source, name)
        label = safe(short_name(raw))
        of_slice = self.trace.categories(source)[category] if category >= 0 else ""
        key = key_of(
            of_slice,
            raw if of_slice and colour_by == "category" else label,  # a short name may hide a collective
            self.trace.text(source, cname) if cname >= 0 else "",
            colour_by,
            is_work,
        )
        if len(self._names) >= KEPT_NAMES:
            self._names.clear()
        kind = drawn_kind(of_slice, raw)
        bits = {SliceKind.ANNOTATION: BRACKET, SliceKind.WAIT: HATCH}.get(kind, 0)
        looked_up = key, label, bits
        self._names[source, name, category, cname, colour_by, is_work] = looked_up
        return looked_up

    # -- instants and samples -------------------------------------------------------------------------------

    def _instants(self, row: Row, edges: LaneEdges, colour_by: str) -> InstantRow:
        marks = []
        for cell, count, first, name, category in zip(*self.trace.mark_facts(row, edges.array)):
            looked_up = self._names.get((row.source, name, category, -1, colour_by, False))
            if looked_up is None:
                looked_up = self._look_up(row.source, name, category, -1, colour_by)
            marks.append(InstantCell(cell, looked_up[0], count, first))
        return InstantRow(tuple(marks))

    def _samples(self, row: Row, edges: LaneEdges) -> SampleRow:
        cells = self.trace.sample_cells(row, edges.array)
        values = self._ranges.get((row.source, row.number))
        if values is None:
            values = self._ranges[row.source, row.number] = self.trace.series_range(row)
        series = safe(row.series)
        last = tuple(cells.last.tolist())
        low, high = values.extent or (0.0, 0.0)
        levels = levels_of(cells.low.tolist(), cells.high.tolist(), low, high)
        return SampleRow(tuple(levels), last, series, values.extent)

    # -- folded lines ---------------------------------------------------------------------------------------

    def _busy(self, lanes: list[Lane], view: Viewport, clocks: Clocks) -> BusyRow:
        width = view.width
        best = np.full(width, -1, np.int64)
        keys = ["quiet"] * width
        for lane in lanes:
            self.queries += 1
            edges = self._edges(view, clocks.offset(lane.source, lane.pid))
            cells = self._lane_cells(lane, edges.array)
            level = np.where(cells.count > 0, covered_levels(cells, edges.per_eighth), -1)
            better = (level > best).nonzero()[0]
            for cell, key in zip(better.tolist(), self._keys(lane, cells, better)):
                keys[cell] = key
            best[better] = level[better]
        return BusyRow(tuple(best.tolist()), tuple(keys))

    def _keys(self, lane: Lane, cells: Cells, chosen: I64) -> list[str]:
        """Return the colours of some cells of a folded lane: on a device's by the work that takes longest."""
        categories = self.trace.categories(lane.source)
        numbers = cells.category[chosen].tolist()
        if not self._is_work(lane):
            return [key_of(categories[number], lane.title) if number >= 0 else "quiet" for number in numbers]
        slices = self.trace.slices(lane.source, np.maximum(cells.longest[chosen], 0))
        besides = self.trace.besides_work(lane.source)
        return [
            "quiet" if number < 0 else key_of(categories[number], name, is_work=number not in besides)
            for number, name in zip(numbers, slices.names)
        ]

    def _is_work(self, lane: Lane) -> bool:
        """Tell whether a folded lane shows the work of a device, with places in the index for its longest."""
        left = self._left
        return bool(lane.slices and lane.role is LaneRole.DEVICE) and not (
            left is not None and left.hits.covers(lane.source)
        )

    def _lane_cells(self, lane: Lane, edges: I64) -> Cells:
        """Return a folded lane's cells; under a filter of what is left: the busiest row of each cell."""
        left = self._left
        if left is not None and left.hits.covers(lane.source) and (lane.slices or lane.unclosed):
            return left.lane_cells(lane, edges)
        if self._is_work(lane):
            return self.trace.work_cells(lane, edges)
        return self.trace.lane_cells(lane, edges)

    # -- selection ------------------------------------------------------------------------------------------

    def selected(self, selection: Selectable | None) -> Selected | None:
        """Return where the selection lies; looked up once per selection, never per frame."""
        if selection != self._selected[0]:
            self._selected = (selection, None if selection is None else self._find(selection))
        return self._selected[1]

    def _find(self, selection: Selectable) -> Selected | None:
        from .things import thing_by_id

        clocks = self.trace.clocks
        thing = thing_by_id(self.trace, clocks, selection)
        if thing is None:
            return None
        row, offset = thing.row, clocks.offset(thing.row.source, thing.row.pid)
        at = GAP if thing.is_gap else thing.index
        return Selected(row.source, row.number, at, thing.start - offset, thing.end - offset)


def _hit_run(run: Run, text: str, hits: int) -> Run:
    """Return a run in which what was searched for lies, of one shade; several slices say how often:
    "nccl ×7".
    """
    run = run._replace(flags=run.flags | HIT, levels=HIT_LEVEL * len(run.levels))
    if run.flags & WHOLE or run.right - run.left < COUNT_FROM:
        return run
    what = text if text.isidentifier() else "hits"
    return run._replace(label=f"{safe(what)} ×{compact_count(hits)}", share="", slices=0)


def _dimmed(run: Run) -> Run:
    """Return a run that a search does not match: grey, of one shade; brackets are quiet as they are."""
    if run.flags & BRACKET:
        return run
    return run._replace(key=DIMMED, levels=DIMMED_LEVEL * len(run.levels))


def _runs_in(row: DrawnRow) -> int:
    return len(row.runs) if isinstance(row, SliceRow) else 0


def covered_levels(cells: Cells, per_eighth: F64) -> I64:
    """Return how many eighths of each cell's time slices cover: 0 where none lies, else 1..8."""
    levels = np.rint(cells.busy * per_eighth)
    np.minimum(levels, FULL, out=levels)
    np.maximum(levels, cells.count > 0, out=levels)
    return levels.astype(np.int64)
