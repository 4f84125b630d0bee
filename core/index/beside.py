"""Work that a copy of this process does meanwhile, where there is a processor to spare."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, NoReturn, TypeVar

from ..base.copies import stands_copying

T = TypeVar("T")

_WATCH_S = 0.1
"""So soon a copy notices that the process which it was made for is gone."""


class Beside(Generic[T]):
    """A piece of work that can be repeated, and what comes of it; a context manager that leaves no process.

    A copy has all that this process has, so nothing is loaded or handed over, but must not be made where
    threads hold locks that the work needs.
    """

    def __init__(self, work: Callable[[], T], apart: bool) -> None:
        """Begin, if `apart` and a copy can be made; else the work is done when its result is asked for."""
        self._work = work
        self._copy = 0
        self._told = -1
        if not apart or not stands_copying():
            return
        with contextlib.suppress(OSError):
            self._told, telling = os.pipe()
            try:
                starter = os.getpid()
                self._copy = os.fork()
                if not self._copy:
                    _be_copy(work, telling, starter)
            finally:
                os.close(telling)

    def result(self) -> T:
        """Wait for the work and return what came of it; raises what it raised."""
        if not self._copy:
            return self._work()
        with open(self._told, "rb", closefd=False) as file:
            raw = file.read()
        if not raw:  # it was ended, perhaps for want of memory
            return self._work()
        done, value = pickle.loads(raw)
        if not done:
            raise value
        result: T = value
        return result

    def __enter__(self) -> Beside[T]:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the copy."""
        if self._copy:
            os.kill(self._copy, signal.SIGKILL)
            os.waitpid(self._copy, 0)
        if self._told >= 0:
            os.close(self._told)


def _be_copy(work: Callable[[], Any], telling: int, starter: int) -> NoReturn:
    """Do the work, tell (whether it was done, result or error), and end without a trace."""
    try:
        threading.Thread(target=_end_with, args=(starter,), daemon=True).start()
        try:
            told = True, work()
        except Exception as error:
            error.add_note(traceback.format_exc())
            told = False, error
        raw = pickle.dumps(told, pickle.HIGHEST_PROTOCOL)
        with open(telling, "wb", closefd=False) as file:
            file.write(raw)
    finally:
        os._exit(0)


def _end_with(starter: int) -> NoReturn:
    """End this process once it is nobody's copy any more."""
    while os.getppid() == starter:
        time.sleep(_WATCH_S)
    os._exit(1)
