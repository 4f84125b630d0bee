"""From paths to opened indexes: which files are to be opened, which belong together, and indexing them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..base.errors import TracelaneError, UnreadableError
from ..base.progress import CancelledCallback, ProgressCallback, never, no_progress
from ..read.problem import has_no_event_array
from ..read.remote_files import each_at_once, is_url
from ..read.source import Source, current_source, open_source
from .cache import IndexLocation, locate
from .cached import touch
from .captures import Capture, Member, captures_of, members_of
from .choice import Choice, ResolvedFiles, choose
from .file_facts import NO_FACTS, FileFacts, facts_in_keys, file_facts
from .indexing import IndexJob, Written, index_several
from .ingest import find_index, ingest_index, ingest_source
from .inputs import STDIN, check_there, expanded, unfinished_notes
from .options import DEFAULT_OPTIONS, IndexOptions

if TYPE_CHECKING:
    from .store import Index

NEWEST = Choice()
MemberState: TypeAlias = "tuple[Member, Index | IndexJob | UnreadableError]"
"""A file with its index, or what is to be done for that, or why there is none."""
MOST_OPEN = 16
"""Of more files none is held open between looking at it and reading it."""


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


def open_indexes(
    paths: Sequence[str | Path] | ResolvedFiles,
    options: IndexOptions = DEFAULT_OPTIONS,
    *,
    choice: Choice = NEWEST,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> Opened:
    """Open the files that paths and choice stand for, or that they were resolved to already, indexing those
    that are not indexed yet.

    The notes of the first index say what is left out and which ranks are missing. Raises UnreadableError
    when an input is no trace (in a folder it is skipped unless nothing else is there), UsageError for a
    choice that leaves nothing, CacheError, Cancelled.
    """
    files = (
        paths
        if isinstance(paths, ResolvedFiles)
        else resolve_files(paths, choice, options.index_dir, progress=progress, cancelled=cancelled)
    )
    return open_states(files, states_of(files, options), options, progress=progress, cancelled=cancelled)


def states_of(files: ResolvedFiles, options: IndexOptions = DEFAULT_OPTIONS) -> list[MemberState]:
    """Return each file with its index, or what is to be done for one, or why there is none. Raises
    UnreadableError where a file that was named is none.
    """
    refused = [member for member in files.members if member.source is None and member.path in files.named]
    if refused:
        raise UnreadableError("; ".join(str(member.trouble) for member in refused))
    states: list[MemberState] = []
    for member in files.members:
        if member.source is None:
            states.append((member, member.trouble or UnreadableError(f"{member.path}: is no trace")))
            continue
        index = find_index(member.source, options)
        if isinstance(index, IndexLocation):
            states.append((member, IndexJob.of(member.source, index)))
        else:
            states.append((member, index))
    return states


def open_states(
    files: ResolvedFiles,
    states: Sequence[MemberState],
    options: IndexOptions = DEFAULT_OPTIONS,
    *,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> Opened:
    """Return what is there, with the rest indexed, as `open_indexes` does."""
    opened: list[tuple[Member, Index]] = []
    refused: list[UnreadableError] = []
    refused_by_name: list[UnreadableError] = []  # what the user named must be opened
    try:
        jobs = [one for _, one in states if isinstance(one, IndexJob)]
        written = index_several(jobs, options, progress=progress, cancelled=cancelled)
        for member, one in states:
            try:
                index = _indexed(one, written, options, progress, cancelled)
                if (error := no_trace_error(files, member.path, index)) is not None:
                    index.close()
                    raise error
            except UnreadableError as error:
                (refused_by_name if member.path in files.named else refused).append(error)
            else:
                opened.append((member, index))
        if refused_by_name:
            raise UnreadableError("; ".join(map(str, refused_by_name)))
        if refused and not opened:
            raise refused[0]
    except BaseException:
        for one in (*(one for _, one in states), *(index for _, index in opened)):
            if not isinstance(one, IndexJob | UnreadableError):
                one.close()
        raise
    trace = together(files, opened, refused)
    add_events(trace, written.events)
    return trace


def _indexed(
    one: Index | IndexJob | UnreadableError,
    written: Written,
    options: IndexOptions,
    progress: ProgressCallback,
    cancelled: CancelledCallback,
) -> Index:
    """Return the index of a file, made now where it is still to be made. Raises UnreadableError."""
    if isinstance(one, UnreadableError):
        raise one
    if not isinstance(one, IndexJob):
        return one
    if one.path in written.refused:
        raise written.refused[one.path]
    if one.path not in written.paths:
        return ingest_source(one.source, one.location, options, progress=progress, cancelled=cancelled)
    again = options.with_force(False)
    index = ingest_index(current_source(one.source), again, progress=progress, cancelled=cancelled)
    index.is_new = True
    return index


def add_events(opened: Opened, events: Sequence[str]) -> None:
    """Add what happened in the cache while indexes were built to the notes of the first of them."""
    first = opened.indexes[0]
    first.events += tuple(event for event in events if event not in first.events)
    first.notes += tuple(event for event in events if event not in first.notes)


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


def resolve_files(
    paths: Sequence[str | Path],
    choice: Choice,
    index_dir: Path | None,
    *,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> ResolvedFiles:
    """Return the files that paths and a choice stand for, each looked at once; all files that are named one
    by one, where none says its rank.

    Raises UnreadableError, UsageError as `open_indexes` does, Cancelled.
    """
    named = tuple(paths)
    check_there(named)
    files = expanded(paths)
    together = STDIN not in map(str, files) and (len(files) > 1 or choice != NEWEST)

    def look(path: str | Path) -> _Look:
        try:
            source = open_source(path, progress=progress, cancelled=cancelled)
        except UnreadableError as error:
            return _Look(None, error)
        facts = file_facts(source, index_dir) if together and source.kind != "stdin" else NO_FACTS
        if len(files) > MOST_OPEN:
            source.close()
        return _Look(source, None, facts)

    urls = [path for path in files if is_url(path)]
    looks = dict(zip(urls, each_at_once(look, urls)))
    looks |= {path: look(path) for path in files if path not in looks}
    if not together:
        return ResolvedFiles(tuple(looks[path].added_to(Member(path, "")) for path in files), named=named)
    members = [looks[one.path].added_to(one) for one in members_of(files, lambda path: looks[path].facts)]
    ranked = any(member.rank is not None for member in members)
    if choice == NEWEST and not ranked and all(path in named for path in files):
        return ResolvedFiles(tuple(members), named=named)
    return replace(choose(captures_of(members), choice), named=named)


class _Look(NamedTuple):
    """What is at a path, or why that is no trace, and what it says about itself."""

    source: Source | None
    trouble: UnreadableError | None
    facts: FileFacts = NO_FACTS

    def added_to(self, member: Member) -> Member:
        """Return a member with what was seen."""
        return replace(member, source=self.source, trouble=self.trouble)


def keep_cached(files: ResolvedFiles, options: IndexOptions) -> None:
    """Count the indexes of files as opened now. A command that opens one input after another says so of all
    of them first, or building an index for one could remove that of the next.
    """
    for member in files.members:
        if member.source is not None:
            with suppress(TracelaneError):  # opening it says what is wrong
                location = locate(dict(member.source.fingerprint), options.index_dir)
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
