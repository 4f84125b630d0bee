"""Work that a copy of this process does meanwhile, where there is a processor to spare."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Generic, NoReturn, TypeVar

from ..base.copies import stands_copying

T = TypeVar("T")

_WATCH_S = 0.1
"""So soon a copy notices that the process which it was made for is gone."""


class Beside(Generic[T]):
    """A piece of work that can be repeated, and what comes of it; a context manager that leaves no process.

    A copy has all that this process has, so nothing is loaded or handed over, but must not be made where
    threads hold locks that the work needs.
    """

    def __init__(self, work: Callable[[], T], apart: bool, folder: Path | None = None) -> None:
        """Begin, if `apart` and a copy can be made; else the work is done when its result is asked for.

        What came of it waits in a file without a name in `folder`, so that the copy ends with its work.
        """
        self._work = work
        self._copy = 0
        self._told: BinaryIO | None = None
        if not apart or not stands_copying():
            return
        with contextlib.suppress(OSError):
            self._told = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed with this
            starter = os.getpid()
            self._copy = os.fork()
            if not self._copy:
                _be_copy(work, self._told, starter)

    def result(self) -> T:
        """Wait for the work and return what came of it; raises what it raised."""
        if not self._copy or self._told is None:
            return self._work()
        _, status = os.waitpid(self._copy, 0)
        self._copy = 0
        if status:  # it was ended, perhaps for want of memory, or could not tell
            return self._work()
        self._told.seek(0)
        done, value = pickle.load(self._told)
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
            self._copy = 0
        if self._told is not None:
            self._told.close()


def _be_copy(work: Callable[[], Any], telling: BinaryIO, starter: int) -> NoReturn:
    """Do the work, tell (whether it was done, result or error), and end without a trace."""
    status = 1
    try:
        threading.Thread(target=_end_with, args=(starter,), daemon=True).start()
        try:
            told = True, work()
        except Exception as error:
            error.add_note(traceback.format_exc())
            told = False, error
        pickle.dump(told, telling, pickle.HIGHEST_PROTOCOL)
        telling.flush()
        status = 0
    finally:
        os._exit(status)


def _end_with(starter: int) -> NoReturn:
    """End this process once it is nobody's copy any more."""
    while os.getppid() == starter:
        time.sleep(_WATCH_S)
    os._exit(1)
