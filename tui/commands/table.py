"""The one table of commands: bindings, footer, help, palette, what is typed after the colon,
and the key table of docs/keys.md come from it.
"""

from __future__ import annotations

from typing import Final

from .command import Command, key_text
from .moving import MOVING
from .showing import SHOWING

GROUPS: Final = (*MOVING, *SHOWING)
"""By task, in the order of the help."""
COMMANDS: Final[tuple[Command, ...]] = tuple(entry for group in GROUPS for entry in group.commands)

OTHER_NAMES: Final[dict[str, str]] = {
    "goto": "go-to",
    "q": "quit",
    "show": "show-all",
    "show all": "show-all",
    "copy view": "copy-view",
}
"""Other names of commands, on the command line and in the config file's [keys]."""

MOUSE: Final[tuple[tuple[str, str], ...]] = (
    ("click", "Select the slice, or the gap between two; on a title: fold or open"),
    ("over a slice", "Show its name and duration in the message line"),
    ("double click", "Zoom to the slice"),
    ("wheel", "Scroll the lanes; over the ruler or with ctrl: zoom around the mouse"),
    ("shift+wheel", "Pan"),
    ("drag", "Take a stretch of time as the range; f zooms to it"),
    ("heading of a table", "Click: sort by this column; again: the other way"),
    ("minimap", "Click: move the view there; drag: set the range"),
)

LINES: Final[tuple[tuple[str, str], ...]] = (
    *((f"{entry.typed_name} {form}", text) for entry in COMMANDS for form, text in entry.forms),
    ("<command>", "Any command by its name, such as zoom-in-far"),
)
"""What the command line understands."""


def command(command_id: str) -> Command:
    """Return a command by its id; KeyError if there is none."""
    return _BY_ID[command_id]


_BY_ID: Final = {entry.id: entry for entry in COMMANDS}


def commands_table() -> str:
    """Return all commands as a Markdown table, for docs/keys.md."""
    lines = ["| keys | command | what it does |", "|---|---|---|"]
    for group in GROUPS:
        lines.append(f"| | **{group.task}** | |")
        for entry in group.commands:
            keys = " ".join(_code(key_text(key)) for key in entry.keys) or "palette"
            lines.append(f"| {keys} | {entry.title} | {entry.help} |")
    lines.append("| | **Mouse** | |")
    lines.extend(f"| {name} | | {text} |" for name, text in MOUSE)
    lines.append("| | **Command line** | |")
    lines.extend(f"| {_code(':' + name.replace('|', '/'))} | | {text} |" for name, text in LINES)
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    return f"`{text}`"
