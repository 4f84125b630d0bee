"""Every key that the help names does something, or says why it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.tui.driver import message, open_viewer, wait_until_idle
from tests.tui.small_file import LAUNCH, small_file
from tracelane.core.base.ids import SliceId
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.app import TracelaneApp
from tracelane.tui.commands.command import CommandTask
from tracelane.tui.commands.table import COMMANDS, GROUPS
from tracelane.tui.lanes.canvas import LaneCanvas

pytestmark = pytest.mark.slow

QUITTING = ("close-or-quit", "quit")
ON_A_SELECTION = GROUPS[1:4]
"""Groups of commands that act on what is selected or focused."""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    folder = tmp_path_factory.mktemp("keys")
    return open_trace(small_file(folder), index_dir=folder / "index")


def seen(app: TracelaneApp) -> tuple[object, ...]:
    return app.session, app.screen, app.screen.focused, app.maximised, message(app)


@pytest.mark.parametrize(
    ("group", "selected"),
    [*((group, True) for group in GROUPS), *((group, False) for group in ON_A_SELECTION)],
    ids=lambda value: value.task if isinstance(value, CommandTask) else str(value),
)
async def test_every_key_does_something_or_says_why_not(
    trace: Trace, group: CommandTask, selected: bool
) -> None:
    """With a slice selected and at first: each key changes what is seen, or the footer tells."""
    async with open_viewer(trace, (120, 36)) as (app, pilot):
        first = app.session
        for command in group.commands:
            if command.id in QUITTING:
                continue
            for key in command.keys if selected else command.keys[:1]:
                # Each key begins at the same place: the lanes, nothing on top, the details shown.
                while len(app.screen_stack) > 1:
                    app.pop_screen()
                app.maximised = False
                app.store.show(first)
                if selected:
                    app.action_jump(0, LAUNCH)
                if command.id == "panel-details":
                    app.store.show(replace(app.session, panel="problems"))
                app.main.set_focus(app.main.query_one(LaneCanvas))
                app.say("")
                await pilot.pause()
                before = seen(app)
                await pilot.press(key)
                await wait_until_idle(app, pilot)
                await pilot.pause()
                assert app.is_running, key
                assert seen(app) != before, key
                assert "does nothing" not in message(app), key


@pytest.mark.parametrize("key", [key for entry in COMMANDS if entry.id in QUITTING for key in entry.keys])
async def test_the_keys_that_quit(trace: Trace, key: str) -> None:
    """q with nothing on top leaves the viewer, whatever is selected."""
    async with open_viewer(trace) as (app, pilot):
        app.action_jump(0, LAUNCH)
        assert app.session.selection == SliceId(0, LAUNCH)
        await pilot.press(key)
        assert app.return_code == 0
