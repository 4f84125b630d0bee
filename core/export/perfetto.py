"""A trace in Perfetto's own format (protobuf): tracks, slices, instants, flows, counters, arguments.

Field numbers are those of perfetto/trace/trace_packet.proto, track_event.proto, track_descriptor.proto and
debug_annotation.proto. Names and categories are sent once and referred to by number.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from gzip import GzipFile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ..base.arrays import I64, AnyArray
from ..base.progress import ProgressCallback, no_progress
from ..index.format import RowKind
from ..query.titles import plain
from ..tables.scope import Scope
from .cut import whole_file
from .event_arguments import ArgumentStore
from .tracks import Track, begin_and_end, flows_between, rows_inside, tracks_of

if TYPE_CHECKING:
    from ..query.views import Process

SEQUENCE = 1
CLEARED, NEEDS = 1, 2  # sequence_flags: the numbers of names begin anew; they are used
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
MOST_PID = (1 << 31) - 1
MADE_PIDS = 1_000_000_000
"""Pids from here on stand for those that are no numbers, or that several files have."""
DEEPEST = 32
"""Values nested deeper are written as text."""
MASK = (1 << 64) - 1


def varint(number: int) -> bytes:
    """Return a number as a base-128 varint; negative ones as 64 bits."""
    number &= MASK
    if number < 0x80:
        return bytes((number,))
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def number_field(tag: int, number: int) -> bytes:
    """Return a field that holds a whole number."""
    return varint(tag << 3) + varint(number)


def bytes_field(tag: int, data: bytes) -> bytes:
    """Return a field that holds text or another message."""
    return varint(tag << 3 | 2) + varint(len(data)) + data


def text_field(tag: int, text: str) -> bytes:
    """Return a field that holds text."""
    return bytes_field(tag, text.encode("utf-8", "replace"))


def double_field(tag: int, value: float) -> bytes:
    """Return a field that holds a double."""
    return varint(tag << 3 | 1) + struct.pack("<d", value)


def fixed_field(tag: int, value: int) -> bytes:
    """Return a field that holds 64 bits."""
    return varint(tag << 3 | 1) + struct.pack("<Q", value & MASK)


def debug_annotations(arguments: Mapping[str, Any]) -> bytes:
    """Return the arguments of an event as the debug annotations of a TrackEvent."""
    return b"".join(
        bytes_field(4, text_field(10, str(key)) + _annotation(value, 0)) for key, value in arguments.items()
    )


def _annotation(value: Any, depth: int) -> bytes:
    """Return the value of a DebugAnnotation."""
    match value:
        case bool():
            return number_field(2, int(value))
        case int() if -(1 << 63) <= value < (1 << 63):
            return number_field(4, value)
        case int() if 0 <= value <= MASK:
            return number_field(3, value)
        case float():
            return double_field(5, value)
        case dict() if depth < DEEPEST:
            return b"".join(
                bytes_field(11, text_field(10, str(key)) + _annotation(each, depth + 1))
                for key, each in value.items()
            )
        case list() if depth < DEEPEST:
            return b"".join(bytes_field(12, _annotation(each, depth + 1)) for each in value)
        case None:
            return text_field(6, "null")
        case _:
            return text_field(6, value if isinstance(value, str) else str(value))


@dataclass(frozen=True)
class PerfettoFile:
    """What was written: how much of what."""

    slices: int
    instants: int
    samples: int
    flows: int
    tracks: int


@dataclass
class PacketWriter:
    """Writes packets of one sequence; names and categories get numbers as they come."""

    file: IO[bytes] | GzipFile
    shift: int  # added to times: Perfetto has none before 0
    names: dict[str, int] = field(default_factory=dict)
    categories: dict[str, int] = field(default_factory=dict)
    is_begun: bool = False

    def packet(self, body: bytes, interned: bytes = b"") -> None:
        """Write a packet."""
        flags = NEEDS if self.is_begun else NEEDS | CLEARED
        self.is_begun = True
        body += number_field(10, SEQUENCE) + number_field(13, flags)
        if interned:
            body += bytes_field(12, interned)
        self.file.write(bytes_field(1, body))

    def event(
        self,
        time: int,
        kind: int,
        track: int,
        name: str | None = None,
        category: str = "",
        more: bytes = b"",
    ) -> None:
        """Write an event of a track."""
        interned = b""
        body = number_field(9, kind) + number_field(11, track)
        if name is not None:
            number, interned = self._number(self.names, name, 2, interned)
            body += number_field(10, number)
        if category:
            number, interned = self._number(self.categories, category, 1, interned)
            body += number_field(3, number)
        self.packet(number_field(8, time + self.shift) + bytes_field(11, body + more), interned)

    def track(self, uuid: int, name: str, parent: int = 0, more: bytes = b"") -> None:
        """Write what a track is."""
        body = number_field(1, uuid) + text_field(2, name)
        body += number_field(5, parent) if parent else b""
        self.packet(bytes_field(60, body + more))

    def _number(self, numbers: dict[str, int], text: str, tag: int, interned: bytes) -> tuple[int, bytes]:
        number = numbers.get(text)
        if number is not None:
            return number, interned
        numbers[text] = number = len(numbers) + 1
        return number, interned + bytes_field(tag, number_field(1, number) + text_field(2, text))


def write_perfetto(scope: Scope, out: Path, progress: ProgressCallback = no_progress) -> PerfettoFile:
    """Write the slices of a scope, whole, with the instants and counters of its time, for Perfetto.

    Raises UnreadableError where the source has gone, Cancelled, TracelaneError where `out` cannot be written.
    """
    trace = scope.trace
    tracks = list(tracks_of(scope))
    flows = [
        flows_between(index, [track.positions for track in tracks if track.lane.source == source])
        for source, index in enumerate(trace.indexes)
    ]
    counts = [0, 0]
    with whole_file(out) as file:
        writer = PacketWriter(file, max(0, -trace.span_at(scope.clocks)[0]))
        processes = _write_processes(writer, trace.processes, trace.rank)
        uuids = len(processes) + 1
        base = 0
        main: dict[int, int] = {}  # by lane its first track
        for source, index in enumerate(trace.indexes):
            own = [track for track in tracks if track.lane.source == source]
            store = ArgumentStore(
                index, _ordinals(scope, source, own), debug_annotations, progress, scope.cancelled
            )
            ends = (
                FlowEnds.of(47, index.column("flows.source"), flows[source], base),
                FlowEnds.of(48, index.column("flows.target"), flows[source], base),
            )
            base += len(flows[source])
            for track in own:
                parent = processes[source, track.lane.process.number]
                writer.track(uuids, track.title, parent)
                main.setdefault(track.lane.index, uuids)
                _write_slices(writer, scope, track, uuids, store, ends)
                uuids += 1
            for kind in (RowKind.INSTANTS, RowKind.SAMPLES):
                for at, number, offset, first, last in rows_inside(trace, scope, kind):
                    if at != source:
                        continue
                    row = trace.row_number(source, number)
                    lane = trace.lanes[row.lane]
                    parent = processes[source, lane.process.number]
                    counts[kind is RowKind.SAMPLES] += last - first
                    if kind is RowKind.SAMPLES:
                        writer.track(
                            uuids, _counter_title(lane.title, row.series), parent, bytes_field(8, b"")
                        )
                        _write_samples(writer, scope, source, uuids, offset, first, last)
                    else:
                        if lane.index not in main:
                            main[lane.index] = uuids
                            writer.track(uuids, lane.title, parent)
                        _write_instants(writer, scope, source, main[lane.index], offset, first, last, store)
                    uuids += 1
            store.close()
    slices = sum(len(track.positions) for track in tracks)
    return PerfettoFile(slices, counts[0], counts[1], sum(map(len, flows)), len(tracks))


def _counter_title(lane: str, series: str) -> str:
    return lane if not series or series == lane else f"{lane} {series}"


def _write_processes(
    writer: PacketWriter, processes: Sequence[Process], rank: Any
) -> dict[tuple[int, int], int]:
    """Write a track for each process; return the tracks by source and number."""
    tracks: dict[tuple[int, int], int] = {}
    used: set[int] = set()
    for at, process in enumerate(processes):
        text = plain(process.pid)
        pid = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else -1
        if not 0 <= pid <= MOST_PID or pid in used:
            pid = MADE_PIDS + at
        used.add(pid)
        number = rank(process.source)
        title = process.title if number is None else f"{process.title} · rank {number}"
        descriptor = number_field(1, pid) + text_field(6, title)
        tracks[process.source, process.number] = at + 1
        writer.track(at + 1, title, more=bytes_field(3, descriptor))
    return tracks


def _ordinals(scope: Scope, source: int, tracks: Sequence[Track]) -> I64:
    """Return the ordinals of the events of a source whose arguments are written, ascending."""
    index = scope.trace.indexes[source]
    parts = [index.column("slices.ordinal")[track.positions].astype(np.int64) for track in tracks]
    for at, _, _, first, last in rows_inside(scope.trace, scope, RowKind.INSTANTS):
        if at == source:
            parts.append(index.column("instants.ordinal")[first:last].astype(np.int64))
    return np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)


@dataclass(frozen=True)
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

    def reader(self, positions: I64) -> Callable[[int], bytes]:
        """Return what gives the fields of the flows at the k-th of these positions."""
        low = np.searchsorted(self.positions, positions).tolist()
        high = np.searchsorted(self.positions, positions, "right").tolist()

        def fields(at: int) -> bytes:
            numbers = self.numbers[low[at] : high[at]].tolist() if low[at] < high[at] else ()
            return b"".join(fixed_field(self.tag, number) for number in numbers)

        return fields


def _write_slices(
    writer: PacketWriter,
    scope: Scope,
    track: Track,
    uuid: int,
    store: ArgumentStore,
    flow_ends: Sequence[FlowEnds],
) -> None:
    index = scope.trace.indexes[track.lane.source]
    names = index.strings(index.column("slices.name")[track.positions])
    categories = index.column("slices.category")[track.positions].tolist()
    arguments = store.reader(index.column("slices.ordinal")[track.positions].astype(np.int64))
    begins_there, ends_there = (side.reader(track.positions) for side in flow_ends)
    for number, (time, begins, at) in enumerate(begin_and_end(track)):
        if not number & 0xFFFF:
            scope.check()
        if begins:
            more = arguments(at) + begins_there(at) + ends_there(at)
            writer.event(time, BEGIN, uuid, names[at], index.categories[categories[at]], more)
        else:
            writer.event(time, END, uuid)


def _write_samples(
    writer: PacketWriter, scope: Scope, source: int, uuid: int, offset: int, first: int, last: int
) -> None:
    index = scope.trace.indexes[source]
    times = index.column("samples.start")[first:last] + offset
    values = index.column("samples.value")[first:last]
    for time, value in zip(times.tolist(), values.tolist()):
        if value == value:
            writer.event(time, COUNTER, uuid, more=double_field(44, value))


def _write_instants(
    writer: PacketWriter,
    scope: Scope,
    source: int,
    uuid: int,
    offset: int,
    first: int,
    last: int,
    store: ArgumentStore,
) -> None:
    index = scope.trace.indexes[source]
    times = index.column("instants.start")[first:last] + offset
    names = index.strings(index.column("instants.name")[first:last])
    categories = index.column("instants.category")[first:last].tolist()
    arguments = store.reader(index.column("instants.ordinal")[first:last].astype(np.int64))
    for at, (time, name, category) in enumerate(zip(times.tolist(), names, categories)):
        writer.event(time, INSTANT, uuid, name, index.categories[category], arguments(at))
