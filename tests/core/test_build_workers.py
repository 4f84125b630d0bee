"""Threads that build: all jobs are done, and none goes on after a failure or a request to stop."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tests.waiting import running_threads, wait_until
from tracelane.core.base.errors import CacheError, Cancelled
from tracelane.core.base.progress import never
from tracelane.core.index.workers import BuildJob, Worker, Workers

BOUNDS = np.array([0, 4], np.uint64)
START, ORDINAL = np.zeros(4, np.int64), np.arange(4, dtype=np.uint32)


def sorts_for_ever(begun: threading.Event | None = None) -> BuildJob:
    """A job that runs loops until one of them is stopped."""

    def run(worker: Worker) -> None:
        if begun is not None:
            begun.set()
        while True:
            worker.loops.order(BOUNDS, START, None, ORDINAL)

    return run


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_all_jobs_are_done(threads: int, native: bool) -> None:
    """Every job is done once, the first ones are begun first, and the end is told."""
    begun: list[int] = []
    counts: list[int] = []

    def job(number: int) -> BuildJob:
        return lambda worker: begun.append(number)

    Workers(threads, never, native).run(
        [job(number) for number in range(30)], np.empty, lambda: counts.append(len(begun))
    )
    assert sorted(begun) == list(range(30)) and counts[-1] == 30
    if threads == 1:
        assert begun == list(range(30))


@pytest.mark.parametrize("native", [True, False])
def test_a_failure_stops_the_others(native: bool) -> None:
    """What a job raises is raised, loops of other threads end, and no thread is left."""
    begun = threading.Event()

    def fail(_: Worker) -> None:
        begun.wait()
        raise CacheError("No space left on device")

    before = running_threads()
    with pytest.raises(CacheError, match="No space"):
        Workers(2, never, native).run([sorts_for_ever(begun), fail, fail], np.empty)
    wait_until(lambda: running_threads() <= before)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_request_to_stop_reaches_the_loops(threads: int, native: bool) -> None:
    """Loops that run end when it is asked for, and Cancelled is raised; asked before, nothing begins."""
    begun = threading.Event()
    before = running_threads()
    with pytest.raises(Cancelled):
        Workers(threads, begun.is_set, native).run([sorts_for_ever(begun), sorts_for_ever()], np.empty)
    with pytest.raises(Cancelled):
        Workers(threads, begun.is_set, native).run([sorts_for_ever()], np.empty)
    wait_until(lambda: running_threads() <= before)
