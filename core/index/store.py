"""An index opened for reading: mapped columns, the lane and row tables, strings, lookups by position."""

from __future__ import annotations

import bisect
import json
import sys
import zlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import CacheError
from ..ingest.columns import I64, U32, AnyArray
from .format import COLUMNS, LONG, NONE, TABLES, RowKind
from .version import FORMAT_VERSION, MANIFEST

SMALL_COLUMN = 64 * 1024
"""Columns below this many bytes are read at once: a mapping costs more than it saves."""
SCAN_CHUNK = 1 << 20


def table_file(name: str) -> str:
    """Return the file name of a binary table inside an index folder."""
    return f"{name}.table"


def checksum_of(manifest: dict[str, Any]) -> int:
    """Return the CRC of a manifest without its own `checksum` entry."""
    rest = {key: value for key, value in manifest.items() if key != "checksum"}
    return zlib.crc32(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode())


class Index:
    """One source's index. Immutable; columns are mapped when first asked for.

    Positions are places in the slice order of format.py, row numbers index the row table, times are lane
    times in ns. Damage found at opening or on first use of a column raises CacheError.
    """

    def __init__(self, folder: Path, manifest: dict[str, Any], tables: dict[str, AnyArray]) -> None:
        self.folder = folder
        self.manifest = manifest
        self.lanes = tables["lanes"]
        self.rows = tables["rows"]
        self.processes = tables["processes"]
        self.ledger: dict[str, Any] = manifest["ledger"]
        self.problems: list[dict[str, Any]] = manifest.get("problems", [])
        self.path = str(manifest.get("path", ""))
        self.notes: tuple[str, ...] = ()
        self.source: object | None = None
        self.lease: object | None = None
        self._columns: dict[str, AnyArray] = {}
        self._string = lru_cache(maxsize=1 << 16)(self._read_string)
        self.categories = [self.string(int(number)) for number in self.column("categories")]
        slice_rows = np.flatnonzero(self.rows["kind"] == RowKind.SLICES)
        slice_rows = slice_rows[np.argsort(self.rows["first"][slice_rows], kind="stable")]
        self._slice_rows: list[int] = slice_rows.tolist()
        self._slice_firsts: list[int] = self.rows["first"][slice_rows].tolist()

    @classmethod
    def open(cls, folder: Path) -> Index:
        """Open the index in a folder, checking versions, sizes and the checksums of its tables."""
        try:
            manifest = json.loads((folder / MANIFEST).read_bytes())
        except (OSError, ValueError) as error:
            raise CacheError(f"no usable index in {folder}: {error}") from None
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT_VERSION:
            raise CacheError(f"the index in {folder} is of another format")
        if manifest.get("byte_order", sys.byteorder) != sys.byteorder:
            raise CacheError(f"the index in {folder} was written on a machine of another byte order")
        if manifest.get("checksum", checksum_of(manifest)) != checksum_of(manifest):
            raise CacheError(f"the manifest in {folder} is damaged")
        try:
            tables = {name: _read_table(folder, name, manifest["tables"][name]) for name in TABLES}
            index = cls(folder, manifest, tables)
            index._check_bounds()
        except (KeyError, OSError, ValueError, IndexError, TypeError) as error:
            raise CacheError(f"the index in {folder} is damaged: {error!r}") from None
        return index

    # -- columns ------------------------------------------------------------------------------------------

    def column(self, name: str) -> AnyArray:
        """Return a column as a read-only array; one that the manifest does not name is empty."""
        found = self._columns.get(name)
        if found is None:
            found = self._columns[name] = self._map(name)
        return found

    def _map(self, name: str) -> AnyArray:
        entry = self.manifest["columns"].get(name)
        if entry is None:
            return np.empty(0, COLUMNS[name].split("|")[0] if name in COLUMNS else "u4")
        dtype, length = np.dtype(str(entry["dtype"])), int(entry["length"])
        path = self.folder / f"{name}.{entry['dtype']}"
        if length == 0:
            return np.empty(0, dtype)
        try:
            if path.stat().st_size != length * dtype.itemsize:
                raise CacheError(f"the index column {path} has not the size that its manifest says")
            if length * dtype.itemsize < SMALL_COLUMN:
                array: AnyArray = np.fromfile(path, dtype)
                array.flags.writeable = False
                return array
            return np.asarray(np.memmap(path, dtype, "r", shape=(length,)))
        except (OSError, ValueError) as error:
            raise CacheError(f"the index column {path} cannot be read: {error}") from None

    def _check_bounds(self) -> None:
        """Hold every offset of the row table against the columns' lengths (a wrong one must never be
        read).
        """
        lengths = {name: int(entry["length"]) for name, entry in self.manifest["columns"].items()}
        for name, entry in self.manifest["columns"].items():
            size = int(entry["length"]) * np.dtype(str(entry["dtype"])).itemsize
            if size and (self.folder / f"{name}.{entry['dtype']}").stat().st_size != size:
                raise ValueError(f"column {name} has another size than its manifest says")
        rows = self.rows
        for kind, column in (
            (RowKind.SLICES, "slices.start"),
            (RowKind.INSTANTS, "instants.start"),
            (RowKind.SAMPLES, "samples.start"),
        ):
            these = rows[rows["kind"] == kind]
            if len(these) and int((these["first"] + these["count"]).max()) > lengths.get(column, 0):
                raise ValueError(f"rows reach beyond {column}")
        slices = rows[rows["kind"] == RowKind.SLICES]
        if len(slices):
            categories = slices["categories"] + slices["category_count"]
            if int(categories.max()) > lengths.get("row_categories", 0):
                raise ValueError("rows reach beyond row_categories")
        lanes, processes = self.lanes, self.processes
        if len(lanes):
            if int((lanes["first_row"].astype("i8") + lanes["rows"]).max()) > len(rows):
                raise ValueError("lanes reach beyond the row table")
            if int(lanes["process"].max()) >= len(processes):
                raise ValueError("lanes name processes that are not there")

    # -- strings ------------------------------------------------------------------------------------------

    def string(self, number: int) -> str:
        """Return a string by its number."""
        return self._string(int(number))

    def strings(self, numbers: Sequence[int] | AnyArray) -> list[str]:
        """Return several strings by their numbers."""
        return [self._string(int(number)) for number in numbers]

    def _read_string(self, number: int) -> str:
        offsets = self.column("strings.offset")
        if not 0 <= number < len(offsets) - 1:
            raise CacheError(f"the index in {self.folder} names a string that is not there")
        begin, end = int(offsets[number]), int(offsets[number + 1])
        return self.column("strings.blob")[begin:end].tobytes().decode("utf-8", "replace")

    def string_numbers(
        self, text: str, *, prefix: bool = False, inside: bool = False, limit: int = 1 << 20
    ) -> list[int]:
        """Return the numbers of the strings equal to (beginning with, holding) a text, found in the blob."""
        found: list[int] = []
        blob, offsets = self.column("strings.blob"), self.column("strings.offset")
        needle = text.encode()
        if not needle or len(offsets) < 2:
            return []
        step = 64 << 20
        for base in range(0, len(blob), step):
            window = blob[base : base + step + len(needle) - 1].tobytes()
            at = window.find(needle)
            while at >= 0 and len(found) < limit:
                number = int(np.searchsorted(offsets, base + at, "right")) - 1
                begin, end = int(offsets[number]), int(offsets[number + 1])
                whole = begin == base + at and (prefix or end - begin == len(needle))
                if whole or (inside and base + at + len(needle) <= end):
                    found.append(number)
                at = window.find(needle, at + 1)
        return sorted(set(found))

    # -- slices by position -------------------------------------------------------------------------------

    def duration(self, positions: Sequence[int] | AnyArray) -> I64:
        """Return durations in ns at these positions, the long ones resolved."""
        return self._with_long("slices.duration", "long.duration", positions)

    def self_time(self, positions: Sequence[int] | AnyArray) -> I64:
        """Return self times in ns at these positions, the long ones resolved."""
        return self._with_long("slices.self", "long.self", positions)

    def _with_long(self, short: str, long: str, positions: Sequence[int] | AnyArray) -> I64:
        at = np.asarray(positions, np.int64)
        return self.resolve_long(self.column(short)[at], at, long)

    def durations_between(self, begin: int, end: int) -> I64:
        """Return the durations in ns of positions [begin, end), read in one piece."""
        values: I64 = self.column("slices.duration")[begin:end].astype(np.int64)
        long = self.column("long.position")
        a, b = np.searchsorted(long, np.array([begin, end], np.uint32))  # same dtype: no copy of the column
        if a != b:
            at = long[a:b].astype(np.int64) - begin
            exceptions = values[at] == LONG
            values[at[exceptions]] = self.column("long.duration")[a:b][exceptions]
        return values

    def resolve_long(self, raw: AnyArray, positions: I64, long: str = "long.duration") -> I64:
        """Return raw uint32 durations as int64 with the LONG ones looked up; any shape."""
        values: I64 = raw.astype(np.int64)
        if len(self.column("long.position")):
            mask = values == LONG
            if mask.any():
                where = np.searchsorted(self.column("long.position"), positions[mask].astype(np.uint32))
                values[mask] = self.column(long)[where]
        return values

    def start(self, position: int) -> int:
        """Return the start of one slice, lane time in ns."""
        return int(self.column("slices.start")[position])

    def end(self, position: int) -> int:
        """Return the end of one slice, lane time in ns."""
        return self.start(position) + int(self.duration([position])[0])

    def flag(self, position: int) -> int:
        """Return the SliceFlag bits of one slice."""
        where = _find(self.column("flags.position"), position)
        return 0 if where < 0 else int(self.column("flags.value")[where])

    def end_ordinal(self, position: int) -> int | None:
        """Return the ordinal of the end event of a slice made of two events."""
        where = _find(self.column("ends.position"), position)
        return None if where < 0 else int(self.column("ends.ordinal")[where])

    def parent(self, position: int) -> int | None:
        """Return the position of the innermost slice that contains this one whole."""
        parent = int(self.column("slices.parent")[position])
        return None if parent == NONE else parent

    def row_of(self, position: int) -> int:
        """Return the number of the row in which a slice lies."""
        where = bisect.bisect_right(self._slice_firsts, position) - 1
        return self._slice_rows[where]

    def position_of(self, ordinal: int) -> int | None:
        """Return the position of the slice whose begin event has this ordinal.

        The column stands in row order, so this compares it through (0.3 ms a million slices); it serves
        marks, saved sessions and typed numbers, never a frame.
        """
        return self._scan("slices.ordinal", ordinal)

    def instant_of(self, ordinal: int) -> int | None:
        """Return the index in the instant table of the instant with this ordinal."""
        return self._scan("instants.ordinal", ordinal)

    def sample_of(self, ordinal: int) -> int | None:
        """Return the index in the sample table of the first sample with this ordinal."""
        return self._scan("samples.ordinal", ordinal)

    def _scan(self, name: str, value: int) -> int | None:
        column = self.column(name)
        if not 0 <= value < NONE:
            return None
        wanted = np.uint32(value)
        for begin in range(0, len(column), SCAN_CHUNK):
            hits = np.flatnonzero(column[begin : begin + SCAN_CHUNK] == wanted)
            if len(hits):
                return begin + int(hits[0])
        return None

    # -- lifted arguments ---------------------------------------------------------------------------------

    def lifted_keys(self) -> list[str]:
        """Return the keys of the lifted arguments that occur in this index."""
        names = self.manifest["columns"]
        return sorted({name.split(".")[1] for name in names if name.startswith("lifted.")})

    def lifted(self, key: str, position: int) -> int | float | None:
        """Return a lifted argument of one slice (texts as string numbers), None where it has none."""
        where = _find(self.column(f"lifted.{key}.position"), position)
        return None if where < 0 else self.column(f"lifted.{key}.value")[where].item()

    def lifted_positions(self, key: str, value: int) -> U32:
        """Return the positions, ascending, of all slices whose lifted integer argument has this value."""
        values = self.column(f"lifted.{key}.value")
        if not len(values):
            return np.empty(0, np.uint32)
        if values.dtype.kind in "iu":
            limits = np.iinfo(values.dtype)
            if not limits.min <= value <= limits.max:
                return np.empty(0, np.uint32)
        positions: U32 = self.column(f"lifted.{key}.position")[np.flatnonzero(values == value)]
        return positions

    # -- integrity ----------------------------------------------------------------------------------------

    def verify(self) -> list[str]:
        """Check every column against its CRCs (one per MB); return the names of damaged columns."""
        damaged = []
        for name, entry in self.manifest["columns"].items():
            crcs = entry.get("crc") or []
            try:
                with (self.folder / f"{name}.{entry['dtype']}").open("rb") as file:
                    good = all(zlib.crc32(file.read(1 << 20)) == crc for crc in crcs)
            except OSError:
                good = not int(entry["length"])
            if not good:
                damaged.append(name)
        return damaged

    def close(self) -> None:
        """Let go of the mappings and of the reader's lock."""
        self._columns.clear()
        lease = self.lease
        self.lease = None
        if lease is not None and hasattr(lease, "close"):
            lease.close()


def _read_table(folder: Path, name: str, entry: dict[str, Any]) -> AnyArray:
    raw = (folder / table_file(name)).read_bytes()
    dtype, length = TABLES[name], int(entry["length"])
    if len(raw) != length * dtype.itemsize:
        raise ValueError(f"table {name} has another size than its manifest says")
    if zlib.crc32(raw) != int(entry["crc"]):
        raise ValueError(f"table {name} does not match its checksum")
    return np.frombuffer(raw, dtype)


def _find(column: AnyArray, value: int) -> int:
    """Return the index of a value in a sorted column, -1 if it is not there."""
    if not len(column) or not 0 <= value < NONE:
        return -1
    where = int(np.searchsorted(column, column.dtype.type(value)))
    return where if where < len(column) and int(column[where]) == value else -1
