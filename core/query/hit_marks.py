"""The cells with hits on a line that stands for many rows, from sorted starts and ends that are cached by
line.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import I64, AnyArray
from ..index.format import RowKind
from .cells import clipped_edges
from .lookup import starts_of
from .ranges import ragged

if TYPE_CHECKING:
    from .hits import Hits

CACHE_BYTES = 64 << 20
"""The most bytes that all cached starts and ends may take."""

RowSpan = tuple[int, int, int]
"""The rows [first, stop) of a source, by number."""


class HitMarks:
    """The hits of one search, by the rows that lines stand for."""

    def __init__(self, hits: Hits) -> None:
        self.hits = hits
        self._cache: OrderedDict[tuple[RowSpan, ...], tuple[I64, I64]] = OrderedDict()
        self._bytes = 0

    def touched(self, rows: Sequence[RowSpan], edges: Sequence[int] | I64) -> AnyArray:
        """Return a boolean for each of the W cells between W + 1 edges (trace time): whether a hit of these
        rows lies in it.
        """
        bounds = clipped_edges(edges)
        starts, ends = self._sorted(tuple(rows))
        # Hits that begin before a cell's end, less those that end before its start, overlap it.
        begun = np.searchsorted(starts, bounds[1:], "left")
        ended = np.searchsorted(ends, bounds[:-1], "right")
        touched: AnyArray = begun > ended
        return touched

    def _sorted(self, rows: tuple[RowSpan, ...]) -> tuple[I64, I64]:
        """Return the sorted starts and the sorted ends of the hits of these rows; an empty hit counts as 1 ns
        long.
        """
        cached = self._cache.get(rows)
        if cached is not None:
            self._cache.move_to_end(rows)
            return cached
        starts, ends = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for source in sorted({span[0] for span in rows}):
            numbers = [np.arange(first, stop) for own, first, stop in rows if own == source]
            begin, length = self._of_rows(source, np.concatenate(numbers))
            starts.append(begin)
            ends.append(begin + np.maximum(length, 1))
        bounds = np.sort(np.concatenate(starts)), np.sort(np.concatenate(ends))
        self._cache[rows] = bounds
        self._bytes += 2 * bounds[0].nbytes
        while self._bytes > CACHE_BYTES and len(self._cache) > 1:
            self._bytes -= 2 * self._cache.popitem(last=False)[1][0].nbytes
        return bounds

    def _of_rows(self, source: int, numbers: I64) -> tuple[I64, I64]:
        """Return (starts in trace time, durations) of the hits of these rows of a source."""
        index, own = self.hits.indexes[source], self.hits.positions[source]
        rows = index.rows[numbers]
        slices = (rows["kind"] == RowKind.SLICES) & (rows["count"] > 0)
        numbers, rows = numbers[slices], rows[slices]
        first = rows["first"].astype(np.uint32)
        begins = np.searchsorted(own, first).astype(np.int64)
        stops = np.searchsorted(own, first + rows["count"].astype(np.uint32)).astype(np.int64)
        some = stops > begins
        if not some.any():
            return np.empty(0, np.int64), np.empty(0, np.int64)
        at = own[ragged(begins[some], stops[some])[0]].astype(np.int64)
        return starts_of(index, at, self.hits.offsets[source]), index.duration(at)
