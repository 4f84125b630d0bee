"""Batches: the columns of one chunk, in file order, as reading hands them to building.

A batch knows strings and tracks by their numbers in the table of the thread that read it (`StringTable`), and
says in which order it uses them first. Putting the batches of a source in file order and numbering strings as
they are used first gives numbers that depend neither on threads nor on where the file was cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from ..base.arrays import I64, U8, U32, AnyArray
from ..base.units import TIME_LIMIT, TIME_LIMIT_TEXT
from .problem import Problem
from .promoted import PromotedTable

"""The limit as messages say it."""


class TimeScale(NamedTuple):
    """How times stand in a text: `ts` and `dur` count 10^digits ns, and trace time `ts` from an origin."""

    digits: int = 3
    origin_ns: int = 0  # a whole number of µs, of any size


@dataclass(frozen=True)
class Beyond:
    """The `ts` of some events that lie further from the origin than TIME_LIMIT; ns, from 0."""

    count: int
    least: int
    most: int
    usual: int  # one that most lie close to, if most lie close to one
    lead: int = 1  # by so many more are close to it than to others (majority vote of Boyer and Moore)

    @classmethod
    def of(cls, time: int) -> Beyond:
        return cls(1, time, time, time)

    def joined(self, other: Beyond) -> Beyond:
        """Return those of these events and of others."""
        count, least, most = (
            self.count + other.count,
            min(self.least, other.least),
            max(self.most, other.most),
        )
        first, second = (self, other) if self.lead >= other.lead else (other, self)
        is_close = abs(first.usual - second.usual) <= TIME_LIMIT // 2
        lead = first.lead + second.lead if is_close else first.lead - second.lead
        return Beyond(count, least, most, first.usual, lead)


PLAIN_SCALE = TimeScale()
"""Times in µs, from 0."""


class EventFlag(IntFlag):
    """Bits of a `flags` column."""

    BIND_ENCLOSING = 1  # flow end with "bp": "e"
    SCOPE_PROCESS = 2  # instant with "s": "p"
    SCOPE_GLOBAL = 4  # instant with "s": "g"
    CLAMPED = 8  # a time beyond TIME_LIMIT


class IdKind(IntEnum):
    """What an `id_value` means; ids of different kinds are never the same id."""

    NONE = 0  # the event has no id; value 0
    INTEGER = 1  # a JSON integer within int64; value is the integer
    TEXT = 2  # any other JSON value; value is the string number of its JSON text
    LOCAL = 3  # id2.local: holds within the process only; string number of its JSON text
    GLOBAL = 4  # id2.global; string number of its JSON text
    SCOPED = 5  # has a "scope"; string number of JSON text [scope, id]


# name -> dtype of every column; the tables of one group have one length each.
TIMED: Mapping[str, str] = {
    # X with usable ts; B and E; i, I and R; every other phase that is not listed below but has a time
    # (those are drawn as instants).
    "phase": "u1",  # ASCII of a one-letter ph, else ord("?")
    "flags": "u1",  # EventFlag
    "ordinal": "u4",
    "track": "u4",  # number in the batch's track table
    "category": "u4",  # number in the batch's string table; 0 is the empty string (absent)
    "name": "u4",  # likewise
    "start": "i8",  # ns
    "duration": "i8",  # ns, >= 0; 0 unless X
}
FLOWS: Mapping[str, str] = {
    "phase": "u1",  # s, t, f
    "flags": "u1",
    "ordinal": "u4",
    "track": "u4",
    "category": "u4",
    "name": "u4",
    "id_kind": "u1",
    "id_value": "i8",
    "start": "i8",
}
ASYNCS = FLOWS  # of the phases b, n, e and legacy S, T, p, F
COUNTERS: Mapping[str, str] = {  # one entry per numeric args key of a C event
    "ordinal": "u4",
    "track": "u4",
    "name": "u4",
    "series": "u4",  # string number of the args key
    "id_kind": "u1",
    "id_value": "i8",
    "start": "i8",
    "value": "f8",
}
BLOCKS: Mapping[str, str] = {
    "offset": "i8",  # of the first event's first byte in the (inflated, UTF-8) source
    "length": "i8",  # to the last byte of its last event
    "ordinal": "u4",  # of its first element
    "count": "u4",  # elements in it
    "repaired": "u1",  # 1: `[` + bytes + `]` is no JSON; its elements must be read one by one, with repair
}
TABLES: Mapping[str, Mapping[str, str]] = {
    "timed": TIMED,
    "flows": FLOWS,
    "asyncs": ASYNCS,
    "counters": COUNTERS,
    "blocks": BLOCKS,
}

Table: TypeAlias = dict[str, AnyArray]


class Metadata(NamedTuple):
    """One M event, reduced to what counts; of several with one (pid, tid, name) only the last is kept, and of
    a process each that differs from the one before: it may share its pid with a device.
    """

    ordinal: int
    name: str  # process_name, process_labels, process_sort_index, thread_name, thread_sort_index, …
    pid: str  # JSON text of pid, "null" when absent
    tid: str
    args: str  # JSON text of its args object


ROOMS: dict[str, int] = {
    "timed": 1 << 14,
    "flows": 1 << 13,
    "asyncs": 1 << 10,
    "counters": 1 << 10,
    "blocks": 64,
    "metadata": 1 << 10,
}
"""How many entries of each table there is room for at first."""
METADATA = {"ordinal": "u4", "offset": "i8", "length": "i8"}
"""Where the text of metadata events stands that are still to be decoded."""
PHASES, WITHOUT_TIME, NOT_OBJECTS, MISSING_DURATIONS, NEGATIVE_DURATIONS = 0, 128, 256, 257, 258
"""Places in `counts`: by the letter of the phase, from the first two on; then single counts."""


@dataclass(frozen=True, eq=False)
class StringTable:
    """The strings and tracks that one thread met; 0 is the empty string."""

    blob: U8  # UTF-8, one string after the other
    offset: I64  # where each begins, and the end
    track_pid: U32  # number of the JSON text of each track's pid
    track_tid: U32

    def bytes_of(self, number: int) -> bytes:
        return self.blob[self.offset[number] : self.offset[number + 1]].tobytes()


@dataclass(frozen=True, eq=False)
class Batch:
    """The columns of one chunk. Right after reading, arrays are views of memory that the next batch uses;
    `store_batch` writes them to a file.
    """

    number: int  # of the chunk
    events: int  # elements of the array that begin in the chunk, objects or not
    tables: Mapping[str, Mapping[str, AnyArray]]
    promoted: Mapping[str, Mapping[str, AnyArray]]  # by key: "ordinal" and "value" of events that have it
    metadata: list[Metadata]
    counts: dict[str, int]  # "phase.X": n, "not_object": n, "no_usable_time": n, …
    problems: list[Problem]
    table: int  # the thread whose StringTable the numbers index
    first_uses: U32  # numbers of that table's strings, in the order in which this batch uses them first
    first_tracks: U32  # likewise its tracks
    beyond: Beyond | None = None  # None where no `ts` lies beyond the limit


class Numbering(Protocol):
    """Numbers for strings and tracks, by one thread, over all its batches."""

    def begin(self) -> None:
        """Begin a batch: nothing has been used in it."""

    def number(self, text: str) -> int:
        """Return a string's number, and count it as used in this batch."""

    def track(self, pid: int, tid: int) -> int:
        """Return the number of the track with these string numbers; likewise."""

    def uses(self) -> tuple[U32, U32]:
        """Return the strings and the tracks that this batch used, in order of first use."""

    def table(self) -> StringTable:
        """Return all strings and tracks so far."""


class PlainNumbering:
    def __init__(self) -> None:
        self._numbers = {"": 0}
        self._tracks: dict[tuple[int, int], int] = {}
        self.begin()

    def begin(self) -> None:
        self._uses: dict[int, None] = {}
        self._track_uses: dict[int, None] = {}

    def number(self, text: str) -> int:
        number = self._numbers.setdefault(text, len(self._numbers))
        if number:
            self._uses.setdefault(number)
        return number

    def track(self, pid: int, tid: int) -> int:
        number = self._tracks.setdefault((pid, tid), len(self._tracks))
        self._track_uses.setdefault(number)
        return number

    def uses(self) -> tuple[U32, U32]:
        return np.array(list(self._uses), np.uint32), np.array(list(self._track_uses), np.uint32)

    def table(self) -> StringTable:
        return string_table([text.encode() for text in self._numbers], list(self._tracks))


def string_table(texts: Sequence[bytes], tracks: Sequence[tuple[int, int]]) -> StringTable:
    """Return a table of encoded strings, the empty one first, and of tracks."""
    offset = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=offset[1:])
    pairs = np.array(tracks, np.uint32).reshape(-1, 2)
    blob = np.frombuffer(b"".join(texts), np.uint8)
    return StringTable(blob, offset, pairs[:, 0].copy(), pairs[:, 1].copy())


class ColumnBuffers:
    """The columns of the batch that is being read, with room for more; its memory is used again."""

    def __init__(self, promoted: PromotedTable, scale: TimeScale = PLAIN_SCALE) -> None:
        self.promoted, self.scale = promoted, scale
        self.names = (*TABLES, "metadata")
        self.tables: dict[str, Table] = {
            name: {
                column: np.empty(ROOMS[name], dtype)
                for column, dtype in (TABLES.get(name) or METADATA).items()
            }
            for name in self.names
        }
        self.count = np.zeros(len(self.names) + 2, np.int64)  # of each table; then of strings and of tracks
        self.counts = np.zeros(NEGATIVE_DURATIONS + 1, np.int64)
        self.promoted_ordinals: list[U32] = [np.empty(ROOMS["timed"], np.uint32) for _ in promoted.columns]
        self.promoted_values: list[AnyArray] = [
            np.empty(ROOMS["timed"], column.kind.value) for column in promoted.columns
        ]
        self.promoted_count = np.zeros(len(promoted.columns), np.int64)
        self.grown_times = 0
        """How often arrays have been replaced by larger ones: whoever holds their addresses looks."""
        self.begin()

    def begin(self) -> None:
        self.count[: len(self.names)] = 0
        self.counts[:] = 0
        self.promoted_count[:] = 0
        self.ordinal = 0
        self.new_block = False
        self.named_counts: Counter[str] = Counter()
        self.metadata: list[Metadata] = []
        self.problems: list[Problem] = []
        self.beyond: Beyond | None = None
        self.clamped = 0
        self.first_clamped: int | None = None

    def room(self, table: str, more: int = 1) -> int:
        """Make sure of room for so many more entries of a table; return where the first belongs."""
        number = self.names.index(table)
        count = int(self.count[number])
        columns = self.tables[table]
        if count + more > len(next(iter(columns.values()))):
            self.grow(table, count + more)
        return count

    def grow(self, table: str, least: int = 0) -> None:
        """Make at least twice the room for a table."""
        self.grown_times += 1
        columns = self.tables[table]
        size = len(next(iter(columns.values())))
        size = max(2 * size, least)
        for name, values in columns.items():
            columns[name] = grown(values, size)
        if table == "timed":
            self.promoted_ordinals = [grown(values, size) for values in self.promoted_ordinals]
            self.promoted_values = [grown(values, size) for values in self.promoted_values]

    def report(self, problem: Problem) -> None:
        self.problems.append(problem)
        self.named_counts[problem.kind] += problem.count

    def finish(self, number: int, table: int, uses: tuple[U32, U32]) -> Batch:
        problems = list(self.problems)
        if self.clamped:
            text = f"times beyond {TIME_LIMIT_TEXT}, drawn at the edge"
            problems.append(Problem("clamped time", self.clamped, self.first_clamped, text))
        sizes = dict(zip(self.names, self.count.tolist()))
        tables = {
            name: {column: values[: sizes[name]] for column, values in self.tables[name].items()}
            for name in TABLES
        }
        promoted = {
            column.key: {"ordinal": ordinals[:count], "value": values[:count]}
            for column, ordinals, values, count in zip(
                self.promoted.columns,
                self.promoted_ordinals,
                self.promoted_values,
                self.promoted_count.tolist(),
            )
            if count
        }
        latest: dict[tuple[str, str, str], Metadata] = {}
        earlier: list[Metadata] = []
        for one in sorted(self.metadata, key=lambda event: event.ordinal):
            owner = (one.pid, one.tid, one.name)
            before = latest.pop(owner, one)
            if before.args != one.args and one.name.startswith("process_"):
                earlier.append(before)
            latest[owner] = one
        return Batch(
            number=number,
            events=self.ordinal,
            tables=tables,
            promoted=promoted,
            metadata=[*earlier, *latest.values()],
            counts=self._named(),
            problems=problems,
            table=table,
            first_uses=uses[0],
            first_tracks=uses[1],
            beyond=self.beyond,
        )

    def _named(self) -> dict[str, int]:
        named = Counter(self.named_counts)
        for first, name in ((PHASES, "phase"), (WITHOUT_TIME, "no_usable_time")):
            of_phases = self.counts[first : first + 128]
            for code in np.flatnonzero(of_phases).tolist():
                named[f"{name}.{chr(code)}"] += int(of_phases[code])
        named["no_usable_time"] += int(self.counts[WITHOUT_TIME : WITHOUT_TIME + 128].sum())
        named["not_object"] += int(self.counts[NOT_OBJECTS])
        named["missing_dur"] += int(self.counts[MISSING_DURATIONS])
        named["negative_dur"] += int(self.counts[NEGATIVE_DURATIONS])
        return {key: number for key, number in sorted(named.items()) if number}


def grown(values: AnyArray, size: int) -> Any:
    result = np.empty(size, values.dtype)
    result[: len(values)] = values
    return result
