"""Indexes on their way, as the one who wants them sees it: built by processes, as many at a time as there
are cores; watched, opened, or given up.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from ..base import errors
from ..base.children import DECODING, Children, ChildrenError, Message
from ..base.errors import CacheError, Cancelled, TracelaneError, UnreadableError
from ..base.progress import CancelledCallback, Progress, ProgressCallback, never, no_progress
from ..read.source import Source
from .cache import IndexLocation, sweep
from .options import DEFAULT_OPTIONS, IndexOptions
from .quota import PlannedIndex, check_room, index_size, limit_of

MODULE = "tracelane.core.index.indexer"
START_SECONDS = 20.0
"""A process that says nothing for so long is taken for one that cannot be started."""
ENDED = (
    "the process that builds the index was ended, with one thread too, perhaps for want of memory: "
    "close other programs, or index the trace on a machine with more"
)
PATIENCE_S = 2.0
"""So long processes may take to clear up when their indexes are not wanted any more."""
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
    location: IndexLocation  # where its index belongs
    work: int  # estimated bytes of text
    room: PlannedIndex  # what its index takes

    @classmethod
    def of(cls, source: Source, location: IndexLocation) -> IndexJob:
        """Return what there is to do for a source."""
        text = source.size * (1 if source.packing == "plain" else INFLATED)
        room = PlannedIndex(location.key, source.path, index_size(source.size, source.packing != "plain"))
        return cls(source, location, max(text, LEAST_WORK), room)

    @property
    def path(self) -> str:
        """What the file is called."""
        return self.source.path

    @property
    def size(self) -> int:
        """Its bytes on disk."""
        return self.source.size


@dataclass(frozen=True)
class Written:
    """Which files were indexed, and which cannot be: they are no traces."""

    paths: frozenset[str] = frozenset()
    events: tuple[str, ...] = ()
    refused: Mapping[str, UnreadableError] = field(default_factory=lambda: MappingProxyType({}))


class Indexing:
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
        folders = {job.location.folder.parent for job in jobs if not job.location.temporary}
        for root in {folder.parent for folder in folders}:
            room = [job.room for job in jobs if job.location.folder.parent.parent == root]
            check_room(room, root, limit_of(root, options.cache_limit))
        self.written: list[str] = []
        """Files whose indexes are committed, in that order."""
        self.failed: dict[str, Exception] = {}
        """Why others have none."""
        self.events: list[str] = []
        """What happened in the cache meanwhile."""
        self._jobs = tuple(jobs)
        self._finished = 0
        self._events: dict[int, int] = {}
        self._at: dict[int, IndexJob] = {}
        self._doing: dict[str, Progress] = {}
        self._folders = {job.location.folder.parent for job in jobs}
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
        each = self._options if count == 1 else self._options.with_threads(max(1, cores // count))
        greeting: Message = {"options": each.to_message(), "stands_back": self._stands_back}
        held = [job.source.file.held for job in self._waiting if job.source.file.held is not None]
        self._children = Children(count, module=MODULE, environment=DECODING, descriptors=held)
        try:
            for number in range(count):
                self._children.send(number, greeting)
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
        try:
            self._started()
        except ChildrenError as error:
            raise CacheError(ENDED) from error

    @property
    def pids(self) -> Sequence[int]:
        """Their process ids."""
        return self._children.pids

    @property
    def progress(self) -> Progress:
        """How far all of them are together, where it is one how far that is."""
        events = sum(self._events.values())
        if len(self._jobs) == 1 and self._doing:
            return replace(next(iter(self._doing.values())), events=events)
        read = self._finished
        for job in self._at.values():
            doing = self._doing[job.path]
            read += min(doing.done, job.size) if doing.stage == "reading" else job.size
        total = sum(job.size for job in self._jobs)
        return Progress("indexing", min(read, total), total, events)

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

        Where a process is killed, as for want of memory, one with one thread goes on once; after that
        CacheError is raised.
        """
        while self._at:
            try:
                received = self._children.receive(wait)
            except ChildrenError as error:
                if not self._may_retry:
                    raise CacheError(ENDED) from error
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
        self._children.close(PATIENCE_S if self._at else 0.0)
        if self._at:
            for folder in self._folders:
                sweep(folder)

    def _begin_next(self, number: int) -> None:
        self._at.pop(number, None)
        if self._waiting:
            job = self._at[number] = self._waiting.pop(0)
            self._doing[job.path] = Progress("reading", 0, job.size)
            order = {"source": job.source.to_message(), "location": str(job.location.folder)}
            self._children.send(number, order)

    def _take(self, number: int, message: Message) -> None:
        job = self._at.get(number)
        if job is None:
            return
        if "committed" in message:
            self._finished += job.size
            self._doing.pop(job.path)
            if message["committed"]:
                self.written.append(job.path)
                self.events += message["events"]
            else:
                self.failed[job.path] = as_raised(message)
            self._begin_next(number)
        elif "progress" in message:
            stage, done, total, self._events[number] = message["progress"]
            self._doing[job.path] = Progress(stage, done, total)


def index_several(
    jobs: Sequence[IndexJob],
    options: IndexOptions = DEFAULT_OPTIONS,
    *,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> Written:
    """Do several jobs side by side, where that takes less time than one after the other; all are passed over
    where it does not, and what cannot be indexed: opening it says why. Raises Cancelled.
    """
    jobs = [job for job in jobs if job.source.kind != "stdin" and not job.location.temporary]
    cores = options.threads or os.cpu_count() or 1
    if len(jobs) < 2 or sum(job.work for job in jobs) < WORTH_IT or cores < 2:
        return Written()
    try:
        with closing(Indexing(jobs, options)) as several:
            while not several.poll(WAIT_S):
                progress(several.progress)
                if cancelled():
                    raise Cancelled
            progress(several.progress)
    except ChildrenError:  # no processes to be had: whoever asks goes on alone
        return Written()
    refused = {path: error for path, error in several.failed.items() if isinstance(error, UnreadableError)}
    return Written(frozenset(several.written), tuple(several.events), refused)


def retry_event(path: str | Path) -> str:
    """Return what is said where an index was built with one thread because a process was killed."""
    return f"{path}: its indexing was killed, perhaps for want of memory, and was repeated with one thread"


def as_raised(message: Message) -> Exception:
    """Return what a process that indexes told of its failing as what it was there."""
    kind = getattr(errors, message["failed"], None) if message["failed"] else None
    if kind is None:
        error = RuntimeError(message["message"])
        error.add_note(message.get("trace", ""))
        return error
    tracelane_error: TracelaneError = kind(message["message"])
    return tracelane_error
