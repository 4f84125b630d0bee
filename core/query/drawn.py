"""What rows are drawn of: the slices and instants that stand for cells, a list for each of their facts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from ..base.arrays import I64
from ..index.store import Index
from .cells import Span
from .leading_names import LeadingName, RowSlices, leading_names
from .rowview import RowView
from .samples import instant_cells


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
