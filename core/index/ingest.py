"""From a path to an opened index: out of the cache, or read, built and committed first."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from ..base.errors import CacheError
from ..base.progress import CancelledCallback, ProgressCallback, never, no_progress
from ..ingest.ledger import NO_EVENTS
from ..ingest.source import Source, open_source
from .cache import Place, locate, touch
from .store import Index

PARTS = ".parts"


def ingest_index(
    path: str | Path,
    *,
    index_dir: Path | None = None,
    decoder: str = "orjson",
    workers: int | None = None,
    force: bool = False,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> Index:
    """Return the index of a trace file, from the cache where the file has not changed since (and not
    `force`).

    Raises UnreadableError for what is no trace, CacheError when no index can be written, Cancelled.
    """
    source = open_source(path, progress=progress, cancelled=cancelled)
    place = locate(dict(source.fingerprint), index_dir)
    index = None if force else _opened(place, source)
    if index is None:
        with place.exclusive(cancelled):
            index = None if force else _opened(place, source)  # another process may have built it meanwhile
            if index is None:
                with place.building() as folder:
                    _build(source, folder, decoder, workers, progress, cancelled)
                index = _opened(place, source)
    if index is None:
        raise CacheError(f"the index of {path} was written to {place.folder} but cannot be opened")
    return index


def has_no_event_array(index: Index) -> bool:
    """Tell whether the source is sound JSON that is no trace: a configuration that lies among traces, say."""
    return any(problem["kind"] == NO_EVENTS for problem in index.problems)


def cached_index(path: str | Path, *, index_dir: Path | None = None) -> Index | None:
    """Return the index of a trace file if there is a usable one, None otherwise; writes nothing."""
    source = open_source(path)
    return _opened(locate(dict(source.fingerprint), index_dir), source)


def _opened(place: Place, source: Source) -> Index | None:
    """Open the index in its place; a damaged one counts as none."""
    if not place.exists():
        return None
    lease = place.lease()
    try:
        index = Index.open(place.folder)
    except CacheError:
        if lease is not None:
            lease.close()
        return None
    index.lease, index.source, index.notes = lease, source, place.notes
    index.path = source.path if source.path == "-" else str(Path(source.path).absolute())
    touch(place.folder)
    return index


def _build(
    source: Source,
    folder: Path,
    decoder: str,
    workers: int | None,
    progress: ProgressCallback,
    cancelled: CancelledCallback,
) -> None:
    from ..ingest.reader import read_to_folder
    from .build import build

    parts = Path(tempfile.mkdtemp(prefix=PARTS, dir=folder))
    try:
        read = read_to_folder(
            source, parts, decoder=decoder, workers=workers, progress=progress, cancelled=cancelled
        )
        build(read.parts, read, folder, progress, cancelled, path=source.path, fingerprint=source.fingerprint)
    finally:
        shutil.rmtree(parts, ignore_errors=True)
