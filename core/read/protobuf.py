"""Protobuf's wire format, read: the fields of a message, whatever they mean.

Source: https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

SIGN = 1 << 63


class WireError(ValueError):
    """What stands there is no message."""


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at a place, 0 to 2^64 - 1, and where it ends; IndexError where the data does."""
    number = data[at]
    at += 1
    if number < 0x80:
        return number, at
    number &= 0x7F
    for shift in range(7, 70, 7):
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & (2 * SIGN - 1), at
    raise WireError("a number of more than ten bytes")


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number and value of each field: whole numbers unsigned, as are the bits of fixed ones; else
    bytes. Raises WireError where the message ends within a field or has none of protobuf's kinds.
    """
    at, end = 0, len(data)
    try:
        while at < end:
            key = data[at]  # most keys, sizes and packed_numbers are of one byte
            key, at = (key, at + 1) if key < 0x80 else read_varint(data, at)
            match key & 7:
                case 0:
                    value = data[at]
                    value, at = (value, at + 1) if value < 0x80 else read_varint(data, at)
                    yield key >> 3, value
                case 2:
                    size = data[at]
                    size, at = (size, at + 1) if size < 0x80 else read_varint(data, at)
                    if at + size > end:
                        raise WireError("a field that is longer than its message")
                    yield key >> 3, data[at : at + size]
                    at += size
                case 1 | 5 as kind:
                    size = 8 if kind == 1 else 4
                    if at + size > end:
                        raise WireError("a field that is longer than its message")
                    yield key >> 3, int.from_bytes(data[at : at + size], "little")
                    at += size
                case _:
                    raise WireError(f"a field of kind {key & 7}")
    except IndexError:
        raise WireError("a message that ends within a field") from None


def signed_number(number: int) -> int:
    """Return an unsigned 64-bit number as the signed one with the same bits."""
    return number - 2 * SIGN if number >= SIGN else number


def double(bits: int) -> float:
    """Return the floating-point number with these 64 bits."""
    value: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
    return value


def packed_numbers(value: int | bytes) -> Iterator[int]:
    """Yield the numbers of a repeated field: one each, or several packed into one."""
    if isinstance(value, int):
        yield value
        return
    at = 0
    try:
        while at < len(value):
            number, at = read_varint(value, at)
            yield number
    except IndexError:
        raise WireError("packed_numbers that end within one") from None
