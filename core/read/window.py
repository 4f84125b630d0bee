"""A bounded window over a stream: what has been read and not yet been used."""

from __future__ import annotations

from typing import Protocol

LOOK_BEHIND = 72
"""Bytes before `at` that stay in `data`: some patterns look behind."""


class Readable(Protocol):
    """What a window reads from."""

    @property
    def offset(self) -> int:
        """The offset of the next byte in the whole text."""

    def read(self, n: int) -> bytes:
        """Return the next n bytes; fewer only at the end."""


class Window:
    """Bytes `data` of a stream from offset `base` on; all before `at` is done."""

    def __init__(self, stream: Readable, block_size: int) -> None:
        self._stream = stream
        self.block_size = block_size
        self.base = stream.offset
        self.data = b""
        self.at = 0
        self.ended = False

    @property
    def offset(self) -> int:
        """The offset of `at` in the whole text."""
        return self.base + self.at

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def more(self, size: int = 0) -> bool:
        """Let go of what is done and read at least a block; False when the stream has ended."""
        if self.ended:
            return False
        size_to_read = max(size, self.block_size)
        done = max(0, self.at - LOOK_BEHIND)
        self.base += done
        self.at -= done
        self.data = self.data[done:]
        new = self._stream.read(size_to_read)
        if not new:
            self.ended = True
            return False
        self.data += new
        return True
