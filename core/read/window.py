"""A bounded window over a text: what has been read and not yet been used."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Read: TypeAlias = Callable[[int, int], bytes]
"""Returns the text at an offset, so many bytes of it; fewer only at its end."""
LOOK_BEHIND = 72
"""Bytes before `at` that stay in `data`: some patterns look behind."""


class Window:
    """Bytes `data` of a text from offset `base` on; all before `at` is done."""

    def __init__(self, read: Read, begin: int, block_size: int) -> None:
        self._read = read
        self.block_size = block_size
        self.base = begin
        self.data = b""
        self.at = 0
        self.ended = False

    @property
    def offset(self) -> int:
        return self.base + self.at

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def more(self, size: int = 0) -> bool:
        """Let go of what is done and read at least a block; False when the text has ended."""
        if self.ended:
            return False
        done = max(0, self.at - LOOK_BEHIND)
        self.base += done
        self.at -= done
        self.data = self.data[done:]
        new = self._read(self.base + len(self.data), max(size, self.block_size))
        if not new:
            self.ended = True
            return False
        self.data += new
        return True
