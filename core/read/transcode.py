"""UTF-16 text read as UTF-8."""

from __future__ import annotations

import codecs

from .inflate import RawReader
from .problem import Problem


class Utf16Reader(RawReader):
    """Transcodes a reader's UTF-16 step by step; what is no UTF-16 becomes U+FFFD."""

    def __init__(self, reader: RawReader, encoding: str) -> None:
        self._reader = reader
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._ready = b""
        self._ended = False

    @property
    def damage(self) -> Problem | None:
        """What was wrong with the compressed data below."""
        return self._reader.damage

    def read(self, n: int) -> bytes:
        """Return the next n bytes of UTF-8; fewer only at the end."""
        parts = [self._ready]
        length = len(self._ready)
        while length < n and not self._ended:
            raw = self._reader.read(max(n, 4))
            self._ended = not raw
            part = self._decoder.decode(raw, self._ended).encode("utf-8", "replace")
            parts.append(part)
            length += len(part)
        data = b"".join(parts)
        self._ready = data[n:]
        return data[:n]

    def position_on_disk(self) -> int:
        """Return how many bytes of the file have been used."""
        return self._reader.position_on_disk()

    def close(self) -> None:
        """Let go of the file."""
        self._reader.close()
