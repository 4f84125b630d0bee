r"""What is kept of ranks: facts, findings and a few tables, of one rank in a file and of 64 in another.

A file has each column once, the rows of one rank after those of another: a bucket needs few requests. Columns
and JSON are packed, and checked as a whole:

    tracelane store 4 <bytes> <crc>\n  how the file begins; what follows has so many bytes and this checksum
    directory                          a line of JSON: {name: [dtype, values, bytes]}
    parts                              one after another, deflated; integers as differences, little-endian

The same values give the same bytes. A file may come from anybody: everything is looked at before it is used.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ..base.arrays import AnyArray
from ..base.errors import UnreadableError
from ..base.numbers import whole_number
from ..tables.frame.kinds import KERNEL_TYPES
from .location import GROUPS, RANKS, RecordName, StoreLocation, json_bytes, record_name, records_in

MAX_MEMBERS, MAX_ROWS = 1 << 16, 1 << 40
MAX_TIME = 1 << 62
"""The greatest time or count that is accepted."""
STEP_NUMBERS = (
    *("cpu_busy_ns", "device_ns", "device_busy_ns", "device_span_ns", "idle_ns"),
    *("kernel_ns", "comm_ns", "copy_ns", "device_slices"),
)
NOT_KNOWN = -1
"""In place of a number of a step that is not known."""
LINE_CELLS = 512
"""Cells of a device's line: each has the kind that runs longest, and the share of it in which anything runs.
"""
IDLE = 0
"""The kind of a cell in which nothing runs. Other kinds are an index into KERNEL_TYPES plus one; OTHER stands
for work of none of these types.
"""
OTHER = len(KERNEL_TYPES) + 1
KERNEL_NUMBERS = ("count", "total_ns", "min_ns", "max_ns")
TABLES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "steps": (("label", "group"), ("position", "start", "end", *STEP_NUMBERS)),
    "collectives": ((), ("start", "end", "family", "number", "position", "message")),
    "families": (("group", "name"), ("sequenced",)),  # of collectives
    "messages": (("kind", "dtype"), ("size", "group_size")),  # of collectives; -1 for what is not known
    "line": ((), ("kind", "busy")),
    "kernels": (("name", "type"), KERNEL_NUMBERS),
}
"""The tables of a rank: their columns of text, and those of numbers; times are lane times in ns."""
Columns: TypeAlias = Mapping[str, Any]
"""The rows of a table by column: lists of text, arrays of numbers, all of one length."""
NOTHING: Mapping[str, Columns] = {
    table: {key: [] for key in texts} | {key: np.empty(0, np.int64) for key in numbers}
    for table, (texts, numbers) in TABLES.items()
}


@dataclass(frozen=True, eq=False)
class RankSummary:
    facts: Mapping[str, Any]
    findings: Any = None
    tables: Mapping[str, Columns] = field(default_factory=lambda: NOTHING)

    def to_bytes(self) -> bytes:
        return packed_summaries([self])

    def shortened(self, most: Mapping[str, int]) -> RankSummary:
        """Return the summary with at most so many rows of some tables; the facts count those left out."""
        tables = {
            name: {key: values[: most.get(name)] for key, values in rows.items()}
            for name, rows in self.tables.items()
        }
        left_out = {
            name: left for name in TABLES if (left := _length(self.tables[name]) - _length(tables[name]))
        }
        return RankSummary({**self.facts, "left_out": left_out}, self.findings, tables)


def _length(rows: Columns) -> int:
    return len(next(iter(rows.values())))


def joined_rows(parts: Sequence[Columns]) -> Columns:
    """Return the rows of several tables, at least one, one after another."""
    return {
        key: [text for rows in parts for text in rows[key]]
        if isinstance(parts[0][key], list)
        else np.concatenate([rows[key] for rows in parts if len(rows[key])] or [parts[0][key]])
        for key in parts[0]
    }


def packed_summaries(summaries: Sequence[RankSummary], names: Sequence[str] = ()) -> bytes:
    """Return a file of summaries; `names` say whose they are where the file's name does not."""
    tables = {name: [summary.tables[name] for summary in summaries] for name in TABLES}
    lengths = {name: list(map(_length, rows)) for name, rows in tables.items()}
    columns = {
        f"{name}.{key}": column for name in TABLES for key, column in joined_rows(tables[name]).items()
    }
    facts, findings = ([getattr(one, key) for one in summaries] for key in ("facts", "findings"))
    return packed({"members": [list(names), lengths], "facts": facts, "findings": findings, **columns})


class Shelf:
    """The summaries of one file, of a group or of one rank; columns are unpacked when they are asked for."""

    def __init__(self, file: PackedFile, record: RecordName | None = None) -> None:
        """Take the file of a group, or of one record. Raises DamagedStoreError."""
        self._file = file
        try:
            written, lengths = file.json("members")
            names = [record] if record else [record_name(str(name)) for name in written]
            self.members = tuple(name for name in names if name is not None)
            counts = {table: [range(MAX_ROWS)[each] for each in lengths[table]] for table in TABLES}
        except (KeyError, TypeError, ValueError, IndexError):
            raise self.damaged("it does not say whose it is") from None
        if len(names) > MAX_MEMBERS or any(len(of) != len(names) for of in (self.members, *counts.values())):
            raise self.damaged("its tables are not those of its ranks")
        self._bounds = {table: np.cumsum([0, *each]).astype(np.int64) for table, each in counts.items()}
        self._tables: dict[str, Columns] = {}
        self._texts: dict[str, list[Any]] = {}

    def text(self, name: str, member: int) -> Any:
        """Return the facts or findings of a member. Raises DamagedStoreError."""
        if name not in self._texts:
            self._texts[name] = self._list(name, len(self.members))
        return self._texts[name][member]

    def table(self, name: str, member: int) -> Columns:
        """Return the rows of a member in a table. Raises DamagedStoreError."""
        bounds = self._bounds[name]
        if name not in self._tables:
            texts, numbers = TABLES[name]
            whole: dict[str, Any] = {key: self._list(f"{name}.{key}", int(bounds[-1])) for key in texts}
            if any(type(text) is not str for texts in whole.values() for text in texts):
                raise self.damaged(f"a text of {name} is none")
            whole |= {key: self._numbers(f"{name}.{key}", int(bounds[-1])) for key in numbers}
            self._tables[name] = whole
        low, high = bounds[member : member + 2].tolist()
        return {key: values[low:high] for key, values in self._tables[name].items()}

    def summary(self, member: int) -> RankSummary:
        """Return all that is kept of a member. Raises DamagedStoreError."""
        tables = {name: self.table(name, member) for name in TABLES}
        return RankSummary(self.text("facts", member), self.text("findings", member), tables)

    def damaged(self, why: str) -> DamagedStoreError:
        return self._file.damaged(why)

    def _list(self, name: str, length: int) -> list[Any]:
        values = self._file.json(name)
        if not isinstance(values, list) or len(values) != length:
            raise self.damaged(f"{name} is not that of its ranks")
        return values

    def _numbers(self, name: str, length: int) -> AnyArray:
        values = self._file.column(name)
        most = max(-int(values.min()), int(values.max())) if len(values) else 0
        if len(values) != length or most > MAX_TIME:
            raise self.damaged(f"{name} is not that of its ranks, or out of bounds")
        return values


def read_shelf(location: StoreLocation, file: RecordName | str) -> Shelf:
    """Return the file of one rank's summary, or of a group. Raises FileNotFoundError, UnreadableError."""
    path = f"{GROUPS if isinstance(file, str) else RANKS}/{file}"
    packed_file = PackedFile(f"{location.title}/{path}", partial(location.read, path))
    return Shelf(packed_file, None if isinstance(file, str) else file)


def update_groups(location: StoreLocation, groups: Iterable[str]) -> list[RecordName]:
    """Rewrite the groups that differ from the summaries in the store, and repeat while other runs add
    summaries. Return the damaged summaries; they are removed, so that the next run makes them again.

    Raises TracelaneError.
    """

    def sound(record: RecordName) -> RankSummary | None:
        with suppress(DamagedStoreError):
            return read_shelf(location, record).summary(0)
        return None

    damaged: list[RecordName] = []
    for name in sorted(set(groups)):
        while True:
            records = [record for record in records_in(location) if record.group == name]
            members: Sequence[RecordName] = ()
            with suppress(FileNotFoundError, DamagedStoreError):
                members = read_shelf(location, name).members
            if not records or list(members) == records:
                break
            try:
                summaries = location.each(sound, records)
            except FileNotFoundError:
                continue  # another run has replaced a summary
            bad = [record for record, summary in zip(records, summaries) if summary is None]
            for record in bad:
                location.remove(f"{RANKS}/{record}")
            damaged += bad
            if not bad:
                whole = [summary for summary in summaries if summary is not None]
                location.write(f"{GROUPS}/{name}", packed_summaries(whole, list(map(str, records))))
    return damaged


DTYPES = {"i8": "<i8", "u1": "u1", "json": "u1"}
MAX_FILE = 512 << 20
MAX_PART = 64 << 20
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


class PackedFile:
    """A packed file; its parts are unpacked when they are asked for."""

    def __init__(self, title: str, read: Callable[[int, int], bytes]) -> None:
        """Read the file by `read(offset, length)`. Raises DamagedStoreError, UnreadableError."""
        self.title = title
        data = read(0, FIRST_READ)
        head = _HEAD.match(data)
        if head is None or whole_number(head[1]) > MAX_FILE:
            raise self.damaged("it is not a file of a capture store, or of another version")
        missing = head.end() + whole_number(head[1]) - len(data)
        data += read(len(data), missing + 1) if missing > 0 else b""
        self._body = memoryview(data)[head.end() :]
        if len(self._body) != whole_number(head[1]) or zlib.crc32(self._body) != whole_number(head[2]):
            raise self.damaged("it does not match its checksum")
        self.parts: dict[str, tuple[str, int, int, int]] = {}  # dtype, bytes unpacked, where it is packed
        try:
            at = data.find(b"\n", head.end()) + 1 - head.end()
            directory = bytes(self._body[: max(0, at)])
            for name, (dtype, values, size) in json.loads(directory).items():
                length = values * np.dtype(DTYPES[dtype]).itemsize
                if type(length) is not int or type(size) is not int or not 0 <= length <= MAX_PART:
                    raise ValueError("no size of a part")
                self.parts[name] = dtype, length, at, at + size
                at += size
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise self.damaged("its directory is none") from None

    def damaged(self, why: str) -> DamagedStoreError:
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
