"""Arguments of events as Perfetto's debug annotations; field numbers are those of
perfetto/trace/track_event/debug_annotation.proto.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .protobuf import MASK, bytes_field, double_field, number_field, text_field, varint

FIELD = b"\x22"  # field 4 of TrackEvent: a message
WHOLE = b"\x20"  # field 4 of DebugAnnotation: a signed number
DEEPEST = 32
"""Values nested deeper are written as text."""
REMEMBERED = 1 << 16
"""How many encoded values are remembered: shapes, types and names are the same in every step."""
LONGEST = 256
"""The longest encoded value that is remembered, in characters."""


class AnnotationEncoder:
    """Encodes the arguments of events; a key is written once, as interned data, and referred to by number."""

    def __init__(self) -> None:
        self.keys: dict[str, int] = {}
        self._heads: dict[str, bytes] = {}
        self._values: dict[tuple[str, str], bytes] = {}

    def encode(self, arguments: Mapping[str, Any]) -> bytes:
        """Return the arguments of an event as fields of a TrackEvent."""
        return b"".join([self._field(key, value) for key, value in arguments.items()])

    def _field(self, key: str, value: Any) -> bytes:
        if value.__class__ is int and 0 <= value < 1 << 63:
            body = self._head(key) + WHOLE + varint(value)
            return FIELD + varint(len(body)) + body
        text = repr(value)  # unlike the value itself it differs for 1, 1.0, True and "1"
        if len(text) > LONGEST:
            return bytes_field(4, self._head(key) + self._value(value, 0))
        field = self._values.get((key, text))
        if field is None:
            if len(self._values) >= REMEMBERED:
                self._values.clear()
            field = self._values[key, text] = bytes_field(4, self._head(key) + self._value(value, 0))
        return field

    def _head(self, key: str) -> bytes:
        head = self._heads.get(key)
        if head is None:
            number = self.keys[key] = len(self.keys) + 1
            head = self._heads[key] = number_field(1, number)
        return head

    def _value(self, value: Any, depth: int) -> bytes:
        match value:
            case bool():
                return number_field(2, int(value))
            case int() if -(1 << 63) <= value < (1 << 63):
                return number_field(4, value)
            case int() if 0 <= value <= MASK:
                return number_field(3, value)
            case float():
                return double_field(5, value)
            case dict() | list() if not value and depth:
                return text_field(6, "{}" if isinstance(value, dict) else "[]")  # else what follows moves up
            case dict() if depth < DEEPEST:
                return b"".join(
                    bytes_field(11, self._head(key) + self._value(each, depth + 1))
                    for key, each in value.items()
                )
            case list() if depth < DEEPEST:
                return b"".join(bytes_field(12, self._value(each, depth + 1)) for each in value)
            case None:
                return text_field(6, "null")
            case _:
                return text_field(6, value if isinstance(value, str) else str(value))
