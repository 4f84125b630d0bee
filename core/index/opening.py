"""From paths to opened indexes: which files are to be opened, which belong together, and indexing them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import TracelaneError, UnreadableError
from ..base.progress import CancelledCallback, ProgressCallback, never, no_progress
from ..read.problem import has_no_event_array
from ..read.source import Source, current_source
from ..remote.files import each_at_once, is_url
from .cache import locate
from .cached import touch
from .captures import Capture, Member, captures_of, members_of
from .choice import Choice, choose
from .file_facts import FileFacts, facts_in_keys, source_and_facts
from .ingest import ingest_index
from .inputs import STDIN, check_there, expanded, unfinished_notes
from .options import DEFAULT_OPTIONS, IndexOptions
from .several import index_several

if TYPE_CHECKING:
    from .store import Index

NEWEST = Choice()


@dataclass(frozen=True)
class Opened:
    """The indexes of a trace and the files that they belong to, in the same order.

    `captures` are all that there are, newest first; `current` is the position of the one that is open, None
    where all are, or where files were not grouped into captures.
    """

    indexes: tuple[Index, ...]
    members: tuple[Member, ...]
    captures: tuple[Capture, ...] = ()
    current: int | None = None

    def facts(self) -> list[IndexFacts]:
        """Return where each index lies, how large it is, and what it holds."""
        return [_facts_of(index) for index in self.indexes]

    def write_block_stores(self, progress: ProgressCallback = no_progress) -> None:
        """Keep the text of compressed files beside their indexes, in blocks that can be read one by one."""
        from .blockstore import write_block_store  # loads numpy: not while a process starts
        from .packing import worth_packing

        for index in self.indexes:
            if worth_packing(index):
                write_block_store(index, progress=progress)


@dataclass(frozen=True)
class IndexFacts:
    """An index on disk: its source and folder, its size in bytes, and what it holds."""

    path: str
    folder: str
    size: int
    events: int
    slices: int
    notes: tuple[str, ...]


def _facts_of(index: Index) -> IndexFacts:
    size = sum(file.stat().st_size for file in index.folder.rglob("*") if file.is_file())
    events, slices = int(index.read_report["events"]), int(index.read_report["slices"])
    return IndexFacts(index.path, str(index.folder), size, events, slices, index.notes)


@dataclass(frozen=True)
class ResolvedFiles:
    """The files to open for the paths that a user `named`, by rank, and notes on those left out.

    `captures` and `current` are as in `Opened`.
    """

    named: tuple[str | Path, ...]
    members: tuple[Member, ...]
    captures: tuple[Capture, ...] = ()
    current: int | None = None
    notes: tuple[str, ...] = ()


def open_indexes(
    paths: Sequence[str | Path],
    options: IndexOptions = DEFAULT_OPTIONS,
    *,
    choice: Choice = NEWEST,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> Opened:
    """Open the files that paths and choice stand for, indexing those that are not indexed yet.

    The notes of the first index say what is left out and which ranks are missing. Raises UnreadableError
    when an input is no trace (in a folder it is skipped unless nothing else is there), UsageError for a
    choice that leaves nothing, CacheError, Cancelled.
    """
    return open_resolved(
        resolve_files(paths, choice, options.index_dir), options, progress=progress, cancelled=cancelled
    )


def open_resolved(
    files: ResolvedFiles,
    options: IndexOptions = DEFAULT_OPTIONS,
    *,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> Opened:
    """Open files that were resolved already, as `open_indexes` does."""
    written = index_several(
        [member.path for member in files.members],
        options,
        sources={member.path: member.source for member in files.members},
        progress=progress,
        cancelled=cancelled,
    )
    opened: list[tuple[Member, Index]] = []
    refused: list[UnreadableError] = []
    refused_by_name: list[UnreadableError] = []  # what the user named must be opened
    try:
        for member in files.members:
            path = member.path
            try:
                if path in written.refused:
                    raise written.refused[path]
                force = options.force and path not in written.paths
                index = ingest_index(
                    path,
                    options.with_force(force),
                    source=member.source,
                    progress=progress,
                    cancelled=cancelled,
                )
                index.is_new = index.is_new or path in written.paths
                if (error := no_trace_error(files, path, index)) is not None:
                    index.close()
                    raise error
            except UnreadableError as error:
                (refused_by_name if path in files.named else refused).append(error)
            else:
                opened.append((member, index))
        if refused_by_name:
            raise UnreadableError("; ".join(map(str, refused_by_name)))
        if refused and not opened:
            raise refused[0]
    except BaseException:
        for _, index in opened:
            index.close()
        raise
    trace = together(files, opened, refused)
    add_events(trace, written.events)
    return trace


def add_events(opened: Opened, events: Sequence[str]) -> None:
    """Add what happened in the cache while indexes were built to the notes of the first of them."""
    first = opened.indexes[0]
    first.events += tuple(events)
    first.notes += tuple(events)


def no_trace_error(files: ResolvedFiles, path: str | Path, index: Index) -> UnreadableError | None:
    """Return why a file does not belong to the trace though it can be read: it is JSON without events.

    None where it does; a file that is named alone is opened all the same, as an empty trace.
    """
    if not has_no_event_array(index.problems) or (path in files.named and len(files.members) == 1):
        return None
    return UnreadableError(f"{path}: no trace events in it")


def together(
    files: ResolvedFiles, opened: Sequence[tuple[Member, Index]], refused: Sequence[Exception]
) -> Opened:
    """Return the opened indexes, at least one, by rank; the first one's notes say what is left out, and why
    some were refused.
    """
    by_rank = sorted(((_as_opened(member, index), index) for member, index in opened), key=_rank_order)
    members, indexes = [member for member, _ in by_rank], [index for _, index in by_rank]
    indexes[0].notes += (
        *files.notes,
        *_missing(files, members),
        *unfinished_notes(files.named),
        *(f"skipped {error}" for error in refused),
    )
    return Opened(tuple(indexes), tuple(members), files.captures, files.current)


def opened_alone(path: str | Path, index: Index) -> Opened:
    """Return the index of a single file in the form in which several are opened."""
    return Opened((index,), (_as_opened(Member(path, ""), index),))


def resolve_files(paths: Sequence[str | Path], choice: Choice, index_dir: Path | None) -> ResolvedFiles:
    """Return the files that paths and a choice stand for; all files that are named one by one, where none
    says its rank.

    Raises UnreadableError, UsageError as `open_indexes` does.
    """
    named = tuple(paths)
    check_there(named)
    expanded_paths = expanded(paths)
    if STDIN in map(str, expanded_paths) or (len(expanded_paths) == 1 and choice == NEWEST):
        return ResolvedFiles(named, tuple(Member(path, "") for path in expanded_paths))
    sources: dict[str | Path, Source] = {}
    urls = [path for path in expanded_paths if is_url(path)]
    remote = dict(zip(urls, each_at_once(lambda url: source_and_facts(url, index_dir), urls)))

    def facts_of(path: str | Path) -> FileFacts:
        source, facts = remote.get(path) or source_and_facts(path, index_dir)
        if source is not None:
            sources[path] = source
        return facts

    members = [replace(one, source=sources.get(one.path)) for one in members_of(expanded_paths, facts_of)]
    ranked = any(member.rank is not None for member in members)
    if choice == NEWEST and not ranked and all(path in named for path in expanded_paths):
        return ResolvedFiles(named, tuple(members))
    chosen = choose(captures_of(members), choice)
    return ResolvedFiles(named, chosen.members, chosen.captures, chosen.current, chosen.notes)


def keep_cached(paths: Sequence[str | Path], choice: Choice, options: IndexOptions) -> None:
    """Count the indexes of what paths stand for as opened now. A command that opens one input after another
    says so of all of them first, or building an index for one could remove that of the next.

    Pipes and standard input are left out: what is read of them here would be missing later.
    """
    named = (path for path in paths if str(path) != STDIN)
    files = [path for path in named if is_url(path) or Path(path).is_file() or Path(path).is_dir()]
    with suppress(TracelaneError, OSError):  # opening it says what is wrong
        for member in resolve_files(files, choice, options.index_dir).members:
            source = current_source(member.path, member.source)
            location = locate(dict(source.fingerprint), options.index_dir)
            if location.exists():
                touch(location.folder)


def _rank_order(opened: tuple[Member, Index]) -> tuple[bool, int]:
    rank = opened[0].rank
    return rank is None, rank or 0


def _as_opened(member: Member, index: Index) -> Member:
    """Return the member with what its whole file says: some name their rank after the events."""
    envelope = index.manifest.get("envelope")
    if member.rank is not None or not isinstance(envelope, dict):
        return member
    return member.with_facts(facts_in_keys(envelope))


def _missing(files: ResolvedFiles, opened: Sequence[Member]) -> list[str]:
    """Return a sentence that names the ranks that the capture lacks."""
    if files.current is None:
        return []
    by_path = {member.path: member for member in opened}
    capture = files.captures[files.current]
    capture = replace(capture, members=tuple(by_path.get(each.path, each) for each in capture.members))
    return [capture.missing_text] if capture.missing_text else []
