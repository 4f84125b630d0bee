"""A view is carried over to a trace in which files have other numbers."""

from __future__ import annotations

from tests.tui.fake_trace import LaneSpec, fake_trace
from tracelane.core.base.ids import SliceId
from tracelane.core.trace import Trace
from tracelane.tui.draw.layout import Layout
from tracelane.tui.draw.line import lane_key
from tracelane.tui.session import LaneKey, RowKey, Session, Viewport
from tracelane.tui.settling import numbered_anew, scroll_kept

VIEW = Viewport(0, 1_000_000, 100)


def test_files_with_other_numbers() -> None:
    """All that names a file by its number names it by the new one; what is said of those gone is dropped."""
    staying, gone = LaneKey(2, "7", "1"), LaneKey(1, "7", "1")
    now = LaneKey(1, "7", "1")
    session = Session(
        VIEW,
        5,
        focus=RowKey(staying, 3),
        selection=SliceId(2, 40),
        folded=frozenset({staying, gone, (2, "7"), (1, "")}),
        unfolded=frozenset({(2, ""), (0, "")}),
        pinned=(gone, staying),
        hidden_lanes=frozenset({gone}),
        hidden_processes=frozenset({(2, "8"), (1, "8")}),
    )
    renumbered = numbered_anew(session, {0: 0, 2: 1})
    assert renumbered == Session(
        VIEW,
        5,
        focus=RowKey(now, 3),
        selection=SliceId(1, 40),
        folded=frozenset({now, (1, "7")}),
        unfolded=frozenset({(1, ""), (0, "")}),
        pinned=(now,),
        hidden_processes=frozenset({(1, "8")}),
    )
    lost = numbered_anew(session, {0: 0, 1: 2})
    assert lost.focus is None and lost.selection is None and lost.pinned == (LaneKey(2, "7", "1"),)


def _trace(lanes: int) -> Trace:
    return fake_trace([LaneSpec(f"t{number}", rows=2) for number in range(lanes)])


def test_the_line_in_sight_stays_where_it_is() -> None:
    """The focused line keeps its place on the screen, else the topmost one; past the end nothing is shown."""
    before, now = _trace(30), _trace(30)
    session = Session(VIEW, 0, scroll=20)
    layout = Layout(before, session)
    key = RowKey(lane_key(before.lanes[14]), 1)
    more = Layout(now, Session(VIEW, 0, hidden_lanes=frozenset({lane_key(now.lanes[3])})))
    for focus in (None, key):
        seen = Session(VIEW, 0, scroll=20, focus=focus)
        assert scroll_kept(layout, seen, more, 12) == 18
    away = Session(VIEW, 0, scroll=20, focus=RowKey(lane_key(before.lanes[29]), 0))
    assert scroll_kept(layout, away, more, 12) == 18  # out of sight: the topmost counts
    assert scroll_kept(layout, seen, more, 50) == 9  # the last line stands lowest in both
