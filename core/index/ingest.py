"""From a path to an opened index: out of the cache, or read, built and committed first."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.children import ChildrenError, serves_decoding
from ..base.errors import CacheError, Cancelled, DamagedIndexError, WrongIndexError
from ..base.progress import CancelledCallback, Progress, ProgressCallback, never, no_progress
from ..base.threads import BackgroundThread
from ..read.remote_files import is_url
from ..read.source import Source
from .cache import IndexLocation, discard, locate
from .cached import touch
from .changes import unfinished_note
from .options import DEFAULT_OPTIONS, IndexOptions
from .quota import PlannedIndex, check_room, index_size, keep_within, limit_of

if TYPE_CHECKING:
    from .store import Index

PROCESS_FROM = 16 << 20
"""Smaller files take less time to read than a process takes to start."""
PACKED_FROM = 1 << 20
"""Compressed files of this size hold about as much."""
WAIT_S = 0.1


def ingest_index(
    source: Source,
    options: IndexOptions = DEFAULT_OPTIONS,
    *,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> Index:
    """Return the index of a source, from the cache unless `force` says otherwise; where much is to be read a
    process of its own builds it.

    Raises UnreadableError for what is no trace, CacheError when no index can be written, Cancelled.
    """
    index = find_index(source, options)
    if not isinstance(index, IndexLocation):
        return index
    return ingest_source(source, index, options, progress=progress, cancelled=cancelled)


def ingest_source(
    source: Source,
    location: IndexLocation,
    options: IndexOptions = DEFAULT_OPTIONS,
    *,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> Index:
    """Return the index of a source, built and committed in its location as `ingest_index` does."""
    if pays_process(source) and not (options.threads == 1 and serves_decoding()):
        from .indexing import Indexing, IndexJob

        with suppress(ChildrenError), closing(Indexing([IndexJob.of(source, location)], options)) as indexing:
            from . import store  # noqa: F401 - while the process starts: it is needed afterwards

            indexing.await_running()
            while not indexing.poll(WAIT_S):
                progress(indexing.progress)
                if cancelled():
                    raise Cancelled
            if source.path in indexing.failed:
                raise indexing.failed[source.path]
            return opened_index(source, location.with_events(indexing.events))
        # No process can be had: this one, then.
    return build_here(source, location, options, progress=progress, cancelled=cancelled)


def find_index(source: Source, options: IndexOptions = DEFAULT_OPTIONS) -> Index | IndexLocation:
    """Return the index of a source from the cache, else where it belongs."""
    location = locate(dict(source.fingerprint), options.index_dir)
    if options.force:
        return location
    try:
        index = _opened(location, source)
    except DamagedIndexError as error:
        discard(location.folder)
        location = locate(dict(source.fingerprint), options.index_dir)
        event = f"{source.path}: its index was damaged ({error.why}) and is rebuilt"
        return location.with_events((event,))
    return location if index is None else index


def pays_process(source: Source) -> bool:
    """Tell whether reading takes long enough for a process of its own."""
    return source.size >= (PROCESS_FROM if source.packing == "plain" else PACKED_FROM)


def build_here(
    source: Source,
    location: IndexLocation,
    options: IndexOptions = DEFAULT_OPTIONS,
    *,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> Index:
    """Return the index of a source, read and built by this process."""
    events = build_index(source, location, options, progress=progress, cancelled=cancelled)
    return opened_index(source, location.with_events(events))


def opened_index(source: Source, location: IndexLocation) -> Index:
    """Return the index that was just committed; CacheError where it cannot be opened."""
    try:
        index = _opened(location, source)
    except DamagedIndexError as error:
        raise WrongIndexError.of(source.path, error.why) from error
    if index is None:
        raise CacheError(f"the index of {source.path} in {location.folder} cannot be read: it is gone")
    index.is_new = True
    return index


def cached_index(source: Source, index_dir: Path | None = None) -> Index | None:
    """Return the index of a source if there is a usable one, None otherwise; writes nothing."""
    try:
        return _opened(locate(dict(source.fingerprint), index_dir), source)
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
            why = "it is that of another file"
            raise DamagedIndexError(f"the index in {location.folder} is damaged: {why}", location.folder, why)
    except CacheError as error:
        if lease is not None:
            lease.close()
        if isinstance(error, DamagedIndexError):
            raise
        return None  # removed a moment ago
    index.lease, index.source = lease, source
    index.events = (*location.events, *source.notes)
    index.notes = (*location.notes, *index.events, *unfinished_note(source.path))
    index.path = (
        source.path if source.path == "-" or is_url(source.path) else str(Path(source.path).absolute())
    )
    touch(location.folder)
    return index


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
        if not options.force and _is_there(location, source):
            return ()
        root = location.folder.parent.parent
        limit = limit_of(root, options.cache_limit)
        if not location.temporary:
            check_room([planned_index(source, location)], root, limit)
        with location.building() as folder:
            begun(folder)
            _build(source, folder, options, progress, cancelled)
        return () if location.temporary else keep_within(limit, root, location.key)


def planned_index(source: Source, location: IndexLocation) -> PlannedIndex:
    """Return how much room the index of a source needs."""
    return PlannedIndex(location.key, source.path, index_size(source.size, source.packing != "plain"))


def _is_there(location: IndexLocation, source: Source) -> bool:
    """Tell whether another process has built the index meanwhile."""
    try:
        index = _opened(location, source)
    except DamagedIndexError:
        return False
    if index is not None:
        index.close()
    return index is not None


def _build(
    source: Source,
    folder: Path,
    options: IndexOptions,
    progress: ProgressCallback,
    cancelled: CancelledCallback,
) -> None:
    from ..read.batch_store import BatchStore
    from ..read.reader import NATIVE, ReadOptions, SourceReading

    BackgroundThread(_load_builder)
    with BatchStore(folder) as store:
        how = ReadOptions(options.decoder, options.threads)
        with SourceReading(source, store, how, progress, cancelled) as reading:
            read = reading.read()
        del reading  # and with it the memory that it read with
        from .build import STAGE, build
        from .workers import Workers

        progress(Progress(STAGE, 0, 1, read.events))
        build(
            read,
            folder,
            Workers(options.threads, cancelled, read.decoder == NATIVE),
            progress,
            path=source.path,
            fingerprint=source.fingerprint,
            free_events=store.free_events,
        )


def _load_builder() -> None:
    """Import the builder while other threads read."""
    from . import build  # noqa: F401
