"""Files of an index in the making: columns on their way to disk, and room for what is larger than memory."""

from __future__ import annotations

import errno
import mmap
import os
import threading
from pathlib import Path

import numpy as np

from ..base.arrays import AnyArray
from ..base.errors import CacheError
from ..base.private import open_private
from ..read.inflate import deflate_library
from .format import COLUMNS, CRC_BYTES

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
            self._descriptor = open_private(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
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
            crcs, crc32 = [], deflate_library().crc32  # isal's takes a tenth of the time of zlib's
            for offset in range(0, length, CRC_BYTES):
                size = os.preadv(self._descriptor, [buffer], offset)
                crcs.append(crc32(memoryview(buffer)[:size]))
            self.abandon()
        except OSError as error:
            raise _cannot_write(self.path, error) from error
        return {"dtype": self.dtype, "length": length // self._kind.itemsize, "crc": crcs}

    def abandon(self) -> None:
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


class ColumnFiles:
    """All columns of an index in the making, created when first used, by several threads."""

    def __init__(self, folder: Path, category_dtype: str) -> None:
        """Columns lie in `folder`; those of categories have a dtype that holds all of them."""
        self.folder = folder
        self._category_dtype = category_dtype
        self.entries: dict[str, dict[str, object]] = {}
        self._writers: dict[str, ColumnWriter] = {}
        self._lock = threading.Lock()

    def writer(self, name: str, dtype: str | None = None) -> ColumnWriter:
        """Return the column's writer; its dtype is that of the format, or of the first call."""
        with self._lock:
            writer = self._writers.get(name)
            if writer is None:
                dtype = dtype or (self._category_dtype if name.endswith(".category") else COLUMNS[name].dtype)
                writer = self._writers[name] = ColumnWriter(self.folder, name, dtype)
            return writer

    @property
    def unfinished(self) -> tuple[str, ...]:
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
        entry = self.entries[name]
        dtype = np.dtype(str(entry["dtype"]))
        if not entry["length"]:
            return np.empty(0, dtype)
        return np.asarray(np.memmap(self.folder / f"{name}.{entry['dtype']}", dtype, "r"))

    def __enter__(self) -> ColumnFiles:
        return self

    def __exit__(self, *_: object) -> None:
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


_ZEROS = bytes(1 << 20)


class _Memory:
    """Bytes that may still be taken, by several scratches and threads."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Take so many bytes, if they are left."""
        with self._lock:
            is_left = size <= self._left
            self._left -= size * is_left
            return is_left

    def give_back(self, size: int) -> None:
        with self._lock:
            self._left += size


class Scratch:
    """Hands out writable arrays, to several threads; its file has no name, and ends with its last array."""

    def __init__(self, folder: Path, in_memory: int) -> None:
        """So many bytes are taken from memory; what comes after lies in a file in `folder`, whose pages the
        system gives back when it has none left. It is made when it is first needed.
        """
        self._folder = folder
        self._memory, self._size_in_memory = _Memory(in_memory), 0
        self._descriptor = -1
        self._size = 0
        self._lock = threading.Lock()

    def array(self, size: int, dtype: str) -> AnyArray:
        """Return an array of this size; a full disk is a CacheError."""
        kind = np.dtype(dtype)
        length = size * kind.itemsize
        with self._lock:
            if self._memory.take(length):
                self._size_in_memory += length
                return np.empty(size, kind)
            try:
                return np.frombuffer(self._mapping(length), kind, size)
            except OSError as error:
                message = error.strerror or error
                raise CacheError(f"cannot write the index ({self._folder}): {message}") from error

    def inner(self) -> Scratch:
        """Return scratch for one step: its arrays are not used after it, and it shares this one's memory."""
        scratch = Scratch(self._folder, 0)
        scratch._memory = self._memory
        return scratch

    def full(self, size: int, dtype: str, value: int) -> AnyArray:
        array = self.array(size, dtype)
        array.fill(value)
        return array

    def _mapping(self, length: int) -> mmap.mmap:
        if self._descriptor < 0:
            import tempfile

            with tempfile.TemporaryFile(dir=self._folder) as file:
                self._descriptor = os.dup(file.fileno())
        begin = self._size
        self._size += length + -length % mmap.ALLOCATIONGRANULARITY
        # Room is taken now: a full disk must fail here, not in a mapped page.
        _allocate(self._descriptor, begin, self._size)
        return mmap.mmap(self._descriptor, length, offset=begin)

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, *_: object) -> None:
        """Forget the file, which arrays still in use keep, and leave the memory to others."""
        self._memory.give_back(self._size_in_memory)
        self._size_in_memory = 0
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _allocate(descriptor: int, begin: int, end: int) -> None:
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, begin, end - begin)
            return
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                raise
    while begin < end:
        begin += os.pwrite(descriptor, _ZEROS[: end - begin], begin)
