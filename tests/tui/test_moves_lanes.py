"""Moves of the selection and of lanes, on a small trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tui.small_trace import MS, START, small_trace
from tracelane.core.base.errors import UsageError
from tracelane.core.base.ids import SliceId
from tracelane.core.trace import Trace
from tracelane.tui.actions import follow, lanes, select, view
from tracelane.tui.actions.refusal import Refusal
from tracelane.tui.actions.scene import Scene
from tracelane.tui.actions.table import MOVES
from tracelane.tui.draw.layout import Layout
from tracelane.tui.draw.line import lane_key
from tracelane.tui.draw.things import thing_by_id
from tracelane.tui.session import InstantId, RowKey, Session

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
    return select.select(trace, replace(session, cursor=thing.start), Layout(trace, session), HEIGHT, thing)


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
    session = replace(chosen(trace, first, 11), cursor=START + 14 * MS)
    assert do(trace, session, "down").selection == SliceId(0, 13)
    session = replace(session, cursor=START + 12 * MS)
    session = do(trace, session, "down")
    assert session.selection == SliceId(0, 12)
    below = do(trace, session, "down")
    assert below.focus == key(trace, "worker 0")
    assert below.selection == SliceId(0, 50)


def test_lane_moves_keep_the_time(trace: Trace, first: Session) -> None:
    """J and K go lane by lane, to the first row, and do not move the time."""
    session = replace(first, focus=key(trace, "main", 2))
    down = do(trace, session, "lane-down")
    assert down.focus == key(trace, "worker 0")
    assert down.viewport == first.viewport
    assert do(trace, down, "lane-up").focus == key(trace, "main")
    with pytest.raises(Refusal, match="last lane"):
        do(trace, session, *["lane-down"] * 10)


def test_enter_selects_what_is_at_the_cursor(trace: Trace, first: Session) -> None:
    """Without a selection the slice at the cursor, else the nearest in view, is selected; instants too."""
    session = replace(first, focus=key(trace, "main", 2), cursor=START + 14 * MS + 1)
    moved = select.at_cursor(trace, session, Layout(trace, session), HEIGHT)
    assert moved.selection == SliceId(0, 13)
    stream = next(lane for lane in trace.lanes if lane.instants)
    session = replace(first, focus=RowKey(lane_key(stream), len(stream.rows) - 1))
    assert isinstance(select.at_cursor(trace, session, Layout(trace, session), HEIGHT).selection, InstantId)


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
        session = replace(first, focus=row, cursor=cursor, viewport=view.view_of(start, end, 80))
        moved = select.at_cursor(trace, session, Layout(trace, session), HEIGHT)
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
    ranged = do(trace, replace(first, range=(START + MS, START + 2 * MS)), "focus")
    assert ranged.viewport.span == pytest.approx(MS / view.SLICE_SHARE, rel=0.01)


def test_flows_lead_to_launch_and_kernel(trace: Trace) -> None:
    """b and o go along flows, both ways; what has none says so."""
    assert [t.id for t in follow.back_from(trace, SliceId(0, 14))] == [SliceId(0, 13)]
    assert [t.id for t in follow.on_from(trace, SliceId(0, 13))] == [SliceId(0, 14)]
    for ask in (follow.back_from, follow.on_from):
        with pytest.raises(Refusal):
            ask(trace, SliceId(0, 50))


def test_fold_and_open(trace: Trace, first: Session) -> None:
    """Space folds the focused lane to one line and opens it again."""
    session = replace(first, focus=key(trace, "main", 2))
    folded = do(trace, session, "fold")
    assert Layout(trace, folded).height == Layout(trace, session).height - 2
    assert titles(trace, do(trace, folded, "fold")) == titles(trace, session)
    process = do(trace, session, "fold-process")
    assert "worker 0" not in titles(trace, process)
    assert "worker 0" in titles(trace, do(trace, process, "fold"))


def test_pin_and_release(trace: Trace, first: Session) -> None:
    """A pinned lane stands above the others until it is released."""
    session = replace(first, focus=key(trace, "worker 1"))
    pinned = do(trace, session, "pin")
    assert pinned.pinned == (session.focus.lane,)  # type: ignore[union-attr]
    assert do(trace, pinned, "pin").pinned == ()


def test_hide_one_and_all_alike(trace: Trace, first: Session) -> None:
    """x hides the lane, X all lanes of its name without digits; the focus goes to what is left."""
    session = replace(first, focus=key(trace, "worker 1"))
    one = do(trace, session, "hide")
    assert "worker 1" not in titles(trace, one) and "worker 2" in titles(trace, one)
    assert one.focus == key(trace, "worker 2")
    alike = do(trace, session, "hide-alike")
    assert not [title for title in titles(trace, alike) if title.startswith("worker")]
    assert alike.focus is not None and alike.focus.lane.name == "power"


def test_what_is_hidden_is_listed_and_comes_back(trace: Trace, first: Session) -> None:
    """Everything that hides something is in the list, and gone once shown again."""
    session = do(trace, replace(first, focus=key(trace, "worker 1")), "hide")
    session = do(trace, replace(session, focus=key(trace, "worker 0")), "hide-alike")
    session = replace(session, hidden_processes=frozenset({(0, "0")}), only="o")
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
        lambda s, k: replace(s, hidden_lanes=frozenset({k})),
        lambda s, k: replace(s, hidden_processes=frozenset({(0, "0")})),
        lambda s, k: replace(s, hidden_alike=("Stream #",)),
        lambda s, k: replace(s, only="main"),
        lambda s, k: replace(s, folded=frozenset({(0, "0")})),
        lambda s, k: replace(s, folded=frozenset({k})),
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
    first = replace(first, host_rows=1)
    at_first = replace(first, focus=key(trace, "main"))
    assert do(trace, first, command) == do(trace, at_first, command) != at_first


def test_expanding_what_is_whole_says_so(trace: Trace, first: Session) -> None:
    """A lane all of whose rows are drawn has no more to show; one with more opens and closes again."""
    shallow = replace(first, focus=key(trace, "main"), host_rows=1)
    opened = do(trace, shallow, "expand")
    assert "+2 rows" in titles(trace, shallow) and "+2 rows" not in titles(trace, opened)
    assert titles(trace, do(trace, opened, "expand")) == titles(trace, shallow)
    whole = replace(first, focus=key(trace, "main"), host_rows=100)
    with pytest.raises(Refusal, match="already"):
        do(trace, whole, "expand")
