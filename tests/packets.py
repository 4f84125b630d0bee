"""Traces of Perfetto made for tests: single packets, random ones made from the grammar of what is read, and
shapes that are full of one thing.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from typing import Any

from tracelane.core.export.protobuf import (
    bytes_field,
    double_field,
    fixed_field,
    number_field,
    text_field,
    varint,
)

BEGIN, END, INSTANT, COUNTER, STATE = 1, 2, 3, 4, 5


def packet(
    *parts: bytes, time: int | None = None, clock: int = 0, sequence: int = 1, clears: bool = False
) -> bytes:
    """Return a TracePacket of a sequence."""
    body = b"".join(parts) + number_field(10, sequence)
    body += (number_field(8, time) if time is not None else b"") + (number_field(58, clock) if clock else b"")
    return bytes_field(1, body + number_field(13, 1 if clears else 2))


def event(time: int, kind: int, *parts: bytes, track: int | None = 1, name: str = "", **more: Any) -> bytes:
    """Return a packet with a TrackEvent."""
    body = number_field(9, kind) + (b"" if track is None else number_field(11, track))
    return packet(
        bytes_field(11, body + (text_field(23, name) if name else b"") + b"".join(parts)), time=time, **more
    )


def described(uuid: int, *parts: bytes, name: str = "", parent: int = 0) -> bytes:
    """Return a TrackDescriptor."""
    body = number_field(1, uuid) + (text_field(2, name) if name else b"") + b"".join(parts)
    return bytes_field(60, body + (number_field(5, parent) if parent else b""))


def thread(pid: int, tid: int, name: str) -> bytes:
    """Return the descriptor of a thread, within that of a track."""
    return bytes_field(4, number_field(1, pid) + number_field(2, tid) + text_field(5, name))


def process(pid: int, name: str) -> bytes:
    """Return the descriptor of a process, within that of a track."""
    return bytes_field(3, number_field(1, pid) + text_field(6, name))


def snapshot(*clocks: tuple[int, int], main: int = 0) -> bytes:
    """Return what clocks showed at one moment; 64 counts from stamp to stamp."""
    readings = [
        bytes_field(
            1, number_field(1, clock) + number_field(2, at) + (number_field(3, 1) if clock == 64 else b"")
        )
        for clock, at in clocks
    ]
    return bytes_field(6, b"".join(readings) + (number_field(2, main) if main else b""))


def named(tag: int, *texts: tuple[int, str]) -> bytes:
    """Return texts to refer to: categories (1), names (2), keys (3), values (29)."""
    return bytes_field(
        12, b"".join(bytes_field(tag, number_field(1, n) + text_field(2, t)) for n, t in texts)
    )


def legacy(phase: str, *parts: bytes) -> bytes:
    """Return the older description of an event."""
    return bytes_field(6, number_field(2, ord(phase)) + b"".join(parts))


def packed(*packets: bytes) -> bytes:
    """Return a packet that holds others, packed."""
    return bytes_field(1, bytes_field(50, zlib.compress(b"".join(packets))))


MAIN = packet(described(1, thread(5, 7, "main")), clears=True)

# -- random ones ---------------------------------------------------------------------------------------------

GRAMMAR: dict[str, dict[int, str]] = {
    "packet": {
        1: "bytes",
        2: "bytes",
        6: "clocks",
        8: "number",
        10: "few",
        11: "event",
        12: "interned",
        13: "few",
        41: "few",
        43: "process",
        44: "thread",
        50: "packed",
        58: "clock",
        59: "defaults",
        60: "track",
        66: "bytes",
        99: "number",
    },
    "clocks": {1: "reading", 2: "clock"},
    "reading": {1: "clock", 2: "number", 3: "few", 4: "number"},
    "interned": {1: "interning", 2: "interning", 3: "interning", 4: "location", 29: "interning"},
    "interning": {1: "few", 2: "text"},
    "location": {1: "few", 2: "text", 3: "text", 4: "number"},
    "defaults": {11: "default event", 58: "clock"},
    "default event": {11: "few", 31: "numbers", 45: "numbers"},
    "track": {
        1: "few",
        2: "text",
        3: "process",
        4: "thread",
        5: "few",
        8: "counter",
        10: "text",
        13: "text",
        14: "description",
    },
    "process": {1: "number", 3: "number", 6: "text", 8: "text"},
    "thread": {1: "number", 2: "number", 3: "number", 5: "text"},
    "counter": {1: "few", 4: "number", 5: "few"},
    "event": {
        1: "number",
        3: "numbers",
        4: "annotation",
        6: "legacy",
        9: "few",
        10: "few",
        11: "few",
        12: "numbers",
        16: "number",
        22: "text",
        23: "text",
        30: "number",
        31: "numbers",
        33: "location",
        34: "few",
        36: "numbers",
        42: "numbers",
        44: "double",
        45: "numbers",
        46: "doubles",
        47: "fixed",
        48: "fixed",
        52: "number",
        53: "text",
        77: "number",
    },
    "annotation": {
        1: "few",
        2: "few",
        3: "number",
        4: "number",
        5: "double",
        6: "text",
        7: "number",
        8: "nested",
        9: "json",
        10: "text",
        11: "annotation",
        12: "annotation",
        14: "bytes",
        17: "few",
    },
    "nested": {1: "few", 2: "text", 3: "nested", 4: "nested", 5: "number", 6: "double", 7: "few", 8: "text"},
    "legacy": {
        1: "few",
        2: "phase",
        3: "number",
        6: "number",
        7: "text",
        8: "number",
        10: "number",
        11: "number",
        12: "few",
        13: "few",
        14: "few",
        18: "number",
        19: "number",
    },
}
"""The messages that are read: by number of field the kind of its value."""
NUMBERS = (0, 1, 2, 5, 127, 128, 1000, 10**9, 10**18, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
TEXTS = ("", "a", "Ω\u202e", '"\\', "\x1b[2J", "\x00", "k" * 300, "n" * 5000)
JSON_TEXTS = ("", "1", '{"a":[1,{"b":null}]}', '"\\ud800"', "[" * 2000, "1" * 5000, "1e999", "NaN", '{"a":1,')
MAX_DEPTH = 6


class PacketMaker:
    """Makes packets from the grammar, now and then with a field of another kind than it should be."""

    def __init__(self, numbers: random.Random) -> None:
        self._numbers = numbers

    def file(self, packets: int) -> bytes:
        """Return a trace of so many packets, a quarter of them as a recorder writes them."""
        parts = [MAIN] if self._numbers.random() < 0.8 else []
        return b"".join([*parts, *(self._packet() for _ in range(packets))])

    def _packet(self) -> bytes:
        number = self._numbers
        if number.random() < 0.25:
            time = number.randrange(10**6)
            return event(time, number.choice((BEGIN, END, INSTANT, COUNTER, STATE)), self.message("event", 3))
        return bytes_field(1, self.message("packet", 0))

    def message(self, kind: str, depth: int) -> bytes:
        tags = list(GRAMMAR[kind])
        count = self._numbers.choice((0, 1, 1, 2, 2, 3, 4, 6))
        return b"".join(
            self._field(tag, GRAMMAR[kind][tag], depth) for tag in self._numbers.choices(tags, k=count)
        )

    def _field(self, tag: int, kind: str, depth: int) -> bytes:
        number = self._numbers
        if number.random() < 0.03:
            kind = number.choice(("number", "text", "double", "fixed", "numbers", "bytes"))
        if kind in GRAMMAR:
            return bytes_field(tag, self.message(kind, depth + 1) if depth < MAX_DEPTH else b"")
        match kind:
            case "few":
                return number_field(tag, number.randrange(8))
            case "clock":
                return number_field(tag, number.choice((0, 1, 3, 6, 64, 65, 127)))
            case "phase":
                return number_field(tag, number.choice((*b"BEXiICSTFstfbneMNOD", 0, 10, 1 << 40)))
            case "number":
                return number_field(tag, number.choice((*NUMBERS, number.randrange(1 << 20))))
            case "numbers":
                values = number.choices(NUMBERS, k=number.randrange(4))
                return bytes_field(tag, b"".join(map(varint, values)) + number.choice((b"", b"", b"\x80")))
            case "fixed":
                return fixed_field(tag, number.choice(NUMBERS))
            case "double":
                return double_field(tag, number.choice((0.0, -1.5, 1e308, float("inf"), float("nan"))))
            case "doubles":
                return bytes_field(tag, number.randbytes(number.choice((0, 7, 8, 16))))
            case "text" | "description":
                texts = TEXTS if kind == "text" else ("slices that overlap others of the thread", "")
                return text_field(tag, number.choice(texts))
            case "json":
                return text_field(tag, number.choice(JSON_TEXTS))
            case "packed":
                inner = b"".join(self._packet() for _ in range(number.randrange(3))) if depth < 2 else b""
                data = zlib.compress(number.choice((inner, b"", bytes(1 << 16), inner * 50)))
                return bytes_field(tag, data[: number.choice((len(data), len(data), len(data) // 2))])
            case _:
                return bytes_field(tag, number.randbytes(number.randrange(9)))


# -- shapes --------------------------------------------------------------------------------------------------

LONG = "n" * 20_000


def _argument(*parts: bytes) -> bytes:
    return bytes_field(4, b"".join(parts))


def _one(part: Callable[[int], bytes], before: bytes = b"") -> Callable[[int], bytes]:
    """Return what makes a trace with one event that is full of parts."""
    return lambda n: MAIN + before + event(5, INSTANT, *map(part, range(n)), name="a")


def _many(each: Callable[[int], bytes], before: bytes = b"") -> Callable[[int], bytes]:
    """Return what makes a trace that is full of packets."""
    return lambda n: MAIN + before + b"".join(map(each, range(n)))


def _nest(field: int, innermost: bytes) -> Callable[[int], bytes]:
    def make(n: int) -> bytes:
        data = innermost
        for _ in range(n):
            data = bytes_field(field, data)
        return MAIN + event(5, INSTANT, _argument(text_field(10, "a"), data), name="a")

    return make


NAMES = packet(*(named(tag, (1, LONG)) for tag in (1, 2, 3, 29)))
COUNTING = packet(described(3, bytes_field(8, b""), name=LONG, parent=1))
SHAPES: dict[str, Callable[[int], bytes]] = {
    "categories": _one(lambda i: number_field(3, i % 7)),
    "categories by name": _one(lambda i: text_field(22, f"c{i}")),
    "packed categories": lambda n: MAIN + event(5, INSTANT, bytes_field(3, b"\1" * n)),
    "flows": _one(lambda i: fixed_field(47, i)),
    "packed flows": lambda n: MAIN + event(5, INSTANT, bytes_field(36, b"".join(map(varint, range(n))))),
    "ending flows": _one(lambda i: fixed_field(48, i)),
    "counters": _one(lambda i: number_field(31, i) + number_field(12, i)),
    "double counters": _one(lambda i: number_field(45, i) + double_field(46, i)),
    "default counters": lambda n: MAIN + packet(
        bytes_field(59, bytes_field(11, b"".join(number_field(31, i) for i in range(n))))
    ),
    "lists of one name": _one(lambda i: _argument(text_field(10, "a"), bytes_field(12, number_field(4, i)))),
    "dictionaries of one name": _one(
        lambda i: _argument(
            text_field(10, "a"), bytes_field(11, text_field(10, f"k{i}") + number_field(4, i))
        )
    ),
    "nested values of one name": _one(
        lambda i: _argument(text_field(10, "a"), bytes_field(8, number_field(1, 2) + bytes_field(4, b"")))
    ),
    "arguments": _one(lambda i: _argument(text_field(10, f"k{i}"), number_field(4, i))),
    "items": lambda n: MAIN + event(
        5, INSTANT, _argument(text_field(10, "a"), *(bytes_field(12, number_field(4, i)) for i in range(n)))
    ),
    "nested lists": _nest(12, number_field(4, 1)),
    "nested dictionaries": _nest(11, number_field(4, 1)),
    "nested JSON": lambda n: MAIN + event(5, INSTANT, _argument(text_field(10, "a"), text_field(9, "[" * n))),
    "digits in JSON": lambda n: MAIN + event(
        5, INSTANT, _argument(text_field(10, "a"), text_field(9, "1" * n))
    ),
    "flows that nobody ends": _many(lambda i: event(i, INSTANT, fixed_field(47, i), name="a")),
    "flows that end": _many(
        lambda i: event(i, INSTANT, fixed_field(47, i)) + event(i, INSTANT, fixed_field(48, i))
    ),
    "tracks in tracks": _many(
        lambda i: packet(described(i + 2, name="t", parent=i + 1)) + event(i, INSTANT, track=i + 2),
    ),
    "tracks in tracks, topmost last": lambda n: MAIN + b"".join(
        packet(described(i + 2, name="t", parent=i + 3)) for i in range(n)
    ) + b"".join(event(i, INSTANT, track=i + 2) for i in range(n)),
    "overlapping tracks in each other": _many(
        lambda i: packet(
            described(i + 2, text_field(14, "slices that overlap others of the thread"), parent=i + 1)
        ) + event(i, BEGIN, track=i + 2),
    ),
    "names of one track": _many(lambda i: packet(described(1, name=f"n{i}")) + event(i, INSTANT)),
    "a long name of a track, forgotten": _many(
        lambda i: packet(described(3, parent=i % 2 + 1)) + event(i, INSTANT, track=3),
        packet(described(3, name=LONG)),
    ),
    "a long name": _many(lambda i: event(i, INSTANT, number_field(10, 1)), NAMES),
    "a long category": _many(lambda i: event(i, INSTANT, bytes_field(3, b"\1\1\1\1")), NAMES),
    "a long key and value": _many(
        lambda i: event(i, INSTANT, _argument(number_field(1, 1), number_field(17, 1))), NAMES
    ),
    "long values of one event": _one(lambda i: _argument(number_field(1, 1), number_field(17, 1)), NAMES),
    "long items of one event": lambda n: MAIN + NAMES + event(
        5, INSTANT, _argument(text_field(10, "a"), *(bytes_field(12, number_field(17, 1)) for _ in range(n)))
    ),
    "a long counter": _many(lambda i: event(i, COUNTER, number_field(30, i), track=3), COUNTING),
    "a long state": _many(lambda i: event(i, STATE, number_field(10, 1)), NAMES),
    "long slices that overlap": lambda n: MAIN + NAMES + packet(
        described(2, text_field(14, "slices that overlap others of the thread"), parent=1)
    ) + b"".join(event(i, BEGIN, number_field(10, 1), track=2) for i in range(n)),
    "sequences": _many(lambda i: packet(sequence=i, clears=True)),
    "clocks": _many(lambda i: packet(snapshot((64, i), (6, i)), sequence=i)),
    "kinds of packets": _many(lambda i: packet(bytes_field(100 + i, b""))),
    "empty packets": lambda n: MAIN + b"\n\0" * n,
    "packed zeros": lambda n: MAIN + b"".join(packed(bytes(1 << 20)) for _ in range(n // 400)),
    "packed empty packets": lambda n: MAIN + b"".join(packed(b"\n\0" * (1 << 16)) for _ in range(n // 400)),
    "packed events": lambda n: MAIN + packed(*(event(i, INSTANT, name="a") for i in range(n))),
}  # fmt: skip
"""Traces that are full of one thing, n of it."""
