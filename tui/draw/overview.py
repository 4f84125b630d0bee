"""The minimap's line: what devices did over the whole trace, and which part of it is visible."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from rich.segment import Segment
from rich.style import Style

from tracelane.core.base.clock import ClockKey, Clocks
from tracelane.core.trace import Lane, Row, Trace

from ..session import Session, Viewport
from .drawn_rows import BusyRow
from .labels import fit, length_title
from .lines import LineContext
from .presets import device_lanes
from .segments import ascii_segments
from .states import DrawnStates, state_row

if TYPE_CHECKING:
    from tracelane.core.query.hits import Hits

LANES_ASKED = 24
"""Lanes of each kind that the minimap looks at, those with most slices first."""


Levels: TypeAlias = tuple[int, ...]


def busy_levels(trace: Trace, width: int, clocks: Clocks) -> tuple[Levels, Levels]:
    """Return the busy levels 0..8 of device and of host lanes over the opening span, -1 where nothing lies.

    The busiest lane counts, of the LANES_ASKED with most slices; of a device's lane its work, of a thread its
    row with most slices.
    Worked out once per width and clocks.
    """
    return _busy_levels(trace, width, frozenset(clocks.offsets.items()))


@lru_cache(maxsize=16)
def _busy_levels(trace: Trace, width: int, offsets: frozenset[tuple[ClockKey, int]]) -> tuple[Levels, Levels]:
    clocks = Clocks(MappingProxyType(dict(offsets)))
    view = minimap_view(trace, width)
    edges = view.edges()
    room = np.array([max(1, right - left) for left, right in pairwise(edges)], np.float64)
    levels_of_kinds = []
    device: list[Lane] = []
    host: list[Lane] = []
    for lane in trace.lanes:
        if lane.slices or lane.unclosed:
            (device if lane.index in device_lanes(trace) else host).append(lane)
    for lanes in (device, host):
        fullest = sorted(lanes, key=lambda lane: -lane.slices)[:LANES_ASKED]
        if not fullest:
            levels_of_kinds.append((-1,) * width)
            continue
        best = np.full(width, -1, np.int64)
        for lane in fullest:
            if lanes is device:
                cells = trace.work_cells(lane, edges, clocks)
            else:
                cells = trace.cells(_fullest_row(trace, lane), edges, clocks)
            level = np.maximum(1, np.rint(8 * np.minimum(1.0, cells.busy / room)))
            best = np.maximum(best, np.where(cells.count > 0, level, -1).astype(np.int64))
        levels_of_kinds.append(tuple(best.tolist()))
    return levels_of_kinds[0], levels_of_kinds[1]


def _fullest_row(trace: Trace, lane: Lane) -> Row:
    """Return the row with most slices: the top row of a thread is one long annotation and says nothing."""
    rows = trace.row_columns(lane)
    return trace.row(lane, int(np.where(rows.are_slices, rows.counts, -1).argmax()))


def minimap_view(trace: Trace, width: int) -> Viewport:
    """Return the window that the minimap shows: the opening span."""
    start, end = trace.opening_span
    return Viewport(start, max(1, end - start), 1).resized(width)


@lru_cache(maxsize=8)
def hit_cells(trace: Trace, hits: Hits, width: int) -> tuple[bool, ...]:
    """Return in which cells of the minimap a search found something; worked out once per width."""
    return tuple((hits.cells(minimap_view(trace, width).edges()) > 0).tolist())


def minimap_line(
    trace: Trace,
    session: Session,
    look: LineContext,
    hits: Hits | None = None,
    states: DrawnStates | None = None,
) -> list[Segment]:
    """Return the minimap's line: what devices did over the whole trace where that is known, else how busy
    they were; without devices how busy threads were. Cells with hits are marked.
    """
    view = minimap_view(trace, look.area)
    row = None if states is None else _state_row(trace, session, view, states)
    has_devices = row is not None
    if row is None:
        device, host = busy_levels(trace, look.area, session.clocks)
        has_devices = any(level >= 0 for level in device)
        row = BusyRow(device if has_devices else host, ("",) * look.area)
    kind = "device" if has_devices else "all"
    title = length_title(kind, trace.opening_span[1] - trace.opening_span[0], look.titles - 1)
    line = overview_line(title, row, *window(view, session.viewport), look)
    return _with_hits(line, hit_cells(trace, hits, look.area), look) if hits and hits.count else line


def _state_row(trace: Trace, session: Session, view: Viewport, states: DrawnStates) -> BusyRow | None:
    lanes = [trace.lanes[number] for number in states.by_lane]
    known = states.of_lanes(lanes, session.clocks) if lanes else ()
    return state_row(known, np.array(view.edges(), np.int64)) if known else None


def _with_hits(line: list[Segment], marked: Sequence[bool], look: LineContext) -> list[Segment]:
    style = Style(color=look.palette.accent_plain.color, bold=True, underline=True)
    marked_line, cell = [], -look.titles
    for segment in line:
        begin, cell = cell, cell + segment.cell_length
        if begin < 0:
            marked_line.append(segment)
            continue
        for hit, cells in groupby(zip(marked[begin:cell], segment.text), itemgetter(0)):
            text, own = "".join(cell_text for _, cell_text in cells), segment.style or look.palette.blank
            marked_line.append(Segment(text, own + style if hit else own))
    return marked_line


def window(view: Viewport, visible: Viewport) -> tuple[int, int]:
    """Return the cells [left, right) of the minimap that the visible part takes, at least one."""
    left = min(view.width - 1, max(0, view.cell(visible.start)))
    right = min(view.width, max(left + 1, view.cell(visible.end - 1) + 1))
    return left, right


def overview_line(title: str, row: BusyRow, left: int, right: int, look: LineContext) -> list[Segment]:
    """Return a line of busy levels under a title, with the cells [left, right) set off."""
    palette, glyphs = look.palette, look.glyphs
    is_low = palette.has_low_overview and not glyphs.ascii
    levels = [(level + 1) // 2 if is_low else level for level in row.levels]
    bars = [glyphs.bars[max(0, level)] for level in levels]
    for cell, waits in enumerate(row.hatched):
        bars[cell] = glyphs.shades[1] if waits else bars[cell]
    if not palette.coloured or (not palette.shaded and right - left < len(bars)):
        bars[left], bars[right - 1] = "[", "]"
    parts = [
        Segment(fit(title, look.titles - 1, glyphs.ellipsis), palette.dim),
        Segment(glyphs.separator, palette.line),
    ]
    at = 0
    for style, cells in groupby(
        palette.overview(key if bar != " " else "", left <= cell < right)
        for cell, (key, bar) in enumerate(zip(row.keys, bars))
    ):
        count = sum(1 for _ in cells)
        parts.append(Segment("".join(bars[at : at + count]), style))
        at += count
    return ascii_segments([part for part in parts if part.text], glyphs)
