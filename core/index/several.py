"""Indexing several files at once: each by a process of its own, as many at a time as there are cores."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from ..base.children import Children, ChildrenError, Message
from ..base.errors import Cancelled, TracelaneError, UnreadableError
from ..base.progress import CancelledCallback, Progress, ProgressCallback, never, no_progress
from ..read.source import Source
from .cache import IndexLocation, locate, sweep
from .cached import touch
from .indexing import START_SECONDS, as_raised, retry_event
from .options import DEFAULT_OPTIONS, IndexOptions
from .quota import PlannedIndex, check_room, index_size, limit_of
from .several_worker import GRACE_S

WORKER = "tracelane.core.index.several_worker"
WORTH_IT = 8 << 20
"""Less text than this is indexed in the process that asks: starting others takes longer."""
LEAST_WORK = 256 << 10
"""A file counts as so many bytes at least."""
INFLATED = 8
"""Packed files hold about so many times their size."""
WAIT_S = 0.1


@dataclass(frozen=True)
class IndexJob:
    """A file that is to be indexed."""

    source: Source
    folder: Path  # where its index belongs
    size: int  # on disk
    work: int  # estimated bytes of text
    room: PlannedIndex  # what its index takes

    @classmethod
    def of(cls, source: Source, location: IndexLocation) -> IndexJob:
        """Return what there is to do for a source."""
        text = source.size * (1 if source.packing == "plain" else INFLATED)
        room = PlannedIndex(location.key, source.path, index_size(source.size, source.packing != "plain"))
        return cls(source, location.folder, source.size, max(text, LEAST_WORK), room)

    @property
    def path(self) -> str:
        """What the file is called."""
        return self.source.path


@dataclass(frozen=True)
class Written:
    """Which files were indexed, and which cannot be: they are no traces."""

    paths: frozenset[str] = frozenset()
    events: tuple[str, ...] = ()
    refused: Mapping[str, UnreadableError] = field(default_factory=lambda: MappingProxyType({}))


class SeveralIndexing:
    """Processes that index files; `close` leaves neither them nor half an index."""

    def __init__(
        self,
        jobs: Sequence[IndexJob],
        options: IndexOptions = DEFAULT_OPTIONS,
        *,
        stands_back: bool = False,
    ) -> None:
        """Start them, on as many cores as there are or `threads` says; ChildrenError where none can be.

        With `stands_back` they let other processes come first. Whether they run is known after
        `await_running` only. CacheError where not all indexes would fit.
        """
        for root in {job.folder.parent.parent for job in jobs}:
            room = [job.room for job in jobs if job.folder.parent.parent == root]
            check_room(room, root, limit_of(root, options.cache_limit))
        self.written: list[str] = []
        """Files whose indexes are committed, in that order."""
        self.failed: dict[str, Exception] = {}
        """Why others have none."""
        self.events: list[str] = []
        """What happened in the cache meanwhile."""
        self._total = sum(job.size for job in jobs)
        self._finished = 0
        self._events: dict[int, int] = {}
        self._at: dict[int, IndexJob] = {}
        self._doing: dict[str, Progress] = {}
        self._folders = {job.folder.parent for job in jobs}
        self._options, self._stands_back = options, stands_back
        self._may_retry = options.threads != 1
        # The largest are begun first, so that none is left alone at the end; of a size those that come first.
        self._waiting = sorted(jobs, key=lambda job: -job.work.bit_length())
        self._closed = False
        self._children = self._started()

    def _started(self) -> Children:
        """Start processes, and give each a job."""
        cores = self._options.threads or os.cpu_count() or 1
        count = max(1, min(cores, len(self._waiting)))
        each = self._options.with_threads(max(1, cores // count))
        greeting: Message = {"options": each.to_message(), "stands_back": self._stands_back}
        self._children = Children(count, greeting, module=WORKER)
        try:
            for number in range(count):
                self._begin_next(number)
        except ChildrenError:
            self.close()
            raise
        return self._children

    def _retry(self) -> None:
        """Start one process with one thread in location of those of which one was killed."""
        self._may_retry = False
        self._children.close(0.0)
        for folder in self._folders:
            sweep(folder)
        given = list(self._at.values())
        self.events.append(retry_event(" or ".join(job.path for job in given)))
        self._waiting = [*given, *self._waiting]
        self._at.clear()
        self._doing.clear()
        self._options = self._options.with_threads(1)
        self._started()

    @property
    def pids(self) -> Sequence[int]:
        """Their process ids."""
        return self._children.pids

    @property
    def progress(self) -> Progress:
        """How far all of them are together."""
        read = self._finished + sum(progress.done for progress in self._doing.values())
        return Progress("indexing", min(read, self._total), self._total, sum(self._events.values()))

    def doing(self, path: str) -> Progress | None:
        """Return how far a file is, None where nobody is at it."""
        return self._doing.get(path)

    def await_running(self) -> None:
        """Wait until one of them has begun; ChildrenError where none does."""
        until = time.monotonic() + START_SECONDS
        while (received := self._children.receive(WAIT_S)) is None:
            if time.monotonic() > until:
                raise ChildrenError("processes were started and do not answer")
        self._take(*received)

    def poll(self, wait: float = 0.0) -> bool:
        """Take in what they have told, waiting so long for something; True once nothing is left to do.

        Where a process is killed, as for want of memory, one with one thread goes on once; after that it
        raises ChildrenError.
        """
        while self._at:
            try:
                received = self._children.receive(wait)
            except ChildrenError:
                if not self._may_retry:
                    raise
                self._retry()
                continue
            if received is None:
                break
            wait = 0.0
            self._take(*received)
        return not self._at

    def close(self) -> None:
        """End them and remove what they have not finished."""
        if self._closed:
            return
        self._closed = True
        self._children.close(GRACE_S if self._at else 0.0)
        if self._at:
            for folder in self._folders:
                sweep(folder)

    def _begin_next(self, number: int) -> None:
        self._at.pop(number, None)
        if self._waiting:
            job = self._at[number] = self._waiting.pop(0)
            self._doing[job.path] = Progress("reading", 0, job.size)
            self._children.send(number, {"source": job.source.to_message()})

    def _take(self, number: int, message: Message) -> None:
        if "finished" in message:
            job = self._at[number]
            self._finished += job.size
            self._doing.pop(job.path)
            if message["finished"]:
                self.written.append(job.path)
                self.events += message["events"]
            else:
                self.failed[job.path] = as_raised(message)
            self._begin_next(number)
        elif "stage" in message:
            job = self._at[number]
            self._events[number] = int(message["events"])
            reading = message["stage"] == "reading"
            done = int(message["done"]) if reading else job.size
            self._doing[job.path] = Progress(message["stage"], min(done, job.size), job.size)


def index_several(
    sources: Sequence[Source],
    options: IndexOptions = DEFAULT_OPTIONS,
    *,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> Written:
    """Write the indexes of those sources that have none yet, side by side, where that takes less time.

    What cannot be indexed is passed over: opening it says why. Raises Cancelled.
    """
    jobs = [job for source in sources if (job := _job(source, options)) is not None]
    cores = options.threads or os.cpu_count() or 1
    if len(jobs) < 2 or sum(job.work for job in jobs) < WORTH_IT or cores < 2:
        return Written()
    try:
        with closing(SeveralIndexing(jobs, options)) as several:
            while not several.poll(WAIT_S):
                progress(several.progress)
                if cancelled():
                    raise Cancelled
            progress(several.progress)
    except ChildrenError:  # no processes to be had: whoever asks goes on alone
        return Written()
    refused = {path: error for path, error in several.failed.items() if isinstance(error, UnreadableError)}
    return Written(frozenset(several.written), tuple(several.events), refused)


def _job(source: Source, options: IndexOptions) -> IndexJob | None:
    """Return what there is to do for a source, None where that is nothing, or not for another process."""
    if source.kind == "stdin":
        return None
    try:
        location = locate(dict(source.fingerprint), options.index_dir)
    except TracelaneError:
        return None
    if location.exists() and not options.force:
        touch(location.folder)  # so that none of this command's indexes makes room for another
        return None
    return None if location.temporary else IndexJob.of(source, location)
