"""Columns on their way to disk: appended piece by piece, with a CRC per megabyte for the manifest."""

from __future__ import annotations

import zlib
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np

from ..base.errors import CacheError
from ..ingest.columns import AnyArray

CRC_BYTES = 1 << 20
"""Bytes of a column under one CRC."""
_GATHER = 1 << 16
"""Smaller pieces are collected up to this many bytes before they are written."""


class ColumnWriter:
    """One column file `<name>.<dtype>`."""

    def __init__(self, folder: Path, name: str, dtype: str) -> None:
        """Create the file; a full or unwritable disk is a CacheError, here and later."""
        self.name, self.dtype, self.length = name, dtype, 0
        self._kind = np.dtype(dtype)
        self.path = folder / f"{name}.{dtype}"
        self._crcs: list[int] = []
        self._crc = 0
        self._filled = 0  # bytes in the open megabyte
        self._small = bytearray()
        try:
            self._file: BinaryIO = self.path.open("wb", buffering=0)
        except OSError as error:
            raise _cannot_write(self.path, error) from error

    def append(self, values: AnyArray) -> None:
        """Write values after those before; they are converted to the column's dtype."""
        if not len(values):
            return
        self.length += len(values)
        raw = np.ascontiguousarray(values, self._kind).data.cast("B")
        if len(self._small) + len(raw) < _GATHER:
            self._small += raw
            return
        self._flush()
        self._write(raw)

    def _flush(self) -> None:
        if self._small:
            self._write(memoryview(bytes(self._small)))
            self._small.clear()

    def _write(self, raw: memoryview) -> None:
        at = 0
        while at < len(raw):
            step = min(CRC_BYTES - self._filled, len(raw) - at)
            self._crc = zlib.crc32(raw[at : at + step], self._crc)
            self._filled += step
            at += step
            if self._filled == CRC_BYTES:
                self._crcs.append(self._crc)
                self._crc = self._filled = 0
        try:
            while len(raw):
                raw = raw[self._file.write(raw) :]
        except OSError as error:
            raise _cannot_write(self.path, error) from error

    def close(self) -> dict[str, object]:
        """Write what is left and return the column's entry for the manifest."""
        self._flush()
        if self._filled:
            self._crcs.append(self._crc)
            self._filled = 0
        try:
            self._file.close()
        except OSError as error:
            raise _cannot_write(self.path, error) from error
        return {"dtype": self.dtype, "length": self.length, "crc": self._crcs}

    def abandon(self) -> None:
        """Close the file without caring for what is in it."""
        self._file.close()


class Columns:
    """All columns of an index in the making, created when first used."""

    def __init__(self, folder: Path) -> None:
        """Columns lie in `folder`."""
        self.folder = folder
        self._writers: dict[str, ColumnWriter] = {}
        self.entries: dict[str, dict[str, object]] = {}

    def writer(self, name: str, dtype: str) -> ColumnWriter:
        """Return the column's writer; its dtype is that of the first call."""
        found = self._writers.get(name)
        if found is None:
            found = self._writers[name] = ColumnWriter(self.folder, name, dtype)
        return found

    def finish(self, *names: str) -> None:
        """Close these columns (all when none is named), so that they can be read back."""
        for name in names or tuple(self._writers):
            writer = self._writers.pop(name, None)
            if writer is not None:
                self.entries[name] = writer.close()

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
