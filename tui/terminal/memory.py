"""Memory that the viewer no longer needs goes back to the system while it runs."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import _lru_cache_wrapper, cache
from time import monotonic, process_time

from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.geometry import Region
from textual.strip import Strip

from tracelane.core.base.heap import ARENA_MAX, set_parameters, trim_heap

from ..textual_inside import StylesCache

LOOK_EVERY_S = 1.0
AT_REST = 0.1
"""Of a processor: who uses less since the last look is at rest."""
WORTH_S = 1.0
"""After so much work of the processor there is something to give back."""
LATEST_S = 10.0
"""So long a rest is waited for."""
MAX_REMEMBERED = 4096
"""Results of drawing that are remembered, before all are forgotten: drawing them anew takes milliseconds."""


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

    def begin(self, app: App[object]) -> None:
        """Look every second whether it is time; threads that begin from now on share one heap."""
        share_heap()
        app.set_interval(LOOK_EVERY_S, self.look)

    def look(self) -> None:
        """Give memory back after work, where there is none now or it goes on for long."""
        worked, now = process_time(), monotonic()
        at_rest = worked - self._worked < AT_REST * LOOK_EVERY_S
        self._worked = worked
        if worked - self._worked_at_trim > WORTH_S and (at_rest or now - self._trimmed > LATEST_S):
            forget_results(MAX_REMEMBERED)
            gc.collect()
            self._trim()
            self._worked = self._worked_at_trim = process_time()
            self._trimmed = monotonic()


def share_heap() -> None:
    """Let all threads take memory from one heap, where the C library has one for each.

    Tables are made in threads. What is free in a thread's heap is of no use to the others, and trimming gives
    back none of it that lies between pieces in use: 12 MiB after a minute of keys.
    """
    set_parameters({ARENA_MAX: 1})


def forget_results(most: int) -> None:
    """Forget what textual and Rich remember of drawing, if that is more than so many results."""
    memories = _memories()
    if sum(memory.cache_info().currsize for memory in memories) > most:
        for memory in memories:
            memory.cache_clear()


@cache
def _memories() -> tuple[_lru_cache_wrapper[object], ...]:
    owners = (Region, Segment, Strip, Style, StylesCache)
    members = (member for owner in owners for member in vars(owner).values())
    functions = (getattr(member, "__func__", member) for member in members)  # of class methods what they wrap
    return tuple(function for function in functions if isinstance(function, _lru_cache_wrapper))
