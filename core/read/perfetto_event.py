"""One event of a track of Perfetto, what the packets of its sequence refer to, and the clocks of stamps.

Snapshots say what several clocks showed at one moment; the latest that names a clock carries its stamps over
(https://perfetto.dev/docs/concepts/clock-sync). Numbers of fields are those of track_event/track_event.proto
and clock_snapshot.proto.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from .perfetto_values import (
    SequenceTexts,
    annotation_json,
    double,
    encoded,
    fields,
    packed_numbers,
    signed_number,
    utf8_text,
)

BEGIN, END, INSTANT, COUNTER, STATE = 1, 2, 3, 4, 5  # TrackEvent.Type
TYPES = {"B": BEGIN, "E": END}


@dataclass
class Sequence:
    """What the packets of one sequence refer to."""

    interned: SequenceTexts
    is_usable: bool = False  # since names were last cleared
    track: int = 0
    counters: list[int] = field(default_factory=list)
    double_counters: list[int] = field(default_factory=list)
    thread: tuple[int, int] | None = None  # pid and tid where a descriptor without a track says so
    values: dict[int, int] = field(default_factory=dict)  # by track the sum of an incremental counter
    clock: int = 0
    reference_ns: int = 0


@dataclass
class TrackEvent:
    """The fields of one TrackEvent."""

    kind: int = 0
    track: int | None = None
    name: bytes = b""  # JSON, as `arguments` and `legacy` (fields with their commas)
    arguments: bytes = b""
    phase: str = ""
    legacy: bytes = b""
    owner: tuple[int, int] | None = None
    value: float | None = None
    absolute_us: int | None = None
    delta_us: int | None = None
    categories: list[str] = field(default_factory=list)
    flows: list[int] = field(default_factory=list)
    ending_flows: list[int] = field(default_factory=list)
    keeps_flows: bool = False  # those that end here may end elsewhere, too
    counters: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    double_counters: list[int] = field(default_factory=list)
    double_counts: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, message: bytes, sequence: Sequence) -> TrackEvent:
        """Return an event, its names looked up. Raises WireError."""
        event, interned = cls(), sequence.interned
        parts: list[tuple[int, int | bytes]] = []  # what becomes arguments
        legacy = b""
        for tag, value in fields(message):
            match tag, value:
                case 9, int():
                    event.kind = value
                case 11, int():
                    event.track = value
                case 10, int():
                    event.name = interned.names.get(value, b"") or encoded(f"name {value}")
                case 23, bytes():
                    event.name = encoded(utf8_text(value))
                case 3, _:
                    event.categories += map(interned.category, packed_numbers(value))
                case 22, bytes():
                    event.categories.append(utf8_text(value))
                case 30, int():
                    event.value = signed_number(value)
                case 44, int():
                    event.value = double(value)
                case ((47 | 36), _):
                    event.flows += _flow_ids(tag, value)
                case ((48 | 42), _):
                    event.ending_flows += _flow_ids(tag, value)
                case 31, _:
                    event.counters += packed_numbers(value)
                case 12, _:
                    event.counts += map(signed_number, packed_numbers(value))
                case 45, _:
                    event.double_counters += packed_numbers(value)
                case 46, _:
                    event.double_counts += map(double, _fixed(value))
                case 16, int():
                    event.absolute_us = signed_number(value)
                case 1, int():
                    event.delta_us = signed_number(value)
                case 6, bytes():
                    legacy = value
                case _:
                    parts.append((tag, value))
        if legacy:
            event._take_legacy(legacy, interned)
        event.kind = event.kind or TYPES.get(event.phase, 0)
        event.arguments = annotation_json(parts, interned)
        return event

    def _take_legacy(self, message: bytes, interned: SequenceTexts) -> None:
        """Take what older recorders say of an event: phase, duration, id, scope, pid and tid."""
        parts = dict(fields(message))
        number = parts.get(1)
        if not self.name and isinstance(number, int):
            self.name = interned.names.get(number, b"")
        phase = parts.get(2)
        self.phase = chr(phase) if isinstance(phase, int) and 32 < phase < 127 else "?"
        texts = []
        if isinstance(duration := parts.get(3), int):
            texts.append(b'"dur":%d,' % signed_number(duration))
        scope = utf8_text(value) if isinstance(value := parts.get(7), bytes) else ""
        for tag, key in ((6, "id"), (10, "local"), (11, "global")):
            if isinstance(number := parts.get(tag), int):
                own_id = f"{scope}:{number}" if scope else str(number)
                texts.append(
                    b'"id":%b,' % encoded(own_id)
                    if tag == 6
                    else b'"id2":{"%b":%b},' % (key.encode(), encoded(own_id))
                )
        if parts.get(12):
            texts.append(b'"bp":"e",')
        if isinstance(number := parts.get(8), int) and parts.get(13) in (1, 2, 3):  # in, out, both
            self.keeps_flows = parts[13] == 1  # several slices may end one
            (self.ending_flows if self.keeps_flows else self.flows).append(signed_number(number))
        if isinstance(reach := parts.get(14), int) and reach in (1, 2, 3):
            texts.append(b'"s":"%b",' % b"gpt"[reach - 1 : reach])
        self.legacy = b"".join(texts)
        pid, tid = parts.get(18), parts.get(19)
        if isinstance(pid, int) and isinstance(tid, int):
            self.owner = signed_number(pid), signed_number(tid)


def _flow_ids(tag: int, value: int | bytes) -> Iterable[int]:
    """Return the numbers of flows, fixed ones (47, 48) or the older varints."""
    return (signed_number(number) for number in (_fixed(value) if tag in (47, 48) else packed_numbers(value)))


def _fixed(value: int | bytes) -> Iterator[int]:
    """Yield 64-bit numbers of a repeated field: one each, or packed."""
    if isinstance(value, int):
        yield value
        return
    for at in range(0, len(value) - 7, 8):
        yield int.from_bytes(value[at : at + 8], "little")


BOOTTIME = 6
OWN = range(64, 128)
"""The clocks that belong to one sequence of packets."""


@dataclass
class Clock:
    """A clock as its last snapshot left it."""

    shift: int  # ns to add to its own
    factor: int = 1  # ns of one unit
    is_incremental: bool = False  # each stamp counts from the last
    last: int = 0


class TraceClocks:
    def __init__(self) -> None:
        """Know no clock yet; the first that is met without any snapshot is the trace's own."""
        self._clocks: dict[tuple[int, int], Clock] = {}
        self._main: int | None = None

    def take(self, message: bytes, sequence: int) -> None:
        readings: dict[int, Clock] = {}
        main = None
        for tag, value in fields(message):
            if tag == 2 and isinstance(value, int):
                main = value
            elif tag == 1 and isinstance(value, bytes):
                parts = {part: number for part, number in fields(value) if isinstance(number, int)}
                factor = parts.get(4, 0) or 1
                readings[parts.get(1, 0)] = Clock(0, factor, bool(parts.get(3)), parts.get(2, 0))
        if self._main is None:
            self._main = main or BOOTTIME
        moment = self._moment(readings, sequence)
        for number, clock in readings.items():
            clock.shift = moment - clock.last * clock.factor
            self._clocks[_key(number, sequence)] = clock

    def _moment(self, readings: dict[int, Clock], sequence: int) -> int:
        """Return the time of a snapshot: by the main clock, else by one that is known, else the first."""
        for number in (self._main, *readings):
            if number in readings:
                known = Clock(0) if number == self._main else self._clocks.get(_key(number, sequence))
                if known is not None:
                    return readings[number].last * readings[number].factor + known.shift
        return next((clock.last * clock.factor for clock in readings.values()), 0)

    def ns(self, stamp: int, clock: int, sequence: int) -> int | None:
        """Return the time of a stamp, in ns; None where its clock is not known. Clock 0 is the usual one."""
        number = clock or BOOTTIME
        if self._main is None:
            self._main = number
        known = self._clocks.get(_key(number, sequence))
        if known is None:
            return stamp if number == self._main or not clock else None
        if known.is_incremental:
            known.last += stamp
            stamp = known.last
        return stamp * known.factor + known.shift


def _key(clock: int, sequence: int) -> tuple[int, int]:
    return clock, sequence if clock in OWN else 0
