"""Rows of which a filter leaves some slices, drawn by the same queries as whole rows; where the hits of a
search lie on a line that stands for many rows, from starts and ends that are cached by line.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import I64, AnyArray
from ..index.format import ROW, RowKind
from ..index.pyramid import category_sums, longest, sums_begin
from ..index.store import Index
from .busy import UNION_ROWS
from .cells import Cells, clipped_edges, ragged, row_cells
from .lookup import starts_of
from .views import Lane

if TYPE_CHECKING:
    from .hits import Hits


CACHE_BYTES = 64 << 20
"""Bytes of memory that cached views, or cached starts and ends of hits, take together at most."""


class _Compacted(Index):
    """The slices of one row that a filter leaves, as an index of one row in memory."""

    def __init__(self, index: Index, row_number: int, indices: I64) -> None:
        row = index.rows[row_number]
        positions = int(row["first"]) + indices
        ns = index.duration(positions)
        starts = index.column("slices.start")[positions]
        kinds, local = np.unique(index.column("slices.category")[positions], return_inverse=True)
        count = np.array([len(indices)], np.int64)
        sums = category_sums(count, ns, local, max(1, len(kinds)))
        self._columns = {
            "slices.start": starts,
            "slices.duration": ns,  # whole: none is long
            "long.position": np.empty(0, np.uint32),
            "slices.category": index.column("slices.category")[positions],
            "row_categories": kinds.astype(np.uint32),
            "category_sums": sums.sums,
            "pyramid.longest": longest(count, ns),
        }
        self.rows = np.zeros(1, ROW)
        self.rows["kind"], self.rows["count"] = RowKind.SLICES, len(indices)
        self.rows["category_count"] = len(kinds)
        self.rows["sums"] = sums_begin(np.zeros(1, np.int64), sums.sums_count)
        if len(indices):
            self.rows["start"], self.rows["end"] = starts[0], starts[-1] + ns[-1]

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self._columns.values())


class RowView:
    """What a filter leaves of a row of slices: `indices` within the row, ascending.

    Answers as the row does; indices in answers are those of the whole row.
    """

    def __init__(self, index: Index, row_number: int, indices: I64) -> None:
        self.indices = indices
        self.hidden = int(index.rows[row_number]["count"]) - len(indices)
        self._left = _Compacted(index, row_number, indices)

    @property
    def count(self) -> int:
        return len(self.indices)

    @property
    def nbytes(self) -> int:
        return self.indices.nbytes + self._left.nbytes

    @property
    def starts(self) -> I64:
        """Starts of what is left, lane time in ns."""
        starts: I64 = self._left.column("slices.start")
        return starts

    @property
    def durations(self) -> I64:
        """Durations of what is left, in ns."""
        durations: I64 = self._left.column("slices.duration")
        return durations

    def cells(self, edges: Sequence[int] | I64, offset: int = 0, leaving_out: Collection[int] = ()) -> Cells:
        """Return what the cells between edges show of the slices left, as `cells.row_cells` does."""
        cells = row_cells(self._left, 0, edges, offset, leaving_out)
        if not self.count:
            return cells
        whole = np.where(cells.longest >= 0, self.indices[np.maximum(cells.longest, 0)], -1)
        return Cells(cells.count, whole, cells.category, cells.busy)


class RowViews:
    """The views of rows under one filter, created on first use; their memory is bounded."""

    def __init__(self, hits: Hits, cache_bytes: int = CACHE_BYTES) -> None:
        self.hits = hits
        self._cache_bytes = cache_bytes
        self._views: OrderedDict[tuple[int, int], RowView] = OrderedDict()
        self._bytes = 0

    def lane_cells(self, lane: Lane, edges: Sequence[int] | I64) -> Cells:
        """Return the cells of a lane (lane time) in which each shows the row of it where most is left."""
        width = len(edges) - 1
        count, busy = np.zeros(width, np.int64), np.full(width, -1, np.int64)
        longest, category = np.full(width, -1, np.int64), np.full(width, -1, np.int64)
        rows = self.hits.indexes[lane.source].rows
        for number in lane.rows[:UNION_ROWS]:
            if int(rows[number]["kind"]) != RowKind.SLICES:
                continue
            cells = self.of(lane.source, number).cells(edges)
            better = (cells.count > 0) & (cells.busy > busy)
            longest[better], category[better] = cells.longest[better], cells.category[better]
            busy[better] = cells.busy[better]
            np.maximum(count, cells.count, out=count)
        return Cells(count, longest, category, np.maximum(busy, 0))

    def of(self, source: int, row_number: int) -> RowView:
        key = source, row_number
        view = self._views.get(key)
        if view is not None:
            self._views.move_to_end(key)
            return view
        index = self.hits.indexes[source]
        view = self._views[key] = RowView(index, row_number, self.hits.in_row(source, row_number))
        self._bytes += view.nbytes
        while self._bytes > self._cache_bytes and len(self._views) > 1:
            self._bytes -= self._views.popitem(last=False)[1].nbytes
        return view


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
