"""Readers that other packages add: each turns files of its own form into a trace in JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from ..base.added import READERS, added
from ..base.errors import UnreadableError
from .inflate import RawReader

PREFIX = "reader:"
"""How the encoding of a source begins that such a reader turns to JSON; its name follows."""


class AddedReader(Protocol):
    """What an entry point of `tracelane.readers` names."""

    def fits(self, name: str, head: bytes) -> bool:
        """Tell by a file's name and its first bytes, unpacked, whether it is of this form; never JSON."""

    def convert(self, file: RawReader) -> Iterable[bytes]:
        """Yield the text of a trace in JSON; `file.read(n)` gives the unpacked bytes from front to back.

        Each time a file is opened the text is the same, to the byte.
        """


def added_encoding(name: str, head: bytes) -> str:
    """Return the encoding of a file that an added reader knows, "" where none does."""
    readers: Iterator[tuple[str, AddedReader]] = iter(added(READERS).items())
    return next((PREFIX + key for key, reader in readers if reader.fits(name, head)), "")


class ConvertedReader(RawReader):
    """The JSON text that an added reader makes of a file."""

    def __init__(self, reader: RawReader, encoding: str) -> None:
        name = encoding.removeprefix(PREFIX)
        if name not in added(READERS):
            raise UnreadableError(f"the reader {name!r} is no longer installed")
        self._reader = reader
        self._parts = iter(added(READERS)[name].convert(reader))
        self._ready = bytearray()

    def position_on_disk(self) -> int:
        return self._reader.position_on_disk()

    def close(self) -> None:
        self._reader.close()

    def read(self, n: int) -> bytes:
        for part in self._parts if len(self._ready) < n else ():
            self._ready += part
            if len(self._ready) >= n:
                break
        data = bytes(self._ready[:n])
        del self._ready[:n]
        self.damage = self._reader.damage
        return data
