"""Slices of one source as columns, and the operations on them that analyses share.

Some kinds have columns of their own: a chunk of a scope (`Chunk`), the host's slices
(`HostSlices`), the calls of torch.compile (`Calls`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from ..base.arrays import I64, AnyArray, places_in, sum_of
from ..base.intervals import Intervals, merge
from ..index.format import NONE
from ..index.store import Index
from ..query.groups import Groups, dense


@dataclass(frozen=True, eq=False)
class Slices:
    """Slices as columns of equal length: positions in the index of the source, trace times (ns), names
    and categories as the index numbers them.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = ("positions", "starts", "ends", "names", "categories")
    """The columns that `take` selects from."""

    source: int
    index: Index
    positions: AnyArray
    starts: I64
    ends: I64
    names: AnyArray
    categories: AnyArray

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def durations(self) -> I64:
        return self.ends - self.starts

    @property
    def total_ns(self) -> int:
        return sum_of(self.durations)

    @cached_property
    def distinct_names(self) -> tuple[I64, I64]:
        """(index of each slice's name among the distinct names, their string numbers, ascending)."""
        return dense(self.names)

    @property
    def name(self) -> I64:
        """The name of each slice, as an index into `texts`."""
        return self.distinct_names[0]

    @cached_property
    def texts(self) -> tuple[str, ...]:
        return tuple(self.index.strings(self.distinct_names[1]))

    def take(self, rows: AnyArray) -> Self:
        """Return some of the slices, by index or by mask."""
        if rows.dtype == np.bool_ and rows.all():
            return self
        return replace(self, **{column: getattr(self, column)[rows] for column in self.COLUMNS})

    def named(self, pattern: re.Pattern[str]) -> AnyArray:
        """Return which slices have a matching name, as booleans; each distinct name is tested once."""
        fits = np.array([pattern.search(text) is not None for text in self.texts], np.bool_)
        return fits[self.name] if len(fits) else np.zeros(len(self), np.bool_)

    def union(self, rows: AnyArray | slice = slice(None)) -> Intervals:
        return merge(self.starts[rows], self.ends[rows])

    @cached_property
    def around(self) -> I64:
        """For each slice the index of the nearest of these slices around it, -1 where there is none."""
        order = np.argsort(self.positions)
        rows = np.empty(len(self), np.int64)
        rows[order] = np.append(order, -1)[rows_around(self.index, self.positions[order])]
        return rows

    @cached_property
    def own_ns(self) -> I64:
        """The time of each slice without that of the others inside it."""
        inner = self.around >= 0
        inside = Groups(self.around[inner], len(self)).sums(self.durations[inner])
        return np.asarray(self.durations - inside, np.int64)


def nearest_around(index: Index, positions: AnyArray, members: I64, *, itself: bool = False) -> I64:
    """Return for each position its nearest ancestor among the members (ascending), -1 where there is none.

    With `itself` a position that is a member is its own.
    """
    above = index.column("slices.parent")
    nearest = np.full(len(positions), -1, np.int64)
    if not len(members) or not len(positions):
        return nearest
    todo = np.arange(len(positions))
    current = (positions if itself else above[positions]).astype(np.int64)
    while len(todo):
        is_open = current != NONE
        todo, current = todo[is_open], current[is_open]
        hit = places_in(members, current) >= 0
        nearest[todo[hit]] = current[hit]
        todo, current = todo[~hit], above[current[~hit]].astype(np.int64)
    return nearest


def rows_around(index: Index, positions: AnyArray) -> I64:
    """Return for each of some slices (ascending) the row of the nearest of them around it, -1 for none."""
    return places_in(positions, nearest_around(index, positions, positions.astype(np.int64)))
