"""Several files whose indexes come one by one: those that are there, those on their way, those that fail."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ..base.children import ChildrenError
from ..base.errors import CacheError, TracelaneError, UnreadableError
from ..base.progress import Progress
from ..read.remote_files import is_url
from ..read.source import current_source
from .captures import Member
from .choice import ResolvedFiles
from .format import TABLES
from .indexing import ENDED
from .ingest import cached_index, find_index
from .opening import Opened, add_events, no_trace_error, source_of_member, together
from .options import DEFAULT_OPTIONS, IndexOptions
from .several import WORTH_IT, IndexJob, SeveralIndexing
from .store import Index

MemberState: TypeAlias = "tuple[Member, Index | IndexJob | UnreadableError]"
"""A file with its index, or how to make that, or why there is none."""


class Gathering:
    """The files of a trace, by rank; `close` leaves no process and no half index.

    `indexes` are those of `members`; of files that are not `ready` they are empty.
    """

    def __init__(
        self,
        files: ResolvedFiles,
        states: Sequence[MemberState],
        options: IndexOptions = DEFAULT_OPTIONS,
    ) -> None:
        """Take the files that are there and begin with the others; ChildrenError where no process can be
        started.
        """
        states = sorted(states, key=lambda state: (state[0].rank is None, state[0].rank or 0))
        self.files = files
        self.members = tuple(member for member, _ in states)
        self.indexes = [one if isinstance(one, Index) else _nothing_of(member.path) for member, one in states]
        self.ready = [position for position, (_, one) in enumerate(states) if isinstance(one, Index)]
        """Positions in `members` of the files whose indexes are there, in the order in which they came."""
        self.failed: dict[int, Exception] = {
            position: one for position, (_, one) in enumerate(states) if isinstance(one, Exception)
        }
        """Why others have none."""
        self._positions = {str(member.path): position for position, member in enumerate(self.members)}
        self._index_dir = options.index_dir
        self._opened = 0  # of the indexes that were written
        for position in list(self.ready):
            self._skip_without_events(position)
        jobs = [one for _, one in states if isinstance(one, IndexJob)]
        self._several = SeveralIndexing(jobs, options, stands_back=True)

    @property
    def progress(self) -> Progress:
        """How far all files are together that had no index."""
        return self._several.progress

    def doing(self, position: int) -> Progress | None:
        """Return how far a file is, None where no process reads it now."""
        return self._several.doing(str(self.members[position].path))

    def await_running(self) -> None:
        """Wait until a process has begun; ChildrenError where none does."""
        self._several.await_running()

    def poll(self, wait: float = 0.0) -> bool:
        """Take in which indexes have come, waiting so long for something; True once no other will come.

        Raises CacheError where a process was ended.
        """
        try:
            is_over = self._several.poll(wait)
        except ChildrenError as error:
            raise CacheError(ENDED) from error
        written = self._several.written[self._opened :]
        self._opened += len(written)
        for path in written:
            self._open(self._positions[path])
        for path, failure in self._several.failed.items():
            self.failed.setdefault(self._positions[path], _named(path, failure))
        if is_over:
            self.close()  # processes that have nothing to do keep their memory
        return is_over

    def opened(self) -> Opened:
        """Return what has come once all is over; raises why nothing has where that is so."""
        opened = [(self.members[position], self.indexes[position]) for position in sorted(self.ready)]
        refused = [error for _, error in sorted(self.failed.items())]
        if not opened:
            raise refused[0]
        trace = together(self.files, opened, refused)
        add_events(trace, self._several.events)
        return trace

    def close(self) -> None:
        """End the processes and remove what they have not finished."""
        self._several.close()

    def _open(self, position: int) -> None:
        path = self.members[position].path
        try:
            source = current_source(source_of_member(self.members[position]))
            index = cached_index(source, self._index_dir)
        except TracelaneError as error:
            self.failed[position] = _named(path, error)
            return
        if index is None:
            self.failed[position] = CacheError(f"{path}: its index was written but cannot be opened")
            return
        self.indexes[position] = index
        self.ready.append(position)
        self._skip_without_events(position)

    def _skip_without_events(self, position: int) -> None:
        """Drop a file that can be read but is no trace."""
        path, index = self.members[position].path, self.indexes[position]
        error = no_trace_error(self.files, path, index)
        if error is not None:
            index.close()
            self.indexes[position] = _nothing_of(path)
            self.ready.remove(position)
            self.failed[position] = error


def gather(files: ResolvedFiles, options: IndexOptions = DEFAULT_OPTIONS) -> Gathering | None:
    """Begin to index files in other processes; None where reading them takes but a moment, or where this
    process has to do it (standard input, no folder for an index but a temporary one).

    Raises UnreadableError where a file that was named cannot be opened, ChildrenError.
    """
    states: list[MemberState] = []
    for member in files.members:
        try:
            source = source_of_member(member)
        except UnreadableError as error:
            if member.path in files.named:
                raise
            states.append((member, error))
            continue
        index = None if source.kind == "stdin" else find_index(source, options)
        if isinstance(index, Index):
            states.append((member, index))
        elif index is None or index.temporary:
            return None
        else:
            states.append((member, IndexJob.of(source, index)))
    if sum(one.work for _, one in states if isinstance(one, IndexJob)) < WORTH_IT:
        return None
    return Gathering(files, states, options)


def _nothing_of(path: str | Path) -> Index:
    """Return the index of a file in which nothing has been read yet."""
    tables = {name: np.zeros(0, dtype) for name, dtype in TABLES.items()}
    path = path if is_url(path) else str(Path(path).absolute())
    return Index(Path(path), {"path": str(path), "columns": {}, "read_report": {}}, tables)


def _named(path: str | Path, error: Exception) -> Exception:
    """Return an error whose text names the file."""
    return error if str(path) in str(error) else TracelaneError(f"{path}: {error}")
