"""A file of this machine that is opened once, however many read it."""

from __future__ import annotations

import io
import os
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any


class LocalFile:
    """Opened when somebody reads it first, and held until `close`: all read the same file, even where its
    name has come to stand for another one meanwhile.
    """

    has_ranges = True

    def __init__(self, path: Path, descriptor: int | None = None) -> None:
        """Read the file at a path; `descriptor`: it is open already, as this process was given it."""
        self.path = path
        self._lock = threading.Lock()
        self._descriptor = descriptor
        self._closing = None if descriptor is None else weakref.finalize(self, os.close, descriptor)

    @property
    def held(self) -> int | None:
        """The open file, None while it is not held."""
        return self._descriptor

    @property
    def descriptor(self) -> int:
        """The open file; its position is nobody's. Raises OSError."""
        with self._lock:
            if self._descriptor is None:
                self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
                self._closing = weakref.finalize(self, os.close, self._descriptor)
            return self._descriptor

    def open(self, mode: str = "rb", buffering: int = -1, /) -> IO[Any]:
        """Return a reader with a position of its own. Raises OSError."""
        reader: Any = _Reader(self)
        return io.BufferedReader(reader) if buffering else reader

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fill a buffer with what stands at an offset; return how much there was. Raises OSError."""
        size = 0
        while size < len(buffer) and (count := os.preadv(self.descriptor, [buffer[size:]], offset + size)):
            size += count
        return size

    def is_still(self, fingerprint: Mapping[str, int | str]) -> bool:
        """Tell whether size and time of the file are those of a fingerprint."""
        try:
            status = os.stat(self.path)
        except OSError:
            return False
        return (status.st_size, status.st_mtime_ns) == (fingerprint["size"], fingerprint.get("mtime_ns"))

    def status(self) -> os.stat_result:
        """Return the state of the file that is read, whatever its name stands for now. Raises OSError."""
        return os.fstat(self.descriptor)

    def to_message(self) -> dict[str, Any]:
        """Return what another process must know to read it, an heir of the open file where one is held."""
        return {"path": str(self.path), "descriptor": self.held}

    def close(self) -> None:
        """Let go of the file while nobody reads it; the next reader opens it again."""
        with self._lock:
            if self._closing is not None:
                self._closing()
            self._descriptor = self._closing = None


class _Reader(io.RawIOBase):
    """Reads a file from its own position on; closing it leaves the file open."""

    def __init__(self, file: LocalFile) -> None:
        self._file = file
        self._descriptor = file.descriptor
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = os.preadv(self._descriptor, [buffer], self._position)
        self._position += count
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position}
        begin = base[whence] if whence in base else os.fstat(self._descriptor).st_size
        self._position = begin + offset
        return self._position

    def tell(self) -> int:
        return self._position
