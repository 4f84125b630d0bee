"""Checksums of large columns, looked at by a thread while somebody draws what the columns hold."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from ..base.arrays import AnyArray
from ..base.errors import DamagedIndexError
from ..base.threads import LOOK_S, BackgroundThread
from .store import Index

LEAST_BYTES = 1 << 20
"""Checking so many bytes takes a third of a millisecond."""


class Verification:
    """Takes columns when they are used first and checks them one after the other.

    Their values are in bounds already; until `pending` is False they may still be other numbers than those
    that were written, which whoever shows them says.
    """

    def __init__(self, changed: Callable[[], None] = lambda: None, least_bytes: int = LEAST_BYTES) -> None:
        """Start with nothing to check; `changed` is called by the thread when all columns are checked.

        Columns of less than `least_bytes` are checked when they are used first.
        """
        self.least_bytes = least_bytes
        self.damage: DamagedIndexError | None = None
        """What was found to be damaged first."""
        self._waiting: deque[tuple[Index, str, AnyArray]] = deque()
        self._changed = threading.Condition()
        self._running = self._closed = False
        self._thread: BackgroundThread | None = None
        self._tell_changed = changed

    @classmethod
    def of(cls, indexes: Sequence[Index]) -> Verification:
        """Return what looks at columns of these indexes already; else a new one, attached to them."""
        deferred = indexes[0].deferred if indexes else None
        if isinstance(deferred, Verification):
            return deferred
        verification = cls()
        verification.attach(indexes)
        return verification

    def tell(self, changed: Callable[[], None]) -> None:
        """Call `changed` from now on."""
        self._tell_changed = changed

    @property
    def pending(self) -> bool:
        """Whether there are columns that have not been checked."""
        return self._running

    def attach(self, indexes: Iterable[Index]) -> None:
        """Have large columns of these indexes checked here instead of when they are used first."""
        for index in indexes:
            index.deferred = self

    def add(self, index: Index, name: str, values: AnyArray) -> None:
        """Check a column as soon as those before it are done."""
        with self._changed:
            self._waiting.append((index, name, values))
            if not self._running and not self._closed:
                self._thread = BackgroundThread(self._run)
                self._running = True

    def wait(self) -> None:
        """Wait until all columns are checked; raises DamagedIndexError where one is damaged."""
        with self._changed:
            while self._running:
                if not self._changed.wait(LOOK_S) and self._running and self._thread is not None:
                    self._thread.check()
        if self.damage is not None:
            raise self.damage

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._waiting.clear()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._running = False
                    self._changed.notify_all()
                    break
                index, name, values = self._waiting.popleft()
            try:
                index.check_checksums(name, values)
            except DamagedIndexError as error:
                self.damage = self.damage or error
        if not self._closed:
            self._tell_changed()
