"""Memory that the viewer no longer needs goes back to the system while it runs."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from functools import cache
from time import monotonic, process_time

from textual.app import App

LOOK_EVERY_S = 1.0
AT_REST = 0.1
"""Of a processor: who uses less since the last look is at rest."""
WORTH_S = 1.0
"""After so much work of the processor there is something to give back."""
LATEST_S = 10.0
"""So long a rest is waited for."""


class MemoryTrimmer:
    """Collects garbage and gives free memory back, when the viewer rests or else every ten seconds.

    Widgets and screens that are gone refer to each other, so that only the collector frees them, and it looks
    at old objects only once there are many new ones. The C library keeps what is free between two pieces in
    use: of a trace just opened 13 MiB, after minutes of keys as much again. Both together take 50 to 100 ms.
    """

    def __init__(self, trim: Callable[[], object] | None = None) -> None:
        """Give memory back by `trim`, which is the C library's function where it has one."""
        self._trim = trim or trim_heap()
        self._worked = self._worked_at_trim = process_time()
        self._trimmed = monotonic()

    def begin(self, app: App[None]) -> None:
        """Look every second whether it is time."""
        app.set_interval(LOOK_EVERY_S, self.look)

    def look(self) -> None:
        """Give memory back after work, where there is none now or it goes on for long."""
        worked, now = process_time(), monotonic()
        at_rest = worked - self._worked < AT_REST * LOOK_EVERY_S
        self._worked = worked
        if worked - self._worked_at_trim > WORTH_S and (at_rest or now - self._trimmed > LATEST_S):
            gc.collect()
            self._trim()
            self._worked = self._worked_at_trim = process_time()
            self._trimmed = monotonic()


@cache
def trim_heap() -> Callable[[], object]:
    """Return what gives free memory back to the system; it does nothing where the C library cannot."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):  # not glibc
        return lambda: None
    trim.argtypes = [ctypes.c_size_t]
    return lambda: trim(0)
