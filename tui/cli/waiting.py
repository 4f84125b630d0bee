"""`--wait`: a line that says what is waited for, until it is there."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tracelane.core.base.output import StatusLine, print_text
from tracelane.core.base.safe_text import safe

if TYPE_CHECKING:
    from tracelane.core.index.waiting import Awaited

POLL_S = 0.5


def complete_side(text: str) -> str:
    """Return a trace, or a side of a comparison, by the name that the trace has once it is complete."""
    from .sides import split_side

    path, part = split_side(text)
    (name,) = wait_for((path,))
    return f"{name}:{part}" if part else name


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
        self._line = StatusLine()
        self._said: tuple[str, str] | None = None

    def say(self, awaited: Awaited) -> None:
        text = f"waiting: {awaited.text} (Ctrl+C ends)"
        if self._line.is_live:
            self._line.show(text)
        elif self._said != (awaited.path, awaited.why):
            print_text(safe(text), error=True)
        self._said = awaited.path, awaited.why

    def close(self) -> None:
        self._line.clear()
