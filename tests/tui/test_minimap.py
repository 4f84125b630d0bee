"""The minimap: the whole trace in a line, the visible part marked, a click moves there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment

from tests.small_index import L, S, write_index
from tests.tui.small_trace import MS, START
from tracelane.core.index.store import Index
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.actions.view import first_session
from tracelane.tui.draw.glyphs import UNICODE, length_title
from tracelane.tui.draw.line_context import LineContext
from tracelane.tui.draw.overview import (
    MANY_STEPS,
    MinimapCells,
    busy_row,
    minimap_lines,
    minimap_view,
    overview_of,
)
from tracelane.tui.draw.palette import Depth, Palette
from tracelane.tui.session import Session, Viewport
from tracelane.tui.steps import step_marks

LOOK = LineContext(Palette(Depth.NONE), UNICODE, 16, 40)


def session_of(trace: Trace) -> Session:
    start, end = trace.opening_span
    return Session(Viewport(start, end - start, 40), start)


def text_of(line: list[Segment]) -> str:
    return "".join(segment.text for segment in line)


def test_busy_cells_are_never_blank(trace: Trace) -> None:
    """Kernels of 3 ms every 10 ms make the device's cells full, empty, and nothing is invented between."""
    levels = busy_row(trace, tuple(minimap_view(trace, 40).edges()), trace.clocks).levels  # a cell is 1 ms
    assert [level >= 0 for level in levels] == [cell % 10 in (6, 7, 8) for cell in range(40)]
    assert set(levels) == {-1, 8}


def test_short_slices_are_seen(tmp_path: Path) -> None:
    """A slice of 1 ns in a second has its cell."""
    write_index(
        tmp_path / "index", [L([S(0, 50_000_000), S(500_000_000, 1), S(999_999_999, 1)], one_row=True)]
    )
    trace = Trace([Index.open(tmp_path / "index")])
    levels = busy_row(trace, tuple(minimap_view(trace, 40).edges()), trace.clocks).levels
    assert [cell for cell, level in enumerate(levels) if level >= 0] == [0, 1, 20, 39]


def test_the_line_has_its_width(trace: Trace) -> None:
    """One line, exactly as wide as titles and time area, of the devices where there are some."""
    line = text_of(minimap_lines(trace, session_of(trace), LOOK)[0])
    assert len(line) == 56 and line.startswith("device")


def test_with_sixteen_colours_it_is_low(trace: Trace) -> None:
    """Where no colour is pale, the minimap takes at most half of a line, and busy cells stay seen."""
    look = LOOK._replace(palette=Palette(Depth.STANDARD))
    drawn = text_of(minimap_lines(trace, session_of(trace), look)[0])[16:]
    levels = busy_row(trace, tuple(minimap_view(trace, 40).edges()), trace.clocks).levels
    assert set(drawn) <= set(look.glyphs.bars[:5])
    assert [cell != " " for cell in drawn] == [level >= 0 for level in levels]


@pytest.mark.parametrize(
    ("length", "cells", "title"),
    [
        (549_568_123, 17, "device 550 ms"),
        (11_763_000, 13, "device"),
        (11_763_000, 14, "device 11.8 ms"),
        (1_863_700_000_000, 20, "device 31 min 03.7 s"),
        (1_863_700_000_000, 14, "device 31 min"),
    ],
)
def test_a_length_is_rounded_and_never_cut(length: int, cells: int, title: str) -> None:
    """Beside narrow lanes the length loses its smaller unit, then goes; it is never cut within a number."""
    assert length_title("device", length, cells) == title


def test_the_visible_part_is_bracketed(trace: Trace) -> None:
    """Without colours brackets stand at the ends of the visible part."""
    session = Session(Viewport(START + 10 * MS, 5 * MS, 40), START)
    line = text_of(minimap_lines(trace, session, LOOK)[0])
    assert line[16 + 10] == "[" and line[16 + 14] == "]"


@given(st.integers(-(10**12), 10**12), st.integers(1, 10**12), st.integers(1, 300))
def test_the_window_never_leaves_the_line(start: int, span: int, width: int) -> None:
    """However far the view lies off or out, its mark is one cell at least and inside the line."""
    view = Viewport(0, 10**9, 1).resized(width)
    left, right = MinimapCells(tuple(view.edges())).window(Viewport(start, max(span, 10), 10))
    assert 0 <= left < right <= width


def steps_file(path: Path, steps: int) -> Path:
    """Write a trace of steps of 1 ms, every 40th of 3 ms, of which kernel work takes half."""
    events: list[dict[str, object]] = []
    at = 0
    for number in range(steps):
        length = 3000 if number % 40 == 7 else 1000
        name, work = f"ProfilerStep#{number}", length // 2
        events.append({"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1})
        events[-1] |= {"ts": at, "dur": length}
        args = {"device": 0, "stream": 7}
        events.append({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "args": args})
        events[-1] |= {"ts": at + 10, "dur": work}
        at += length
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    return path


@pytest.mark.parametrize(("steps", "width"), [(MANY_STEPS - 1, 120), (MANY_STEPS, 120), (300, 64)])
def test_many_steps_have_a_cell_each(steps: int, width: int, tmp_path: Path) -> None:
    """Of a hundred steps and more the minimap has a cell for each, or for as many as it takes, as high as the
    longest of them, and a line hatched by what devices leave; the trace opens with the median step.
    """
    trace = open_trace(steps_file(tmp_path / "steps.json", steps), index_dir=tmp_path / "index")
    look = LOOK._replace(area=width)
    session = first_session(trace, width)
    lines = [text_of(line)[16:] for line in minimap_lines(trace, session, look)]
    if steps < MANY_STEPS:
        assert len(lines) == 1 and (session.viewport.start, session.viewport.end) == trace.opening_span
        return
    stride = -(-steps // width)
    cells = [range(at, min(at + stride, steps)) for at in range(0, steps, stride)]
    slow = [any(number % 40 == 7 for number in cell) for cell in cells]
    own = overview_of(trace, session, width)
    left, right = own.window(session.viewport)
    bars = [UNICODE.bars[8] if is_slow else UNICODE.bars[4] for is_slow in slow]
    bars[left], bars[right - 1] = "[", "]"
    assert lines[0] == "".join(bars).ljust(width)
    assert set(lines[1][: len(slow)]) == {UNICODE.shades[2]} and not lines[1][len(slow) :].strip()
    marks = step_marks(trace, session.clocks)
    length = sorted(mark.end - mark.start for mark in marks)[steps // 2]
    start = session.cursor
    assert (start, start + length) in [(mark.start, mark.end) for mark in marks]
    assert session.viewport.start < start < start + length < session.viewport.end < start + 2 * length
