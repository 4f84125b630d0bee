"""Lines of a trace that is still being indexed: titles and busy time, in one colour, without labels."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from rich.cells import cell_len
from rich.segment import Segment

from tracelane.core.query.sketch import Sketch, SketchLane, SketchProcess

from ..session import LaneKey, RowKey, Session, Viewport
from .labels import fit, fit_middle
from .lines import LineContext, with_cursor
from .overview import overview_line, window
from .palette import Look as RunLook
from .ruler import Origin, ruler_lines
from .segments import ascii_segments

OVERVIEW_LANES = 64
"""Lanes that the minimap looks at: a frame must not depend on their number."""
SKETCHED = "python"
"""The colour key of what has no category yet."""


@dataclass(frozen=True)
class SketchLine:
    """A line of the lane area: a process's title, or one of its lanes."""

    process: SketchProcess
    lane: SketchLane | None = None

    @property
    def row_key(self) -> RowKey | None:
        """Name of the lane's first row, None for a title."""
        if self.lane is None:
            return None
        kind, pid, tid, name = self.lane.name
        return RowKey(LaneKey(0, pid, tid, kind, name), 0)


def sketch_lines(sketch: Sketch) -> tuple[SketchLine, ...]:
    lines: list[SketchLine] = []
    for process in sketch.processes:
        lines.append(SketchLine(process))
        lines.extend(SketchLine(process, lane) for lane in process.lanes)
    return tuple(lines)


def line_of(lines: Sequence[SketchLine], key: RowKey | None) -> int | None:
    return None if key is None else next((y for y, line in enumerate(lines) if line.row_key == key), None)


def moved_focus(lines: Sequence[SketchLine], key: RowKey | None, by: int) -> RowKey | None:
    """Return the lane so many lanes further down from a lane, the first where none is focused."""
    lanes = [y for y, line in enumerate(lines) if line.lane is not None]
    if not lanes:
        return None
    at = line_of(lines, key)
    number = 0 if at is None else bisect_left(lanes, at) + by
    return lines[lanes[min(max(0, number), len(lanes) - 1)]].row_key


def scroll_within(lines: Sequence[SketchLine], scroll: int, height: int) -> int:
    return max(0, min(scroll, len(lines) - height))


def sketch_levels(sketch: Sketch, lane: SketchLane, view: Viewport) -> list[int]:
    """Return the busy levels 1..8 of a lane's cells, -1 where nothing was met so far."""
    shares = sketch.shares(lane, view.edges())
    levels: list[int] = np.where(shares < 0, -1, np.maximum(1, np.rint(8 * shares))).astype(int).tolist()
    return levels


def sketch_segments(
    line: SketchLine | None, sketch: Sketch, session: Session, look: LineContext
) -> list[Segment]:
    """Return one line, exactly titles + area cells.

    As in the final picture a cell is the higher, on devices, or the brighter, the more of it is covered.
    """
    palette, glyphs = look.palette, look.glyphs
    if line is None:
        return [Segment(" " * (look.titles + look.area), palette.blank)]
    if line.lane is None:
        text = fit(f"{glyphs.unfolded} {line.process.title}", look.titles + look.area, glyphs.ellipsis)
        return ascii_segments([Segment(text, palette.dim)], glyphs)
    view = session.viewport if session.viewport.width == look.area else session.viewport.resized(look.area)
    area = []
    levels = sketch_levels(sketch, line.lane, view)
    has_bars = not palette.shaded
    for level, cells in groupby(levels):
        count = sum(1 for _ in cells)
        if level > 0 and not has_bars:
            area.append(Segment(" " * count, palette.fills(SKETCHED)[level]))
        else:
            text = (glyphs.bars[level] if level > 0 else " ") * count
            area.append(Segment(text, palette.style(SKETCHED, RunLook.BAR) if level > 0 else palette.blank))
    focused = session.focus is not None and line.row_key == session.focus
    if focused:
        area = with_cursor(area, view.cell(session.cursor), look)
    lead = f"{glyphs.selected} " if focused else "  "
    room = look.titles - 1 - len(lead)
    title = line.lane.title
    if cell_len(title) > room:
        title = title.removeprefix("thread ")
    title = fit(lead + fit_middle(title, max(0, room), glyphs.ellipsis), look.titles - 1, "")
    style = palette.accent if focused else palette.dim
    return ascii_segments([Segment(title, style), Segment(glyphs.separator, palette.line), *area], glyphs)


def overview_segments(
    sketch: Sketch, levels: Sequence[int], session: Session, look: LineContext
) -> list[Segment]:
    """Return the minimap's line of these levels (see `overview_levels`) and the part that is visible."""
    return overview_line("so far", levels, *window(_whole(sketch, look.area), session.viewport), look)


def _whole(sketch: Sketch, width: int) -> Viewport:
    start, end = sketch.opening_span
    return Viewport(start, max(1, end - start), 1).resized(width)


def overview_levels(sketch: Sketch, width: int) -> list[int]:
    """Return how busy the busiest lane of each cell is, over all that was met so far."""
    view = _whole(sketch, width)
    best = np.full(width, -1)
    processes = [process for process in sketch.processes if not process.aside] or sketch.processes
    lanes = [lane for process in processes for lane in process.lanes]
    for lane in lanes[:OVERVIEW_LANES]:
        np.maximum(best, sketch_levels(sketch, lane, view), out=best)
    levels: list[int] = best.tolist()
    return levels


def ruler_segments(sketch: Sketch, session: Session, look: LineContext) -> list[Segment]:
    return ruler_lines(session, Origin(sketch.opening_span[0]), (), look, 1)[0]
