"""The ruler: nice ticks, steps, the range, the cursor; as segments."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import format_ns
from tracelane.core.export.marks import Mark
from tracelane.core.trace import Trace

from ..session import Session, Viewport
from ..steps import StepMark
from ..times import moment_of, stamps_of, zone_text
from .cells import LineCells
from .glyphs import fit_middle, length_title
from .line_context import LineContext, gutter
from .overlays import range_cells
from .palette import Look as RunLook
from .run_marks import LonelyWork, draw_run_marks

TICK_CELLS = 14
"""Least distance of labelled ticks."""
UNITS = ((10**9, "s"), (10**6, "ms"), (10**3, "µs"), (1, "ns"))
STEP_LABEL_CELLS = 3
MARK_NAME = 16
"""Characters of a mark's text that the ruler shows."""
BASELINE_COLOUR = "memcpy"
"""Of the colour keys the one that stands apart from the range's and the steps' colours."""


class Origin(NamedTuple):
    """What the ruler counts from, in ns of trace time.

    `file_offset` is trace time minus the file's own time; `wall_offset` wall time (ns since 1970) minus
    trace time.
    """

    start: int
    file_offset: int = 0
    wall_offset: int | None = None


class RulerMarks(NamedTuple):
    """What is marked on the ruler: marks, that from which the cursor's distance is measured, and of two runs
    when kernels run that one of them lacks.
    """

    marks: Sequence[Mark] = ()
    measured_from: Mark | None = None
    lonely: LonelyWork | None = None


NO_MARKS = RulerMarks()


def origin_of(trace: Trace, session: Session) -> Origin:
    """Return what the ruler of a trace counts from."""
    stamps = stamps_of(trace, session)
    return Origin(stamps.zero, stamps.offsets[0] if stamps.offsets else 0, stamps.wall_offset)


def tick_step(span: int, width: int, least_cells: int = TICK_CELLS) -> int:
    """Return the distance of ticks in ns: 1, 2 or 5 times a power of ten, `least_cells` cells or more."""
    least = max(1, -(-span * least_cells // max(1, width)))
    power = 1
    while power * 10 <= least:
        power *= 10
    for factor in (1, 2, 5, 10):
        if power * factor >= least:
            return power * factor
    return power * 10


def digits_for(view: Viewport) -> int:
    """Return the power of ten, in ns, that times are written to: a tenth of a cell or less."""
    power = 1
    while power * 100 <= view.span // max(1, view.width):
        power *= 10
    return power


def ticks(view: Viewport, origin: int, least_cells: int = TICK_CELLS) -> list[int]:
    """Return the times of the ticks inside the view, on multiples of a nice step from the origin."""
    step = tick_step(view.span, view.width, least_cells)
    first = origin + -((origin - view.start) // step) * step
    return list(range(first, view.end, step))


def tick_label(time: int, step: int) -> str:
    """Return a time from the origin in the unit that suits its size, with the digits that the step needs."""
    if time == 0:
        return "0"
    size, unit = next((s, u) for s, u in UNITS if abs(time) >= s)
    digits = _decimals(step, size)
    sign = "-" if time < 0 else ""
    whole, rest = divmod(abs(time), size)
    fraction = f"{rest:0{len(str(size)) - 1}d}"[:digits] if digits and size > 1 else ""
    return f"{sign}{whole:,}".replace(",", " ") + (f".{fraction}" if fraction else "") + f" {unit}"


def _decimals(step: int, size: int) -> int:
    """Return with how many decimals of a unit of `size` ns a step is written exactly."""
    return next(digits for digits in range(10) if step * 10**digits % size == 0)


def time_text(time: int, session: Session, origin: Origin, step: int = 1) -> str:
    """Return a trace time as the session's ruler writes it: relative, as in the file, or wall time."""
    if session.ruler == "file":
        value = time - origin.file_offset
        sign = "-" if value < 0 else ""
        digits = _decimals(step, 1000)
        fraction = f".{abs(value) % 1000:03d}"[: digits + 1] if digits else ""
        return f"@{sign}{abs(value) // 1000}{fraction}"
    if session.ruler == "wall" and origin.wall_offset is not None:
        return wall_text(time + origin.wall_offset, step, session.zone)
    return tick_label(time - origin.start, step)


def wall_text(stamp: int, step: int = 1, zone: str = "") -> str:
    """Return a wall time, ns since 1970, as h:m:s of a zone with as many decimals as the step needs."""
    seconds, rest = divmod(stamp, 10**9)
    moment = moment_of(stamp, zone)
    if moment is None:
        return f"{seconds} s"
    digits = _decimals(step, 10**9)
    return f"{moment:%H:%M:%S}" + (f".{rest:09d}"[: digits + 1] if digits else "")


def _draw_line(canvas: LineCells, cells: tuple[int, int], ends: str, style: Style) -> None:
    """Draw a line over cells [left, right): its left end, its filling, its right end."""
    left, right = cells
    text = ends[0] + ends[1] * (right - left - 2) + ends[2] if right - left > 1 else ends[2]
    canvas.put(left, text, style)


def ruler_lines(
    session: Session,
    origin: Origin,
    steps: Sequence[StepMark],
    look: LineContext,
    height: int,
    marks: RulerMarks = NO_MARKS,
) -> list[list[Segment]]:
    """Return the ruler's lines, top to bottom: where there are two, steps, range and the cursor's distance
    from a mark; then ticks and cursor, and of two runs when kernels run that one of them lacks.
    """
    view = session.viewport if session.viewport.width == look.area else session.viewport.resized(look.area)
    lines = []
    if height > 1:
        above = _steps(view, steps, session, look, marks.measured_from)
        lines.append([*gutter(length_title("view", view.span, look.titles - 1), look), *above])
    cursor = time_text(session.cursor, session, origin, digits_for(view))
    excess = cell_len(cursor) - max(1, look.titles - 3)  # beside the cursor's mark, a blank and the separator
    if excess > 0:  # the last digits tell places apart
        cursor = look.glyphs.ellipsis + cursor[excess + 1 :]
    title = f"{look.glyphs.cursor} {cursor}"
    ticks_line = _ticks(view, session, origin, look, marks)
    lines.append([*gutter(title, look, look.palette.accent_plain), *ticks_line])
    return lines


def _ticks(
    view: Viewport,
    session: Session,
    origin: Origin,
    look: LineContext,
    ruler_marks: RulerMarks,
) -> list[Segment]:
    palette, glyphs, marks = look.palette, look.glyphs, ruler_marks.marks
    canvas = LineCells.empty(look.area, palette.ruler)
    least = TICK_CELLS
    zero = origin.start
    room = look.area
    if session.ruler == "file":
        zero = origin.file_offset
    elif session.ruler == "wall" and origin.wall_offset is not None:
        zero = -origin.wall_offset
        moment = moment_of(view.start + origin.wall_offset, session.zone)
        name = f" {zone_text(moment)}" if moment is not None else ""
        room -= len(name)
        canvas.put(room, name, palette.dim)
    if session.ruler != "relative":
        # As long as the numbers are: they must not run into each other.
        least = max(least, 3 + len(time_text(view.end, session, origin, tick_step(view.span, view.width))))
    step = tick_step(view.span, view.width, least)
    cursor = view.cell(session.cursor)
    times = ticks(view, zero, least)
    cells = [view.cell(time) for time in times]
    free = 0
    occupied = _occupied_cells(view, session, marks)
    for time, cell, end in zip(times, cells, [*cells[1:], room]):
        label = time_text(time, session, origin, step)
        if cell < room:
            canvas.put(cell, glyphs.tick, palette.line)
        at, label = _label_at(cursor, cell, label, (free, min(end, room)))
        cells_of_label = range(at, at + cell_len(label))
        if free <= at and at + cell_len(label) <= room and occupied.isdisjoint(cells_of_label):
            canvas.put(at, label, palette.ruler)
            free = max(cell, at + cell_len(label)) + 1
    if ruler_marks.lonely is not None:
        draw_run_marks(canvas, ruler_marks.lonely, view, look)
    if session.baseline is not None:
        left, right = range_cells(view, session.baseline)
        style = palette.style(BASELINE_COLOUR, RunLook.FAINT)
        canvas.put(left, glyphs.baseline[0], style)
        canvas.put(right - 1 if right <= look.area else look.area, glyphs.baseline[2], style)
    if session.range is not None:
        left, right = range_cells(view, session.range)
        canvas.paint(left, right, palette.range)
        if left >= 0:
            canvas.put(left, glyphs.range_left, palette.range_end)
        if 0 < right <= look.area and right - 1 > left:
            canvas.put(right - 1, glyphs.range_right, palette.range_end)
    for mark in marks:
        for time in {mark.start, mark.end}:
            if view.start <= time < view.end:
                canvas.put(view.cell(time), glyphs.pinned, palette.accent_plain)
    canvas.put(cursor, glyphs.cursor, palette.cursor)
    return canvas.segments()


def _occupied_cells(view: Viewport, session: Session, marks: Sequence[Mark]) -> frozenset[int]:
    """Return the cells in which marks and the ends of range and baseline stand: tick labels keep off."""
    cells = {view.cell(time) for mark in marks for time in (mark.start, mark.end)}
    for span in (session.range, session.baseline):
        if span is not None:
            left, right = range_cells(view, span)
            cells |= {left, right - 1}
    return frozenset(cells)


def _label_at(cursor: int, tick: int, label: str, room: tuple[int, int]) -> tuple[int, str]:
    """Return where a tick's label is written, and how: behind the tick; where the cursor would stand in it,
    before the tick if there is room there, else around the cursor, over the tick if it must be.
    """
    at, length = tick + 1, cell_len(label)
    within = cursor - at
    if not 0 <= within < length:
        return at, label
    if tick - length >= room[0]:
        return tick - length, label
    if at + length >= room[1]:
        at, within = at - 1, within + 1
    return at, label[:within] + " " + label[within:]


def _steps(
    view: Viewport, steps: Sequence[StepMark], session: Session, look: LineContext, measured_from: Mark | None
) -> list[Segment]:
    palette, glyphs = look.palette, look.glyphs
    canvas = LineCells.empty(look.area, palette.dim)
    free, closed = 0, set[int]()
    own = None if session.range is None else _range_line(view, session.range, look)
    if own is not None:
        cells, at, length = own
        closed.update(range(*cells), range(at - 1, at + cell_len(length) + 1))
    if session.baseline is not None:
        closed.update(range(*range_cells(view, session.baseline)))
    distance = "" if measured_from is None else distance_text(session.cursor, measured_from, glyphs.pinned)
    closed.update(range(look.area - cell_len(distance), look.area))
    for step in steps_in(steps, view):
        left = max(0, view.cell(step.start))
        right = min(look.area, view.cell(max(step.start, step.end - 1)) + 1)
        if left < free and right - left <= STEP_LABEL_CELLS:
            continue
        left = max(left, free)
        canvas.put(left, glyphs.step, palette.line)
        if right - left > STEP_LABEL_CELLS:
            room = right - left - 1
            label = safe(step.title if cell_len(step.title) <= room else step.label)
            room = min(room, cell_len(label))
            if closed.isdisjoint(range(left + 1, left + 1 + room)):
                canvas.put(left + 1, fit_middle(label, room, glyphs.ellipsis), palette.step)
        free = max(free, min(right, left + 1))
    occupied = (0, 0)
    if own is not None:
        occupied = min(cells[0], at), max(cells[1], at + cell_len(length))
    if session.baseline is not None:
        _baseline(canvas, view, session.baseline, look, occupied)
    if own is not None:
        if cells[1] - cells[0] > 1:
            ends = glyphs.range_left + glyphs.range_fill + glyphs.range_right
            _draw_line(canvas, cells, ends, palette.range_edge)
        canvas.put(at, length, palette.range_edge)
    if distance and cell_len(distance) <= look.area:
        canvas.put(look.area - cell_len(distance), distance, palette.accent_plain)
    return canvas.segments()


def _range_line(
    view: Viewport, range_: tuple[int, int], look: LineContext
) -> tuple[tuple[int, int], int, str]:
    """Return the cells of a range, and where its length is written, and how."""
    cells, text = range_cells(view, range_), format_ns(range_[1] - range_[0])
    middle = (max(0, cells[0]) + min(look.area, cells[1]) - cell_len(text)) // 2
    return cells, min(max(0, middle), max(0, look.area - cell_len(text))), text


def _baseline(
    canvas: LineCells, view: Viewport, baseline: tuple[int, int], look: LineContext, occupied: tuple[int, int]
) -> None:
    """Draw the baseline as a double line from end to end, with its length where there is room beside the
    cells that are taken.
    """
    style, cells = look.palette.style(BASELINE_COLOUR, RunLook.FAINT), range_cells(view, baseline)
    low, high = max(0, cells[0]), min(look.area, cells[1])
    if low >= high:
        return
    _draw_line(canvas, cells, look.glyphs.baseline, style)
    text = f" baseline {format_ns(baseline[1] - baseline[0])} "
    for at in ((low + high - len(text)) // 2, low + 1, high - 1 - len(text)):
        free = at + len(text) <= occupied[0] or occupied[1] <= at
        if low < at and at + len(text) < high and free:
            canvas.put(at, text, style)
            return


def distance_text(cursor: int, mark: Mark, glyph: str) -> str:
    """Return how far the cursor is from a mark: before it (-) or after it, of a range from its nearer end; ""
    where it stands on it.
    """
    edge = mark.start if cursor <= mark.start or cursor - mark.start < mark.end - cursor else mark.end
    if cursor == edge:
        return ""
    sign = "-" if cursor < edge else "+"
    name = f"{safe(mark.text)[:MARK_NAME]} " if mark.text else ""
    return f" {glyph} {name}{sign}{format_ns(abs(cursor - edge))}"


def steps_in(steps: Sequence[StepMark], view: Viewport) -> list[StepMark]:
    """Return the steps that touch the view (they are in time order), at most two per cell."""
    first = bisect.bisect_right(steps, view.start, key=lambda step: step.end)
    last = bisect.bisect_left(steps, view.end, key=lambda step: step.start)
    touching = steps[first:last]
    stride = max(1, len(touching) // (2 * view.width))
    return list(touching[::stride])
