"""The text in an index, of a source that can only be read from its beginning."""

from __future__ import annotations

from ..read.packed_text import CHUNK, unpacked_chunk
from .store import Index


class PackedText:
    """The text of an index by offset; there is none where it was short, or can be read in the source."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._number, self._chunk = -1, b""  # the chunk that was read last
        self.is_there = index.length("text.end") > 0

    def read(self, offset: int, length: int) -> bytes:
        """Return the text at an offset, fewer bytes where it is not there."""
        parts = []
        while length > 0 and (part := self._part(offset, length)):
            parts.append(part)
            offset, length = offset + len(part), length - len(part)
        return b"".join(parts)

    def _part(self, offset: int, length: int) -> bytes:
        number, begin = divmod(offset, CHUNK)
        if number != self._number:
            ends = self._index.column("text.end")
            if number >= len(ends):
                return b""
            first = int(ends[number - 1]) if number else 0
            packed = self._index.column("text.packed")[first : int(ends[number])]
            self._number, self._chunk = number, unpacked_chunk(packed.tobytes()) or b""
        return self._chunk[begin : begin + length]
