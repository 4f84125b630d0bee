"""An index opened for reading: mapped columns, the lane and row tables, strings, lookups by position."""

from __future__ import annotations

import bisect
import json
import mmap
import os
import stat
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.arrays import I64, U32, AnyArray
from ..base.errors import CacheError, DamagedIndexError, WrongIndexError
from ..base.held import MAX_SHORT
from ..base.private import is_own_folder, open_private, read_private
from ..base.threads import LOOK_S, BackgroundThread
from ..read.inflate import deflate_library
from .checks import check_manifest, check_tables
from .column_checks import check_values
from .format import COLUMNS, CRC_BYTES, LONG, NONE, TABLES, RowKind
from .version import MANIFEST

if TYPE_CHECKING:
    from ..read.source import TsUnit
    from .graph_folder import GraphFolder

SMALL_COLUMN = 64 * 1024
"""Columns below this many bytes are copied: a mapping costs more than it saves."""
MAX_MANIFEST = 256 << 20
"""No manifest is longer; it holds one checksum per megabyte and the trace's own words."""
SCAN_CHUNK = 1 << 20
HELD_STRINGS = 1 << 16
"""So many of the strings that were asked for are held, short ones: long ones are soon read again."""
HITS = 1 << 12
"""So many places in the texts where one is found are looked up at once."""


def table_file(name: str) -> str:
    return f"{name}.table"


def checksum_of(manifest: dict[str, Any]) -> int:
    """Return the CRC of a manifest without its own `checksum` entry."""
    rest = {key: value for key, value in manifest.items() if key != "checksum"}
    return zlib.crc32(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode())


class Index:
    """One source's index. Immutable; columns are mapped and checked when first asked for.

    Positions are places in the slice order of format.py, row numbers index the row table, times are lane
    times in ns. What opening or the first use of a column finds damaged raises DamagedIndexError; after that
    every number that a column holds is in bounds (see checks.py).
    """

    def __init__(self, folder: Path, manifest: dict[str, Any], tables: dict[str, AnyArray]) -> None:
        self.folder = folder
        self.manifest = manifest
        self.lanes = tables["lanes"]
        self.rows = tables["rows"]
        self.processes = tables["processes"]
        self.read_report: dict[str, Any] = manifest["read_report"]
        self.problems: list[dict[str, Any]] = manifest.get("problems", [])
        self.path = str(manifest.get("path", ""))
        self.notes: tuple[str, ...] = ()
        self.events: tuple[str, ...] = ()
        """What had to be done in the cache to open it, for whoever asked for the trace."""
        self.graph_folder: GraphFolder | None = None
        """Where the traces of the graphs lie that it replays."""
        self.source: object | None = None
        self.lease: object | None = None
        self.is_new = False
        """Whether this process has had it written: what is wrong with it then is no damage."""
        self.deferred: Verification | None = None
        """Where checksums of large columns are left to; None: they are looked at before a column is used."""
        self._columns: dict[str, AnyArray] = {}
        self._held_strings: dict[int, str] = {}
        self.categories = [self.string(int(number)) for number in self.column("categories")]
        slice_rows = np.flatnonzero(self.rows["kind"] == RowKind.SLICES)
        slice_rows = slice_rows[np.argsort(self.rows["first"][slice_rows], kind="stable")]
        self._slice_rows: list[int] = slice_rows.tolist()
        self._slice_firsts: list[int] = self.rows["first"][slice_rows].tolist()

    @property
    def envelope(self) -> dict[str, Any]:
        """The keys around the events, but for what was too large; none where nothing has been read yet."""
        envelope: dict[str, Any] = self.manifest.get("envelope", {})
        return envelope

    @property
    def origin_ns(self) -> int:
        """What its times count from (ns, of any size): 0 but where `ts` is too large for 64 bits of ns."""
        return int(self.manifest.get("origin_ns") or 0)

    @property
    def ts_unit(self) -> TsUnit:
        """What `ts` and `dur` were read as."""
        unit: TsUnit = self.manifest.get("source", {}).get("ts_unit")
        return unit if unit in ("ns", "100ns") else "us"

    @property
    def device_properties(self) -> list[dict[str, Any]]:
        """What the profiler says of each device; nothing in many files."""
        said = self.envelope.get("deviceProperties")
        return [one for one in said if isinstance(one, dict)] if isinstance(said, list) else []

    @property
    def distributed(self) -> dict[str, Any]:
        """What torch says of the process groups and ranks; nothing in most files."""
        info = self.envelope.get("distributedInfo")
        return info if isinstance(info, dict) else {}

    @classmethod
    def open(cls, folder: Path) -> Index:
        """Open the index in a folder, checking its manifest, the sizes of its columns, and its tables."""
        try:
            if folder.exists() and not is_own_folder(folder):
                raise ValueError("it is a link, or belongs to another user")
            manifest = check_manifest(json.loads(read_private(folder / MANIFEST, MAX_MANIFEST)))
            if manifest.get("checksum") != checksum_of(manifest):
                raise ValueError("the manifest does not match its checksum")
            lengths = {name: int(entry["length"]) for name, entry in manifest["columns"].items()}
            tables = {name: _read_table(folder, name, manifest["tables"][name]) for name in TABLES}
            check_tables(tables, lengths)
            for name, entry in manifest["columns"].items():
                _check_size(folder, f"{name}.{entry['dtype']}", entry)
            return cls(folder, manifest, tables)
        except FileNotFoundError as error:
            if not (folder / MANIFEST).exists():
                raise CacheError(f"there is no index in {folder}") from None
            raise DamagedIndexError(folder, f"{Path(error.filename).name} is missing") from None
        except (OSError, ValueError, RecursionError) as error:
            raise DamagedIndexError(folder, _why(error)) from None

    # -- columns ------------------------------------------------------------------------------------------

    def column(self, name: str) -> AnyArray:
        """Return a column as a read-only array; one that the manifest does not name is empty."""
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = self._map(name)
        return column

    def check(self, *names: str) -> None:
        """Check columns before anything is printed that is made of them; DamagedIndexError."""
        for name in names:
            self.column(name)

    def length(self, name: str) -> int:
        """Return how many values a column has, without reading it."""
        if (column := self._columns.get(name)) is not None:
            return len(column)
        entry = self.manifest["columns"].get(name)
        return 0 if entry is None else int(entry["length"])

    def _map(self, name: str) -> AnyArray:
        entry = self.manifest["columns"].get(name)
        if entry is None:
            return np.empty(0, COLUMNS[name].dtypes[0] if name in COLUMNS else "u4")
        dtype, length = np.dtype(str(entry["dtype"])), int(entry["length"])
        if length == 0:
            return np.empty(0, dtype)
        try:
            values = np.frombuffer(_contents(self.folder / f"{name}.{entry['dtype']}", entry), dtype)
            deferred = self.deferred
            if deferred is None or values.nbytes < deferred.least_bytes:
                deferred = None
                self.check_checksums(name, values)
        except (OSError, ValueError) as error:
            raise self._damaged(f"column {name}: {_why(error)}") from None
        try:
            check_values(name, values, self)
        except ValueError as error:
            self.check_checksums(name, values)
            why = f"column {name}: {error}"  # no index may hold such values, though their checksum is right
            raise WrongIndexError.of(self.path, why) if self.is_new else self._damaged(why) from None
        if deferred is not None:
            deferred.add(self, name, values)
        return values

    def check_checksums(self, name: str, values: AnyArray) -> None:
        """Hold the values of a column against the checksums that it was written with; DamagedIndexError."""
        raw = values.view(np.uint8).data
        crcs = self.manifest["columns"][name]["crc"]
        crc32 = deflate_library().crc32 if len(crcs) > 1 else zlib.crc32  # isal's is ten times as fast
        for number, crc in enumerate(crcs):
            if crc32(raw[number * CRC_BYTES : (number + 1) * CRC_BYTES]) != crc:
                raise self._damaged(f"{name} does not match its checksum")

    def _damaged(self, why: str) -> DamagedIndexError:
        return DamagedIndexError(self.folder, why, self.path)

    # -- strings ------------------------------------------------------------------------------------------

    def string(self, number: int) -> str:
        number = int(number)
        text = self._held_strings.get(number)
        if text is None:
            text = self._read_string(number)
            if len(text) <= MAX_SHORT:
                if len(self._held_strings) >= HELD_STRINGS:
                    self._held_strings.clear()
                self._held_strings[number] = text
        return text

    def strings(self, numbers: Sequence[int] | AnyArray) -> list[str]:
        return [self.string(number) for number in numbers]

    def _read_string(self, number: int) -> str:
        offsets = self.column("strings.offset")
        if not 0 <= number < len(offsets) - 1:
            raise self._damaged(f"it names the string {number}, which is not there")
        begin, end = int(offsets[number]), int(offsets[number + 1])
        return self.column("strings.blob")[begin:end].tobytes().decode("utf-8", "replace")

    def string_numbers(
        self, text: str, *, prefix: bool = False, inside: bool = False, limit: int = 1 << 20
    ) -> list[int]:
        """Return the numbers of the strings equal to (beginning with, holding) a text, found in the blob."""
        numbers: list[int] = []
        blob, offsets = self.column("strings.blob"), self.column("strings.offset")
        needle = text.encode("utf-8", "surrogatepass")
        if not needle or len(offsets) < 2:
            return []
        # All texts stand in one blob without anything between them: of "add", "mm" it is "addmm". There "dm"
        # is found, across two of them: a hit counts only where it lies in one. Pieces of the blob overlap by
        # a byte less than is looked for, so that each hit lies whole in exactly one piece.
        step = 4 << 20
        for base in range(0, len(blob), step):
            window = blob[base : base + step + len(needle) - 1].tobytes()
            at = window.find(needle)
            while at >= 0 and len(numbers) < limit:
                hits: list[int] = []
                while at >= 0 and len(hits) < min(limit, HITS):
                    hits.append(base + at)
                    at = window.find(needle, at + 1)
                begins = np.array(hits, np.int64)
                of = np.searchsorted(offsets, begins, "right") - 1
                is_begin, ends = offsets[of] == begins, begins + len(needle)
                fits = offsets[of + 1] >= ends if inside or prefix else offsets[of + 1] == ends
                if not inside:
                    fits &= is_begin
                numbers += of[fits].tolist()
        return sorted(set(numbers[:limit]))

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
        if self.length("long.position"):
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
        where = _find(self.column("ends.position"), position)
        return None if where < 0 else int(self.column("ends.ordinal")[where])

    def parent(self, position: int) -> int | None:
        """Return the position of the innermost slice that contains this one whole."""
        parent = int(self.column("slices.parent")[position])
        return None if parent == NONE else parent

    def row_of(self, position: int) -> int:
        where = bisect.bisect_right(self._slice_firsts, position) - 1
        return self._slice_rows[where]

    def position_of(self, ordinal: int, kind: RowKind = RowKind.SLICES) -> int | None:
        """Return the position of the slice (instant, sample) whose begin event has this ordinal. The column
        stands in row order, so this compares it through (0.3 ms a million slices); it serves marks, saved
        sessions and typed numbers, never a frame.
        """
        column = self.column(f"{kind.name.lower()}.ordinal")
        if not 0 <= ordinal < NONE:
            return None
        target = np.uint32(ordinal)
        for begin in range(0, len(column), SCAN_CHUNK):
            hits = np.flatnonzero(column[begin : begin + SCAN_CHUNK] == target)
            if len(hits):
                return begin + int(hits[0])
        return None

    # -- promoted arguments ---------------------------------------------------------------------------------

    def promoted(self, key: str, position: int) -> int | float | None:
        """Return a promoted argument of one slice (texts as string numbers), None where it has none."""
        where = _find(self.column(f"promoted.{key}.position"), position)
        return None if where < 0 else self.column(f"promoted.{key}.value")[where].item()

    def promoted_positions(self, key: str, value: int) -> U32:
        """Return the positions, ascending, of all slices whose promoted integer argument has this value."""
        values = self.column(f"promoted.{key}.value")
        if not len(values):
            return np.empty(0, np.uint32)
        if values.dtype.kind in "iu":
            limits = np.iinfo(values.dtype)
            if not limits.min <= value <= limits.max:
                return np.empty(0, np.uint32)
        positions: U32 = self.column(f"promoted.{key}.position")[np.flatnonzero(values == value)]
        return positions

    def close(self) -> None:
        self._columns.clear()
        lease = self.lease
        self.lease = None
        if lease is not None and hasattr(lease, "close"):
            lease.close()


def _why(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


def _read_table(folder: Path, name: str, entry: dict[str, Any]) -> AnyArray:
    dtype, length = TABLES[name], int(entry["length"])
    raw = read_private(folder / table_file(name), length * dtype.itemsize)
    if len(raw) != length * dtype.itemsize:
        raise ValueError(f"table {name} has another size than its manifest says")
    if zlib.crc32(raw) != int(entry["crc"]):
        raise ValueError(f"table {name} does not match its checksum")
    return np.frombuffer(raw, dtype)


def _check_size(folder: Path, name: str, entry: dict[str, Any]) -> None:
    size = int(entry["length"]) * np.dtype(str(entry["dtype"])).itemsize
    status = os.lstat(os.path.join(folder, name)) if size else None
    if status is not None and (not stat.S_ISREG(status.st_mode) or status.st_size != size):
        raise ValueError(f"column {name} has not the size that its manifest says")


def _contents(path: Path, entry: dict[str, Any]) -> bytes | mmap.mmap:
    """Return the bytes of a column: a copy of a small one, else a mapping."""
    size = int(entry["length"]) * np.dtype(str(entry["dtype"])).itemsize
    with open(open_private(path), "rb", buffering=0) as file:
        if os.fstat(file.fileno()).st_size != size:
            raise ValueError("it has not the size that its manifest says")
        if size < SMALL_COLUMN:
            raw = file.read(size)
            if len(raw) != size:
                raise ValueError("it has become shorter")
            return raw
        return mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ)


def _find(column: AnyArray, value: int) -> int:
    """Return the index of a value in a sorted column, -1 if it is not there."""
    if not len(column) or not 0 <= value < NONE:
        return -1
    where = int(np.searchsorted(column, column.dtype.type(value)))
    return where if where < len(column) and int(column[where]) == value else -1


MIN_BYTES = 1 << 20
"""Checking so many bytes takes a third of a millisecond."""


class Verification:
    """Takes columns when they are used first and checks them one after the other. Their values are in bounds
    already; until `pending` is False they may still be other numbers than those that were written, which
    whoever shows them says.
    """

    def __init__(self, changed: Callable[[], None] = lambda: None, least_bytes: int = MIN_BYTES) -> None:
        """Start with nothing to check; `changed` is called by the thread when all columns are checked.
        Columns of less than `least_bytes` are checked when they are used first.
        """
        self.least_bytes = least_bytes
        self.damage: DamagedIndexError | None = None
        """What was found to be damaged first."""
        self._waiting: deque[tuple[Index, str, AnyArray]] = deque()
        self._changed = threading.Condition()
        self._running = self._closed = False
        self._thread: BackgroundThread | None = None
        self._tell_changed = changed

    @classmethod
    def of(cls, indexes: Sequence[Index]) -> Verification:
        """Return what looks at columns of these indexes already; else a new one, attached to them."""
        if indexes and indexes[0].deferred is not None:
            return indexes[0].deferred
        verification = cls()
        verification.attach(indexes)
        return verification

    def tell(self, changed: Callable[[], None]) -> None:
        self._tell_changed = changed

    @property
    def pending(self) -> bool:
        """Whether there are columns that have not been checked."""
        return self._running

    def attach(self, indexes: Iterable[Index]) -> None:
        """Have large columns of these indexes checked here instead of when they are used first."""
        for index in indexes:
            index.deferred = self

    def add(self, index: Index, name: str, values: AnyArray) -> None:
        """Check a column as soon as those before it are done."""
        with self._changed:
            self._waiting.append((index, name, values))
            if not self._running and not self._closed:
                self._thread = BackgroundThread(self._run)
                self._running = True

    def wait(self) -> None:
        """Wait until all columns are checked; raises DamagedIndexError where one is damaged."""
        with self._changed:
            while self._running:
                if not self._changed.wait(LOOK_S) and self._running and self._thread is not None:
                    self._thread.check()
        if self.damage is not None:
            raise self.damage

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._waiting.clear()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._running = False
                    self._changed.notify_all()
                    break
                index, name, values = self._waiting.popleft()
            try:
                index.check_checksums(name, values)
            except DamagedIndexError as error:
                self.damage = self.damage or error
        if not self._closed:
            self._tell_changed()
