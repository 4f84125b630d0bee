"""Threads whose start and end are noticed, also where memory is wanting; when garbage is collected."""

from __future__ import annotations

import _thread
import gc
import os
import sys
import weakref
from collections.abc import Callable, Iterable
from types import FrameType
from typing import TypeVar

LOOK_S = 0.05
"""So often is looked whether a thread that has not begun can still begin."""
MAX_THREADS = 4
"""More neither read nor build faster: memory is what they wait for then."""

AT_ONCE = 16
"""Requests to servers that are under way at a time, at most."""
Item = TypeVar("Item")
Result = TypeVar("Result")


def usual_threads() -> int:
    """Return how many threads read or build a trace where nobody says a number."""
    return min(os.cpu_count() or 1, MAX_THREADS)


class _Life:
    """Held by a thread alone: when it is gone, the thread is, too."""


class BackgroundThread:
    """Work in a thread that ends with the process.

    `threading.Thread.start` waits for the thread's first line, and for ever where the thread finds no memory
    to come so far; who waits for its result does so, too, where it dies later. Here such a start raises
    MemoryError, and who waits for a result calls `check` now and then.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        """Start to work. Raises MemoryError where there is no memory for a thread."""
        self.error: BaseException | None = None
        """What the work raised."""
        self.ended = False
        begun, self._running = _thread.allocate_lock(), _thread.allocate_lock()
        begun.acquire()
        self._running.acquire()
        life = _Life()
        alive = weakref.ref(life)
        try:
            _thread.start_new_thread(self._run, (work, begun, life))
        except RuntimeError as error:  # "can't start new thread"
            raise MemoryError(str(error)) from error
        del life
        while not begun.acquire(timeout=LOOK_S):
            if alive() is None:
                if begun.acquire(blocking=False):  # it has begun and ended since the line before
                    break
                raise MemoryError("a thread found no memory to begin")

    def _run(self, work: Callable[[], object], begun: _thread.LockType, _life: _Life) -> None:
        # Nothing here but the work needs memory: releasing a lock does not, setting an Event does. The work
        # is not kept: what it belongs to often holds this thread, and a circle lives until it is collected.
        try:
            begun.release()
            work()
        except BaseException as error:
            self.error = error
        finally:
            self.ended = True
            self._running.release()

    def check(self) -> None:
        """Raise what its work raised if it has ended, MemoryError where it could not tell of its end."""
        if self.ended:
            raise self.error or MemoryError("a thread found no memory to tell of its end")

    def join(self, timeout_s: float = -1) -> bool:
        """Wait until it has ended, at most so many seconds (negative: for ever); tell whether it has."""
        if not self.ended:
            # Ctrl+C may come between the two lines: the lock is then held by nobody who would release it.
            if not self._running.acquire(timeout=timeout_s):
                return False
            self._running.release()
        return True


def is_working() -> bool:
    """Tell whether a BackgroundThread of this process still works."""
    code = BackgroundThread._run.__code__
    for frame in sys._current_frames().values():
        at: FrameType | None = frame
        while at is not None:
            if at.f_code is code:
                return True
            at = at.f_back
    return False


_LOADING = 100_000
"""New objects between two collections: loading makes many, and none of them is garbage."""
_ONE_AFTER_ANOTHER = (700, 10, 10)


def collect_rarely() -> None:
    """Let a process load what it needs without collecting garbage meanwhile."""
    gc.set_threshold(_LOADING)


def collect_often() -> None:
    """Let a process that takes up one thing after another look for garbage as Python does by itself."""
    gc.set_threshold(*_ONE_AFTER_ANOTHER)


def each_at_once(ask: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Return what `ask` answers of each item, in their order; up to AT_ONCE threads ask, as each waits for a
    server most of the time. Raises what the first of them raises.
    """
    ordered = list(items)
    if len(ordered) < 2:
        return [ask(item) for item in ordered]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(AT_ONCE, len(ordered))) as threads:
        return list(threads.map(ask, ordered))
