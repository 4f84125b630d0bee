"""The first window of the viewer: the bulk of the trace, without what lies absurdly far from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from ..base.arrays import I64, AnyArray
from ..index.format import RowKind
from ..index.store import Index
from .cells import GREATEST, LOWEST
from .lookup import row_starts

FAR = 100
PAUSE_NS = 3_600 * 10**9
"""What is further from the bulk than so many times its span, and than the longest pause that a program makes
while it is recorded, does not set the first window. Distance alone tells little: work of 1 ms may follow a
pause of seconds, as when a program compiles; a clock that starts elsewhere is off by days or years.
"""
SPAN_CATEGORY = "Trace"
"""Category of the profiler's own whole-window spans, which never set it."""
ROWS_SPLIT = 1000
"""The most rows that are searched for gaps: those that span the most time."""
SPLITS = 12
GAP_SHARE = 8
"""A row is split at a gap that takes at least this share of it."""


@dataclass(frozen=True, eq=False)
class _Intervals:
    """Intervals of time (ns) in which something lies, with weights."""

    start: I64
    end: I64
    weight: I64

    @classmethod
    def of(cls, pieces: Sequence[tuple[int, int, int]]) -> Self:
        columns = zip(*pieces) if pieces else ((), (), ())
        return cls(*(np.array(column, np.int64) for column in columns))

    def merged(self) -> Self:
        if not len(self.start):
            return self
        order = np.argsort(self.start, kind="stable")
        start, reach = self.start[order], np.maximum.accumulate(self.end[order])
        begins = np.flatnonzero(np.concatenate(([True], start[1:] > reach[:-1])))
        lasts = np.append(begins[1:], len(start)) - 1
        return type(self)(start[begins], reach[lasts], np.add.reduceat(self.weight[order], begins))

    def joined(self, other: Self) -> Self:
        pairs = ((self.start, other.start), (self.end, other.end), (self.weight, other.weight))
        return type(self)(*(np.concatenate(pair) for pair in pairs))

    def shifted(self, by: int) -> Self:
        """Return the same so many ns later."""
        return type(self)(self.start + by, self.end + by, self.weight)


class Occupied(NamedTuple):
    """The times of an index in which something lies (lane time): slices, instants and samples, whole-window
    spans.
    """

    slices: _Intervals
    marks: _Intervals
    spans: _Intervals


def window_of(occupied: Sequence[tuple[Occupied, int]]) -> tuple[int, int] | None:
    """Return (start, end) in trace time of the bulk of several indexes, None when all are empty: of the times
    in which something lies in each, and its clock offset.

    The bulk is the heaviest interval with slices, and whatever lies within FAR times its span, repeatedly;
    everything, where that is less than half of the slices and instants. Whole-window spans count only where
    the rest has no length. Rows are split at dominating gaps, found by bisection: O(rows split x log n).
    """
    slices, marks, spans = _Intervals.of([]), _Intervals.of([]), _Intervals.of([])
    for one, offset in occupied:
        slices = slices.joined(one.slices.shifted(offset))
        marks = marks.joined(one.marks.shifted(offset))
        spans = spans.joined(one.spans.shifted(offset))
    pool = next((one for one in (slices, marks, spans) if len(one.start)), None)
    if pool is None:
        return None
    islands = pool.merged()
    heaviest = int(np.argmax(islands.weight))
    everything = (pool.joined(marks) if pool is slices else pool).merged()
    start, end = _grown(everything, int(islands.start[heaviest]), int(islands.end[heaviest]))
    inside = (everything.start <= end) & (everything.end >= start)
    if int(everything.weight[inside].sum()) * 2 < int(everything.weight.sum()):
        start, end = int(everything.start.min()), int(everything.end.max())
    if start == end:
        everything = everything.joined(spans)
        start, end = int(everything.start.min()), int(everything.end.max())
    return start, end


def slices_outside(indexes: Sequence[tuple[Index, int]], window: tuple[int, int]) -> int:
    """Return how many slices of these (index, clock offset) lie wholly outside a window of trace time."""
    outside = 0
    for index, offset in indexes:
        rows = index.rows
        slices = rows[(rows["kind"] == RowKind.SLICES) & (rows["count"] > 0)]
        low, high = (min(max(time - offset, LOWEST), GREATEST) for time in window)
        beyond = (slices["end"] < low) | (slices["start"] > high)
        outside += int(slices["count"][beyond].sum())
        for row in slices[~beyond & ((slices["start"] < low) | (slices["end"] > high))]:
            begin, count = int(row["first"]), int(row["count"])
            starts = index.column("slices.start")[begin : begin + count]
            before = int(starts.searchsorted(low))
            reaches = before and int(starts[before - 1] + index.duration([begin + before - 1])[0]) >= low
            outside += before - bool(reaches) + count - int(starts.searchsorted(high, "right"))
    return outside


def end_of_lanes(index: Index, lanes: AnyArray) -> int:
    """Return the first ns, in lane time, after everything in these lanes of the lane table."""
    end = int(lanes["end"].max())
    for lane in lanes[lanes["end"] == end]:
        first = int(lane["first_row"])
        last = index.rows["end"][first : first + int(lane["rows"])] == end
        for number in (np.flatnonzero(last) + first).tolist():
            if int(index.rows[number]["count"]) and int(row_starts(index, number)[-1]) == end:
                return end + 1
    return end


def _grown(islands: _Intervals, start: int, end: int) -> tuple[int, int]:
    """Return the interval extended by all that lies within FAR times its span or a pause, again and again,
    until nothing more does.
    """
    starts, ends = islands.start.tolist(), islands.end.tolist()
    while True:
        reach = max(FAR * max(end - start, 1), PAUSE_NS)
        near = [i for i in range(len(starts)) if starts[i] <= end + reach and ends[i] >= start - reach]
        grown = min([start, *(starts[i] for i in near)]), max([end, *(ends[i] for i in near)])
        if grown == (start, end):
            return grown
        start, end = grown


def occupied(index: Index) -> Occupied:
    slices: list[tuple[int, int, int]] = []
    marks: list[tuple[int, int, int]] = []
    spans: list[tuple[int, int, int]] = []
    rows = index.rows
    filled = np.flatnonzero(rows["count"])
    extent = rows["end"][filled].astype(np.float64) - rows["start"][filled]
    wide = set(filled[np.argsort(-extent, kind="stable")[:ROWS_SPLIT]].tolist())
    only_spans = _rows_of_spans(index)
    whole = zip(*(rows[name][filled].tolist() for name in ("kind", "start", "end", "count")))
    for number, (kind, start, end, count) in zip(filled.tolist(), whole):
        pieces = _split_row(index, number) if number in wide else [(start, end, count)]
        if kind == RowKind.SLICES:
            target, share = (spans, 0) if number in only_spans else (slices, 1)
        else:
            # Dense telemetry is not what a trace is about.
            target, share = marks, int(kind == RowKind.INSTANTS)
        target += [(start, end, weight * share) for start, end, weight in pieces]
    return Occupied(*map(_Intervals.of, (slices, marks, spans)))


def _rows_of_spans(index: Index) -> set[int]:
    """Return the rows that hold nothing but whole-window spans."""
    if SPAN_CATEGORY not in index.categories:
        return set()
    number, rows = index.categories.index(SPAN_CATEGORY), index.rows
    single = np.flatnonzero((rows["kind"] == RowKind.SLICES) & (rows["category_count"] == 1))
    kinds: AnyArray = index.column("row_categories")[rows["categories"][single].astype(np.int64)]
    return set(single[kinds == number].tolist())


def _split_row(index: Index, row_number: int) -> list[tuple[int, int, int]]:
    """Split a row at its dominating gaps: (start, end, things) of each piece, lane time."""
    row = index.rows[row_number]
    count, begin = int(row["count"]), int(row["first"])
    starts = row_starts(index, row_number)
    slices = int(row["kind"]) == RowKind.SLICES

    def end_of(at: int) -> int:
        return int(starts[at]) + (int(index.duration([begin + at])[0]) if slices else 0)

    pieces: list[tuple[int, int]] = [(0, count)]
    done: list[tuple[int, int]] = []
    while pieces and len(done) + len(pieces) <= SPLITS:
        low, high = pieces.pop()
        left, right = low, high - 1
        while right - left > 1:
            middle = (left + right) // 2
            if int(starts[middle]) - int(starts[left]) > int(starts[right]) - int(starts[middle]):
                right = middle
            else:
                left = middle
        extent = end_of(high - 1) - int(starts[low])
        if high - low > 1 and (int(starts[right]) - end_of(left)) * GAP_SHARE >= max(extent, 1):
            pieces += [(low, right), (right, high)]
        else:
            done.append((low, high))
    return [(int(starts[low]), end_of(high - 1), high - low) for low, high in [*done, *pieces]]
