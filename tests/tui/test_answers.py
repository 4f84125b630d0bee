"""Screens that ask something: keys may come faster than a screen goes away."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from tests.tui.driver import message, open_viewer, press_keys, screen_text, wait_until_idle
from tests.tui.small_file import LAUNCH, small_file
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.app import TracelaneApp
from tracelane.tui.screens.answer import PickScreen
from tracelane.tui.screens.lists import FilterLine, HelpScreen
from tracelane.tui.view_state import Reopen
from tracelane.tui.widgets.table import ColumnView, VirtualTable

CLOSING = ("enter", "escape", "y", "V")


async def at_once(app: TracelaneApp, pilot: Pilot[None], keys: Sequence[str]) -> None:
    """Press keys so fast that all of them are read before any is acted on."""
    for key in keys:
        app.post_message(events.Key(key, key if len(key) == 1 else None))
    await wait_until_idle(app, pilot)


WAYS: dict[str, Sequence[str]] = {
    "palette": ("ctrl+p",),
    "hidden": (*":hide", "enter", *":hidden", "enter"),
    "marks": ("m", "'"),
    "help": ("?",),
    "copied": ("y",),
    "pick": ("tab", "*"),
}
"""Keys that put a screen on top, a slice being selected."""


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
async def test_an_answer_counts_once(file_trace: Trace, name: str) -> None:
    """The same key twice, five times in one read: a screen is answered once and the viewer goes on."""
    async with open_viewer(file_trace) as (app, pilot):
        for key, times in product(CLOSING, (2, 5)):
            while len(app.screen_stack) > 1:
                app.pop_screen()
            app.action_jump(0, LAUNCH)
            await wait_until_idle(app, pilot)
            app.set_focus(None)
            await press_keys(app, pilot, *WAYS[name])
            if name == "palette":
                await pilot.press("down")
            await at_once(app, pilot, [key] * times)
            assert app.is_running, (key, times)


async def test_keys_that_the_line_of_the_help_has_before_it_closes(file_trace: Trace) -> None:
    """Esc twice, both given to the line before the help goes, closes the help and nothing else."""
    async with open_viewer(file_trace) as (app, pilot):
        await press_keys(app, pilot, "?")
        line = app.screen.query_one(FilterLine)
        for _ in range(3):
            line.post_message(events.Key("escape", None))
        await wait_until_idle(app, pilot)
        assert app.screen is app.main and "Error" not in message(app)


async def test_palette_on_a_tiny_screen(file_trace: Trace) -> None:
    """Paging in the palette where the list has no room does nothing."""
    async with open_viewer(file_trace, (8, 3)) as (app, pilot):
        await press_keys(app, pilot, "ctrl+p")
        for key in ("pageup", "pagedown", "home", "end", "up", "down", "enter"):
            await pilot.press(key)
            assert app.is_running, key


@pytest.mark.slow
@pytest.mark.usefixtures("errors_are_shown")
async def test_an_index_that_vanishes(tmp_path: Path) -> None:
    """What needs a column that is gone says so or has the index built again; all else goes on working."""
    file_trace = open_trace(small_file(tmp_path), index_dir=tmp_path / "index")
    async with open_viewer(file_trace) as (app, pilot):
        # At once, or what the viewer still writes there would be in the way of its removal.
        shutil.rmtree((tmp_path / "index").rename(tmp_path / "gone"))
        for key in (*"123456789t", "enter", "y", "escape", "/", "a", "enter", "n", "z", "b", "y", "escape"):
            await press_keys(app, pilot, key)
            if isinstance(app.return_value, Reopen):  # left to be opened anew
                assert app.return_value.damage is not None
                return
            assert app.is_running, key
        await pilot.press("?")
        await pilot.pause()
        assert "All keys" in screen_text(app)
        assert "\n" not in message(app)


async def test_a_row_of_a_list_that_is_gone_runs_nothing(file_trace: Trace) -> None:
    """A row of the help is clicked and other words are typed before the click is acted on: the row of that
    number in the new list, if there is one, is not what was clicked.
    """
    async with open_viewer(file_trace, (120, 36)) as (app, pilot):
        await press_keys(app, pilot, "?")
        opened = app.screen
        assert isinstance(opened, HelpScreen)
        help_screen: HelpScreen = opened
        for row, words in ((80, "zoom"), (1, "quit")):
            table = help_screen.query_one(VirtualTable)
            table.cursor = row
            table.action_choose()
            help_screen.query_one(Input).value = words
            help_screen._list()
            await wait_until_idle(app, pilot)
            assert app.screen is help_screen and "Error" not in message(app)
            help_screen.query_one(Input).value = ""
            await wait_until_idle(app, pilot)


async def test_a_list_that_is_answered_before_it_is_there(file_trace: Trace) -> None:
    """A list that goes away in the moment in which it comes is not filled, and nothing fails."""
    async with open_viewer(file_trace, (120, 36)) as (app, pilot):
        screen = PickScreen("Pick", [ColumnView("Row", 0, str)], 3, hint="Enter picks")
        await app.push_screen(screen)
        await screen.query(VirtualTable).remove()
        screen.on_mount()
        await wait_until_idle(app, pilot)
        assert "Error" not in message(app)


async def test_a_screen_behind_another_is_not_answered(file_trace: Trace) -> None:
    """An answer that comes when a list has opened above the help leaves both; each is answered on its own."""
    async with open_viewer(file_trace, (120, 36)) as (app, pilot):
        await press_keys(app, pilot, "?")
        behind = app.screen
        assert isinstance(behind, HelpScreen)
        app.push_screen(PickScreen("above", [ColumnView("Row", 0, str)], 3, hint=""))
        await wait_until_idle(app, pilot)
        behind.dismiss("zoom-in")
        await wait_until_idle(app, pilot)
        assert isinstance(app.screen, PickScreen)
        await press_keys(app, pilot, "escape")
        assert app.screen is behind
        await press_keys(app, pilot, "escape")
        assert app.screen is app.main and not app.messages
