"""Runs, marks and levels as rich Segments: one per run, with styles that the palette makes once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, repeat

import numpy as np
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from .glyphs import Glyphs
from .labels import ascii_text, fit, padded
from .palette import Look, Palette
from .runs import HIT, LABEL_CELLS, OPEN_LEFT, OPEN_RIGHT, OTHER, RAGGED, TOUCH, WHOLE, InstantCell, Run

HIT_STYLE = Style(bold=True, underline=True)
"""Laid over a run in which something searched for lies: seen on every colour, and without colours."""
COUNT_FROM = 6
"""Runs of fewer cells do not say how many slices they stand for."""


@dataclass(frozen=True)
class SelectedCells:
    """The selected slice as a row shows it: its index in the row and the cells it touches, [left, right)."""

    place: int
    left: int
    right: int


def slice_segments(
    runs: Sequence[Run], width: int, palette: Palette, glyphs: Glyphs, chosen: SelectedCells | None = None
) -> list[Segment]:
    """Return the segments of a row of slices, exactly `width` cells."""
    segments: list[Segment] = []
    cell = 0
    blank = palette.blank
    for run in runs:
        if run.left > cell:
            segments.append(Segment(" " * (run.left - cell), blank))
        cell = run.right
        first = len(segments)
        if chosen is not None and run.left < chosen.right and chosen.left < run.right:
            _chosen_run(segments, run, chosen, palette, glyphs)
        elif run.flags & WHOLE:
            _whole_run(segments, run, palette, glyphs)
        else:
            segments.append(Segment(_many_text(run, palette, glyphs), _many_style(run, palette)))
        if run.flags & HIT:
            marked = ((part.text, part.style or blank) for part in segments[first:])
            segments[first:] = [Segment(text, style + HIT_STYLE) for text, style in marked]
    if cell < width:
        segments.append(Segment(" " * (width - cell), blank))
    return segments


def _whole_run(segments: list[Segment], run: Run, palette: Palette, glyphs: Glyphs) -> None:
    if not palette.coloured:
        segments.append(Segment(_bracketed(run, glyphs), palette.style(run.key)))
        return
    other = run.flags & OTHER
    style = palette.style(run.key, Look.OTHER if other else Look.WHOLE)
    width = run.right - run.left
    left_part, right_part = run.left_eighths, run.right_eighths
    ragged = run.flags & RAGGED and not run.flags & OPEN_RIGHT
    if not left_part and right_part == 8 and not ragged:
        segments.append(Segment(_whole_text(run, width, palette, glyphs), style))
        return
    body = width
    if left_part:
        # The empty part is drawn, in the background's colour, over the slice's own.
        segments.append(
            Segment(glyphs.lefts[left_part], palette.style(run.key, Look.EDGE_OTHER if other else Look.EDGE))
        )
        body -= 1
    tail: Segment | None = None
    if ragged and width > 1:
        tail = Segment(glyphs.ragged, palette.style(run.key, Look.MARK))
        body -= 1
    elif right_part < 8 and body > 0:
        tail = Segment(
            glyphs.lefts[right_part], palette.style(run.key, Look.TAIL_OTHER if other else Look.TAIL)
        )
        body -= 1
    if body > 0:
        segments.append(Segment(_whole_text(run, body, palette, glyphs), style))
    if tail is not None:
        segments.append(tail)


def _whole_text(run: Run, width: int, palette: Palette, glyphs: Glyphs) -> str:
    if run.flags & TOUCH and not palette.shaded:
        if width < LABEL_CELLS or not run.label:
            return fit(glyphs.edge, width)
        return glyphs.edge + fit(run.label, width - 1, glyphs.ellipsis)
    if width < LABEL_CELLS or not run.label:
        return " " * width
    return padded(run.label, width, glyphs.ellipsis)


def _many_style(run: Run, palette: Palette) -> Style:
    # A texture alone keeps to the colour, a text must be readable.
    return palette.style(run.key, Look.MANY if run.right - run.left >= COUNT_FROM else Look.BAND)


def _many_text(run: Run, palette: Palette, glyphs: Glyphs) -> str:
    width = run.right - run.left
    filler = " " if palette.shaded else glyphs.texture
    if palette.shaded and width < COUNT_FROM:
        return glyphs.texture * width
    if width < COUNT_FROM:
        return filler * width
    return _many_label(run.slices, run.label, width, glyphs, glyphs.texture)


@lru_cache(maxsize=65536)
def _many_label(count: int, label: str, width: int, glyphs: Glyphs, filler: str) -> str:
    text = f"{glyphs.many}{compact_count(count)} {label}"
    if cell_len(text) < width:
        text += " "
    return fit(text, width, glyphs.ellipsis, filler)


def compact_count(count: int) -> str:
    """Return a count in at most four cells: 950, 12k, 3.4M."""
    for limit, unit in ((10**3, ""), (10**6, "k"), (10**9, "M"), (10**12, "G")):
        if count < limit:
            value = count * 1000 / limit
            return f"{count}" if not unit else f"{value:.1f}{unit}" if value < 10 else f"{int(value)}{unit}"
    return f"{count:.0e}"


def _bracketed(run: Run, glyphs: Glyphs) -> str:
    """Return a slice without colours: brackets at the ends that are in view, a filler between."""
    return _bracketed_text(run.right - run.left, run.label, run.flags, glyphs)


@lru_cache(maxsize=65536)
def _bracketed_text(width: int, label: str, flags: int, glyphs: Glyphs) -> str:
    opening = "" if flags & OPEN_LEFT else glyphs.opening
    closing = "" if flags & OPEN_RIGHT else glyphs.ragged if flags & RAGGED else glyphs.closing
    if width == 1:
        return glyphs.single
    body = width - len(opening) - len(closing)
    text = ""
    if label and body >= LABEL_CELLS:
        text = label if cell_len(label) >= body else label + " "
    return opening + fit(text, body, glyphs.ellipsis, glyphs.filler) + closing


def _chosen_run(
    segments: list[Segment], run: Run, chosen: SelectedCells, palette: Palette, glyphs: Glyphs
) -> None:
    style = palette.style(run.key, Look.CHOSEN)
    width = run.right - run.left
    if run.flags & WHOLE:
        if run.place != chosen.place:
            # A neighbour that shares the cell's time but not the slice (a zero-length one at its edge).
            _whole_run(segments, run, palette, glyphs)
        else:
            plain = run._replace(left_eighths=0, right_eighths=8)
            text = _bracketed(plain, glyphs) if width >= LABEL_CELLS or not palette.coloured else " " * width
            segments.append(Segment(text, style))
        return
    whole = Segment(_many_text(run, palette, glyphs), _many_style(run, palette))
    left = max(chosen.left, run.left) - run.left
    right = min(chosen.right, run.right) - run.left
    before, rest = whole.split_cells(left)
    _, after = rest.split_cells(right - left)
    marked = Segment(glyphs.single * (right - left), style)
    segments.extend(part for part in (before, marked, after) if part.text)


def ascii_segments(segments: list[Segment], glyphs: Glyphs) -> list[Segment]:
    """Return segments that hold nothing but ASCII where the glyphs are."""
    if not glyphs.ascii:
        return segments
    return [Segment(ascii_text(segment.text), segment.style) for segment in segments]


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


def band_segments(
    levels: Sequence[tuple[int, int]], key: str, palette: Palette, glyphs: Glyphs
) -> list[Segment]:
    """Return the segments of a counter row from (low, high) levels in eighths, (-1, -1) where nothing holds.

    A steady cell is drawn in the full colour up to its value; a cell in which the value varied shows the part
    below its least value in full and the band up to the greatest paler, as far as one glyph can say it.
    """
    segments: list[Segment] = []
    steady, pale, both = (
        palette.style(key, Look.MARK),
        palette.style(key, Look.FAINT),
        palette.style(key, Look.BAND),
    )
    for (low, high), cells in groupby(levels):
        count = sum(1 for _ in cells)
        if high < 0:
            segments.append(Segment(" " * count, palette.blank))
        elif low == high or not palette.coloured:
            segments.append(Segment(glyphs.bars[max(1, high)] * count, steady))
        elif high == 8 and palette.shaded:
            segments.append(Segment(glyphs.bars[low] * count, both))
        else:
            segments.append(Segment(glyphs.bars[max(1, high)] * count, pale))
    return segments


def busy_segments(
    levels: Sequence[int],
    keys: Sequence[str],
    palette: Palette,
    glyphs: Glyphs,
    hits: Sequence[bool] = (),
) -> list[Segment]:
    """Return the segments of a line of busy levels in eighths, each in its cell's colour; -1 is empty.

    Cells with hits are marked, in the colour of marks: a line under a full bar would not be seen.
    """
    marked = HIT_STYLE + Style(color=palette.accent_plain.color)
    segments: list[Segment] = []
    for (level, key, hit), cells in groupby(zip(levels, keys, hits or repeat(False))):
        count = sum(1 for _ in cells)
        text = " " if level < 0 else glyphs.bars[max(1, level)]
        style = palette.blank if level < 0 else palette.style(key, Look.FAINT)
        segments.append(Segment(text * count, style + marked if hit else style))
    return segments


def with_hits(segments: Sequence[Segment], hits: Sequence[bool]) -> list[Segment]:
    """Return segments with the cells marked in which hits lie; `hits` may be empty."""
    if not any(hits):
        return list(segments)
    found: list[Segment] = []
    at = 0
    for segment in segments:
        rest, width = segment, segment.cell_length
        for hit, cells in groupby(hits[at : at + width]):
            part, rest = rest.split_cells(sum(1 for _ in cells))
            found.append(Segment(part.text, (part.style or Style()) + HIT_STYLE) if hit else part)
        if rest.text:
            found.append(rest)
        at += width
    return found


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
