"""From paths to opened indexes: which files are meant, which of them belong together, and indexing those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import UnreadableError
from ..base.progress import CancelledCallback, ProgressCallback, never, no_progress
from ..read.source import Source
from .captures import Capture, Member, captures_of, members_of
from .choice import Choice, choose
from .ingest import has_no_event_array, ingest_index
from .inputs import STDIN, check_there, expanded, unfinished_notes
from .options import DEFAULT_OPTIONS, IndexOptions
from .several import index_several
from .told import Told, look_into, told_by

if TYPE_CHECKING:
    from .store import Index

NEWEST = Choice()


@dataclass(frozen=True)
class Opened:
    """The indexes of a trace and whose they are, in the same order; the captures there are, newest first."""

    indexes: tuple[Index, ...]
    members: tuple[Member, ...]
    captures: tuple[Capture, ...] = ()
    shown: int | None = None  # place in captures; None: all of them, or none were told apart


@dataclass(frozen=True)
class Meant:
    """The files that paths and a choice mean, by rank, and what is said of those left out."""

    asked: tuple[str | Path, ...]
    members: tuple[Member, ...]
    captures: tuple[Capture, ...] = ()
    shown: int | None = None
    notes: tuple[str, ...] = ()


def open_indexes(
    asked: Sequence[str | Path],
    options: IndexOptions = DEFAULT_OPTIONS,
    *,
    choice: Choice = NEWEST,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> Opened:
    """Open the files that paths and choice mean, indexing those that are not indexed yet.

    What is left out, and which ranks are missing, is told in the notes of the first. Raises UnreadableError
    when an input is no trace (in a folder it is passed by unless nothing else is there), UsageError for a
    choice that leaves nothing, CacheError, Cancelled.
    """
    return open_meant(
        meant_by(asked, choice, options.index_dir), options, progress=progress, cancelled=cancelled
    )


def open_meant(
    meant: Meant,
    options: IndexOptions = DEFAULT_OPTIONS,
    *,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> Opened:
    """Open files as `open_indexes` does."""
    written = index_several(
        [member.path for member in meant.members],
        options,
        sources={member.path: member.source for member in meant.members},
        progress=progress,
        cancelled=cancelled,
    )
    found: list[tuple[Member, Index]] = []
    refused: list[UnreadableError] = []
    named: list[UnreadableError] = []  # what the user asked for by name must be there
    try:
        for member in meant.members:
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
                if (error := not_meant(meant, path, index)) is not None:
                    index.close()
                    raise error
            except UnreadableError as error:
                (named if path in meant.asked else refused).append(error)
            else:
                found.append((member, index))
        if named:
            raise UnreadableError("; ".join(map(str, named)))
        if refused and not found:
            raise refused[0]
    except BaseException:
        for _, index in found:
            index.close()
        raise
    opened = together(meant, found, refused)
    add_events(opened, written.events)
    return opened


def add_events(opened: Opened, events: Sequence[str]) -> None:
    """Have it told with the first of some indexes what happened in the cache while others were built."""
    first = opened.indexes[0]
    first.events += tuple(events)
    first.notes += tuple(events)


def not_meant(meant: Meant, path: str | Path, index: Index) -> UnreadableError | None:
    """Return why a file is no part of the trace though it can be read: it is JSON without events.

    One that is named alone is opened all the same, as an empty trace.
    """
    if not has_no_event_array(index) or (path in meant.asked and len(meant.members) == 1):
        return None
    return UnreadableError(f"{path}: no trace events in it")


def together(meant: Meant, found: Sequence[tuple[Member, Index]], refused: Sequence[Exception]) -> Opened:
    """Return the indexes of the files that were meant, at least one, by rank; the first one's notes tell what
    is left out, and why some were refused.
    """
    opened = sorted(((_as_opened(member, index), index) for member, index in found), key=_by_rank)
    members, indexes = [member for member, _ in opened], [index for _, index in opened]
    indexes[0].notes += (
        *meant.notes,
        *_missing(meant, members),
        *unfinished_notes(meant.asked),
        *(f"passed by {error}" for error in refused),
    )
    return Opened(tuple(indexes), tuple(members), meant.captures, meant.shown)


def opened_alone(path: str | Path, index: Index) -> Opened:
    """Return the index of a file that was asked for by itself as opening it gives it."""
    return Opened((index,), (_as_opened(Member(path, ""), index),))


def meant_by(asked: Sequence[str | Path], choice: Choice, index_dir: Path | None) -> Meant:
    """Return the files that are meant; those named one by one all of them where none tells a rank.

    Raises UnreadableError, UsageError as `open_indexes` does.
    """
    named = tuple(asked)
    check_there(named)
    files = expanded(asked)
    if STDIN in map(str, files) or (len(files) == 1 and choice == NEWEST):
        return Meant(named, tuple(Member(path, "") for path in files))
    sources: dict[str | Path, Source] = {}

    def told(path: str | Path) -> Told:
        source, said = look_into(path, index_dir)
        if source is not None:
            sources[path] = source
        return said

    members = [replace(one, source=sources.get(one.path)) for one in members_of(files, told)]
    ranked = any(member.rank is not None for member in members)
    if choice == NEWEST and not ranked and all(path in asked for path in files):
        return Meant(named, tuple(members))
    chosen = choose(captures_of(members), choice)
    return Meant(named, chosen.members, chosen.captures, chosen.shown, chosen.notes)


def _by_rank(opened: tuple[Member, Index]) -> tuple[bool, int]:
    rank = opened[0].rank
    return rank is None, rank or 0


def _as_opened(member: Member, index: Index) -> Member:
    """Return the member with what its whole file says: some tell their rank behind the events."""
    envelope = index.manifest.get("envelope")
    if member.rank is not None or not isinstance(envelope, dict):
        return member
    return member.told(told_by(envelope))


def _missing(meant: Meant, opened: Sequence[Member]) -> list[str]:
    """Return a sentence that names the ranks that the capture lacks."""
    if meant.shown is None:
        return []
    found = {member.path: member for member in opened}
    capture = meant.captures[meant.shown]
    capture = replace(capture, members=tuple(found.get(each.path, each) for each in capture.members))
    return [capture.missing_text] if capture.missing_text else []
