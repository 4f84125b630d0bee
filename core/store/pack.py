r"""Columns and JSON in one file, packed and checked as a whole: what summaries and groups are written as.

    tracelane store 4 <bytes> <crc>\n  how the file begins; what follows has so many bytes and this checksum
    directory                          a line of JSON: {name: [dtype, values, bytes]}
    parts                              one after another, deflated; integers as differences, little-endian

The same values give the same bytes. A file may come from anybody: everything is looked at before it is used.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..base.arrays import AnyArray
from ..base.errors import UnreadableError

DTYPES = {"i8": "<i8", "u1": "u1", "json": "u1"}
MOST_FILE = 512 << 20
MOST_PART = 64 << 20
"""Bytes that a part may have when it is unpacked: 8 million numbers of 64 ranks."""
FIRST_READ = 4 << 20
"""So much of a file is read at first, which is all of most."""
_HEAD = re.compile(rb"tracelane store 4 (\d{1,9}) (\d{1,10})\n")


class DamagedStoreError(UnreadableError):
    """A file of a store is not what was written."""


def packed(parts: Mapping[str, Any]) -> bytes:
    """Return columns (arrays of int64 or uint8) and JSON values as the bytes of a file."""
    directory: dict[str, list[Any]] = {}
    bodies: list[bytes] = []
    for name, value in sorted(parts.items()):
        dtype = "json" if not isinstance(value, np.ndarray) else "u1" if value.dtype == np.uint8 else "i8"
        raw = json_bytes(value) if dtype == "json" else value.tobytes()
        if dtype == "i8":
            with np.errstate(over="ignore"):
                raw = np.diff(value.astype("<i8"), prepend=value.dtype.type(0)).astype("<i8").tobytes()
        bodies.append(zlib.compress(raw))
        directory[name] = [dtype, len(raw) // np.dtype(DTYPES[dtype]).itemsize, len(bodies[-1])]
    body = b"".join([json_bytes(directory), b"\n", *bodies])
    return b"tracelane store 4 %d %d\n" % (len(body), zlib.crc32(body)) + body


def json_bytes(value: Any) -> bytes:
    """Return a JSON value as bytes that depend on nothing but the value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "replace")


class PackedFile:
    """A packed file; its parts are unpacked when they are asked for."""

    def __init__(self, title: str, read: Callable[[int, int], bytes]) -> None:
        """Read the file by `read(offset, length)`. Raises DamagedStoreError, UnreadableError."""
        self.title = title
        data = read(0, FIRST_READ)
        head = _HEAD.match(data)
        if head is None or int(head[1]) > MOST_FILE:
            raise self.damaged("it is not a file of a capture store, or of another version")
        missing = head.end() + int(head[1]) - len(data)
        data += read(len(data), missing + 1) if missing > 0 else b""
        self._body = memoryview(data)[head.end() :]
        if len(self._body) != int(head[1]) or zlib.crc32(self._body) != int(head[2]):
            raise self.damaged("it does not match its checksum")
        self.parts: dict[str, tuple[str, int, int, int]] = {}  # dtype, bytes unpacked, where it is packed
        try:
            at = data.find(b"\n", head.end()) + 1 - head.end()
            directory = bytes(self._body[: max(0, at)])
            for name, (dtype, values, size) in json.loads(directory).items():
                length = values * np.dtype(DTYPES[dtype]).itemsize
                if type(length) is not int or type(size) is not int or not 0 <= length <= MOST_PART:
                    raise ValueError("no size of a part")
                self.parts[name] = dtype, length, at, at + size
                at += size
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise self.damaged("its directory is none") from None

    def damaged(self, why: str) -> DamagedStoreError:
        """Return the error that says what is wrong with the file."""
        return DamagedStoreError(f"{self.title}: {why}")

    def json(self, name: str) -> Any:
        """Return a JSON part. Raises DamagedStoreError."""
        try:
            return json.loads(self._unpacked(name, "json"))
        except (ValueError, RecursionError):
            raise self.damaged(f"{name} is no JSON") from None

    def column(self, name: str) -> AnyArray:
        """Return a column. Raises DamagedStoreError."""
        dtype = "u1" if self.parts.get(name, "")[:1] == ("u1",) else "i8"
        values = np.frombuffer(self._unpacked(name, dtype), DTYPES[dtype])
        if dtype != "i8":
            return values
        with np.errstate(over="ignore"):
            return np.cumsum(values.astype(np.int64), dtype=np.int64)

    def _unpacked(self, name: str, dtype: str) -> bytes:
        if name not in self.parts or self.parts[name][0] != dtype:
            raise self.damaged(f"{name} is missing")
        _, length, low, high = self.parts[name]
        try:
            raw = zlib.decompressobj().decompress(self._body[low:high], length + 1)
        except zlib.error:
            raise self.damaged(f"{name} cannot be unpacked") from None
        if len(raw) != length:
            raise self.damaged(f"{name} is of another length")
        return raw
