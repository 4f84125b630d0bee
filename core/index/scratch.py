"""Room for columns on their way: in memory while small, else mapped files in the build's own folder."""

from __future__ import annotations

import mmap
import shutil
from pathlib import Path
from types import TracebackType

import numpy as np

from ..base.errors import CacheError
from ..base.mapped import let_go
from ..ingest.columns import AnyArray

IN_MEMORY = 32 << 20
"""Bytes kept in memory altogether; what comes after lies in files."""


class Scratch:
    """Hands out writable arrays and removes their files in the end."""

    def __init__(self, folder: Path, in_memory: int = IN_MEMORY) -> None:
        """Files lie in `folder`/scratch, made when first needed."""
        self._folder = folder / "scratch"
        self._left = in_memory
        self._files = 0
        self._mappings: list[mmap.mmap] = []

    def array(self, size: int, dtype: str, fill: int | None = None) -> AnyArray:
        """Return an array of this size, holding `fill` if given; a full disk is a CacheError."""
        kind = np.dtype(dtype)
        bytes_ = size * kind.itemsize
        if bytes_ <= self._left:
            self._left -= bytes_
            return np.empty(size, kind) if fill is None else np.full(size, fill, kind)
        try:
            self._folder.mkdir(exist_ok=True)
            path = self._folder / f"{self._files}"
            self._files += 1
            with path.open("wb") as file:
                # Written out rather than left sparse: a full disk must fail here, not in a mapped page.
                piece = np.full(1 << 18, 0 if fill is None else fill, kind)
                for at in range(0, size, len(piece)):
                    file.write(piece[: size - at].data.cast("B"))
            with path.open("r+b") as file:
                mapping = mmap.mmap(file.fileno(), bytes_)
        except OSError as error:
            raise CacheError(f"cannot write the index ({self._folder}): {error.strerror or error}") from error
        self._mappings.append(mapping)
        return np.frombuffer(mapping, kind)

    def let_go(self) -> None:
        """Give back the memory of all mapped arrays, which stay as they are."""
        for mapping in self._mappings:
            let_go(mapping)

    def __enter__(self) -> Scratch:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the files; arrays still in use keep their mappings."""
        shutil.rmtree(self._folder, ignore_errors=True)
