"""Room for columns on their way: in memory while small, else mapped files that vanish by themselves."""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np

from ..base.errors import CacheError
from ..base.mapped import let_go
from ..ingest.columns import AnyArray

IN_MEMORY = 80 << 20
"""Bytes kept in memory altogether; what comes after lies in files."""
_PIECE = 1 << 18


class Scratch:
    """Hands out writable arrays; their files have no names, and end with the last use of the array."""

    def __init__(self, folder: Path, in_memory: int = IN_MEMORY) -> None:
        """Files lie in `folder`, made when first needed."""
        self._folder = folder
        self._in_memory = self._left = in_memory
        self._others: list[Scratch] = []
        self._mappings: list[mmap.mmap] = []

    def array(self, size: int, dtype: str, fill: int | None = None) -> AnyArray:
        """Return an array of this size, holding `fill` if given; a full disk is a CacheError."""
        kind = np.dtype(dtype)
        bytes_ = size * kind.itemsize
        if bytes_ <= self._left:
            self._left -= bytes_
            return np.empty(size, kind) if fill is None else np.full(size, fill, kind)
        try:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                # Room is taken now: a full disk must fail here, not in a mapped page.
                if fill or not _allocated(file, bytes_):
                    piece = np.full(_PIECE, fill or 0, kind)
                    for at in range(0, size, _PIECE):
                        file.write(piece[: size - at].data.cast("B"))
                    file.flush()
                mapping = mmap.mmap(file.fileno(), bytes_)
        except OSError as error:
            raise CacheError(f"cannot write the index ({self._folder}): {error.strerror or error}") from error
        self._mappings.append(mapping)
        return np.frombuffer(mapping, kind)

    def another(self, share: int = 1) -> Scratch:
        """Return one for what is needed for a while only, with so many times this one's memory."""
        scratch = Scratch(self._folder, share * self._in_memory)
        self._others.append(scratch)
        return scratch

    def let_go(self) -> None:
        """Give back the memory of all mapped arrays, which stay as they are."""
        for mapping in self._mappings:
            let_go(mapping)
        for other in self._others:
            other.let_go()

    def __enter__(self) -> Scratch:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Forget the files; arrays still in use keep theirs."""
        self._mappings.clear()


def _allocated(file: BinaryIO, size: int) -> bool:
    """Set blocks aside for a file, all zero, where the system can."""
    if not hasattr(os, "posix_fallocate"):
        return False
    try:
        os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.EOPNOTSUPP):
            return False
        raise
    return True
