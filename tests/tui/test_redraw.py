"""Ctrl+L draws every cell of the terminal again, whatever is on top and wherever keys go."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.tui.driver import open_viewer
from tests.tui.slow_line import SlowLine, tracelane_command
from tests.tui.terminal_screen import NOT_DRAWN, TerminalScreen
from tracelane.core.demo.trace import write_demo
from tracelane.core.trace import Trace
from tracelane.tui.screens.files import StopQuestion
from tracelane.tui.terminal.pacing import PacedApp

pytestmark = pytest.mark.slow

SIZE = (100, 30)
STATES: dict[str, Sequence[tuple[str, str]]] = {
    "lanes": (),
    "a selection": [("\r", "duration")],
    "a line to type in": [("/", "search"), ("mm", "mm")],
    "a table": [("t", " rows")],
    "help": [("?", "All keys"), ("zoom", "Zoom in")],
    "the palette": [("\x10", "type to filter")],
    "a list": [(":hide\r", "hidden"), (":hidden\r", "Enter shows it again")],
    "a copied text": [("\r", "duration"), ("y", "Copied")],
    "the whole screen": [("Z", "Details")],
}
"""What is typed, and what is on the screen then."""


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that opens the demo's first rank, indexed."""
    folder = tmp_path_factory.mktemp("demo")
    write_demo(folder)
    options = (str(folder / "rank0.pt.trace.json"), "--index-dir", str(folder / "index"))
    subprocess.run(tracelane_command("index", *options), check=True, capture_output=True)
    return tracelane_command("view", *options, "--fresh")


def _all_is_drawn(line: SlowLine, key: str) -> None:
    """Take away what the terminal shows, ask for it, and wait for every cell of it."""
    line.wait_for_stillness(0.3)
    before = line.screen.text.split("\n")
    line.screen = TerminalScreen(*SIZE)
    assert NOT_DRAWN in line.screen.text
    line.type(key)
    line.wait_until(lambda: NOT_DRAWN not in line.screen.text, "every cell")
    line.wait_for_stillness(0.3)
    after = line.screen.text.split("\n")
    assert before[0] == after[0] and sum(one != other for one, other in zip(before, after)) < SIZE[1] / 2


@pytest.mark.parametrize("state", STATES)
def test_every_cell_is_drawn_again(state: str, view: list[str], tmp_path: Path) -> None:
    """Twice: nothing that was drawn before is taken for known."""
    with SlowLine(view, SIZE, environ={"XDG_STATE_HOME": str(tmp_path)}) as line:
        line.wait_for("Stream 0")
        line.wait_for_stillness(0.3)
        for typed, text in STATES[state]:
            line.type(typed)
            line.wait_for(text)
        for _ in range(2):
            _all_is_drawn(line, "\x0c")


def test_the_users_own_key_does_it(view: list[str], tmp_path: Path) -> None:
    """Over a list, too, and in a line to type in."""
    config = tmp_path / "config" / "tracelane" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[keys]\nredraw = "f5"\n', encoding="utf-8")
    environ = {"XDG_STATE_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    with SlowLine(view, SIZE, environ=environ) as line:
        line.wait_for("Stream 0")
        for typed, text in (("?", "All keys"), ("\x1b", "Stream 0"), ("/", "search")):
            line.wait_for_stillness(0.3)
            line.type(typed)
            line.wait_for(text)
            _all_is_drawn(line, "\x1b[15~")


async def test_a_question_stays(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ends with any other key is drawn again, and goes on asking."""
    drawn: list[PacedApp] = []

    def redraw(app: PacedApp) -> None:
        drawn.append(app)

    monkeypatch.setattr(PacedApp, "action_redraw", redraw)
    async with open_viewer(trace) as (app, pilot):
        app.push_screen(StopQuestion())
        await pilot.press("ctrl+l")
        assert isinstance(app.screen, StopQuestion) and drawn == [app]
        await pilot.press("x")
        assert app.screen is app.main
