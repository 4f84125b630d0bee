"""A line of the lane area as segments: title, separator, then what its row shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tracelane.core.base.late_pattern import late_pattern
from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import format_moment
from tracelane.core.tables.compare.run_pair import PairedSteps
from tracelane.core.trace import Lane, LaneRole, Process

from ..session import Session, Viewport
from ..steps import pair_of
from .cells import LineCells
from .glyphs import fit, fit_middle, label_in
from .lane_choice import spanning_frame
from .line import Half, Line, LineKind
from .line_context import LineContext, gutter
from .overlays import OVERLAYS, DrawnLine
from .ranks import RANK_PARTS, SLOWEST, is_rank
from .rows import DIMMED, GAP, RowReader, Selected
from .runs import BusyRow, DrawnRow, InstantRow, Run, SampleRow, SliceRow, lower_half, upper_half
from .segments import (
    ABOUT,
    SelectedCells,
    busy_segments,
    compact_value,
    counter_segments,
    mark_segments,
    slice_segments,
)

_RANGE = late_pattern(r" \S+\.\.\S+")


def line_segments(
    line: Line | None, reader: RowReader, session: Session, look: LineContext, has_thumb: bool = False
) -> list[Segment]:
    """Return one line of the lane area, exactly titles + area cells: title, what its row shows, and what lies
    over that; with the scrollbar's thumb for separator where it has it.
    """
    palette, glyphs = look.palette, look.glyphs
    if line is None:
        return [Segment(" " * (look.titles + look.area), palette.blank)]
    if line.kind is LineKind.RULE:
        return [Segment(glyphs.rule * (look.titles + look.area), palette.line)]
    if line.kind is LineKind.NOTE:
        return _note(line, look)
    if line.kind is LineKind.PROCESS and not line.folded:
        return _process(line, look)
    view = session.viewport if session.viewport.width == look.area else session.viewport.resized(look.area)
    is_focused = line.holds(session.focus)
    content = _content(line, is_focused, reader, session, view, look)
    row = content.row, content.depth, content.selected
    drawn = DrawnLine(line, *row, is_focused, view, session, reader, look)
    cells = LineCells(content.area, palette.blank)
    for overlay in OVERLAYS:
        overlay(cells, drawn)
    return [*gutter(content.title, look, content.style, has_thumb), *cells.segments()]


class _Content(NamedTuple):
    """What stands in a line: a title, and beside it the time area."""

    title: str
    style: Style
    area: list[Segment]
    row: DrawnRow | None = None
    depth: int = -1
    selected: SelectedCells | None = None


def _content(
    line: Line, is_focused: bool, reader: RowReader, session: Session, view: Viewport, look: LineContext
) -> _Content:
    palette, glyphs = look.palette, look.glyphs
    if line.kind is LineKind.PROCESS:
        return _Content(*_folded_title(line, look), *_busy(line, reader, session, view, look))
    if line.kind is LineKind.RANKS:
        return _ranks(line, is_focused, reader, session, view, look)
    if line.kind is LineKind.DELTA and (pair := pair_of(reader.trace)) is not None:
        changes = step_changes(pair.common_steps(session.steps), view, session, look)
        return _Content("  " + line.title, palette.dim, changes)
    if line.kind is LineKind.MISSING and line.process is not None:
        return _Content("  " + safe(line.process.title), palette.dim, _missing([line.process], look))
    if line.kind is LineKind.QUIET:
        title = f"  {line.title} {glyphs.folded}"
        return _Content(title, palette.dim, *_busy(line, reader, session, view, look))
    if line.kind is LineKind.MORE or line.lane is None:
        rest = Segment(fit(" :expand shows them", look.area, ""), palette.hint)
        return _Content("  " + line.title, palette.dim, [rest])
    if line.kind is LineKind.LANE:
        title = _title(line, look, glyphs.folded + " ", is_focused, "")
        style = palette.accent if is_focused else palette.title
        return _Content(title, style, *_busy(line, reader, session, view, look))
    return _row(line, line.lane, is_focused, reader, session, view, look)


def step_changes(steps: PairedSteps, view: Viewport, session: Session, look: LineContext) -> list[Segment]:
    """Return a line with how much longer each step of the second run takes, where the first run's begins; the
    most changed first where there is no room for all. What is noise has a sign for about, and is dim.
    """
    seen = np.flatnonzero((steps.a[:, 0] < view.end) & (steps.a[:, 1] > view.start))
    order = seen[np.argsort(-np.abs(steps.deltas[seen]), kind="stable")][: look.area]
    current, free = steps.at(session.cursor), [True] * look.area
    cells = LineCells.empty(look.area, look.palette.blank)
    for at in order.tolist():
        is_noise = bool(steps.are_noise[at] and steps.deltas[at])
        sign = ABOUT if is_noise else ""
        text = f"{safe(steps.title(at))} {sign}{format_moment(int(steps.deltas[at]), 3)}"
        left = max(0, min(view.cell(int(steps.a[at, 0])), look.area - cell_len(text)))
        own = slice(left, left + cell_len(text) + 1)
        if len(text) <= look.area and all(free[own]):
            free[own] = [False] * len(free[own])
            usual = look.palette.dim if is_noise else look.palette.title
            cells.put(left, text, look.palette.accent if at == current else usual)
    return cells.segments()


def _row(
    line: Line,
    lane: Lane,
    is_focused: bool,
    reader: RowReader,
    session: Session,
    view: Viewport,
    look: LineContext,
) -> _Content:
    palette, glyphs = look.palette, look.glyphs
    depth, selected = line.depth, reader.selected(session.selection)
    if line.frames and selected is not None and selected.source == lane.source:
        inside = selected.row - lane.rows.start
        depth = inside if inside in line.frames else depth
    row = reader.row(lane, depth, view, session.clocks, session.colour_by)
    chosen = _chosen(selected, lane, depth, view, session)
    value = ""
    if isinstance(row, SliceRow):
        if line.frames:
            frame = spanning_frame(reader.trace, lane, depth)
            count = len(line.frames)
            runs = tuple(_of_frames(run, count if run.at == frame else 0, look) for run in row.runs)
            row = row._replace(runs=runs)
        row = _half_of(row, line.half)
        of_run = None if chosen is not None and chosen.at == GAP else chosen
        area = slice_segments(row.runs, look.area, palette, glyphs, of_run, row.has_bars)
    elif isinstance(row, InstantRow):
        area = mark_segments(row.marks, look.area, palette, glyphs, chosen)
    elif isinstance(row, SampleRow):
        area = counter_segments(row, palette, glyphs)
        value = _value_at(row, session, view)
    else:
        area = busy_segments(row, palette, glyphs)
    title = _title(line, look, _indent(line, look), is_focused, value, row)
    style = palette.accent if is_focused else palette.title
    return _Content(title, style, area, row, depth, chosen)


def _half_of(row: SliceRow, half: Half) -> SliceRow:
    """Return what a line of a row of two shows; the row itself where it has one."""
    if half is Half.WHOLE:
        return row
    halved = map(upper_half if half is Half.UPPER else lower_half, row.runs)
    return row._replace(runs=tuple(run for run in halved if run is not None))


def _note(line: Line, look: LineContext) -> list[Segment]:
    """Return a note over the whole width; what it leaves of that is free for arrows."""
    text, width = "  " + safe(line.title), look.titles + look.area
    text = fit(text, min(width, cell_len(text)), look.glyphs.ellipsis)
    rest = width - cell_len(text)
    return [Segment(text, look.palette.dim), *([Segment(" " * rest, look.palette.blank)] if rest else [])]


def _of_frames(run: Run, count: int, look: LineContext) -> Run:
    """Return the run of a frame that stands for `count` frames, or of what is beside such a one (0)."""
    if not run.label:
        return run
    glyphs, frame = look.glyphs, label_in(run.label, 0)
    stands_for = f"{count} frames {glyphs.ellipsis} " if count else ""
    return run._replace(label=f"{glyphs.folded_frames} {stands_for}{frame}")


def _indent(line: Line, look: LineContext) -> str:
    return f"{look.glyphs.pinned} " if line.pinned and line.depth == 0 else "  "


def _process(line: Line, look: LineContext) -> list[Segment]:
    """Return the title of an unfolded process, over the whole width."""
    palette, glyphs = look.palette, look.glyphs
    title, width = f"{glyphs.unfolded} {safe(line.title)}", look.titles + look.area
    text = fit(title, min(width, cell_len(title)), glyphs.ellipsis)
    rest = width - cell_len(text)
    # Without shades the raised background does not show: a rule carries the title over the width.
    rule = " " * rest if palette.shaded else " " + glyphs.rule * (rest - 1)
    return [Segment(text, palette.process), *([Segment(rule, palette.process_rest)] if rest else [])]


def _folded_title(line: Line, look: LineContext) -> tuple[str, Style]:
    """Return the title of a folded process or rank, and its style."""
    mark, room, ellipsis = look.glyphs.folded, look.titles - 1, look.glyphs.ellipsis
    title = f"{mark} {safe(line.title)}"
    if line.process is not None and cell_len(title) >= look.titles:
        title = f"{mark} {safe(line.process.title)}"  # which one it is matters more than its size
    title, style = _with_note(title, line, look)
    short = fit_middle(title, room, ellipsis)
    if line.process is not None and is_rank(line.process) and title.partition(" · ")[0] not in short:
        short = fit(title, room, ellipsis)  # its number before its host's
    return short, style


def _ranks(
    line: Line, is_focused: bool, reader: RowReader, session: Session, view: Viewport, look: LineContext
) -> _Content:
    """Return a line of the map of ranks: as long as it is not known when they wait, how busy their devices
    are, as an outline; how far the files are where none is there.
    """
    from .rank_map import map_gutter_title, map_segments

    palette, glyphs, notes = look.palette, look.glyphs, look.ranks
    mark = glyphs.selected if is_focused else glyphs.folded
    title, is_slowest = map_gutter_title(line, notes, mark, look.titles - 1, glyphs)
    style = palette.accent if is_slowest or is_focused else palette.title
    if reader.trace.missing.issuperset(rank.source for rank in line.ranks):
        return _Content(title, style, _missing(line.ranks, look))
    if notes.activity is not None and reader.knows(session.clocks):
        return _Content(title, style, map_segments(line, notes.activity, view, palette, glyphs))
    lanes = reader.trace.lanes
    devices = tuple(number for number in line.members if lanes[number].role is LaneRole.DEVICE)
    row = reader.busy(devices or line.members, view, session.clocks)._replace(is_outline=True)
    return _Content(title, style, busy_segments(row, palette, glyphs))


def _missing(ranks: Sequence[Process], look: LineContext) -> list[Segment]:
    """Return how far the files of some ranks are, what is true of several once."""
    texts = dict.fromkeys(look.ranks.texts.get(rank.source, "") for rank in ranks)
    text = fit(" " + safe(", ".join(texts)), look.area, look.glyphs.ellipsis)
    return [Segment(text, look.palette.dim)]


def _with_note(title: str, line: Line, look: LineContext) -> tuple[str, Style]:
    """Return the title of a folded line and its style. Of a rank it says who waits, and for whom: on the line
    of its communication, or where all is in one line behind its name, as there is room.
    """
    palette, glyphs, room = look.palette, look.glyphs, look.titles - 1
    if line.process is None or not is_rank(line.process):
        return title, palette.process
    note = look.ranks.texts.get(line.process.source, "")
    is_slowest = line.process.source == look.ranks.slowest
    is_waiting = line.part == RANK_PARTS[1]
    if line.part not in ("", RANK_PARTS[0]):
        text = f" {note if note and is_waiting else line.part}"
        return fit(text, room, glyphs.ellipsis), palette.accent if is_slowest and is_waiting else palette.dim
    style = palette.process + Style(color=palette.accent.color) if is_slowest else palette.process
    if line.part or not note:
        return title, style
    name = f"{title.partition(' ')[0]} {safe(line.process.title)}"
    words = (*SLOWEST, f" {glyphs.slowest}")
    texts = [f"{name} {note}", *((name + word for word in words) if is_slowest else [title])]
    return next((text for text in texts if cell_len(text) <= room), texts[-1]), style


def _busy(
    line: Line, reader: RowReader, session: Session, view: Viewport, look: LineContext
) -> tuple[list[Segment], BusyRow]:
    members = line.members or ((line.lane.index,) if line.lane is not None else ())
    row = reader.busy(members, view, session.clocks, line.part)
    if line.kind is LineKind.QUIET:
        row = row._replace(
            levels=tuple(min(level, 1) for level in row.levels), keys=(DIMMED,) * len(row.keys)
        )
    return busy_segments(row, look.palette, look.glyphs), row


def _title(line: Line, look: LineContext, lead: str, focused: bool, value: str, row: object = None) -> str:
    glyphs = look.glyphs
    room = look.titles - 1
    if focused and line.half is not Half.LOWER:
        lead = glyphs.selected + lead[1:]
    text = safe(line.title)
    if isinstance(row, SampleRow) and row.series and line.lane is not None and len(line.lane.rows) > 1:
        text = f"{text} {row.series}" if text else row.series
    if isinstance(row, InstantRow) and not text:
        text = "instants"
    if cell_len(text) + cell_len(lead) > room:
        text = text.removeprefix("thread ")
    if line.overlap and line.half is not Half.LOWER:
        text = f"{text} {glyphs.overlap}".strip()
    tail = f" {value}" if value and cell_len(value) + 6 < room else ""
    if tail and cell_len(lead + text + tail) > room:
        text = _RANGE.sub("", text)  # the value at the cursor tells more than the range
    space = room - cell_len(lead) - cell_len(tail)
    return fit(lead + fit_middle(text, max(0, space), glyphs.ellipsis) + tail, room, "")


def _value_at(row: SampleRow, session: Session, view: Viewport) -> str:
    """Return the counter's value at the cursor, or at the end of the view where the cursor is out of it."""
    cell = view.cell(session.cursor)
    value = row.values[cell if 0 <= cell < len(row.values) else -1] if row.values else math.nan
    return "" if math.isnan(value) else compact_value(value)


def _chosen(
    selected: Selected | None, lane: Lane, depth: int, view: Viewport, session: Session
) -> SelectedCells | None:
    if selected is None or selected.source != lane.source or lane.rows[depth] != selected.row:
        return None
    offset = session.clocks.offset(lane.source, lane.pid)
    left = view.cell(selected.start + offset)
    right = max(left, view.cell(max(selected.start, selected.end - 1) + offset)) + 1
    if right <= 0 or left >= view.width:
        return None
    return SelectedCells(selected.index, max(0, left), min(view.width, right))
