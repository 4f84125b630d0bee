"""A line of the lane area as segments: title, separator, then what its row shows."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import format_moment
from tracelane.core.tables.compare.run_pair import PairedSteps
from tracelane.core.trace import Lane

from ..session import Session, Viewport
from ..steps import pair_of
from .glyphs import DOTS, Glyphs, fit, fit_middle, label_in
from .lane_choice import spanning_frame
from .line import Line, LineKind
from .palette import Palette
from .ranks import RANK_PARTS, RankNotes, is_rank
from .rows import DIMMED, GAP, RowReader, Selected
from .runs import InstantRow, Run, SampleRow, SliceRow
from .segments import (
    SelectedCells,
    busy_segments,
    counter_segments,
    mark_segments,
    repainted,
    slice_segments,
    with_hits,
)

SLOWEST = (" slowest", " slow")
"""What stands behind the title of the rank that the others wait for most, as there is room."""
VALUE_CELLS = 7
NARROW_TITLE = 16
WIDE_TITLE = 30
EXTENT_SHARE = 5
"""The least and greatest value of a counter take at most one such part of its line."""
_RANGE = re.compile(r" \S+\.\.\S+")


def title_cells(width: int) -> int:
    """Return how many of `width` cells the lane titles take, their separator included: 16 at 80, up to 30."""
    if width < 60:
        return max(4, width // 4)
    return min(WIDE_TITLE, NARROW_TITLE + max(0, width - 80) * 14 // 120)


class LineContext(NamedTuple):
    """The values that the drawing of every line needs."""

    palette: Palette
    glyphs: Glyphs
    titles: int  # cells of the titles, the separator included
    area: int  # cells of the time area
    ranks: RankNotes = RankNotes()


def gutter(title: str, look: LineContext, style: Style | None = None) -> list[Segment]:
    """Return what stands left of the time area: a title, dim if in no style of its own, and the separator."""
    text = fit(title, look.titles - 1, look.glyphs.ellipsis)
    if not text.strip():
        return [Segment(text + look.glyphs.separator, look.palette.line)]
    return [Segment(text, style or look.palette.dim), Segment(look.glyphs.separator, look.palette.line)]


def framed(segments: list[Segment], has_thumb: bool, look: LineContext) -> list[Segment]:
    """Return a line with the scrollbar's thumb for separator, if it is one of the thumb's lines."""
    if not has_thumb:
        return segments
    thumb, separators = Segment(look.glyphs.thumb, look.palette.dim), (look.glyphs.separator, "|")
    return repainted(
        segments, look.titles - 1, look.titles, lambda _: thumb, lambda one: one.text[-1:] in separators
    )


def with_extent(segments: list[Segment], row: SampleRow, look: LineContext) -> list[Segment]:
    """Return the segments of a counter with its least and greatest value at the right edge."""
    if row.extent is None:
        return segments
    text = " " + "–".join(map(compact_value, row.extent))
    if cell_len(text) > look.area // EXTENT_SHARE:
        return segments
    left = look.area - cell_len(text)
    cut = repainted(segments, left, look.area, lambda _: Segment(""))
    return [*cut, Segment(text, look.palette.dim)]


def with_range(segments: Sequence[Segment], left: int, right: int, look: LineContext) -> list[Segment]:
    """Return the segments of a time area with the blank cells in [left, right), the range, shaded."""
    blank, shade = look.palette.blank, look.palette.in_range
    return repainted(
        segments, left, right, lambda part: Segment(part.text, shade), lambda part: part.style is blank
    )


def line_segments(line: Line | None, reader: RowReader, session: Session, look: LineContext) -> list[Segment]:
    """Return one line of the lane area, exactly titles + area cells."""
    palette, glyphs = look.palette, look.glyphs
    if line is None:
        return [Segment(" " * (look.titles + look.area), palette.blank)]
    if line.kind is LineKind.RULE:
        return [Segment(glyphs.rule * (look.titles + look.area), palette.line)]
    if line.kind is LineKind.NOTE:
        return _note(line, look)
    view = session.viewport if session.viewport.width == look.area else session.viewport.resized(look.area)
    if line.kind is LineKind.PROCESS:
        return _process(line, reader, session, view, look)
    if line.kind is LineKind.DELTA and (pair := pair_of(reader.trace)) is not None:
        return [
            *gutter("  " + line.title, look),
            *step_changes(pair.common_steps(session.steps), view, session, look),
        ]
    if line.kind is LineKind.MISSING and line.process is not None:
        why = fit(" " + safe(line.title), look.area, glyphs.ellipsis)
        return [*gutter("  " + safe(line.process.title), look), Segment(why, palette.dim)]
    if line.kind is LineKind.QUIET:
        title = f"  {line.title} {glyphs.folded}"
        return [*gutter(title, look), *_busy(line, reader, session, view, look)]
    if line.kind is LineKind.MORE or line.lane is None:
        rest = fit(" :expand shows them", look.area, "")
        lane = line.lane  # of which the rows from the line's depth on are hidden
        rows = [] if lane is None else [(lane.source, lane.rows.start + line.depth, lane.rows.stop)]
        hits = reader.hits_in(rows, view)
        return [*gutter("  " + line.title, look), *with_hits([Segment(rest, palette.hint)], hits)]
    if line.kind is LineKind.LANE:
        focused = line.holds(session.focus)
        title = _title(line, look, glyphs.folded + " ", focused, "")
        style = palette.accent if focused else palette.title
        return [*gutter(title, look, style), *_busy(line, reader, session, view, look)]
    return _row(line, line.lane, reader, session, view, look)


def step_changes(steps: PairedSteps, view: Viewport, session: Session, look: LineContext) -> list[Segment]:
    """Return a line with how much longer each step of the second run takes, where the first run's begins; the
    most changed first where there is no room for all.
    """
    seen = np.flatnonzero((steps.a[:, 0] < view.end) & (steps.a[:, 1] > view.start))
    order = seen[np.argsort(-np.abs(steps.deltas[seen]), kind="stable")][: look.area]
    current, texts = steps.at(session.cursor), dict[int, Segment]()
    free = [True] * look.area
    for at in order.tolist():
        text = f"{safe(steps.title(at))} {format_moment(int(steps.deltas[at]), 3)}"
        left = max(0, min(view.cell(int(steps.a[at, 0])), look.area - cell_len(text)))
        cells = slice(left, left + cell_len(text) + 1)
        if len(text) <= look.area and all(free[cells]):
            free[cells] = [False] * len(free[cells])
            texts[left] = Segment(text, look.palette.accent if at == current else look.palette.title)
    segments, end = list[Segment](), 0
    for left, segment in sorted(texts.items()):
        segments += [Segment(" " * (left - end), look.palette.blank), segment]
        end = left + segment.cell_length
    segments.append(Segment(" " * (look.area - end), look.palette.blank))
    return [segment for segment in segments if segment.text]


def _row(
    line: Line, lane: Lane, reader: RowReader, session: Session, view: Viewport, look: LineContext
) -> list[Segment]:
    """Return a row of a lane with its title: what is drawn of it, then the range and the cursor over it."""
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
        gap = chosen is not None and chosen.at == GAP
        area = slice_segments(row.runs, look.area, palette, glyphs, None if gap else chosen, row.has_bars)
        if line.frames:
            first, frames = lane.rows.start, line.frames
            parts = (frames.start, depth), (depth + 1, frames.stop)
            folded = [(lane.source, first + low, first + high) for low, high in parts]
            area = with_hits(area, reader.hits_in(folded, view))
        if gap and chosen is not None:
            area = with_gap(area, chosen.left, chosen.right, look)
    elif isinstance(row, InstantRow):
        area = mark_segments(row.marks, look.area, palette, glyphs, chosen)
    elif isinstance(row, SampleRow):
        area = with_extent(counter_segments(row, palette, glyphs), row, look)
        value = _value_at(row, session, view)
    else:
        area = busy_segments(row, palette, glyphs)
    focused = line.holds(session.focus)
    if session.range is not None:
        area = with_range(area, *range_cells(view, session.range), look)
    if focused:
        area = with_cursor(area, view.cell(session.cursor), look)
    title = _title(line, look, _indent(line, look), focused, value, row)
    return [*gutter(title, look, palette.accent if focused else palette.title), *area]


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


def _process(
    line: Line, reader: RowReader, session: Session, view: Viewport, look: LineContext
) -> list[Segment]:
    palette, glyphs = look.palette, look.glyphs
    mark = glyphs.folded if line.folded else glyphs.unfolded
    title = f"{mark} {safe(line.title)}"
    if line.folded:
        if line.process is not None and cell_len(title) >= look.titles:
            title = f"{mark} {safe(line.process.title)}"  # which one it is matters more than its size
        title, style = _with_note(title, line, look)
        room, rank = look.titles - 1, title.partition(" · ")[0]
        short = fit_middle(title, room, glyphs.ellipsis)
        if line.process is not None and is_rank(line.process) and rank not in short:
            short = fit(title, room, glyphs.ellipsis)  # its number before its host's
        return [*gutter(short, look, style), *_busy(line, reader, session, view, look)]
    width = look.titles + look.area
    text = fit(title, min(width, cell_len(title)), glyphs.ellipsis)
    rest = width - cell_len(text)
    # Without shades the raised background does not show: a rule carries the title over the width.
    rule = " " * rest if palette.shaded else " " + glyphs.rule * (rest - 1)
    return [Segment(text, palette.process), *([Segment(rule, palette.process_rest)] if rest else [])]


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
) -> list[Segment]:
    members = line.members or ((line.lane.index,) if line.lane is not None else ())
    row = reader.busy(members, view, session.clocks, line.part)
    if line.kind is LineKind.QUIET:
        row = row._replace(
            levels=tuple(min(level, 1) for level in row.levels), keys=(DIMMED,) * len(row.keys)
        )
    area = busy_segments(row, look.palette, look.glyphs)
    return with_range(area, *range_cells(view, session.range), look) if session.range is not None else area


def range_cells(view: Viewport, range_: tuple[int, int]) -> tuple[int, int]:
    """Return the cells [left, right) that a range takes; what lies outside is cut to one."""
    left, right = view.cell(range_[0]), view.cell(max(range_[0], range_[1] - 1)) + 1
    return max(-1, left), min(view.width + 1, right)


def _title(line: Line, look: LineContext, lead: str, focused: bool, value: str, row: object = None) -> str:
    glyphs = look.glyphs
    room = look.titles - 1
    if focused:
        lead = glyphs.selected + lead[1:]
    text = safe(line.title)
    if isinstance(row, SampleRow) and row.series and line.lane is not None and len(line.lane.rows) > 1:
        text = f"{text} {row.series}" if text else row.series
    if isinstance(row, InstantRow) and not text:
        text = "instants"
    if cell_len(text) + cell_len(lead) > room:
        text = text.removeprefix("thread ")
    if line.overlap:
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


def compact_value(value: float) -> str:
    """Return a counter's value in at most VALUE_CELLS, if it is below 10^18."""
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    for limit, unit in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= limit:
            return f"{value / (limit if unit != 'k' else 1e3):.4g}{unit}"
    texts = (f"{value:.{digits}g}" for digits in (4, 3, 2, 1))
    return next((text for text in texts if len(text) <= VALUE_CELLS), "0")


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


def with_gap(segments: Sequence[Segment], left: int, right: int, look: LineContext) -> list[Segment]:
    """Return the segments with the selected gap in [left, right) filled, its cause set off."""
    empty, why = " " + look.glyphs.shades[1], look.palette.gap_text

    def paint(part: Segment) -> Segment:
        text = part.text if part.style is why else look.glyphs.range_fill * part.cell_length
        return Segment(text, look.palette.range_edge)

    return repainted(
        segments, left, right, paint, lambda part: part.style is why or not part.text.strip(empty)
    )


def with_cursor(segments: Sequence[Segment], cell: int, look: LineContext) -> list[Segment]:
    """Return the segments with a thin mark in one cell, or the letter there set off; nothing is covered."""
    glyphs = look.glyphs
    drawn = {" ", glyphs.filler, *glyphs.shades, *glyphs.bars, *glyphs.lefts}
    segments_out: list[Segment] = []
    at = 0
    for segment in segments:
        width = segment.cell_length
        if at <= cell < at + width:
            before, rest = segment.split_cells(cell - at)
            under, after = rest.split_cells(1)
            if before.text + rest.text != segment.text:  # the right half of a wide letter
                before, rest = segment.split_cells(cell - at - 1)
                under, after = rest.split_cells(2)
            elif under.text + after.text != rest.text:  # its left half
                under, after = rest.split_cells(2)
            segments_out.extend(part for part in (before,) if part.text)
            style = under.style or look.palette.blank
            if under.text in drawn or under.text in DOTS:
                segments_out.append(Segment(glyphs.single, style + look.palette.cursor_on))
            else:
                segments_out.append(Segment(under.text, look.palette.cursor_letter(style)))
            segments_out.extend(part for part in (after,) if part.text)
        else:
            segments_out.append(segment)
        at += width
    return segments_out
