"""What colours and marks mean: the categories of this trace, and the characters of the drawing.

Each sample is drawn by what draws the screen, so that the two cannot differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from rich.segment import Segment
from rich.text import Text

from tracelane.core.base.colours import key_of
from tracelane.core.base.safe_text import safe
from tracelane.core.trace import Trace

from ..draw.glyphs import TITLE_MARKS, Glyphs
from ..draw.palette import Look, Palette
from ..draw.rank_map import LATE, WAITS, WORKS, half_cells
from ..draw.ranks import has_map
from ..draw.run_marks import EITHER, GONE, NEW
from ..draw.runs import BRACKET, FULL, HATCH, HIT, RAGGED, WHOLE, BusyRow, InstantCell, Run, SampleRow
from ..draw.segments import SelectedCells, busy_segments, counter_segments, mark_segments, slice_segments
from ..draw.verdict import part_segment, state_parts
from ..steps import pair_of

CATEGORY_CELLS = 30
MAX_CATEGORIES = 200
GAP = 2
SAMPLE = 3
"""Cells of a sample of a colour."""

Sample: TypeAlias = tuple[Sequence[Segment], str]
"""What is drawn, and what it means."""


def legend_text(trace: Trace, palette: Palette, glyphs: Glyphs, width: int) -> Text:
    width = max(10, width)
    lines = _columns(list(map(_said, _colours(trace, palette, glyphs))), CATEGORY_CELLS, width)
    lines += [Text(""), _ink(palette, glyphs)]
    marks = [
        *_drawn(palette, glyphs),
        *_waits(palette, glyphs),
        *_titles(palette, glyphs),
        *_on_ruler(palette, glyphs),
        *_of_runs(trace, palette),
        *_map_marks(trace, palette, glyphs),
    ]
    entries = list(map(_said, marks))
    lines += _columns(entries, max(map(len, entries)), width)
    if trace.device_lanes:
        lines += [Text(""), Text("In the verdict's bar")]
        lines += _columns(list(map(_said, _states(palette, glyphs))), CATEGORY_CELLS, width)
    return Text("\n").join(lines)


def _said(sample: Sample) -> Text:
    segments, meaning = sample
    text = Text(no_wrap=True, end="")
    for segment in segments:
        text.append(segment.text, segment.style)
    text.append(f" {meaning}")
    return text


def _slices(run: Run, palette: Palette, glyphs: Glyphs, chosen: SelectedCells | None = None) -> list[Segment]:
    return slice_segments([run], run.right, palette, glyphs, chosen)


def _whole(key: str, palette: Palette, glyphs: Glyphs, flags: int = 0, label: str = "") -> list[Segment]:
    """Return a slice of a colour."""
    return _slices(Run(0, max(SAMPLE, len(label) + 2), key, label, 0, 1, WHOLE | flags), palette, glyphs)


def _colours(trace: Trace, palette: Palette, glyphs: Glyphs) -> Iterator[Sample]:
    categories = trace.drawn_categories[:MAX_CATEGORIES]
    for category in categories:
        if category:
            yield _whole(key_of(category, ""), palette, glyphs), safe(category)
        else:
            yield (), "no category: coloured by name"
    if categories:
        yield _whole("collective", palette, glyphs), "collectives, by name"
        yield _whole("blocking", palette, glyphs), "calls that wait for a device"


def _states(palette: Palette, glyphs: Glyphs) -> Iterator[Sample]:
    for part in state_parts():
        yield [part_segment(part, "", SAMPLE, palette, glyphs)], part.name


def _drawn(palette: Palette, glyphs: Glyphs) -> Iterator[Sample]:
    """Yield what slices, instants and counters look like."""
    many = Run(0, 12, "kernel", "mm", 0, 12, 0, share="28 %", levels=bytes([FULL // 2]) * 12)
    yield _slices(many, palette, glyphs), "merged slices: count, name with most time (≈: of a sample)"
    chosen = Run(0, SAMPLE, "kernel", "", 0, 1, WHOLE)
    yield _slices(chosen, palette, glyphs, SelectedCells(0, 0, SAMPLE)), "what is selected"
    yield _whole("kernel", palette, glyphs, HIT, "mm"), "what is searched for"
    yield _whole("kernel", palette, glyphs, RAGGED), "a begin without its end"
    yield _whole("annotation", palette, glyphs, BRACKET, "x"), "an annotation of what is below"
    yield mark_segments([InstantCell(0, "annotation", 1, 0)], 1, palette, glyphs), "an instant"
    yield mark_segments([InstantCell(0, "annotation", 10, 0)], 1, palette, glyphs), "more than nine of them"
    line = SampleRow(((0, 3), (4, 4)), (), "", (0.0, 1.0))
    yield counter_segments(line, palette, glyphs), "a counter between its extremes"
    yield counter_segments(SampleRow(((4, 4),) * SAMPLE, (), ""), palette, glyphs), "one that never varies"


def _waits(palette: Palette, glyphs: Glyphs) -> Iterator[Sample]:
    """Yield what lines of devices, and folded ones, look like."""
    full, none = (FULL,) * SAMPLE, ("",) * SAMPLE
    yield (
        busy_segments(BusyRow((3, 6), ("kernel",) * 2), palette, glyphs),
        "how busy a folded line is, with what",
    )
    yield busy_segments(BusyRow(full, none, is_outline=True), palette, glyphs), "work, not known yet which"
    hatched = BusyRow(full, ("collective",) * SAMPLE, hatched=(True,) * SAMPLE)
    yield busy_segments(hatched, palette, glyphs), "waits for a peer or another stream"
    gap = Run(0, SAMPLE, "sync", "", -1, 0, HATCH)
    yield _slices(gap, palette, glyphs), "a device does nothing: the host is late, or why else"


def _titles(palette: Palette, glyphs: Glyphs) -> Iterator[Sample]:
    for name, (meaning, is_accent) in TITLE_MARKS.items():
        style = palette.accent if is_accent else palette.title
        yield [Segment(f" {getattr(glyphs, name)} ", style)], meaning


def _on_ruler(palette: Palette, glyphs: Glyphs) -> Iterator[Sample]:
    range_ = glyphs.range_left + glyphs.range_fill + glyphs.range_right
    yield [Segment(f" {glyphs.cursor} ", palette.cursor)], "the cursor"
    yield [Segment(range_, palette.range_edge)], "the range"
    yield [Segment(glyphs.baseline, palette.style("memcpy", Look.FAINT))], "what it is compared with"
    yield [Segment(f" {glyphs.pinned} ", palette.accent_plain)], "a mark"
    yield [Segment(f" {glyphs.step} ", palette.line)], "a step begins"


def _of_runs(trace: Trace, palette: Palette) -> Iterator[Sample]:
    """Yield what marks what one of two runs lacks."""
    pair = pair_of(trace)
    if pair is not None:
        style = palette.accent_plain
        a, b = map(safe, pair.spoken_names)
        yield [Segment(f" {NEW} ", style)], f"on the ruler: kernels that only {b} has"
        yield [Segment(f" {GONE} ", style)], f"on the ruler: kernels that only {a} has"
        yield [Segment(f" {EITHER} ", style)], "on the ruler: of both"
        yield [Segment(" ≈ ", palette.dim)], "a change within the noise"


def _map_marks(trace: Trace, palette: Palette, glyphs: Glyphs) -> Iterator[Sample]:
    """Yield what the colours, or textures, of the map of ranks mean."""
    if not has_map(trace):
        return
    said = {WORKS: "it works", WAITS: "it waits for another", LATE: "the others wait for it"}
    for kind, meaning in said.items():
        text, style = half_cells(kind, palette, glyphs)
        yield [Segment(text, style)], f"upper rank of a line: {meaning}"


def _ink(palette: Palette, glyphs: Glyphs) -> Text:
    levels = range(1, FULL + 1)
    runs = [Run(at, at + 1, "kernel", "", at, 2, 0, levels=bytes([level])) for at, level in enumerate(levels)]
    bars = BusyRow(tuple(levels), ("kernel",) * FULL)
    shades = slice_segments(runs, FULL, palette, glyphs)
    how = "the brighter" if palette.shaded else "the denser"
    return Text.assemble(
        " ",
        _said((shades, "")),
        _said(
            (busy_segments(bars, palette, glyphs), f"{how} or higher a cell, the more of its time is covered")
        ),
    )


def _columns(entries: list[Text], size: int, width: int) -> list[Text]:
    columns = max(1, (width + GAP) // (size + GAP))
    height = -(-len(entries) // columns)
    lines = []
    for row in range(height):
        line = Text(no_wrap=True, end="")
        for column, entry in enumerate(entries[row::height]):
            line.append(" " * (column * (size + GAP) - line.cell_len))
            entry.truncate(size if columns > 1 else width, overflow="ellipsis")
            line.append_text(entry)
        lines.append(line)
    return lines
