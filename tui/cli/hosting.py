"""What the viewer runs in: a log, and a process that guards the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from tracelane.core.base.errors import UsageError
from tracelane.tui.session_log import SessionLog, default_log
from tracelane.tui.terminal.host import Host

from .terminal import can_draw

SIGNALLED = 128
"""What a shell adds to the number of the signal that ended a program."""


@contextmanager
def viewer_host(log_file: str | None) -> Iterator[Host]:
    """Log to a file, or upon an error to the default one; guard the terminal if there is one. Raises
    UsageError where the file cannot be written.
    """
    default = default_log()
    try:
        log = SessionLog(None if log_file is None else Path(log_file), default)
    except OSError as error:
        raise UsageError(f"--log: {log_file}: {error.strerror}") from None
    guard = None
    if can_draw():
        from tracelane.tui.terminal.guard import start_guard

        guard = start_guard(log.target)
    reason = ""
    try:
        yield Host(log, guard)
    except click.exceptions.Exit as ended:
        reason = _signal_name(ended.exit_code)
        raise
    finally:
        if guard is not None:
            guard.close(reason)


def _signal_name(exit_code: int) -> str:
    import signal

    try:
        return signal.Signals(exit_code - SIGNALLED).name
    except ValueError:
        return ""
