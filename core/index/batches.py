"""All batches of a source with numbers of the whole source: ordinals, strings, tracks and categories.

Numbers depend neither on how many threads read, nor on where the file was cut, nor on a hash: categories are
numbered by text, all else in the order of first use in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..base.arrays import I64, U32, AnyArray, Bools
from ..read.batch import TABLES, Batch, IdKind, StringTable, Table, string_table
from .column_files import ColumnWriter, smallest_unsigned
from .format import NONE
from .loops import Allocate, Interned
from .workers import Loops

Track = tuple[str, str]
WITH_CATEGORY = ("timed", "flows", "asyncs")


STRING_PIECE = 1 << 16
"""Strings that are written at once, and bytes of their texts unless one is longer."""


class NumberedBatches:
    """The batches of a source, in file order."""

    def __init__(
        self,
        batches: Sequence[Batch],
        tables: Sequence[StringTable],
        loops: Loops,
        allocate: Allocate,
        check: Callable[[], None],
        free_events: Callable[[], None] = lambda: None,
    ) -> None:
        """`tables`: by reading thread; `allocate` gives room that is used until all is built; `check` is
        called per batch and may raise; `free_events` frees the columns of events, not those of blocks.
        """
        self.batches = batches
        self.free_events = free_events
        self.first_ordinal: list[int] = np.cumsum([0, *(batch.events for batch in batches)]).tolist()
        self.events = self.first_ordinal.pop()
        self.strings = SourceStrings(tables, loops, allocate)
        self._lengths: dict[str, list[int]] = {}
        self._track_counts: dict[str, I64] = {}
        self._number_tracks(tables, check)
        self._join_forms()
        self._number_categories(check)

    def _number_tracks(self, tables: Sequence[StringTable], check: Callable[[], None]) -> None:
        numbers: dict[tuple[int, int], int] = {}
        self._track_maps = [np.full(len(table.track_pid), NONE, np.uint32) for table in tables]
        for batch in self.batches:
            check()
            table, track_map = tables[batch.table], self._track_maps[batch.table]
            self.strings.use(batch.table, batch.first_uses)
            for track in batch.first_tracks[track_map[batch.first_tracks] == NONE].tolist():
                owner = np.array([table.track_pid[track], table.track_tid[track]])
                self.strings.use(batch.table, owner)
                pid, tid = self.strings.maps[batch.table][owner].tolist()
                track_map[track] = numbers.setdefault((pid, tid), len(numbers))
        pid_numbers: dict[int, int] = {}
        self.track_pid: U32 = np.array(
            [pid_numbers.setdefault(pid, len(pid_numbers)) for pid, _ in numbers], np.uint32
        )
        """Number of the pid of each track."""
        text = self.strings.text
        self.pids = [text(pid) for pid in pid_numbers]
        """JSON texts, by number."""
        self.tracks: list[Track] = [(text(pid), text(tid)) for pid, tid in numbers]
        """JSON texts of (pid, tid)."""

    def _join_forms(self) -> None:
        """Move what stands on a thread without slices to the one thread that has some and the same ids, where
        those are written as numbers here and as texts there: rocprof writes slices of "2" and arrows of 2.
        """
        forms: dict[Track, list[int]] = {}
        for number, (pid, tid) in enumerate(self.tracks):
            forms.setdefault((_as_number(pid), _as_number(tid)), []).append(number)
        if len(forms) == len(self.tracks):
            return
        counts, joined = self.track_counts("timed"), np.arange(len(self.tracks) + 1, dtype=np.uint32)
        joined[-1] = NONE
        for same in forms.values():
            filled = [number for number in same if counts[number]]
            if len(filled) == 1:
                joined[same] = filled[0]
        self._track_maps = [joined[np.minimum(numbers, len(self.tracks))] for numbers in self._track_maps]
        self._track_counts.clear()

    def _number_categories(self, check: Callable[[], None]) -> None:
        is_used = [np.zeros(len(numbers), np.bool_) for numbers in self.strings.maps]
        for batch in self.batches:
            check()
            for table in WITH_CATEGORY:
                if table in batch.tables:
                    is_used[batch.table][batch.tables[table]["category"]] = True
        used = {
            number for one, numbers in zip(is_used, self.strings.maps) for number in numbers[one].tolist()
        }
        texts = sorted((self.strings.text(number), number) for number in used - {0})
        self.categories = [0, *(number for _, number in texts)]
        """String number of each category; the first is the empty string's."""
        self._category_of = np.zeros(self.strings.count, np.uint32)
        self._category_of[self.categories] = np.arange(len(self.categories))

    @property
    def category_dtype(self) -> str:
        """The smallest dtype that holds the numbers of all categories."""
        return smallest_unsigned(len(self.categories) - 1)

    def values(self, number: int, table: str, column: str) -> AnyArray:
        """Return a column of one batch's table in numbers of the source, as read or in the table's dtype."""
        batch = self.batches[number]
        values = batch.tables[table][column]
        strings = self.strings.maps[batch.table]
        if column == "ordinal":
            return np.add(values, self.first_ordinal[number], dtype=np.uint32)
        if column == "track":
            return self._track_maps[batch.table].take(values)
        if column == "category":
            return self._category_of.take(strings.take(values))
        if column in ("name", "series"):
            return strings.take(values)
        if column == "id_value":
            texts = np.flatnonzero(batch.tables[table]["id_kind"] > IdKind.INTEGER)
            if len(texts):
                values = values.copy()
                values[texts] = strings[values[texts]]
        return values

    def all(self, table: str, columns: Sequence[str], allocate: Allocate) -> Table:
        """Return columns of one table of all batches, in file order, in room that `allocate` gives."""
        lengths = self.lengths(table)
        whole = {column: allocate(sum(lengths), TABLES[table][column]) for column in columns}
        begin = 0
        for number, length in enumerate(lengths):
            for column, values in whole.items() if length else ():
                values[begin : begin + length] = self.values(number, table, column)
            begin += length
        return whole

    def track_counts(self, table: str, numbers: Sequence[int] | None = None) -> I64:
        """Return how many entries each track has in a table, in all batches or some."""
        if numbers is None and table in self._track_counts:
            return self._track_counts[table]
        counts = np.zeros(len(self.tracks), np.int64)
        for number in range(len(self.batches)) if numbers is None else numbers:
            if table in self.batches[number].tables:
                counts += np.bincount(self.values(number, table, "track"), minlength=len(counts))
        if numbers is None:
            self._track_counts[table] = counts
        return counts

    def tracks_holding(self, chosen: Bools) -> Bools:
        """Tell of each track whether it holds a slice or an instant of a category for which `chosen`, by the
        categories' numbers, is true.
        """
        holding = np.zeros(len(self.tracks) + 1, np.bool_)
        if not chosen.any():
            return holding[:-1]
        of_strings = [chosen[self._category_of.take(numbers, mode="clip")] for numbers in self.strings.maps]
        for batch in self.batches:
            if "timed" in batch.tables:
                some = np.flatnonzero(of_strings[batch.table][batch.tables["timed"]["category"]])
                holding[self._track_maps[batch.table][batch.tables["timed"]["track"][some]]] = True
        return holding[:-1]

    def lengths(self, table: str) -> list[int]:
        if table not in self._lengths:
            tables = (batch.tables.get(table) for batch in self.batches)
            self._lengths[table] = [0 if one is None else len(one["ordinal"]) for one in tables]
        return self._lengths[table]


class SourceStrings:
    """The strings of a source; `maps[table][string]` is the number of a string of a thread's table, NONE if
    it has not been used.
    """

    def __init__(self, tables: Sequence[StringTable], loops: Loops, allocate: Allocate) -> None:
        """`loops`: of the thread that numbers; `allocate` gives room for the maps."""
        self._loops = loops
        self._interned = Interned([*tables, string_table([b""], [])], allocate=allocate)
        self.maps: list[U32] = []
        for table in self._interned.tables:
            numbers = allocate(len(table.offset) - 1, "u4")
            numbers.fill(NONE)
            self.maps.append(numbers)
        self.use(len(tables), np.zeros(1, np.uint32))
        for numbers in self.maps:
            numbers[0] = 0

    @property
    def count(self) -> int:
        return self._interned.count

    def use(self, table: int, strings: U32) -> None:
        """Number strings of a table, in this order, as far as they have no number yet."""
        new = strings[self.maps[table].take(strings) == NONE]
        if len(new):
            self.maps[table][new] = self._loops.intern(
                self._interned, np.full(len(new), table, np.uint16), new
            )

    def numbers(self, texts: Sequence[str]) -> U32:
        """Return the numbers of texts, new ones at the end where the source does not have them."""
        encoded = string_table([text.encode("utf-8", "replace") for text in texts], [])
        self._interned.tables.append(encoded)
        of = np.full(len(texts), len(self._interned.tables) - 1, np.uint16)
        return self._loops.intern(self._interned, of, np.arange(len(texts), dtype=np.uint32)).copy()

    def text(self, number: int) -> str:
        interned = self._interned
        table = interned.tables[int(interned.owner_table[number])]
        return table.bytes_of(int(interned.owner_string[number])).decode("utf-8", "replace")

    def write(self, blob: ColumnWriter, offsets: ColumnWriter, loops: Loops) -> None:
        interned, done, size = self._interned, 0, 0
        offsets.append(np.array([0]))
        while done < interned.count:
            piece = slice(done, min(done + STRING_PIECE, interned.count))
            text, ends = loops.texts(
                interned, interned.owner_table[piece], interned.owner_string[piece], STRING_PIECE
            )
            blob.append(text)
            offsets.append(ends + size)
            done, size = done + len(ends), size + len(text)


def _as_number(text: str) -> str:
    """Return the JSON text of an id as that of a number, where it is one in quotes."""
    inner = text[1:-1]
    return inner if text.startswith('"') and inner.isascii() and inner.isdigit() else text
