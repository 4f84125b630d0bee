"""The native scanner as Python sees it: memory for scan.c, and what it leaves to the plain one."""

from __future__ import annotations

import ctypes
import secrets
from itertools import accumulate

import numpy as np

from ..base.arrays import U32, AnyArray
from ..base.errors import Cancelled
from ..native.library import native_library
from ..native.structs import GAPS, GapStruct, ScanStruct
from .batch import METADATA, PLAIN_SCALE, TABLES, ColumnBuffers, StringTable, TimeScale, grown
from .event_writer import metadata_of
from .promoted import PromotedTable
from .scan_reference import Reason, ReferenceScanner, ScanStop, ScanText, ScanWatch, decode_element

OK, NEED, STOPPED, CANCELLED = range(4)
_CLOSED, _UNUSUAL, _LONG, _TOO_DEEP = 1, 2, 3, 13
"""Reasons of native.h; all others refuse an element."""
_STRINGS, _TRACKS = len(TABLES) + 1, len(TABLES) + 2
_NEED_BLOB, _NEED_TEXT = _TRACKS + 1, _TRACKS + 2
FIRST_STRINGS, FIRST_TRACKS, FIRST_BLOB = 1 << 12, 1 << 8, 1 << 18


class NativeNumbering:
    """A `Numbering` whose tables are in memory that scan.c fills."""

    def __init__(
        self, struct: ScanStruct, count: AnyArray, capacity: AnyArray, functions: ctypes.CDLL
    ) -> None:
        """Begin with the empty string."""
        self._struct = struct
        self._functions = functions
        self._count, self._capacity = count, capacity
        self._blob = np.empty(FIRST_BLOB, np.uint8)
        self._offset = np.zeros(FIRST_STRINGS + 1, np.int64)
        self._pid, self._tid = (np.empty(FIRST_TRACKS, np.uint32) for _ in range(2))
        self._used, self._track_used = np.zeros(FIRST_STRINGS, np.uint8), np.zeros(FIRST_TRACKS, np.uint8)
        self._uses, self._track_uses = np.empty(FIRST_STRINGS, np.uint32), np.empty(FIRST_TRACKS, np.uint32)
        struct.seed[:] = [secrets.randbits(64) | 1 for _ in range(2)]
        count[_STRINGS] = 1
        self._hand_over()

    def _hand_over(self) -> None:
        """Tell C where the memory is, with twice as many slots as there can be entries."""
        struct = self._struct
        strings, tracks = len(self._offset) - 1, len(self._pid)
        self._capacity[_STRINGS], self._capacity[_TRACKS] = strings, tracks
        self._slots, self._track_slots = np.empty(2 * strings, np.uint64), np.empty(2 * tracks, np.uint64)
        struct.string_mask, struct.track_mask = 2 * strings - 1, 2 * tracks - 1
        struct.blob, struct.blob_capacity = self._blob.ctypes.data, len(self._blob)
        struct.string_offset, struct.string_slots = self._offset.ctypes.data, self._slots.ctypes.data
        struct.string_used, struct.string_uses = self._used.ctypes.data, self._uses.ctypes.data
        struct.track_pid, struct.track_tid = self._pid.ctypes.data, self._tid.ctypes.data
        struct.track_slots, struct.track_used = self._track_slots.ctypes.data, self._track_used.ctypes.data
        struct.track_uses = self._track_uses.ctypes.data
        self._functions.tl_rehash(ctypes.byref(struct))

    def grow(self, needed: int, least: int = 0) -> None:
        struct = self._struct
        if needed == _NEED_BLOB:
            self._blob = grown(self._blob, max(2 * len(self._blob), struct.blob_used + least))
            struct.blob, struct.blob_capacity = self._blob.ctypes.data, len(self._blob)
            return
        if needed == _STRINGS:
            size = 2 * (len(self._offset) - 1)
            self._offset = grown(self._offset, size + 1)
            used, self._used = self._used, np.zeros(size, np.uint8)
            self._used[: len(used)] = used
            self._uses = grown(self._uses, size)
        else:
            size = 2 * len(self._pid)
            self._pid, self._tid = grown(self._pid, size), grown(self._tid, size)
            used, self._track_used = self._track_used, np.zeros(size, np.uint8)
            self._track_used[: len(used)] = used
            self._track_uses = grown(self._track_uses, size)
        self._hand_over()

    def begin(self) -> None:
        strings, tracks = self.uses()
        self._used[strings] = 0
        self._track_used[tracks] = 0
        self._struct.string_use_count = self._struct.track_use_count = 0

    def number(self, text: str) -> int:
        encoded = text.encode("utf-8", "replace")
        while (
            number := self._functions.tl_number_string(ctypes.byref(self._struct), encoded, len(encoded))
        ) < 0:
            full = self._count[_STRINGS] == self._capacity[_STRINGS]
            self.grow(_STRINGS if full else _NEED_BLOB, len(encoded))
        return int(number)

    def track(self, pid: int, tid: int) -> int:
        while (number := self._functions.tl_number_track(ctypes.byref(self._struct), pid, tid)) < 0:
            self.grow(_TRACKS)
        return int(number)

    def uses(self) -> tuple[U32, U32]:
        strings, tracks = self._struct.string_use_count, self._struct.track_use_count
        return self._uses[:strings].copy(), self._track_uses[:tracks].copy()

    def table(self) -> StringTable:
        strings, tracks = int(self._count[_STRINGS]), int(self._count[_TRACKS])
        offset = self._offset[: strings + 1]
        return StringTable(self._blob[: offset[-1]], offset, self._pid[:tracks], self._tid[:tracks])


class NativeScanner(ReferenceScanner):
    """Reads elements into columns by scan.c, and like the plain one what that leaves to it."""

    def __init__(
        self,
        promoted: PromotedTable,
        watch: ScanWatch,
        scale: TimeScale = PLAIN_SCALE,
        functions: ctypes.CDLL | None = None,
    ) -> None:
        functions = functions or native_library().functions
        if functions is None:
            raise RuntimeError(f"the native core: {native_library().reason}")
        functions.tl_number_string.restype = functions.tl_number_track.restype = ctypes.c_int64
        functions.tl_number_string.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64]
        functions.tl_number_track.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32]
        functions.tl_scan.argtypes = functions.tl_rehash.argtypes = [ctypes.c_void_p]
        functions.tl_scan.restype = ctypes.c_int32
        functions.tl_rehash.restype = None
        columns = ColumnBuffers(promoted, scale)
        self._functions = functions
        self._struct = struct = ScanStruct()
        self._capacity = np.zeros(len(columns.count), np.int64)
        self._gaps = (GapStruct * GAPS)()
        self._grown_times = -1
        struct.gaps = ctypes.addressof(self._gaps)
        struct.cancel, struct.progress = watch.cancel.ctypes.data, watch.progress.ctypes.data
        struct.count, struct.capacity = columns.count.ctypes.data, self._capacity.ctypes.data
        struct.counts = columns.counts.ctypes.data
        struct.time_digits, struct.has_origin = scale.digits, scale.origin_ns != 0
        struct.origin_high, struct.origin_low = scale.origin_ns >> 64, scale.origin_ns & (1 << 64) - 1
        self._describe(promoted)
        self._memory = NativeNumbering(struct, columns.count, self._capacity, functions)
        super().__init__(columns, self._memory, watch)
        self._hand_over()

    def _describe(self, promoted: PromotedTable) -> None:
        struct = self._struct
        encoded = [key.encode() for key in promoted.keys]
        offsets = [0, *accumulate(map(len, encoded))]
        self._tables: list[AnyArray] = [
            np.frombuffer(b"".join(encoded) or b"\0", np.uint8),
            np.array(offsets, np.int32),
            np.array([*promoted.owners, 0], np.uint8),
            np.frombuffer(
                "".join(column.kind.value[0].replace("u", "t") for column in promoted.columns).encode(),
                np.uint8,
            ),
        ]
        for name, table in zip(("key_text", "key_offset", "key_owner", "kinds"), self._tables):
            setattr(struct, name, table.ctypes.data)
        struct.keys, struct.promoted_columns = len(encoded), len(promoted.columns)
        struct.cname_column = -1 if promoted.cname is None else promoted.cname

    def _hand_over(self) -> None:
        """Tell C where the columns are, if they are not where they were."""
        columns, struct = self.columns, self._struct
        if columns.grown_times == self._grown_times:
            return
        self._grown_times = columns.grown_times
        arrays = [column for name in columns.names for column in columns.tables[name].values()]
        self._addresses = _addresses(arrays)
        self._ordinals, self._values = (
            _addresses(columns.promoted_ordinals),
            _addresses(columns.promoted_values),
        )
        for number, name in enumerate(columns.names):
            self._capacity[number] = len(columns.tables[name]["ordinal"])
        struct.columns = ctypes.addressof(self._addresses)
        struct.promoted_ordinals = ctypes.addressof(self._ordinals)
        struct.promoted_values = ctypes.addressof(self._values)
        struct.promoted_count = columns.promoted_count.ctypes.data

    def scan(self, text: ScanText, at: int, limit: int, longest: int) -> ScanStop:
        try:
            return self._scan(text, at, limit, longest)
        finally:
            self._decode_metadata(text)

    def _scan(self, text: ScanText, at: int, limit: int, longest: int) -> ScanStop:
        struct, columns = self._struct, self.columns
        struct.text, struct.offset, struct.end = text.data.ctypes.data, text.offset, text.size
        struct.is_last, struct.limit, struct.longest = text.is_last, limit, longest
        while True:
            self._hand_over()  # Python may have written events meanwhile
            struct.at, struct.ordinal, struct.new_block = at, columns.ordinal, columns.new_block
            status = self._functions.tl_scan(ctypes.byref(struct))
            at, columns.ordinal, columns.new_block = struct.at, struct.ordinal, bool(struct.new_block)
            if status == OK:
                return ScanStop(Reason.LIMIT, at)
            if status == CANCELLED:
                raise Cancelled
            if status == NEED:
                if struct.reason == _NEED_TEXT:
                    return ScanStop(Reason.TEXT, at)
                self._grow(struct.reason)
                continue
            if struct.reason == _UNUSUAL:
                only = ScanText(text.data, text.offset, struct.stop, True)  # one element, at its end
                stop = super().scan(only, at, only.size, only.size)
                assert stop.reason is Reason.LIMIT
                at = stop.at
            elif struct.reason == _TOO_DEEP:
                stop = super().scan(text, at, struct.begin + 1, longest)
                if stop.reason is not Reason.LIMIT:
                    return stop
                at = stop.at
            else:
                reasons = {_CLOSED: Reason.CLOSED, _LONG: Reason.LONG}
                return ScanStop(reasons.get(struct.reason, Reason.REFUSED), at, struct.begin)

    def _grow(self, needed: int) -> None:
        if needed >= _STRINGS:
            self._memory.grow(needed, 2 * self._struct.longest if needed == _NEED_BLOB else 0)
            return
        self.columns.grow(self.columns.names[needed])

    def _decode_metadata(self, text: ScanText) -> None:
        """Decode the metadata events whose places C has written down."""
        columns = self.columns
        table = columns.names.index("metadata")
        count = int(columns.count[table])
        columns.count[table] = 0
        rows = (columns.tables["metadata"][name][:count].tolist() for name in METADATA)
        for ordinal, offset, length in zip(*rows):
            begin = offset - text.offset
            event = decode_element(text.bytes(begin, begin + length).decode())
            columns.metadata.append(metadata_of(event, ordinal))


def _addresses(arrays: list[AnyArray] | list[U32]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
