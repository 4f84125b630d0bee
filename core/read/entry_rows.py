"""The entries of histories: the newest are in memory, all before them in a file without a name."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterator
from typing import IO, NamedTuple

AT_HAND = 1 << 16
"""Entries of a history in memory."""


class EntryBlock(NamedTuple):
    """Some entries in a row, a column for each field. Actions, stacks and extras are numbers of what is held
    once; bytes, addresses, ns.
    """

    action: array[int]
    stack: array[int]
    extra: array[int]
    addr: array[int]
    size: array[int]
    stream: array[int]
    time: array[int]

    @classmethod
    def empty(cls) -> EntryBlock:
        return cls(*(array(code) for code in "iiiqqqq"))


class EntryFile:
    """A temporary file of blocks; it is made for the first."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._end = 0

    def write(self, block: EntryBlock) -> int:
        """Append a block and return where it begins. Raises OSError on a full disk."""
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        begin = self._end
        self._file.seek(begin)
        for column in block:
            self._end += self._file.write(column.tobytes())
        return begin

    def read(self, begin: int, count: int) -> EntryBlock:
        """Return the block of `count` entries that begins at a place."""
        assert self._file is not None
        self._file.seek(begin)
        block = EntryBlock.empty()
        for column in block:
            column.frombytes(self._file.read(count * column.itemsize))
        return block

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class EntryRows:
    """The entries of one history, in order."""

    def __init__(self, file: EntryFile, at_hand: int = AT_HAND) -> None:
        self._file = file
        self._at_hand = at_hand
        self._written: list[int] = []
        self._newest = EntryBlock.empty()

    def __len__(self) -> int:
        return len(self._written) * self._at_hand + len(self._newest.action)

    def add(self, *entry: int) -> None:
        """Append an entry: its fields in the order of EntryBlock. Raises OSError on a full disk."""
        for column, number in zip(self._newest, entry, strict=True):
            column.append(number)
        if len(self._newest.action) == self._at_hand:
            self._written.append(self._file.write(self._newest))
            self._newest = EntryBlock.empty()

    def blocks(self) -> Iterator[EntryBlock]:
        """Yield all entries, block by block."""
        for begin in self._written:
            yield self._file.read(begin, self._at_hand)
        yield self._newest
