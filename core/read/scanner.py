"""What both scanners have in common: how they are called, and where and why they stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np

from ..base.arrays import U8
from .batch import Batch, ColumnBuffers, StringTable
from .event_writer import EventWriter

PAD = 96
"""So many zero bytes stand behind a text: every read ahead of scan.c ends in them."""


class Reason(Enum):
    """Why a scan stopped."""

    LIMIT = "read to the limit, or to the end of the text"
    TEXT = "the text ends within an element, and goes on elsewhere"
    CLOSED = "the bracket that closes the array"
    LONG = "a very long event"
    REFUSED = "an element that is not sound JSON"


@dataclass(frozen=True)
class ScanStop:
    """Where a scan stopped: places are indices in the text it was given."""

    reason: Reason
    at: int  # behind the last element that was read; with LIMIT, where the next one begins
    begin: int = 0  # where the element or bracket begins that is not read


@dataclass(eq=False)
class ScanText:
    """Some text of a source: `data` holds `size` bytes of it, and PAD zero bytes behind them."""

    data: U8
    offset: int  # in the source, of data[0]
    size: int
    is_last: bool  # the source ends with it

    @classmethod
    def of(cls, text: bytes, offset: int = 0, *, is_last: bool = True) -> ScanText:
        data = np.zeros(len(text) + PAD, np.uint8)
        data[: len(text)] = np.frombuffer(text, np.uint8)
        return cls(data, offset, len(text), is_last)

    def bytes(self, begin: int, end: int) -> bytes:
        return self.data[begin : min(end, self.size)].tobytes()


@dataclass(eq=False)
class ScanWatch:
    """How far a scan has come, and whether it is wanted any more; any thread may look and set."""

    progress: np.ndarray[tuple[int], np.dtype[np.int64]] = field(
        default_factory=lambda: np.zeros(1, np.int64)
    )
    cancel: U8 = field(default_factory=lambda: np.zeros(1, np.uint8))


class Scanner(Protocol):
    """Reads the elements of an event array into the columns of one batch after the other."""

    columns: ColumnBuffers
    writer: EventWriter

    def begin(self) -> None:
        """Begin a batch."""

    def scan(self, text: ScanText, at: int, limit: int, longest: int) -> ScanStop:
        """Read elements from `at`, between two of them, up to the first that begins at or after `limit`.

        Events of more than `longest` bytes are left to the caller. Raises Cancelled.
        """

    def finish(self, number: int, thread: int) -> Batch:
        """Return the batch, as views of memory that the next one uses."""

    def table(self) -> StringTable:
        """Return all strings and tracks so far."""


NewScanner = Callable[[ScanWatch], Scanner]
