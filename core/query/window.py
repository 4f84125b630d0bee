"""The first window: the bulk of the trace, without what lies absurdly far from it."""

from __future__ import annotations

from dataclasses import dataclass

from ..index.format import RowKind
from ..index.store import Index
from .lookup import row_starts

FAR = 100
"""Slices further from the bulk than this many times its span do not set the first window (design, section
4).
"""
SPAN_CATEGORY = "Trace"
"""Category of the profiler's own whole-window spans, which never set it."""
ROWS_ASKED = 2000
SPLITS = 12
GAP_SHARE = 8
"""A gap is worth a split when it takes at least one such part of what it lies in."""


@dataclass(frozen=True)
class Island:
    """A stretch of trace time with things in it."""

    start: int
    end: int
    weight: int
    counts: bool  # slices that may be the bulk; instants, samples and whole-window spans only join it


def opening_window(indexes: list[tuple[Index, int]]) -> tuple[int, int] | None:
    """Return (start, end) in trace time of the bulk of these (index, clock offset), None when all are empty.

    The bulk is the heaviest stretch and whatever lies within FAR times its span, repeatedly. Rows are split
    where a dominating gap is, found by bisection, so the work is O(rows asked x log n).
    """
    islands = [island for index, offset in indexes for island in islands_of(index, offset)]
    pool = [island for island in islands if island.counts]
    if not pool:
        pool = islands
    if not pool:
        return None
    marks = (
        [island for island in islands if not island.counts and island.weight > 0]
        if pool is not islands
        else []
    )
    merged = _merged(pool)
    bulk = max(merged, key=lambda island: (island.weight, -island.start))
    start, end = bulk.start, bulk.end
    waiting = sorted([*merged, *marks], key=lambda island: island.start)
    grown = True
    while grown:
        grown, reach = False, FAR * max(end - start, 1)
        rest = []
        for island in waiting:
            if island.start <= end + reach and island.end >= start - reach:
                if island.start < start or island.end > end:
                    grown = True
                    start, end = min(start, island.start), max(end, island.end)
            else:
                rest.append(island)
        waiting = rest
    return start, end


def islands_of(index: Index, offset: int = 0) -> list[Island]:
    """Return the stretches of an index's rows; whole-window `Trace` spans have weight 0."""
    spans = {number for number, name in enumerate(index.categories) if name == SPAN_CATEGORY}
    kinds = index.column("row_categories")
    found: list[Island] = []
    for row_number in _rows_that_matter(index):
        row = index.rows[row_number]
        is_slices = int(row["kind"]) == RowKind.SLICES
        first, number = int(row["categories"]), int(row["category_count"])
        only_spans = is_slices and spans.issuperset(kinds[first : first + number].tolist())
        for start, end, weight in _split_row(index, row_number):
            counts = is_slices and not only_spans
            found.append(Island(start + offset, end + offset, 0 if only_spans else weight, counts))
    return found


def _rows_that_matter(index: Index) -> list[int]:
    """Return the rows that nothing else covers: top rows, rows with overlaps beneath, instants and
    samples.
    """
    wanted: list[int] = []
    for lane in index.lanes:
        first, rows = int(lane["first_row"]), int(lane["rows"])
        if not rows:
            continue
        wanted.append(first)
        if int(lane["overlapping"]):
            wanted.extend(range(first + 1, first + min(rows, 24)))
        elif rows > 1:
            wanted.append(first + rows - 1)  # the instants' row, if there is one
    if len(wanted) > ROWS_ASKED:
        step = len(wanted) / ROWS_ASKED
        wanted = [wanted[int(i * step)] for i in range(ROWS_ASKED)]
    return [row for row in dict.fromkeys(wanted) if int(index.rows[row]["count"])]


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


def _merged(islands: list[Island]) -> list[Island]:
    """Join stretches that overlap or touch."""
    merged: list[Island] = []
    for island in sorted(islands, key=lambda island: (island.start, island.end)):
        if merged and island.start <= merged[-1].end:
            last = merged[-1]
            merged[-1] = Island(
                last.start, max(last.end, island.end), last.weight + island.weight, last.counts
            )
        else:
            merged.append(island)
    return merged
