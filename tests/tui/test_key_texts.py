"""Texts ask the table of commands for the keys that they name, so that they name the user's own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.events import complete, flow, open_events
from tests.modules import at, files_of, tree_of
from tests.tui.driver import open_viewer, screen_text, wait_until
from tracelane.tui.commands.table import COMMANDS, commands_table, key_text, keys_of, with_keys
from tracelane.tui.config import Config
from tracelane.tui.panels.details import FLOWS_SHOWN
from tracelane.tui.screens.lists import help_rows

SINGLE = {key for entry in COMMANDS for key in entry.keys if len(key) == 1}
NAMES = {key_text(key) for entry in COMMANDS for key in entry.keys} - SINGLE
WORDS = {"a", "I"}
"""Keys that are words of English."""
OF_PARTS = (
    r"^type to filter · ↑↓ choose · ",  # lists on top of the lanes
    r"Esc closes$",  # screens on top of the lanes
    r"^(↑ ↓|← →|↑ ↓ ← →|↑↓|↑↓←→|←→|Enter|Esc|Space|Tab)$|^PgUp, PgDn, Home and End too$",  # the arrows' part
    r"^Enter (goes there|shows it again|searches|groups|opens it|opens|on a call of the tree .*)$",
    r"; Enter (shows it again|goes there|opens another)$",  # the lists that these commands open
    r"^interrupted with ctrl\+c$| must be a text such as 'z,ctrl\+z'$",  # of a shell, of the settings
    r"^Enter: evidence, again: the next$|^; Enter: the next$|^ · Enter: $|^← → sort",  # tables
)
"""Texts with keys that a table, a list, a line to type in or a screen on top has of its own, or a shell: no
command is meant, and no setting changes them.
"""


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of the strings of a file; what an f-string puts in is a ␀ there."""
    parts: set[int] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Expr):  # a docstring
            parts.add(id(node.value))
        elif isinstance(node, ast.JoinedStr) and id(node) not in parts:
            parts |= {id(part) for part in node.values}
            values = (part.value if isinstance(part, ast.Constant) else "␀" for part in node.values)
            yield node.lineno, "".join(map(str, values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.lineno, node.value


def keys_named(text: str) -> list[str]:
    """Return the keys of commands that a sentence names by letters, as `o lists them` and `as with /` do."""
    if any(re.search(pattern, text) for pattern in OF_PARTS):
        return []
    start = r"(?:^|[;:·,] )"
    arrows = re.findall(start + r"((?:[←→↑↓] ?)+) ?[a-z]+", text)
    named = "|".join(re.escape(name) for name in sorted(NAMES) if "+" in name or name.startswith("Pg"))
    singles = "".join(map(re.escape, sorted(SINGLE - WORDS)))
    keys = [key for run in arrows for key in run.split()]
    keys += re.findall(rf"(?<!\w)({named})(?!\w)", text)
    keys += re.findall(start + r"(Enter|Esc|Tab|Home|End|Space) [a-z]+s\b", text)
    keys += re.findall(rf"{start}([{singles}]) (?:[a-z]{{3,}}s\b|in the|and [{singles}] )", text)
    keys += re.findall(rf"\b(?:as with|press|type) ([{singles}])(?=[ ;,.)]|$)", text)
    return keys


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
    """The search below finds what names a key, and takes no other word for one."""
    assert keys_named(text) == keys


def test_no_text_names_a_key_in_letters() -> None:
    """No string of tui, nor of core, which the viewer shows too, names the key of a command by itself."""
    wrong = [
        at(path, line, f"{keys} in {text!r}")
        for path in files_of("tui", "core")
        for line, text in _texts(path)
        if "{ " not in text and " " in text and (keys := keys_named(text))
    ]
    assert wrong == []


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
