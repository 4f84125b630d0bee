"""The arguments of many events: read in one pass through the source, then available in any order."""

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

EventArguments = tuple[int, dict[str, Any]]
"""The ordinal of an event, and its arguments."""


def events_with_arguments(
    index: Index,
    ordinals: I64,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> Iterator[list[EventArguments]]:
    """Yield, block by block in file order, those of these events (ascending) that have arguments. The end of
    a pair of events counts for its begin. Raises UnreadableError where the source has gone or changed,
    Cancelled.
    """
    begins, ends = _pairs(index, ordinals)
    chosen = np.unique(np.concatenate([ordinals, ends])) if len(ends) else ordinals
    begin_of = dict(zip(ends.tolist(), begins.tolist()))
    first = index.column("blocks.ordinal").astype(np.int64)
    count = index.column("blocks.count").astype(np.int64)
    low, high = np.searchsorted(chosen, first), np.searchsorted(chosen, first + count)
    lengths = index.column("blocks.length")
    blocks = np.flatnonzero((high > low) & (lengths <= LARGEST))
    total, done = int(lengths[blocks].sum()), 0
    for block, data in read_blocks(index, blocks.tolist(), cancelled):
        progress(Progress("reading arguments", done, total))
        done += len(data)
        elements = elements_of(data, bool(index.column("blocks.repaired")[block]))
        base = int(first[block])
        inside = chosen[low[block] : high[block]] - base
        events: list[EventArguments] = []
        for at in inside[inside < len(elements)].tolist():
            element = elements[at]
            if isinstance(element, dict) and (arguments := arguments_in(element)):
                events.append((base + at, arguments))
        if begin_of:
            events = [(begin_of.get(ordinal, ordinal), arguments) for ordinal, arguments in events]
        yield events


def _pairs(index: Index, ordinals: I64) -> tuple[I64, I64]:
    """Return (begins, ends) of those of these events that have an end event."""
    positions = index.column("ends.position").astype(np.int64)
    begins = index.column("slices.ordinal")[positions].astype(np.int64)
    chosen = np.isin(begins, ordinals)
    return begins[chosen], index.column("ends.ordinal").astype(np.int64)[chosen]


class ArgumentStore:
    """The arguments of a source's events, encoded, in a temporary file, by the event's ordinal."""

    def __init__(
        self,
        index: Index,
        ordinals: I64,
        encode: Callable[[dict[str, Any]], bytes],
        progress: ProgressCallback = no_progress,
        cancelled: CancelledCallback = never,
    ) -> None:
        """Read the arguments of these events (ascending) and store them as `encode` returns them."""
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        numbers, lengths = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for events in events_with_arguments(index, ordinals, progress, cancelled):
            texts = [encode(arguments) for _, arguments in events]
            self._file.write(b"".join(texts))
            numbers.append(np.array([ordinal for ordinal, _ in events], np.int64))
            lengths.append(np.array([len(text) for text in texts], np.int64))
        self._file.flush()
        length = np.concatenate(lengths)
        ends = np.cumsum(length)
        ordinal = np.concatenate(numbers)
        order = np.argsort(ordinal, kind="stable")
        self._ordinals, self._begins, self._ends = ordinal[order], (ends - length)[order], ends[order]
        size = int(length.sum())
        self._data = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""

    def texts(self, ordinals: I64) -> list[bytes]:
        """Return the encoded arguments of each of these events, those of its end event behind its own."""
        low = np.searchsorted(self._ordinals, ordinals)
        high = np.searchsorted(self._ordinals, ordinals, "right")
        data, begins, ends = self._data, self._begins, self._ends
        texts = [b""] * len(ordinals)
        for half in (0, 1):
            having = np.flatnonzero(high - low > half)
            entries = low[having] + half
            for at, begin, end in zip(having.tolist(), begins[entries].tolist(), ends[entries].tolist()):
                texts[at] += data[begin:end]
        return texts

    def close(self) -> None:
        """Let go of the file."""
        if isinstance(self._data, mmap.mmap):
            self._data.close()
        self._file.close()
