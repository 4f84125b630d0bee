"""Threads in the background: however they fail to begin or end, nobody waits for them for ever."""

from __future__ import annotations

import _thread
import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from typing import ClassVar

import pytest

from tests.waiting import PATIENCE_S, wait_until
from tracelane.core.base.threads import BackgroundThread


def test_work_is_done() -> None:
    """It runs beside the caller, and joining waits for it."""
    go, done = threading.Event(), threading.Event()

    def work() -> None:
        go.wait()
        done.set()

    thread = BackgroundThread(work)
    assert not thread.ended and not thread.join(0.01)
    go.set()
    assert thread.join() and thread.ended and done.is_set() and thread.error is None


GOES_ON = """
import threading
from tracelane.core.base.threads import BackgroundThread, is_working

assert not is_working()
go = threading.Event()
threading.Thread(target=go.wait, daemon=True).start()
assert not is_working()
thread = BackgroundThread(go.wait)
assert is_working()
go.set()
assert thread.join()
while is_working():
    pass
"""


def test_work_that_goes_on_is_noticed() -> None:
    """Whether a thread still works is known without it; what a thread of others does is none of it."""
    subprocess.run([sys.executable, "-c", GOES_ON], check=True, timeout=PATIENCE_S)


def test_what_work_raises_is_kept() -> None:
    """Also where the work could not keep it itself."""

    def work() -> None:
        raise MemoryError("no room")

    thread = BackgroundThread(work)
    assert thread.join() and str(thread.error) == "no room"


def test_ctrl_c_while_joining(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who was interrupted when the end had just been noticed may wait for it again."""
    thread = BackgroundThread(lambda: None)
    assert thread.join()
    thread.ended = False  # as it was before the line that waits

    class Interrupted:
        def acquire(self, timeout: float) -> bool:
            thread.ended = True
            assert lock.acquire(timeout=timeout)
            raise KeyboardInterrupt

    lock = thread._running
    monkeypatch.setattr(thread, "_running", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        thread.join()
    monkeypatch.undo()
    assert thread.join(0.1)


def refused(function: Callable[..., object], arguments: tuple[object, ...]) -> int:
    """Start no thread: the system allows no more."""
    raise RuntimeError("can't start new thread")


def lost(function: Callable[..., object], arguments: tuple[object, ...]) -> int:
    """Start a thread that finds no memory for its first line, and lets go of what it was given."""
    return 0


@pytest.mark.parametrize("start", [refused, lost])
def test_a_thread_that_cannot_begin(start: Callable[..., int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting it raises MemoryError instead of waiting for it."""
    monkeypatch.setattr(_thread, "start_new_thread", start)
    with pytest.raises(MemoryError):
        BackgroundThread(lambda: None)


class LateLock:
    """A lock at which nobody waits long enough: the thread begins and ends right after the wait."""

    waiting: ClassVar[list[tuple[Callable[..., object], tuple[object, ...]]]] = []

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.release = self._lock.release

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if timeout > 0 and self.waiting:
            function, arguments = self.waiting.pop()
            function(*arguments)
            return False
        return self._lock.acquire(blocking, timeout)


def test_a_thread_that_begins_late_and_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a loaded machine it may have ended before it was looked whether it has begun."""
    monkeypatch.setattr(_thread, "allocate_lock", LateLock)
    monkeypatch.setattr(_thread, "start_new_thread", lambda *started: LateLock.waiting.append(started))
    done: list[bool] = []
    assert BackgroundThread(lambda: done.append(True)).join() and done == [True]


class Owner:
    """Holds the thread that runs its own method, as most do."""

    def __init__(self) -> None:
        self.thread = BackgroundThread(self.work)

    def work(self) -> None:
        """Do nothing."""


def test_a_thread_that_has_ended_keeps_nothing() -> None:
    """What it worked for goes without the collector of circles, which runs rarely while traces are read."""
    gc.disable()
    try:
        owner = Owner()
        owner.thread.join()
        gone = weakref.ref(owner)
        del owner
        wait_until(lambda: gone() is None, "its owner to go")
    finally:
        gc.enable()
