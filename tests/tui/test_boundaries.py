"""Errors that nobody foresaw, in the viewer or a job: each is shown and logged, and the session goes on."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest
from textual.app import ScreenStackError
from textual.css.query import NoMatches
from textual.pilot import Pilot

from tests.tui.driver import message, open_viewer, press_keys, screen_text, wait_until, wait_until_idle
from tests.tui.small_file import small_file
from tracelane.core.base.errors import Cancelled, TracelaneError
from tracelane.core.tables.host import ops
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.actions.table import MOVES
from tracelane.tui.app import TracelaneApp
from tracelane.tui.lanes.canvas import LaneCanvas
from tracelane.tui.lanes.strips import Minimap, Ruler
from tracelane.tui.panels.findings import FindingsPane
from tracelane.tui.screens.lists import HelpScreen
from tracelane.tui.session_log import SessionLog
from tracelane.tui.widgets.bars import Bar
from tracelane.tui.widgets.table import VirtualTable

ODD = "odd\nnumbers \x1b]0;title\x07"
MESSAGE = "this should not have happened: ValueError: odd numbers"


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Any trace."""
    return open_trace(small_file(tmp_path), index_dir=tmp_path / "index")


def fail(*_: object, **__: object) -> None:
    raise ValueError(ODD)


async def fail_later(*_: object) -> None:
    raise ValueError(ODD)


def log_of() -> Path:
    return Path(os.environ["XDG_STATE_HOME"]) / "tracelane" / "viewer.log"


Break = Callable[[TracelaneApp, pytest.MonkeyPatch], None]
FAULTS: dict[str, tuple[Break, str]] = {
    "table": (lambda _, patch: patch.setattr(ops, "ops", fail), "ttttt"),
    "move": (lambda _, patch: patch.setitem(MOVES, "zoom-in", fail), "w"),  # type: ignore[call-overload]
    "command": (lambda app, patch: patch.setitem(app.handlers, "theme", fail), ""),
    "lanes": (lambda _, patch: patch.setattr(LaneCanvas, "render_line", fail), "w"),
    "minimap": (lambda _, patch: patch.setattr(Minimap, "render_line", fail), "w"),
    "tabs": (lambda _, patch: patch.setattr(Bar, "render", fail), "t"),
    "layout": (lambda _, patch: patch.setattr(Ruler, "drawn_lines", fail), "m"),
    "pane": (lambda _, patch: patch.setattr(FindingsPane, "compose", fail), "2"),
    "rows": (lambda _, patch: patch.setattr(VirtualTable, "render_line", fail), "t"),
    "screen": (lambda _, patch: patch.setattr(HelpScreen, "compose", fail), "?"),
    "key": (lambda _, patch: patch.setattr(LaneCanvas, "on_key", fail, raising=False), "h"),  # no command
    "timer": (lambda app, _: void(app.set_timer(0.01, fail)), ""),
    "later": (lambda app, _: void(app.call_later(fail)), ""),
    "next": (lambda app, _: void(app.main.call_next(fail_later)), ""),
    "worker": (lambda app, _: void(app.run_worker(fail_later())), ""),
    "thread": (lambda app, _: void(app.run_worker(fail, thread=True)), ""),
}
"""Where something fails: what breaks it, and the key that gets there."""


def void(_: object) -> None:
    """Return nothing."""


@pytest.mark.usefixtures("errors_are_shown")
@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
async def test_the_session_goes_on(
    trace: Trace, monkeypatch: pytest.MonkeyPatch, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error anywhere is said in the footer and logged; other keys work, and q quits in order."""
    breaks, key = FAULTS[fault]
    async with open_viewer(trace) as (app, pilot):
        with monkeypatch.context() as patch:
            breaks(app, patch)
            if fault == "command":
                app.run_command("theme")
            elif key:
                await pilot.press(*key)
            for _ in range(5):
                await wait_until_idle(app, pilot)
            assert app.is_running
            assert log_of().is_file()
        await goes_on(app, pilot)
        assert app.return_code == 0
    text = log_of().read_text(encoding="utf-8")
    assert "Traceback" in text and "odd" in text and "\x1b" not in text and "\x07" not in text
    assert log_of().stat().st_mode & 0o777 == 0o600
    assert "Traceback" not in capsys.readouterr().err


async def goes_on(app: TracelaneApp, pilot: Pilot[None]) -> None:
    """Close what is on top, zoom, show a panel, quit."""
    while len(app.screen_stack) > 1:
        app.pop_screen()
        await pilot.pause()
    app.maximised = False
    app.refresh(layout=True)
    while app.has_notice:  # a long one lies over the panel
        app.dismiss_message()
    app.main.set_focus(app.main.query_one(LaneCanvas))
    before = app.session
    await press_keys(app, pilot, "w", "w", "w")
    assert app.session.viewport != before.viewport
    await press_keys(app, pilot, "1", "t")
    assert app.session.panel == "kernels"
    assert "Total" in screen_text(app)
    await pilot.press("q")


@pytest.mark.slow
@pytest.mark.usefixtures("errors_are_shown")
async def test_what_is_said(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The footer names the error in one harmless line and the file with more of it."""
    async with open_viewer(trace, (300, 30)) as (app, pilot):
        monkeypatch.setattr(ops, "ops", fail)
        await press_keys(app, pilot, "w", *"ttttt")
        assert message(app).startswith(MESSAGE)
        assert str(log_of()) in message(app)
        assert "\x1b" not in message(app) and "\n" not in message(app)
    assert "command zoom-in" in log_of().read_text(encoding="utf-8")


@pytest.mark.usefixtures("errors_are_shown")
async def test_a_widget_that_cannot_be_drawn_says_so(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the place of the lanes stands why there are none; the rest of the screen is drawn."""
    async with open_viewer(trace) as (app, pilot):
        monkeypatch.setattr(LaneCanvas, "render_line", fail)
        await press_keys(app, pilot, "w")
        text = screen_text(app)
        assert "cannot be drawn: ValueError: odd numbers" in text
        assert "small.json" in text and "? help" in text


@pytest.mark.usefixtures("errors_are_shown")
def test_a_log_takes_no_more_than_its_room(tmp_path: Path) -> None:
    """The same error again costs a line, not a traceback, and a full log stays as it is."""
    log = SessionLog(default=tmp_path / "state" / "viewer.log")
    log.note("before")
    assert not (tmp_path / "state").exists()
    for _ in range(50):
        try:
            fail()
        except ValueError as error:
            assert log.error(error) == tmp_path / "state" / "viewer.log"
    text = (tmp_path / "state" / "viewer.log").read_text(encoding="utf-8")
    assert text.count("Traceback") == 1 and text.count("error: ValueError") == 50
    assert "before" in text


@pytest.mark.usefixtures("errors_are_shown")
def test_a_log_is_never_written_through_a_link(tmp_path: Path) -> None:
    """Where a link or a pipe lies in the log's place nothing is written, and nothing waits."""
    victim = tmp_path / "victim"
    victim.write_text("mine", encoding="utf-8")
    (tmp_path / "link.log").symlink_to(victim)
    os.mkfifo(tmp_path / "pipe.log")
    for name in ("link.log", "pipe.log"):
        log = SessionLog(default=tmp_path / name)
        assert log.error(ValueError("x")) is None
    assert victim.read_text(encoding="utf-8") == "mine"


@pytest.mark.usefixtures("errors_are_shown")
async def test_what_finds_no_screen_concerns_nobody(trace: Trace, errors_are_shown: None) -> None:
    """A job or a message that comes while the viewer closes ends neither in an error nor in a log."""
    async with open_viewer(trace) as (app, _):
        pass
    with pytest.raises(ScreenStackError) as raised:
        _ = app.main
    app.report_error(raised.value)
    assert app.trouble is None and app.return_code is None
    app.report_error(ValueError("more than that"))
    assert isinstance(app.trouble, ValueError) and app.return_code == 1


@pytest.mark.usefixtures("errors_are_shown")
async def test_while_its_widgets_go_a_job_that_ends_concerns_nobody(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Widgets go before their screen does: from the moment that the viewer closes none is looked up, and an
    error that one is missing ends nothing.
    """
    seen: list[tuple[int, bool, Exception | None]] = []
    async with open_viewer(trace) as (app, _):
        assert app.composed
        app.report_error(NoMatches("missing in a viewer that goes on"))
        assert "missing in a viewer" in message(app)
        close_all = app._close_all

        async def while_it_closes() -> None:
            app.report_error(NoMatches("gone"))
            seen.append((len(app.screen_stack), app.composed, app.trouble))
            await close_all()

        monkeypatch.setattr(app, "_close_all", while_it_closes)
    assert seen == [(1, False, None)]


BUG = "this should not have happened: ValueError: odd numbers"


@pytest.mark.slow
@pytest.mark.usefixtures("errors_are_shown")
@pytest.mark.parametrize(
    ("error", "cancelled", "text"),
    [
        (TracelaneError("the file went away"), False, "the file went away"),
        (TracelaneError("the file went away"), True, ""),
        (OSError(28, "No space left on device"), False, "No space left on device"),
        (OSError(28, "No space left on device"), True, ""),
        (Cancelled(), False, ""),
        (Cancelled(), True, ""),
        (ValueError("odd numbers"), False, BUG),
        (ValueError("odd numbers"), True, BUG),
    ],
)
async def test_errors_of_a_job(error: Exception, cancelled: bool, text: str, tmp_path: Path) -> None:
    """Bad input and a disk's refusal are shown while somebody waits; a bug is always."""
    trace = open_trace(small_file(tmp_path), index_dir=tmp_path / "index")
    begun, may_fail = Event(), Event()

    def job() -> None:
        begun.set()
        assert may_fail.wait(30)
        raise error

    async with open_viewer(trace) as (app, pilot):
        app.say("")
        app.jobs.start(job, "test")
        await wait_until(pilot, begun.is_set)
        if cancelled:
            app.jobs.cancel("test")
        may_fail.set()
        if text:  # a cancelled job counts as done before its thread is
            await wait_until(pilot, lambda: text in message(app), text)
        else:
            await wait_until_idle(app, pilot)
            assert not message(app)
