"""Holds work to linear time: in processor time, so that the machine's load does not count."""

from __future__ import annotations

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


class SlowError(AssertionError):
    """The work took more processor time than it may."""


class _StoppedError(BaseException):
    """The timer has rung; no `except Exception` of the work takes it for a fault of its own."""


def assert_linear(prepare: Callable[[int], Callable[[], object]], n: int) -> None:
    """Assert that work on an input of 4n takes at most 8 times what it takes for n.

    `prepare(size)` makes an input of a size and returns the work on it, which is repeated. Both sizes are
    measured one right after the other, so that other programs slow both down; of five such pairs one has to
    fit. Work on 4n is stopped once it is over the limit.
    """
    more_work = prepare(FACTOR * n)
    if _takes_at_most(MAX_RATIO * MIN_S, more_work):
        return
    work = prepare(n)
    for _ in range(REPEATS):
        limit = MAX_RATIO * max(MIN_S, _fastest(work))
        if _takes_at_most(limit, more_work):
            return
    raise SlowError(
        f"an input of {FACTOR * n:,} takes more than {limit:.2f} s, {MAX_RATIO:.0f} times that of {n:,}"
    )


def _takes_at_most(limit: float, work: Callable[[], object]) -> bool:
    with suppress(_StoppedError), _stopped_after(limit):
        return _seconds(work) <= limit
    return False


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
