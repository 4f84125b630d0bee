"""The arguments of many events, read through the source once in its order, taken out again in any order."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np

from ..base.arrays import I64
from ..base.progress import CancelledCallback, Progress, ProgressCallback, never, no_progress
from ..index.blockstore import read_blocks
from ..index.store import Index
from ..query.args import LARGEST, arguments_in, elements_of

BUFFER = 1 << 20


def events_with_arguments(
    index: Index,
    ordinals: I64,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (ordinal, arguments) of those of these events (ascending) that have any, in file order.

    The end of a pair of events counts for its begin. Raises UnreadableError where the source has gone or
    changed, Cancelled.
    """
    begins, ends = _pairs(index, ordinals)
    asked = np.unique(np.concatenate([ordinals, ends])) if len(ends) else ordinals
    begin_of = dict(zip(ends.tolist(), begins.tolist()))
    first = index.column("blocks.ordinal").astype(np.int64)
    count = index.column("blocks.count").astype(np.int64)
    low, high = np.searchsorted(asked, first), np.searchsorted(asked, first + count)
    lengths = index.column("blocks.length")
    blocks = np.flatnonzero((high > low) & (lengths <= LARGEST))
    total, done = int(lengths[blocks].sum()), 0
    for block, data in read_blocks(index, blocks.tolist(), cancelled):
        progress(Progress("reading arguments", done, total))
        done += len(data)
        elements = elements_of(data, bool(index.column("blocks.repaired")[block]))
        for ordinal in asked[low[block] : high[block]].tolist():
            place = ordinal - int(first[block])
            element = elements[place] if place < len(elements) else None
            arguments = arguments_in(element) if isinstance(element, dict) else {}
            if arguments:
                yield begin_of.get(ordinal, ordinal), arguments


def _pairs(index: Index, ordinals: I64) -> tuple[I64, I64]:
    """Return (begins, ends) of those of these events that have an end event."""
    positions = index.column("ends.position").astype(np.int64)
    begins = index.column("slices.ordinal")[positions].astype(np.int64)
    chosen = np.isin(begins, ordinals)
    return begins[chosen], index.column("ends.ordinal").astype(np.int64)[chosen]


class ArgumentStore:
    """What was made of the arguments of a source's events, in a temporary file, by the event's ordinal."""

    def __init__(
        self,
        index: Index,
        ordinals: I64,
        encode: Callable[[dict[str, Any]], bytes],
        progress: ProgressCallback = no_progress,
        cancelled: CancelledCallback = never,
    ) -> None:
        """Read the arguments of these events (ascending) and keep what `encode` makes of them."""
        self._file: IO[bytes] = tempfile.TemporaryFile(buffering=BUFFER)  # noqa: SIM115 - closed by close()
        self._ordinals = ordinals
        self._begins = np.zeros((2, len(ordinals)), np.int64)  # of the event, and of the end of its pair
        self._lengths = np.zeros((2, len(ordinals)), np.int64)
        at = 0
        for ordinal, arguments in events_with_arguments(index, ordinals, progress, cancelled):
            data = encode(arguments)
            place = int(np.searchsorted(ordinals, ordinal))
            half = int(self._lengths[0, place] > 0)
            self._begins[half, place], self._lengths[half, place] = at, len(data)
            self._file.write(data)
            at += len(data)
        self._file.flush()
        self._data = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) if at else None

    def reader(self, ordinals: I64) -> Callable[[int], bytes]:
        """Return what gives, for the k-th of these events, what was made of its arguments; else nothing."""
        data = self._data
        if data is None:
            return lambda at: b""
        places = np.searchsorted(self._ordinals, ordinals)
        begins, lengths = self._begins[:, places].tolist(), self._lengths[:, places].tolist()

        def read(at: int) -> bytes:
            first = data[begins[0][at] : begins[0][at] + lengths[0][at]]
            return first + data[begins[1][at] : begins[1][at] + lengths[1][at]] if lengths[1][at] else first

        return read

    def close(self) -> None:
        """Let go of the file."""
        if self._data is not None:
            self._data.close()
        self._file.close()
