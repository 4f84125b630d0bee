"""A trace in Perfetto's own format (protobuf): tracks, slices, instants, flows, counters, arguments. Field
numbers are those of perfetto/trace/trace_packet.proto, track_event.proto, track_descriptor.proto and
interned_data.proto. Events are put together as columns of bytes, many at a time.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from gzip import GzipFile
from operator import add
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..base.arrays import I64, AnyArray, distinct
from ..base.numbers import whole_number
from ..base.progress import CancelledCallback, ProgressCallback, never, no_progress
from ..base.safe_text import safe
from ..index.format import LaneKind, RowKind
from ..index.store import Index
from ..query.args import events_with_arguments
from ..query.flows import flows_between
from ..query.views import id_value, plain
from ..read.perfetto import OVERLAPPING
from ..tables.frame.scope import Scope
from .cut import whole_file
from .protobuf import (
    AnnotationEncoder,
    bytes_field,
    double_rows,
    fixed_field,
    number_field,
    number_rows,
    row_bytes,
    side_by_side,
    text_field,
    varint,
    varint_rows,
)
from .tracks import Track, begin_and_end, tracks_of

if TYPE_CHECKING:
    from ..query.views import Lane, Process

SEQUENCE = 1
CLEARED, NEEDS = 1, 2  # sequence_flags: the numbers of names begin anew; they are used
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
MAX_ID = (1 << 31) - 1
MADE_IDS = 1_000_000_000
"""Pids and tids from here on replace those that are no numbers, and those that are in use."""
CATEGORY, NAME, KEY = 1, 2, 3  # fields of InternedData
INTERNED = 1000
"""The most names in one packet."""
CHUNK = 1 << 16
"""The number of events that are encoded at once."""


class PerfettoFile(NamedTuple):
    """The result of an export: how many slices, instants, samples, flows and tracks were written."""

    slices: int
    instants: int
    samples: int
    flows: int
    tracks: int


@dataclass
class PacketWriter:
    """Writes packets of one sequence; names are written once and referred to by number."""

    file: IO[bytes] | GzipFile
    shift: int  # added to times: Perfetto has none before 0
    names: dict[str, int] = field(default_factory=dict)
    categories: dict[str, int] = field(default_factory=dict)
    tracks: int = 0
    is_begun: bool = False

    def packet(self, body: bytes) -> None:
        flags = NEEDS if self.is_begun else NEEDS | CLEARED
        self.is_begun = True
        body += number_field(10, SEQUENCE) + number_field(13, flags)
        self.file.write(bytes_field(1, body))

    def new_track(self, name: str, parent: int = 0, more: bytes = b"") -> int:
        """Write the description of a track and return its number; threads and processes name themselves."""
        self.tracks += 1
        body = number_field(1, self.tracks) + (text_field(2, name) if name else b"")
        body += number_field(5, parent) if parent else b""
        self.packet(bytes_field(60, body + more))
        return self.tracks

    def interned(self, tag: int, texts: Iterable[tuple[str, int]]) -> None:
        """Write the texts that numbers refer to: CATEGORY, NAME or KEY."""
        rest = [bytes_field(tag, number_field(1, number) + text_field(2, text)) for text, number in texts]
        for first in range(0, len(rest), INTERNED):
            self.packet(bytes_field(12, b"".join(rest[first : first + INTERNED])))

    def numbers(self, tag: int, texts: Sequence[str]) -> I64:
        """Return the numbers of names or categories; those that are new are written."""
        numbers = self.names if tag == NAME else self.categories
        new = [text for text in dict.fromkeys(texts) if text not in numbers]
        numbers.update(zip(new, range(len(numbers) + 1, len(numbers) + len(new) + 1)))
        self.interned(tag, ((text, numbers[text]) for text in new))
        return np.array([numbers[text] for text in texts], np.int64)

    def events(
        self, kind: int, track: int, times: I64, *fields: AnyArray, tails: Sequence[bytes] | None = None
    ) -> list[bytes]:
        """Return the packets of events of a track: columns of fields, and what else each event has."""
        sizes = np.zeros(len(times), np.int64)
        if tails is not None:
            sizes = np.array([len(tail) for tail in tails], np.int64)
        nothing = np.empty((len(times), 0), np.uint8)  # tells `side_by_side` how many rows there are
        event = side_by_side(nothing, number_field(9, kind) + number_field(11, track), *fields)
        head = side_by_side(
            number_rows(8, times + self.shift),
            number_field(10, SEQUENCE) + number_field(13, NEEDS),
            varint(11 << 3 | 2),
            varint_rows(event.shape[1] + sizes),
            event,
        )
        packets = row_bytes(side_by_side(varint(1 << 3 | 2), varint_rows(head.shape[1] + sizes), head))
        return packets if tails is None else list(map(add, packets, tails))


def write_perfetto(scope: Scope, out: Path, progress: ProgressCallback = no_progress) -> PerfettoFile:
    """Write the slices of a scope, whole, with the instants and counters of its time, for Perfetto. Raises
    UnreadableError where the source has gone, Cancelled, TracelaneError where `out` cannot be written.
    """
    trace = scope.trace
    tracks = list(tracks_of(scope))
    done = PerfettoFile(sum(len(track.positions) for track in tracks), 0, 0, 0, len(tracks))
    with whole_file(out) as file:
        writer = PacketWriter(file, max(0, -trace.span_at(scope.clocks)[0]))
        processes = _write_processes(writer, trace.processes, trace.rank)
        encoder = AnnotationEncoder()
        for source in range(len(trace.indexes)):
            own = [track for track in tracks if track.lane.source == source]
            part = SourceEvents.of(writer, scope, source, own, encoder, done.flows, progress)
            with closing(part.store):
                done = part.write(own, processes, done)
    return done


def _counter_title(lane: Lane, series: str) -> str:
    """Return a counter's name as the engine's import of JSON makes it: name, id, series."""
    own_id = plain(lane.tid).strip()
    title = lane.title if own_id in ("", "null") else f"{safe(lane.name)} id: {own_id}"
    return title if not series or series == title else f"{title} {series}"


@dataclass(frozen=True)
class ProcessTrack:
    """A process in the file: its track, its pid there, and by lane the track of each of its threads."""

    track: int
    pid: int
    used: set[int] = field(default_factory=set)  # tids
    threads: dict[int, int] = field(default_factory=dict)

    def track_of(self, writer: PacketWriter, lane: Lane) -> int:
        """Return the track of a lane's thread, which is described the first time; of other lanes that of
        the process.
        """
        if lane.kind is not LaneKind.THREAD:
            return self.track
        if lane.index not in self.threads:
            if not self.pid:
                self.used.add(0)  # thread 0 of process 0 is the engine's idle thread
            tid, text = _unused_id(lane.tid, self.used, lane.index)
            name = lane.name or text
            descriptor = number_field(1, self.pid) + number_field(2, tid)
            descriptor += text_field(5, safe(name)) if name else b""
            self.threads[lane.index] = writer.new_track("", more=bytes_field(4, descriptor))
        return self.threads[lane.index]


def _unused_id(text: str, used: set[int], number: int) -> tuple[int, str]:
    """Return a pid or tid as a number that is not in use, and as words where it is text in the trace: they
    are a thread's or process's name if it has no other, as in the engine's import of JSON.
    """
    value = id_value(text)
    words = value if isinstance(value, str) else ""
    if words.isascii() and words.isdigit() and len(words) < 12:
        value = whole_number(words)
    is_usable = type(value) is int and -MAX_ID <= value <= MAX_ID and value not in used
    result = value if is_usable else MADE_IDS + number
    used.add(result)
    return result, words


def _write_processes(
    writer: PacketWriter, processes: Sequence[Process], rank: Callable[[int], int | None]
) -> dict[tuple[int, int], ProcessTrack]:
    """Write a track for each process, with its labels; return them by source and number. Where there are
    several files a name ends with the rank: it is all that tells processes of one name apart.
    """
    tracks: dict[tuple[int, int], ProcessTrack] = {}
    used: set[int] = set()
    is_alone = len({process.source for process in processes}) < 2
    for at, process in enumerate(processes):
        pid, text = _unused_id(process.pid, used, at)
        number = None if is_alone else rank(process.source)
        name = safe(process.name or text)
        if number is not None:
            name = f"{name} · rank {number}" if name else f"rank {number}"
        descriptor = number_field(1, pid) + (text_field(6, name) if name else b"")
        descriptor += text_field(8, safe(process.labels)) if process.labels else b""
        track = writer.new_track("", more=bytes_field(3, descriptor))
        tracks[process.source, process.number] = ProcessTrack(track, pid)
    return tracks


def _values(scope: Scope, source: int, tracks: Sequence[Track], column: str) -> I64:
    """Return the values of a column of the slices and instants of a source that are written, ascending."""
    index = scope.trace.indexes[source]
    parts = [distinct(index.column(f"slices.{column}")[track.positions]) for track in tracks]
    parts += [
        distinct(index.column(f"instants.{column}")[part.begin : part.end])
        for part in replace(scope, source=source).rows_inside(RowKind.INSTANTS)
    ]
    return distinct(np.concatenate(parts)).astype(np.int64) if parts else np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class FlowEnds:
    """The flows of a source by one of their ends: positions ascending, and the number of each flow."""

    tag: int  # of the field that names a flow at this end
    positions: I64
    numbers: I64

    @classmethod
    def of(cls, tag: int, ends: AnyArray, flows: I64, base: int) -> FlowEnds:
        """Return these flows by an end; the first of them has the number `base` + 1."""
        positions = ends[flows].astype(np.int64)
        order = np.argsort(positions, kind="stable")
        return cls(tag, positions[order], order + base + 1)

    def add_to(self, tails: list[bytes], positions: I64) -> None:
        """Add to what the slices at these positions have the fields of their flows."""
        low = np.searchsorted(self.positions, positions)
        high = np.searchsorted(self.positions, positions, "right")
        having = np.flatnonzero(high > low)
        for at, first, last in zip(having.tolist(), low[having].tolist(), high[having].tolist()):
            numbers = self.numbers[first:last].tolist()
            tails[at] += b"".join([fixed_field(self.tag, number) for number in numbers])


class ArgumentStore:
    """The arguments of a source's events, encoded, in a temporary file, by the event's ordinal."""

    def __init__(
        self,
        index: Index,
        ordinals: I64,
        encode: Callable[[dict[str, Any]], bytes],
        progress: ProgressCallback = no_progress,
        cancelled: CancelledCallback = never,
    ) -> None:
        """Read the arguments of these events (ascending) and store them as `encode` returns them."""
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        numbers, lengths = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for events in events_with_arguments(index, ordinals, progress, cancelled):
            texts = [encode(arguments) for _, arguments in events]
            self._file.write(b"".join(texts))
            numbers.append(np.array([ordinal for ordinal, _ in events], np.int64))
            lengths.append(np.array([len(text) for text in texts], np.int64))
        self._file.flush()
        length = np.concatenate(lengths)
        ends = np.cumsum(length)
        ordinal = np.concatenate(numbers)
        order = np.argsort(ordinal, kind="stable")
        self._ordinals, self._begins, self._ends = ordinal[order], (ends - length)[order], ends[order]
        size = int(length.sum())
        self._data = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""

    def texts(self, ordinals: I64) -> list[bytes]:
        """Return the encoded arguments of each of these events, those of its end event behind its own."""
        low = np.searchsorted(self._ordinals, ordinals)
        high = np.searchsorted(self._ordinals, ordinals, "right")
        data, begins, ends = self._data, self._begins, self._ends
        texts = [b""] * len(ordinals)
        for half in (0, 1):
            having = np.flatnonzero(high - low > half)
            entries = low[having] + half
            for at, begin, end in zip(having.tolist(), begins[entries].tolist(), ends[entries].tolist()):
                texts[at] += data[begin:end]
        return texts

    def close(self) -> None:
        if isinstance(self._data, mmap.mmap):
            self._data.close()
        self._file.close()


@dataclass(frozen=True, eq=False)
class SourceEvents:
    writer: PacketWriter
    scope: Scope
    source: int
    index: Index
    names: I64  # by number in the index the number in the file
    categories: I64
    store: ArgumentStore
    flow_ends: Sequence[FlowEnds]

    @classmethod
    def of(
        cls,
        writer: PacketWriter,
        scope: Scope,
        source: int,
        tracks: Sequence[Track],
        encoder: AnnotationEncoder,
        base: int,
        progress: ProgressCallback,
    ) -> SourceEvents:
        """Read the arguments of a source and write its names; flows have the numbers after `base`."""
        index = scope.trace.indexes[source]
        ordinals = _values(scope, source, tracks, "ordinal")
        store = ArgumentStore(index, ordinals, encoder.encode, progress, scope.cancelled)
        writer.interned(KEY, encoder.keys.items())
        flows = flows_between(index, (track.positions for track in tracks))
        ends = [
            FlowEnds.of(tag, index.column(f"flows.{end}"), flows, base)
            for tag, end in ((47, "source"), (48, "target"))
        ]
        used = _values(scope, source, tracks, "name")
        names = np.zeros(index.length("strings.offset") + 1, np.int64)
        names[used] = writer.numbers(NAME, index.strings(used))
        categories = writer.numbers(CATEGORY, index.categories)
        return cls(writer, scope, source, index, names, categories, store, ends)

    def write(
        self, tracks: Sequence[Track], processes: Mapping[tuple[int, int], ProcessTrack], done: PerfettoFile
    ) -> PerfettoFile:
        """Write all tracks; return what was written before and now. Raises Cancelled."""
        trace, own = self.scope.trace, replace(self.scope, source=self.source)
        main: dict[int, int] = {}  # by lane its first track
        for track in tracks:
            process = processes[self.source, track.lane.process.number]
            uuid = process.track_of(self.writer, track.lane)
            if uuid == process.track or track.number:
                note = text_field(14, OVERLAPPING) if uuid != process.track else b""
                uuid = self.writer.new_track(track.title, uuid, note)
            main.setdefault(track.lane.index, uuid)
            self.slices(track, uuid)
        instants = samples = 0
        for kind in (RowKind.INSTANTS, RowKind.SAMPLES):
            for at, lane_number, number, offset, first, last in own.rows_inside(kind):
                lane = trace.lanes[lane_number]
                process = processes[at, lane.process.number]
                if kind is RowKind.SAMPLES:
                    title = _counter_title(lane, trace.row_number(at, number).series)
                    uuid = self.writer.new_track(title, process.track, bytes_field(8, b""))
                    samples += self.samples(uuid, offset, first, last)
                else:
                    if lane.index not in main:
                        uuid = process.track_of(self.writer, lane)
                        is_thread = uuid != process.track
                        main[lane.index] = uuid if is_thread else self.writer.new_track(lane.title, uuid)
                    self.instants(main[lane.index], offset, first, last)
                    instants += last - first
        flows = len(self.flow_ends[0].positions)
        return done._replace(
            instants=done.instants + instants, samples=done.samples + samples, flows=done.flows + flows
        )

    def slices(self, track: Track, uuid: int) -> None:
        """Write the slices of a track. Raises Cancelled."""
        all_times, all_begins, numbers = begin_and_end(track)
        for first in range(0, len(all_times), CHUNK):
            self.scope.check()
            part = slice(first, first + CHUNK)
            times, begins = all_times[part], all_begins[part]
            positions = track.positions[numbers[part][begins]]
            tails = self.store.texts(self.index.column("slices.ordinal")[positions].astype(np.int64))
            for ends in self.flow_ends:
                ends.add_to(tails, positions)
            named = self._named("slices", positions)
            packets = np.empty(len(times), object)
            packets[begins] = self.writer.events(BEGIN, uuid, times[begins], *named, tails=tails)
            packets[~begins] = self.writer.events(END, uuid, times[~begins])
            self.writer.file.write(b"".join(packets.tolist()))

    def instants(self, uuid: int, offset: int, first: int, last: int) -> None:
        """Write the instants of a row of the index. Raises Cancelled."""
        for begin in range(first, last, CHUNK):
            self.scope.check()
            rows = np.arange(begin, min(begin + CHUNK, last))
            times = self.index.column("instants.start")[rows] + offset
            tails = self.store.texts(self.index.column("instants.ordinal")[rows].astype(np.int64))
            named = self._named("instants", rows)
            self.writer.file.write(b"".join(self.writer.events(INSTANT, uuid, times, *named, tails=tails)))

    def samples(self, uuid: int, offset: int, first: int, last: int) -> int:
        """Write the samples of a row of the index that are numbers; return how many."""
        count = 0
        for begin in range(first, last, CHUNK):
            part = slice(begin, min(begin + CHUNK, last))
            values = self.index.column("samples.value")[part]
            numbers = ~np.isnan(values)
            times = self.index.column("samples.start")[part][numbers] + offset
            rows = double_rows(44, values[numbers])
            self.writer.file.write(b"".join(self.writer.events(COUNTER, uuid, times, rows)))
            count += len(times)
        return count

    def _named(self, table: str, rows: I64) -> tuple[AnyArray, AnyArray]:
        names = self.names[self.index.column(f"{table}.name")[rows]]
        categories = self.categories[self.index.column(f"{table}.category")[rows]]
        return number_rows(10, names), number_rows(3, categories)
