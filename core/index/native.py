"""The loops of building in C (core/native/build.c), called so that other threads go on meanwhile."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

from ..base.arrays import I64, U8, U16, U32, U64, AnyArray, pieces
from ..base.errors import Cancelled
from ..read.batch import Table
from .format import FLOW_COUNTS, NONE
from .loops import CancelFlag, Interned, LaneFlows, LaneRows, Rooms

_FLOW_COLUMNS = ("phase", "flags", "start", "ordinal", "id_kind", "id_value")
SEED = int.from_bytes(np.random.default_rng().bytes(8), "little")
"""Of the hash table of `pair`; nothing that is returned depends on it."""


class NativeLoops:
    """The loops of one thread; see `PlainLoops`."""

    def __init__(self, functions: ctypes.CDLL, cancel: CancelFlag, rooms: Rooms) -> None:
        """`functions`: of `native_library`; what is returned lies in `rooms`."""
        self._functions, self._cancel = functions, cancel
        self._room, self._allocate = rooms.room, rooms.allocate
        self._sparse: dict[str, U8] = {}
        for name in ("tl_rows_room", "tl_bind_room"):
            getattr(functions, name).restype = ctypes.c_uint64

    def _sparse_room(self, name: str, size: int) -> U8:
        """Return room of which mostly a small part at the beginning is used; the rest takes no memory."""
        room = self._sparse.get(name)
        if room is None or len(room) < size:
            room = self._sparse[name] = _untouched(size)
        return room

    def _call(self, name: str, *arguments: int | AnyArray | None) -> None:
        """Call a function that takes numbers and arrays and ends when asked to."""
        self._cancel.check()
        if getattr(self._functions, name)(*map(_argument, arguments), _argument(self._cancel.byte)):
            raise Cancelled

    def order(
        self, bounds: U64, start: I64, duration: I64 | None, ordinal: U32, kind: U8 | None = None,
        rooms: tuple[str, str] = ("rows.position", "rows.parent"),
    ) -> tuple[U32 | None, U64]:  # fmt: skip
        """Return the order in the first of two rooms; the other one is for sorting."""
        n, lanes = len(start), len(bounds) - 1
        sizes, moved = np.empty((lanes, 2), np.uint64), np.empty(1, "u1")
        order, room = (self._room(name, n, "u4") for name in rooms)
        self._call("tl_order", lanes, bounds, kind, start, duration, ordinal, order, room, sizes, moved)
        return (order if moved[0] else None), sizes

    def reorder(self, values: AnyArray, order: U32) -> None:
        moved = self._room("rows.self", len(values), "i8").view(values.dtype)[: len(values)]
        self._call("tl_take", values.itemsize, len(order), values, order, moved)
        values[:] = moved

    def take(self, values: AnyArray, index: U32) -> AnyArray:
        out = self._room("taken", len(index), "i8").view(values.dtype)[: len(index)]
        self._call("tl_take", values.itemsize, len(index), values, index, out)
        return out

    def put(self, values: AnyArray, index: U32, out: AnyArray) -> None:
        self._call("tl_put", values.itemsize, len(index), values, index, out)

    def slots(self, track: U32, following: U64) -> U32:
        slots = self._room("slots", len(track), "u4")
        self._call("tl_places", len(track), track, following, slots)
        return slots

    def intern(self, interned: Interned, table: U16, string: U32) -> U32:
        interned.grow(len(string))
        if 2 * (interned.count + len(string)) > len(interned.slots):
            size = 1 << (4 * (interned.count + len(string))).bit_length()
            interned.slots = interned.allocate(size, "u4")
            interned.slots.fill(NONE)
            known, interned.count = interned.count, 0
            self._intern(interned, interned.owner_table[:known], interned.owner_string[:known])
        return self._intern(interned, table, string)

    def _intern(self, interned: Interned, table: U16, string: U32) -> U32:
        numbers, count = self._room("interned", len(string), "u4"), np.array([interned.count], np.uint64)
        self._call(
            "tl_intern", len(string), table, string, *_addresses(interned), SEED, interned.slots,
            len(interned.slots), interned.owner_table, interned.owner_string, numbers, count,
        )  # fmt: skip
        interned.count = int(count[0])
        return numbers

    def texts(self, interned: Interned, table: U16, string: U32, room: int) -> tuple[U8, I64]:
        offset = interned.tables[int(table[0])].offset[int(string[0]) :]
        room = max(room, int(offset[1] - offset[0]))
        out, ends = self._room("texts", room, "u1"), self._room("ends", len(string), "i8")
        done = np.empty(1, np.uint64)
        self._call("tl_texts", len(string), table, string, *_addresses(interned), room, out, ends, done)
        ends = ends[: int(done[0])]
        return out[: int(ends[-1])], ends

    def match(self, bounds: U64, phase: U8, name: U32) -> U32:
        partner = self._room("partner", len(phase), "u4")
        self._call("tl_match", len(bounds) - 1, bounds, phase, name, partner)
        return partner

    def rows(self, bounds: U64, count: U64, start: I64, duration: I64, least: U32 | None = None) -> LaneRows:
        n, lanes, slices = len(start), len(count), int(count.sum())
        room = self._room
        parent, self_time = room("rows.parent", n, "u4"), room("rows.self", n, "i8")
        overlap, position = room("rows.overlap", n, "u1"), room("rows.position", n, "u4")
        order = room("rows.order", slices, "u4")
        top = 0 if least is None else int(least.max(initial=0))  # so many rows of a lane may stay empty
        sizes = self._sparse_room("sizes", 4 * (slices + top * lanes)).view(np.uint32)
        lane_rows, depth = np.empty(lanes, np.uint32), np.empty(lanes, np.uint32)
        overlaps, end = np.empty(lanes, np.uint64), np.empty(lanes, np.int64)
        longest = int(count.max(initial=0)) + top
        own = self._sparse_room("open", self._functions.tl_rows_room(ctypes.c_uint64(longest)))
        self._call(
            "tl_rows", lanes, bounds, count, start, duration, least, parent, self_time, overlap, position,
            order, sizes, lane_rows, depth, overlaps, end, own,
        )  # fmt: skip
        sizes = sizes[: int(lane_rows.sum())]
        return LaneRows(
            parent, self_time, overlap, position, order, sizes, lane_rows, depth, overlaps, end
        )  # fmt: skip

    def slices(self, rows: LaneRows, span: range, first: int, events: Table, slot_of: U32) -> Table:
        dtypes = {"start": "i8", "duration": "u4", "self": "u4", "ordinal": "u4", "parent": "u4"}
        columns = {name: self._room(f"slices.{name}", len(span), dtype) for name, dtype in dtypes.items()}
        self._call(
            "tl_slices", len(span), rows.order[span.start : span.stop], first + span.start, first,
            events["start"], events["duration"], rows.self_time, events["ordinal"], rows.parent,
            rows.position, *columns.values(), slot_of,
        )  # fmt: skip
        return columns

    def bind(
        self, rows: LaneRows, bounds: U64, count: U64, first: int, slices: Table, flows: LaneFlows
    ) -> None:
        columns, known = flows.columns, flows.correlations
        rooms = ("bind.order", "bind.sort")
        order, _ = self.order(flows.bounds, columns["start"], None, columns["ordinal"], rooms=rooms)
        if order is None:
            order = self._room("bind.order", len(columns["start"]), "u4")
            for own in pieces(len(order)):
                order[own] = np.arange(own.start, own.stop)
        longest = int(count.max(initial=0))
        room = self._sparse_room("open", self._functions.tl_bind_room(ctypes.c_uint64(longest)))
        self._call(
            "tl_bind", len(count), bounds, count, slices["start"], slices["duration"], slices["ordinal"],
            rows.parent, rows.position, first, flows.bounds, order,
            *(columns[name] for name in _FLOW_COLUMNS),
            len(known.ordinal), known.ordinal, known.value, flows.bound, room,
        )  # fmt: skip

    def pair(self, flows: Table, pid: U32, categories: int) -> tuple[U32, U32, I64]:
        n = len(pid)
        counts, arrows = np.zeros((categories, len(FLOW_COUNTS)), np.int64), np.empty(1, np.uint64)
        table = self._allocate(1 << (2 * n).bit_length(), "u4")
        following, last, source, target = (self._allocate(n, "u4") for _ in range(4))
        members, room = (self._sparse_room(name, 4 * n) for name in ("members", "sort"))  # of one group
        self._call(
            "tl_pair", n, *(flows[name] for name in ("phase", "ordinal", "category", "id_kind", "id_value")),
            pid, flows["start"], SEED, table, len(table), following, last, members, room, counts,
            source, target, arrows,
        )  # fmt: skip
        return source[: int(arrows[0])], target[: int(arrows[0])], counts

    def promote(
        self, ordinal: U32, values: AnyArray, slot_of: U32, dense: AnyArray, present: U64
    ) -> tuple[int, int] | None:
        limits = np.array([[np.iinfo(np.int64).max], [np.iinfo(np.int64).min]])
        integers = values.dtype == np.int64
        self._call(
            "tl_promote", values.itemsize, len(ordinal), ordinal, values, slot_of, dense, present,
            limits[0] if integers else None, limits[1] if integers else None,
        )  # fmt: skip
        least, greatest = limits.ravel().tolist()
        return (least, greatest) if least <= greatest else None

    def compact(self, dense: AnyArray, present: U64, begin: int, end: int, base: int) -> tuple[U32, AnyArray]:
        slots = self._room("compact.slots", end - begin, "u4")
        values = self._room("compact.values", end - begin, "i8").view(dense.dtype)
        count = np.empty(1, np.uint64)
        self._call("tl_compact", dense.itemsize, begin, end, base, dense, present, slots, values, count)
        return slots[: int(count[0])], values[: int(count[0])]


def _untouched(size: int) -> U8:
    """Return bytes that take no memory before they are written, and give it back whole."""
    if not size:
        return np.empty(0, np.uint8)
    return np.frombuffer(mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)


def _addresses(interned: Interned) -> tuple[U64, U64]:
    """Return where the texts of all tables stand, and the offsets of these."""
    tables = interned.tables
    return (
        np.array([table.blob.ctypes.data for table in tables], np.uint64),
        np.array([table.offset.ctypes.data for table in tables], np.uint64),
    )


def _argument(value: int | AnyArray | None) -> Any:
    """Return a number or the address of an array's values; arrays must be contiguous."""
    if isinstance(value, np.ndarray):
        if not value.flags.c_contiguous:
            raise ValueError("an array that C is to read must be contiguous")
        return ctypes.c_void_p(value.ctypes.data)
    return ctypes.c_void_p(None) if value is None else ctypes.c_uint64(value)
