"""What is loud on the first screen is work: ink of devices' lanes over the whole corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.color import Color
from rich.segment import Segment

from tests.corpus import CASES, CORPUS, needs_corpus
from tracelane.core.tables.frame_columns import work_of
from tracelane.core.tables.scope import Scope
from tracelane.core.trace import LaneRole, Trace, open_trace
from tracelane.tui.actions.view import first_session
from tracelane.tui.draw.colour import RGB, contrast, luminance
from tracelane.tui.draw.drawn_rows import BusyRow, SliceRow
from tracelane.tui.draw.glyphs import UNICODE
from tracelane.tui.draw.layout import Layout
from tracelane.tui.draw.line import Line, LineKind
from tracelane.tui.draw.lines import LineContext, line_segments, title_cells
from tracelane.tui.draw.palette import CNAMES, FAMILIES, Depth, Look, Palette
from tracelane.tui.draw.rows import RowReader
from tracelane.tui.fitting import fit_to_screen

SIZE = (120, 40)
WORK = {"kernel", "memcpy", "memset", "collective"}
LEAST_WORK = 0.8
HATCH = UNICODE.shades[1:4]


def traces() -> list[list[Path]]:
    """Return every trace of the corpus and of the cases; files of one group together."""
    singles = [
        path
        for folder in (
            CORPUS / "gpu",
            CORPUS / "aiu",
            CORPUS / "aiu" / "spyre_torch_profiler",
            CORPUS / "verdicts",
            CASES / "verdicts",
            CASES / "cheat",
            CASES / "adversarial",
        )
        for path in (sorted(folder.glob("*.json*")) if folder.is_dir() else [])
    ]
    ranks = CORPUS / "multirank" / "dlrm_8gpu_ranks0-3"
    return [*([path] for path in singles), sorted(ranks.glob("*"))]


def cells(segments: list[Segment], titles: int) -> Iterator[tuple[str, Segment]]:
    """Yield the characters of a line's time area, each with its segment."""
    text = [(character, segment) for segment in segments for character in segment.text]
    yield from text[titles:]


def colour_of(colour: Color | None) -> RGB:
    assert colour is not None
    triplet = colour.get_truecolor()
    return (triplet.red, triplet.green, triplet.blue)


def ink_of(character: str, segment: Segment, surface: RGB) -> float:
    """Return luminance times area of what is filled in one cell, against the surface; text has no area."""

    def weight(colour: Color | None) -> float:
        return 0.0 if colour is None else abs(luminance(colour_of(colour)) - luminance(surface))

    style = segment.style
    assert style is not None
    share = 0.0
    for blocks in (UNICODE.bars, UNICODE.lefts):
        if character in blocks:
            share = blocks.index(character) / 8
    return share * weight(style.color) + (1 - share) * weight(style.bgcolor)


def device_lines(
    trace: Trace, reader: RowReader, look: LineContext
) -> Iterator[tuple[Line, list[str], list[Segment]]]:
    """Yield the first screen's lines of devices' work: line, colour key of each cell, segments."""
    session = fit_to_screen(trace, first_session(trace, SIZE[0]), *SIZE, has_marks=False).session
    layout = Layout(trace, session)
    for line in layout.lines(0, layout.height):
        numbers = line.members or (() if line.lane is None else (line.lane.index,))
        lanes = [trace.lanes[number] for number in numbers]
        if line.kind is LineKind.MORE or not lanes or any(lane.role is not LaneRole.DEVICE for lane in lanes):
            continue
        if not any(len(work_of(Scope(trace, lanes=[number], clocks=trace.clocks))) for number in numbers):
            continue
        if line.kind is LineKind.ROW and line.lane is not None:
            row = reader.row(line.lane, line.depth, session.viewport, session.clocks, session.colour_by)
        else:
            row = reader.busy(tuple(numbers), session.viewport, session.clocks)
        keys = [""] * look.area
        if isinstance(row, SliceRow):
            for run in row.runs:
                keys[run.left : run.right] = [run.key] * (run.right - run.left)
        elif isinstance(row, BusyRow):
            keys = list(row.keys)
        yield line, keys, line_segments(line, reader, session, look)


def ink_by_key(trace: Trace, palette: Palette) -> Counter[str]:
    look = LineContext(palette, UNICODE, title_cells(SIZE[0]), SIZE[0] - title_cells(SIZE[0]))
    surface = colour_of(palette.blank.bgcolor)
    ink: Counter[str] = Counter()
    for _, keys, segments in device_lines(trace, RowReader(trace), look):
        for (character, segment), key in zip(cells(segments, look.titles), keys):
            ink["hatch" if character in HATCH else key] += ink_of(character, segment, surface)
    return ink


@pytest.mark.slow
@needs_corpus
@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("paths", traces(), ids=lambda paths: paths[0].name)
def test_ink_is_work(paths: list[Path], dark: bool, corpus_cache: Path) -> None:
    """Kernels, copies and collectives have at least 80 % of the ink of devices' lanes that hold any."""
    trace = open_trace(paths, index_dir=corpus_cache)
    for palette in (Palette(Depth.TRUECOLOR, dark), Palette(Depth.EIGHT_BIT, dark)):
        ink = ink_by_key(trace, palette)
        work = sum(amount for key, amount in ink.items() if key in WORK)
        assert work >= LEAST_WORK * sum(ink.values()), ink


@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("depth", [Depth.TRUECOLOR, Depth.EIGHT_BIT])
def test_a_hatch_has_a_quarter_of_a_kernels_ink(depth: Depth, dark: bool) -> None:
    """Waiting weighs at most a quarter of work: the glyph covers a quarter, of a colour no stronger."""
    palette = Palette(depth, dark)
    kernel = abs(luminance(palette.ground("kernel", 8)) - luminance(palette.surface))
    for key in ("collective", "sync", "kernel", "memcpy", "quiet"):
        colour = palette.style(key, Look.FAINT).color
        assert colour is not None
        hatch = abs(luminance(colour_of(colour)) - luminance(palette.surface)) / 4
        assert hatch <= kernel / 4, key


@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("depth", [Depth.TRUECOLOR, Depth.EIGHT_BIT, Depth.STANDARD])
def test_brackets_can_be_read(depth: Depth, dark: bool) -> None:
    """Names of annotations have a contrast of at least 4.5, and no ground of their own."""
    palette = Palette(depth, dark)
    for key in (*FAMILIES, *(f"={name}" for name in CNAMES), "~3"):
        style = palette.style(key, Look.BRACKET)
        assert style.color is not None and style.bgcolor == palette.blank.bgcolor
        assert contrast(colour_of(style.color), palette.surface) >= 4.5, key
