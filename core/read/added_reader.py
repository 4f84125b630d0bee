"""Readers that other packages add: each turns files of its own form into a trace in JSON."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Protocol

from ..base.errors import TracelaneError, UnreadableError
from ..base.installed import READERS, added
from .inflate import ConvertedReader, RawReader
from .problem import Problem

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
    return next((PREFIX + key for key, reader in added(READERS).items() if _fits(reader, name, head)), "")


def _fits(reader: AddedReader, name: str, head: bytes) -> bool:
    try:
        return bool(reader.fits(name, head))
    except Exception as error:  # whatever somebody else's code raises
        warnings.warn(f"{READERS}: asked about {name}, {reader!r} raised {error!r}", stacklevel=2)
        return False


def added_reader(reader: RawReader, encoding: str) -> RawReader:
    """Return a reader of the JSON text that an added reader makes of a file; an error of its own ends the
    text and is a problem of the file.

    Raises UnreadableError where it is no longer installed.
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

    return ConvertedReader(reader, parts(), lambda: problems[0] if problems else None)
