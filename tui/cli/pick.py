"""`tracelane` without a command: a choice of the traces in this directory and those opened recently."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from tracelane.core.base.output import print_text
from tracelane.core.base.safe_text import safe
from tracelane.core.index.inputs import traces_in

RECENT = 10
NOTHING = (
    "no traces here and none opened lately: try `tracelane TRACE`, `tracelane demo` or `tracelane --help`"
)


def pick() -> int:
    """List what can be opened; on a terminal ask which one and open it. Return the exit code."""
    here = [path.name for path in traces_in(Path(os.curdir))]
    known = {Path(name).absolute() for name in here}
    choices = [*here, *(path for path in _recent() if Path(path) not in known)]
    if not choices:
        print_text(NOTHING, error=True)
        return 0
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        for choice in choices:
            print_text(safe(choice))
        return 0
    for number, choice in enumerate(choices, 1):
        if number == 1 and here:
            print_text("in this directory")
        if number == len(here) + 1:
            print_text("opened lately")
        print_text(f"{number:4}  {safe(choice)}")
    chosen = _ask(len(choices))
    if chosen is None:
        return 0
    from .view import view

    view.main(["--", choices[chosen - 1]], "tracelane", standalone_mode=False)
    return 0


def _ask(count: int) -> int | None:
    """Return the number that was chosen, or None if the answer was empty or q."""
    while True:
        answer = click.prompt(
            "open which", default="", show_default=False, prompt_suffix=f" (1–{count}, q)? "
        )
        answer = str(answer).strip()
        if answer in ("", "q", "Q"):
            return None
        if answer.isdigit() and 1 <= int(answer) <= count:
            return int(answer)


def _recent() -> list[str]:
    """Return the paths of recently opened traces that still exist, the latest first."""
    from tracelane.core.index.cached import list_cache

    return [entry.path for entry in list_cache() if Path(entry.path).is_file()][:RECENT]
