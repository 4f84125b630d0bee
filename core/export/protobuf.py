"""Protobuf's wire format: single fields, and columns of numbers as rows of bytes of one width."""

from __future__ import annotations

import struct

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
    """Return numbers >= 0 as varints of one width, a row of bytes each.

    Short ones are filled up with bytes that add nothing, which every reader accepts: 5 beside 300 is 85 00.
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
    blocks = [
        np.broadcast_to(np.frombuffer(column, np.uint8), (count, len(column)))
        if isinstance(column, bytes)
        else column
        for column in columns
    ]
    return np.concatenate(blocks, axis=1)


def row_bytes(rows: AnyArray) -> list[bytes]:
    data, width = rows.tobytes(), rows.shape[1]
    return [data[at : at + width] for at in range(0, len(data), width)]
