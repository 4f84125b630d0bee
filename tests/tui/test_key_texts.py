"""Texts ask the table of commands for the keys that they name, so that they name the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.events import complete, flow, open_events
from tests.rules.commands import keys_named
from tests.tui.driver import open_viewer, screen_text, wait_until
from tracelane.tui.commands.table import COMMANDS, commands_table, keys_of, with_keys
from tracelane.tui.config import Config
from tracelane.tui.panels.details import FLOWS_SHOWN
from tracelane.tui.screens.lists import help_rows


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("more than 8: o lists them", ["o"]),
        ("Mark matches, as with /", ["/"]),
        ("Take a stretch of time as the range; f zooms to it", ["f"]),
        ("search for the same; * in the details too", ["*"]),
        ("b and o on a backward operator lead to it", ["b"]),
        ("↑ ↓ choose a row that has some", ["↑", "↓"]),
        ("in the viewer shift+→ goes along the path", ["shift+→"]),
        ("in the list; 2 shows all of them", ["2"]),
        ("press ctrl+l to draw anew", ["ctrl+l"]),
        ("Esc stops it", ["Esc"]),
        ("{kernel} lists them", []),
        ("go to a lane of the one to move", []),
        ("Enter a time (+12.5ms, 09:28:06.1), step:4 or 4", []),
        ("Add S seconds to the device's times; auto: as estimated", []),
    ],
)
def test_keys_in_letters_are_noticed(text: str, keys: list[str]) -> None:
    """The rule finds what names a key, and takes no other word for one."""
    assert keys_named(text) == keys


OWN = {entry.id: f"f{number}" for number, entry in enumerate(COMMANDS, 1) if entry.keys}


def test_help_names_own_keys() -> None:
    """Help, palette and what is typed name the user's key wherever they name a command."""
    rows = help_rows({"search": "J", "focus": "ctrl+j", "go-to": ""})
    texts = {row.title: row.help for row in rows}
    assert texts["drag"].endswith("ctrl+j zooms to it")
    assert texts[":search FILTER"] == "Mark matches, as with J"
    assert texts[":goto TIME"].endswith("as with :goto")
    assert not any("{" in row.help for row in rows) and "{" not in commands_table()


def test_every_command_has_its_own_key_in_a_text() -> None:
    """A text that names a command gets its first key, or what is typed for one without."""
    for entry in COMMANDS:
        keys = keys_of(entry, OWN)
        assert with_keys(f"{{{entry.id}}} does", OWN) == f"{keys[0] if keys else ':' + entry.typed_name} does"


async def test_the_screen_names_own_keys(tmp_path: Path) -> None:
    """Tabs, details, messages and what the footer offers name the user's keys, and none of the usual ones."""
    events = [complete(0, 50, "source")]
    for number in range(FLOWS_SHOWN + 2):
        begin = 100 + 10 * number
        events += [
            complete(begin, 5, f"target {number}"),
            flow("s", 1, number),
            flow("f", begin, number, bp="e"),
        ]
    trace = open_events(tmp_path, events)
    keys = {name: key for name, key in OWN.items() if name not in ("left", "right")}
    async with open_viewer(trace, (150, 40), Config(keys=keys)) as (app, pilot):
        await pilot.press(keys["details"])
        await wait_until(pilot, lambda: "more than 8" in screen_text(app), "the details")
        app.say("a notice", stays=True)
        await pilot.pause()
        text = screen_text(app)
        assert f"more than {FLOWS_SHOWN}: {keys['kernel']} lists them" in text
        assert f"{keys['panel-details']} Details" in text and f"{keys['panel-steps']} Steps" in text
        assert f"a notice  {keys['close']} closes" in text and f"{keys['help']} help" in text
        assert [line for line in text.split("\n") if keys_named(line.strip())] == []
