"""Text that cannot be read from the middle of its file, packed while it is read once from front to back: in
chunks of equal length, each by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ..base.arrays import U8, AnyArray
from .batch_store import Extent, StoreFile
from .inflate import Piece, deflate_library

CHUNK = 256 << 10
"""Bytes of text that are packed together."""
WORTH = 8 << 20
"""A text shorter than this is inflated again faster than anybody asks, and none of it is packed."""
LEVEL = 1


class PackedTextLog:
    """The chunks of a text in their order; packed they lie in a file. Text that is not there, before `start`,
    counts as zeros.
    """

    def __init__(self, store: StoreFile, start: int = 0, worth: int = WORTH) -> None:
        self._store, self._worth = store, worth
        self._waiting = bytearray(start)
        self._chunks: list[Extent] = []

    def add(self, piece: Piece) -> None:
        """Take the next text; an empty piece is its end. Raises CacheError on a full disk."""
        self._waiting += piece
        if not self._chunks and len(self._waiting) < self._worth:
            if not piece:
                self._waiting.clear()
            return
        length = len(self._waiting)
        whole = length - length % CHUNK if piece else length
        with memoryview(self._waiting) as text:
            for begin in range(0, whole, CHUNK):
                packed = deflate_library().compress(text[begin : min(begin + CHUNK, whole)], LEVEL)
                self._chunks += self._store.write([np.frombuffer(packed, np.uint8)])
        del self._waiting[:whole]

    def columns(self) -> Mapping[str, AnyArray]:
        """Return the columns of the chunks, none where there is none."""
        return {"end": np.cumsum([chunk.length for chunk in self._chunks])} if self._chunks else {}

    def packed(self) -> Iterator[U8]:
        """Yield the packed chunks, of which column `end` says where each ends."""
        for chunk in self._chunks:
            yield self._store.read(chunk)


def unpacked_chunk(packed: bytes) -> bytes | None:
    """Return a chunk of the text, None where that is none."""
    library = deflate_library()
    try:
        text: bytes = library.decompressobj().decompress(packed, CHUNK + 1)
    except library.error:
        return None
    return text if len(text) <= CHUNK else None
