"""Moves of the visible time, as functions from one Session to the next."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracelane.core.base.clock import Clocks
from tracelane.tui.actions import view
from tracelane.tui.actions.history import LONGEST, History
from tracelane.tui.actions.refusal import Refusal
from tracelane.tui.session import Session, Viewport


@dataclass(frozen=True)
class Span:
    """A trace of nothing but its length."""

    span: tuple[int, int]
    opening_span: tuple[int, int]
    clocks: Clocks = field(default_factory=Clocks)
    minor_lanes: tuple[()] = ()
    indexes: tuple[()] = ()
    source_count: int = 0
    missing: tuple[str, ...] = ("steps are not looked for",)

    def span_at(self, clocks: Clocks) -> tuple[int, int]:
        """Return its length under any clocks."""
        return self.span


@dataclass(frozen=True)
class At:
    """A step."""

    label: str
    start: int


FAR = Span((0, 10**15), (10**14, 10**14 + 10_000))
PLAIN = Span((1_000, 11_000), (1_000, 11_000))
ZOOMS = (view.zoom_in, view.zoom_out, view.zoom_in_far, view.zoom_out_far)
PANS = (view.pan_left, view.pan_right, view.page_left, view.page_right)


def session(start: int, span: int, cursor: int, width: int = 100) -> Session:
    return Session(Viewport(start, span, width), cursor)


def seen(now: Session) -> bool:
    return now.viewport.start <= now.cursor < now.viewport.end


def test_first_session_is_the_opening_span() -> None:
    """At first the bulk of the trace is seen, without outliers, the cursor in sight."""
    first = view.first_session(FAR, 100)
    assert (first.viewport.start, first.viewport.end) == FAR.opening_span
    assert seen(first)


@given(
    st.integers(-(10**18), 10**18),
    st.integers(1, 10**18),
    st.integers(1, 400),
    st.lists(st.sampled_from([*ZOOMS, *PANS, view.trace_start, view.trace_end, view.reset]), max_size=12),
)
def test_no_move_loses_the_place(start: int, length: int, width: int, moves: list[object]) -> None:
    """Whatever is pressed, the view stays within the trace, 1 ns a cell at least, and the cursor in it."""
    trace = Span((start, start + length), (start, start + length))
    now = view.first_session(trace, width)
    for move in moves:
        try:
            now = move(trace, now)  # type: ignore[operator]
        except Refusal:
            continue
        assert seen(now)
        assert now.viewport.width == width
        assert now.viewport.span >= width
        if now.viewport.span < length:
            assert start <= now.viewport.start and now.viewport.end <= start + length


@pytest.mark.parametrize("cell", [0, 3, 50, 99])
def test_zoom_is_about_the_cursor(cell: int) -> None:
    """Zooming in keeps the cursor in its cell, until 1 ns a cell, and is refused there."""
    trace = Span((0, 10**12), (0, 10**12))
    now = session(0, 10**12, Viewport(0, 10**12, 100).edge(cell) + 5)
    while True:
        try:
            now = view.zoom_in(trace, now)
        except Refusal:
            break
        assert abs(now.viewport.cell(now.cursor) - cell) <= 1
    assert now.viewport.span == 100


def test_zooming_out_ends_at_the_whole_trace() -> None:
    """Zooming out reaches the whole trace, outliers included, and is refused there."""
    now = view.first_session(FAR, 100)
    with pytest.raises(Refusal, match="whole trace"):
        for _ in range(30):
            now = view.zoom_out_far(FAR, now)
    assert (now.viewport.start, now.viewport.end) == FAR.span


def test_panning_moves_thirty_percent_and_stops_at_the_ends() -> None:
    """A pan is 30 % of the view, a page all of it; beyond the ends it is refused with the reason."""
    now = session(1_000, 1_000, 1_500)
    assert view.pan_right(PLAIN, now).viewport.start == 1_300
    assert view.page_right(PLAIN, now).viewport.start == 2_000
    with pytest.raises(Refusal, match="starts here"):
        view.pan_left(PLAIN, now)
    assert view.pan_right(PLAIN, session(9_900, 1_000, 9_950)).viewport.end == 11_000


def test_panning_takes_the_cursor_along_at_the_edge() -> None:
    """The cursor stays at its time while that is visible, then at the edge of the view."""
    now = session(1_000, 1_000, 1_500)
    assert view.pan_right(PLAIN, now).cursor == 1_500
    assert view.page_right(PLAIN, now).cursor == 2_000


def test_home_and_end_reach_outliers_the_second_time() -> None:
    """Home and End go to the ends of the bulk first, from there to the ends of everything."""
    now = replace(view.first_session(FAR, 100), viewport=Viewport(10**14 + 500, 1_000, 100))
    first = view.trace_start(FAR, now)
    assert first.viewport.start == FAR.opening_span[0]
    assert view.trace_start(FAR, first).viewport.start == 0
    last = view.trace_end(FAR, now)
    assert last.viewport.end == FAR.opening_span[1]
    assert view.trace_end(FAR, last).viewport.end == FAR.span[1]


def test_reset_twice_shows_outliers() -> None:
    """Reset shows the bulk, again everything, again the bulk."""
    now = view.zoom_in(FAR, view.first_session(FAR, 100))
    spans = []
    for _ in range(3):
        now = view.reset(FAR, now)
        spans.append((now.viewport.start, now.viewport.end))
    assert spans == [FAR.opening_span, FAR.span, FAR.opening_span]


def test_focus_fits_and_fits_all_again() -> None:
    """A focused slice takes four fifths of the view; focused again, all is shown."""
    now = view.zoomed_to(PLAIN, session(1_000, 10_000, 1_000), 5_000, 5_800)
    assert (now.viewport.start, now.viewport.end) == (4_900, 5_900)
    assert seen(now)
    again = view.zoomed_to(PLAIN, now, 5_000, 5_800)
    assert (again.viewport.start, again.viewport.end) == PLAIN.span


def test_focus_on_nothing_long() -> None:
    """A slice of no length is shown at 1 ns a cell, in the middle."""
    now = view.zoomed_to(PLAIN, session(1_000, 10_000, 1_000), 5_000, 5_000)
    assert now.viewport.span == 100
    assert now.viewport.cell(5_000) == 50


def test_steps_keep_the_zoom_and_the_place_in_the_view() -> None:
    """The next step's start comes to the cell where the cursor was; behind the last it is refused."""
    steps = [At("1", 2_000), At("2", 4_000), At("3", 6_000)]
    now = session(1_900, 1_000, 2_000)
    now = view.stepped(PLAIN, now, steps, 1)
    assert (now.cursor, now.viewport.start, now.viewport.span) == (4_000, 3_900, 1_000)
    now = view.stepped(PLAIN, now, steps, -1)
    assert (now.cursor, now.viewport.start) == (2_000, 1_900)
    with pytest.raises(Refusal, match="no step before"):
        view.stepped(PLAIN, now, steps, -1)
    with pytest.raises(Refusal, match="no steps"):
        view.stepped(PLAIN, now, [], 1)


def test_go_to_centres_and_refuses_what_is_outside() -> None:
    """A time is put into the middle, zoom kept; one outside the trace is refused with the distance."""
    now = view.go_to(PLAIN, session(1_000, 1_000, 1_000), 6_000)
    assert (now.viewport.start, now.viewport.span, now.cursor) == (5_500, 1_000, 6_000)
    with pytest.raises(Refusal, match="500 ns before"):
        view.go_to(PLAIN, now, 500)


def test_in_sight_moves_only_what_is_out_of_sight() -> None:
    """A thing that is partly visible does not move the view."""
    now = session(2_000, 1_000, 2_500)
    assert view.in_sight(PLAIN, now, 1_500, 2_001).viewport == now.viewport
    moved = view.in_sight(PLAIN, now, 8_000, 8_010)
    assert moved.viewport.span == 1_000 and moved.viewport.start <= 8_000 < moved.viewport.end
    assert moved.cursor == 8_000


def test_history_walks_back_and_forward() -> None:
    """Quick moves of one kind are one place; going back opens the future, a new move ends it."""
    views = [session(1_000 + n, 1_000, 1_500) for n in range(5)]
    history = History()
    history = history.left(views[0], "zoom", 0.0).left(views[1], "zoom", 0.5).left(views[2], "pan", 0.6)
    assert history.past == (views[0], views[2])
    back = history.back(views[3])
    assert back is not None and back[0] == views[2]
    assert back[1].forward(views[2]) == (views[3], History((views[0], views[2]), ()))
    assert back[1].left(views[2], "pan", 0.7).future == ()
    assert History().back(views[0]) is None and History().forward(views[0]) is None


def test_history_is_bounded() -> None:
    """A day of moves does not pile up."""
    history = History()
    for n in range(LONGEST * 2):
        history = history.left(session(n, 1_000, n), "", float(n))
    assert len(history.past) <= LONGEST + 1


def test_the_cursor_stays_where_it_is_seen() -> None:
    """Fewer cells leave the cursor at its time; only out of view it goes to the nearest end."""
    for cursor, width, expected in ((1200, 1, 1200), (1499, 3, 1499), (900, 7, 1000), (1500, 5, 1400)):
        assert view.keep_cursor(session(1000, 500, cursor, width)).cursor == expected
