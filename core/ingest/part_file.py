"""Parts on disk: how decoding hands its columns over to the builder, one file per part.

    bytes 0-7    magic
    bytes 8-15   length of the header
    header       JSON: number, events, counts, problems, exact bounds, and where each array lies
    arrays       raw native-endian values, each on a multiple of 8 bytes; whole numbers as narrow as can be

Part files live in the builder's temporary folder, are read back by the same machine and then removed, so
they carry no version and no checksum.
"""

from __future__ import annotations

import json
import mmap
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from ..base.errors import CacheError
from ..base.mapped import let_go
from .columns import I64, U8, U32, AnyArray, LiftedColumn, Metadata, Part, Table
from .problem import Problem

MAGIC = b"TLPART1\n"
DIGEST_BYTES = 16
ALIGN = 8
_AS_IT_IS = frozenset({"id_value"})
"""Columns whose values the builder changes: a smaller dtype may not hold what they become."""


def write_part(part: Part, folder: Path) -> Path:
    """Write one part into `folder` and return its file; a full disk is a CacheError."""
    encoded = [text.encode("utf-8", "replace") for text in part.strings]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=offsets[1:])
    digests = b"".join([blake2b(text, digest_size=DIGEST_BYTES).digest() for text in encoded])
    arrays: dict[str, AnyArray | bytes] = {
        "strings.blob": b"".join(encoded),
        "strings.offset": offsets,
        "strings.digest": digests,
        "tracks": orjson.dumps(part.tracks),
        "metadata": orjson.dumps([[m.ordinal, m.name, m.pid, m.tid, m.args] for m in part.metadata]),
    }
    for table, columns in part.tables.items():
        for name, values in columns.items():
            arrays[f"{table}/{name}"] = values if name in _AS_IT_IS else _narrowed(values)
    same: dict[str, str] = {}  # ordinals that lie in the file under another name
    firsts: dict[str, U32] = {}
    for key, column in part.lifted.items():
        first = next((key for key, one in firsts.items() if np.array_equal(one, column.ordinals)), key)
        if first == key:
            firsts[key] = column.ordinals
            arrays[f"lifted/{key}/ordinals"] = _narrowed(column.ordinals)
        else:
            same[f"lifted/{key}/ordinals"] = f"lifted/{first}/ordinals"
        arrays[f"lifted/{key}/values"] = _narrowed(column.values)

    places: dict[str, tuple[int, int, str]] = {}
    at = 0
    for name, content in arrays.items():
        size = len(content) if isinstance(content, bytes) else content.nbytes
        places[name] = (at, size, "" if isinstance(content, bytes) else content.dtype.str)
        at += size + -size % ALIGN
    places |= {name: places[other] for name, other in same.items()}
    header = json.dumps(
        {
            "number": part.number,
            "events": part.events,
            "counts": part.counts,
            "problems": [[p.kind, p.count, p.offset, p.message] for p in part.problems],
            "exact_start": part.exact_start,
            "exact_end": part.exact_end,
            "tables": {table: list(columns) for table, columns in part.tables.items()},
            "lifted": list(part.lifted),
            "strings": len(encoded),
            "arrays": places,
        }
    ).encode()
    header += b" " * (-len(header) % ALIGN)
    path = folder / f"part-{part.number:06d}"
    try:
        with path.open("wb") as file:
            file.write(MAGIC + len(header).to_bytes(8, "little") + header)
            for content in arrays.values():
                raw = content if isinstance(content, bytes) else np.ascontiguousarray(content).data.cast("B")
                file.write(raw)
                file.write(b"\0" * (-len(raw) % ALIGN))
    except OSError as error:
        raise CacheError(f"cannot write {path}: {error.strerror}") from error
    return path


def _narrowed(values: AnyArray) -> AnyArray:
    """Return whole numbers in the smallest dtype that holds them, all else as it is."""
    if values.dtype.kind == "f" or not len(values):
        return values
    dtype = np.result_type(np.min_scalar_type(values.min()), np.min_scalar_type(values.max()))
    return values.astype(dtype) if dtype.itemsize < values.itemsize else values


class PartFile:
    """A part as it lies on disk: the fields of `Part`, its arrays mapped into memory when first used.

    Whole numbers may have a smaller dtype than there.
    """

    def __init__(self, path: Path) -> None:
        """Read the header of `path`; damage is a CacheError. Nothing stays open."""
        self.path = path
        try:
            with path.open("rb") as file:
                start = file.read(16)
                length = int.from_bytes(start[8:], "little")
                if start[:8] != MAGIC or length > path.stat().st_size:
                    raise CacheError(f"{path} is no part file")
                header: dict[str, Any] = json.loads(file.read(length))
        except (OSError, ValueError) as error:
            raise CacheError(f"cannot read {path}: {error}") from error
        self._data = 16 + length
        self._places: dict[str, tuple[int, int, str]] = header["arrays"]
        end = max((at + size for at, size, _ in self._places.values()), default=0)
        if self._data + end > path.stat().st_size:
            raise CacheError(f"{path} is cut short")
        self.number: int = header["number"]
        self.events: int = header["events"]
        self.counts: dict[str, int] = header["counts"]
        self.problems = [Problem(*fields) for fields in header["problems"]]
        self.exact_start: int | None = header["exact_start"]
        self.exact_end: int | None = header["exact_end"]
        self.string_count: int = header["strings"]
        self._tables: dict[str, list[str]] = header["tables"]
        self._lifted: list[str] = header["lifted"]

    @cached_property
    def _map(self) -> mmap.mmap:
        try:
            with self.path.open("rb") as file:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise CacheError(f"cannot read {self.path}: {error}") from error

    def _array(self, name: str) -> AnyArray:
        at, size, dtype = self._places[name]
        kind = np.dtype(dtype)
        return np.frombuffer(self._map, kind, size // kind.itemsize, self._data + at)

    def _bytes(self, name: str) -> bytes:
        at, size, _ = self._places[name]
        return self._map[self._data + at : self._data + at + size]

    def column(self, table: str, name: str) -> AnyArray:
        """Return one column of one table, mapped."""
        return self._array(f"{table}/{name}")

    @cached_property
    def tables(self) -> dict[str, Table]:
        """All tables, mapped."""
        return {t: {name: self.column(t, name) for name in names} for t, names in self._tables.items()}

    @cached_property
    def lifted(self) -> dict[str, LiftedColumn]:
        """Lifted columns by key, mapped."""
        return {
            key: LiftedColumn(self._array(f"lifted/{key}/ordinals"), self._array(f"lifted/{key}/values"))
            for key in self._lifted
        }

    @property
    def string_blob(self) -> U8:
        """All strings of the part as UTF-8, one after the other."""
        at, size, _ = self._places["strings.blob"]
        return np.frombuffer(self._map, np.uint8, size, self._data + at)

    @property
    def string_offsets(self) -> I64:
        """Where each string begins in the blob, and the end: one more than there are strings."""
        return self._array("strings.offset")

    @property
    def string_digests(self) -> npt.NDArray[np.uint8]:
        """The 16-byte blake2b digest of each string, one a row."""
        at, size, _ = self._places["strings.digest"]
        flat = np.frombuffer(self._map, np.uint8, size, self._data + at)
        return flat.reshape(self.string_count, DIGEST_BYTES)

    @property
    def strings(self) -> list[str]:
        """All strings of the part, decoded anew at each call."""
        blob = self._bytes("strings.blob")
        bounds = self.string_offsets.tolist()
        return [blob[a:b].decode() for a, b in pairwise(bounds)]

    @property
    def tracks(self) -> list[tuple[str, str]]:
        """JSON texts of (pid, tid) by track number."""
        return [(pid, tid) for pid, tid in orjson.loads(self._bytes("tracks"))]

    @property
    def metadata(self) -> list[Metadata]:
        """The metadata that count, in file order."""
        return [Metadata(*fields) for fields in orjson.loads(self._bytes("metadata"))]

    def let_go(self) -> None:
        """Give back the memory of what has been read; arrays stay good, and are read again on use."""
        if "_map" in self.__dict__:
            let_go(self._map)


def open_part(path: Path) -> PartFile:
    """Open a part file written by `write_part`."""
    return PartFile(path)


__all__ = ["DIGEST_BYTES", "PartFile", "open_part", "write_part"]
