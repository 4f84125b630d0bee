"""What is typed after the colon, taken apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from string import ascii_uppercase

from tracelane.core.base.errors import UsageError

from .commands.table import COMMANDS, OTHER_NAMES, command

MAX_ALIKE, MIN_ALIKE = 3, 0.6
"""How many names are proposed for one that nothing has, and how alike they are at least, 0..1."""


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
    names = _names(ids)
    name = names.get(name, name)
    close = [one for one in names if one.startswith(name)]
    if name not in ids and len({names[one] for one in close}) == 1:
        name = names[close[0]]
    if name in ids:
        entry = command(name)
        if entry.forms and (text or entry.is_typed):
            return Order(name, text)
        if not text:
            return Order(name)
        raise UsageError(f"{name} takes no argument, such as {text!r}")
    alike = sorted(close)[:MAX_ALIKE] or get_close_matches(name, [*names], MAX_ALIKE, cutoff=MIN_ALIKE)
    advice = f"did you mean {_or(alike)}?" if alike else "{help} lists all commands"
    raise UsageError(f"no command is called {words[0]!r}: {advice}")


def _names(ids: Iterable[str]) -> dict[str, str]:
    """Return all names of commands with the id of each; panels are named without "panel-" too."""
    short = {id.removeprefix("panel-"): id for id in ids if id.startswith("panel-")}
    return short | {id: id for id in ids} | {name: id for name, id in OTHER_NAMES.items() if " " not in name}


def _or(names: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def names_with_argument() -> list[str]:
    return [entry.typed_name for entry in COMMANDS if entry.forms]


def completions() -> list[str]:
    """Return what completes while a line is typed: names, and the words that their arguments begin with."""
    begins = {
        f"{entry.typed_name} {words}"
        for entry in COMMANDS
        for form, _ in entry.forms
        for words in _begins(form)
    }
    alone = _names({entry.id for entry in COMMANDS}).keys() - names_with_argument()
    return sorted({*(f"{name} " for name in names_with_argument()), *begins, *alone})


def _begins(form: str) -> list[str]:
    """Return what an argument of this form begins with: `by name`, `by arg:` for "by name|arg:KEY"."""
    fixed, space, last = form.rpartition(" ")
    begins = [f"{fixed}{space}{choice.rstrip(ascii_uppercase)}" for choice in last.split("|")]
    return [begin for begin in begins if begin.strip() and begin == begin.lower()]


def file_named(name: str) -> Path:
    """Return the path that was typed, ~ resolved where there is such a home."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)
