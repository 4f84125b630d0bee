"""Memory goes back to the system while the viewer runs: after work, at rest, and not without end."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import weakref

import pytest
from textual.geometry import Region

from tracelane.core.base.heap import trim_heap
from tracelane.tui.terminal import memory
from tracelane.tui.terminal.memory import LATEST_S, WORTH_S, MemoryTrimmer, forget_results


class Clock:
    """Time and work of the processor as a test has them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time = self.work = 0.0
        monkeypatch.setattr(memory, "monotonic", lambda: self.time)
        monkeypatch.setattr(memory, "process_time", lambda: self.work)

    def passes(self, seconds: float, work: float) -> None:
        self.time += seconds
        self.work += work


class Cycle:
    """An object that only the collector frees."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.mark.slow
def test_after_work_at_rest(clock: Clock) -> None:
    """Nothing is done during work and without work; once after work, when the viewer rests."""
    trims: list[float] = []
    trimmer = MemoryTrimmer(lambda: trims.append(clock.time))
    for work in (0.0, 0.9, 0.9, 0.0, 0.0, 0.0):
        clock.passes(1.0, work)
        trimmer.look()
    assert trims == [4.0]


def test_without_rest(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where work never ends it is done every ten seconds."""
    monkeypatch.setattr(gc, "collect", lambda: 0)
    trims: list[float] = []
    trimmer = MemoryTrimmer(lambda: trims.append(clock.time))
    for _ in range(35):
        clock.passes(1.0, 0.9)
        trimmer.look()
    assert trims == [LATEST_S + 1, 2 * (LATEST_S + 1), 3 * (LATEST_S + 1)]


@pytest.mark.slow
def test_garbage_goes(clock: Clock) -> None:
    """What only refers to itself is freed, however few such objects there are."""
    cycle = Cycle()
    gone = weakref.ref(cycle)
    del cycle
    trimmer = MemoryTrimmer(lambda: None)
    gc.disable()
    try:
        clock.passes(1.0, 2 * WORTH_S)
        trimmer.look()
        clock.passes(1.0, 0.0)
        trimmer.look()
    finally:
        gc.enable()
    assert gone() is None


def test_results_of_drawing_are_forgotten() -> None:
    """What textual remembers is bounded: it goes once there is more of it than allowed, not before."""
    forget_results(0)
    for x in range(100):
        Region(x, 0, 5, 5).union(Region(3, x, 5, 5))
    forget_results(100_000)
    assert Region.union.cache_info().currsize == 100  # type: ignore[attr-defined]
    forget_results(99)
    assert Region.union.cache_info().currsize == 0  # type: ignore[attr-defined]


def test_the_heap_can_be_trimmed_anywhere() -> None:
    """What gives memory back can be called on every system."""
    trim_heap()()


THREADS = """
import ctypes, sys, threading
from tracelane.tui.terminal.memory import share_heap
if sys.argv[1] == "share":
    share_heap()
together = threading.Barrier(5)
threads = [threading.Thread(target=lambda: (bytearray(3000), together.wait())) for _ in range(4)]
for thread in threads:
    thread.start()
together.wait()
library = ctypes.CDLL(None)
library.malloc_info(0, ctypes.c_void_p.in_dll(library, "stdout"))
library.fflush(None)
"""
"""Prints what glibc says of its heaps, an element for each, while four threads hold memory."""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="another C library than glibc")
def test_threads_share_one_heap() -> None:
    """Threads of the viewer take memory from one heap, not each from its own."""
    heaps = {}
    for how in ("share", "leave"):
        command = [sys.executable, "-c", THREADS, how]
        environment = {"PATH": os.environ["PATH"]}  # without settings of the C library
        result = subprocess.run(command, check=True, capture_output=True, encoding="utf-8", env=environment)
        heaps[how] = result.stdout.count("<heap nr=")
    assert heaps["share"] == 1 < heaps["leave"]
