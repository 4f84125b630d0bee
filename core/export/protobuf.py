"""Protobuf's wire format: single fields, columns of numbers as rows of bytes of one width, and arguments of
events as Perfetto's debug annotations, with the field numbers of
perfetto/trace/track_event/debug_annotation.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..base.arrays import I64, AnyArray

MASK = (1 << 64) - 1
ONE_BYTE = tuple(bytes((number,)) for number in range(0x80))


def varint(number: int) -> bytes:
    """Return a number as a base-128 varint; negative ones as 64 bits."""
    number &= MASK
    if number < 0x80:
        return ONE_BYTE[number]
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def number_field(tag: int, number: int) -> bytes:
    return varint(tag << 3) + varint(number)


def bytes_field(tag: int, data: bytes) -> bytes:
    """Return a field that holds text or another message."""
    return varint(tag << 3 | 2) + varint(len(data)) + data


def text_field(tag: int, text: str) -> bytes:
    return bytes_field(tag, text.encode("utf-8", "replace"))


def double_field(tag: int, value: float) -> bytes:
    return varint(tag << 3 | 1) + struct.pack("<d", value)


def fixed_field(tag: int, value: int) -> bytes:
    """Return a field that holds 64 bits."""
    return varint(tag << 3 | 1) + struct.pack("<Q", value & MASK)


def varint_rows(numbers: I64) -> AnyArray:
    """Return numbers >= 0 as varints of one width, a row of bytes each. Short ones are filled up with bytes
    that add nothing, which every reader accepts: 5 beside 300 is 85 00.
    """
    width = len(varint(int(numbers.max(initial=0))))
    shifted = numbers[:, None] >> np.arange(0, 7 * width, 7)
    rows = (shifted & 0x7F).astype(np.uint8)
    rows[:, :-1] |= 0x80
    return rows


def number_rows(tag: int, numbers: I64) -> AnyArray:
    """Return a field that holds a whole number >= 0 for each number, all of one width."""
    return side_by_side(varint(tag << 3), varint_rows(numbers))


def double_rows(tag: int, values: AnyArray) -> AnyArray:
    return side_by_side(varint(tag << 3 | 1), values.astype("<f8").view(np.uint8).reshape(-1, 8))


def side_by_side(*columns: bytes | AnyArray) -> AnyArray:
    """Return rows of bytes put together from columns; one of bytes is the same in every row."""
    count = next(len(column) for column in columns if not isinstance(column, bytes))
    rows = (np.frombuffer(one, np.uint8)[None] if isinstance(one, bytes) else one for one in columns)
    return np.concatenate([np.broadcast_to(one, (count, one.shape[1])) for one in rows], axis=1)


def row_bytes(rows: AnyArray) -> list[bytes]:
    data, width = rows.tobytes(), rows.shape[1]
    return [data[at : at + width] for at in range(0, len(data), width)]


FIELD = b"\x22"  # field 4 of TrackEvent: a message
WHOLE = b"\x20"  # field 4 of DebugAnnotation: a signed number
MAX_DEPTH = 32
"""Values nested deeper are written as text."""
REMEMBERED = 1 << 16
"""How many encoded values are remembered: shapes, types and names are the same in every step."""
MAX_LENGTH = 256
"""The longest encoded value that is remembered, in characters."""


class AnnotationEncoder:
    """Encodes the arguments of events; a key is written once, as interned data, and referred to by number."""

    def __init__(self) -> None:
        self.keys: dict[str, int] = {}
        self._heads: dict[str, bytes] = {}
        self._values: dict[tuple[str, str], bytes] = {}

    def encode(self, arguments: Mapping[str, Any]) -> bytes:
        """Return the arguments of an event as fields of a TrackEvent."""
        return b"".join([self._field(key, value) for key, value in arguments.items()])

    def _field(self, key: str, value: Any) -> bytes:
        if value.__class__ is int and 0 <= value < 1 << 63:
            body = self._head(key) + WHOLE + varint(value)
            return FIELD + varint(len(body)) + body
        text = repr(value)  # unlike the value itself it differs for 1, 1.0, True and "1"
        if len(text) > MAX_LENGTH:
            return bytes_field(4, self._head(key) + self._value(value, 0))
        field = self._values.get((key, text))
        if field is None:
            if len(self._values) >= REMEMBERED:
                self._values.clear()
            field = self._values[key, text] = bytes_field(4, self._head(key) + self._value(value, 0))
        return field

    def _head(self, key: str) -> bytes:
        head = self._heads.get(key)
        if head is None:
            number = self.keys[key] = len(self.keys) + 1
            head = self._heads[key] = number_field(1, number)
        return head

    def _value(self, value: Any, depth: int) -> bytes:
        match value:
            case bool():
                return number_field(2, int(value))
            case int() if -(1 << 63) <= value < (1 << 63):
                return number_field(4, value)
            case int() if 0 <= value <= MASK:
                return number_field(3, value)
            case float():
                return double_field(5, value)
            case dict() | list() if not value and depth:
                return text_field(6, "{}" if isinstance(value, dict) else "[]")  # else what follows moves up
            case dict() if depth < MAX_DEPTH:
                return b"".join(
                    bytes_field(11, self._head(key) + self._value(each, depth + 1))
                    for key, each in value.items()
                )
            case list() if depth < MAX_DEPTH:
                return b"".join(bytes_field(12, self._value(each, depth + 1)) for each in value)
            case None:
                return text_field(6, "null")
            case _:
                return text_field(6, value if isinstance(value, str) else str(value))
