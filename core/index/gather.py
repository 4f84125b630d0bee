"""Events of lanes out of the parts: in each part the rows of a table are put in order of lanes once, and
gathered when their lane is made.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..ingest.columns import I64, TABLES, U32, AnyArray, Table
from .merge import Merged
from .order import by_small_key
from .scratch import Scratch

BATCH = 1 << 16
"""Lanes that follow one another are gathered together up to so many events."""
_LET_GO = 1 << 22
"""After so many events, memory of the parts that they lie in is given back."""


@dataclass(frozen=True)
class Gathered:
    """A table's events lane by lane, in no order within a lane."""

    columns: Table
    tracks: I64  # of each lane
    bounds: list[int]  # where each lane's events begin, and the last's end

    def of(self, lane: int) -> Table:
        """Return the columns of one lane's events (views)."""
        a, b = self.bounds[lane], self.bounds[lane + 1]
        return {name: values[a:b] for name, values in self.columns.items()}


class ByLane:
    """A table's events lane by lane, gathered when they are asked for; in no order within a lane."""

    def __init__(
        self, merged: Merged, table: str, names: Sequence[str], tracks: Sequence[int], scratch: Scratch
    ) -> None:
        """`tracks`: the lanes, in the order in which they will be asked for; all that have events."""
        self._order = _Order(merged, table, tracks, scratch)
        self._names = names
        self._room: Table = {}
        self._batch = -1

    def size(self, lane: int) -> int:
        """Return how many events a lane has."""
        return self._order.bounds[lane + 1] - self._order.bounds[lane]

    def of(self, lane: int) -> Table:
        """Return the columns of one lane's events: room that is used again for another lane."""
        order = self._order
        if not self._room:  # not before: a copy of this process must have its own
            self._room = order.room(max(map(order.size, range(order.batches))), self._names)
        batch = order.batch_of(lane)
        if batch != self._batch:
            size = order.size(batch)
            order.gather(batch, {name: room[:size] for name, room in self._room.items()})
            self._batch = batch
        first = order.first(batch)
        a, b = order.bounds[lane] - first, order.bounds[lane + 1] - first
        return {name: room[a:b] for name, room in self._room.items()}


def gather_all(
    merged: Merged, table: str, names: Sequence[str], tracks: Sequence[int], scratch: Scratch
) -> Gathered:
    """Return the events of all tracks that have any, in the order of `tracks`."""
    order = _Order(merged, table, tracks, scratch)
    columns = order.room(order.bounds[-1], names)
    for batch in range(order.batches):
        some = slice(order.first(batch), order.first(batch) + order.size(batch))
        order.gather(batch, {name: column[some] for name, column in columns.items()})
    scratch.let_go()
    return Gathered(columns, np.array(tracks, np.int64), order.bounds)


class _Order:
    """A table's rows in order of lanes, part by part, and how to gather those of a batch of lanes."""

    def __init__(self, merged: Merged, table: str, tracks: Sequence[int], scratch: Scratch) -> None:
        self._merged, self._table, self._scratch = merged, table, scratch
        lanes = np.array(tracks, np.int64)
        self._lane_of = np.zeros(len(merged.tracks), np.uint32)
        self._lane_of[lanes] = np.arange(len(tracks), dtype=np.uint32)
        self.bounds: list[int] = [0, *np.cumsum(merged.track_counts(table)[lanes]).tolist()]
        self._batches = _batches(self.bounds)
        self.batches = len(self._batches) - 1
        self._starts = np.cumsum([0, *merged.lengths(table)]).tolist()  # of each part in `orders`
        self._orders = scratch.array(self.bounds[-1], "u4")
        self._whole: set[int] = set()  # parts whose rows all lie in one lane
        self._gathered = 0
        self._cuts = self._ordered()

    def batch_of(self, lane: int) -> int:
        """Return the batch in which a lane lies."""
        return bisect_right(self._batches, lane) - 1

    def first(self, batch: int) -> int:
        """Return where a batch's events begin among all."""
        return self.bounds[self._batches[batch]]

    def size(self, batch: int) -> int:
        """Return how many events a batch has."""
        return self.first(batch + 1) - self.first(batch)

    def room(self, size: int, names: Sequence[str]) -> Table:
        """Return columns for so many events."""
        return {name: self._scratch.array(size, TABLES[self._table][name]) for name in names}

    def _ordered(self) -> I64:
        """Put each part's rows in order of lanes; return where each batch begins there, part by part."""
        merged = self._merged
        cuts = np.zeros((len(merged.parts), len(self._batches)), np.int64)
        for part, size in enumerate(merged.lengths(self._table)):
            if not size:
                continue
            track = merged.parts[part].tables[self._table]["track"]
            lane = self._lane_of[merged.track_maps[part]].take(track)
            low, high = int(lane.min()), int(lane.max())
            if low == high:
                self._whole.add(part)
                cuts[part] = np.where(np.array(self._batches) > low, size, 0)
            else:
                order = by_small_key(lane - np.uint32(low), high - low)
                self._orders[self._starts[part] : self._starts[part] + size] = order
                cuts[part] = np.searchsorted(lane.take(order), np.array(self._batches, np.uint32))
            self._let_go(size)
        merged.let_go_all()
        return cuts

    def gather(self, batch: int, out: Table) -> None:
        """Fill `out` with the events of one batch of lanes, lane by lane."""
        merged, at = self._merged, 0
        several = self._batches[batch + 1] - self._batches[batch] > 1
        lanes: list[U32] = []
        begins, ends = self._cuts[:, batch], self._cuts[:, batch + 1]
        for part in np.flatnonzero(ends > begins).tolist():
            a, b = int(begins[part]), int(ends[part])
            rows: AnyArray | slice = slice(a, b)
            if part not in self._whole:
                start = self._starts[part]
                rows = self._orders[start + a : start + b].astype(np.intp)
            for name, values in out.items():
                values[at : at + b - a] = merged.values(part, self._table, name, rows)
            if several:
                track = merged.parts[part].tables[self._table]["track"][rows]
                lanes.append(self._lane_of[merged.track_maps[part]].take(track))
            at += b - a
            self._let_go(b - a)
        if lanes:
            first = np.uint32(self._batches[batch])
            order = by_small_key(np.concatenate(lanes) - first, self._batches[batch + 1] - 1 - int(first))
            for values in out.values():
                values[:] = values.take(order)

    def _let_go(self, size: int) -> None:
        """Give back the memory of all parts when much has been read of them."""
        self._gathered += size
        if self._gathered >= _LET_GO:
            self._gathered = 0
            self._merged.let_go_all()


def _batches(bounds: Sequence[int]) -> list[int]:
    """Return the first lane of each batch, and the number of lanes."""
    firsts = [0]
    for lane in range(1, len(bounds) - 1):
        if bounds[lane + 1] - bounds[firsts[-1]] > BATCH:
            firsts.append(lane)
    return [*firsts, len(bounds) - 1] if len(bounds) > 1 else [0, 0]
