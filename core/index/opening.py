"""From paths to opened indexes: which files are meant, which of them belong together, and indexing those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..base.errors import UnreadableError
from ..base.progress import CancelledCallback, ProgressCallback, never, no_progress
from .captures import Capture, Member, captures_of, members_of
from .choice import Choice, choose
from .ingest import has_no_event_array, ingest_index
from .inputs import STDIN, expanded, unfinished_notes
from .several import index_several
from .store import Index
from .told import told_by, told_in

NEWEST = Choice()


@dataclass(frozen=True)
class Opened:
    """The indexes of a trace and whose they are, in the same order; the captures there are, newest first."""

    indexes: tuple[Index, ...]
    members: tuple[Member, ...]
    captures: tuple[Capture, ...] = ()
    shown: int | None = None  # place in captures; None: all of them, or none were told apart


@dataclass(frozen=True)
class _Meant:
    members: tuple[Member, ...]
    captures: tuple[Capture, ...] = ()
    shown: int | None = None
    notes: tuple[str, ...] = ()


def open_indexes(
    asked: Sequence[str | Path],
    *,
    choice: Choice = NEWEST,
    index_dir: Path | None = None,
    decoder: str = "orjson",
    workers: int | None = None,
    force: bool = False,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> Opened:
    """Open the files that paths and choice mean, indexing those that are not indexed yet.

    What is left out, and which ranks are missing, is told in the notes of the first. Raises UnreadableError
    when an input is no trace (in a folder it is passed by unless nothing else is there), UsageError for a
    choice that leaves nothing, CacheError, Cancelled.
    """
    meant = _meant(asked, choice, index_dir)
    paths = [member.path for member in meant.members]
    written = index_several(
        paths,
        index_dir=index_dir,
        decoder=decoder,
        workers=workers,
        force=force,
        progress=progress,
        cancelled=cancelled,
    )
    indexes: list[Index] = []
    members: list[Member] = []
    refused: list[UnreadableError] = []
    try:
        for member in meant.members:
            path = member.path
            try:
                index = ingest_index(
                    path,
                    index_dir=index_dir,
                    decoder=decoder,
                    workers=workers,
                    force=force and path not in written,
                    progress=progress,
                    cancelled=cancelled,
                )
                if path not in asked and has_no_event_array(index):
                    index.close()
                    raise UnreadableError(f"{path}: no trace events in it")
            except UnreadableError as error:
                if path in asked:
                    raise
                refused.append(error)
            else:
                indexes.append(index)
                members.append(_as_opened(member, index))
        if refused and not indexes:
            raise refused[0]
    except BaseException:
        for index in indexes:
            index.close()
        raise
    order = sorted(range(len(indexes)), key=lambda at: (members[at].rank is None, members[at].rank or 0))
    indexes, members = [indexes[at] for at in order], [members[at] for at in order]
    indexes[0].notes += (
        *meant.notes,
        *_missing(meant, members),
        *unfinished_notes(asked),
        *(f"passed by {error}" for error in refused),
    )
    return Opened(tuple(indexes), tuple(members), meant.captures, meant.shown)


def opened_alone(path: str | Path, index: Index) -> Opened:
    """Return the index of a file that was asked for by itself as opening it gives it."""
    return Opened((index,), (_as_opened(Member(path, ""), index),))


def _meant(asked: Sequence[str | Path], choice: Choice, index_dir: Path | None) -> _Meant:
    """Return the files that are meant; those named one by one all of them where none tells a rank."""
    files = expanded(asked)
    if STDIN in map(str, files) or (len(files) == 1 and choice == NEWEST):
        return _Meant(tuple(Member(path, "") for path in files))
    members = members_of(files, lambda path: told_in(path, index_dir))
    ranked = any(member.rank is not None for member in members)
    if choice == NEWEST and not ranked and all(path in asked for path in files):
        return _Meant(tuple(members))
    chosen = choose(captures_of(members), choice)
    return _Meant(chosen.members, chosen.captures, chosen.shown, chosen.notes)


def _as_opened(member: Member, index: Index) -> Member:
    """Return the member with what its whole file says: some tell their rank behind the events."""
    envelope = index.manifest.get("envelope")
    if member.rank is not None or not isinstance(envelope, dict):
        return member
    return member.told(told_by(envelope))


def _missing(meant: _Meant, opened: Sequence[Member]) -> list[str]:
    """Return a sentence that names the ranks that the capture lacks."""
    if meant.shown is None:
        return []
    found = {member.path: member for member in opened}
    capture = meant.captures[meant.shown]
    capture = replace(capture, members=tuple(found.get(each.path, each) for each in capture.members))
    return [capture.missing_text] if capture.missing_text else []
