"""`--wait`: a line that says what is waited for, until it is there."""

from __future__ import annotations

import time

from tracelane.core.base.output import StatusLine, print_text
from tracelane.core.base.safe_text import safe
from tracelane.core.index.changes import Waiting

from .options import split_side

POLL_S = 0.5


def complete_side(text: str) -> str:
    """Return a trace, or a side of a comparison, by the name that the trace has once it is complete."""
    path, part = split_side(text)
    (name,) = wait_for((path,))
    return f"{name}:{part}" if part else name


def wait_for(traces: tuple[str, ...]) -> tuple[str, ...]:
    """Return what traces are called once they are complete; Ctrl+C ends the wait as it ends the program.

    A line of stderr is written over; where that is no terminal, there is a line for each new reason.
    """
    waiting, line, said = Waiting(traces), StatusLine(), ("", "")
    try:
        while (awaited := waiting.look()) is not None:
            text = f"waiting: {awaited.text} (Ctrl+C ends)"
            if line.is_live:
                line.show(text)
            elif said != (awaited.path, awaited.why):
                print_text(safe(text), error=True)
            said = (awaited.path, awaited.why)
            time.sleep(POLL_S)
    finally:
        line.clear()
    return waiting.names
