"""Several files whose indexes come one by one: those that are there, those on their way, those that fail."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

import numpy as np

from ..base.children import ChildrenError
from ..base.errors import CacheError, TracelaneError, UnreadableError
from ..base.progress import Progress
from ..remote.files import is_url
from .captures import Member
from .format import TABLES
from .indexing import ENDED
from .ingest import cached_index, wanted_index
from .opening import Meant, Opened, add_events, not_meant, together
from .options import DEFAULT_OPTIONS, IndexOptions
from .several import WORTH_IT, IndexJob, SeveralIndexing
from .store import Index

Found: TypeAlias = "tuple[Member, Index | IndexJob | UnreadableError]"


class Gathering:
    """The files of a trace, by rank; a context manager that leaves no process and no half index.

    `indexes` are those of `members`; of files that are not `ready` they are empty.
    """

    def __init__(
        self,
        meant: Meant,
        found: Sequence[Found],
        options: IndexOptions = DEFAULT_OPTIONS,
    ) -> None:
        """Take the files that are there and begin with the others; ChildrenError where no process can be
        started.
        """
        found = sorted(found, key=lambda one: (one[0].rank is None, one[0].rank or 0))
        self.meant = meant
        self.members = tuple(member for member, _ in found)
        self.indexes = [one if isinstance(one, Index) else _nothing_of(member.path) for member, one in found]
        self.ready = [place for place, (_, one) in enumerate(found) if isinstance(one, Index)]
        """Places of the files whose indexes are there, in the order in which they came."""
        self.failed: dict[int, Exception] = {
            place: one for place, (_, one) in enumerate(found) if isinstance(one, Exception)
        }
        """Why others have none."""
        self._places = {member.path: place for place, member in enumerate(self.members)}
        self._index_dir = options.index_dir
        self._taken = 0  # of what was written
        for place in list(self.ready):
            self._pass_by(place)
        jobs = [one for _, one in found if isinstance(one, IndexJob)]
        self._several = SeveralIndexing(jobs, options, stands_back=True)

    def __enter__(self) -> Gathering:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what goes on."""
        self.close()

    @property
    def progress(self) -> Progress:
        """How far all files are together that had no index."""
        return self._several.progress

    def doing(self, place: int) -> Progress | None:
        """Return how far a file is, None where nobody is at it."""
        return self._several.doing(self.members[place].path)

    def await_running(self) -> None:
        """Wait until a process has begun; ChildrenError where none does."""
        self._several.await_running()

    def poll(self, wait: float = 0.0) -> bool:
        """Take in which indexes have come, waiting so long for something; True once no other will come.

        Raises CacheError where a process was ended.
        """
        try:
            over = self._several.poll(wait)
        except ChildrenError as error:
            raise CacheError(ENDED) from error
        written = self._several.written[self._taken :]
        self._taken += len(written)
        for path in written:
            self._take(self._places[path])
        for path, failure in self._several.failed.items():
            self.failed.setdefault(self._places[path], _named(path, failure))
        if over:
            self.close()  # processes that have nothing to do keep their memory
        return over

    def opened(self) -> Opened:
        """Return what has come once all is over; raises why nothing has where that is so."""
        found = [(self.members[place], self.indexes[place]) for place in sorted(self.ready)]
        refused = [error for _, error in sorted(self.failed.items())]
        if not found:
            raise refused[0]
        opened = together(self.meant, found, refused)
        add_events(opened, self._several.events)
        return opened

    def close(self) -> None:
        """End the processes and remove what they have not finished."""
        self._several.close()

    def _take(self, place: int) -> None:
        path = self.members[place].path
        try:
            index = cached_index(path, index_dir=self._index_dir, source=self.members[place].source)
        except TracelaneError as error:
            self.failed[place] = _named(path, error)
            return
        if index is None:
            self.failed[place] = CacheError(f"{path}: its index was written but cannot be opened")
            return
        self.indexes[place] = index
        self.ready.append(place)
        self._pass_by(place)

    def _pass_by(self, place: int) -> None:
        """Drop a file that is no trace."""
        path, index = self.members[place].path, self.indexes[place]
        error = not_meant(self.meant, path, index)
        if error is not None:
            index.close()
            self.indexes[place] = _nothing_of(path)
            self.ready.remove(place)
            self.failed[place] = error


def gather(meant: Meant, options: IndexOptions = DEFAULT_OPTIONS) -> Gathering | None:
    """Begin to index files, where there are any to wait for; None where reading them takes but a moment, or
    where whoever asks has to do it (standard input, no place for an index but a temporary one).

    Raises UnreadableError where a file that was named cannot be opened, ChildrenError.
    """
    found: list[Found] = []
    for member in meant.members:
        path = member.path
        if not is_url(path) and not os.path.isfile(path):
            return None
        try:
            wanted = wanted_index(path, options, source=member.source)
        except UnreadableError as error:
            if path in meant.asked:
                raise
            found.append((member, error))
            continue
        if isinstance(wanted, Index):
            found.append((member, wanted))
        elif wanted[1].temporary:
            return None
        else:
            found.append((member, IndexJob.of(path, *wanted)))
    if sum(one.work for _, one in found if isinstance(one, IndexJob)) < WORTH_IT:
        return None
    return Gathering(meant, found, options)


def _nothing_of(path: str | Path) -> Index:
    """Return the index of a file in which nothing has been read yet."""
    tables = {name: np.zeros(0, dtype) for name, dtype in TABLES.items()}
    path = path if is_url(path) else str(Path(path).absolute())
    return Index(Path(path), {"path": str(path), "columns": {}, "ledger": {}}, tables)


def _named(path: str | Path, error: Exception) -> Exception:
    """Return an error that tells of which file it speaks."""
    return error if str(path) in str(error) else TracelaneError(f"{path}: {error}")
