"""Readers of a file's text from front to back: as it stands, and made of other forms. Other packages add
readers that turn files of their own form into a trace in JSON.
"""

from __future__ import annotations

import codecs
import importlib
import warnings
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from types import ModuleType
from typing import IO, Any, Protocol, TypeAlias

from ..base.errors import TracelaneError, UnreadableError
from ..base.installed import READERS, added
from .problem import SOUND, Problem

Piece: TypeAlias = bytes | memoryview
"""Some text, which nobody changes."""
RAW_BLOCK = 128 * 1024
"""Bytes of the file that are inflated at a time."""


@cache
def deflate_library() -> ModuleType:
    """Return `isal.isal_zlib`, three times as fast as zlib, or zlib itself where there is no wheel of it."""
    try:
        return importlib.import_module("isal.isal_zlib")
    except ImportError:
        return zlib


class Openable(Protocol):
    """A file that can be opened: a path, or one that lies elsewhere."""

    def open(self, mode: str, buffering: int = -1, /) -> IO[Any]:
        """Open it; OSError."""


class RawReader(ABC):
    """Inflated bytes from front to back."""

    offset = 0
    """How many bytes have been read or passed over."""
    doubt = SOUND
    """Whether what was read of packed data may be wrong, once that is known."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.problems: list[Problem] = []
        """What was wrong with packed data, and what was passed over, once it has been met."""

    @abstractmethod
    def _read(self, n: int) -> bytes:
        """Return the next n bytes; fewer only at the end."""

    def read(self, n: int) -> bytes:
        """Return the next n bytes; fewer only at the end."""
        data = self._read(n)
        self.offset += len(data)
        return data

    def read_some(self, n: int) -> Piece:
        """Return some of the next n bytes, as many as come without being put together; none at the end."""
        return self.read(n)

    def position_on_disk(self) -> int:
        """Return how many bytes of the file have been used."""
        return self._file.tell()

    def close(self) -> None:
        self._file.close()

    def skip(self, n: int) -> None:
        while n > 0 and (data := self.read(min(n, RAW_BLOCK))):
            n -= len(data)


class PlainReader(RawReader):
    """The file as it stands."""

    def _read(self, n: int) -> bytes:
        data = self._file.read(n) or b""
        while len(data) < n and (part := self._file.read(n - len(data))):
            data += part
        return data

    def skip(self, n: int) -> None:
        self._file.seek(n, 1)
        self.offset += n


class ConvertedReader(RawReader):
    """The UTF-8 text that something makes of a reader's bytes, part by part. `own_problems` tells what was
    wrong while it was made.
    """

    def __init__(
        self,
        reader: RawReader,
        parts: Iterable[bytes],
        own_problems: Callable[[], list[Problem]] = list,
    ) -> None:
        self._reader = reader
        self._parts = iter(parts)
        self._own_problems = own_problems
        self._ready = bytearray()
        self.problems = []

    def _read(self, n: int) -> bytes:
        while len(self._ready) < n and (part := next(self._parts, None)) is not None:
            self._ready += part
        data = bytes(self._ready[:n])
        del self._ready[:n]
        self.problems = [*self._reader.problems, *self._own_problems()]
        self.doubt = self._reader.doubt
        return data

    def position_on_disk(self) -> int:
        return self._reader.position_on_disk()

    def close(self) -> None:
        self._reader.close()


def utf16_reader(reader: RawReader, encoding: str) -> RawReader:
    """Return a reader of UTF-16 as UTF-8; what is no UTF-16 becomes U+FFFD."""

    def parts() -> Iterator[bytes]:
        decoder = codecs.getincrementaldecoder(encoding)("replace")
        while raw := reader.read(RAW_BLOCK):
            yield decoder.decode(raw).encode("utf-8", "replace")
        yield decoder.decode(b"", True).encode("utf-8", "replace")

    return ConvertedReader(reader, parts())


PREFIX = "reader:"
"""How the encoding of a source begins that such a reader turns to JSON; its name follows."""


class AddedReader(Protocol):
    """What an entry point of `tracelane.readers` names."""

    def fits(self, name: str, head: bytes) -> bool:
        """Tell by a file's name and its first bytes, unpacked, whether it is of this form; never JSON."""

    def convert(self, file: RawReader) -> Iterable[bytes]:
        """Yield the text of a trace in JSON; `file.read(n)` gives the unpacked bytes from front to back. Each
        time a file is opened the text is the same, to the byte.
        """


def added_encoding(name: str, head: bytes) -> str:
    """Return the encoding of a file that an added reader knows, "" where none does."""
    return next((PREFIX + key for key, reader in added(READERS).items() if _fits(reader, name, head)), "")


def _fits(reader: AddedReader, name: str, head: bytes) -> bool:
    try:
        return bool(reader.fits(name, head))
    except Exception as error:  # whatever somebody else's code raises
        warnings.warn(f"{READERS}: asked about {name}, {reader!r} raised {error!r}", stacklevel=2)
        return False


def added_reader(reader: RawReader, encoding: str) -> RawReader:
    """Return a reader of the JSON text that an added reader makes of a file; an error of its own ends the
    text and is a problem of the file. Raises UnreadableError where it is no longer installed.
    """
    name = encoding.removeprefix(PREFIX)
    if name not in added(READERS):
        raise UnreadableError(f"the reader {name!r} is no longer installed")
    problems: list[Problem] = []

    def parts() -> Iterator[bytes]:
        try:
            yield from added(READERS)[name].convert(reader)
        except TracelaneError:
            raise
        except Exception as error:  # whatever somebody else's code raises
            problems.append(Problem("reader failed", 1, None, f"the reader {name!r} failed: {error!r}"))

    return ConvertedReader(reader, parts(), lambda: problems)
