"""Runs, marks and levels as rich Segments: one per run, with styles that the palette makes once."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby, repeat
from typing import NamedTuple

import numpy as np
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from .cells import LineCells, characters, text_in
from .glyphs import LEFT_DOTS, NO_DOTS, RIGHT_DOTS, Glyphs, ascii_text, fit, label_in, padded
from .palette import Look, Palette
from .runs import (
    BRACKET,
    FULL,
    HATCH,
    HATCH_LABEL,
    HATCH_MARGIN,
    HIT,
    LABEL_CELLS,
    OPEN_LEFT,
    OPEN_RIGHT,
    RAGGED,
    TOUCH,
    WHOLE,
    BusyRow,
    InstantCell,
    Run,
    SampleRow,
)

_TEXTURES = (0, 1, 1, 2, 2, 3, 3, 3, 3)
"""Which shade tells each level of a cell that some slice touches."""
_SPECIAL = HIT | BRACKET | HATCH
SAME_LEVEL = re.compile(rb"(.)\1*", re.DOTALL)
"""Neighbouring cells of one level."""
HIT_STYLE = Style(bold=True, underline=True)
"""Laid over a run in which something searched for lies: seen on every colour, and without colours."""
ABOUT = "≈"
"""Stands before a share that was estimated from a sample of the slices."""
COUNT_FROM = 6
"""Runs of fewer cells do not say what slices they stand for."""
VALUE_CELLS = 7
"""A counter's value takes at most so many cells."""
MIN_NAME = 8
"""Characters of a name that are worth more than how much time it takes."""


DOT_ROWS = len(LEFT_DOTS)


class SelectedCells(NamedTuple):
    """The selected slice as a row shows it: its index in the row and the cells it touches, [left, right)."""

    at: int
    left: int
    right: int


def slice_segments(
    runs: Sequence[Run],
    width: int,
    palette: Palette,
    glyphs: Glyphs,
    chosen: SelectedCells | None = None,
    has_bars: bool = False,
) -> list[Segment]:
    """Return the segments of a row of slices, exactly `width` cells.

    How much of a cell's time slices cover is told by brightness, with `has_bars` in runs without label by
    height; where there are no shades, by texture or height.
    """
    segments: list[Segment] = []
    cell = 0
    blank = palette.blank
    plain = palette.shaded and not has_bars
    for run in runs:
        if run.left > cell:
            segments.append(Segment(" " * (run.left - cell), blank))
        cell = run.right
        is_chosen = chosen is not None and run.left < chosen.right and chosen.left < run.right
        if plain and cell - run.left == 1 and run.levels and not is_chosen and not run.flags & _SPECIAL:
            drawn = [Segment(" ", palette.fills(run.key)[run.levels[0]])]  # what most runs are
        else:
            drawn = []
            if is_chosen and chosen is not None:
                _chosen_run(drawn, run, chosen, palette, glyphs, has_bars)
            else:
                _run(drawn, run, palette, glyphs, has_bars)
            if run.flags & HIT:
                fill, ink = palette.fills(run.key)[FULL], palette.inks(run.key)[FULL]
                for part in drawn:  # one style for text and blanks: a line under both has one colour
                    style = ink if part.style is fill else part.style or blank
                    segments.append(Segment(part.text, style + HIT_STYLE))
                continue
        if segments and drawn and segments[-1].style is drawn[0].style and drawn[0].style is not blank:
            text = segments[-1].text
            if run.flags & TOUCH and text[-1] == glyphs.bars[FULL]:
                text = text[:-1] + glyphs.lefts[FULL - 1]  # a thin gap tells the two apart
            segments[-1] = Segment(text + drawn[0].text, drawn[0].style)
            del drawn[0]
        segments.extend(drawn)
    if cell < width:
        segments.append(Segment(" " * (width - cell), blank))
    return segments


def _run(segments: list[Segment], run: Run, palette: Palette, glyphs: Glyphs, has_bars: bool) -> None:
    width = run.right - run.left
    is_whole = run.flags & WHOLE
    if run.flags & BRACKET:
        text = _bracketed(run, glyphs) if is_whole else _many_text(run, width, glyphs).rstrip()
        segments.append(Segment(fit(text, width, filler=glyphs.filler), palette.style(run.key, Look.BRACKET)))
        return
    if run.flags & HATCH:
        _hatched(segments, run, palette, glyphs)
        return
    has_edges = run.left_eighths or run.right_eighths < FULL
    if has_bars and not run.label and not has_edges:
        text = "".join(map(glyphs.bars.__getitem__, run.levels)) or glyphs.bars[FULL] * width
        segments.append(Segment(text, palette.style(run.key, Look.BAR)))
        return
    if is_whole and (not run.levels or not palette.shaded):
        _whole_run(segments, run, palette, glyphs)
    elif palette.shaded:
        text = _whole_text(run, width, glyphs) if is_whole else _many_text(run, width, glyphs)
        _brightness(segments, run, text, palette)
    else:
        _texture(segments, run, palette, glyphs)


def _hatched(segments: list[Segment], run: Run, palette: Palette, glyphs: Glyphs) -> None:
    width, hatch, style = run.right - run.left, glyphs.shades[1], palette.style(run.key, Look.FAINT)
    if not run.label or width < HATCH_LABEL:
        segments.append(Segment(hatch * width, style))
        return
    body = f" {fit(run.label, min(cell_len(run.label), width - HATCH_MARGIN), glyphs.ellipsis)} "
    rest = hatch * (width - 1 - cell_len(body))
    segments += [Segment(hatch, style), Segment(body, palette.gap_text), Segment(rest, style)]


def _brightness(segments: list[Segment], run: Run, text: str, palette: Palette) -> None:
    inks, fills = palette.inks(run.key), palette.fills(run.key)
    if not run.levels:
        segments.append(Segment(text, (fills if text.isspace() else inks)[FULL]))
        return
    levels, in_cells = run.levels.translate(palette.step_table), characters(text)
    for cells in SAME_LEVEL.finditer(levels):
        at, end = cells.span()
        part = text_in(in_cells, at, end)
        segments.append(Segment(part, (fills if part.isspace() else inks)[levels[at]]))


def _texture(segments: list[Segment], run: Run, palette: Palette, glyphs: Glyphs) -> None:
    """Draw the cells of several slices as dense as they are covered, with a label between the first cell and
    the last where there is room.
    """
    width = run.right - run.left
    text = "".join([glyphs.shades[_TEXTURES[level]] for level in run.levels]) or glyphs.shades[3] * width
    style = palette.style(run.key, Look.FAINT)
    if not run.label or width < COUNT_FROM:
        segments.append(Segment(text, style))
        return
    label = _many_text(run, width - 2, glyphs).rstrip()
    end = 1 + cell_len(label)
    if not palette.coloured:
        segments.append(Segment(text[0] + label + text[end:], style))
        return
    segments.append(Segment(text[0], style))
    segments.append(Segment(label, palette.ruler))
    segments.append(Segment(text[end:], style))


def _whole_run(segments: list[Segment], run: Run, palette: Palette, glyphs: Glyphs) -> None:
    if not palette.coloured:
        segments.append(Segment(_bracketed(run, glyphs), palette.style(run.key)))
        return
    width = run.right - run.left
    left_part, right_part = run.left_eighths, run.right_eighths
    ragged = run.flags & RAGGED and not run.flags & OPEN_RIGHT
    body = width
    if left_part:
        # The empty part is drawn, in the background's colour, over the slice's own.
        segments.append(Segment(glyphs.lefts[left_part], palette.style(run.key, Look.EDGE)))
        body -= 1
    tail: Segment | None = None
    if ragged and width > 1:
        tail = Segment(glyphs.ragged, palette.style(run.key, Look.MARK))
        body -= 1
    elif right_part < FULL and body > 0:
        tail = Segment(glyphs.lefts[right_part], palette.style(run.key, Look.BAR))
        body -= 1
    if body > 0:
        text = _whole_text(run, body, glyphs)
        segments.append(Segment(text, (palette.fills if text.isspace() else palette.inks)(run.key)[FULL]))
    if tail is not None:
        segments.append(tail)


def _whole_text(run: Run, width: int, glyphs: Glyphs) -> str:
    """Return a slice's label, behind an edge where a slice of its colour ends."""
    has_label = bool(run.label) and width >= LABEL_CELLS
    is_even = width > 1 and run.levels == run.levels[:1] * width  # covered from its first cell on
    if run.flags & TOUCH and (not run.levels or run.levels[0] == FULL or is_even):
        if not has_label:
            return fit(glyphs.edge, width)
        return glyphs.edge + fit(label_in(run.label, width - 1), width - 1, glyphs.ellipsis)
    return padded(label_in(run.label, width), width, glyphs.ellipsis) if has_label else " " * width


def _many_text(run: Run, width: int, glyphs: Glyphs) -> str:
    if width < COUNT_FROM - 2 or not run.label:
        return " " * width
    if not run.slices:
        return padded(run.label, width, glyphs.ellipsis)
    return _many_label(run.slices, run.label, run.share, width, glyphs)


@lru_cache(maxsize=2048)
def _many_label(count: int, label: str, share: str, width: int, glyphs: Glyphs) -> str:
    """Return what several slices are called: how many, the name that takes most time, and its share of it.

    Where room is short the name loses what many share, then the count goes, then the share.
    """
    short = label_in(label, 0)
    tail = f" {share}" if share else ""
    for name in (label, short):
        text = f"{compact_count(count)} {glyphs.many} {name}{tail}"
        if cell_len(text) <= width - 1:
            return fit(f" {text}" if cell_len(text) < width - 1 else f"{text} ", width)
    room = min(width - 1 - cell_len(tail), cell_len(short))
    if tail and room >= min(MIN_NAME, cell_len(short)):
        return glyphs.many + fit(short, room, glyphs.ellipsis) + fit(tail, width - 1 - room)
    return fit(glyphs.many + short, width, glyphs.ellipsis)


def share_label(share: float, is_exact: bool) -> str:
    """Return the share of one name in the time of several slices as text, "" where there is no other name."""
    if share in (0.0, 1.0):
        return ""
    percent = round(100 * share)
    mark = "" if is_exact else ABOUT
    if is_exact and not 1 <= percent <= 99:
        mark = "<" if percent < 1 else ">"
    return f"{mark}{min(99, max(1, percent))} %"


def compact_count(count: int) -> str:
    """Return a count in at most four cells: 950, 12k, 3.4M."""
    for limit, unit in ((10**3, ""), (10**6, "k"), (10**9, "M"), (10**12, "G")):
        if count < limit:
            value = count * 1000 / limit
            return f"{count}" if not unit else f"{value:.1f}{unit}" if value < 10 else f"{int(value)}{unit}"
    return f"{count:.0e}"


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


def _bracketed(run: Run, glyphs: Glyphs) -> str:
    """Return a slice without colours: brackets at the ends that are in view, a filler between."""
    return _bracketed_text(run.right - run.left, run.label, run.flags, glyphs)


@lru_cache(maxsize=2048)
def _bracketed_text(width: int, label: str, flags: int, glyphs: Glyphs) -> str:
    opening = "" if flags & OPEN_LEFT else "["
    closing = "" if flags & OPEN_RIGHT else glyphs.ragged if flags & RAGGED else "]"
    if width == 1:
        return glyphs.single
    body = width - len(opening) - len(closing)
    text = ""
    if label and body >= LABEL_CELLS:
        text = label if cell_len(label) >= body else label + " "
    return opening + fit(text, body, glyphs.ellipsis, glyphs.filler) + closing


def _chosen_run(
    segments: list[Segment], run: Run, chosen: SelectedCells, palette: Palette, glyphs: Glyphs, has_bars: bool
) -> None:
    style = palette.style(run.key, Look.CHOSEN)
    width = run.right - run.left
    if run.flags & WHOLE:
        if run.at != chosen.at:
            # A neighbour that shares the cell's time but not the slice (a zero-length one at its edge).
            _run(segments, run, palette, glyphs, has_bars)
        else:
            plain = run._replace(left_eighths=0, right_eighths=FULL)
            is_named = width >= LABEL_CELLS and bool(run.label)
            text = _bracketed(plain, glyphs) if is_named or not palette.coloured else " " * width
            segments.append(Segment(text, style))
        return
    drawn: list[Segment] = []
    _run(drawn, run, palette, glyphs, has_bars)
    left, right = chosen.left - run.left, chosen.right - run.left
    cells = LineCells(drawn, palette.blank)
    cells.put(left, glyphs.single * (right - left), style)
    segments += cells.segments()


def ascii_segments(segments: list[Segment], glyphs: Glyphs) -> list[Segment]:
    """Return segments that hold nothing but ASCII where the glyphs are."""
    if not glyphs.ascii:
        return segments
    return [segment._replace(text=ascii_text(segment.text)) for segment in segments]


def mark_segments(
    marks: Sequence[InstantCell],
    width: int,
    palette: Palette,
    glyphs: Glyphs,
    chosen: SelectedCells | None = None,
) -> list[Segment]:
    """Return the segments of an instants row: a mark, or how many there are in the cell."""
    segments: list[Segment] = []
    cell = 0
    for mark in marks:
        if mark.cell > cell:
            segments.append(Segment(" " * (mark.cell - cell), palette.blank))
        text = str(mark.instants) if mark.instants < 10 else glyphs.instants
        if mark.instants == 1:
            text = glyphs.instant
        look = Look.CHOSEN if chosen is not None and chosen.left == mark.cell else Look.MARK
        segments.append(Segment(text, palette.style(mark.key, look)))
        cell = mark.cell + 1
    if cell < width:
        segments.append(Segment(" " * (width - cell), palette.blank))
    return segments


def counter_segments(row: SampleRow, palette: Palette, glyphs: Glyphs) -> list[Segment]:
    """Return the segments of a counter: a line from its least to its greatest value in each cell, blank where
    nothing holds; of one that never varies a thin line.
    """
    text = ""
    before = low, high = -1, -1
    for low, high in row.levels:
        if high < 0:
            text += " "
        elif row.extent is None:
            text += glyphs.filler
        else:
            text += dots(low, high, *before)
        before = low, high
    style = palette.style("counter", Look.FAINT)
    parts = ("".join(cells) for _, cells in groupby(text, str.isspace))
    return [Segment(part, palette.blank if part.isspace() else style) for part in parts]


@lru_cache(maxsize=1024)
def dots(low: int, high: int, low_before: int, high_before: int) -> str:
    """Return a cell of a line from one level to another, in eighths: two columns of four dots, of which the
    left one also leads to the cell before (-1 where there is none).

    A value of 2 eighths behind one of 6 has its dots in the second row from below, and in the left column
    also those in the rows above, up to the row before that of 6.
    """
    bottom, top = (min(DOT_ROWS - 1, level * DOT_ROWS // FULL) for level in (low, high))
    first, last = bottom, top
    if high_before >= 0:
        below, above = (min(DOT_ROWS - 1, level * DOT_ROWS // FULL) for level in (low_before, high_before))
        first, last = min(bottom, above + 1), max(top, below - 1)
    left = sum(LEFT_DOTS[dot] for dot in range(first, last + 1))
    return chr(NO_DOTS + left + sum(RIGHT_DOTS[dot] for dot in range(bottom, top + 1)))


def busy_segments(row: BusyRow, palette: Palette, glyphs: Glyphs) -> list[Segment]:
    """Return the segments of a line of busy levels in eighths, each in its cell's colour; -1 is empty, and
    what is in annotations alone is a line. Of an outline all that has work is a line.
    """
    if row.is_outline:
        text = "".join(glyphs.filler if level >= 0 else " " for level in row.levels)
        return [Segment(text, palette.dim)]
    segments: list[Segment] = []
    for (level, key, waits), cells in groupby(zip(row.levels, row.keys, row.hatched or repeat(False))):
        count = sum(1 for _ in cells)
        text = glyphs.shades[1] if waits else " " if level < 0 else glyphs.bars[max(1, level)]
        look = Look.FAINT
        if key == "annotation" and level >= 0:
            text, look = glyphs.filler, Look.BRACKET
        style = palette.blank if text == " " else palette.style(key, look)
        segments.append(Segment(text * count, style))
    for run in row.runs:
        before, _, behind = Segment.divide(segments, [run.left, run.right, len(row.levels)])
        segments = list(before)
        _hatched(segments, run, palette, glyphs)
        segments += behind
    return segments


def levels_of(
    low: Sequence[float], high: Sequence[float], least: float, most: float
) -> list[tuple[int, int]]:
    """Return counter values as (low, high) levels 0..8 of a scale; nan gives (-1, -1)."""
    values = np.array((low, high), np.float64)
    known = ~np.isnan(values).any(axis=0)
    if most > least:
        levels = np.rint(((values - least) * (8 / (most - least))).clip(0, 8))
    else:
        levels = np.full(values.shape, 4.0)
    below, above = np.where(known, levels, -1.0).astype(np.int64).tolist()
    return list(zip(below, above))
