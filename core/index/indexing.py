"""From a source to its index: out of the cache, or built and committed first, by processes if that pays."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ..base import errors
from ..base.children import DECODING, Children, ChildrenError, Message, serves_decoding
from ..base.errors import (
    CacheError,
    Cancelled,
    DamagedIndexError,
    TracelaneError,
    UnreadableError,
    WrongIndexError,
)
from ..base.progress import CancelledCallback, Progress, ProgressCallback, never, no_progress
from ..base.threads import BackgroundThread
from ..read.source import Source
from ..read.urls import is_url
from .cache import IndexLocation, discard, locate, sweep
from .cached import IndexJob, check_room, keep_within, limit_of, touch
from .inputs import unfinished_note
from .options import DEFAULT_OPTIONS, IndexOptions

if TYPE_CHECKING:
    from ..read.batch_store import BatchStore
    from ..read.reader import ReadOptions, ReadResult
    from .store import Index

MODULE = "tracelane.core.index.indexer"
START_SECONDS = 20.0
"""A process that says nothing for so long is taken for one that cannot be started."""
ENDED = (
    "the process that builds the index was ended, with one thread too, possibly for lack of memory: "
    "close other programs, or index the trace on a machine with more"
)
PATIENCE_S = 2.0
"""So long processes may take to clear up when their indexes are not wanted any more."""
WORTH_IT = 16 << 20
"""A file of less text is indexed in the process that asks: starting others takes longer."""
SEVERAL_WORTH_IT = 8 << 20
"""The same of several files."""
WAIT_S = 0.1
AHEAD, AHEAD_BYTES = 8, 4 << 20
"""A process has orders for so many files at most, and for no other once they have so much text together: it
goes on while whoever polls draws what has come. What is larger goes to whoever is done first.
"""
TRIES = 5
"""So often an index is built that others remove before it is opened."""


def ingest_index(
    source: Source,
    options: IndexOptions = DEFAULT_OPTIONS,
    *,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> Index:
    """Return the index of a source, from the cache unless `force` says otherwise; where much is to be read a
    process of its own builds it. Raises UnreadableError for what is no trace, CacheError when no index can be
    written, Cancelled.
    """
    job = find_index(source, options)
    if not isinstance(job, IndexJob):
        return job
    done = index_all([job], options, progress=progress, cancelled=cancelled)
    for error in done.failed.values():
        raise error
    return opened_index(source, job.location.with_events(done.events), options)


def index_all(
    jobs: Sequence[IndexJob],
    options: IndexOptions = DEFAULT_OPTIONS,
    *,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> Indexed:
    """Do several jobs, side by side in processes where these can be had and take less time than this one;
    return what has become of each. Raises CacheError, Cancelled.
    """
    alone = options.threads == 1 and serves_decoding()  # this process was made to index
    worth_it = sum(job.work for job in jobs) >= (WORTH_IT if len(jobs) == 1 else SEVERAL_WORTH_IT)
    if worth_it and not alone:
        with suppress(ChildrenError), closing(Indexing(jobs, options)) as indexing:
            from . import store  # noqa: F401 - while processes start: it is needed afterwards

            indexing.await_running()
            while not indexing.poll(WAIT_S):
                progress(indexing.progress)
                if cancelled():
                    raise Cancelled
            progress(indexing.progress)
            return indexing
        # No process can be had: this one, then.
    here = Indexed()
    for job in jobs:
        try:
            here.events += build_index(
                job.source, job.location, options, progress=progress, cancelled=cancelled
            )
            here.written.append(job.path)
        except UnreadableError as error:
            here.failed[job.path] = error
    return here


def find_index(source: Source, options: IndexOptions = DEFAULT_OPTIONS) -> Index | IndexJob:
    """Return the index of a source from the cache, else what is to be done for it."""
    location, index = locate(dict(source.fingerprint), options.index_dir), None
    try:
        index = None if options.force else _opened(location, source)
    except DamagedIndexError as error:
        discard(location.folder)
        event = f"{source.path}: its index was damaged ({error.why}) and is rebuilt"
        location = locate(dict(source.fingerprint), options.index_dir).with_events((event,))
    return IndexJob.of(source, location) if index is None else index


def opened_index(source: Source, location: IndexLocation, options: IndexOptions = DEFAULT_OPTIONS) -> Index:
    """Return the index that was just committed, built again where another process has made room with it;
    CacheError where it cannot be opened.
    """
    for _ in range(TRIES):
        try:
            index = _opened(location, source)
        except DamagedIndexError as error:
            raise WrongIndexError.of(source.path, error.why) from error
        if index is not None:
            index.is_new = True
            return index
        if not location.exists():
            build_index(source, location, options, progress=no_progress, cancelled=never)
    raise CacheError(f"the index of {source.path} in {location.folder} cannot be read: it is gone")


def cached_index(source: Source, index_dir: Path | None = None) -> Index | None:
    """Return the index of a source if there is a usable one, None otherwise; writes nothing."""
    return _usable(locate(dict(source.fingerprint), index_dir), source)


def _usable(location: IndexLocation, source: Source) -> Index | None:
    try:
        return _opened(location, source)
    except DamagedIndexError:
        return None


def _opened(location: IndexLocation, source: Source) -> Index | None:
    """Open the index in its location, None where there is none; DamagedIndexError."""
    if not location.exists():
        return None
    from .store import Index  # not before a process that builds one has been started: it loads numpy

    lease = location.lease()
    try:
        index = Index.open(location.folder)
        if index.manifest["source"] != source.fingerprint:
            raise DamagedIndexError(location.folder, "it is that of another file")
    except CacheError as error:
        if lease is not None:
            lease.close()
        if isinstance(error, DamagedIndexError):
            raise
        return None  # removed a moment ago
    index.lease, index.source = lease, source
    index.events = (*location.events, *source.notes)
    index.notes = (*location.notes, *index.events, *unfinished_note(source.path))
    index.path = _path_of(source)
    touch(location.folder)
    return index


def _path_of(source: Source) -> str:
    """Return where a source lies, whichever folder is the current one later."""
    is_elsewhere = source.path == "-" or is_url(source.path)
    return source.path if is_elsewhere else str(Path(source.path).absolute())


def build_index(
    source: Source,
    location: IndexLocation,
    options: IndexOptions,
    *,
    progress: ProgressCallback,
    cancelled: CancelledCallback,
    begun: Callable[[Path], None] = lambda folder: None,
) -> tuple[str, ...]:
    """Read a source, build its index and commit it in its location, unless another process has meanwhile.
    Returns sentences on what else happened in the cache, for people. Raises CacheError where the index would
    not fit. `begun` is called with the folder that is written to.
    """
    with location.exclusive(cancelled):
        if not options.force and (index := _usable(location, source)) is not None:
            index.close()
            return ()
        root = location.folder.parent.parent
        limit = limit_of(root, options.cache_limit)
        if not location.temporary:
            check_room([IndexJob.of(source, location)], root, limit)
        with location.building() as folder:
            begun(folder)
            _build(source, folder, options, progress, cancelled)
        return () if location.temporary else keep_within(limit, root, location.key)


def _build(
    source: Source,
    folder: Path,
    options: IndexOptions,
    progress: ProgressCallback,
    cancelled: CancelledCallback,
) -> None:
    from ..read.batch_store import BatchStore
    from ..read.reader import NATIVE, OtherOriginError, ReadOptions

    BackgroundThread(partial(import_module, ".build", __package__))  # while other threads read
    how = ReadOptions(options.decoder, options.threads)
    with ExitStack() as stores:
        store = stores.enter_context(BatchStore(folder))
        try:
            read = _read(source, store, how, progress, cancelled)
        except OtherOriginError as error:
            store = stores.enter_context(BatchStore(folder))
            read = _read(source, store, how._replace(origin_ns=error.origin_ns), progress, cancelled)
        from .build import STAGE, build
        from .workers import Workers

        progress(Progress(STAGE, 0, 1, read.events))
        build(
            read,
            folder,
            Workers(options.threads, cancelled, read.decoder == NATIVE, options.buffers),
            progress,
            path=_path_of(source),
            fingerprint=source.fingerprint,
            free_events=store.free_events,
        )


def _read(
    source: Source,
    store: BatchStore,
    how: ReadOptions,
    progress: ProgressCallback,
    cancelled: CancelledCallback,
) -> ReadResult:
    from ..read.reader import SourceReading

    with SourceReading(source, store, how, progress, cancelled) as reading:
        try:
            read = reading.read()
        except UnreadableError:
            source.check_not_rewritten()
            raise
    source.check_not_rewritten()
    return read


@dataclass(eq=False)
class Indexed:
    """What has become of files that were to be indexed."""

    written: list[str] = field(default_factory=list)
    """Files whose indexes are committed, in that order."""
    failed: dict[str, Exception] = field(default_factory=dict)
    """Why others have none."""
    events: list[str] = field(default_factory=list)
    """What happened in the cache meanwhile."""


class Indexing(Indexed):
    """Processes that index files; `close` leaves neither them nor half an index."""

    def __init__(
        self, jobs: Sequence[IndexJob], options: IndexOptions = DEFAULT_OPTIONS, *, stands_back: bool = False
    ) -> None:
        """Start them, on as many cores as there are or `threads` says; ChildrenError where none can be. With
        `stands_back` they let other processes come first. Whether they run is known after `await_running`
        only. CacheError where not all indexes would fit.
        """
        folders = {job.location.folder.parent for job in jobs if not job.location.temporary}
        for root in {folder.parent for folder in folders}:
            own = [job for job in jobs if job.location.folder.parent.parent == root]
            check_room(own, root, limit_of(root, options.cache_limit))
        super().__init__()
        self._jobs = tuple(jobs)
        self._finished = 0
        self._events: dict[int, int] = {}
        self._at: dict[int, list[IndexJob]] = {}  # by process: what it is at, and what it does next
        self._doing: dict[str, Progress] = {}
        self._folders = {job.location.folder.parent for job in jobs}
        self._options, self._stands_back = options, stands_back
        self._may_retry = options.threads != 1
        # The largest are begun first, so that none is left alone at the end; of a size those that come first.
        self._waiting = sorted(jobs, key=lambda job: -job.work.bit_length())
        self._closed = False
        self._children = self._started()

    def _started(self) -> Children:
        cores = self._options.threads or os.cpu_count() or 1
        count = max(1, min(cores, len(self._waiting)))
        each = self._options if count == 1 else self._options._replace(threads=max(1, cores // count))
        greeting: Message = {"options": each.to_message(), "stands_back": self._stands_back}
        held = [job.source.file.held for job in self._waiting if job.source.file.held is not None]
        self._children = Children(count, module=MODULE, environment=DECODING, descriptors=held)
        try:
            for number in range(count):
                self._children.send(number, greeting)
            for _ in range(AHEAD):
                for number in range(count):
                    self._give(number)
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
        given = [jobs[0] for jobs in self._at.values()]
        ahead = [job for jobs in self._at.values() for job in jobs[1:]]
        paths = " or ".join(job.path for job in given)
        self.events.append(
            f"{paths}: its indexing was killed, possibly for lack of memory, and was repeated with one thread"
        )
        self._waiting = [*given, *ahead, *self._waiting]
        self._at.clear()
        self._doing.clear()
        self._options = self._options._replace(threads=1)
        try:
            self._started()
        except ChildrenError as error:
            raise CacheError(ENDED) from error

    @property
    def pids(self) -> Sequence[int]:
        return self._children.pids

    @property
    def progress(self) -> Progress:
        """How far all of them are together, where it is one how far that is."""
        events = sum(self._events.values())
        if len(self._jobs) == 1 and self._doing:
            return next(iter(self._doing.values()))._replace(events=events)
        read = self._finished
        for job, *_ in self._at.values():
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
        """Take in what they have told, waiting so long for something; True once nothing is left to do. Where
        a process is killed, as for want of memory, one with one thread goes on once; after that CacheError is
        raised.
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
        if self._closed:
            return
        self._closed = True
        self._children.close(PATIENCE_S if self._at else 0.0)
        if self._at:
            for folder in self._folders:
                sweep(folder)

    def _give(self, number: int) -> bool:
        """Give a process its next file, unless it has enough to do; tell whether it did."""
        jobs = self._at.setdefault(number, [])
        is_given = bool(self._waiting) and len(jobs) < AHEAD and sum(job.work for job in jobs) < AHEAD_BYTES
        if is_given:
            job = self._waiting.pop(0)
            jobs.append(job)
            order = {"source": job.source.to_message(), "location": str(job.location.folder)}
            self._children.send(number, order)
        if jobs:
            self._doing.setdefault(jobs[0].path, Progress("reading", 0, jobs[0].size))
        else:
            del self._at[number]
        return is_given

    def _take(self, number: int, message: Message) -> None:
        job = next(iter(self._at.get(number, ())), None)
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
            self._at[number].pop(0)
            while self._give(number):
                pass
        elif "progress" in message:
            stage, done, total, self._events[number] = message["progress"]
            self._doing[job.path] = Progress(stage, done, total)


def as_raised(message: Message) -> Exception:
    kind = getattr(errors, message["failed"], None) if message["failed"] else None
    if kind is None:
        error = RuntimeError(message["message"])
        error.add_note(message.get("trace", ""))
        return error
    tracelane_error: TracelaneError = kind(message["message"])
    return tracelane_error
