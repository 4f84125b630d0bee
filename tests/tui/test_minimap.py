"""The minimap: the whole trace in a line, the visible part marked, a click moves there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from textual.app import App, ComposeResult
from textual.geometry import Offset

from tests.small_index import L, S, write_index
from tests.tui.small_trace import MS, START
from tracelane.core.index.store import Index
from tracelane.core.trace import Trace
from tracelane.tui.draw.glyphs import UNICODE
from tracelane.tui.draw.labels import length_title
from tracelane.tui.draw.lines import LineContext
from tracelane.tui.draw.overview import busy_levels, minimap_line, minimap_view, window
from tracelane.tui.draw.palette import Depth, Palette
from tracelane.tui.lanes.messages import ViewMoved
from tracelane.tui.lanes.minimap import Minimap
from tracelane.tui.session import Session, Viewport

LOOK = LineContext(Palette(Depth.NONE), UNICODE, 16, 40)


def session_of(trace: Trace) -> Session:
    start, end = trace.opening_span
    return Session(Viewport(start, end - start, 40), start)


def text_of(line: list[Segment]) -> str:
    return "".join(segment.text for segment in line)


def test_busy_cells_are_never_blank(trace: Trace) -> None:
    """Kernels of 3 ms every 10 ms make the device's cells full, empty, and nothing is invented between."""
    device, host = busy_levels(trace, 40, session_of(trace).clocks)  # one cell is 1 ms
    assert [level >= 0 for level in device] == [cell % 10 in (6, 7, 8) for cell in range(40)]
    assert set(device) == {-1, 8}
    assert len(host) == 40 and max(host) == 8


def test_short_slices_are_seen(tmp_path: Path) -> None:
    """A slice of 1 ns in a second has its cell."""
    write_index(
        tmp_path / "index", [L([S(0, 50_000_000), S(500_000_000, 1), S(999_999_999, 1)], one_row=True)]
    )
    trace = Trace([Index.open(tmp_path / "index")])
    _, host = busy_levels(trace, 40, session_of(trace).clocks)
    assert [cell for cell, level in enumerate(host) if level >= 0] == [0, 1, 20, 39]


def test_the_line_has_its_width(trace: Trace) -> None:
    """One line, exactly as wide as titles and time area, of the devices where there are some."""
    line = text_of(minimap_line(trace, session_of(trace), LOOK))
    assert len(line) == 56 and line.startswith("device")


def test_with_sixteen_colours_it_is_low(trace: Trace) -> None:
    """Where no colour is pale, the minimap takes at most half of a line, and busy cells stay seen."""
    look = replace(LOOK, palette=Palette(Depth.STANDARD))
    drawn = text_of(minimap_line(trace, session_of(trace), look))[16:]
    device, _ = busy_levels(trace, 40, session_of(trace).clocks)
    assert set(drawn) <= set(look.glyphs.bars[:5])
    assert [cell != " " for cell in drawn] == [level >= 0 for level in device]


@pytest.mark.parametrize(
    ("cells", "title"),
    [(17, "device 549.568 ms"), (16, "device 549.56 ms"), (15, "device 549.5 ms"), (12, "device")],
)
def test_the_unit_is_never_cut(cells: int, title: str) -> None:
    """Beside narrow lanes the length loses digits, not its unit."""
    assert length_title("device", 549_568_123, cells) == title


def test_of_a_long_trace_the_largest_unit_is_said() -> None:
    """Half an hour is not cut within a number."""
    assert length_title("device", 1_863_700_000_000, 20) == "device 31 min 03.7 s"
    assert length_title("device", 1_863_700_000_000, 14) == "device 31 min"


def test_the_visible_part_is_bracketed(trace: Trace) -> None:
    """Without colours brackets stand at the ends of the visible part."""
    session = Session(Viewport(START + 10 * MS, 5 * MS, 40), START)
    line = text_of(minimap_line(trace, session, LOOK))
    assert line[16 + 10] == "[" and line[16 + 14] == "]"


@given(st.integers(-(10**12), 10**12), st.integers(1, 10**12), st.integers(1, 300))
def test_the_window_never_leaves_the_line(start: int, span: int, width: int) -> None:
    """However far the view lies off or out, its mark is one cell at least and inside the line."""
    view = Viewport(0, 10**9, 1).resized(width)
    left, right = window(view, Viewport(start, max(span, 10), 10))
    assert 0 <= left < right <= width


class _Stage(App[None]):
    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self.trace = trace
        self.moves: list[int] = []

    def compose(self) -> ComposeResult:
        yield Minimap()

    def on_mount(self) -> None:
        self.query_one(Minimap).show(self.trace, session_of(self.trace))

    def on_view_moved(self, message: ViewMoved) -> None:
        self.moves.append(message.at)


async def test_a_click_moves_the_view(trace: Trace) -> None:
    """A click tells the time of its cell."""
    app = _Stage(trace)
    async with app.run_test(size=(80, 10)) as pilot:
        await pilot.click(Minimap, offset=Offset(16 + 32, 0))
        view = minimap_view(trace, 64)
        assert len(app.moves) == 1 and view.cell(app.moves[0]) == 32
