"""From paths to opened indexes: which files are to be opened, which belong together, and indexing them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..base.errors import TracelaneError, UnreadableError
from ..base.progress import CancelledCallback, Progress, ProgressCallback, never, no_progress
from ..base.threads import each_at_once
from ..read.problem import has_no_event_array
from ..read.source import Source, TsUnit, current_source, open_source
from ..read.urls import is_url
from .cache import locate
from .cached import IndexJob, touch
from .captures import Capture, Choice, ResolvedFiles, captures_of, choose, members_of
from .graph_folder import GraphFolder, graph_folder
from .indexing import SEVERAL_WORTH_IT, Indexed, Indexing, find_index, index_all, opened_index
from .inputs import STDIN, check_there, expanded, unfinished_notes
from .member import NO_FACTS, FileFacts, Member, facts_in_keys
from .options import DEFAULT_OPTIONS, IndexOptions

if TYPE_CHECKING:
    from .store import Index

NEWEST = Choice()
MemberState: TypeAlias = "tuple[Member, Index | IndexJob | UnreadableError]"
"""A file with its index, or what is to be done for that, or why there is none."""
MAX_NAMES = 5
"""So many skipped files are named."""
MAX_OPEN = 16
"""Of more files none is held open between looking at it and reading it."""


class Opened(NamedTuple):
    """The indexes of a trace and the files that they belong to, in the same order. `captures` are all that
    there are, newest first; `current` is the position of the one that is open, None where all are, or where
    files were not grouped into captures. `folders` are those that a user named.
    """

    indexes: tuple[Index, ...]
    members: tuple[Member, ...]
    captures: tuple[Capture, ...] = ()
    current: int | None = None
    folders: tuple[str, ...] = ()

    def facts(self) -> list[dict[str, Any]]:
        """Return where each index lies, its size in bytes, and what it holds."""
        return [
            {
                "path": index.path,
                "index": str(index.folder),
                "index_bytes": sum(file.stat().st_size for file in index.folder.rglob("*") if file.is_file()),
                "events": int(index.read_report["events"]),
                "slices": int(index.read_report["slices"]),
            }
            for index in self.indexes
        ]

    def notes(self) -> list[str]:
        return [note for index in self.indexes for note in index.notes]


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
        else resolve_files(
            paths, choice, options.index_dir, ts_unit=options.ts_unit, progress=progress, cancelled=cancelled
        )
    )
    return open_states(files, states_of(files, options), options, progress=progress, cancelled=cancelled)


def states_of(files: ResolvedFiles, options: IndexOptions = DEFAULT_OPTIONS) -> list[MemberState]:
    """Return each file with its index, or what is to be done for one, or why there is none. Raises
    UnreadableError where a file that was named is none.
    """
    refused = [
        str(member.source)
        for member in files.members
        if isinstance(member.source, UnreadableError) and member.path in files.named
    ]
    if refused:
        raise UnreadableError("; ".join(refused))
    states: list[MemberState] = []
    for member in files.members:
        source = member.source
        if isinstance(source, Source):
            states.append((member, find_index(source, options)))
        else:
            states.append((member, source or UnreadableError(f"{member.path}: is no trace")))
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
    jobs = [one for _, one in states if isinstance(one, IndexJob)]
    try:
        done = index_all(jobs, options, progress=progress, cancelled=cancelled)
    except BaseException:
        for _, one in states:
            if not isinstance(one, IndexJob | UnreadableError):
                one.close()
        raise
    opened = OpenedFiles(files, states, options)
    opened.take(done)
    return opened.all(strictly=True)


class OpenedFiles:
    """The files of a trace, by rank: those whose indexes are there, those that fail. `indexes` are those of
    `members`; of files that are not `ready` they are empty.
    """

    def __init__(self, files: ResolvedFiles, states: Sequence[MemberState], options: IndexOptions) -> None:
        states = sorted(states, key=lambda state: _rank_order(state[0]))
        self.files = files
        self.members = tuple(member for member, _ in states)
        self.indexes = [
            _nothing_of(member.path) if isinstance(one, IndexJob | UnreadableError) else one
            for member, one in states
        ]
        self.failed: dict[int, Exception] = {
            n: one for n, (_, one) in enumerate(states) if isinstance(one, UnreadableError)
        }
        """Why others have none."""
        self._jobs = {one.path: (n, one) for n, (_, one) in enumerate(states) if isinstance(one, IndexJob)}
        self.ready = [
            n for n, (_, one) in enumerate(states) if not isinstance(one, IndexJob | UnreadableError)
        ]
        """Positions in `members` of the files whose indexes are there, in the order in which they came."""
        self._options = options
        self._opened = 0  # of the indexes that were written
        self._events: list[str] = []
        for position in list(self.ready):
            self._skip_without_events(position)

    @property
    def missing(self) -> frozenset[int]:
        """The positions of the files that have no index, be it that they are read or that they cannot be."""
        return frozenset(range(len(self.members))).difference(self.ready)

    def take(self, indexed: Indexed) -> None:
        """Open the indexes that have come since it was called last, and note what has failed."""
        for path in indexed.written[self._opened :]:
            self._open(*self._jobs[path])
        self._opened = len(indexed.written)
        for path, failure in indexed.failed.items():
            self.failed.setdefault(self._jobs[path][0], failure)
        self._events = indexed.events

    def all(self, *, strictly: bool = False) -> Opened:
        """Return what has come once nothing else will; the first one's notes say what is left out, and why
        some files are. Raises why there is nothing; `strictly`: also why one that was named has no index, or
        one has none though its file can be read.
        """
        refused = [error for _, error in sorted(self.failed.items())]
        named = [
            error for n, error in sorted(self.failed.items()) if self.members[n].path in self.files.named
        ]
        grave = [error for error in refused if not isinstance(error, UnreadableError)]
        if not self.ready or (strictly and (named or grave)):
            for position in self.ready:
                self.indexes[position].close()
            if grave or not named:
                raise (grave or refused)[0]
            raise UnreadableError("; ".join(map(str, named)))
        opened = [(_as_opened(self.members[n], self.indexes[n]), self.indexes[n]) for n in sorted(self.ready)]
        opened.sort(key=lambda one: _rank_order(one[0]))
        members, indexes = tuple(member for member, _ in opened), tuple(index for _, index in opened)
        for member, index in opened:
            index.graph_folder = _graph_folder(member.path, self.files.named, self._options, index)
        first = indexes[0]
        first.notes += (
            *self.files.notes,
            *_missing(self.files, members),
            *unfinished_notes(self.files.named),
            *(f"skipped {_named(self.members[n].path, error)}" for n, error in sorted(self.failed.items())),
        )
        first.events += tuple(event for event in self._events if event not in first.events)
        first.notes += tuple(event for event in self._events if event not in first.notes)
        folders = tuple(str(path) for path in self.files.named if os.path.isdir(path))
        return Opened(indexes, members, self.files.captures, self.files.current, folders)

    def _open(self, position: int, job: IndexJob) -> None:
        try:
            source = current_source(job.source)
            location = job.location
            if source is not job.source:
                location = locate(dict(source.fingerprint), self._options.index_dir)
            self.indexes[position] = opened_index(source, location, self._options)
        except TracelaneError as error:
            self.failed[position] = error
            return
        self.ready.append(position)
        self._skip_without_events(position)

    def _skip_without_events(self, position: int) -> None:
        """Drop JSON without events, which is no trace; where it is named alone it opens as an empty one."""
        path, index = self.members[position].path, self.indexes[position]
        is_alone = path in self.files.named and len(self.members) == 1
        if has_no_event_array(index.problems) and not is_alone:
            index.close()
            self.indexes[position] = _nothing_of(path)
            self.ready.remove(position)
            self.failed[position] = UnreadableError(f"{path}: no trace events in it")


class Gathering(OpenedFiles):
    """Files whose indexes come one by one; `close` leaves no process and no half index."""

    def __init__(
        self, files: ResolvedFiles, states: Sequence[MemberState], options: IndexOptions = DEFAULT_OPTIONS
    ) -> None:
        """Take the files that are there and begin with the others; ChildrenError where no process can be
        started.
        """
        ordered = sorted(states, key=lambda state: _rank_order(state[0]))
        jobs = [one for _, one in ordered if isinstance(one, IndexJob)]
        # Before anything heavy is loaded: processes have as much to load themselves.
        self._indexing = Indexing(jobs, options, stands_back=len(states) > 1)
        super().__init__(files, ordered, options)

    @property
    def progress(self) -> Progress:
        return self._indexing.progress

    def doing(self, position: int) -> Progress | None:
        """Return how far a file is, None where no process reads it now."""
        return self._indexing.doing(str(self.members[position].path))

    def await_running(self) -> None:
        self._indexing.await_running()

    def poll(self, wait: float = 0.0) -> bool:
        """Take in which indexes have come, waiting so long for something; True once no other will come.
        Raises CacheError where a process was ended.
        """
        is_over = self._indexing.poll(wait)
        self.take(self._indexing)
        if is_over:
            self.close()  # processes that have nothing to do keep their memory
        return is_over

    def close(self) -> None:
        self._indexing.close()


def pays_gathering(states: Sequence[MemberState]) -> bool:
    """Tell whether indexing what has no index takes long enough for other processes."""
    return sum(one.work for _, one in states if isinstance(one, IndexJob)) >= SEVERAL_WORTH_IT


def _nothing_of(path: str | Path) -> Index:
    import numpy as np

    from .format import TABLES
    from .store import Index

    tables = {name: np.zeros(0, dtype) for name, dtype in TABLES.items()}
    path = path if is_url(path) else str(Path(path).absolute())
    return Index(Path(path), {"path": str(path), "columns": {}, "read_report": {}}, tables)


def _named(path: str | Path, error: Exception) -> str:
    return str(error) if str(path) in str(error) else f"{path}: {error}"


def _graph_folder(
    path: str | Path, named: Sequence[str | Path], options: IndexOptions, index: Index
) -> GraphFolder | None:
    if not is_url(path):
        return graph_folder(path, named, options, False)
    from .producers import may_replay

    return graph_folder(path, named, options, may_replay(index))


def opened_alone(path: str | Path, index: Index) -> Opened:
    index.graph_folder = _graph_folder(path, (), DEFAULT_OPTIONS, index)
    return Opened((index,), (_as_opened(Member(path, ""), index),))


def resolve_files(
    paths: Sequence[str | Path],
    choice: Choice,
    index_dir: Path | None,
    *,
    ts_unit: TsUnit = "us",
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> ResolvedFiles:
    """Return the files that paths and a choice stand for, each looked at once; all files that are named one
    by one, where none says its rank. `ts_unit`: see `open_source`. Raises UnreadableError, UsageError as
    `open_indexes` does, Cancelled.
    """
    named = tuple(paths)
    check_there(named)
    files = expanded(paths)
    together = STDIN not in map(str, files) and (len(files) > 1 or choice != NEWEST)

    def facts_of(source: Source) -> FileFacts:
        if not together or source.kind == "stdin":
            return NO_FACTS
        from .file_facts import file_facts  # what one file says is asked of its index

        return file_facts(source, index_dir)

    def look(path: str | Path) -> tuple[Source | UnreadableError, FileFacts]:
        try:
            source = open_source(path, ts_unit=ts_unit, progress=progress, cancelled=cancelled)
        except UnreadableError as error:
            return error, NO_FACTS
        facts = facts_of(source)
        if len(files) > MAX_OPEN:
            source.close()
        return source, facts

    urls = [path for path in files if is_url(path)]
    looks = dict(zip(urls, each_at_once(look, urls)))
    looks |= {path: look(path) for path in files if path not in looks}
    if not together:
        return ResolvedFiles(tuple(Member(path, "", source=looks[path][0]) for path in files), named=named)
    files, skipped = _without_foreign(files, named, looks)
    members = [
        member._replace(source=looks[member.path][0])
        for member in members_of(files, lambda path: looks[path][1])
    ]
    ranked = any(member.rank is not None for member in members)
    if choice == NEWEST and not ranked and all(path in named for path in files):
        return ResolvedFiles(tuple(members), named=named)
    chosen = choose(captures_of(members), choice)
    return chosen._replace(named=named, notes=chosen.notes + skipped)


def _without_foreign(
    files: Sequence[str | Path],
    named: Sequence[str | Path],
    looks: Mapping[str | Path, tuple[Source | UnreadableError, FileFacts]],
) -> tuple[list[str | Path], tuple[str, ...]]:
    """Return those of the files that were named or hold events, and a note on the others; all where none
    does, of which opening says what they are.
    """
    reasons: dict[str, list[str]] = {}
    for path in files:
        source, facts = looks[path]
        if path not in named and (isinstance(source, UnreadableError) or not facts.has_events):
            refused = str(source).removeprefix(f"{path}: ") if isinstance(source, UnreadableError) else ""
            reasons.setdefault(refused or NO_EVENTS, []).append(str(path))
    foreign = {path for paths in reasons.values() for path in paths}
    left = [path for path in files if str(path) not in foreign]
    if not left or not foreign:
        return list(files), ()
    return left, (skipped_note(reasons),)


NO_EVENTS = "no trace events"
"""Why a file that can be read is skipped."""


def skipped_note(reasons: Mapping[str, Sequence[str]]) -> str:
    """Return the note on files of a folder that are no traces, by reason."""
    texts = [f"{names_text([Path(path).name for path in paths])}: {why}" for why, paths in reasons.items()]
    return f"skipped {'; '.join(texts)}"


def names_text(names: Sequence[str]) -> str:
    """Return some names as text, of many the first."""
    more = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def keep_cached(files: ResolvedFiles, options: IndexOptions) -> None:
    """Count the indexes of files as opened now. A command that opens one input after another says so of all
    of them first, or building an index for one could remove that of the next.
    """
    for member in files.members:
        if isinstance(member.source, Source):
            with suppress(TracelaneError):  # opening it says what is wrong
                location = locate(dict(member.source.fingerprint), options.index_dir)
                if location.exists():
                    touch(location.folder)


def _rank_order(member: Member) -> tuple[bool, int]:
    return member.rank is None, member.rank or 0


def _as_opened(member: Member, index: Index) -> Member:
    """Return the member with what its whole file says: some name their rank after the events."""
    return member if member.rank is not None else member.with_facts(facts_in_keys(index.envelope))


def _missing(files: ResolvedFiles, opened: Sequence[Member]) -> list[str]:
    if files.current is None:
        return []
    by_path = {member.path: member for member in opened}
    capture = files.captures[files.current]
    capture = capture._replace(members=tuple(by_path.get(each.path, each) for each in capture.members))
    return [capture.missing_text] if capture.missing_text else []
