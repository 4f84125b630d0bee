"""The minimap: what devices did over the whole trace or step by step, and which part of it is visible."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import lru_cache
from itertools import groupby, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from rich.segment import Segment
from rich.style import Style

from tracelane.core.base.cached_per_object import cached_per_object
from tracelane.core.base.clock import ClockKey, Clocks
from tracelane.core.base.units import about_ns, format_ns, format_share
from tracelane.core.trace import Trace
from tracelane.core.trace.lane_order import drawn_device_lanes

from ..session import Session, Viewport
from ..steps import deviation_levels, step_marks, usual_length
from .cells import LineCells
from .glyphs import fit
from .line_context import LineContext, gutter
from .overlays import mark_hits
from .palette import Look
from .runs import FULL, BusyRow
from .states import DrawnStates, state_row

if TYPE_CHECKING:
    from tracelane.core.query.hits import Hits

Offsets: TypeAlias = frozenset[tuple[ClockKey, int]]

IDLE_SHADES = 3
"""Of the shades of a cell the one for a step in which devices do nothing: not the full one, which is work."""
LANES_ASKED = 24
"""Lanes of each kind that the minimap looks at, those with most slices first."""


MANY_STEPS = 100
"""Of so many steps the minimap has a cell for each."""


class MinimapCells(NamedTuple):
    """The W cells of the minimap: parts of the opening span of one length, or one or more steps each."""

    edges: tuple[int, ...]  # W + 1 ascending times, ns
    steps: tuple[int, ...] = ()  # ns of the longest step in each cell; empty: parts of one length

    def cell(self, time: int) -> int:
        """Return the cell that a time lies in, the nearest one of times beside them all."""
        return min(max(0, bisect_right(self.edges, time) - 1), len(self.edges) - 2)

    def window(self, visible: Viewport) -> tuple[int, int]:
        """Return the cells [left, right) that the visible part takes, at least one."""
        left = self.cell(visible.start)
        return left, max(left, self.cell(visible.end - 1)) + 1


def has_step_cells(trace: Trace, session: Session) -> bool:
    return len(step_marks(trace, session.clocks, session.steps)) >= MANY_STEPS


def overview_of(trace: Trace, session: Session, width: int) -> MinimapCells:
    """Return the cells of a minimap of a width: fewer where there are not so many steps."""
    return _overview(trace, width, frozenset(session.clocks.offsets.items()), session.steps)


@cached_per_object(8)
def _overview(trace: Trace, width: int, offsets: Offsets, name: str) -> MinimapCells:
    steps = step_marks(trace, Clocks(MappingProxyType(dict(offsets))), name)
    stride = -(-len(steps) // width)
    edges = [step.start for step in steps[:: max(1, stride)]]
    if len(steps) < MANY_STEPS or any(right <= left for left, right in pairwise(edges)):
        return MinimapCells(tuple(minimap_view(trace, width).edges()))
    lengths = [step.end - step.start for step in steps]
    longest = [max(lengths[at : at + stride]) for at in range(0, len(steps), stride)]
    return MinimapCells((*edges, max(steps[-1].end, edges[-1] + 1)), tuple(longest))


def busy_row(trace: Trace, edges: tuple[int, ...], clocks: Clocks) -> BusyRow:
    """Return how busy devices are between edges, without devices threads, in no colour.

    The busiest lane counts, of the LANES_ASKED with most slices; of a device's lane its work, of a thread its
    row with most slices. Worked out once per edges and clocks.
    """
    return _busy_row(trace, edges, frozenset(clocks.offsets.items()))


@cached_per_object(16)
def _busy_row(trace: Trace, edges: tuple[int, ...], offsets: Offsets) -> BusyRow:
    clocks = Clocks(MappingProxyType(dict(offsets)))
    room = np.diff(np.array(edges, np.float64)).clip(1)
    lanes = [lane for lane in trace.lanes if lane.slices or lane.unclosed]
    devices = [lane for lane in lanes if lane.index in drawn_device_lanes(trace)]
    best = np.full(len(edges) - 1, -1, np.int64)
    for lane in sorted(devices or lanes, key=lambda lane: -lane.slices)[:LANES_ASKED]:
        if devices:
            cells = trace.work_cells(lane, list(edges), clocks)
        else:
            rows = trace.row_columns(lane)  # the top row of a thread is one long annotation and says nothing
            fullest = int(np.where(rows.are_slices, rows.counts, -1).argmax())
            cells = trace.cells(trace.row(lane, fullest), list(edges), clocks)
        level = np.maximum(1, np.rint(8 * np.minimum(1.0, cells.busy / room)))
        best = np.maximum(best, np.where(cells.count > 0, level, -1).astype(np.int64))
    return BusyRow(tuple(best.tolist()), ("",) * len(best))


def minimap_view(trace: Trace, width: int) -> Viewport:
    start, end = trace.opening_span
    return Viewport(start, max(1, end - start), 1).resized(width)


@lru_cache(maxsize=8)
def hit_cells(hits: Hits, edges: tuple[int, ...]) -> tuple[bool, ...]:
    """Return in which cells of the minimap a search found something; worked out once per edges."""
    return tuple((hits.cells(list(edges)) > 0).tolist())


def minimap_lines(
    trace: Trace,
    session: Session,
    look: LineContext,
    hits: Hits | None = None,
    states: DrawnStates | None = None,
) -> list[list[Segment]]:
    """Return the minimap: what devices did over the whole trace where that is known, else how busy they were;
    without devices how busy threads were. Cells with hits are marked.

    Of many steps a line of cells as high as the longest of their steps deviates from the median, and where
    there are devices one hatched as densely as these are idle.
    """
    overview = overview_of(trace, session, look.area)
    lanes = [] if states is None else [trace.lanes[number] for number in states.by_lane]
    known = states.of_lanes(lanes, session.clocks) if states is not None and lanes else ()
    row = state_row(known, np.array(overview.edges, np.int64)) if known else None
    has_devices = row is not None or bool(drawn_device_lanes(trace))
    row = row or busy_row(trace, overview.edges, session.clocks)
    window = overview.window(session.viewport)
    if overview.steps:
        title = f"{len(step_marks(trace, session.clocks, session.steps)):,} steps"
        heights = deviation_levels(
            overview.steps, usual_length(step_marks(trace, session.clocks, session.steps))
        )
        lines = [overview_line(title, row._replace(levels=heights, hatched=()), *window, look)]
        if has_devices:
            lines.append(_idle_line(row, *window, look))
    else:
        lines = [overview_line("device" if has_devices else "all", row, *window, look)]
    if hits and hits.count:
        mark = Style(color=look.palette.accent_plain.color, bold=True, underline=True)
        cells = LineCells(lines[0], look.palette.blank)
        mark_hits(cells, hit_cells(hits, overview.edges), mark, look.titles)
        lines[0] = cells.segments()
    return lines


def cell_text(trace: Trace, session: Session, width: int, cell: int) -> str:
    """Return what a cell of the minimap stands for: a time from the start, or the longest of its steps."""
    overview = overview_of(trace, session, width)
    start, end = overview.edges[cell], overview.edges[cell + 1]
    if not overview.steps:
        low, high = trace.opening_span
        share = format_share((start - low) / max(1, high - low))
        return f"{format_ns(start - low)} from the start, {share} of {about_ns(high - low)}"
    steps = step_marks(trace, session.clocks, session.steps)
    first = bisect_left(steps, start, key=lambda step: step.start)
    own = steps[first : max(first + 1, bisect_left(steps, end, key=lambda step: step.start))]
    longest = max(own, key=lambda step: step.end - step.start)
    several = f", the longest of {len(own)} from {own[0].title} on" if len(own) > 1 else ""
    return f"{longest.title}: {about_ns(longest.end - longest.start)}{several}"


def _idle_line(row: BusyRow, left: int, right: int, look: LineContext) -> list[Segment]:
    """Return a line of cells that are hatched the more densely the less of their time devices work."""
    idle = (IDLE_SHADES * (FULL - max(0, level)) / FULL for level in row.levels)
    text = fit("".join(look.glyphs.shades[round(share)] for share in idle), look.area, "")
    outside = look.palette.style("sync", Look.FAINT)
    inside = outside + Style(bgcolor=look.palette.view.bgcolor)
    parts = [(text[:left], outside), (text[left:right], inside), (text[right:], outside)]
    return [*gutter("idle", look), *(Segment(part, style) for part, style in parts if part)]


def overview_line(title: str, row: BusyRow, left: int, right: int, look: LineContext) -> list[Segment]:
    """Return a line of busy levels under a title, with the cells [left, right) set off."""
    palette, glyphs = look.palette, look.glyphs
    is_low = palette.has_low_overview and not glyphs.ascii
    levels = [(level + 1) // 2 if is_low else level for level in row.levels]
    bars = [glyphs.bars[max(0, level)] for level in levels]
    for cell, waits in enumerate(row.hatched):
        bars[cell] = glyphs.shades[1] if waits else bars[cell]
    if not palette.coloured or (not palette.shaded and right - left < len(bars)):
        bars[left], bars[right - 1] = ("[", "]") if right - left > 1 else (glyphs.single, glyphs.single)
    parts = gutter(title, look)
    at = 0
    for style, cells in groupby(
        palette.overview(key if bar != " " else "", left <= cell < right)
        for cell, (key, bar) in enumerate(zip(row.keys, bars))
    ):
        count = sum(1 for _ in cells)
        parts.append(Segment("".join(bars[at : at + count]), style))
        at += count
    parts.append(Segment(" " * (look.area - len(bars)), palette.blank))
    return [part for part in parts if part.text]
