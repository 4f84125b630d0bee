"""Files whose indexes come one by one: those that are there, those on their way, those that fail."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import TracelaneError, UnreadableError
from ..base.progress import Progress
from ..read.remote_files import is_url
from ..read.source import current_source
from .cache import locate
from .choice import ResolvedFiles
from .indexing import WORTH_IT, Indexing, IndexJob
from .ingest import opened_index
from .opening import MemberState, Opened, add_events, no_trace_error, together
from .options import DEFAULT_OPTIONS, IndexOptions

if TYPE_CHECKING:
    from .store import Index


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
        self._jobs = {n: one for n, (_, one) in enumerate(states) if isinstance(one, IndexJob)}
        # Before anything heavy is loaded: processes have as much to load themselves.
        self._indexing = Indexing(list(self._jobs.values()), options, stands_back=len(states) > 1)
        self.files = files
        self.members = tuple(member for member, _ in states)
        self.indexes = [
            _nothing_of(member.path) if isinstance(one, IndexJob | UnreadableError) else one
            for member, one in states
        ]
        self.failed: dict[int, Exception] = {
            position: one for position, (_, one) in enumerate(states) if isinstance(one, UnreadableError)
        }
        """Why others have none."""
        self.ready = [n for n in range(len(states)) if n not in self._jobs and n not in self.failed]
        """Positions in `members` of the files whose indexes are there, in the order in which they came."""
        self._positions = {job.path: position for position, job in self._jobs.items()}
        self._index_dir = options.index_dir
        self._opened = 0  # of the indexes that were written
        for position in list(self.ready):
            self._skip_without_events(position)

    @property
    def progress(self) -> Progress:
        """How far all files are together that had no index."""
        return self._indexing.progress

    def doing(self, position: int) -> Progress | None:
        """Return how far a file is, None where no process reads it now."""
        return self._indexing.doing(str(self.members[position].path))

    def await_running(self) -> None:
        """Wait until a process has begun; ChildrenError where none does."""
        self._indexing.await_running()

    def poll(self, wait: float = 0.0) -> bool:
        """Take in which indexes have come, waiting so long for something; True once no other will come.

        Raises CacheError where a process was ended.
        """
        is_over = self._indexing.poll(wait)
        written = self._indexing.written[self._opened :]
        self._opened += len(written)
        for path in written:
            self._open(self._positions[path])
        for path, failure in self._indexing.failed.items():
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
        add_events(trace, self._indexing.events)
        return trace

    def close(self) -> None:
        """End the processes and remove what they have not finished."""
        self._indexing.close()

    def _open(self, position: int) -> None:
        job = self._jobs[position]
        try:
            source = current_source(job.source)
            location = (
                job.location if source is job.source else locate(dict(source.fingerprint), self._index_dir)
            )
            index = opened_index(source, location)
        except TracelaneError as error:
            self.failed[position] = _named(job.path, error)
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


def pays_gathering(states: Sequence[MemberState]) -> bool:
    """Tell whether indexing what has no index takes long enough for other processes."""
    return sum(one.work for _, one in states if isinstance(one, IndexJob)) >= WORTH_IT


def _nothing_of(path: str | Path) -> Index:
    """Return the index of a file in which nothing has been read yet."""
    import numpy as np

    from .format import TABLES
    from .store import Index

    tables = {name: np.zeros(0, dtype) for name, dtype in TABLES.items()}
    path = path if is_url(path) else str(Path(path).absolute())
    return Index(Path(path), {"path": str(path), "columns": {}, "read_report": {}}, tables)


def _named(path: str | Path, error: Exception) -> Exception:
    """Return an error whose text names the file."""
    return error if str(path) in str(error) else TracelaneError(f"{path}: {error}")
