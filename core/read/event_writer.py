"""One decoded event to the columns of a batch: what scan.c does, in plain Python, for any event.

Both number strings in one order: category, name, pid, tid, id, promoted arguments in the order of their
table, counter series in the order of the text.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any, Final

import orjson

from ..base.numbers import whole_number
from ..base.units import TIME_LIMIT
from .batch import (
    MISSING_DURATIONS,
    NEGATIVE_DURATIONS,
    NOT_OBJECTS,
    PHASES,
    WITHOUT_TIME,
    Beyond,
    ColumnBuffers,
    EventFlag,
    IdKind,
    Metadata,
    Numbering,
)
from .promoted import Kind, Promoted

BLOCK_SIZE = 256 << 10
"""A block is what begins in one cell of so many bytes of the text."""
TOO_DEEP = '"(nested too deep)"'
OTHER = ord("?")
"""The phase of events whose `ph` is no single ASCII letter, and of X whose duration means nothing."""
FLOWS, ASYNCS, INSTANTS = frozenset("stf"), frozenset("bneSTpF"), frozenset("iIR")
SLICES = frozenset("XBE")
BIND_ID = "bind_id"
"""The key of a slice that names a flow of version 2, and the category of such flows: all of an id are one."""
FLOW_PHASES = {(False, True): "s", (True, True): "t", (True, False): "f"}
"""What a slice is to its flow, by `flow_in` and `flow_out`."""
SLICE_FLOWS = "slice_flows"
"""Counts flows that are keys of slices, and no events."""
_BLANKS = " \t\n\r\f\v"
_DIGITS = re.compile(r"[+-]?\d{1,20}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
MAX_NUMBER_LENGTH = 100
"""Characters beyond which a counter's text is not taken for a number."""
MAX_EXPONENT = 308
"""Beyond it a number is no finite float; nobody's clock means it."""
_MAX_INTEGER = 10 ** (MAX_EXPONENT + 3)


US_DIGITS: Final = 3
"""The format counts times in µs, of 10^3 ns."""


class Real(float):
    """A number with a fraction or an exponent that still knows its text."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Real:
        real = super().__new__(cls, text)
        real.text = text
        return real


class EventWriter:
    """Writes events into the columns of the batch that is being read."""

    def __init__(self, columns: ColumnBuffers, numbering: Numbering) -> None:
        self._columns = columns
        self._numbering = numbering
        self._promoted = columns.promoted
        self._digits, self._origin = columns.scale

    def write(
        self, element: object, begin: int, end: int, *, irregular: bool = False, repaired: bool = False
    ) -> None:
        """Write one element that stands from `begin` to `end` in the source. `irregular`: there is not
        exactly one comma before it; `repaired`: what stands there is no JSON.
        """
        if isinstance(element, dict):
            self._event(element, begin)
        else:
            self._columns.counts[NOT_OBJECTS] += 1
        self._block(begin, end, irregular, repaired)
        self._columns.ordinal += 1

    def _block(self, begin: int, end: int, irregular: bool, repaired: bool) -> None:
        columns = self._columns
        row = columns.room("blocks") - 1
        blocks = columns.tables["blocks"]
        if (
            row < 0
            or columns.new_block
            or repaired
            or begin // BLOCK_SIZE != int(blocks["offset"][row]) // BLOCK_SIZE
        ):
            row += 1
            columns.count[columns.names.index("blocks")] += 1
            for name, value in zip(blocks, (begin, 0, columns.ordinal, 0, repaired)):
                blocks[name][row] = value
        elif irregular:
            blocks["repaired"][row] = 1
        blocks["count"][row] += 1
        blocks["length"][row] = end - int(blocks["offset"][row])
        columns.new_block = repaired

    def _event(self, event: dict[str, Any], begin: int) -> None:
        columns = self._columns
        if not event:  # some writers put one first or last, for the commas between all others
            columns.named_counts["empty"] += 1
            return
        phase = event.get("ph")
        code = ord(phase) if isinstance(phase, str) and len(phase) == 1 and phase.isascii() else OTHER
        if code == OTHER and phase != "?":
            named = "(missing)" if phase is None else phase if isinstance(phase, str) else compact_json(phase)
            columns.named_counts[f"phase.{named}"] += 1
        else:
            columns.counts[PHASES + code] += 1
        if phase == "M":
            columns.metadata.append(metadata_of(event, columns.ordinal))
            return
        start = time_of(event.get("ts"), self._digits)
        if start is None:
            columns.counts[WITHOUT_TIME + code] += 1
            return
        if abs(start - self._origin) > TIME_LIMIT:
            one = Beyond.of(start)
            columns.beyond = one if columns.beyond is None else columns.beyond.joined(one)
        start -= self._origin
        duration = 0
        if phase == "X":
            duration, code = self._duration(event)
        ends = start + duration
        clamped = abs(start) > TIME_LIMIT or ends > TIME_LIMIT
        if clamped:
            start = max(-TIME_LIMIT, min(TIME_LIMIT, start))
            duration = max(start, min(ends, TIME_LIMIT)) - start
            columns.clamped += 1
            columns.first_clamped = begin if columns.first_clamped is None else columns.first_clamped
        self._row(event, code, start, duration, EventFlag.CLAMPED if clamped else 0)

    def _duration(self, event: dict[str, Any]) -> tuple[int, int]:
        """Return the duration of a slice, and its phase: another one where it means nothing."""
        counts = self._columns.counts
        value = event.get("dur")
        duration = time_of(value, self._digits)
        if value is None:
            counts[MISSING_DURATIONS] += 1
        elif duration is None:
            counts[WITHOUT_TIME + ord("X")] += 1
            return 0, OTHER
        elif duration < 0:
            counts[NEGATIVE_DURATIONS] += 1
        return max(0, duration or 0), ord("X")

    def _row(self, event: dict[str, Any], code: int, start: int, duration: int, flags: int) -> None:
        columns, numbering = self._columns, self._numbering
        phase = chr(code)
        category, name = self._text(event.get("cat")), self._text(event.get("name"))
        pid = numbering.number(compact_json(event.get("pid")))
        track = numbering.track(pid, numbering.number(compact_json(event.get("tid"))))
        common = {
            "phase": code,
            "flags": flags,
            "ordinal": columns.ordinal,
            "track": track,
            "category": category,
            "name": name,
            "start": start,
        }
        if phase in FLOWS or phase in ASYNCS or phase == "C":
            kind, value = self._id(event)
            common |= {"id_kind": kind, "id_value": value}
            if phase == "C":
                self._samples(event, common)
                return
            if phase in FLOWS and event.get("bp") == "e":
                common["flags"] |= EventFlag.BIND_ENCLOSING
            self._append("flows" if phase in FLOWS else "asyncs", common)
            return
        if phase in INSTANTS:
            scope = event.get("s")
            common["flags"] |= (
                EventFlag.SCOPE_PROCESS if scope == "p" else EventFlag.SCOPE_GLOBAL if scope == "g" else 0
            )
        self._append("timed", common | {"duration": duration})
        self._write_promoted(event)
        if phase in SLICES and event.get("bind_id") is not None:
            self._bind(event, common)

    def _bind(self, event: dict[str, Any], common: dict[str, Any]) -> None:
        """Write the flow of version 2 that comes to a slice or leaves it, as an event of its own."""
        phase = FLOW_PHASES.get((event.get("flow_in") is True, event.get("flow_out") is True))
        if phase is None:
            return
        columns, number = self._columns, self._numbering.number
        kind, value = self._id({"id": event["bind_id"], "scope": event.get("scope")})
        flow = {
            "phase": ord(phase),
            "flags": common["flags"] | EventFlag.BIND_ENCLOSING,
            "category": number(BIND_ID),
            "id_kind": kind,
            "id_value": value,
        }
        self._append("flows", common | flow)
        columns.named_counts[SLICE_FLOWS] += 1

    def _append(self, table: str, values: dict[str, Any]) -> None:
        columns = self._columns
        row = columns.room(table)
        for name, column in columns.tables[table].items():
            column[row] = values[name]
        columns.count[columns.names.index(table)] += 1

    def _text(self, value: object) -> int:
        """Return the number of a text: of null none; what is no string goes by its JSON text."""
        if value is None:
            return 0
        return self._numbering.number(value if isinstance(value, str) else compact_json(value))

    def _id(self, event: dict[str, Any]) -> tuple[IdKind, int]:
        number = self._numbering.number
        scope, second, value = event.get("scope"), event.get("id2"), event.get("id")
        if isinstance(second, dict):
            for key, kind in (("local", IdKind.LOCAL), ("global", IdKind.GLOBAL)):
                inner = second.get(key)
                if inner is not None:
                    return kind, number(compact_json(inner if scope is None else [scope, inner]))
        if value is None:
            return IdKind.NONE, 0
        if scope is not None:
            return IdKind.SCOPED, number(compact_json([scope, value]))
        if type(value) is int and -(1 << 63) <= value < 1 << 63:
            return IdKind.INTEGER, value
        return IdKind.TEXT, number(compact_json(value))

    def _samples(self, event: dict[str, Any], common: dict[str, Any]) -> None:
        """Write the samples of a counter event: one per finite number among its arguments, text or not."""
        for key, value in arguments_of(event).items():
            if isinstance(value, str) and len(value) <= MAX_NUMBER_LENGTH:
                value = float(value) if _DECIMAL.fullmatch(value.strip(_BLANKS)) else None
            number = finite(value)
            if number is not None:
                self._append("counters", common | {"series": self._numbering.number(key), "value": number})

    def _write_promoted(self, event: dict[str, Any]) -> None:
        promoted = self._promoted
        arguments = arguments_of(event)
        owner = -1
        for slot in sorted(promoted.slots[key] for key in arguments.keys() & promoted.slots.keys()):
            if promoted.owners[slot] != owner:  # else another key of the same column comes first
                owner = promoted.owners[slot]
                self._promote(owner, arguments[promoted.keys[slot]])
        if promoted.cname is not None:
            self._promote(promoted.cname, event.get("cname"))

    def _promote(self, number: int, value: Any) -> None:
        column: Promoted = self._promoted.columns[number]
        if value is None:
            return
        stored: Any
        if column.kind is Kind.TEXT:
            stored = self._text(value)
        else:
            stored = integer(value) if column.kind is Kind.INTEGER else finite(value)
        if stored is not None:
            columns = self._columns
            at = int(columns.promoted_count[number])
            columns.promoted_ordinals[number][at] = columns.ordinal
            columns.promoted_values[number][at] = stored
            columns.promoted_count[number] += 1


def time_of(value: object, digits: int = US_DIGITS) -> int | None:
    """Return the ns that a `ts` or `dur` means: a number or the text of one, which counts 10^digits ns; else
    None.
    """
    if isinstance(value, Real):
        return ns_from_text(value.text, digits)
    if isinstance(value, int) and not isinstance(value, bool):
        return value * 10**digits if abs(value) < _MAX_INTEGER else None
    if isinstance(value, str | float | Decimal):
        return ns_from_text(str(value), digits)
    return None


def integer(value: object) -> int | None:
    """Return an integer of 64 bits, or the one that a string of digits means."""
    if isinstance(value, str) and _DIGITS.fullmatch(value.strip(_BLANKS)):
        value = whole_number(value)
    return value if type(value) is int and -(1 << 63) <= value < 1 << 63 else None


def finite(value: object) -> float | None:
    """Return a number as a float, if it is one and finite."""
    if type(value) is not int and not isinstance(value, float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def arguments_of(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event's arguments: `args`, or its synonym `attr`."""
    for key in ("args", "attr"):
        arguments = event.get(key)
        if isinstance(arguments, dict):
            return arguments
    return {}


def metadata_of(event: dict[str, Any], ordinal: int) -> Metadata:
    """Return what counts of an M event."""
    name = event.get("name")
    return Metadata(
        ordinal,
        name if isinstance(name, str) else "" if name is None else compact_json(name),
        compact_json(event.get("pid")),
        compact_json(event.get("tid")),
        compact_json(arguments_of(event)),
    )


def compact_json(value: object) -> str:
    """Return the compact JSON text of a decoded value."""
    if type(value) is int:
        return str(value)
    try:
        return orjson.dumps(value, default=_plain).decode()
    except (orjson.JSONEncodeError, RecursionError) as error:
        if "64-bit" not in str(error):
            return TOO_DEEP
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)
    except (RecursionError, ValueError):
        return TOO_DEEP


def _plain(value: object) -> object:
    if isinstance(value, Real | Decimal):
        return float(value)
    raise ValueError(f"no JSON value: {type(value).__name__}")


_NUMBER = re.compile(r"([+-]?)(\d+)?(?:\.(\d*))?(?:[eE]([+-]?\d{1,6}))?", re.ASCII)


def ns_from_text(text: str, digits: int = US_DIGITS) -> int | None:
    """Return a decimal text that counts 10^digits ns in ns, rounded half to even; None where it is no finite
    number.
    """
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        return None
    sign, whole, fraction, exponent = match.groups()
    written = (whole or "") + (fraction or "")
    if not written:
        return None
    significant = written.lstrip("0")
    if not significant:
        return 0
    # All digits are one integer, 12345.6785 is 123456785 and shift -4 + 3: a tenth of it in ns is 12345678.5,
    # a tie, and 8 is even. A float holds 15 digits in any case, and times since 1970 in ns have 19.
    shift = whole_number(exponent or "0") - len(fraction or "") + digits
    if shift + len(significant) > MAX_EXPONENT + digits:
        return None
    value: int
    if shift >= 0:
        value = _int(significant) * 10**shift
    elif -shift > len(significant):
        value = 0
    else:
        value, rest = divmod(_int(significant), scale := 10**-shift)
        if 2 * rest > scale or (2 * rest == scale and value & 1):
            value += 1
    return -value if sign == "-" else value


def _int(digits: str) -> int:
    """Return the integer of any number of digits (int() refuses more than 4,300)."""
    value = 0
    for start in range(0, len(digits), 4000):
        piece = digits[start : start + 4000]
        value = value * 10 ** len(piece) + whole_number(piece)
    return value
