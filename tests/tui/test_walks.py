"""Walks by any moves: what is chosen is in sight, a move and its reverse end where they began."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.corpus import ROOT
from tests.tui.small_trace import small_trace
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.actions import select, view
from tracelane.tui.actions.scene import Refusal, Scene
from tracelane.tui.actions.table import MOVES
from tracelane.tui.draw.layout import Layout
from tracelane.tui.draw.things import thing_by_id
from tracelane.tui.session import Session

SAMPLE = ROOT / "tests" / "samples" / "cuda" / "activities.pt.trace.json.gz"
WALKS = ("next", "previous", "up", "down", "lane-up", "lane-down", "next-gap", "longest-gap")
TIMES = (
    "zoom-in",
    "zoom-out",
    "zoom-in-far",
    "zoom-out-far",
    "pan-left",
    "pan-right",
    "page-left",
    "page-right",
)
JUMPS = ("trace-start", "trace-end", "previous-step", "next-step", "focus", "reset", "page-up", "page-down")
LANES = ("fold", "fold-process", "expand", "pin", "hide", "hide-alike", "preset", "python-frames")
RANGES = ("range", "range-selection", "ruler")
SELECT = "select"
WIDTH = 60


@cache
def trace_of(name: str) -> Trace:
    """Return a trace that all tests look at."""
    folder = Path(mkdtemp(prefix="walks-"))
    return small_trace(folder / "index") if name == "small" else open_trace(SAMPLE, index_dir=folder)


def scene_of(trace: Trace, session: Session, height: int) -> Scene:
    return Scene(trace, session, Layout(trace, session), height)


def moved(trace: Trace, session: Session, height: int, name: str) -> Session | None:
    """Return the session after a move, None where it is refused."""
    scene = scene_of(trace, session, height)
    try:
        return select.at_cursor(scene) if name == SELECT else MOVES[name](scene)
    except Refusal as refusal:
        assert str(refusal)
        return None


def check_place(trace: Trace, session: Session) -> None:
    """Assert that the view lies in the trace, and the cursor in the view."""
    now, (low, high) = session.viewport, view.limits(trace, session.clocks)
    assert now.span >= now.width
    assert now.start <= session.cursor < now.end
    margin = now.span // 2  # what is zoomed to at an end of the trace stands apart from the edge of the view
    assert (low - margin <= now.start and now.end <= high + margin) or now.span >= high - low


def check_sight(trace: Trace, session: Session, height: int) -> None:
    """Assert that what is selected reaches into the view, and that its row is on the screen."""
    assert session.selection is not None and session.focus is not None
    thing = thing_by_id(trace, session.clocks, session.selection)
    assert thing is not None and thing.key == session.focus
    assert thing.end >= session.viewport.start and thing.start < session.viewport.end
    layout = Layout(trace, session)
    y = layout.y_of(session.focus)
    assert y is not None
    room = height - layout.pinned_height(height)
    if layout.line(y) is not None and room > 3:
        first = session.scroll + (layout.title_above(session.scroll, height) is not None)
        assert first <= y < session.scroll + room - layout.says_more(session.scroll, height)


steps = st.lists(st.sampled_from((*WALKS, *TIMES, *JUMPS, *LANES, *RANGES, SELECT, SELECT)), max_size=14)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["small", "sample"])
@given(names=steps, height=st.sampled_from([6, 9, 30]), lines=st.sampled_from([1, 2]))
def test_no_walk_loses_the_place(name: str, names: list[str], height: int, lines: int) -> None:
    """Whatever moves come after one another, the cursor stays in the view, the view in the trace, the lines
    as far scrolled as there are any; what a walk selects is in sight, and times change no lanes.
    """
    trace = trace_of(name)
    session = view.first_session(trace, WIDTH)._replace(device_lines=lines)
    for each in names:
        after = moved(trace, session, height, each)
        if after is None:
            continue
        check_place(trace, after)
        if each in (*WALKS, SELECT) and after.selection is not None:
            check_sight(trace, after, height)
        if each in TIMES:
            same = after._replace(viewport=session.viewport, cursor=session.cursor)
            assert same == session
            assert after.viewport != session.viewport
        session = after
        assert Layout(trace, session).scrolled(session.scroll, height) == session.scroll or each in LANES


@pytest.mark.parametrize("name", ["small", "sample"])
@given(
    names=st.lists(st.sampled_from((*TIMES, "trace-start", "trace-end")), max_size=6),
    by=st.sampled_from([1, -1]),
)
def test_the_cursor_moves_by_a_cell(name: str, names: list[str], by: int) -> None:
    """With nothing selected the cursor goes on by one cell, at the edge of the view too: there the view goes
    along, by no more than it must; back again it is in the cell where it was.
    """
    trace = trace_of(name)
    session = view.first_session(trace, WIDTH)
    for each in names:
        session = moved(trace, session, 20, each) or session
    for cursor in (session.viewport.start, session.viewport.edge(WIDTH - 1), session.cursor):
        before = session._replace(cursor=cursor)
        after = moved(trace, before, 20, "next" if by > 0 else "previous")
        edge = before.viewport.edge(before.viewport.cell(cursor) + by)
        low, high = view.limits(trace, session.clocks)
        if not low <= edge < high:
            assert after is None
            continue
        assert after is not None and after.cursor == edge
        shift, cell = after.viewport.start - before.viewport.start, before.viewport.span / WIDTH
        assert (
            shift == 0 if before.viewport.start <= edge < before.viewport.end else 0 < shift * by <= cell + 1
        )
        again = moved(trace, after, 20, "previous" if by > 0 else "next")
        if again is not None:
            assert abs(again.cursor - cursor) <= cell + 1
            assert before.viewport.cell(again.cursor) == before.viewport.cell(cursor) or shift


REVERSES = {
    "next": "previous",
    "previous": "next",
    "lane-down": "lane-up",
    "lane-up": "lane-down",
    "up": "down",
}


@pytest.mark.parametrize("name", ["small", "sample"])
@given(
    names=st.lists(st.sampled_from(("next", "down", "lane-down", "zoom-in", "pan-right")), max_size=6),
    data=st.data(),
)
def test_a_walk_goes_back(name: str, names: list[str], data: st.DataObject) -> None:
    """The next and then the one before is what was selected, so is the lane below and then that above; what
    encloses a slice lies above it, begins no later and ends no earlier.
    """
    trace = trace_of(name)
    session = moved(trace, view.first_session(trace, WIDTH), 20, SELECT)
    for each in names:
        session = (session and moved(trace, session, 20, each)) or session
    if session is None or session.selection is None:
        return
    there = data.draw(st.sampled_from([*REVERSES]))
    after = moved(trace, session, 20, there)
    if after is None or after.selection is None:
        return
    one = thing_by_id(trace, session.clocks, session.selection)
    other = thing_by_id(trace, after.clocks, after.selection)
    assert one is not None and other is not None
    if there in ("next", "previous"):
        assert other.key == one.key and abs(other.index - one.index) == 1
        assert (other.start >= one.end) == (there == "next")
        back = moved(trace, after, 20, REVERSES[there])
        assert back is not None and back.selection == session.selection
    elif there == "up" and other.key.lane == one.key.lane:
        assert other.key.depth == one.key.depth - 1
        assert other.start <= one.start and one.end <= other.end
    elif there.startswith("lane"):
        layout = Layout(trace, session)
        here, below = layout.y_of(one.key), layout.y_of(other.key)
        assert here is not None and below is not None and other.key.lane != one.key.lane
        assert (below > here) == (there == "lane-down")
        back = moved(trace, after, 20, REVERSES[there])
        assert back is not None and back.focus is not None and back.focus.lane == one.key.lane


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_panning_and_zooming_go_back(share: float) -> None:
    """Away from the ends a pan and the pan the other way end where they began; so do zooms, to a cell."""
    trace = trace_of("sample")
    first = view.first_session(trace, WIDTH)
    low, high = view.limits(trace, first.clocks)
    session = view.go_to(trace, first, low + int((high - low) * share))
    for _ in range(6):
        session = view.zoom_in(trace, session)
    for there, back in (("pan-left", "pan-right"), ("page-right", "page-left"), ("pan-right", "pan-left")):
        after = moved(trace, session, 20, there)
        assert after is not None
        assert (after.viewport.start > session.viewport.start) == there.endswith("right")
        again = moved(trace, after, 20, back)
        assert again is not None and again.viewport == session.viewport
    for there, back in (("zoom-in", "zoom-out"), ("zoom-in-far", "zoom-out-far"), ("zoom-out", "zoom-in")):
        after = moved(trace, session, 20, there)
        assert after is not None and (after.viewport.span < session.viewport.span) == ("in" in there)
        again = moved(trace, after, 20, back)
        assert again is not None
        assert abs(again.viewport.start - session.viewport.start) <= session.viewport.span / WIDTH + 1
        assert again.viewport.span == pytest.approx(session.viewport.span, rel=0.01)


@pytest.mark.parametrize(("beyond", "words"), [(-2_000_000, "2 ms before"), (3_000_000, "3 ms after")])
def test_how_far_outside_a_time_is(beyond: int, words: str) -> None:
    """A time outside the trace is refused with its distance from the nearer end."""
    trace = trace_of("small")
    session = view.first_session(trace, WIDTH)
    low, high = view.limits(trace, session.clocks)
    with pytest.raises(Refusal, match=words):
        view.go_to(trace, session, (low if beyond < 0 else high) + beyond)


def test_what_is_hidden_comes_back() -> None:
    """What a move folds, pins or hides and its reverse opens is as before, on each lane."""
    trace = trace_of("small")
    session = moved(trace, view.first_session(trace, WIDTH), 30, SELECT)
    seen = 0
    while session is not None:
        thing = thing_by_id(trace, session.clocks, session.selection) if session.selection else None
        if thing is not None:
            folded = moved(trace, session, 30, "fold")
            if folded is not None and folded.folded != session.folded:
                again = moved(trace, folded, 30, "fold")
                assert again is not None and again.folded == session.folded
            pinned = moved(trace, session, 30, "pin")
            assert pinned is not None and (thing.key.lane in pinned.pinned)
            again = moved(trace, pinned, 30, "pin")
            assert again is not None and again.pinned == session.pinned
            hidden = moved(trace, session, 30, "hide")
            assert hidden is not None and Layout(trace, hidden).y_of(thing.key) is None
            opened = select.unhidden(trace, hidden, thing)
            assert Layout(trace, opened).y_of(thing.key) is not None
            assert opened.hidden_lanes == session.hidden_lanes
            seen += 1
        session = moved(trace, session, 30, "lane-down")
    assert seen > 2
