"""Names and arguments of a trace of Perfetto as JSON: interned texts and debug annotations; before that the
wire format of protobuf (https://protobuf.dev/programming-guides/encoding), whatever its fields mean.

Numbers of fields are those of interned_data.proto and track_event/debug_annotation.proto.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

SIGN = 1 << 63
MAX_UNPACKED, MAX_WRITTEN = 64, 256
"""So many times the bytes of the file may packed packets unpack to, and its JSON take. Recorders pack 5 to 10
times, and JSON takes 5 to 20 times as much as packets that refer to names.
"""
MAX_REFERRED_LENGTH = 4096
"""Characters of a text that events refer to by number, as it is written for each of them."""


class WireError(ValueError):
    """What stands there is no message."""


class Budget:
    """What the packets of a file may come to, measured by the bytes read of it so far."""

    def __init__(self) -> None:
        self.read = 0
        self.unpacked = 0
        self.written = 0
        self.referred = 0
        """Bytes of the texts that the packet at hand refers to, not written yet."""

    def left_to_unpack(self) -> int:
        return MAX_UNPACKED * self.read - self.unpacked

    def refer(self, size: int) -> None:
        """Take note of a text that will be written. Raises WireError where that would be too much."""
        self.referred += size
        self._check(self.referred)

    def write(self, size: int) -> None:
        """Take note of text that is written. Raises WireError where that is too much."""
        self._check(size)
        self.written += size

    def _check(self, size: int) -> None:
        if self.written + size > MAX_WRITTEN * self.read:
            raise WireError(f"more than {MAX_WRITTEN} times the file's size as JSON")


def referred_text(data: bytes) -> str:
    """Return a text that events refer to: of a long one the begin, its length and a checksum of all of it."""
    text = utf8_text(data)
    if len(text) <= MAX_REFERRED_LENGTH:
        return text
    return f"{text[:MAX_REFERRED_LENGTH]}… ({len(text):,} characters, {zlib.crc32(data):08x})"


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at a place, 0 to 2^64 - 1, and where it ends; IndexError where the data does."""
    number = data[at]
    at += 1
    if number < 0x80:
        return number, at
    number &= 0x7F
    for shift in range(7, 70, 7):
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & (2 * SIGN - 1), at
    raise WireError("a number of more than ten bytes")


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number and value of each field: whole numbers unsigned, as are the bits of fixed ones; else
    bytes. Raises WireError where the message ends within a field or has none of protobuf's kinds.
    """
    at, end = 0, len(data)
    try:
        while at < end:
            key = data[at]  # most keys, sizes and packed_numbers are of one byte
            key, at = (key, at + 1) if key < 0x80 else read_varint(data, at)
            match key & 7:
                case 0:
                    value = data[at]
                    value, at = (value, at + 1) if value < 0x80 else read_varint(data, at)
                    yield key >> 3, value
                case 2:
                    size = data[at]
                    size, at = (size, at + 1) if size < 0x80 else read_varint(data, at)
                    if at + size > end:
                        raise WireError("a field that is longer than its message")
                    yield key >> 3, data[at : at + size]
                    at += size
                case 1 | 5 as kind:
                    size = 8 if kind == 1 else 4
                    if at + size > end:
                        raise WireError("a field that is longer than its message")
                    yield key >> 3, int.from_bytes(data[at : at + size], "little")
                    at += size
                case _:
                    raise WireError(f"a field of kind {key & 7}")
    except IndexError:
        raise WireError("a message that ends within a field") from None


def signed_number(number: int) -> int:
    """Return an unsigned 64-bit number as the signed one with the same bits."""
    return number - 2 * SIGN if number >= SIGN else number


def double(bits: int) -> float:
    """Return the floating-point number with these 64 bits."""
    value: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
    return value


def packed_numbers(value: int | bytes) -> Iterator[int]:
    """Yield the numbers of a repeated field: one each, or several packed into one."""
    if isinstance(value, int):
        yield value
        return
    at = 0
    try:
        while at < len(value):
            number, at = read_varint(value, at)
            yield number
    except IndexError:
        raise WireError("packed_numbers that end within one") from None


JSON = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
REMEMBERED = 1 << 14
"""The encoded annotations that are remembered: shapes and types are the same in every step."""
MAX_LENGTH = 256
"""The longest annotation that is remembered, in bytes."""
MAX_DEPTH = 64
MAX = 1 << 20
"""How many texts of a kind a sequence may refer to."""
KEYS = {
    2: "thread_time_delta_us",
    8: "thread_instructions_delta",
    17: "thread_time_us",
    20: "thread_instructions",
    52: "correlation_id",
    53: "correlation_id",
}
"""The names of the other fields of a TrackEvent that become arguments."""


class SequenceTexts:
    """The texts that the packets of one sequence refer to by number."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.names: dict[int, bytes] = {}  # JSON
        self.categories: dict[int, str] = {}
        self.keys: dict[int, str] = {}
        self.texts: dict[int, str] = {}
        self.locations: dict[int, dict[str, Any]] = {}
        self.remembered: dict[bytes, tuple[str, Any, int]] = {}

    def take(self, message: bytes) -> None:
        """Take an InternedData. Raises WireError."""
        if (
            len(self.names) + len(self.categories) + len(self.keys) + len(self.texts) + len(self.locations)
            > MAX
        ):
            raise WireError(f"more than {MAX:,} texts to refer to")
        for tag, value in fields(message):
            if not isinstance(value, bytes) or tag not in (1, 2, 3, 4, 29):
                continue
            parts = dict(fields(value))
            number, text = parts.get(1, 0), parts.get(2, b"")
            if not isinstance(number, int):
                continue
            words = referred_text(text) if isinstance(text, bytes) else ""
            match tag:
                case 1:
                    self.categories[number] = words
                case 2:
                    self.names[number] = encoded(words)
                case 3:
                    self.keys[number] = words
                    self.remembered.clear()
                case 29:
                    self.texts[number] = words
                    self.remembered.clear()
                case _:
                    self.locations[number] = source_place(value)

    def category(self, number: int) -> str:
        return self._referred(self.categories.get(number, f"category {number}"))

    def key(self, number: int) -> str:
        return self._referred(self.keys.get(number, f"key {number}"))

    def text(self, number: int) -> str:
        return self._referred(self.texts.get(number, f"text {number}"))

    def location(self, number: int) -> dict[str, Any]:
        location = self.locations.get(number, {})
        self.budget.refer(sum(len(text) for text in location.values() if isinstance(text, str)))
        return location

    def _referred(self, text: str) -> str:
        self.budget.refer(len(text))
        return text


def annotation_json(parts: Iterable[tuple[int, int | bytes]], interned: SequenceTexts) -> bytes:
    """Return the fields of a TrackEvent that become arguments as a JSON object, nothing for none. Fields that
    are not known keep their number, so that nothing is lost in silence.
    """
    arguments: dict[str, list[Any]] = {}
    for tag, value in parts:
        if tag == 4 and isinstance(value, bytes):
            key, one = _remembered(value, interned)
            arguments.setdefault(key, []).append(one)
        elif tag == 34 and isinstance(value, int):
            arguments["source"] = [interned.location(value)]
        elif tag == 33 and isinstance(value, bytes):
            arguments["source"] = [source_place(value)]
        else:
            key = KEYS.get(tag, f"field {tag}")
            text = utf8_text(value) if tag == 53 and isinstance(value, bytes) else None
            arguments[key] = [text or (value if isinstance(value, int) else f"{len(value):,} bytes")]
    return encoded(_merged_each(arguments)) if arguments else b""


def source_place(message: bytes) -> dict[str, Any]:
    """Return the file, function and line of a SourceLocation."""
    keys = {2: "file", 3: "function", 4: "line"}
    return {
        keys[tag]: value if isinstance(value, int) else referred_text(value)
        for tag, value in fields(message)
        if tag in keys
    }


def _remembered(message: bytes, interned: SequenceTexts) -> tuple[str, Any]:
    known = interned.remembered.get(message)
    if known is None:
        before = interned.budget.referred
        key, value = _annotation(message, interned, 0)
        if len(interned.remembered) >= REMEMBERED:
            interned.remembered.clear()
        if len(message) <= MAX_LENGTH:
            interned.remembered[message] = key, value, interned.budget.referred - before
        return key, value
    key, value, size = known
    interned.budget.refer(size)
    return key, value


def _annotation(message: bytes, interned: SequenceTexts, depth: int) -> tuple[str, Any]:
    name = ""
    value: Any = None
    entries: dict[str, list[Any]] = {}
    items: list[Any] | None = None
    for tag, part in fields(message):
        match tag, part:
            case 1, int():
                name = interned.key(part)
            case 10, bytes():
                name = utf8_text(part)
            case 2, int():
                value = bool(part)
            case 3, int():
                value = part
            case 4, int():
                value = signed_number(part)
            case 5, int():
                value = _finite(double(part))
            case 6, bytes():
                value = utf8_text(part)
            case 17, int():
                value = interned.text(part)
            case 7, int():
                value = hex(part)
            case 8, bytes():
                value = _nested(part, depth)
            case 9, bytes():
                value = _json(part)
            case 11, bytes() if depth < MAX_DEPTH:
                key, one = _annotation(part, interned, depth + 1)
                entries.setdefault(key, []).append(one)
            case 12, bytes() if depth < MAX_DEPTH:
                items = [] if items is None else items
                items.append(_annotation(part, interned, depth + 1)[1])
            case ((11 | 12 | 14), bytes()):
                value = f"{len(part):,} bytes"
    return name, _merged_each(entries) if entries else items if items is not None else value


def _nested(message: bytes, depth: int) -> Any:
    """Return the value of a NestedValue, the older form of dictionaries and lists."""
    keys: list[str] = []
    values: list[Any] = []
    items: list[Any] = []
    kind = 0
    leaf: Any = None
    for tag, part in fields(message):
        match tag, part:
            case 1, int():
                kind = part
            case 2, bytes():
                keys.append(utf8_text(part))
            case ((3 | 4), bytes()) if depth < MAX_DEPTH:
                (values if tag == 3 else items).append(_nested(part, depth + 1))
            case 5, int():
                leaf = signed_number(part)
            case 6, int():
                leaf = _finite(double(part))
            case 7, int():
                leaf = bool(part)
            case 8, bytes():
                leaf = utf8_text(part)
    return dict(zip(keys, values)) if kind == 1 else items if kind == 2 else leaf


def _merged_each(values: dict[str, list[Any]]) -> dict[str, Any]:
    return {key: _merged(several) for key, several in values.items()}


def _merged(values: Sequence[Any]) -> Any:
    """Return the values of one name as one: dictionaries and lists are joined with those of their kind right
    before them, of others the last counts. Time is linear in what they hold.
    """
    last = values[-1]
    if len(values) == 1 or not isinstance(last, (dict, list)):
        return last
    begin = len(values)
    while begin and isinstance(values[begin - 1], type(last)):
        begin -= 1
    if isinstance(last, list):
        return [item for one in values[begin:] for item in one]
    entries: dict[str, list[Any]] = {}
    for one in values[begin:]:
        for key, value in one.items():
            entries.setdefault(key, []).append(value)
    return _merged_each(entries)


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return utf8_text(text)


def _finite(value: float) -> float | str:
    """Return a number, or words for one that JSON has not."""
    return value if math.isfinite(value) else str(value)


def utf8_text(data: bytes) -> str:
    """Return text; what is no UTF-8 becomes U+FFFD."""
    return data.decode("utf-8", "replace")


def encoded(value: Any) -> bytes:
    if isinstance(value, float) and not math.isfinite(value):
        value = str(value)
    return JSON.encode(value).encode("utf-8", "replace")
