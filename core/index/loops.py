"""What the loops of building take and return; `plain.py` says what each does, `native.py` runs them in C.

Events of lanes stand in columns, lane after lane; `bounds` says where each lane begins, and where the last
one ends. An *entry* is an index into such columns. What a loop returns holds until it is called again, an
order until `rows` is called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..base.arrays import I64, U8, U16, U32, U64, AnyArray
from ..base.errors import Cancelled
from ..read.batch import StringTable, Table

Allocate = Callable[[int, str], AnyArray]
"""Returns an array of a length and dtype."""

SLICE, INSTANT, CLOSING = 0, 1, 2
"""Kinds of events of a lane; CLOSING: the end of a slice, which is drawn no more."""
BEGINS, ENDS = b"BbS", b"EeF"
"""Phases that begin and end a slice, on threads and in async ids alike."""
THREAD_END = b"E"[0]
"""The one end whose name does not count: a thread's slices nest."""
MAX_OPEN_SEARCHED = 256
"""Of so many open begins the one is looked for that an asynchronous end of its name closes."""


@dataclass(frozen=True, eq=False, slots=True)
class LaneRows:
    """Where the slices of some lanes stand; per entry where nothing else is said."""

    parent: U32  # entry of the innermost slice that contains this one whole; NONE
    self_time: I64  # ns, duration minus the union of its direct children
    overlap: U8  # 1: overlaps an open slice without nesting in it
    position: U32  # place in the order of (lane, row, start), from 0
    order: U32  # the entry at each place
    row_sizes: U32  # slices per row, lane after lane
    lane_rows: U32  # rows per lane
    lane_depth: U32  # greatest number of slices of a lane that are open at once
    lane_overlaps: U64  # overlapping slices per lane
    lane_end: I64  # last end per lane


@dataclass(frozen=True, eq=False, slots=True)
class Correlations:
    """The events whose correlation is known, ascending by ordinal, and their values."""

    ordinal: U32
    value: I64


@dataclass(frozen=True, eq=False, slots=True)
class LaneFlows:
    """The flow events of some lanes, lane after lane."""

    bounds: U64  # where those of each lane begin, and the last one's end
    columns: Table
    bound: U32  # filled by `bind`: the position of the slice that each belongs to; NONE
    correlations: Correlations


@dataclass(eq=False)
class Interned:
    """Distinct strings of some tables, by number: the table in which each stands, and its number there."""

    tables: list[StringTable]
    owner_table: U16 = field(default_factory=lambda: np.empty(0, np.uint16))
    owner_string: U32 = field(default_factory=lambda: np.empty(0, np.uint32))
    count: int = 0
    by_text: dict[bytes, int] = field(default_factory=dict)  # of plain loops
    slots: U32 = field(default_factory=lambda: np.empty(0, np.uint32))  # of native ones: a hash table
    allocate: Allocate = np.empty

    def grow(self, more: int) -> None:
        if self.count + more > len(self.owner_string):
            size = max(2 * self.count, self.count + more)
            for name, dtype in (("owner_table", "u2"), ("owner_string", "u4")):
                values, known = self.allocate(size, dtype), getattr(self, name)[: self.count]
                values[: self.count] = known
                setattr(self, name, values)


class Rooms:
    """Room of one thread that is used again and again: fresh memory costs as much as the work itself."""

    def __init__(self, allocate: Allocate) -> None:
        """`allocate` gives more where what is there does not suffice."""
        self.allocate = allocate
        self._rooms: dict[str, AnyArray] = {}

    def room(self, name: str, size: int, dtype: str) -> AnyArray:
        """Return room of this name, holding anything: that which had the name before if it suffices."""
        room = self._rooms.get(name)
        if room is None or len(room) < size or room.dtype != np.dtype(dtype):
            room = self._rooms[name] = self.allocate(size, dtype)
        return room[:size]


class CancelFlag:
    """A byte that stops loops in other threads."""

    def __init__(self) -> None:
        self.byte = np.zeros(1, np.uint8)

    def set(self) -> None:
        self.byte[0] = 1

    def check(self) -> None:
        if self.byte[0]:
            raise Cancelled
