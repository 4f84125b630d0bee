"""Threads that build: each takes jobs, and has loops and room of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from ..base.errors import Cancelled
from ..base.progress import CancelledCallback, never
from ..base.threads import BackgroundThread, usual_threads
from ..native.library import native_library
from .loops import Allocate, CancelFlag, Rooms
from .native import NativeLoops
from .options import BUFFERS
from .plain import PlainLoops

Loops: TypeAlias = PlainLoops | NativeLoops
"""The loops of one thread: in plain Python or in C, with the same results."""
LOOK_S = 0.02
"""So often the callbacks are asked and told while jobs run."""


class Worker(NamedTuple):
    """What a job works with."""

    loops: Loops
    rooms: Rooms
    check: Callable[[], None]
    """Raises Cancelled once that is asked for: for what takes long without loops."""


BuildJob: TypeAlias = Callable[[Worker], None]


class Workers:
    """Runs jobs on threads: what is done at the same time must not depend on each other."""

    def __init__(
        self,
        threads: int | None = None,
        cancelled: CancelledCallback = never,
        native: bool = True,
        buffers: int = BUFFERS,
    ) -> None:
        """`threads`: None for as many as there are cores. With `native` the loops are those in C, where the
        library can be loaded. Of what they sort and place `buffers` bytes lie in memory, the rest in a file.
        """
        self.buffers = buffers
        self.threads = threads or usual_threads()
        self._cancelled = cancelled
        self._functions = native_library().functions if native else None
        self.loops = self._loops(CancelFlag(), Rooms(np.empty))
        """Of the calling thread, for short work; nothing stops them."""

    def check(self) -> None:
        if self._cancelled():
            raise Cancelled

    def _loops(self, cancel: CancelFlag, rooms: Rooms) -> Loops:
        if self._functions is None:
            return PlainLoops(cancel)
        return NativeLoops(self._functions, cancel, rooms)

    def run(
        self, jobs: Sequence[BuildJob], allocate: Allocate, watch: Callable[[], None] = lambda: None
    ) -> None:
        """Run all jobs, the first ones first; `watch` is called now and then, and at the end. Room is taken
        by `allocate`. Raises what a job raises, and Cancelled.
        """
        self.check()
        cancel = CancelFlag()
        queue, lock = iter(jobs), threading.Lock()
        errors: list[BaseException] = []

        def work() -> None:
            rooms = Rooms(allocate)
            loops = self._loops(cancel, rooms)
            try:
                while True:
                    with lock:
                        job = next(queue, None)
                    if job is None:
                        return
                    cancel.check()
                    job(Worker(loops, rooms, cancel.check))
            except BaseException as error:
                errors.append(error)
                cancel.set()

        threads: list[BackgroundThread] = []
        try:
            for _ in range(min(self.threads, len(jobs))):
                threads.append(BackgroundThread(work))
            for thread in threads:
                while not thread.join(LOOK_S):
                    watch()
                    if self._cancelled():
                        cancel.set()
        finally:
            cancel.set()
            for thread in threads:
                thread.join()
        for thread in threads:
            if thread.error is not None:  # it had no memory to keep what a job raised
                raise thread.error
        for error in sorted(errors, key=lambda error: isinstance(error, Cancelled)):
            raise error
        watch()
