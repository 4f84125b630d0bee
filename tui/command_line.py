"""What is typed after the colon, taken apart."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tracelane.core.base.errors import UsageError

from .commands.table import COMMANDS, OTHER_NAMES, command


@dataclass(frozen=True)
class Order:
    """A command of the table, by its id; `argument` None where none was given and none is needed."""

    id: str
    argument: str | None = None


def parse_order(line: str) -> Order:
    """Return what a line asks for; UsageError says what was not understood and what is."""
    words = line.strip().lstrip(":").split(maxsplit=1)
    if not words:
        raise UsageError("nothing was typed")
    name, text = words[0], words[1].strip() if len(words) > 1 else ""
    if f"{name} {text}" in OTHER_NAMES:
        return Order(OTHER_NAMES[f"{name} {text}"])
    ids = {entry.id for entry in COMMANDS}
    name = OTHER_NAMES.get(name, name)
    close = [id for id in (*ids, *OTHER_NAMES) if " " not in id and id.startswith(name)]
    if name not in ids and len(close) == 1:
        name = OTHER_NAMES.get(close[0], close[0])
    if name in ids:
        entry = command(name)
        if entry.forms and (text or entry.is_typed):
            return Order(name, text)
        if not text:
            return Order(name)
        raise UsageError(f"{name} takes no argument, such as {text!r}")
    known = ", ".join(sorted(close)[:6]) if close else ", ".join(id for id in names_with_argument())
    raise UsageError(f"no command is called {words[0]!r}; there is {known}")


def names_with_argument() -> list[str]:
    """Return the commands that take an argument."""
    return [entry.typed_name for entry in COMMANDS if entry.forms]


def completions() -> list[str]:
    """Return what completes while a line is typed."""
    return sorted({*(f"{name} " for name in names_with_argument()), *(entry.id for entry in COMMANDS)})


def file_named(name: str) -> Path:
    """Return the path that was typed, ~ resolved where there is such a home."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)
