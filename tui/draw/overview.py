"""The minimap's line: how busy the whole trace is, and which part of it is visible."""

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
from tracelane.core.base.units import format_ns
from tracelane.core.trace import Lane, Row, Trace

from ..session import Session, Viewport
from .labels import fit, length_title
from .lines import LineContext
from .presets import device_lanes
from .segments import ascii_segments

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


def minimap_lines(
    trace: Trace, session: Session, look: LineContext, height: int, hits: Hits | None = None
) -> list[list[Segment]]:
    """Return the minimap's lines: device lanes above host lanes where there are two lines and both kinds.

    The last line marks the cells in which a search found something.
    """
    lines = _busy_lines(trace, session, look, height)
    if hits is not None and hits.count:
        lines[-1] = _with_hits(lines[-1], hit_cells(trace, hits, look.area), look)
    return lines


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


def _busy_lines(trace: Trace, session: Session, look: LineContext, height: int) -> list[list[Segment]]:
    width = look.area
    device, host = busy_levels(trace, width, session.clocks)
    view = minimap_view(trace, width)
    left, right = window(view, session.viewport)
    both = any(level >= 0 for level in device) and any(level >= 0 for level in host)
    span = trace.opening_span
    length = span[1] - span[0]
    title = format_ns(length)
    if height < 2:
        # What an accelerator does tells the parts of a trace apart; its host is always busy.
        kind = "device" if both else "all"
        merged = device if both else tuple(map(max, device, host))
        return [overview_line(length_title(kind, length, look.titles - 1), merged, left, right, look)]
    if both:
        return [
            overview_line("device", device, left, right, look),
            overview_line(length_title("host", length, look.titles - 1), host, left, right, look),
        ]
    merged = tuple(map(max, device, host))
    if look.palette.has_low_overview:
        upper, lower = (0,) * width, merged
    else:
        upper = tuple(max(0, 2 * level - 8) if level >= 0 else 0 for level in merged)
        lower = tuple(min(8, 2 * level) if level >= 0 else -1 for level in merged)
    return [overview_line("all", upper, left, right, look), overview_line(title, lower, left, right, look)]


def window(view: Viewport, visible: Viewport) -> tuple[int, int]:
    """Return the cells [left, right) of the minimap that the visible part takes, at least one."""
    left = min(view.width - 1, max(0, view.cell(visible.start)))
    right = min(view.width, max(left + 1, view.cell(visible.end - 1) + 1))
    return left, right


def overview_line(
    title: str, levels: Sequence[int], left: int, right: int, look: LineContext
) -> list[Segment]:
    """Return a line of busy levels 0..8 under a title, with the cells [left, right) set off."""
    palette, glyphs = look.palette, look.glyphs
    if palette.has_low_overview and not glyphs.ascii:
        levels = [(level + 1) // 2 for level in levels]
    bars = [glyphs.bars[max(0, level)] for level in levels]
    inside = bars[left:right]
    if not palette.coloured or (not palette.shaded and len(inside) < len(bars)):
        inside[0] = "["
        inside[-1] = "]"
    parts = [
        Segment(fit(title, look.titles - 1, glyphs.ellipsis), palette.dim),
        Segment(glyphs.separator, palette.line),
        Segment("".join(bars[:left]), palette.minimap),
        Segment("".join(inside), palette.view),
        Segment("".join(bars[right:]), palette.minimap),
    ]
    return ascii_segments([part for part in parts if part.text], glyphs)
