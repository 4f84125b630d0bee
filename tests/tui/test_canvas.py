"""The lane area: what a frame asks and draws, and what the mouse says."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.segment import Segment

from tests.small_index import L, S, write_index
from tests.tui.small_trace import MS, START
from tracelane.core.base.short_names import short_name
from tracelane.core.index.format import LaneKind, SliceFlag
from tracelane.core.index.store import Index
from tracelane.core.query.views import SliceId
from tracelane.core.trace import Trace
from tracelane.tui.draw.cells import LineCells
from tracelane.tui.draw.glyphs import UNICODE
from tracelane.tui.draw.layout import Layout
from tracelane.tui.draw.line import LineKind, lane_key
from tracelane.tui.draw.line_context import LineContext, title_cells
from tracelane.tui.draw.lines import line_segments
from tracelane.tui.draw.overlays import mark_cursor
from tracelane.tui.draw.palette import Depth, Palette
from tracelane.tui.draw.palette import Look as PaletteLook
from tracelane.tui.draw.rows import RowReader
from tracelane.tui.draw.runs import OVERLAP, RAGGED, WHOLE, InstantRow, SampleRow, SliceRow
from tracelane.tui.draw.segments import VALUE_CELLS, compact_value
from tracelane.tui.session import InstantId, RowKey, Session, Viewport

KERNEL = "/tmp/x/inductor-spyre/sdsc_fused_mm_0_434jgp19/bundle.mlir"
LOOK = LineContext(Palette(Depth.NONE), UNICODE, 16, 64)


def session_of(trace: Trace, width: int = 64) -> Session:
    start, end = trace.opening_span
    return Session(Viewport(start, end - start, width), start)


def frame(
    trace: Trace, session: Session, reader: RowReader, look: LineContext = LOOK, height: int = 40
) -> list[str]:
    layout = Layout(trace, session)
    lines = [line_segments(line, reader, session, look) for line in layout.visible(session.scroll, height)]
    return ["".join(segment.text for segment in line) for line in lines]


def test_every_line_has_the_screens_width(trace: Trace) -> None:
    """Titles, rows, counters, folded lines and empty ones all fill the width exactly."""
    session = session_of(trace)
    folded = session._replace(
        folded=frozenset({lane_key(trace.lanes[0]), (0, trace.processes[1].pid)}),
        pinned=(lane_key(trace.lanes[1]),),
        focus=RowKey(lane_key(trace.lanes[0]), 1),
    )
    for state in (session, folded):
        lines = frame(trace, state, RowReader(trace))
        assert lines and {cell_len(line) for line in lines} == {80}


def test_the_first_screen_says_what_is_there(trace: Trace) -> None:
    """Lane titles, labelled slices, the counter's value and instants are on the first screen."""
    wide = LineContext(Palette(Depth.NONE), UNICODE, 20, 180)
    text = "\n".join(frame(trace, session_of(trace, 180), RowReader(trace), wide))
    for part in (
        "main",
        "worker 0",
        "power",
        "python",
        "AIU 0",
        "[ProfilerStep#0",
        short_name(KERNEL)[:9],
        "▾",
    ):
        assert part in text, part
    assert "(no name)"[:6] in text


def test_moving_the_selection_asks_nothing(trace: Trace) -> None:
    """Once a window is drawn, selecting, moving the cursor and scrolling draw it again without a query."""
    reader = RowReader(trace)
    session = session_of(trace)
    frame(trace, session, reader)
    queries = reader.queries
    for ordinal in (0, 1, 2, 14):
        moved = session._replace(selection=SliceId(0, ordinal), cursor=START + ordinal, scroll=ordinal % 3)
        frame(trace, moved, reader)
    assert reader.queries == queries


def test_a_frame_asks_only_for_visible_rows(tmp_path: Path) -> None:
    """A frame asks once per visible row, however many rows there are."""
    lanes = [L([S(10 * n, 5)], tid=str(n), name=f"t{n}", one_row=True) for n in range(300)]
    write_index(tmp_path / "index", lanes)
    trace = Trace([Index.open(tmp_path / "index")])
    session = session_of(trace)._replace(unfolded=frozenset({(0, "1")}), show_quiet=True)
    reader = RowReader(trace)
    frame(trace, session, reader, height=40)
    assert reader.queries <= 40
    frame(trace, session._replace(scroll=20), reader, height=40)
    assert reader.queries <= 60


def test_segments_per_frame_are_bounded(tmp_path: Path) -> None:
    """A million neighbouring slices draw as few segments as the cells allow."""
    slices = [S(10 * n, 7, f"k{n % 3}", "kernel") for n in range(20_000)]
    write_index(tmp_path / "index", [L(slices, one_row=True)])
    trace = Trace([Index.open(tmp_path / "index")])
    layout = Layout(trace, session_of(trace))
    line = layout.line(1)
    assert line is not None and line.kind is LineKind.ROW
    full = line_segments(line, RowReader(trace), session_of(trace), LOOK)
    assert len(full) <= 5 and "20k · k" in "".join(segment.text for segment in full)
    zoomed = Session(Viewport(0, 1000, 64), 0)
    assert len(line_segments(line, RowReader(trace), zoomed, LOOK)) <= 2 + 2 * 64


def test_runs_stand_for_exact_counts(tmp_path: Path) -> None:
    """The count written on an aggregated run is the number of slices that touch its cells."""
    slices = [S(7 * n, 5, "k", "kernel") for n in range(3000)]
    write_index(tmp_path / "index", [L(slices, one_row=True)])
    trace = Trace([Index.open(tmp_path / "index")])
    view = Viewport(1000, 6400, 64)
    row = RowReader(trace).row(trace.lanes[0], 0, view, session_of(trace).clocks, "category")
    assert isinstance(row, SliceRow)
    (run,) = row.runs
    assert not run.flags & WHOLE
    assert run.slices == sum(s.start < view.end and s.end > view.start for s in slices)


def test_flags_and_cname_reach_the_runs(tmp_path: Path) -> None:
    """Unclosed and overlapping slices are marked, and the event's own cname decides its colour."""
    lane = L([S(0, 100), S(50, 100), S(200, 100, flags=SliceFlag.UNCLOSED, promoted={"cname": 0})])
    write_index(tmp_path / "index", [lane])
    trace = Trace([Index.open(tmp_path / "index")])
    reader = RowReader(trace)
    view, clocks = Viewport(0, 300, 30), session_of(trace).clocks
    rows = [reader.row(trace.lanes[0], depth, view, clocks, "category") for depth in range(2)]
    flags = [[run.flags for run in row.runs] for row in rows if isinstance(row, SliceRow)]
    assert any(flag & OVERLAP for row in flags for flag in row)
    assert flags[0][-1] & RAGGED


def test_clocks_shift_what_is_drawn(trace: Trace) -> None:
    """A clock's offset moves a lane's runs by as much, and changing it back shows the same as before."""
    reader = RowReader(trace)
    session = session_of(trace)
    lane = next(lane for lane in trace.lanes if lane.name == "Stream 1")
    plain = reader.row(lane, 0, session.viewport, session.clocks, "category")
    cell = session.viewport.span // session.viewport.width
    shifted = session.clocks.shifted((0, ""), 4 * cell)
    moved = reader.row(lane, 0, session.viewport, shifted, "category")
    assert isinstance(plain, SliceRow) and isinstance(moved, SliceRow)
    assert abs(moved.runs[0].left - plain.runs[0].left - 4) <= 1
    assert reader.row(lane, 0, session.viewport, session.clocks, "category") == plain


def test_counters_hold_their_value(trace: Trace) -> None:
    """A counter is step-wise on its whole series' scale; its title tells the value at the cursor."""
    reader = RowReader(trace)
    lane = next(lane for lane in trace.lanes if lane.kind == LaneKind.COUNTER)
    session = session_of(trace)._replace(cursor=START + 5 * MS + 1)
    row = reader.row(lane, 0, Viewport(START, 7 * MS, 7), session.clocks, "category")
    assert isinstance(row, SampleRow)
    assert row.values[:6] == (0, 1, 2, 3, 4, 5)
    assert row.levels[0] == (0, 0) and row.levels[6] == (8, 8)
    line = next(text for text in frame(trace, session, reader) if "power" in text)
    assert " 5│" in line


def test_instants_are_marks(trace: Trace) -> None:
    """An instants row has a mark in the cell of each instant."""
    lane = next(lane for lane in trace.lanes if lane.instants)
    view = Viewport(START, 40 * MS, 40)
    row = RowReader(trace).row(lane, len(lane.rows) - 1, view, session_of(trace).clocks, "category")
    assert isinstance(row, InstantRow)
    assert [(mark.cell, mark.instants) for mark in row.marks] == [(15, 1)]


def test_selected_instants_and_samples_are_found(trace: Trace) -> None:
    """The selection is found for slices, instants and samples, and None for what is not there."""
    reader = RowReader(trace)
    index = trace.indexes[0]
    instant = int(index.column("instants.ordinal")[0])
    sample = int(index.column("samples.ordinal")[3])
    selected = [
        reader.selected(thing) for thing in (SliceId(0, 11), InstantId(0, instant), InstantId(0, sample))
    ]
    assert all(selected)
    assert selected[0] is not None and (selected[0].start, selected[0].end) == (
        START + 11 * MS,
        START + 17 * MS,
    )
    assert reader.selected(SliceId(0, 10**6)) is None and reader.selected(SliceId(9, 0)) is None


@pytest.mark.parametrize(("width", "titles"), [(80, 16), (200, 30), (400, 30), (59, 14), (20, 5), (4, 4)])
def test_title_columns(width: int, titles: int) -> None:
    """Titles take 16 columns at 80 and up to 30 on wide screens, a quarter of narrow ones."""
    assert title_cells(width) == titles


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (82.4, "82.4"),
        (-3.25, "-3.25"),
        (-0.04297, "-0.043"),
        (-0.00012345, "-0.0001"),
        (12_345.0, "12.35k"),
        (2.5e9, "2.5G"),
        (float("inf"), "inf"),
    ],
)
def test_counter_values(value: float, text: str) -> None:
    """Counter values are short, so that they leave room for the name."""
    assert compact_value(value) == text and len(text) <= VALUE_CELLS


@pytest.mark.parametrize("depth", list(Depth))
def test_the_cursor_covers_no_letter(depth: Depth) -> None:
    """A bar stands in empty cells; a letter, a wide one too, stays and is set off from its neighbours."""
    look = LineContext(Palette(depth), UNICODE, 16, 12)
    style = look.palette.style("kernel", PaletteLook.CHOSEN)
    row = [Segment("a层b  ", style), Segment("░──   ", look.palette.blank)]
    for cell in range(12):
        cells = LineCells(row, look.palette.blank)
        mark_cursor(cells, cell, look)
        drawn = cells.segments()
        text = "".join(segment.text for segment in drawn)
        if cell < 4:
            assert text == "a层b  ░──   "
            at = 0
            for segment in drawn:
                under = at <= cell < at + segment.cell_length
                at += segment.cell_length
                assert (segment.style != style) == (under or at > 6)
        else:
            assert cell_len(text) == 12 and text[cell - 1] == UNICODE.single
            assert text.replace(UNICODE.single, "").startswith("a层b")


def test_counters_say_their_extent_and_constant_ones_are_quiet(tmp_path: Path) -> None:
    """A counter that varies has its least and greatest value at the right edge, another is a line."""
    series = {"load": [(0, 2.0), (500, 7.5), (900, 4.0)], "limit": [(0, 5.0), (900, 5.0)]}
    write_index(tmp_path / "index", [L(series=series)])
    trace = Trace([Index.open(tmp_path / "index")])
    session, layout = session_of(trace), Layout(trace, session_of(trace))
    texts = [
        "".join(segment.text for segment in line_segments(line, RowReader(trace), session, LOOK))
        for line in layout.lines(0, layout.height)
        if line.kind is LineKind.ROW
    ]
    (varies,) = (text for text in texts if "load" in text)
    (constant,) = (text for text in texts if "limit" in text)
    assert varies.rstrip().endswith("2–7.5")
    assert set(constant.partition("│")[2].strip()) == {UNICODE.filler}
