"""The first start: three keys are said once, and nothing where it cannot be remembered."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.tui.cli_process import on_terminal
from tests.tui.driver import screen_text
from tests.tui.small_file import small_file
from tracelane.core.trace import open_trace
from tracelane.tui.app import TracelaneApp
from tracelane.tui.cli.viewing import THREE_KEYS, first_start_notes
from tracelane.tui.lanes.canvas import LaneCanvas
from tracelane.tui.widgets.bars import MessageLine


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of a user who never started the viewer."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "tracelane"


def test_once(state: Path) -> None:
    """The first start says them, later ones do not."""
    assert first_start_notes() == (THREE_KEYS,)
    assert first_start_notes() == () and (state / "started").is_file()


def test_where_nothing_can_be_remembered(state: Path) -> None:
    """Nothing is said where the folder cannot be made: it would be said at every start."""
    state.parent.parent.joinpath("state").write_text("a file")
    assert first_start_notes() == ()


@pytest.mark.slow
def test_on_the_screen(state: Path, tmp_path: Path) -> None:
    """The viewer shows them until a key closes them; keys are theirs all the same."""
    trace = str(small_file(tmp_path))
    environ = {"XDG_STATE_HOME": os.environ["XDG_STATE_HOME"]}
    assert on_terminal("view", trace, play=((THREE_KEYS[:24], "q"),), **environ).code == 0
    assert state.joinpath("started").is_file()


NOTES = ("the first note", "a second one that is so long that it takes two lines, " * 2, "third")


@pytest.mark.parametrize("lines", [24, 30, 50])
async def test_notices_hide_no_lane(tmp_path: Path, lines: int) -> None:
    """Of several notices one is shown at a time, the first one first, where no lane is drawn."""
    app = TracelaneApp(open_trace([small_file(tmp_path)]), notes=NOTES)
    async with app.run_test(size=(80, lines)) as pilot:
        await pilot.pause()
        for number, note in enumerate(NOTES):
            line, lanes = app.main.query_one(MessageLine), app.main.query_one(LaneCanvas)
            assert app.message == note and line.display
            assert line.region.y >= lanes.region.bottom
            others = len(NOTES) - 1 - number
            assert (f"Esc closes, {others} more" if others else "Esc closes") in screen_text(app)
            assert "Esc message" in screen_text(app)
            await pilot.press("escape")
            await pilot.pause()
        assert "Esc message" not in screen_text(app)
        assert not app.message and not app.main.query_one(MessageLine).display
