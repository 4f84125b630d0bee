"""What a command of the viewer is, and how its keys are written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

FocusedPart: TypeAlias = Literal["lanes", "table", "flame", "text"]
"""What part of the screen has the arrows."""

_KEY_TEXTS: Final = {
    "left": "←",
    "right": "→",
    "up": "↑",
    "down": "↓",
    "shift+left": "shift+←",
    "shift+right": "shift+→",
    "shift+up": "shift+↑",
    "shift+down": "shift+↓",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
    "enter": "Enter",
    "space": "Space",
    "escape": "Esc",
    "tab": "Tab",
    "backspace": "Backspace",
}


def key_text(key: str) -> str:
    """Return a key as it is written for people: `←` for "left", `w` for "w"."""
    return _KEY_TEXTS.get(key, key)


@dataclass(frozen=True)
class Command:
    """One thing the viewer can do; `keys` as a person presses them, the first one is shown first."""

    id: str  # names the command in the config file's [keys], on the command line and in bindings
    title: str
    keys: tuple[str, ...]
    help: str
    footer: str = ""  # what the footer calls it; empty: not there
    forms: tuple[tuple[str, str], ...] = ()  # what may be typed after its name, and what that does
    is_typed: bool = False  # whether it does nothing without being typed
    typed: str = ""  # the name that is typed, where it is another than the id
    words: str = ""  # other words by which people look for it
    is_of_selection: bool = False  # whether it waits for a selection that is still being looked for

    @property
    def typed_name(self) -> str:
        return self.typed or self.id

    @property
    def keys_text(self) -> str:
        """All keys, written for people."""
        return " ".join(key_text(key) for key in self.keys)


@dataclass(frozen=True)
class CommandTask:
    """The commands of one task, in the order of the help."""

    task: str
    commands: tuple[Command, ...]


def tasks_of(text: str, of_tabs: Sequence[Command]) -> tuple[CommandTask, ...]:
    """Read commands: below the name of each task a line `id | keys | title | help` for every command, and in
    lines moved to the right what else there is of it; `(tabs)` stands for those of tabs.
    """
    tasks = []
    for block in text.split("\n\n"):
        task, *lines = block.strip().split("\n")
        commands: list[Command] = []
        for line in lines:
            if line == "(tabs)":
                commands += of_tabs
            elif line.startswith(" "):
                commands[-1] = _with_more(commands[-1], line.split(" | "))
            else:
                name, keys, title, *help = re.split(r" ?\| ", line)
                commands.append(Command(name, title, tuple(keys.split()), "".join(help)))
        tasks.append(CommandTask(task, tuple(commands)))
    return tuple(tasks)


def _with_more(entry: Command, parts: Sequence[str]) -> Command:
    """Return a command with `footer: zoom`, `words: closer`, `form TIME: what it does`, `only typed` …"""
    more: dict[str, Any] = {}
    for part in parts:
        name, _, value = part.strip().partition(": ")
        if name.startswith("form "):
            more["forms"] = (*more.get("forms", entry.forms), (name.removeprefix("form "), value))
        else:
            more[_FLAGS.get(name, name)] = value or True
    return replace(entry, **more)


_FLAGS: Final = {"only typed": "is_typed", "of the selection": "is_of_selection"}
