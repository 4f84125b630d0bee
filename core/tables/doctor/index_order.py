"""An index by the numbers of the elements of its file: of which element each slice, end, instant, sample and
arrow was made, some elements at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...base.arrays import I64, AnyArray
from ...index.format import BLOCK, NO_SUMS, LaneKind, RowKind, SliceFlag
from ...index.store import Index

REACH = 1 << 21
"""Elements whose entries in the index are put in order at once."""
ABSENT = -1
"""In place of what the element has none of."""
SOURCE, TARGET = 1, 2
"""Bits of what an element may be to an arrow."""
_BEGUN = int(SliceFlag.PAIR | SliceFlag.UNCLOSED)


class OrdinalColumn:
    """The entries of a column of ordinals in the order of the file, REACH elements at a time: the column
    itself stands by lanes. Of `[7, 2, 5]` the elements 2 to 6 have the entries 1 and 2.
    """

    def __init__(self, ordinals: AnyArray, reach: int) -> None:
        self._ordinals, self._reach = ordinals, reach
        self._end = 0
        self._numbers = self._entries = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self._ordinals)

    def between(self, begin: int, end: int) -> tuple[I64, I64]:
        """Return (ordinals, entries) of the elements from `begin` on, before `end`, ascending; both must not
        lie before those of the last call.
        """
        if end > self._end:
            self._put_in_order(begin)
        first, last = np.searchsorted(self._numbers, (begin, end))
        return self._numbers[first:last], self._entries[first:last]

    def _put_in_order(self, begin: int) -> None:
        self._end = begin + self._reach
        pieces = []
        for at in range(0, len(self._ordinals), self._reach):
            piece = self._ordinals[at : at + self._reach]
            pieces.append(at + np.flatnonzero((piece >= begin) & (piece < self._end)))
        entries = np.concatenate([np.empty(0, np.int64), *pieces])
        numbers = self._ordinals[entries].astype(np.int64)
        order = np.argsort(numbers, kind="stable")
        self._numbers, self._entries = numbers[order], entries[order]


@dataclass(frozen=True, eq=False)
class IndexWindow:
    """What the index says of some elements that follow one another, one entry each."""

    phase: AnyArray  # ASCII; b and e for all async begins and ends that a slice has, 0 for nothing
    start: I64
    duration: I64  # of slices
    names: I64  # string numbers
    categories: I64
    position: I64  # of the slice that it begins or ends; ABSENT
    begin: I64  # the element that begins the slice which it ends; ABSENT
    end: I64  # the element that ends the slice which it begins; ABSENT
    sides: AnyArray  # SOURCE, TARGET
    is_double: AnyArray  # whether more than one thing was made of it
    samples: Mapping[int, list[Sample]]  # by element


class Sample(NamedTuple):
    """A sample of a counter."""

    counter: str
    series: str
    start: int
    value: float


class IndexOrder:
    """An index by the numbers of elements."""

    def __init__(self, index: Index, reach: int) -> None:
        self.index = index
        self.slices, self.ends, self.instants, self.samples, sources, targets = (
            OrdinalColumn(index.column(name), reach)
            for name in (
                *("slices.ordinal", "ends.ordinal", "instants.ordinal", "samples.ordinal"),
                *("flows.source_ordinal", "flows.target_ordinal"),
            )
        )
        self._sides = ((SOURCE, sources), (TARGET, targets))
        self._slice_rows, self._slice_firsts = self._rows_of(RowKind.SLICES)
        self._sample_rows, self._sample_firsts = self._rows_of(RowKind.SAMPLES)
        self._is_async = index.lanes["kind"][index.rows["lane"][self._slice_rows]] == LaneKind.ASYNC

    def _rows_of(self, kind: RowKind) -> tuple[I64, I64]:
        """Return the rows of a kind in the order of what they hold, and where that begins."""
        rows = np.flatnonzero((self.index.rows["kind"] == kind) & (self.index.rows["count"] > 0))
        firsts = self.index.rows["first"][rows].astype(np.int64)
        order = np.argsort(firsts)
        return rows[order], firsts[order]

    def window(self, first: int, last: int) -> IndexWindow:
        """Return what the elements from `first` on, before `last`, became; windows follow one another."""
        index, size = self.index, last - first
        phase, sides, counts = np.zeros(size, np.uint8), np.zeros(size, np.uint8), np.zeros(size, np.int64)
        start, duration, names, categories, position, begin, end = np.full((7, size), ABSENT, np.int64)

        def take(table: str, at: I64, entries: I64) -> None:
            np.add.at(counts, at, 1)
            for out, key in ((start, "start"), (names, "name"), (categories, "category")):
                out[at] = index.column(f"{table}.{key}")[entries]

        numbers, slices = self.slices.between(first, last)
        take("slices", at := numbers - first, slices)
        is_begun, is_async = (self._flags(slices) & _BEGUN) != 0, self._in_async(slices)
        phase[at] = np.where(is_begun, np.where(is_async, ord("b"), ord("B")), ord("X"))
        duration[at], position[at] = index.duration(slices), slices
        end[at[is_begun]] = self._ends_of(slices[is_begun])

        numbers, entries = self.ends.between(first, last)
        slices = index.column("ends.position")[entries].astype(np.int64)
        take("slices", at := numbers - first, slices)
        phase[at] = np.where(self._in_async(slices), ord("e"), ord("E"))
        start[at] += index.duration(slices)
        position[at], begin[at] = slices, index.column("slices.ordinal")[slices]

        numbers, entries = self.instants.between(first, last)
        take("instants", at := numbers - first, entries)
        phase[at] = index.column("instants.phase")[entries]

        for side, column in self._sides:
            sides[column.between(first, last)[0] - first] |= side
        samples = self._samples(first, last)
        return IndexWindow(
            phase, start, duration, names, categories, position, begin, end, sides, counts > 1, samples
        )

    def _flags(self, positions: I64) -> AnyArray:
        known = self.index.column("flags.position")
        if not len(known):
            return np.zeros(len(positions), np.uint8)
        at = np.minimum(np.searchsorted(known, positions.astype(np.uint32)), len(known) - 1)
        flags: AnyArray = np.where(known[at] == positions, self.index.column("flags.value")[at], 0)
        return flags

    def _ends_of(self, positions: I64) -> I64:
        """Return the elements that end slices, ABSENT where none does."""
        known = self.index.column("ends.position")
        if not len(known):
            return np.full(len(positions), ABSENT, np.int64)
        at = np.minimum(np.searchsorted(known, positions.astype(np.uint32)), len(known) - 1)
        ordinals = self.index.column("ends.ordinal")[at].astype(np.int64)
        return np.where(known[at] == positions, ordinals, ABSENT)

    def _in_async(self, positions: I64) -> AnyArray:
        is_async: AnyArray = self._is_async[np.searchsorted(self._slice_firsts, positions, "right") - 1]
        return is_async

    def _samples(self, begin: int, end: int) -> dict[int, list[Sample]]:
        index, samples = self.index, defaultdict[int, list[Sample]](list)
        numbers, entries = self.samples.between(begin, end)
        rows = self._sample_rows[np.searchsorted(self._sample_firsts, entries, "right") - 1]
        names = index.lanes["name"][index.rows["lane"][rows]]
        columns = (index.column("samples.start")[entries], index.column("samples.value")[entries])
        series = index.rows["series"][rows]
        for number, name, one, start, value in zip(
            *(each.tolist() for each in (numbers, names, series, *columns))
        ):
            samples[number].append(Sample(index.string(name), index.string(one), start, value))
        return samples


def index_sums(index: Index) -> tuple[list[int], list[int]]:
    """Return how many slices of each category an index has, and their time as it is drawn: the totals of its
    rows, where a row stores them.
    """
    size = len(index.categories)
    counts, sums = np.zeros(size, np.int64), [0] * size
    stored, categories = index.column("category_sums"), index.column("row_categories")
    for row in index.rows[index.rows["kind"] == RowKind.SLICES]:
        first, count = int(row["first"]), int(row["count"])
        for at in range(first, first + count, REACH):
            last = min(at + REACH, first + count)
            own = index.column("slices.category")[at:last]
            counts += np.bincount(own, minlength=size)
            if row["sums"] == NO_SUMS:
                add_exactly(sums, own, index.durations_between(at, last))
        if row["sums"] != NO_SUMS:
            kinds, blocks = int(row["category_count"]), -(-count // BLOCK)
            own = categories[int(row["categories"]) :][:kinds]
            for number, ns in zip(own.tolist(), stored[int(row["sums"]) + blocks * kinds :][:kinds].tolist()):
                sums[number] += ns
    return counts.tolist(), sums


def add_exactly(sums: list[int], numbers: AnyArray, values: I64) -> None:
    """Add values to the sums of their numbers, in halves, as a sum of clamped times is beyond 64 bits."""
    for shift, part in ((31, values >> 31), (0, values & 0x7FFF_FFFF)):
        totals = np.zeros(len(sums), np.int64)
        np.add.at(totals, numbers, part)
        for number in np.flatnonzero(totals).tolist():
            sums[number] += int(totals[number]) << shift
