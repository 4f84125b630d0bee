"""A trace of Perfetto (protobuf), read as the JSON that says the same.

Each packet becomes the events that it holds, a line each; all that comes after sees JSON, arguments and
damage alike. What a packet refers to (names, defaults, the last time) belongs to its sequence of packets;
tracks are the file's. A slice of a thread's track keeps pid and tid. Other tracks get a tid in words,
`"track 7"`, in the process above them, else in one that stands for the topmost track.

Numbers of fields are those of protos/perfetto/trace/*.proto; what they mean is told in
https://perfetto.dev/docs/reference/synthetic-track-event and …/docs/concepts/clock-sync.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .inflate import ConvertedReader, RawReader
from .perfetto_event import BEGIN, COUNTER, END, INSTANT, STATE, Sequence, TraceClocks, TrackEvent
from .perfetto_values import (
    Budget,
    SequenceTexts,
    WireError,
    encoded,
    fields,
    packed_numbers,
    read_varint,
    referred_text,
    signed_number,
    utf8_text,
)
from .problem import NOT_READ, Problem

BLOCK = 1 << 20
"""Bytes of the file that are read at a time."""
MAX_PACKET_LENGTH = 16 << 20
"""Bytes; a longer packet is damage, or packed to harm."""
MAX_TRACK_DEPTH = 64
"""So far up it is looked for the process of a track."""
MAX_REASONS = 256
"""So many reasons for passing over packets are told apart."""
MAX_SEQUENCES, MAX_TRACKS = 1 << 16, 1 << 20
"""How many are kept apart; recorders have tens and thousands."""
FLOWS_HELD = 1 << 18
"""The flows that are remembered to have begun."""
CLEARED, NEEDS = 1, 2  # sequence_flags
CONTROL = frozenset({6, 12, 33, 34, 35, 36, 41, 45, 46, 59, 89, 94})
"""Messages of a packet that are no events: clocks, names, defaults, how it was recorded."""
KINDS = {
    1: "ftrace_events",
    2: "process_tree",
    9: "process_stats",
    37: "profile_packet",
    38: "battery",
    39: "android_log",
    47: "packages_list",
    52: "gpu_counter_event",
    53: "gpu_render_stage_event",
    66: "perf_sample",
    69: "service_event",
    76: "frame_timeline_event",
}
"""The names of the packets that are met most of those that are not read."""
OVERLAPPING = "slices that overlap others of the thread"
"""The description of a track that holds more slices of the thread above it, as our own export writes them: a
track of Perfetto holds nested ones only.
"""
BUILTIN = {1: "thread_time", 2: "thread_instruction_count"}  # CounterDescriptor.BuiltinCounterType


class Counting(NamedTuple):
    """How a counter's values are to be read."""

    key: bytes  # JSON of what is counted
    owner: bytes  # JSON of the id of the thread that it belongs to, `""` for none
    factor: int
    is_incremental: bool


@dataclass
class PacketTrack:
    """A track as the file describes it."""

    parent: int = 0
    name: str = ""
    pid: int | None = None
    tid: int | None = None
    counting: Counting | None = None
    said: list[bytes] = field(default_factory=list)  # the metadata of its process or thread
    lane_ids: bytes = b""  # `"pid":1,"tid":2,` once it is known
    state: bytes = b""  # the last state of a track of states, its begin not yet ended
    overlaps: bool = False  # see OVERLAPPING
    open: list[tuple[int, bytes, list[bytes]]] = field(default_factory=list)
    """Slices that have not ended, of a track that overlaps: start, what follows the duration, flows."""


def perfetto_reader(reader: RawReader) -> RawReader:
    """Return a reader of the JSON text of a trace of Perfetto; its damage says what was passed over."""
    events = PacketEvents()
    return ConvertedReader(reader, _text(reader, events), events.problems)


def _text(reader: RawReader, events: PacketEvents) -> Iterator[bytes]:
    before = b'{"traceEvents":[\n'
    for packet in _packets(reader, events):
        for event in events.of(packet):
            yield before + event
            before = b",\n"
    for event in events.unended():
        yield before + event
        before = b",\n"
    yield (b"\n" if before == b",\n" else before) + b"]}\n"


def _packets(reader: RawReader, events: PacketEvents) -> Iterator[bytes]:
    """Yield the packets of the file; what is cut off or damaged ends it."""
    data, at, done = b"", 0, 0
    while True:
        size = _packet_size(data, at)
        if size is None or size[1] > len(data):
            more = reader.read(max(BLOCK, 0 if size is None else size[1] - len(data)))
            events.budget.read += len(more)
            done, data, at = done + at, data[at:] + more, 0
            if more:
                continue
            if data:
                events.pass_over(f"the last {len(data):,} bytes are not a whole packet")
            return
        begin, end = size
        if end - begin > MAX_PACKET_LENGTH or begin < 0:
            events.pass_over(f"the data from byte {done + at:,} on is not a packet")
            return
        yield data[begin:end]
        at = end


def _packet_size(data: bytes, at: int) -> tuple[int, int] | None:
    """Return where a packet begins and ends, -1 first for what is none; None where more bytes are needed."""
    if len(data) - at < 2:
        return None
    if data[at] != 1 << 3 | 2:
        return -1, at
    try:
        size, begin = read_varint(data, at + 1)
    except IndexError:
        return None
    except WireError:
        return -1, at
    return (begin, begin + size) if size <= MAX_PACKET_LENGTH else (-1, at)


def _count(counts: Counter[str], what: str) -> None:
    known = what in counts or len(counts) < MAX_REASONS
    counts[what if known else "packets for other reasons"] += 1


class PacketEvents:
    """Turns packets into events of JSON, in the order of the file."""

    def __init__(self) -> None:
        self._sequences: dict[int, Sequence] = {}
        self._tracks: dict[int, PacketTrack] = {}
        self._clocks = TraceClocks()
        self._flows: OrderedDict[int, None] = OrderedDict()
        self._passed: Counter[str] = Counter()
        self._not_read: Counter[str] = Counter()
        self.budget = Budget()

    def pass_over(self, what: str) -> None:
        _count(self._passed, what)

    def problems(self) -> list[Problem]:
        """Return what was passed over as it is damaged, and as it is of kinds that are not read."""
        return [
            Problem(
                kind,
                counts.total(),
                None,
                "; ".join(f"{n:,} × {what}" if n > 1 else what for what, n in counts.most_common(6)),
            )
            for kind, counts in (("packets passed over", self._passed), (NOT_READ, self._not_read))
            if counts
        ]

    def of(self, packet: bytes) -> Iterator[bytes]:
        """Yield the events of a packet; where it cannot be read on, that is counted."""
        for event in self._each(packet, is_packed=False):
            try:
                self.budget.write(len(event) + 2)  # with what stands between two
            except WireError as error:
                self.pass_over(f"event that comes to {error}")
            else:
                yield event

    def _each(self, packet: bytes, is_packed: bool) -> Iterator[bytes]:
        self.budget.referred = 0
        try:
            yield from self._packet(packet, is_packed)
        except (WireError, zlib.error) as error:
            self.pass_over(f"damaged packet ({error})")
        except MemoryError:
            raise
        except Exception as error:  # whatever a packet may hold that nobody thought of costs that packet
            self.pass_over(f"packet that cannot be read ({type(error).__name__})")

    # -- packets ---------------------------------------------------------------------------------------------

    def _packet(self, packet: bytes, is_packed: bool) -> Iterator[bytes]:
        time = clock = None
        number = flags = 0
        messages: list[tuple[int, bytes]] = []
        for tag, value in fields(packet):
            if isinstance(value, bytes):
                messages.append((tag, value))
            elif tag == 8:
                time = value
            elif tag == 10:
                number = value
            elif tag == 13:
                flags = value
            elif tag == 41 and value:
                flags |= CLEARED
            elif tag == 58:
                clock = value
        if number not in self._sequences and len(self._sequences) >= MAX_SEQUENCES:
            raise WireError(f"more than {MAX_SEQUENCES:,} sequences")
        sequence = self._sequences.get(number)
        if sequence is None or flags & CLEARED:
            thread = None if sequence is None else sequence.thread
            sequence = Sequence(SequenceTexts(self.budget), bool(flags & CLEARED), thread=thread)
            self._sequences[number] = sequence
        if flags & NEEDS and not sequence.is_usable:
            self.pass_over("packet whose names were lost before it")
            return
        if len(messages) > 1:
            messages.sort(key=_order)  # what events refer to comes first
        for tag, message in messages:
            if tag == 50 and not is_packed:
                yield from self._unpacked(message)
            else:
                yield from self._message(tag, message, sequence, number, time, clock)

    def _message(
        self, tag: int, message: bytes, sequence: Sequence, number: int, time: int | None, clock: int | None
    ) -> Iterable[bytes]:
        match tag:
            case 6:
                self._clocks.take(message, number)
            case 12:
                sequence.interned.take(message)
            case 59:
                _take_defaults(message, sequence)
            case 60:
                return self._describe(message)
            case 43 | 44:
                return self._describe_owner(tag, message, sequence)
            case 11:
                usual = sequence.clock if clock is None else clock
                at = None if time is None else self._clocks.ns(time, usual, number)
                if at is None and time is not None:
                    self.pass_over(f"packet by a clock that is not known ({usual})")
                    return ()
                return self._event(message, sequence, at)
            case _ if tag not in CONTROL:
                _count(self._not_read, KINDS.get(tag, f"packet of field {tag}"))
        return ()

    def _unpacked(self, message: bytes) -> Iterator[bytes]:
        inflater = zlib.decompressobj()
        most = min(MAX_PACKET_LENGTH, self.budget.left_to_unpack())
        text = inflater.decompress(message, most) if most > 0 else b""
        self.budget.unpacked += len(text)
        if not inflater.eof:
            fault = "of too many bytes" if most <= len(text) else "that are cut off"
            self.pass_over(f"packed packets {fault}")
        for tag, packet in fields(text):
            if tag == 1 and isinstance(packet, bytes):
                yield from self._each(packet, is_packed=True)

    # -- tracks ----------------------------------------------------------------------------------------------

    def _track(self, uuid: int) -> PacketTrack:
        if uuid not in self._tracks and len(self._tracks) >= MAX_TRACKS:
            raise WireError(f"more than {MAX_TRACKS:,} tracks")
        return self._tracks.setdefault(uuid, PacketTrack(name="" if uuid else "Default Track"))

    def _describe(self, message: bytes) -> Iterator[bytes]:
        """Take a TrackDescriptor; yield the names it gives to processes and threads."""
        uuid = parent = 0
        name = ""
        parts: dict[int, bytes] = {}
        for tag, value in fields(message):
            match tag, value:
                case 1, int():
                    uuid = value
                case 5, int():
                    parent = value
                case ((2 | 10 | 13), bytes()):
                    name = referred_text(value)
                case ((3 | 4 | 8 | 14), bytes()):
                    parts[tag] = value
        track = self._track(uuid)
        known = (track.name, track.parent, track.pid, track.tid)
        track.name, track.parent = name or track.name, parent or track.parent
        for tag in parts.keys() & {3, 4}:
            pid, tid, events = _owner(tag, parts[tag])
            track.pid, track.tid = pid, tid
            yield from (event for event in events if event not in track.said)
            track.said = events
        if 8 in parts:
            track.counting = self._counting(track, parts[8])
        track.overlaps = parts.get(14) == OVERLAPPING.encode()
        if known != (track.name, track.parent, track.pid, track.tid):
            track.lane_ids = b""

    def _describe_owner(self, tag: int, message: bytes, sequence: Sequence) -> Iterable[bytes]:
        """Take a process's or thread's descriptor without a track, as older recorders write."""
        pid, tid, events = _owner(tag - 40, message)
        if tid is not None:
            sequence.thread = pid, tid
            sequence.reference_ns = next(
                (
                    signed_number(value) * 1000
                    for part, value in fields(message)
                    if part == 6 and isinstance(value, int)
                ),
                0,
            )
        return events

    def _counting(self, track: PacketTrack, message: bytes) -> Counting:
        values = {tag: value for tag, value in fields(message) if isinstance(value, int)}
        name = track.name or BUILTIN.get(values.get(1, 0), "counter")
        owner = self._tracks.get(track.parent)
        thread = "" if owner is None or owner.tid is None else str(owner.tid)
        factor = signed_number(values.get(4, 0)) or 1
        return Counting(encoded(name), encoded(thread), factor, bool(values.get(5)))

    def _lane_ids_of(self, uuid: int) -> tuple[bytes, list[bytes]]:
        """Return where the events of a track belong, and what names that if it was not known yet."""
        track = self._track(uuid)
        if track.lane_ids:
            return track.lane_ids, []
        if track.overlaps and track.parent in self._tracks and not self._tracks[track.parent].overlaps:
            track.lane_ids, names = self._lane_ids_of(track.parent)
            return track.lane_ids, names
        above, top = track, uuid
        for _ in range(MAX_TRACK_DEPTH):
            if above.pid is not None or above.parent not in self._tracks:
                break
            top = above.parent
            above = self._tracks[top]
        names = []
        pid: int | str = f"track {top}" if above.pid is None else above.pid
        tid: int | str = f"track {uuid}" if track.tid is None else track.tid
        if above.pid is None and above.name:
            names.append(_named("process_name", pid, None, "name", above.name))
        if track.tid is None and track.pid is None and track.name:
            names.append(_named("thread_name", pid, tid, "name", track.name))
        elif track.tid is None and track.pid is not None:
            names.append(_named("thread_name", pid, tid, "name", track.name or "process"))
        track.lane_ids = b'"pid":%b,"tid":%b,' % (encoded(pid), encoded(tid))
        return track.lane_ids, names

    # -- events ----------------------------------------------------------------------------------------------

    def _event(self, message: bytes, sequence: Sequence, time: int | None) -> Iterator[bytes]:
        event = TrackEvent.of(message, sequence)
        if event.absolute_us is not None:
            time = event.absolute_us * 1000
        elif event.delta_us is not None:
            sequence.reference_ns += event.delta_us * 1000
            time = sequence.reference_ns
        if time is None:
            self.pass_over("event without a time")
            return
        uuid = sequence.track if event.track is None else event.track
        if event.owner is not None or (event.track is None and not uuid and sequence.thread is not None):
            pid, tid = (sequence.thread or (0, 0)) if event.owner is None else event.owner
            lane_ids, names = b'"pid":%d,"tid":%d,' % (pid, tid), list[bytes]()
        else:
            lane_ids, names = self._lane_ids_of(uuid)
        yield from names
        stamp = b'%b"ts":%b' % (lane_ids, micros(time))
        if event.counts or event.double_counts:
            yield from self._counters(event, sequence, time)
        if event.kind == COUNTER:
            yield from self._count(uuid, event.value, sequence, time)
            return
        name = b'"name":%b,"cat":%b,' % (event.name or b'""', encoded(",".join(event.categories)))
        rest = b',"args":%b}' % event.arguments if event.arguments else b"}"
        flow_time = stamp
        if (track := self._tracks.get(uuid)) is not None and track.overlaps and event.kind in (BEGIN, END):
            yield from self._overlapping(track, event, time, b"%b%b" % (name, stamp), rest)
            return
        match event.kind:
            case kind if kind in (BEGIN, INSTANT):
                phase = b"B" if kind == BEGIN else b'i","s":"t'
                yield b'{"ph":"%b",%b%b%b' % (phase, name, stamp, rest)
            case kind if kind == END:
                flow_time = b'%b"ts":%b' % (lane_ids, micros(time - 1))
                yield b'{"ph":"E",%b%b' % (stamp, rest)
            case kind if kind == STATE:
                yield from self._changed(uuid, event, stamp, rest)
            case _:
                yield b'{"ph":%b,%b%b%b%b' % (encoded(event.phase or "?"), name, event.legacy, stamp, rest)
        if event.flows or event.ending_flows:
            yield from self._flow_ends(event, flow_time)

    def _overlapping(
        self, track: PacketTrack, event: TrackEvent, time: int, head: bytes, rest: bytes
    ) -> Iterator[bytes]:
        """Yield a slice with its duration at its end: begins and ends of one thread could not be paired."""
        if event.kind == BEGIN:
            self.budget.write(len(head) + len(rest))  # held until it ends
            flows: list[bytes] = []
            track.open.append((time, head + rest, flows))
            for flow in self._flow_ends(event, head[head.index(b'"pid":') :]):
                self.budget.write(len(flow))
                flows.append(flow)
        elif track.open:
            start, text, flows = track.open.pop()
            yield b'{"ph":"X","dur":%b,%b' % (micros(time - start), text)
            yield from flows

    def unended(self) -> Iterator[bytes]:
        """Yield the slices that have not ended by the end of the file."""
        for track in self._tracks.values():
            for _, text, flows in track.open:
                yield b'{"ph":"B",%b' % text
                yield from flows

    def _changed(self, uuid: int, event: TrackEvent, stamp: bytes, rest: bytes) -> Iterator[bytes]:
        """Yield the end of a track's state so far, and the beginning of the next unless it has no name."""
        track = self._track(uuid)
        if track.state:
            yield b'{"ph":"E",%b}' % stamp
        track.state = event.name if event.name not in (b"", b'""') else b""
        if track.state:
            yield b'{"ph":"B","name":%b,"cat":%b,%b%b' % (
                track.state,
                encoded(",".join(event.categories)),
                stamp,
                rest,
            )

    def _flow_ends(self, event: TrackEvent, stamp: bytes) -> Iterator[bytes]:
        """Yield the flows that begin at, go through and end at an event."""
        for number in event.flows:
            phase = b"t" if number in self._flows else b"s"
            self._flows[number] = None
            if len(self._flows) > FLOWS_HELD:
                self._flows.popitem(last=False)
            yield b'{"ph":"%b","bp":"e","name":"flow","cat":"flow","id":%d,%b}' % (phase, number, stamp)
        for number in event.ending_flows:
            if not event.keeps_flows:
                self._flows.pop(number, None)
            yield b'{"ph":"f","bp":"e","name":"flow","cat":"flow","id":%d,%b}' % (number, stamp)

    def _counters(self, event: TrackEvent, sequence: Sequence, time: int) -> Iterator[bytes]:
        """Yield the values of counters that an event of another kind brings along."""
        for uuids, values in (
            (event.counters or sequence.counters, event.counts),
            (event.double_counters or sequence.double_counters, event.double_counts),
        ):
            for uuid, value in zip(uuids, values):
                yield from self._count(uuid, value, sequence, time)

    def _count(self, uuid: int, value: float | None, sequence: Sequence, time: int) -> Iterator[bytes]:
        track = self._tracks.get(uuid)
        if track is None or track.counting is None or value is None:
            self.pass_over("value of a counter that is not described")
            return
        counting = track.counting
        if counting.is_incremental and isinstance(value, int):
            value = sequence.values[uuid] = sequence.values.get(uuid, 0) + value
        value *= counting.factor
        owner = self._tracks.get(track.parent)
        lane_ids, names = self._lane_ids_of(
            track.parent if owner is not None and owner.pid is not None else uuid
        )
        yield from names
        own_id = b"" if counting.owner == b'""' else b'"id":%b,' % counting.owner
        yield b'{"ph":"C","name":%b,%b%b"ts":%b,"args":{%b:%b}}' % (
            counting.key,
            own_id,
            lane_ids,
            micros(time),
            counting.key,
            encoded(value),
        )


def _order(message: tuple[int, bytes]) -> int:
    """Sort what events refer to before them: clocks, names, defaults, then tracks, then the rest."""
    tag, _ = message
    return {6: 0, 12: 1, 59: 2, 43: 3, 44: 3, 60: 4}.get(tag, 5)


def _take_defaults(message: bytes, sequence: Sequence) -> None:
    """Take a TracePacketDefaults: the usual clock, track and counters of a sequence."""
    sequence.track, sequence.counters, sequence.double_counters, sequence.clock = 0, [], [], 0
    for tag, value in fields(message):
        if tag == 58 and isinstance(value, int):
            sequence.clock = value
        elif tag == 11 and isinstance(value, bytes):
            for part, number in fields(value):
                if part == 11 and isinstance(number, int):
                    sequence.track = number
                elif part == 31:
                    sequence.counters += packed_numbers(number)
                elif part == 45:
                    sequence.double_counters += packed_numbers(number)


def _owner(tag: int, message: bytes) -> tuple[int, int | None, list[bytes]]:
    """Return pid and tid (None for a process) of a descriptor of a process (3) or thread (4), and events that
    name it.
    """
    pid, tid, name, labels, order = 0, None if tag == 3 else 0, "", list[str](), None
    for part, value in fields(message):
        match part, value:
            case 1, int():
                pid = signed_number(value)
            case 2, int() if tag == 4:
                tid = signed_number(value)
            case 5, bytes() if tag == 4:
                name = utf8_text(value)
            case 6, bytes() if tag == 3:
                name = utf8_text(value)
            case 8, bytes() if tag == 3:
                labels.append(utf8_text(value))
            case 3, int():
                order = signed_number(value)
    kind = "process" if tag == 3 else "thread"
    events = [_named(f"{kind}_name", pid, tid, "name", name)] if name else []
    if labels:
        events.append(_named("process_labels", pid, tid, "labels", ",".join(labels)))
    if order is not None:
        events.append(_named(f"{kind}_sort_index", pid, tid, "sort_index", order))
    return pid, tid, events


def _named(name: str, pid: int | str, tid: int | str | None, key: str, value: int | str) -> bytes:
    whole: Mapping[str, Any] = {"ph": "M", "name": name, "pid": pid, "tid": 0 if tid is None else tid}
    return json.dumps({**whole, "args": {key: value}}, separators=(",", ":")).encode()


def micros(ns: int) -> bytes:
    """Return ns as JSON in µs, exactly: 1,500 is 1.500."""
    whole, rest = divmod(abs(ns), 1000)
    return b"%b%d.%03d" % (b"-" if ns < 0 else b"", whole, rest)
