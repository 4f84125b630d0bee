"""The structures that Python and C share, as ctypes describes them."""

from __future__ import annotations

import ctypes
from ctypes import c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

VERSION = 8
"""TL_VERSION of native.h."""
GAPS = 256
GAP_TEXT = 64


class GapStruct(ctypes.Structure):
    _fields_ = [
        ("text", c_uint8 * (GAP_TEXT + 8)),
        ("mask", c_uint64),
        ("opened", c_uint32),
        ("next", c_uint16 * 2),
        *((name, c_uint8) for name in ("words", "length", "does", "slot", "from", "level")),
    ]


class ScanStruct(ctypes.Structure):
    """struct tl_scan; addresses as c_void_p."""

    _fields_ = [
        ("text", c_void_p),
        *((name, c_int64) for name in ("offset", "at", "end", "limit", "longest", "begin", "stop")),
        *((name, c_void_p) for name in ("cancel", "progress")),
        *((name, c_int32) for name in ("is_last", "reason", "irregular")),
        ("ordinal", c_uint32),
        *((name, c_void_p) for name in ("columns", "count", "capacity", "counts", "blob")),
        *((name, c_int64) for name in ("blob_used", "blob_capacity")),
        *((name, c_void_p) for name in ("string_offset", "string_slots", "string_used", "string_uses")),
        *((name, c_void_p) for name in ("track_pid", "track_tid", "track_slots", "track_used", "track_uses")),
        *((name, c_int64) for name in ("string_use_count", "track_use_count")),
        *((name, c_uint64) for name in ("string_mask", "track_mask")),
        ("seed", c_uint64 * 2),
        *((name, c_void_p) for name in ("key_text", "key_offset", "key_owner", "kinds")),
        *((name, c_int32) for name in ("keys", "cname_column", "promoted_columns")),
        *((name, c_void_p) for name in ("promoted_ordinals", "promoted_values", "promoted_count", "gaps")),
        *((name, c_int32) for name in ("gap_count", "new_block")),
        ("origin_high", c_int64),
        ("origin_low", c_uint64),
        *((name, c_int32) for name in ("time_digits", "has_origin")),
    ]


LENGTH_ROOM, DISTANCE_ROOM = 2400, 416
"""TL_LENGTH_ROOM and TL_DISTANCE_ROOM of native.h."""


class InflateStruct(ctypes.Structure):
    """struct tl_inflate; addresses as c_void_p."""

    _fields_ = [
        ("input", c_void_p),
        *((name, c_int64) for name in ("input_size", "at")),
        ("output", c_void_p),
        *((name, c_int64) for name in ("first", "output_at", "output_end", "block", "left")),
        *((name, c_int32) for name in ("mode", "is_final")),
        ("lengths", c_uint32 * LENGTH_ROOM),
        ("distances", c_uint32 * DISTANCE_ROOM),
    ]


STRUCTS: tuple[type[ctypes.Structure], ...] = (GapStruct, ScanStruct, InflateStruct)
"""Every shared structure, in the order of STRUCT_SIZES in version.c."""
