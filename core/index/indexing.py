"""An index on its way, as the one who wants it sees it: started, watched, opened, or given up."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ..base import errors
from ..base.children import DECODING, Children, ChildrenError, Message
from ..base.errors import CacheError, TracelaneError
from ..base.progress import Progress
from ..read.source import Source
from .cache import IndexLocation, sweep
from .options import DEFAULT_OPTIONS, IndexOptions

MODULE = "tracelane.core.index.indexer"
START_SECONDS = 20.0
"""A process that says nothing for so long is taken for one that cannot be started."""
ENDED = (
    "the process that builds the index was ended, with one thread too, perhaps for want of memory: "
    "close other programs, or index the trace on a machine with more"
)
PATIENCE_S = 2.0
"""So long the process may take to clear up when its index is not wanted any more."""


def order(
    source: Source, location: IndexLocation, options: IndexOptions, *, pictures: bool
) -> dict[str, Any]:
    """Return the line that orders the index of a source to be built at its location."""
    where = {"source": source.to_message(), "location": str(location.folder)}
    return {**where, "options": options.to_message(), "pictures": pictures}


class Indexing:
    """A process that builds one index; `close` leaves neither a process nor half an index."""

    def __init__(
        self,
        source: Source,
        location: IndexLocation,
        options: IndexOptions = DEFAULT_OPTIONS,
        *,
        pictures: bool = False,
    ) -> None:
        """Start the process, with `pictures` one that draws while it reads; ChildrenError where none can be.

        Whether it runs is known after `await_running` only.
        """
        self.source = source
        self.location = location
        self.progress = Progress("reading", 0, source.size or None)
        self.picture: Path | None = None
        """The newest picture's file (see `coarse.read_coarse`); older ones are removed."""
        self.committed = False
        self._closed = False
        self._pictures = pictures
        self._may_retry = options.threads != 1
        self._options = options
        self._children = self._started()

    def _started(self) -> Children:
        """Start a process, which inherits the open file, and give it the order."""
        descriptors = self.source.descriptors
        message = order(self.source, self.location, self._options, pictures=self._pictures)
        if descriptors:
            message["source"]["descriptor"] = descriptors[0]
        children = Children(1, module=MODULE, environment=DECODING, descriptors=descriptors)
        try:
            children.send(0, message)
        except ChildrenError:
            children.close()
            raise
        return children

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._children.pids[0]

    def await_running(self) -> None:
        """Wait until the process has begun; ChildrenError where it does not."""
        until = time.monotonic() + START_SECONDS
        while self._children.receive() is None:
            if time.monotonic() > until:
                raise ChildrenError("a process was started and does not answer")

    def poll(self, wait: float = 0.0) -> bool:
        """Take in what the process has told, waiting so long for something; True once the index is committed.

        A process that is killed, as for want of memory, is started once more with one thread. Raises what
        went wrong there: UnreadableError, CacheError.
        """
        while not self.committed:
            try:
                received = self._children.receive(wait)
            except ChildrenError as error:
                if not self._may_retry:
                    raise CacheError(ENDED) from error
                self._retry()
                continue
            if received is None:
                break
            wait = 0.0
            self._take(received[1])
        return self.committed

    def _retry(self) -> None:
        """Start a process that takes least memory in location of the one that was killed."""
        self._may_retry = False
        self._children.close()
        sweep(self.location.folder.parent)
        self._options = self._options.with_threads(1)
        self.location = self.location.with_events((retry_event(self.source.path),))
        self.progress = Progress("reading", 0, self.source.size or None)
        try:
            self._children = self._started()
        except ChildrenError as error:
            raise CacheError(ENDED) from error

    def close(self) -> None:
        """End the process and remove what it has not finished."""
        if self._closed:
            return
        self._closed = True
        self._children.close(0.0 if self.committed else PATIENCE_S)
        if not self.committed:
            sweep(self.location.folder.parent)

    def _take(self, message: Message) -> None:
        if "progress" in message:
            self.progress = Progress(*message["progress"])
        elif "picture" in message:
            self.picture = Path(message["picture"])
        elif "committed" in message:
            self.committed = True
            self.location = self.location.with_events(message["events"])
        elif "failed" in message:
            raise as_raised(message)


def retry_event(path: str | Path) -> str:
    """Return what is said where an index was built with one thread because a process was killed."""
    return f"{path}: its indexing was killed, perhaps for want of memory, and was repeated with one thread"


def as_raised(message: Message) -> Exception:
    """Return what a process that indexes told of its failing as what it was there."""
    kind = getattr(errors, message["failed"], None) if message["failed"] else None
    if kind is None:
        error = RuntimeError(message["message"])
        error.add_note(message.get("trace", ""))
        return error
    tracelane_error: TracelaneError = kind(message["message"])
    return tracelane_error
