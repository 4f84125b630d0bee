"""What rows and lanes hold, from the row table and its stored sums: no slice is read."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ..base.arrays import I64, U8, AnyArray
from ..base.kineto import SliceKind, may_communicate, slice_kind, work_of_categories
from ..index.format import NO_SUMS, LaneRole, RowKind
from ..index.store import Index
from .lookup import totals_of_rows
from .ranges import ragged

MOST_INSTANTS = 1 << 20
"""Instants that are asked for their category: a legend must not cost more than a frame or two."""


class RowColumns:
    """The rows of a lane, topmost first: arrays with a value for each row."""

    def __init__(self, index: Index, numbers: range) -> None:
        self._index = index
        self._rows = index.rows[numbers.start : numbers.stop]

    @property
    def are_slices(self) -> AnyArray:
        holds: AnyArray = self._rows["kind"] == RowKind.SLICES
        return holds

    @property
    def counts(self) -> I64:
        """How many slices, instants or samples a row holds."""
        return self._rows["count"].astype(np.int64)

    @property
    def extents(self) -> I64:
        """The time from a row's first start to its last end, ns."""
        extents: I64 = self._rows["end"] - self._rows["start"]
        return extents

    @property
    def busy(self) -> I64:
        """The time that a row's slices take, ns; -1 where the index has no sum of it."""
        busy = np.full(len(self._rows), -1, np.int64)
        stored = np.flatnonzero((self._rows["sums"] != NO_SUMS) & (self._rows["category_count"] > 0))
        if len(stored):
            totals = totals_of_rows(self._rows[stored])
            positions, begins = ragged(totals, totals + self._rows["category_count"][stored].astype(np.int64))
            busy[stored] = np.add.reduceat(self._index.column("category_sums")[positions], begins)
        return busy

    def hold_only(self, category: str) -> AnyArray:
        """Tell of each row whether it has slices, all of one category."""
        rows = self._rows
        holds: AnyArray = self.are_slices & (rows["count"] > 0) & (rows["category_count"] == 1)
        some = np.flatnonzero(holds)
        numbers = self._index.column("row_categories")[rows["categories"][some].astype(np.int64)]
        categories = self._index.categories
        holds[some] = numbers == (categories.index(category) if category in categories else -1)
        return holds


def ns_by_lane(index: Index, categories: Collection[int]) -> dict[int, int]:
    """Return by lane number how long slices of some categories take, of lanes that have any."""
    rows = index.rows
    stored = rows["sums"] != NO_SUMS
    some = np.flatnonzero((rows["kind"] == RowKind.SLICES) & stored & (rows["category_count"] > 0))
    if not categories or not len(some):
        return {}
    kinds = rows["category_count"][some].astype(np.int64)
    first = rows["categories"][some].astype(np.int64)
    positions, begins = ragged(first, first + kinds)
    of_row = np.repeat(np.arange(len(some)), kinds)
    is_one = np.isin(index.column("row_categories")[positions], list(categories))
    local = np.arange(len(positions)) - begins[of_row]
    ns = index.column("category_sums")[(totals_of_rows(rows[some])[of_row] + local)[is_one]]
    times: dict[int, int] = {}
    for lane, value in zip(rows["lane"][some][of_row[is_one]].tolist(), ns.tolist()):
        times[lane] = times.get(lane, 0) + value
    return times


def categories_besides_work(index: Index) -> frozenset[int]:
    """Return the numbers of the categories that are no work: annotations, and on devices' lanes waits."""
    rows = index.rows[index.rows["kind"] == RowKind.SLICES]
    rows = rows[index.lanes["role"][rows["lane"]] == LaneRole.DEVICE]
    first = rows["categories"].astype(np.int64)
    positions, _ = ragged(first, first + rows["category_count"])
    present = np.flatnonzero(np.bincount(index.column("row_categories")[positions])).tolist()
    work = work_of_categories(index.categories[number] for number in present)
    return frozenset(
        number
        for number, category in enumerate(index.categories)
        if (category not in work if number in present else slice_kind(category) is SliceKind.ANNOTATION)
    )


def slice_kind_codes(index: Index, categories: AnyArray, names: AnyArray) -> U8:
    """Return the kind of each of some slices as its place in SliceKind, from the numbers of their categories
    and names; each name in a category is looked at once.
    """
    code_of = {kind: code for code, kind in enumerate(SliceKind)}
    by_category = np.array([code_of[slice_kind(category)] for category in index.categories], np.uint8)
    codes: U8 = by_category[categories]
    for number, category in enumerate(index.categories):
        if may_communicate(category):
            here = np.flatnonzero(categories == number)
            distinct, which = np.unique(names[here], return_inverse=True)
            kinds = [code_of[slice_kind(category, text)] for text in index.strings(distinct)]
            codes[here] = np.array(kinds, np.uint8)[which]
    return codes


def drawn_categories(index: Index) -> list[int]:
    """Return the numbers of the categories of slices and instants; flows have categories too."""
    numbers = set(np.unique(index.column("row_categories")).tolist())
    return sorted(numbers.union(np.unique(index.column("instants.category")[:MOST_INSTANTS]).tolist()))
