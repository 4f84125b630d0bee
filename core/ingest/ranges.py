"""Reading byte ranges of a plain file's event array, so that several workers can share it.

A range [a, b) stands for the events from the first separator at or after a to the first one at or after b.
The separator is sniffed in the head and may by chance also stand in a string or a nested value; then a block
at the wrong boundary cannot decode. By induction from the first event on: if the tail of a range decodes,
the head of the next is right. Where one does not, `joins` says which ranges to read again as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ..base.json_text import odd_byte, structure
from .cut import Scanner
from .cutter import BLOCK_SIZE, Cutter, Decode, Item
from .separator import Separator, guess, sniff
from .source import Source
from .text.reader import TextReader
from .window import Readable, Window

HEAD_SIZE = 1 << 20
"""So much of the array's beginning is looked at for the separator."""
FIRST_LOOK = 128 << 10
"""Where events stand in lines this much of it tells: the first picture waits for it."""

LOOK_BEHIND = 32 << 10
"""So much behind a range is read at once to find the end of its last event."""


@dataclass(frozen=True)
class Region:
    """Where the event array of a plain source begins, and what separates its events."""

    begin: int  # offset of the first byte behind the opening bracket
    size: int  # of the file
    separator: Separator
    form: str  # "object" or "array"
    values: dict[str, Any]  # the keys before the events
    head: Scanner  # the scanner that read the head: its problems belong to the file

    def split(self, part_size: int) -> list[tuple[int, int]]:
        """Return ranges of about `part_size` bytes that tile the array up to the file's end."""
        count = max(1, round((self.size - self.begin) / part_size))
        edges = [self.begin + (self.size - self.begin) * i // count for i in range(count + 1)]
        return list(pairwise(edges))


def region(source: Source, decode: Decode, block_size: int = BLOCK_SIZE) -> Region | None:
    """Find the event array of a plain source, reading only its head; None if it must be read in one go."""
    if not source.seekable:
        return None
    stream = source.open()
    try:
        head = Scanner(stream, decode, block_size)
        form = head.head()
        if form is None:
            return None
        window = head.window
        while window.left < HEAD_SIZE and window.more():
            pass
        begin = window.offset
        separator = _separator(window.data, window.at)
    finally:
        stream.close()
    if separator is None:
        return None
    return Region(begin, source.size, separator, form, dict(head.envelope.values), head)


def _separator(data: bytes, start: int) -> Separator | None:
    found = _sniffed(data[: start + FIRST_LOOK], start)
    if found is not None and b"\n" in found.text[: found.end]:
        return found  # lines tell events apart: keys, of which later ones may have others, are no part of it
    return _sniffed(data, start)


def _sniffed(data: bytes, start: int) -> Separator | None:
    if odd_byte(data, start) is not None:
        found = structure(data, start)
        return guess(data, start) if len(found.ends) < 2 else sniff(data, start, found.ends)
    return sniff(data, start, structure(data, start).ends)


@dataclass(frozen=True)
class RangeEnd:
    """How the reading of one range ended."""

    begin: int  # offset from which events were read: the boundary at or after a
    end: int  # up to where; the boundary at or after b, unless something below is wrong
    head_ok: bool  # the first block decoded, so that the range began between two events
    tail_ok: bool  # so did the last
    array_end: int | None  # offset behind the bracket that closes the array, if it was met
    cut_off: bool  # the file ended before the array did


class _RangeStream:
    """The bytes of a source from one offset to the first separator at or after another."""

    def __init__(self, stream: Readable, limit: int, separator: Separator) -> None:
        self._stream = stream
        self._limit = limit
        self._separator = separator
        self._ready = b""
        self._ready_at = stream.offset
        self._ended = False
        self.file_ended = False
        self.offset = stream.offset

    def read(self, n: int) -> bytes:
        """Return about n bytes; none behind the boundary."""
        if self._ended:
            return b""
        text = self._separator.text
        overlap = len(text) - 1
        while True:
            ready = self._ready_at + len(self._ready)
            wanted = min(n, self._limit - ready) if ready < self._limit else LOOK_BEHIND
            new = self._stream.read(max(wanted, 2 * len(text)))
            data = self._ready + new
            found = data.find(text, max(0, self._limit - self._ready_at))
            if found >= 0:
                self._ended = True
                data = data[: found + self._separator.end]
                break
            if not new:
                self._ended = self.file_ended = True
                break
            if self._ready_at + len(data) > self._limit and len(data) > overlap:
                # A separator may have begun at the end: keep as much back as it could be.
                self._ready = data[len(data) - overlap :]
                data = data[: len(data) - overlap]
            else:
                self._ready = b""
            if data:
                self._ready_at += len(data)
                break
        self.offset += len(data)
        return data


class RangeScanner:
    """Iterate once for the blocks of one range; then `end` says how it went.

    A range that begins at the array's first byte (`first`) needs no separator there.
    """

    def __init__(
        self,
        source: Source,
        a: int,
        b: int,
        separator: Separator,
        decode: Decode,
        block_size: int = BLOCK_SIZE,
        *,
        first: bool = False,
        reader: TextReader | None = None,
    ) -> None:
        self.end: RangeEnd | None = None
        self._source = source
        self._range = (a, b)
        self._separator = separator
        self._decode = decode
        self._block_size = block_size
        self._first = first
        self._reader = reader

    def __iter__(self) -> Iterator[Item]:
        a, b = self._range
        start = a
        if not self._first:
            boundary, start = self._boundary(a)
            if boundary >= b:
                self.end = RangeEnd(start, start, True, True, None, False)
                return
        raw = self._source.open(start)
        try:
            stream = _RangeStream(raw, b, self._separator)
            window = Window(stream, self._block_size)
            cutter = Cutter(
                window,
                self._decode,
                separator=self._separator,
                head_proven=self._first,
                tail_in_doubt=lambda: not stream.file_ended,
                reader=self._reader,
            )
            yield from cutter
            wrong = cutter.wrong_head or cutter.wrong_tail
            self.end = RangeEnd(
                start,
                window.offset,
                not cutter.wrong_head,
                not wrong,
                window.offset if cutter.closed else None,
                stream.file_ended and not cutter.closed and not wrong,
            )
        finally:
            raw.close()

    def _boundary(self, a: int) -> tuple[int, int]:
        """Return where the first separator at or after `a` stands and where the event behind it begins."""
        raw = self._source.open(a)
        text = self._separator.text
        try:
            data = b""
            base = a
            while new := raw.read(self._block_size):
                data += new
                found = data.find(text)
                if found >= 0:
                    return base + found, base + found + self._separator.begin
                keep = min(len(data), len(text) - 1)
                base += len(data) - keep
                data = data[len(data) - keep :]
            return self._source.size, self._source.size
        finally:
            raw.close()


def joins(ends: Sequence[RangeEnd]) -> list[tuple[int, int]]:
    """Return the runs (first, last) of ranges that must be read again as one, as a boundary was wrong.

    What such ranges yielded is void. The caller reads each run as one range from the first one's a to the
    last one's b, puts its end in their place and asks again, until nothing is to be joined. Ranges behind one
    that met the array's end are void, too: see `within`.
    """
    runs: list[tuple[int, int]] = []
    first = 0
    while first < len(ends):
        last = first
        while last + 1 < len(ends) and not (ends[last].tail_ok and ends[last + 1].head_ok):
            if ends[last].tail_ok and ends[last].array_end is not None:
                break
            last += 1
        if last > first:
            runs.append((first, last))
        elif ends[first].array_end is not None:
            break
        first = last + 1
    return runs


def within(ends: Sequence[RangeEnd]) -> int:
    """Return how many of the ranges, from the first on, hold events of the array."""
    for number, end in enumerate(ends):
        if end.array_end is not None:
            return number + 1
    return len(ends)
