"""Groups: the summaries of 64 ranks in one file, column by column, so that a bucket needs few requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..base.arrays import I64, AnyArray
from ..tables.kinds import KERNEL_TYPES
from .layout import GROUPS, RANKS, RecordName, record_name, records_in
from .location import StoreLocation
from .pack import FIRST_READ, FIRST_REQUEST, DamagedStoreError, PackedFile, packed

FACTS = "facts"
STEP_TEXTS, KERNEL_TEXTS, LANE_TEXTS, FINDINGS = "step_texts", "kernel_texts", "lane_texts", "findings"
TEXTS = (FACTS, STEP_TEXTS, KERNEL_TEXTS, LANE_TEXTS, FINDINGS)
NOTHING: Mapping[str, Any] = {
    STEP_TEXTS: {"labels": [], "groups": []},
    KERNEL_TEXTS: {"names": [], "types": []},
    LANE_TEXTS: [],
    FINDINGS: None,
}
MOST_MEMBERS = 1 << 16
MOST_TIME = 1 << 62
"""The greatest time or count that is accepted."""
STEP_NUMBERS = (
    "cpu_busy_ns",
    "device_ns",
    "device_busy_ns",
    "device_span_ns",
    "idle_ns",
    "kernel_ns",
    "comm_ns",
    "copy_ns",
    "device_slices",
)
LINE_CELLS = 512
"""Cells of a device's line: each has the kind that runs longest, and the share of it in which anything runs.
"""
IDLE = 0
"""The kind of a cell in which nothing runs. Other kinds are an index into KERNEL_TYPES plus one; OTHER stands
for work of none of these types.
"""
OTHER = len(KERNEL_TYPES) + 1
KERNEL_NUMBERS = ("count", "total_ns", "min_ns", "max_ns")


class Shelf:
    """The summaries of one file, of a group or of one rank; parts are read when they are asked for."""

    def __init__(
        self, file: PackedFile, members: Sequence[RecordName], lengths: Mapping[str, Sequence[int]]
    ) -> None:
        """Take a file and the names of its members; `lengths` has for each column the number of values of
        each member.
        """
        self.members = tuple(members)
        self._file = file
        self._bounds = {name: np.cumsum([0, *counts]).astype(np.int64) for name, counts in lengths.items()}
        self._columns: dict[str, AnyArray] = {}
        self._bounded: set[str] = set()  # columns of times that were checked
        self._texts: dict[str, Sequence[Any]] = {}
        self._is_group = FACTS in file.parts and "members" in file.parts

    def text(self, name: str, member: int) -> Any:
        """Return a text of a member. Raises DamagedStoreError."""
        if name not in self._texts:
            if not self._is_group:
                self._texts[name] = [self._file.json(name) if name in self._file.parts else NOTHING.get(name)]
            else:
                values = self._file.json(name)
                if not isinstance(values, list) or len(values) != len(self.members):
                    raise self._file.damaged(f"{name} is not that of its ranks")
                self._texts[name] = values
        return self._texts[name][member]

    def column(self, name: str, member: int) -> AnyArray:
        """Return a column of a member. Raises DamagedStoreError."""
        if name not in self._columns:
            if name not in self._file.parts:
                return np.empty(0, np.int64)
            column = self._file.column(name)
            if not self._is_group:
                self._bounds[name] = np.array([0, len(column)], np.int64)
            elif name not in self._bounds or self._bounds[name][-1] != len(column):
                raise self._file.damaged(f"{name} is not that of its ranks")
            self._columns[name] = column
        bounds = self._bounds[name]
        return self._columns[name][bounds[member] : bounds[member + 1]]

    def times(self, name: str, member: int) -> I64:
        """Return a column of times or counts of a member. Raises DamagedStoreError, also for values out of
        bounds.
        """
        values = self.column(name, member)
        if name not in self._bounded:
            whole = self._columns.get(name, values)
            most = max(-int(whole.min()), int(whole.max())) if len(whole) else 0
            if whole.dtype != np.int64 or most > MOST_TIME:
                raise self.damaged(f"{name} is out of bounds")
            self._bounded.add(name)
        return values

    def check(self) -> None:
        """Read the whole file. Raises DamagedStoreError where something differs from what was written."""
        self._file.check()

    @property
    def column_names(self) -> list[str]:
        """The columns of the file."""
        return [name for name, part in self._file.parts.items() if part.dtype != "json"]

    def damaged(self, why: str) -> DamagedStoreError:
        """Return the error that says what is wrong with the file."""
        return self._file.damaged(why)


def read_group(location: StoreLocation, name: str) -> Shelf:
    """Return a group. Raises FileNotFoundError, DamagedStoreError, UnreadableError."""
    path = f"{GROUPS}/{name}"
    file = _packed_file(location, path)
    directory = file.json("members")
    try:
        members = [record_name(str(member)) for member in directory["names"]]
        lengths = {
            str(key): [_count(each) for each in counts] for key, counts in directory["lengths"].items()
        }
    except (KeyError, TypeError, AttributeError, ValueError):
        raise file.damaged("it does not say whose it is") from None
    known = [member for member in members if member is not None]
    if len(known) != len(members) or len(known) > MOST_MEMBERS:
        raise file.damaged("it does not say whose it is")
    if any(len(counts) != len(known) for counts in lengths.values()):
        raise file.damaged("its columns are not those of its ranks")
    return Shelf(file, known, lengths)


def read_record(location: StoreLocation, record: RecordName) -> Shelf:
    """Return the summary of one rank. Raises FileNotFoundError, DamagedStoreError, UnreadableError."""
    path = f"{RANKS}/{record}"
    return Shelf(_packed_file(location, path), [record], {})


def _packed_file(location: StoreLocation, path: str) -> PackedFile:
    first = FIRST_REQUEST if location.is_remote else FIRST_READ
    return PackedFile(
        f"{location.title}/{path}", lambda offset, length: location.read(path, offset, length), first
    )


def update_groups(location: StoreLocation, groups: Iterable[str]) -> list[RecordName]:
    """Rewrite the groups that differ from the summaries in the store, and repeat while other runs add
    summaries. Return the damaged summaries; they are removed, so that the next run makes them again.

    Raises TracelaneError.
    """
    damaged: list[RecordName] = []
    for name in sorted(set(groups)):
        while True:
            records = [record for record in records_in(location) if record.group == name]
            if not records or _members(location, name) == records:
                break
            try:
                shelves = location.each(lambda record: _sound(location, record), records)
            except FileNotFoundError:
                continue  # another run has replaced a summary
            bad = [record for record, shelf in zip(records, shelves) if shelf is None]
            for record in bad:
                location.remove(f"{RANKS}/{record}")
            damaged += bad
            if not bad:
                location.write(f"{GROUPS}/{name}", _group_bytes(records, [one for one in shelves if one]))
    return damaged


def _members(location: StoreLocation, name: str) -> list[RecordName]:
    """Return the names of the members of a group, none where it is missing or damaged."""
    try:
        shelf = read_group(location, name)
        shelf.check()
        return list(shelf.members)
    except (FileNotFoundError, DamagedStoreError):
        return []


def _sound(location: StoreLocation, record: RecordName) -> Shelf | None:
    """Return the summary of a rank, None where it is damaged. Raises FileNotFoundError, UnreadableError."""
    try:
        shelf = read_record(location, record)
        shelf.check()
    except DamagedStoreError:
        return None
    return shelf


def _group_bytes(records: Sequence[RecordName], shelves: Sequence[Shelf]) -> bytes:
    names = dict.fromkeys(name for shelf in shelves for name in shelf.column_names)
    columns: dict[str, AnyArray] = {}
    lengths: dict[str, list[int]] = {}
    for name in names:
        parts = [shelf.column(name, 0) for shelf in shelves]
        lengths[name] = [len(part) for part in parts]
        columns[name] = np.concatenate([part for part in parts if len(part)] or parts[:1])
    texts = {name: [shelf.text(name, 0) for shelf in shelves] for name in TEXTS}
    directory = {"names": [str(record) for record in records], "lengths": lengths}
    read_first = {name: texts.pop(name) for name in (FACTS, STEP_TEXTS)}
    return packed({"members": directory, **read_first, **columns, **texts})


def _count(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 40:
        raise ValueError("no count")
    return value
