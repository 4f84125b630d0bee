r"""Columns and JSON in one file, each part packed and checked: what summaries and groups are written as.

    tracelane store 2\n         how the file begins
    <u4 length> <u4 crc>        of the directory
    directory                   JSON: {"parts": {name: [dtype, values, offset, bytes, crc]}}
    parts                       one after another, deflated; columns little-endian, integers as differences

The same values give the same bytes. A file may come from anybody: everything is looked at before it is used.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.arrays import AnyArray
from ..base.errors import UnreadableError

MAGIC = b"tracelane store 2\n"
LEVEL = 6
DTYPES = {"i8": "<i8", "f8": "<f8", "u1": "u1", "json": "u1"}
MOST_DIRECTORY = 16 << 20
MOST_PART = 64 << 20
"""Bytes that a part may have when it is unpacked: 8 million numbers of 64 ranks."""
_SIZES = struct.Struct("<II")
FIRST_READ, FIRST_REQUEST = 64 << 10, 4 << 20
"""So much of a file is read for its directory at first; more where each reading is a request to a server."""


class DamagedStoreError(UnreadableError):
    """A file of a store is not what was written."""


@dataclass(frozen=True)
class Part:
    """Where a part lies in its file, and what it is."""

    dtype: str
    length: int  # values
    offset: int  # behind the directory
    size: int  # bytes as packed
    crc: int  # of the packed bytes


def packed(parts: Mapping[str, Any]) -> bytes:
    """Return columns (arrays of int64, float64 or uint8) and JSON values as the bytes of a file, in the order
    given.
    """
    directory: dict[str, list[Any]] = {}
    bodies: list[bytes] = []
    offset = 0
    for name, value in parts.items():
        if isinstance(value, np.ndarray):
            dtype, length = _dtype(value), len(value)
            raw = _raw(value, dtype)
        else:
            dtype, raw = "json", json_bytes(value)
            length = len(raw)
        body = zlib.compress(raw, LEVEL)
        directory[name] = [dtype, length, offset, len(body), zlib.crc32(body)]
        bodies.append(body)
        offset += len(body)
    head = json_bytes({"parts": directory})
    return b"".join([MAGIC, _SIZES.pack(len(head), zlib.crc32(head)), head, *bodies])


def json_bytes(value: Any) -> bytes:
    """Return a JSON value as bytes that depend on nothing but the value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "replace"
    )


class PackedFile:
    """A packed file whose parts are read when they are asked for."""

    def __init__(self, title: str, read: Callable[[int, int], bytes], first: int = FIRST_READ) -> None:
        """Read the directory by `read(offset, length)`, `first` bytes at once.

        Raises DamagedStoreError, UnreadableError.
        """
        self.title = title
        self._read = read
        head = read(0, first)
        begin = len(MAGIC) + _SIZES.size
        if len(head) < begin or not head.startswith(MAGIC):
            raise self.damaged("it is not a file of a capture store, or of another version")
        length, crc = _SIZES.unpack(head[len(MAGIC) : begin])
        if length > MOST_DIRECTORY:
            raise self.damaged("its directory is too long")
        self._start = begin + length
        if len(head) < self._start:
            head += read(len(head), self._start - len(head))
        raw = head[begin : self._start]
        if len(raw) != length or zlib.crc32(raw) != crc:
            raise self.damaged("its directory does not match its checksum")
        self._head = head
        try:
            self.parts = {str(name): _part(entry) for name, entry in json.loads(raw)["parts"].items()}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise self.damaged("its directory is none") from None

    def damaged(self, why: str) -> DamagedStoreError:
        """Return the error that says what is wrong with the file."""
        return DamagedStoreError(f"{self.title}: {why}")

    def check(self) -> None:
        """Read all parts. Raises DamagedStoreError where one is not what was written."""
        for name, part in self.parts.items():
            self._unpacked(name, part.dtype)

    def json(self, name: str) -> Any:
        """Return a JSON part. Raises DamagedStoreError."""
        raw = self._unpacked(name, "json")
        try:
            return json.loads(raw)
        except (ValueError, RecursionError):
            raise self.damaged(f"{name} is no JSON") from None

    def column(self, name: str) -> AnyArray:
        """Return a column. Raises DamagedStoreError."""
        part = self._part(name)
        raw = self._unpacked(name, part.dtype)
        values = np.frombuffer(raw, DTYPES[part.dtype])
        if part.dtype != "i8":
            return values.astype(values.dtype.newbyteorder("="))
        with np.errstate(over="ignore"):
            return np.cumsum(values.astype(np.int64), dtype=np.int64)

    def _part(self, name: str) -> Part:
        if name not in self.parts:
            raise self.damaged(f"{name} is missing")
        return self.parts[name]

    def _unpacked(self, name: str, dtype: str) -> bytes:
        part = self._part(name)
        if part.dtype != dtype or dtype not in DTYPES:
            raise self.damaged(f"{name} is of another type")
        begin = self._start + part.offset
        body = self._head[begin : begin + part.size]
        if len(body) < part.size:
            body = self._read(begin, part.size)
        if len(body) != part.size or zlib.crc32(body) != part.crc:
            raise self.damaged(f"{name} does not match its checksum")
        size = part.length * np.dtype(DTYPES[dtype]).itemsize
        inflater = zlib.decompressobj()
        try:
            raw = inflater.decompress(body, size + 1)
        except zlib.error:
            raise self.damaged(f"{name} cannot be unpacked") from None
        if len(raw) != size:
            raise self.damaged(f"{name} is of another length")
        return raw


def _part(entry: list[Any]) -> Part:
    dtype, length, offset, size, crc = entry
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError("no type of a column")
    if any(type(number) is not int or number < 0 for number in (length, offset, size, crc)):
        raise ValueError("no number")
    if length * np.dtype(DTYPES[dtype]).itemsize > MOST_PART or size > MOST_PART:
        raise ValueError("too large")
    return Part(dtype, length, offset, size, crc)


def _dtype(values: AnyArray) -> str:
    kind = values.dtype.kind
    return "f8" if kind == "f" else "u1" if values.dtype == np.uint8 else "i8"


def _raw(values: AnyArray, dtype: str) -> bytes:
    whole = values.astype(DTYPES[dtype])
    if dtype == "i8":
        with np.errstate(over="ignore"):
            whole = np.diff(whole, prepend=whole.dtype.type(0)) if len(whole) else whole
    return whole.astype(DTYPES[dtype]).tobytes()
