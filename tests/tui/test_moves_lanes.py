"""Moves of the visible time, the selection and lanes, as functions from one Session to the next."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tui.small_trace import MS, START, small_trace
from tracelane.core.base.clock import Clocks
from tracelane.core.base.errors import UsageError
from tracelane.core.query.views import SliceId
from tracelane.core.trace import Trace
from tracelane.tui.actions import lanes, select, view
from tracelane.tui.actions.scene import MAX_LENGTH, History, Refusal, Scene
from tracelane.tui.actions.table import MOVES
from tracelane.tui.draw.layout import Layout
from tracelane.tui.draw.line import lane_key
from tracelane.tui.draw.things import thing_by_id
from tracelane.tui.session import InstantId, RowKey, Session, Viewport

HEIGHT = 20


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return small_trace(tmp_path_factory.mktemp("small") / "index")


@pytest.fixture
def first(trace: Trace) -> Session:
    return view.first_session(trace, 80)


def chosen(trace: Trace, session: Session, ordinal: int) -> Session:
    thing = thing_by_id(trace, session.clocks, SliceId(0, ordinal))
    assert thing is not None
    session = session._replace(cursor=thing.start)
    return select.select(Scene(trace, session, Layout(trace, session), HEIGHT), thing)


def do(trace: Trace, session: Session, *commands: str) -> Session:
    for name in commands:
        session = MOVES[name](Scene(trace, session, Layout(trace, session), HEIGHT))
    return session


def titles(trace: Trace, session: Session) -> list[str]:
    return [line.title for line in Layout(trace, session).lines(0, 100) if line.title]


def key(trace: Trace, title: str, depth: int = 0) -> RowKey:
    lane = next(lane for lane in trace.lanes if lane.title == title)
    return RowKey(lane_key(lane), depth)


def test_along_the_row(trace: Trace, first: Session) -> None:
    """Next and previous go along the row, across parents, and are refused at its ends."""
    session = chosen(trace, first, 2)
    assert do(trace, session, "next").selection == SliceId(0, 3)
    session = do(trace, session, "next", "next")
    assert session.selection == SliceId(0, 12)
    assert session.cursor == START + 12 * MS
    with pytest.raises(Refusal, match="first"):
        do(trace, session, "previous", "previous", "previous")


def test_next_brings_what_is_far_into_sight(trace: Trace, first: Session) -> None:
    """The next slice comes into view at the same zoom."""
    session = chosen(trace, do(trace, first, "zoom-in-far"), 2)
    moved = do(trace, session, "next", "next")
    assert moved.viewport.span == session.viewport.span
    assert moved.viewport.start <= START + 12 * MS < moved.viewport.end


def test_without_a_selection_the_cursor_moves(trace: Trace, first: Session) -> None:
    """With nothing selected left and right move the cursor by a cell."""
    moved = do(trace, first, "next")
    assert moved.selection is None
    assert moved.viewport.cell(moved.cursor) == first.viewport.cell(first.cursor) + 1


def test_up_to_the_enclosing_then_to_the_lane_above(trace: Trace, first: Session) -> None:
    """Up goes to the enclosing slices, from the outermost on to the lane above."""
    session = chosen(trace, first, 13)
    ups = []
    for _ in range(2):
        session = do(trace, session, "up")
        ups.append(session.selection)
    assert ups == [SliceId(0, 11), SliceId(0, 10)]
    with pytest.raises(Refusal, match="first lane"):
        do(trace, session, "up")
    kernel = do(trace, chosen(trace, first, 14), "up")
    assert kernel.focus is not None and kernel.focus.lane.name == "power"


def test_down_to_the_child_at_the_cursor_then_below(trace: Trace, first: Session) -> None:
    """Down goes to the child under the cursor or nearest to it, then to the lane below."""
    session = chosen(trace, first, 11)._replace(cursor=START + 14 * MS)
    assert do(trace, session, "down").selection == SliceId(0, 13)
    session = session._replace(cursor=START + 12 * MS)
    session = do(trace, session, "down")
    assert session.selection == SliceId(0, 12)
    below = do(trace, session, "down")
    assert below.focus == key(trace, "worker 0")
    assert below.selection == SliceId(0, 50)


def test_lane_moves_keep_the_time(trace: Trace, first: Session) -> None:
    """J and K go lane by lane, to the first row, and do not move the time."""
    session = first._replace(focus=key(trace, "main", 2))
    down = do(trace, session, "lane-down")
    assert down.focus == key(trace, "worker 0")
    assert down.viewport == first.viewport
    assert do(trace, down, "lane-up").focus == key(trace, "main")
    with pytest.raises(Refusal, match="last lane"):
        do(trace, session, *["lane-down"] * 10)


def test_enter_selects_what_is_at_the_cursor(trace: Trace, first: Session) -> None:
    """Without a selection the slice at the cursor, else the nearest in view, is selected; instants too."""
    session = first._replace(focus=key(trace, "main", 2), cursor=START + 14 * MS + 1)
    moved = select.at_cursor(Scene(trace, session, Layout(trace, session), HEIGHT))
    assert moved.selection == SliceId(0, 13)
    stream = next(lane for lane in trace.lanes if lane.instants)
    session = first._replace(focus=RowKey(lane_key(stream), len(stream.rows) - 1))
    assert isinstance(
        select.at_cursor(Scene(trace, session, Layout(trace, session), HEIGHT)).selection, InstantId
    )


def test_enter_in_a_gap(trace: Trace, first: Session) -> None:
    """In a gap Enter takes what is in view though more distant, and the nearest where nothing is in view."""
    row = key(trace, "main", 2)
    before, after = (thing_by_id(trace, first.clocks, SliceId(0, ordinal)) for ordinal in (3, 12))
    assert before is not None and after is not None and before.key == after.key == row
    gap = after.start - before.end
    cases = [
        (before.end + gap // 8, after.start + 10, before.end + gap // 8, 12),
        (before.start, after.start - gap // 8, after.start - gap // 8 - 1, 3),
        (before.end + gap // 4, after.start - gap // 4, before.end + gap // 3, 3),
        (before.end + gap // 4, after.start - gap // 4, after.start - gap // 3, 12),
    ]
    for start, end, cursor, ordinal in cases:
        session = first._replace(focus=row, cursor=cursor, viewport=view.view_of(start, end, 80))
        moved = select.at_cursor(Scene(trace, session, Layout(trace, session), HEIGHT))
        assert moved.selection == SliceId(0, ordinal)
        assert moved.viewport.span == session.viewport.span
        thing = before if ordinal == 3 else after
        assert thing.start < moved.viewport.end and moved.viewport.start <= thing.end


def test_focus_then_all(trace: Trace, first: Session) -> None:
    """f fits the selection, again the whole trace; a range is fitted where nothing is selected."""
    session = do(trace, chosen(trace, first, 11), "focus")
    assert session.viewport.start < START + 11 * MS < START + 17 * MS < session.viewport.end
    assert session.viewport.span < 8 * MS
    assert do(trace, session, "focus").viewport == first.viewport
    ranged = do(trace, first._replace(range=(START + MS, START + 2 * MS)), "focus")
    assert ranged.viewport.span == pytest.approx(MS / view.SLICE_SHARE, rel=0.01)


def test_flows_lead_to_launch_and_kernel(trace: Trace) -> None:
    """b and o go along flows, both ways; what has none says so."""
    assert [t.id for t in select.back_from(trace, SliceId(0, 14))] == [SliceId(0, 13)]
    assert [t.id for t in select.on_from(trace, SliceId(0, 13))] == [SliceId(0, 14)]
    for ask in (select.back_from, select.on_from):
        with pytest.raises(Refusal):
            ask(trace, SliceId(0, 50))


def test_fold_and_open(trace: Trace, first: Session) -> None:
    """Space folds the focused lane to one line and opens it again."""
    session = first._replace(focus=key(trace, "main", 2))
    folded = do(trace, session, "fold")
    assert Layout(trace, folded).height == Layout(trace, session).height - 2
    assert titles(trace, do(trace, folded, "fold")) == titles(trace, session)
    process = do(trace, session, "fold-process")
    assert "worker 0" not in titles(trace, process)
    assert "worker 0" in titles(trace, do(trace, process, "fold"))


def test_pin_and_release(trace: Trace, first: Session) -> None:
    """A pinned lane stands above the others until it is released."""
    session = first._replace(focus=key(trace, "worker 1"))
    pinned = do(trace, session, "pin")
    assert pinned.pinned == (session.focus.lane,)  # type: ignore[union-attr]
    assert do(trace, pinned, "pin").pinned == ()


def test_hide_one_and_all_alike(trace: Trace, first: Session) -> None:
    """x hides the lane, X all lanes of its name without digits; the focus goes to what is left."""
    session = first._replace(focus=key(trace, "worker 1"))
    one = do(trace, session, "hide")
    assert "worker 1" not in titles(trace, one) and "worker 2" in titles(trace, one)
    assert one.focus == key(trace, "worker 2")
    alike = do(trace, session, "hide-alike")
    assert not [title for title in titles(trace, alike) if title.startswith("worker")]
    assert alike.focus is not None and alike.focus.lane.name == "power"


def test_what_is_hidden_is_listed_and_comes_back(trace: Trace, first: Session) -> None:
    """Everything that hides something is in the list, and gone once shown again."""
    session = do(trace, first._replace(focus=key(trace, "worker 1")), "hide")
    session = do(trace, session._replace(focus=key(trace, "worker 0")), "hide-alike")
    session = session._replace(hidden_processes=frozenset({(0, "0")}), only="o")
    things = lanes.hidden_things(trace, session)
    assert [(thing.kind, thing.lanes) for thing in things] == [
        ("only", 0),
        ("process", 1),
        ("alike", 3),
        ("lane", 1),
    ]
    restored = lanes.shown_again(trace, session, things, HEIGHT)
    assert titles(trace, restored) == titles(trace, first)
    assert lanes.hidden_things(trace, lanes.show_all(trace, session, HEIGHT)) == []


def test_only_and_hide_by_pattern(trace: Trace, first: Session) -> None:
    """Patterns choose lanes; one that leaves nothing, or is none, is refused and changes nothing."""
    only = lanes.only(trace, first, "WORKER", HEIGHT)
    assert {t for t in titles(trace, only) if t.startswith(("worker", "main"))} == {
        "worker 0",
        "worker 1",
        "worker 2",
    }
    assert titles(trace, lanes.only(trace, only, "", HEIGHT)) == titles(trace, first)
    assert "main" not in titles(trace, lanes.hide_matching(trace, first, "^main$", HEIGHT))
    for pattern, error in (("nothing like it", Refusal), ("(", UsageError)):
        with pytest.raises(error):
            lanes.only(trace, first, pattern, HEIGHT)
    with pytest.raises(Refusal, match="every lane"):
        lanes.hide_matching(trace, first, ".", HEIGHT)


@pytest.mark.parametrize(
    "hide",
    [
        lambda s, k: s._replace(hidden_lanes=frozenset({k})),
        lambda s, k: s._replace(hidden_processes=frozenset({(0, "0")})),
        lambda s, k: s._replace(hidden_alike=("Stream #",)),
        lambda s, k: s._replace(only="main"),
        lambda s, k: s._replace(folded=frozenset({(0, "0")})),
        lambda s, k: s._replace(folded=frozenset({k})),
    ],
)
def test_what_is_gone_to_is_shown(
    trace: Trace, first: Session, hide: Callable[[Session, object], Session]
) -> None:
    """Going to a slice shows its row, whatever hid it."""
    kernel = thing_by_id(trace, first.clocks, SliceId(0, 14))
    assert kernel is not None
    session = select.unhidden(trace, hide(first, kernel.key.lane), kernel)
    layout = Layout(trace, session)
    y = layout.y_of(kernel.key)
    line = None if y is None else layout.line(y)
    assert line is not None and line.row_key == kernel.key and line.depth == 0


def test_moves_on_a_trace_without_lanes(trace: Trace, tmp_path: Path) -> None:
    """On an empty trace every move either does nothing or says why."""
    from tests.small_index import write_index
    from tracelane.core.index.store import Index

    write_index(tmp_path / "empty", [])
    empty = Trace([Index.open(tmp_path / "empty")])
    session = view.first_session(empty, 80)
    for name in MOVES:
        try:
            do(empty, session, name)
        except Refusal as refusal:
            assert str(refusal)


@pytest.mark.parametrize("command", ["fold", "expand", "fold-process", "pin", "hide", "hide-alike"])
def test_without_a_focus_the_first_lane_in_view_is_meant(trace: Trace, first: Session, command: str) -> None:
    """Keys that act on a lane take the first one in view where none is focused, as if it were."""
    assert first.focus is None
    first = first._replace(host_rows=1)
    at_first = first._replace(focus=key(trace, "main"))
    assert do(trace, first, command) == do(trace, at_first, command) != at_first


def test_expanding_what_is_whole_says_so(trace: Trace, first: Session) -> None:
    """A lane all of whose rows are drawn has no more to show; one with more opens and closes again."""
    shallow = first._replace(focus=key(trace, "main"), host_rows=1)
    opened = do(trace, shallow, "expand")
    assert "+2 rows" in titles(trace, shallow) and "+2 rows" not in titles(trace, opened)
    assert titles(trace, do(trace, opened, "expand")) == titles(trace, shallow)
    whole = first._replace(focus=key(trace, "main"), host_rows=100)
    with pytest.raises(Refusal, match="already"):
        do(trace, whole, "expand")


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
    now = view.first_session(FAR, 100)._replace(viewport=Viewport(10**14 + 500, 1_000, 100))
    first = view.trace_start(FAR, now)
    assert first.viewport.start == FAR.opening_span[0]
    assert view.trace_start(FAR, first).viewport.start == 0
    last = view.trace_end(FAR, now)
    assert last.viewport.end == FAR.opening_span[1]
    assert view.trace_end(FAR, last).viewport.end == FAR.span[1]


def test_reset_twice_shows_outliers() -> None:
    """Reset shows the bulk, again everything, again the bulk, each time from the first lane on."""
    now = view.zoom_in(FAR, view.first_session(FAR, 100))
    spans = []
    for scroll in range(3):
        now = view.reset(FAR, now._replace(scroll=scroll))
        assert now.scroll == 0
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


@pytest.mark.parametrize("at", range(0, 1_000, 50))
@pytest.mark.parametrize("length", [1, 10, 30])
def test_what_comes_in_sight_is_whole_and_not_at_the_edge(at: int, length: int) -> None:
    """Wherever it lies, the cursor is on it, and where the trace goes on before it, so does the view."""
    low, high = view.limits(PLAIN, session(1_000, 1_000, 1_000).clocks)
    for now in (session(low, 100, low), session(high - 100, 100, high - 100)):
        start = low + at * (high - low - length) // 1_000
        after = view.in_sight(PLAIN, now, start, start + length)
        seen = after.viewport
        assert seen.start <= after.cursor < seen.end and start <= after.cursor < start + length
        if seen != now.viewport:
            assert seen.span == 100 and seen.start <= start and start + length <= seen.end
            assert seen.start < start or start == low


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
    for n in range(MAX_LENGTH * 2):
        history = history.left(session(n, 1_000, n), "", float(n))
    assert len(history.past) <= MAX_LENGTH + 1


def test_the_cursor_stays_where_it_is_seen() -> None:
    """Fewer cells leave the cursor at its time; only out of view it goes to the nearest end."""
    for cursor, width, expected in ((1200, 1, 1200), (1499, 3, 1499), (900, 7, 1000), (1500, 5, 1400)):
        assert view.keep_cursor(session(1000, 500, cursor, width)).cursor == expected


WIDTHS = st.integers(1, 400)
STARTS = st.integers(-(10**18), 10**19)
SPANS = st.integers(1, 10**19)


@st.composite
def viewports(draw: st.DrawFn) -> Viewport:
    width = draw(WIDTHS)
    return Viewport(draw(STARTS), max(width, draw(SPANS)), width)


@given(viewports(), st.data())
def test_a_time_lies_in_its_cell(view: Viewport, data: st.DataObject) -> None:
    """The cell of a time begins at or before it and ends after it, inside the view and out of it."""
    time = data.draw(st.integers(view.start - 2 * view.span, view.end + 2 * view.span))
    cell = view.cell(time)
    assert view.edge(cell) <= time < view.edge(cell + 1)


@given(viewports())
def test_edges_tile_the_view(view: Viewport) -> None:
    """The cells' edges run from the start to the end of the view and no cell is empty."""
    edges = view.edges()
    assert len(edges) == view.width + 1
    assert edges[0] == view.start and edges[-1] == view.end
    assert all(a < b for a, b in itertools.pairwise(edges))


@given(viewports(), st.floats(0.01, 100), st.data())
def test_zooming_keeps_the_place(view: Viewport, factor: float, data: st.DataObject) -> None:
    """The time that is zoomed about stays in view, at its cell or the one beside it."""
    about = data.draw(st.integers(view.start, view.end - 1))
    limits = (view.start - 10 * view.span, view.end + 10 * view.span)
    zoomed = view.zoomed(factor, about, limits)
    assert zoomed.width == view.width and zoomed.span >= view.width
    if zoomed.span < limits[1] - limits[0] and limits[0] < zoomed.start and zoomed.end < limits[1]:
        assert abs(zoomed.cell(about) - view.cell(about)) <= 1


@given(viewports(), st.integers(-3, 3))
def test_in_and_out_again_comes_back(view: Viewport, pans: int) -> None:
    """Panning to and fro ends where it began, as long as no limit is met."""
    limits = (view.start - 100 * view.span, view.end + 100 * view.span)
    moved = view
    for _ in range(abs(pans)):
        moved = moved.panned(0.5 if pans > 0 else -0.5, limits)
    for _ in range(abs(pans)):
        moved = moved.panned(-0.5 if pans > 0 else 0.5, limits)
    assert moved == view


@given(viewports(), WIDTHS)
def test_resizing_keeps_the_window(view: Viewport, width: int) -> None:
    """Another number of cells shows the same time from the same start, never below 1 ns a cell."""
    resized = view.resized(width)
    assert resized.start == view.start and resized.width == width
    assert resized.span == max(view.span, width)


@given(viewports(), STARTS, SPANS)
def test_the_view_stays_within_limits(view: Viewport, low: int, length: int) -> None:
    """Kept within limits, a view lies inside them, or around them where it is longer."""
    high = low + length
    limited = view.kept_within((low, high))
    assert limited.span == view.span
    if view.span <= length:
        assert low <= limited.start and limited.end <= high
    else:
        assert limited.start <= low and high <= limited.end
