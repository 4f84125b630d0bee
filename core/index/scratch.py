"""Room for columns on their way: in memory while small, else in one mapped file that vanishes by itself."""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
import threading
from pathlib import Path
from types import TracebackType

import numpy as np

from ..base.arrays import AnyArray
from ..base.errors import CacheError

IN_MEMORY = 80 << 20
"""Bytes that are taken from memory altogether; what comes after lies in the file."""
_ZEROS = bytes(1 << 20)


class Scratch:
    """Hands out writable arrays, to several threads; its file has no name, and ends with its last array."""

    def __init__(self, folder: Path, in_memory: int = IN_MEMORY) -> None:
        """The file lies in `folder`, made when it is first needed."""
        self._folder = folder
        self._left = in_memory
        self._descriptor = -1
        self._size = 0
        self._lock = threading.Lock()

    def array(self, size: int, dtype: str) -> AnyArray:
        """Return an array of this size; a full disk is a CacheError."""
        kind = np.dtype(dtype)
        length = size * kind.itemsize
        with self._lock:
            if length <= self._left:
                self._left -= length
                return np.empty(size, kind)
            try:
                return np.frombuffer(self._mapping(length), kind, size)
            except OSError as error:
                message = error.strerror or error
                raise CacheError(f"cannot write the index ({self._folder}): {message}") from error

    def full(self, size: int, dtype: str, value: int) -> AnyArray:
        """Return an array of this size that holds `value` everywhere."""
        array = self.array(size, dtype)
        array.fill(value)
        return array

    def _mapping(self, length: int) -> mmap.mmap:
        if self._descriptor < 0:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                self._descriptor = os.dup(file.fileno())
        begin = self._size
        self._size += length + -length % mmap.ALLOCATIONGRANULARITY
        # Room is taken now: a full disk must fail here, not in a mapped page.
        _allocate(self._descriptor, begin, self._size)
        return mmap.mmap(self._descriptor, length, offset=begin)

    def __enter__(self) -> Scratch:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Forget the file; arrays still in use keep it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _allocate(descriptor: int, begin: int, end: int) -> None:
    """Set blocks of a file aside, all zero."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, begin, end - begin)
            return
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                raise
    while begin < end:
        begin += os.pwrite(descriptor, _ZEROS[: end - begin], begin)
