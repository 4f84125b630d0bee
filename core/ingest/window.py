"""A bounded window over a stream: what has been read and not yet been used."""

from __future__ import annotations

from typing import Protocol

PAD = 72
"""So many bytes that are done are kept: words are taken from a little beyond events (`text.stretch`)."""


class Readable(Protocol):
    """What a window reads from."""

    @property
    def offset(self) -> int:
        """The offset of the next byte in the whole text."""

    def read(self, n: int) -> bytes:
        """Return the next n bytes; fewer only at the end."""


class Window:
    """Bytes `data` of a stream from offset `base` on; `at` is the place in them up to which all is done."""

    def __init__(self, stream: Readable, block_size: int) -> None:
        self._stream = stream
        self.block_size = block_size
        self.base = stream.offset
        self.data = b""
        self.at = 0
        self.ended = False
        self._held = b""

    @property
    def offset(self) -> int:
        """The offset of `at` in the whole text."""
        return self.base + self.at

    @property
    def left(self) -> int:
        """How many bytes stand from `at` on."""
        return len(self.data) - self.at

    def more(self, size: int = 0) -> bool:
        """Let go of what is done and read at least a block; False when the stream has ended."""
        if self.ended:
            return False
        wanted = max(size, self.block_size)
        done = max(0, self.at - PAD)  # let go of it first: stretches are large, and are read in place
        self.base += done
        self.at -= done
        self.data = self.data[done:]
        new, self._held = self._held[:wanted], self._held[wanted:]
        if not new:
            new = self._stream.read(wanted)
        if not new:
            self.ended = True
            return False
        self.data += new
        return True

    def put_back(self, size: int) -> None:
        """Keep only so many bytes from `at` on; those behind them are read again."""
        end = self.at + size
        if end < len(self.data):
            self._held = self.data[end:] + self._held
            self.data = self.data[:end]
            self.ended = False
