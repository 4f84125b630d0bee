"""Every line to type in owns its keys, and every key that the help names does something."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from textual import events
from textual.binding import Binding
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.widgets import Input

from tests.tui.driver import message, open_viewer, press_keys, screen_text
from tests.tui.small_file import LAUNCH
from tracelane.core.base.errors import UsageError
from tracelane.core.query.views import SliceId
from tracelane.core.trace import Trace
from tracelane.tui.app import TracelaneApp
from tracelane.tui.command_line import parse_order
from tracelane.tui.commands.table import COMMANDS, GROUPS, CommandTask
from tracelane.tui.lanes.canvas import LaneCanvas
from tracelane.tui.screens.lists import PALETTE, help_rows, wrapped
from tracelane.tui.widgets.prompt import Prompt, completed_lines, passed_on
from tracelane.tui.widgets.table import VirtualTable

TYPED = "ab"
ANSWERS = {"enter", "escape", "ctrl+c"}
"""Keys that close a line."""
EDITS = {
    key
    for binding in Input.BINDINGS
    if isinstance(binding, Binding) and binding.action.startswith(("delete", "cut", "paste"))
    for key in binding.key.split(",")
}
"""Keys that change the text."""
LINES = (
    "search",
    "command-line",
    "go-to",
    "compare",
    "against",
    "filter",
    "save",
    "mark-text",
    "marks-import",
    "smi",
    "help",
)
"""Commands that open a line, `test_no_line_is_left_out` sees to it that these are all."""


def bound_keys(app: TracelaneApp) -> list[str]:
    """Return every key that means something on any screen, and those that keyboards have besides."""
    keys = {key for entry in COMMANDS for key in entry.keys} | set(app.main.active_bindings)
    keys |= {f"f{number}" for number in range(1, 13)} | {"insert", "shift+tab", "ctrl+g", "ctrl+r", "ctrl+t"}
    return sorted(_character_to_key(key) if len(key) == 1 else key for key in keys)


def line_of(app: TracelaneApp) -> Input | None:
    return app.screen.focused if isinstance(app.screen.focused, Input) else None


async def opened(app: TracelaneApp, pilot: Pilot[None], command: str) -> Input | None:
    """Open the line of a command."""
    while len(app.screen_stack) > 1:
        app.pop_screen()
    app.run_command(command)
    await pilot.pause()
    return line_of(app)


@pytest.mark.slow
async def test_no_line_is_left_out(trace: Trace) -> None:
    """The commands that open a line are those tested here, and those that are typed with an argument."""
    async with open_viewer(trace) as (app, pilot):
        for entry in COMMANDS:
            if entry.id in ("quit", "close-or-quit", "suspend", "reload"):
                continue
            line = await opened(app, pilot, entry.id)
            assert line is None or entry.is_typed or entry.id in (*LINES, "palette"), entry.id
            await pilot.press("escape", "escape")


@pytest.mark.slow
@pytest.mark.parametrize("command", LINES)
async def test_every_bound_key_in_every_line(trace: Trace, command: str) -> None:
    """After any key the line is still there with what was typed, or the key is one that edits or answers."""
    async with open_viewer(trace) as (app, pilot):
        line = await opened(app, pilot, command)
        assert line is not None
        before = app.session
        for key in sorted(set(bound_keys(app)) - ANSWERS - passed_on({})):
            line.value, line.cursor_position = TYPED, len(TYPED)
            await pilot.press(key)
            assert app.is_running and line_of(app) is line, key
            assert line.value.startswith(TYPED) or key in EDITS, key
        assert (app.session.viewport, app.session.panel) == (before.viewport, before.panel)


@pytest.mark.slow
@pytest.mark.parametrize("command", LINES)
async def test_esc_leaves_every_line(trace: Trace, command: str) -> None:
    """Esc and Ctrl+C close the line without an answer."""
    async with open_viewer(trace) as (app, pilot):
        for key in ("escape", "ctrl+c"):
            assert await opened(app, pilot, command) is not None
            await press_keys(app, pilot, "a", key)
            assert line_of(app) is None and app.screen is app.main and not app.main.query_one(Prompt).is_open


async def test_a_line_that_is_open_again_stays(trace: Trace) -> None:
    """An answer hides the line; that is told late, and does not close one that was opened again."""
    async with open_viewer(trace) as (app, pilot):
        prompt = app.main.query_one(Prompt)
        prompt.ask("smi", "log ", "", proposed="a.log")
        await pilot.pause()
        line = prompt.query_one(Input)
        line.post_message(events.Hide())
        await pilot.pause()
        assert prompt.is_open and app.focused is line


async def test_tab_completes(trace: Trace) -> None:
    """Tab completes a command, an argument and a word of a search, and goes through what several could be."""
    async with open_viewer(trace) as (app, pilot):
        for command, typed, keys, expected in (
            ("command-line", "onl", "tab", "only "),
            ("command-line", "ruler w", "tab", "ruler wall"),
            ("command-line", "zoom-", "tab tab", "zoom-in-far"),
            ("command-line", "zoom-", "tab tab shift+tab", "zoom-in"),
            ("command-line", "zoom-", "tab shift+tab", "zoom-"),
            ("command-line", "xyz", "tab", "xyz"),
            ("search", "aten cat:ker", "tab", "aten cat:kernel"),
        ):
            line = await opened(app, pilot, command)
            assert line is not None
            line.value = typed
            await pilot.press(*keys.split())
            assert line.value == expected, typed
            await pilot.press("escape")


async def test_older_lines_do_not_lose_the_one_being_typed(trace: Trace) -> None:
    """Up shows what was typed before, down comes back to what stood there."""
    async with open_viewer(trace) as (app, pilot):
        await pilot.press("colon", *"only", "enter", "colon", *"hid", "up")
        line = line_of(app)
        assert line is not None and line.value == "only"
        await pilot.press("down")
        assert line.value == "hid"


@pytest.mark.parametrize(
    ("line", "words", "expected"),
    [
        ("on", ("only ", "open"), ["only "]),
        ("a na", ("name=", "a name"), ["a name"]),
        ("x na", ("name=",), ["x name="]),
        ("x ", ("name=",), []),
        ("", ("only ",), ["only "]),
    ],
)
def test_completed_lines(line: str, words: Sequence[str], expected: list[str]) -> None:
    """A line is completed as a whole, else its last word; nothing is put behind a blank."""
    assert completed_lines(line, words) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "name"),
    [("onyl", "only"), ("kernel-rate", "kernels"), ("serach x", "search"), ("zoom", "zoom-in")],
)
async def test_did_you_mean(trace: Trace, line: str, name: str) -> None:
    """A word that is nearly a command leads to it; one that is like none leads to Tab."""
    with pytest.raises(UsageError, match=f"did you mean .*{name}"):
        parse_order(line)
    async with open_viewer(trace) as (app, pilot):
        app.run_command("command-line")
        await pilot.pause()
        await pilot.press(*"onyl", "enter")
        assert "did you mean only?" in message(app)


def test_panels_by_their_names() -> None:
    """A panel is shown by its name alone, where no command has that name."""
    assert parse_order("kernels").id == "panel-kernels"
    assert parse_order("steps X").id == "steps"


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_help_shows_what_every_key_does(trace: Trace, size: tuple[int, int]) -> None:
    """Texts wrap: whatever the width, each is to be read as a whole, and the cursor leaves their rest out."""
    async with open_viewer(trace, size) as (app, pilot):
        for row in help_rows({}):
            if row.command_id and row.keys != PALETTE:
                lines = wrapped([row], 20, 30)
                assert " ".join(line.help for line in lines).strip() == row.help
        await press_keys(app, pilot, "question_mark")
        text = screen_text(app)
        table = app.screen.query_one(VirtualTable)
        assert app.screen._rows[table.cursor].help in text and "What it does" in text  # type: ignore[attr-defined]
        for key in ("down", "down", "pagedown", "up"):
            await pilot.press(key)
            assert app.screen._rows[table.cursor].keys  # type: ignore[attr-defined]


QUITTING = ("close-or-quit", "quit")
ON_A_SELECTION = GROUPS[1:4]
"""Groups of commands that act on what is selected or focused."""


def seen(app: TracelaneApp) -> tuple[object, ...]:
    return app.session, app.screen, app.screen.focused, app.maximised, message(app)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "selected"),
    [*((group, True) for group in GROUPS), *((group, False) for group in ON_A_SELECTION)],
    ids=lambda value: value.task if isinstance(value, CommandTask) else str(value),
)
async def test_every_key_does_something_or_says_why_not(
    file_trace: Trace, group: CommandTask, selected: bool
) -> None:
    """With a slice selected and at first: each key changes what is seen, or the footer tells."""
    async with open_viewer(file_trace, (80, 24)) as (app, pilot):
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
                    app.store.show(app.session._replace(panel="problems"))
                app.main.set_focus(app.main.query_one(LaneCanvas))
                app.say("")
                await pilot.pause()
                before = seen(app)
                await press_keys(app, pilot, key)
                await pilot.pause()
                assert app.is_running, key
                assert seen(app) != before, key
                assert "does nothing" not in message(app), key


@pytest.mark.slow
@pytest.mark.parametrize("key", [key for entry in COMMANDS if entry.id in QUITTING for key in entry.keys])
async def test_the_keys_that_quit(file_trace: Trace, key: str) -> None:
    """q with nothing on top leaves the viewer, whatever is selected."""
    async with open_viewer(file_trace) as (app, pilot):
        app.action_jump(0, LAUNCH)
        assert app.session.selection == SliceId(0, LAUNCH)
        await pilot.press(key)
        assert app.return_code == 0
