"""Holds work to linear time: in processor time, so that the machine's load does not count."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

REPEATS = 5
FACTOR = 4
MAX_RATIO = 8.0
SHORT_S = 0.02
MIN_S = 0.01
"""Shorter times count as this long: they are mostly what does not depend on the input."""
PATIENCE_S = 1.0
"""Work that takes longer is begun anew, once its limit is known."""


class SlowError(AssertionError):
    """The work took more processor time than it may."""


class _StoppedError(BaseException):
    """The timer has rung; no `except Exception` of the work takes it for a fault of its own."""


def assert_linear(prepare: Callable[[int], Callable[[], object]], n: int, *, can_stop: bool = True) -> None:
    """Assert that work on an input of 4n takes at most 8 times what it takes for n.

    `prepare(size)` makes an input of a size and returns the work on it, which is repeated. Both sizes are
    measured one right after the other, so that other programs slow both down; of five such pairs one has to
    fit. Work on 4n is stopped once it is over the limit; at first, when that is not known, after PATIENCE_S.
    What runs in an event loop cannot be stopped: the exception ends whichever task is at work, and the others
    wait for that one.
    """
    patience = PATIENCE_S if can_stop else math.inf
    more_work = prepare(FACTOR * n)
    seconds = _seconds_up_to(patience, more_work)
    if seconds <= MAX_RATIO * MIN_S:
        return
    work = prepare(n)
    limit = MAX_RATIO * max(MIN_S, _fastest(work))
    if seconds <= limit:
        return
    for _ in range(REPEATS - 1):
        if _seconds_up_to(limit if can_stop else math.inf, more_work) <= limit:
            return
        limit = MAX_RATIO * max(MIN_S, _fastest(work))
    raise SlowError(
        f"an input of {FACTOR * n:,} takes more than {limit:.2f} s, {MAX_RATIO:.0f} times that of {n:,}"
    )


def _seconds_up_to(limit: float, work: Callable[[], object]) -> float:
    """Return the time that work takes; infinite where it was stopped. An infinite limit stops nothing."""
    if math.isinf(limit):
        return _seconds(work)
    with suppress(_StoppedError), _stopped_after(limit):
        return _seconds(work)
    return math.inf


def _fastest(work: Callable[[], object]) -> float:
    """Return the least time that work takes; what takes long anyway is done twice only."""
    first = _seconds(work)
    return min(first, *(_seconds(work) for _ in range(REPEATS - 1 if first < SHORT_S else 1)))


def _seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


@contextmanager
def _stopped_after(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise _StoppedError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds + 0.1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
