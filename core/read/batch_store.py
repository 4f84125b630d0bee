"""Batches that wait for the builder in files without a name; columns come back when asked for."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..base.arrays import AnyArray
from ..base.errors import CacheError
from .batch import Batch

NEVER_NARROWED = frozenset({"id_value"})
"""ColumnBuffers whose values the builder changes: a smaller dtype may not hold what they become."""


class Extent(NamedTuple):
    """Where an array lies in the file."""

    offset: int
    length: int  # entries
    dtype: str


class StoreFile:
    """One temporary file that arrays are appended to, by several threads."""

    def __init__(self, folder: Path) -> None:
        """Make the file in a folder; CacheError where none can be written."""
        try:
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by `free`
        except OSError as error:
            raise CacheError(f"cannot write to {folder}: {error.strerror}") from error
        self._folder = folder
        self._lock = threading.Lock()
        self._end = 0

    def free(self) -> None:
        """Free the file; what was read from it stays."""
        self._file.close()

    def write(self, arrays: Sequence[AnyArray]) -> list[Extent]:
        """Append some arrays; CacheError on a full disk."""
        size = sum(array.nbytes for array in arrays)
        with self._lock:
            offset, self._end = self._end, self._end + size
        extents = []
        buffers = []
        for array in arrays:
            extents.append(Extent(offset, len(array), array.dtype.str))
            offset += array.nbytes
            if array.nbytes:
                buffers.append(np.ascontiguousarray(array).data.cast("B"))
        self._write_all(buffers, offset - size)
        return extents

    def _write_all(self, buffers: list[memoryview], offset: int) -> None:
        most = os.sysconf("SC_IOV_MAX")
        try:
            while buffers:
                written = os.pwritev(self._file.fileno(), buffers[:most], offset)
                offset += written
                while buffers and written >= len(buffers[0]):
                    written -= len(buffers.pop(0))
                if written:
                    buffers[0] = buffers[0][written:]
        except OSError as error:
            raise CacheError(f"cannot write to {self._folder}: {error.strerror}") from error

    def read(self, extent: Extent) -> AnyArray:
        array = np.empty(extent.length, extent.dtype)
        view = array.data.cast("B") if extent.length else memoryview(b"")
        size = 0
        while size < len(view):
            count = os.preadv(self._file.fileno(), [view[size:]], extent.offset + size)
            if not count:
                raise CacheError(f"what was written to {self._folder} is gone")
            size += count
        return array


class BatchStore:
    """The files of all batches of a source; a context manager that frees them."""

    def __init__(self, folder: Path) -> None:
        """Make the files in a folder; CacheError where none can be written."""
        self.events = StoreFile(folder)
        """The columns of events."""
        self.others = StoreFile(folder)
        """Promoted arguments and blocks, which the builder needs longer."""

    def free_events(self) -> None:
        """Free the columns of events, once nobody reads them any more: their memory is used again by what is
        written next, where memory that nobody has touched yet costs several times as much.
        """
        self.events.free()

    def __enter__(self) -> BatchStore:
        return self

    def __exit__(self, *_: object) -> None:
        """Free the files; what was read from them stays."""
        self.events.free()
        self.others.free()


class StoredColumns(Mapping[str, AnyArray]):
    """The columns of one table; each is read when it is asked for."""

    def __init__(self, store: StoreFile, extents: Mapping[str, Extent]) -> None:
        self._store = store
        self._extents = extents

    def __getitem__(self, name: str) -> AnyArray:
        return self._store.read(self._extents[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._extents)

    def __len__(self) -> int:
        return len(self._extents)


def store_batch(batch: Batch, store: BatchStore) -> Batch:
    """Write the columns of a batch; return it with columns that are read when asked for. Whole numbers may
    have smaller dtypes then.
    """
    tables = dict(batch.tables)
    promoted = _stored({**batch.promoted, "blocks": tables.pop("blocks", {})}, store.others)
    blocks = promoted.pop("blocks")
    return replace(batch, tables={**_stored(tables, store.events), "blocks": blocks}, promoted=promoted)


def _stored(tables: Mapping[str, Mapping[str, AnyArray]], file: StoreFile) -> dict[str, StoredColumns]:
    named = [(table, name, values) for table, columns in tables.items() for name, values in columns.items()]
    extents = file.write(
        [values if name in NEVER_NARROWED else narrowed(values) for _, name, values in named]
    )
    of_tables: dict[str, dict[str, Extent]] = {table: {} for table in tables}
    for (table, name, _), extent in zip(named, extents):
        of_tables[table][name] = extent
    return {table: StoredColumns(file, own) for table, own in of_tables.items()}


def narrowed(values: AnyArray) -> AnyArray:
    """Return whole numbers in the smallest dtype that holds them, all else as it is."""
    if values.dtype.kind == "f" or values.dtype.itemsize == 1 or not len(values):
        return values
    low, high = values.min(), values.max()
    dtype = np.result_type(np.min_scalar_type(low), np.min_scalar_type(high))
    return values.astype(dtype) if dtype.itemsize < values.itemsize else values
