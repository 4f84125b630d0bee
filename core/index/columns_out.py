"""Columns on their way to disk: appended or put at their place, with a CRC per megabyte for the manifest."""

from __future__ import annotations

import os
import threading
import zlib
from pathlib import Path
from types import TracebackType

import numpy as np

from ..base.arrays import AnyArray
from ..base.errors import CacheError

CRC_BYTES = 1 << 20
"""Bytes of a column under one CRC."""
_GATHER = 1 << 16
"""Smaller pieces that are appended are collected up to this many bytes before they are written."""


class ColumnWriter:
    """One column file `<name>.<dtype>`."""

    def __init__(self, folder: Path, name: str, dtype: str) -> None:
        """Create the file; a full or unwritable disk is a CacheError, here and later."""
        self.name, self.dtype, self.length = name, dtype, 0
        self._kind = np.dtype(dtype)
        self.path = folder / f"{name}.{dtype}"
        self._small = bytearray()
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise _cannot_write(self.path, error) from error

    def append(self, values: AnyArray) -> None:
        """Write values after those before; they are converted to the column's dtype."""
        if not len(values):
            return
        raw = np.ascontiguousarray(values, self._kind).data.cast("B")
        if len(self._small) + len(raw) < _GATHER:
            self._small += raw
        else:
            self._flush()
            self._write(raw, self.length * self._kind.itemsize)
        self.length += len(values)

    def put(self, first: int, values: AnyArray) -> None:
        """Write values, the first of them at `first`, on any thread; such a column is not appended to."""
        raw = np.ascontiguousarray(values, self._kind).data.cast("B")
        self._write(raw, first * self._kind.itemsize)

    def _flush(self) -> None:
        if self._small:
            self._write(memoryview(self._small), self.length * self._kind.itemsize - len(self._small))
            self._small = bytearray()

    def _write(self, raw: memoryview, offset: int) -> None:
        try:
            while len(raw):
                written = os.pwrite(self._descriptor, raw, offset)
                raw, offset = raw[written:], offset + written
        except OSError as error:
            raise _cannot_write(self.path, error) from error

    def close(self) -> dict[str, object]:
        """Write what is left and return the column's entry for the manifest."""
        self._flush()
        try:
            length = os.fstat(self._descriptor).st_size
            buffer = bytearray(min(CRC_BYTES, length))
            crcs = []
            for offset in range(0, length, CRC_BYTES):
                size = os.preadv(self._descriptor, [buffer], offset)
                crcs.append(zlib.crc32(memoryview(buffer)[:size]))
            self.abandon()
        except OSError as error:
            raise _cannot_write(self.path, error) from error
        return {"dtype": self.dtype, "length": length // self._kind.itemsize, "crc": crcs}

    def abandon(self) -> None:
        """Close the file without caring for what is in it."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


class Columns:
    """All columns of an index in the making, created when first used, by several threads."""

    def __init__(self, folder: Path) -> None:
        """Columns lie in `folder`."""
        self.folder = folder
        self.entries: dict[str, dict[str, object]] = {}
        self._writers: dict[str, ColumnWriter] = {}
        self._lock = threading.Lock()

    def writer(self, name: str, dtype: str) -> ColumnWriter:
        """Return the column's writer; its dtype is that of the first call."""
        with self._lock:
            writer = self._writers.get(name)
            if writer is None:
                writer = self._writers[name] = ColumnWriter(self.folder, name, dtype)
            return writer

    @property
    def unfinished(self) -> tuple[str, ...]:
        """The columns that can still be written to."""
        return tuple(self._writers)

    def finish(self, *names: str) -> None:
        """Close these columns (all when none is named), so that they can be read back; those without a writer
        are passed by.
        """
        for name in names or self.unfinished:
            writer = self._writers.get(name)
            if writer is not None:
                self.entries[name] = writer.close()
                del self._writers[name]

    def read(self, name: str) -> AnyArray:
        """Return a finished column, mapped read-only."""
        entry = self.entries[name]
        dtype = np.dtype(str(entry["dtype"]))
        if not entry["length"]:
            return np.empty(0, dtype)
        return np.asarray(np.memmap(self.folder / f"{name}.{entry['dtype']}", dtype, "r"))

    def __enter__(self) -> Columns:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every file, finished or not."""
        for writer in self._writers.values():
            writer.abandon()
        self._writers.clear()


def smallest_unsigned(greatest: int) -> str:
    """Return the smallest of u1, u2, u4 that holds 0..greatest."""
    return "u1" if greatest < 1 << 8 else "u2" if greatest < 1 << 16 else "u4"


def smallest_integer(least: int, greatest: int) -> str:
    """Return the smallest of i1, u1, i2, u2, i4, u4, i8 that holds least..greatest."""
    for bits in (8, 16, 32):
        for sign in "iu":
            low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if sign == "i" else (0, (1 << bits) - 1)
            if low <= least and greatest <= high:
                return f"{sign}{bits // 8}"
    return "i8"


def _cannot_write(path: Path, error: OSError) -> CacheError:
    return CacheError(f"cannot write the index ({path}): {error.strerror or error}")
