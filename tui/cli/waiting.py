"""`--wait`: a line that says what is waited for, until it is there."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracelane.core.index.waiting import Awaited

POLL_S = 0.5
ERASE = "\r\x1b[K"


def wait_for(traces: tuple[str, ...]) -> tuple[str, ...]:
    """Return what traces are called once they are complete; Ctrl+C ends the wait as it ends the program."""
    from tracelane.core.index.waiting import Waiting

    waiting = Waiting(traces)
    line = _Line()
    try:
        while (awaited := waiting.look()) is not None:
            line.say(awaited)
            time.sleep(POLL_S)
    finally:
        line.close()
    return waiting.names


class _Line:
    """One line of stderr that is written over; where that is no terminal, a line for each new reason."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._said: tuple[str, str] | None = None

    def say(self, awaited: Awaited) -> None:
        from tracelane.core.base.safe_text import safe

        text = safe(f"waiting: {awaited.text} (Ctrl+C ends)")
        if self._live:
            columns = shutil.get_terminal_size((80, 24)).columns or 80
            sys.stderr.write(ERASE + text[: columns - 1])
        elif self._said != (awaited.path, awaited.why):
            sys.stderr.write(text + "\n")
        sys.stderr.flush()
        self._said = awaited.path, awaited.why

    def close(self) -> None:
        if self._live and self._said is not None:
            sys.stderr.write(ERASE)
            sys.stderr.flush()
