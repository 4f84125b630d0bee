"""A trace that is being written, and a view that is carried over to files with other numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.tui.driver import message, open_viewer, screen_text, wait_until, wait_until_idle
from tests.tui.fake_trace import LaneSpec, fake_trace
from tests.tui.slow_line import SlowLine, tracelane_command
from tests.tui.small_file import LAUNCH, events, small_file
from tracelane.core.export.marks import Mark, read_marks, shelf
from tracelane.core.logs.counters import QUEUE, with_cheap_lanes
from tracelane.core.query.views import SliceId
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.actions.lanes import computed_lanes
from tracelane.tui.actions.scene import History
from tracelane.tui.actions.view import first_session
from tracelane.tui.app import TracelaneApp
from tracelane.tui.controllers.reloading import ReloadController
from tracelane.tui.draw.layout import Layout
from tracelane.tui.draw.line import lane_key
from tracelane.tui.session import LaneKey, RowKey, Session, Viewport
from tracelane.tui.view_state import (
    Prepared,
    Reopen,
    carried,
    history_over,
    import_marks,
    numbered_anew,
    scroll_kept,
    session_over,
)

US = 1000
TICK_S = 0.05


def more(path: Path, count: int = 50, at: float = 1300.0) -> None:
    """Write the trace again, longer, in one step: a watch must not see it half written."""
    later = {"ph": "X", "cat": "cpu_op", "name": "aten::later", "pid": 7, "tid": 7, "dur": 1}
    added = [later | {"ts": at + 2 * n} for n in range(count)]
    longer = path.with_suffix(".longer")
    longer.write_text(
        json.dumps({"baseTimeNanoseconds": 1_700_000_000_000_000_000, "traceEvents": events() + added}),
        encoding="utf-8",
    )
    longer.replace(path)


def opened(path: Path) -> Trace:
    return open_trace(path, index_dir=path.parent / "index")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return small_file(tmp_path)


async def until_noticed(app: TracelaneApp, pilot: Pilot[None]) -> None:
    await wait_until(pilot, lambda: bool(app.reloading.header_notes()), "a notice")


async def test_growing_is_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Header and footer tell that the file grew, and by how much; leaving opens it anew."""
    monkeypatch.setattr(ReloadController, "watch_period_s", TICK_S)
    async with open_viewer(opened(path), (120, 30)) as (app, pilot):
        before = path.stat().st_size
        more(path, 900)
        await until_noticed(app, pilot)
        await pilot.pause()
        grown = path.stat().st_size - before
        assert 80_000 < grown < 95_000  # 900 events
        assert message(app) == f"file grew by {grown / 1024:.1f} KiB: type :reload"
        more(path, 950)
        grown = path.stat().st_size - before
        await wait_until(pilot, lambda: f"{grown / 1024:.1f}" in message(app))
        assert message(app) == f"file grew by {grown / 1024:.1f} KiB: type :reload"
        await pilot.press("w")
        assert f"grew by {grown / 1024:.1f} KiB" in screen_text(app).splitlines()[0]
        assert app.is_running and app.return_value is None
        app.run_command("reload")
        await wait_until_idle(app, pilot)
        assert app.return_value == Reopen() and app.return_code == 0


async def test_a_trace_that_appears_in_the_folder_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a folder was opened, a trace that is new in it is announced; where a file was, none is."""
    monkeypatch.setattr(ReloadController, "watch_period_s", TICK_S)
    folder = tmp_path / "traces"
    folder.mkdir()
    first = small_file(folder)
    (folder / "settings.json").write_text('{"a": 1}', encoding="utf-8")
    trace, alone = open_trace(folder, index_dir=tmp_path / "index"), opened(first)
    assert trace.folders == (str(folder),) and alone.folders == ()
    async with open_viewer(trace, (120, 30)) as (app, pilot):
        more(folder / "later.json")
        await until_noticed(app, pilot)
        await pilot.pause()
        assert message(app) == "file is new: later.json: type :reload"
        app.run_command("reload")
        await wait_until_idle(app, pilot)
        assert app.return_value == Reopen()


async def test_a_change_that_was_not_noticed_yet(path: Path) -> None:
    """:reload looks for itself, whenever the last look was, and stays where nothing has changed."""
    async with open_viewer(opened(path)) as (app, pilot):
        app.run_command("reload")
        await wait_until_idle(app, pilot)
        assert message(app) == "nothing has changed since the trace was read"
        assert app.is_running and app.return_value is None
        more(path)
        app.run_command("reload")
        await wait_until_idle(app, pilot)
        assert app.return_value == Reopen()


async def test_a_deleted_file_is_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Header and footer tell that the file is gone, and :reload stays, as there is nothing to read; it opens
    the file once it is back.
    """
    monkeypatch.setattr(ReloadController, "watch_period_s", TICK_S)
    async with open_viewer(opened(path), (120, 30)) as (app, pilot):
        path.unlink()
        await until_noticed(app, pilot)
        await pilot.pause()
        assert message(app) == "file was deleted"
        assert "file was deleted" in screen_text(app).splitlines()[0]
        app.run_command("reload")
        await wait_until(pilot, lambda: message(app) == "file was deleted: there is nothing to read again")
        assert app.is_running and app.return_value is None
        more(path)
        await wait_until(pilot, lambda: "deleted" not in screen_text(app).splitlines()[0])
        app.run_command("reload")
        await wait_until_idle(app, pilot)
        assert app.return_value == Reopen()


async def test_what_came_through_a_pipe(path: Path) -> None:
    """It cannot be read again, and :reload says so."""
    trace = opened(path)
    del trace.indexes[0].manifest["source"]["mtime_ns"]  # as of a pipe, known by the hash of all of it
    async with open_viewer(trace) as (app, pilot):
        app.run_command("reload")
        await wait_until_idle(app, pilot)
        assert message(app) == "what came through a pipe cannot be read again"


def test_the_view_stays(path: Path) -> None:
    """Time window, cursor, lane, selection, folds and the rest are those of before; so are the marks."""
    trace = opened(path)
    low, _ = trace.span
    lane = next(lane for lane in trace.lanes if lane.title.startswith("main"))
    selected = SliceId(0, LAUNCH)
    marks_path = read_marks_at(trace)
    marks_path.parent.mkdir(exist_ok=True)
    marks_path.write_text(
        json.dumps({"marks": [{"start_ns": 5, "end_ns": 5, "text": "here"}]}), encoding="utf-8"
    )
    before = first_session(trace, 90)._replace(
        viewport=Viewport(low + 20 * US, 60 * US, 90),
        cursor=low + 31 * US,
        focus=RowKey(lane_key(lane), 1),
        selection=selected,
        folded=frozenset({lane_key(lane)}),
        pinned=(lane_key(lane),),
        ruler="wall",
        search="launch",
        panel="ops",
    )
    stays = carried(trace, before, "tracelane-light")
    more(path)
    now = opened(path)
    assert now.span[1] > trace.span[1]
    assert session_over(stays, now) == before
    assert stays.marks is not None and import_marks(now, stays.marks) == 1
    assert read_marks(read_marks_at(now)) == (Mark(5, 5, "here"),)


def read_marks_at(trace: Trace) -> Path:
    marks_path = shelf(trace, "marks")
    assert marks_path is not None
    return marks_path


def test_the_views_before_stay(path: Path) -> None:
    """Back and forward walk the views that were left, as far as their time and selections are still there."""
    trace = opened(path)
    low, high = trace.span
    first = first_session(trace, 80)
    chosen = first._replace(selection=SliceId(0, LAUNCH), viewport=Viewport(low, 40 * US, 80))
    far = first._replace(viewport=Viewport(high + 60 * US, 1 * US, 80))
    later = first._replace(cursor=low + 5)
    stays = carried(trace, first, "", History((chosen, far), (later,)))
    more(path)
    history = history_over(stays, opened(path))
    assert (history.past[0], history.future) == (chosen, (later,))
    assert len(history.past) == 2, "what lay behind the end is in the file now"
    moved = [event | {"ts": event["ts"] + 10} if "ts" in event else event for event in events()]
    path.write_text(json.dumps({"traceEvents": moved}), encoding="utf-8")
    gone = history_over(stays, opened(path))
    assert [view.selection for view in gone.past] == [None], "another slice has that number"
    assert [view.cursor for view in gone.future] == [later.cursor]


async def test_computed_lanes_come_back(path: Path) -> None:
    """Lanes that were computed are computed again after the first picture; focus and history stay."""
    trace = with_cheap_lanes(opened(path))
    async with open_viewer(trace, (120, 40)) as (app, pilot):
        app.run_command("queue-lanes")
        await wait_until_idle(app, pilot)
        await pilot.press("w")
        stays = carried(app.trace, app.session, app.theme, app.store.now.history)
    more(path)
    now = with_cheap_lanes(opened(path))
    session = session_over(stays, now)
    app = TracelaneApp(Prepared(now, session, (), history_over(stays, now), stays.computed))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await wait_until_idle(app, pilot)
        assert computed_lanes(app.trace, QUEUE)
        assert session is not None
        assert app.session.focus == session.focus
        await pilot.press("u")
        assert app.session.viewport.span > session.viewport.span


def test_another_trace_under_the_same_name(path: Path) -> None:
    """Where the number of the selection means another slice, or the time is gone, nothing wrong is shown."""
    trace = opened(path)
    stays = carried(trace, first_session(trace, 80)._replace(selection=SliceId(0, LAUNCH)), "")
    moved = [event | {"ts": event["ts"] + 10} if "ts" in event else event for event in events()]
    path.write_text(json.dumps({"traceEvents": moved}), encoding="utf-8")
    now = session_over(stays, opened(path))
    assert now is not None and now.selection is None
    path.write_text(
        json.dumps({"traceEvents": [event | {"ts": 9e9} for event in events() if "ts" in event]}),
        encoding="utf-8",
    )
    assert session_over(stays, opened(path)) is None


def test_files_that_came_or_went(path: Path) -> None:
    """What is said of lanes goes with their file, whatever number it has, and is dropped with it."""
    trace = opened(path)
    folded = frozenset({lane_key(trace.lanes[0])})
    session = first_session(trace, 80)._replace(selection=SliceId(0, LAUNCH), folded=folded, ruler="file")
    other = path.with_name("a.json")
    other.write_text(json.dumps({"traceEvents": events()}), encoding="utf-8")
    both = open_trace([other, path], index_dir=path.parent / "index")
    number = [Path(source.path) for source in both.files].index(path)
    now = session_over(carried(trace, session, ""), both)
    assert now is not None
    assert now.selection == SliceId(number, LAUNCH)
    assert now.folded == {key._replace(source=number) for key in folded}
    assert (now.viewport, now.cursor, now.ruler) == (session.viewport, session.cursor, "file")
    gone = session_over(carried(both, now, ""), open_trace(other, index_dir=path.parent / "index"))
    assert gone is not None and (gone.selection, gone.folded) == (None, frozenset())
    assert (gone.viewport, gone.ruler) == (session.viewport, "file")


@pytest.mark.slow
def test_on_a_terminal(path: Path) -> None:
    """The whole way: :reload shows what was written since, with the marks, a `.tmp` may be renamed."""
    path = path.rename(path.with_name("small.json.tmp"))
    command = tracelane_command("view", str(path), "--index-dir", str(path.parent / "index"), "--fresh")
    with SlowLine(command, (120, 40)) as line:
        line.wait_for("details")
        line.wait_for_quiet(0.3)
        line.type("m")
        line.wait_for("marked")
        line.type(":reload\r")
        line.wait_for("nothing has changed")
        more(path)
        path.rename(path.with_name("small.json"))
        line.forget_received()
        line.type(":reload\r")
        line.wait_for_bytes("\x1b[?1049h")  # opened anew, it takes the other screen again
        line.wait_for("details")
        line.wait_for_quiet(0.3)
        line.type("22")
        line.wait_for("71")
        line.type(":marks\r")
        line.wait_for("(no text)")
        line.type("q")
        line.wait_for_quiet(0.3)
        line.type("q")
        assert line.wait_for_end() == 0


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


SAME = {0: 0}


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
        assert scroll_kept(layout, seen, more, 12, SAME) == 18
    away = Session(VIEW, 0, scroll=20, focus=RowKey(lane_key(before.lanes[29]), 0))
    assert scroll_kept(layout, away, more, 12, SAME) == 18  # out of sight: the topmost counts
    assert scroll_kept(layout, seen, more, 50, SAME) == 9  # the last line stands lowest in both
