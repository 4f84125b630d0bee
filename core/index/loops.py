"""The loops of building: what each does. `native.py` runs them in C, `plain.py` says the same in Python.

Events of lanes stand in columns, lane after lane; `bounds` says where each lane begins, and where the last
one ends. An *entry* is an index into such columns. What a loop returns holds until it is called again, an
order until `rows` is called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ..base.arrays import I64, U8, U16, U32, U64, AnyArray
from ..base.errors import Cancelled
from ..read.batch import StringTable

Allocate = Callable[[int, str], AnyArray]
"""Returns an array of a length and dtype."""

SLICE, INSTANT, CLOSING = 0, 1, 2
"""Kinds of events of a lane; CLOSING: the end of a slice, which is drawn no more."""
BEGINS, ENDS = b"BbS", b"EeF"
"""Phases that begin and end a slice, on threads and in async ids alike."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class LaneFlows:
    """The flow events of some lanes, lane after lane."""

    bounds: U64  # where those of each lane begin, and the last one's end
    columns: dict[str, AnyArray]
    bound: U32  # is told the position of the slice that each belongs to; NONE


@dataclass(frozen=True, slots=True)
class SliceColumns:
    """Some slices as the index stores them, in the order of positions."""

    start: I64
    duration: U32  # LONG where it does not fit
    self_time: U32  # likewise
    ordinal: U32
    parent: U32  # position; NONE


@dataclass(frozen=True, slots=True)
class Correlations:
    """The events whose correlation is known, ascending by ordinal, and their values."""

    ordinal: U32
    value: I64


@dataclass
class Interned:
    """Distinct strings of some tables, by number: the table in which each stands, and its number there."""

    tables: list[StringTable]
    owner_table: U16 = field(default_factory=lambda: np.empty(0, np.uint16))
    owner_string: U32 = field(default_factory=lambda: np.empty(0, np.uint32))
    count: int = 0
    by_text: dict[bytes, int] = field(default_factory=dict)  # of plain loops
    slots: U32 = field(default_factory=lambda: np.empty(0, np.uint32))  # of native ones: a hash table

    def grow(self, more: int) -> None:
        """Make room for so many more strings."""
        if self.count + more > len(self.owner_string):
            size = max(2 * self.count, self.count + more)
            self.owner_table = np.resize(self.owner_table, size)
            self.owner_string = np.resize(self.owner_string, size)


class Loops(Protocol):
    """The loops, for one thread; raise Cancelled soon after that was asked for."""

    def order(
        self, bounds: U64, start: I64, duration: I64 | None, ordinal: U32, kind: U8 | None = None
    ) -> tuple[U32 | None, U64]:
        """Return the entries of each lane by (kind, start, -duration, ordinal), None if they stand so; and
        per lane how many are of kind SLICE (any, without kinds) and of kind INSTANT.
        """
        ...

    def reorder(self, values: AnyArray, order: U32) -> None:
        """Put values in an order, where they lie."""
        ...

    def take(self, values: AnyArray, index: U32) -> AnyArray:
        """Return values[index]."""
        ...

    def put(self, values: AnyArray, index: U32, out: AnyArray) -> None:
        """Do out[index] = values."""
        ...

    def slots(self, track: U32, following: U64) -> U32:
        """Return the slot of each event: the next one of its track; `following`, per track, moves on."""
        ...

    def intern(self, interned: Interned, table: U16, string: U32) -> U32:
        """Return the numbers of strings, given by table and number there; texts that are new get new ones."""
        ...

    def texts(self, interned: Interned, table: U16, string: U32, room: int) -> tuple[U8, I64]:
        """Return the texts of strings, one after the other, and where each ends: as many as fit into so many
        bytes, but at least one.
        """
        ...

    def match(self, bounds: U64, phase: U8) -> U32:
        """Return the end that closes each begin and the begin that each end closes; NONE.

        An end closes the innermost begin of its stack that is open; names are not compared. Events stand by
        time and ordinal; `bounds` tells stacks apart.
        """
        ...

    def rows(self, bounds: U64, count: U64, start: I64, duration: I64) -> LaneRows:
        """Return where slices stand: a lane has the first `count` entries of its own, by (start, -duration).

        A slice stands in the lowest free row below its parent's. `start + duration` must fit int64.
        """
        ...

    def slices(
        self,
        rows: LaneRows,
        span: range,
        first: int,
        start: I64,
        duration: I64,
        ordinal: U32,
        slot_of: U32,
    ) -> SliceColumns:
        """Return the columns of the slices of a span of places; place 0 has position `first`.

        `slot_of` is told the position of each event's slice.
        """
        ...

    def bind(
        self,
        rows: LaneRows,
        bounds: U64,
        count: U64,
        first: int,
        slices: dict[str, AnyArray],
        flows: LaneFlows,
        correlations: Correlations,
    ) -> None:
        """Fill in the position of the slice that each flow event of each lane belongs to; NONE.

        Starts, steps and ends with "bp": "e" belong to the deepest slice that contains the stamp, other ends
        to the next that begins at or after it. Where several begin at the very stamp, those whose correlation
        is the flow's id come first, then the nearest before it in the file.
        """
        ...

    def pair(self, flows: dict[str, AnyArray], pid: U32, categories: int) -> tuple[U32, U32, I64]:
        """Return arrows as (sources, targets), entries both, and FLOW_COUNTS per category.

        Events of one category and id (and pid, where the id is local to it) make a group, by time and
        ordinal; each step and end follows the latest start or step before it. Writers whose device clock is
        off put ends before every start of their id: those follow the first.
        """
        ...

    def promote(
        self, ordinal: U32, values: AnyArray, slot_of: U32, dense: AnyArray, present: U64
    ) -> tuple[int, int] | None:
        """Put values at the slots of their events, a later one in place of an earlier one.

        Return the least and greatest integer that has a slot, None without one or of other values.
        """
        ...

    def compact(self, dense: AnyArray, present: U64, begin: int, end: int, base: int) -> tuple[U32, AnyArray]:
        """Return (slots, values) of begin..end where there is one; slots count from `base`."""
        ...


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
        """It is not set."""
        self.byte = np.zeros(1, np.uint8)

    def set(self) -> None:
        """Let all loops stop."""
        self.byte[0] = 1

    def check(self) -> None:
        """Raise Cancelled if it is set."""
        if self.byte[0]:
            raise Cancelled
