"""Events of lanes out of the parts: in each part the rows of a table are put in order of lanes once, and
gathered when their lane is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..ingest.columns import I64, TABLES, U32, AnyArray, Table
from .merge import Merged
from .order import by_small_key
from .scratch import Scratch

BATCH = 1 << 16
"""Lanes that follow one another are gathered together up to so many events."""
_LET_GO = 1 << 20
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
        self._merged, self._table, self._scratch = merged, table, scratch
        self._names = names
        self._tracks = np.array(tracks, np.int64)
        self._lane_of = np.zeros(len(merged.tracks), np.uint32)
        self._lane_of[self._tracks] = np.arange(len(tracks), dtype=np.uint32)
        counts = merged.track_counts(table)[self._tracks]
        self.bounds: list[int] = [0, *np.cumsum(counts).tolist()]
        self._batches = _batches(self.bounds)
        self._orders = scratch.array(self.bounds[-1], "u4")
        self._whole: set[int] = set()  # parts whose rows all lie in one lane
        self._starts = np.cumsum([0, *merged.lengths(table)]).tolist()  # of each part in `orders`
        self._gathered = 0
        self._cuts = self._ordered()
        self._batch = -1
        self._room: Table = {}

    def of(self, lane: int) -> Table:
        """Return the columns of one lane's events: room that is used again for another lane."""
        batch = int(np.searchsorted(self._batches, lane, side="right")) - 1
        first = self.bounds[self._batches[batch]]
        if batch != self._batch:
            if not self._room:
                ends = [self.bounds[lane] for lane in self._batches]
                size = max(b - a for a, b in pairwise(ends))
                self._room = {n: self._scratch.array(size, TABLES[self._table][n]) for n in self._names}
            size = self.bounds[self._batches[batch + 1]] - first
            self._gather(batch, {name: room[:size] for name, room in self._room.items()})
            self._batch = batch
        a, b = self.bounds[lane] - first, self.bounds[lane + 1] - first
        return {name: room[a:b] for name, room in self._room.items()}

    def all(self) -> Gathered:
        """Return the events of all lanes."""
        columns = {
            name: self._scratch.array(self.bounds[-1], TABLES[self._table][name]) for name in self._names
        }
        for batch in range(len(self._batches) - 1):
            a, b = self.bounds[self._batches[batch]], self.bounds[self._batches[batch + 1]]
            self._gather(batch, {name: column[a:b] for name, column in columns.items()})
        return Gathered(columns, self._tracks, self.bounds)

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

    def _gather(self, batch: int, out: Table) -> None:
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
            self._scratch.let_go()


def _batches(bounds: Sequence[int]) -> list[int]:
    """Return the first lane of each batch, and the number of lanes."""
    firsts = [0]
    for lane in range(1, len(bounds) - 1):
        if bounds[lane + 1] - bounds[firsts[-1]] > BATCH:
            firsts.append(lane)
    return [*firsts, len(bounds) - 1] if len(bounds) > 1 else [0, 0]
