"""Copies of this process: one has all that this one has loaded, and so begins at once."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import NoReturn

_POLL_S = 0.005
_FAILED = 1


def stands_copying() -> bool:
    """Tell whether the libraries of this system go on working in a copy of a process."""
    return hasattr(os, "fork") and sys.platform != "darwin"


class Copy:
    """A copy of this process that runs something with pipes as its standard input and output, and ends.

    It is handled as a `subprocess.Popen` is. Threads are not copied, nor what they hold ever let go: only a
    process of one thread may be copied so.
    """

    def __init__(self, run: Callable[[], int], others: Sequence[Copy] = ()) -> None:
        """Let a copy run `run`, which returns the exit status; `others` are copies that it must not keep
        from seeing their input end. Raises OSError where none can be made.
        """
        reading, self.stdin = _pipe()
        self.stdout, writing = _pipe()
        self.returncode: int | None = None
        try:
            self.pid = os.fork()
        except OSError:
            for file in (reading, self.stdin, self.stdout, writing):
                file.close()
            raise
        if not self.pid:
            _be_copy(run, reading.fileno(), writing.fileno(), [self, *others])
        reading.close()
        writing.close()

    def kill(self) -> None:
        """End it at once, if it still runs."""
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)  # its number is its own until it has been waited for

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit status, negative for a signal; subprocess.TimeoutExpired if it still runs then."""
        until = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            pid, status = os.waitpid(self.pid, 0 if until is None else os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
            elif until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired("a copy of this process", timeout or 0.0)
            else:
                time.sleep(_POLL_S)
        return self.returncode


def _pipe() -> tuple[io.BufferedReader, io.BufferedWriter]:
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb"), os.fdopen(writing, "wb")


def _be_copy(run: Callable[[], int], reading: int, writing: int, copies: Sequence[Copy]) -> NoReturn:
    status = _FAILED
    try:
        for copy in copies:
            for file in (copy.stdin, copy.stdout):
                os.close(file.fileno())
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for number, standard in enumerate((reading, writing, nowhere)):
            os.dup2(standard, number)
        sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with contextlib.suppress(BaseException):
            status = run()
            sys.stdout.flush()
    finally:
        os._exit(status)
