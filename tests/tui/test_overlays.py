"""What lies over a line of the lanes: each overlay in its cells, over those before it, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from rich.style import Style

from tests.events import complete, open_events
from tracelane.core.query.filter import parse
from tracelane.core.trace.hit_search import matches
from tracelane.tui.draw.glyphs import UNICODE
from tracelane.tui.draw.layout import Layout
from tracelane.tui.draw.line import LineKind, lane_key
from tracelane.tui.draw.line_context import LineContext
from tracelane.tui.draw.lines import line_segments
from tracelane.tui.draw.palette import Depth, Palette
from tracelane.tui.draw.rows import RowReader
from tracelane.tui.session import RowKey, Session, Viewport

AREA = 100
PALETTES = [Palette(depth, dark) for depth in Depth for dark in (True, False)]


def cells_of(
    palette: Palette = PALETTES[0], is_focused: bool = False, search: str = "", **changes: Any
) -> list[tuple[str, Style]]:
    """Return the cells of a lane with a slice from 10 to 20 µs, in a view of a µs a cell, of a session with
    some changes; the second cell of a wide letter is "\0".
    """
    look = LineContext(palette, UNICODE, 16, AREA)
    with TemporaryDirectory() as folder:
        trace = open_events(Path(folder), [complete(10, 10, "a层"), complete(0, 0.001)])
        focus = RowKey(lane_key(trace.lanes[0]), 0) if is_focused else None
        session = Session(Viewport(0, 1000 * AREA, AREA), 0, focus=focus)._replace(**changes)
        reader = RowReader(trace)
        if search:
            reader.look_for(matches(trace, parse(search), trace.clocks), None)
        layout = Layout(trace, session)
        (line,) = (line for line in layout.lines(0, layout.height) if line.kind is LineKind.ROW)
        segments = line_segments(line, reader, session, look)
        trace.close()
    cells = [
        (character, segment.style or palette.blank)
        for segment in segments
        for character in segment.text.replace("层", "层\0")
    ]
    return cells[look.titles :]


def styles_of(**changes: Any) -> list[Style]:
    return [style for _, style in cells_of(**changes)]


def span(left: int, right: int) -> tuple[int, int]:
    """Return the time of cells [left, right), ns."""
    return 1000 * left, 1000 * right


@pytest.mark.parametrize("palette", PALETTES)
@pytest.mark.parametrize(("left", "right"), [(30, 60), (5, 15), (-5, 5), (90, 200), (1, 100)])
def test_a_range_shades_what_is_blank(palette: Palette, left: int, right: int) -> None:
    """Blank cells in the range are shaded, slices and all outside stay as they are."""
    for cell, (was, now) in enumerate(zip(cells_of(palette), cells_of(palette, range=span(left, right)))):
        is_shaded = left <= cell < right and was == (" ", palette.blank) and not 10 <= cell < 20
        assert now == ((was[0], palette.in_range) if is_shaded else was)
        assert is_shaded == (left <= cell < right and not (10 <= cell < 20 or cell == 0))


@pytest.mark.parametrize("palette", PALETTES)
@pytest.mark.parametrize("cell", [1, 11, 12, 13, 40, 99])
def test_a_cursor_is_on_the_focused_row_alone(palette: Palette, cell: int) -> None:
    """It takes one cell, of a wide letter both, and lies over the range, whose shade stays behind it."""
    seen = {"cursor": 1000 * cell, "range": span(30, 60)}
    bare, here = cells_of(palette, **seen), cells_of(palette, is_focused=True, **seen)
    assert bare == cells_of(palette, range=span(30, 60))
    changed = {at for at, (was, now) in enumerate(zip(bare, here)) if was != now}
    wide = next(at for at, (character, _) in enumerate(bare) if character == "层")
    assert changed == ({wide, wide + 1} if cell in (wide, wide + 1) else {cell})
    if cell == 40:
        assert here[40] == (UNICODE.single, palette.in_range + palette.cursor_on)


def test_hits_keep_their_colours_in_a_range() -> None:
    """A slice that is found is marked the same within a range and outside of it."""
    alone, within = cells_of(search="a"), cells_of(search="a", range=span(1, 100))
    assert alone[10:20] == within[10:20] != cells_of()[10:20]
    assert alone[1:10] != within[1:10]
