"""Whether a trace is written to its end, as far as can be told without reading its events."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ..base.errors import UnreadableError
from .source import Source, open_source

END = 64 * 1024
"""Bytes at either end in which a bracket is looked for."""
BLOCK = 1 << 20
CLOSED_BY: Final = {b"{": b"}", b"[": b"]"}


def lacking(path: str | Path) -> str:
    """Return what a file lacks of a whole trace, "" where nothing: it ends in the bracket that closes its
    first one, and packed data inflates to its end.
    """
    try:
        source = open_source(path)
        first, last = _ends(source) if source.seekable else _ends_read_through(source)
    except UnreadableError as error:
        return str(error).removeprefix(f"{path}: ")
    return "" if first and CLOSED_BY.get(first) == last else "ends in the middle"


def _ends(source: Source) -> tuple[bytes, bytes]:
    head = source.read_range(source.text_start, END)
    tail = source.read_range(max(0, source.size - END), END)
    return head.lstrip()[:1], tail.rstrip()[-1:]


def _ends_read_through(source: Source) -> tuple[bytes, bytes]:
    """Return the first and the last letter of inflated text; none where it is cut off."""
    first = last = b""
    stream = source.open()
    try:
        while data := stream.read(BLOCK):
            first = first or data.lstrip()[:1]
            last = data.rstrip()[-1:] or last
        return (b"", b"") if stream.damage is not None else (first, last)
    finally:
        stream.close()
