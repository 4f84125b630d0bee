"""What rows are drawn of: the slices and instants that stand for cells, a list for each of their facts, and
the name with the most time in a piece of the picture.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..base.arrays import I64, AnyArray
from ..index.store import Index
from .busy import instant_cells
from .cells import Span, ragged

if TYPE_CHECKING:
    from .rowview import RowView


class SpanFacts(NamedTuple):
    """The slices that the spans of a row stand for, a value for each; texts are numbers (`Trace.text`)."""

    positions: I64
    names: list[int]
    starts: list[int]  # lane time in ns
    durations: list[int]  # ns
    flags: list[int]  # bits of SliceFlag
    colours: list[int]  # the argument `cname`, -1 without one
    categories: list[int]


class MarkFacts(NamedTuple):
    """The cells of a row that hold instants, a value for each of them; texts are numbers."""

    cells: list[int]
    counts: list[int]
    first: list[int]  # index within the row of the first instant of the cell
    names: list[int]  # of that one
    categories: list[int]


def span_facts(index: Index, row_number: int, spans: Sequence[Span]) -> SpanFacts:
    """Return what is known of the slice, or of the longest one, of each span of a row."""
    positions = np.array([span.at for span in spans], np.int64) + int(index.rows[row_number]["first"])
    return SpanFacts(
        positions,
        index.column("slices.name")[positions].tolist(),
        index.column("slices.start")[positions].tolist(),
        index.duration(positions).tolist(),
        _sparse(index, "flags", positions, 0),
        _sparse(index, "promoted.cname", positions, -1),
        index.column("slices.category")[positions].tolist(),
    )


def span_names(
    index: Index,
    row_number: int,
    spans: Sequence[Span],
    edges: I64,
    left: RowView | None = None,
    leaving_out: Collection[int] = (),
) -> list[LeadingName]:
    """Return which name has most time in each span of several slices; where none takes time, the longest's.

    `edges` are those of the cells, lane time in ns; `left` is what a filter leaves of the row. Slices of
    categories in `leaving_out` lead only in spans of such a category.
    """
    first, count = int(index.rows[row_number]["first"]), int(index.rows[row_number]["count"])
    starts = index.column("slices.start")[first : first + count] if left is None else left.starts
    slices = RowSlices(index, first, starts, None if left is None else left.indices)
    lefts, rights = edges[[span.left for span in spans]], edges[[span.right for span in spans]]
    narrowed = np.array([span.category not in leaving_out for span in spans], np.bool_)
    leads = leading_names(slices, lefts, rights, leaving_out=leaving_out, narrowed=narrowed)
    names = index.column("slices.name")
    return [
        lead if lead.name >= 0 else lead._replace(name=int(names[first + span.at]))
        for span, lead in zip(spans, leads)
    ]


def mark_facts(index: Index, row_number: int, edges: Sequence[int] | I64) -> MarkFacts:
    """Return the cells between edges (lane time in ns) that hold instants of a row."""
    cells = instant_cells(index, row_number, edges)
    occupied = np.flatnonzero(cells.count)
    first = cells.first[occupied]
    at = first + int(index.rows[row_number]["first"])
    return MarkFacts(
        occupied.tolist(),
        cells.count[occupied].tolist(),
        first.tolist(),
        index.column("instants.name")[at].tolist(),
        index.column("instants.category")[at].tolist(),
    )


def _sparse(index: Index, column: str, positions: I64, missing: int) -> list[int]:
    """Return a sparse column's value at each of some ascending positions, or `missing`."""
    stored = index.column(f"{column}.position")
    if not len(stored):
        return [missing] * len(positions)
    ends = np.array((positions[0], positions[-1] + 1), stored.dtype)
    low, high = stored.searchsorted(ends).tolist()
    if low == high:
        return [missing] * len(positions)
    nearest = np.minimum(stored.searchsorted(positions.astype(stored.dtype)), len(stored) - 1)
    values = index.column(f"{column}.value")[nearest].astype(np.int64)
    at: list[int] = np.where(stored[nearest] == positions, values, missing).tolist()
    return at


SLICES_READ = 1 << 14
"""The most slices of a row that are read for one picture; of more, evenly spread blocks are read."""
MAX_TOTALS = 1 << 16
"""The largest table of sums by window and name; beyond it slices are sorted."""
BLOCK_READ = 128
"""The number of slices in such a block: enough for whole repetitions of what a program does."""


class LeadingName(NamedTuple):
    """The name with most time in a window of a row."""

    name: int  # its number in the index; -1 where no slice of the window takes time
    share: float  # of the time that slices cover in the window, 0..1
    slices: int  # slices that touch the window, exact
    is_exact: bool  # False: name and share come from a sample of the slices


@dataclass(frozen=True, eq=False)
class RowSlices:
    """The slices of a row: all of them, or those at some indices within it."""

    index: Index
    first: int  # position of the row's first slice
    starts: AnyArray  # ns
    indices: I64 | None = None  # within the row; None: all slices

    def positions(self, at: I64) -> I64:
        """Return the positions in the index of slices, given by index in `starts`."""
        return self.first + (at if self.indices is None else self.indices[at])


def leading_names(
    row: RowSlices,
    lefts: Sequence[int] | I64,
    rights: Sequence[int] | I64,
    most: int = SLICES_READ,
    leaving_out: Collection[int] = (),
    narrowed: AnyArray | None = None,
) -> list[LeadingName]:
    """Return the leading name of each window [left, right), ns of lane time; windows do not overlap. Slices
    of categories in `leaving_out` take no time in the windows that `narrowed` tells.

    Slices count with what lies of them inside the window. Of equal names the one that comes first in the file
    leads. At most about `most` slices are read.
    """
    left, right = np.array(lefts, np.int64), np.array(rights, np.int64)
    first = row.starts.searchsorted(left, "left").astype(np.int64)
    last = row.starts.searchsorted(right, "left").astype(np.int64)
    before = np.maximum(first - 1, 0)
    reaches = (first > 0) & (row.starts[before] + row.index.duration(row.positions(before)) > left)
    first -= reaches
    counts = last - first
    if not counts.sum():
        return [LeadingName(-1, 0.0, 0, True)] * len(left)
    # A row of 3 M slices in 200 cells has 15,000 a cell: reading all would take as long as a frame may. Each
    # window is allowed the same share; one with no more slices is read whole and exact, of the others blocks
    # that lie evenly in it are read, and what leads in them leads, "about".
    allowed = max(BLOCK_READ, most // len(left))
    is_exact = counts <= allowed if int(counts.sum()) > most else np.ones(len(left), bool)
    at, window = _read(first, last, is_exact, allowed)
    positions = row.positions(at)
    starts = row.starts[at]
    ends = np.minimum(starts + row.index.duration(positions), right[window])
    ns = np.maximum(ends - np.maximum(starts, left[window]), 0)
    if leaving_out and narrowed is not None:
        is_left_out = np.isin(row.index.column("slices.category")[positions], list(leaving_out))
        ns[is_left_out & narrowed[window]] = 0
    names = row.index.column("slices.name")[positions].astype(np.int64)
    leading = []
    leads = _leads(names, window, ns, len(left))
    for lead, count, exact in zip(leads, counts.tolist(), is_exact.tolist()):
        name, most_ns, all_ns = lead
        share = float(most_ns / all_ns) if all_ns else 0.0
        leading.append(LeadingName(name if all_ns else -1, share, count, exact))
    return leading


def _leads(names: I64, window: I64, ns: I64, windows: int) -> list[tuple[int, float, float]]:
    """Return for each window the name with most ns, those, and the ns of all its names.

    Sums are exact: a window is shorter than 2**53 ns. Most rows have few names, with numbers close together:
    a table of window by name takes a third of the time of sorting then.
    """
    least = int(names.min())
    kinds = int(names.max()) - least + 1
    if windows * kinds <= MAX_TOTALS:
        totals = np.bincount(window * kinds + (names - least), ns, windows * kinds).reshape(windows, kinds)
        best = totals.argmax(axis=1)
        most = totals[np.arange(windows), best]
        return list(zip((best + least).tolist(), most.tolist(), totals.sum(axis=1).tolist()))
    pairs, pair = np.unique((window << 32) | names, return_inverse=True)
    sums = np.bincount(pair, ns, len(pairs))
    ends = pairs.searchsorted(np.arange(windows + 1) << 32).tolist()
    leads = []
    for begin, end in pairwise(ends):
        best_pair = begin + int(sums[begin:end].argmax()) if begin < end else -1
        leads.append(
            (int(pairs[best_pair]) & 0xFFFFFFFF, float(sums[best_pair]), float(sums[begin:end].sum()))
        )
    return leads


def _read(first: I64, last: I64, is_exact: AnyArray, allowed: int) -> tuple[I64, I64]:
    """Return the indices in `starts` of the slices that are read, and the window of each.

    The blocks of a sample lie where they lie whatever the window, so that it does not change while panning.
    """
    if is_exact.all():
        full = (last > first).nonzero()[0]
        return ragged(first[full], last[full])[0], full.repeat((last - first)[full])
    begins, ends, windows = [], [], []
    for number, (begin, end, exact) in enumerate(zip(first.tolist(), last.tolist(), is_exact.tolist())):
        if exact:
            begins.append(np.array([begin]))
            ends.append(np.array([end]))
        else:
            blocks = max(1, allowed // BLOCK_READ)
            stride = 1 << max(0, (-(-(end - begin) // blocks) - 1).bit_length())
            tops = np.arange(begin // stride * stride, end, stride)
            begins.append(np.maximum(tops, begin))
            ends.append(np.minimum(tops + BLOCK_READ, end))
        windows.append(np.full(len(begins[-1]), number))
    low, high, window = np.concatenate(begins), np.concatenate(ends), np.concatenate(windows)
    some = high > low
    low, high, window = low[some], high[some], window[some]
    return ragged(low, high)[0], window.repeat(high - low)
