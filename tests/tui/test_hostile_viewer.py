"""Whatever a trace holds, nothing that the viewer draws, lists, asks, says or copies acts on the terminal.

Panels, commands and what may be typed come from the viewer's own tables, so that a new one is walked too.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus import needs_hostile_maker
from tests.tui.hostile_traces import HOSTILE, write_log, write_ranks, write_small
from tests.tui.slow_line import SlowLine, tracelane_command
from tests.tui.terminal_judge import active_in, assert_only_draws
from tracelane.tui.commands.command import Command
from tracelane.tui.commands.table import GROUPS
from tracelane.tui.panels.panel import GROUPS as PANELS
from tracelane.tui.panels.panel import LEAST_NAME

pytestmark = pytest.mark.slow

ENDING = ("suspend", "stop-indexing", "close-or-quit", "quit")
"""Commands after which there is no viewer to look at."""
ARROWS = {"up": "A", "down": "B", "right": "C", "left": "D"}
OTHER_KEYS = {
    "home": "\x1b[H",
    "end": "\x1b[F",
    "pageup": "\x1b[5~",
    "pagedown": "\x1b[6~",
    "enter": "\r",
} | {
    "space": " ",
    "escape": "\x1b",
    "tab": "\t",
    "backspace": "\x7f",
}
DOWN = "\x1b[B"
CLOSE = "\x1b\x1b\x1b"
"""Closes whatever is on top; the last one counts once no character follows it."""
ALL_PANELS = "All panels"
PANELS_BELOW = "All panels, none of them maximised"
LOGS = "Logs and clocks"
TOGETHER = 4
"""So many groups of commands are walked one after the other in one viewer: it takes a second to start."""
WALKS: dict[str, list[Command]] = {
    ", ".join(group.task for group in GROUPS[at : at + TOGETHER]): [
        command for group in GROUPS[at : at + TOGETHER] for command in group.commands
    ]
    for at in range(0, len(GROUPS), TOGETHER)
} | {LOGS: [command for group in GROUPS if group.task == LOGS for command in group.commands]}
PARTS = (ALL_PANELS, *(part for part in WALKS if part != LOGS))
SIZE = (120, 40)
QUIET_S = 0.04
PASTED = HOSTILE.replace("\0", "").replace("\x1b[201~", "")
WORDS = "PWNED"
"""Stands in every name of a hostile trace; as a file it is one that is written, or not there."""


def typed(key: str) -> str:
    """Return what a terminal sends for a key."""
    modifier, _, plain = key.rpartition("+")
    if modifier == "ctrl":
        return chr(ord(plain) & 31)
    if plain in ARROWS:
        return f"\x1b[1;2{ARROWS[plain]}" if modifier == "shift" else f"\x1b[{ARROWS[plain]}"
    return OTHER_KEYS.get(key, key)


class Walk:
    """A walk through the viewer, on a terminal of its own."""

    def __init__(self, line: SlowLine) -> None:
        self.line = line
        self.sent: list[bytes] = []
        self.seen = ""  # all screens

    def press(self, keys: str) -> None:
        """Press keys, and look at what comes of it."""
        self.line.type(keys)
        self.line.wait_for_quiet(QUIET_S)
        assert not self.line.has_ended(), (keys, self.line.screen.text)
        self.sent.append(self.line.received)
        self.line.forget_received()
        self.seen += self.line.screen.text

    def command(self, command: Command) -> None:
        """Give a command, with a slice selected; paste into what it asks, and choose from what it lists."""
        self.press(CLOSE)
        self.line.type("0K")
        self.press(typed(command.keys[0]) if command.keys else f":{command.typed_name}\r")
        self.press(f"\x1b[200~{PASTED}\x1b[201~{DOWN}\r")
        for form, _ in command.forms:
            first, *others = form.split()
            self.press(CLOSE)
            self.press(f":{command.typed_name} {f'{first} {WORDS}' if others else WORDS}\r")

    def panels(self, is_maximised: bool) -> None:
        """Show every panel, choose a row of it and copy it; give it the whole screen if that is asked for."""
        for group in PANELS:
            for name, _ in group.panels:
                self.press(CLOSE)
                self.press(group.key or f":{name}\r")
                self.press(f"\t{DOWN}{DOWN}\ry")
                if is_maximised:
                    self.press(CLOSE)
                    self.press("Z")
                    self.line.type("Z")


def walk(trace: Path, folder: Path, part: str, *options: str) -> bytes:
    """Go through the panels, or a group of commands, and return all that the viewer sent."""
    folders = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"), str(folder))
    folders["ESCDELAY"] = "5"
    command = tracelane_command("view", str(trace), *options)
    with SlowLine(command, SIZE, environ=folders, cwd=folder) as line:
        line.wait_for("details")
        tour = Walk(line)
        if part in (ALL_PANELS, PANELS_BELOW):
            line.type(f"/{WORDS}\r")
            tour.panels(is_maximised=part == ALL_PANELS)
        for entry in WALKS.get(part, ()):
            if entry.id not in ENDING:
                tour.command(entry)
        tour.press(CLOSE)
        line.type("q")
        assert line.wait_for_end() == 0
        assert "should not have happened" not in tour.seen and "Error:" not in tour.seen
        return b"".join((*tour.sent, line.received))


@pytest.mark.corpus
@pytest.mark.parametrize("part", PARTS)
def test_a_small_trace(part: str, tmp_path: Path) -> None:
    """Every panel and command on a trace whose every text is hostile; what is saved or copied is harmless."""
    data = walk(write_small(tmp_path / "small.json"), tmp_path, part)
    assert b"PWNED" in data
    assert_only_draws(data)
    if part == ALL_PANELS:
        titles = [title[: LEAST_NAME // 2] for group in PANELS for _, title in group.panels]
        assert not [title for title in titles if title.encode() not in data]
    for path in tmp_path.glob(f"{WORDS}*"):
        assert not active_in(path.read_text(encoding="utf-8").replace("\u00a0", " ")), path


@pytest.mark.corpus
@pytest.mark.parametrize("part", [LOGS, ALL_PANELS])
def test_ranks_with_a_log(part: str, tmp_path: Path) -> None:
    """The same for a folder of ranks with a hostile log laid over them."""
    folder = tmp_path / "ranks"
    folder.mkdir()
    write_ranks(folder)
    log = write_log(tmp_path / "log.csv")
    data = walk(folder, tmp_path, part, "--smi", str(log), "--smi-offset", "0")
    assert b"PWNED" in data
    assert_only_draws(data)


@needs_hostile_maker
@pytest.mark.corpus
@pytest.mark.parametrize("name", ["gpu", "aiu", "mem", "comp", "raw", "zalgo", "cnt", "ddp"])
def test_hostile_twins_of_real_traces(name: str, hostile_folder: Path, tmp_path: Path) -> None:
    """Every panel on real traces made hostile, each of which fills other panels than the small one does."""
    data = walk(hostile_folder / (name if name == "ddp" else f"{name}.json"), tmp_path, PANELS_BELOW)
    assert_only_draws(data)
