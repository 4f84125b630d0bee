"""What is typed after the colon, taken apart."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tracelane.core.base.errors import UsageError

from .commands import COMMANDS, LINES

VERBS = (
    "only",
    "goto",
    "filter",
    "hide",
    "show",
    "quiet",
    "save",
    "cut",
    "marks",
    "steps",
    "ruler",
    "theme",
    "smi",
    "smi-offset",
    "device-offset",
    "colour",
)


@dataclass(frozen=True)
class Order:
    """A verb with its argument, or a command of the table (`verb` "command", its id in `text`)."""

    verb: str
    text: str


def parse_order(line: str) -> Order:
    """Return what a line asks for; UsageError says what was not understood and what is."""
    words = line.strip().lstrip(":").split(maxsplit=1)
    if not words:
        raise UsageError("nothing was typed")
    verb, text = words[0], words[1].strip() if len(words) > 1 else ""
    ids = {entry.id for entry in COMMANDS}
    if (verb, text) == ("copy", "view"):
        return Order("command", "copy-view")
    if verb == "hide" and not text:
        return Order("command", "hide")
    if verb in VERBS and (text or verb not in ids):
        return Order(verb, text)
    if verb in ids and not text:
        return Order("command", verb)
    if verb == "q":
        return Order("command", "quit")
    close = [name for name in (*VERBS, *sorted(ids)) if name.startswith(verb)]
    if len(close) == 1 and close[0] in ids and not text:
        return Order("command", close[0])
    known = ", ".join(close[:6]) if close else ", ".join(name.split()[0] for name, _ in LINES[:-1])
    raise UsageError(f"no command is called {verb!r}; there is {known}")


def completions() -> list[str]:
    """Return what completes while a line is typed."""
    return sorted(
        {*(f"{verb} " for verb in VERBS if verb != "quiet"), "quiet", *(entry.id for entry in COMMANDS)}
    )


def file_named(name: str) -> Path:
    """Return the path that was typed, ~ resolved where there is such a home."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)
