"""Where the text of a deflated file can be inflated from, noted while it is read once from front to back:
every megabyte a bit of the file, and the 32 KB of text before it, packed. That this suffices shows zlib's own
https://github.com/madler/zlib/blob/master/examples/zran.c: deflated text refers no farther back (RFC 1951).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping

import numpy as np

from ..base.arrays import U8, AnyArray
from .batch_store import Extent, StoreFile
from .inflate import deflate_library
from .inflate_native import WINDOW, Checkpoint, InflateError

SPACING = 1000 << 10
"""Bytes of text between two checkpoints, at least; a little more is what two calls inflate."""
LEVEL = 1


class CheckpointLog:
    """Checkpoints in the order of the text; their windows lie in a file."""

    def __init__(self, store: StoreFile, spacing: int = SPACING) -> None:
        self._store, self._spacing = store, spacing
        self._next = 0
        self._entries: list[tuple[int, int, int, int]] = []
        self._windows: list[Extent] = []

    def is_due(self, text: int) -> bool:
        """Tell whether the last checkpoint is too far from a place in the text."""
        return text >= self._next

    @property
    def is_empty(self) -> bool:
        """Whether there is no checkpoint yet; what is stored has none."""
        return not self._entries

    def add(self, checkpoint: Checkpoint) -> None:
        """Take note of a checkpoint behind those before. Raises CacheError on a full disk."""
        text, block, bit, window = checkpoint
        packed = np.frombuffer(deflate_library().compress(window, LEVEL), np.uint8)
        self._windows += self._store.write([packed])
        self._entries.append((text, block, bit, zlib.crc32(window)))
        self._next = text + self._spacing

    def columns(self) -> Mapping[str, AnyArray]:
        """Return the columns of the checkpoints, none where there is none."""
        if not self._entries:
            return {}
        text, block, bit, crc = np.array(self._entries, np.int64).T
        ends = np.cumsum([extent.length for extent in self._windows])
        return {"text": text, "block": block, "bit": bit, "crc": crc, "window": ends}

    def windows(self) -> Iterator[U8]:
        """Yield the packed windows, of which column `window` says where each ends."""
        for extent in self._windows:
            yield self._store.read(extent)


def unpacked_window(packed: bytes, crc: int) -> bytes:
    """Return the window of a checkpoint. Raises InflateError where it is not the one that was packed."""
    library = deflate_library()
    try:
        window: bytes = library.decompressobj().decompress(packed, WINDOW + 1)
    except library.error as error:
        raise InflateError(f"a window is damaged: {error}") from error
    if len(window) > WINDOW or zlib.crc32(window) != crc:
        raise InflateError("a window does not match its checksum")
    return window
