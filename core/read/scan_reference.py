"""How scanners are called, where and why they stop; and the plain twin of scan.c: JSON by Python's own
decoder, columns by `EventWriter`.

It is the oracle for the tests of the native scanner, reads where there is none, and takes from it the events
that are sound but unusual (see TL_UNUSUAL). Both accept the same texts and make the same batches of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from ..base.arrays import I64, U8
from ..base.errors import Cancelled
from .batch import Batch, ColumnBuffers, Numbering, StringTable
from .event_writer import EventWriter, Real
from .json_text import AFTER_ONE, next_event
from .tolerant import BrokenError, Tolerant

PAD = 96
"""So many zero bytes stand behind a text: every read ahead of scan.c ends in them."""


class Reason(Enum):
    """Why a scan stopped."""

    LIMIT = "read to the limit, or to the end of the text"
    TEXT = "the text ends within an element, and goes on elsewhere"
    CLOSED = "the bracket that closes the array"
    LONG = "a very long event"
    REFUSED = "an element that is not sound JSON"


class ScanStop(NamedTuple):
    """Where a scan stopped: places are indices in the text it was given."""

    reason: Reason
    at: int  # behind the last element that was read; with LIMIT, where the next one begins
    begin: int = 0  # where the element or bracket begins that is not read


@dataclass(eq=False)
class ScanText:
    """Some text of a source: `data` holds `size` bytes of it, and PAD zero bytes behind them."""

    data: U8
    offset: int  # in the source, of data[0]
    size: int
    is_last: bool  # the source ends with it

    @classmethod
    def of(cls, text: bytes, offset: int = 0, *, is_last: bool = True) -> ScanText:
        data = np.zeros(len(text) + PAD, np.uint8)
        data[: len(text)] = np.frombuffer(text, np.uint8)
        return cls(data, offset, len(text), is_last)

    def bytes(self, begin: int, end: int) -> bytes:
        return self.data[begin : min(end, self.size)].tobytes()


@dataclass(eq=False)
class ScanWatch:
    """How far a scan has come, and whether it is wanted any more; any thread may look and set."""

    progress: I64 = field(default_factory=lambda: np.zeros(1, np.int64))
    cancel: U8 = field(default_factory=lambda: np.zeros(1, np.uint8))


WINDOW = 256 << 10
"""ScanText that is decoded at a time; more where an event is longer."""
MAX_DIGITS = 4300
"""Longer numbers are refused, as Python refuses them."""
_GAP = re.compile(r"[ \t\n\r,]*")
_BEHIND = re.compile(r"[ \t\n\r]*([^ \t\n\r])?")
_LISTED_EVENT = re.compile(
    r'(?:\[[ \t\n\r]*+)++(\{[ \t\n\r]*+"'
    r'(?:ph|name|cat|pid|tid|ts|dur|id|id2|scope|bp|s|cname|bind_id|args|attr)"[ \t\n\r]*+:)?+'
)
"""A list; where its group is not empty it begins with what may be an event, and its bracket is damage."""
_NO_UTF8 = re.compile("[\udc80-\udcff]")
_SURROGATES = re.compile(
    r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
"""Escaped backslashes, pairs, and (in the group) halves of pairs."""
_CUT_OFF = 16
"""A fault so close to the end of the text may only be that it ends."""


def _real(text: str) -> Real:
    if len(text) > MAX_DIGITS:
        raise ValueError("a number of too many digits")
    return Real(text)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


_decoder: Any = json.JSONDecoder(parse_float=_real, parse_constant=_no_constant)
scan_once: Callable[[str, int], tuple[Any, int]] = _decoder.scan_once
"""Reads one value at a character of a text; raises StopIteration, ValueError or RecursionError."""


def decode_element(text: str) -> Any:
    """Return one element that is known to be JSON, its real numbers with their texts."""
    return scan_once(text, 0)[0]


def decode_strictly(data: bytes) -> Any:
    """Return the one element that some text is; RefusedError where it is none, or not sound."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise RefusedError from error
    element, end = read_element(text, 0, True, True)
    if end != len(text):
        raise RefusedError
    return element


class RefusedError(ValueError):
    """A text that is not accepted; `goes_on`: it may be sound where more of it is read."""

    def __init__(self, *, goes_on: bool = False) -> None:
        super().__init__()
        self.goes_on = goes_on


class ReferenceScanner:
    """Reads the elements of an event array into the columns of one batch after the other."""

    def __init__(self, columns: ColumnBuffers, numbering: Numbering, watch: ScanWatch) -> None:
        """Take columns and numbering, which a native scanner may share."""
        self.columns = columns
        self.writer = EventWriter(columns, numbering)
        self._numbering = numbering
        self._watch = watch

    def begin(self) -> None:
        self.columns.begin()
        self._numbering.begin()

    def finish(self, number: int, thread: int) -> Batch:
        return self.columns.finish(number, thread, self._numbering.uses())

    def table(self) -> StringTable:
        return self._numbering.table()

    def scan(self, text: ScanText, at: int, limit: int, longest: int) -> ScanStop:
        """Read elements from `at`, between two of them, up to the first that begins at or after `limit`.
        Events of more than `longest` bytes are left to the caller. Raises Cancelled.
        """
        size = WINDOW
        while True:
            if self._watch.cancel[0]:
                raise Cancelled
            end = min(at + size, text.size)
            is_last = end == text.size and text.is_last
            stop = self._scan_window(text.bytes(at, end), text.offset, at, limit, longest, is_last)
            self._watch.progress[0] += stop.at - at
            if stop.reason is not Reason.TEXT or end == text.size:
                return stop
            size = WINDOW if stop.at > at else 2 * size
            at = stop.at

    def _scan_window(
        self, data: bytes, offset: int, base: int, limit: int, longest: int, is_last: bool
    ) -> ScanStop:
        """Read the elements of some bytes, which stand at `base` in a text that begins at `offset`."""
        try:
            text, is_utf8 = data.decode(), True
        except UnicodeDecodeError:
            text, is_utf8 = data.decode("utf-8", "surrogateescape"), False
        is_ascii = text.isascii()
        done = at = 0  # how far elements have been read, in characters; and where that is in the bytes

        while True:
            match = _GAP.match(text, done)
            character = match.end() if match else done
            irregular = text.count(",", done, character) != 1
            begin = at + character - done
            ended = character == len(text)
            if base + begin >= limit and (not ended or is_last):
                return ScanStop(Reason.LIMIT, base + begin)
            if ended:
                return ScanStop(Reason.LIMIT, base + begin) if is_last else ScanStop(Reason.TEXT, base + at)
            listed = _LISTED_EVENT.match(text, character) if text[character] == "[" else None
            if listed is not None and listed.group(1):
                return ScanStop(Reason.REFUSED, base + at, base + begin)
            if text[character] == "]":
                return ScanStop(Reason.CLOSED, base + at, base + begin)
            try:
                element, end = read_element(text, character, is_last, is_utf8)
            except RefusedError as refused:
                reason = Reason.TEXT if refused.goes_on else Reason.REFUSED
                return ScanStop(reason, base + at, base + begin)
            stop = begin + (
                end - character if is_ascii else len(text[character:end].encode("utf-8", "surrogateescape"))
            )
            if stop - begin > longest:
                return ScanStop(Reason.LONG, base + at, base + begin)
            self.writer.write(element, offset + base + begin, offset + base + stop, irregular=irregular)
            done, at = end, stop


NewScanner: TypeAlias = Callable[[ScanWatch], ReferenceScanner]


def read_element(text: str, character: int, is_last: bool, is_utf8: bool) -> tuple[Any, int]:
    """Return the element that begins at a character, and where it ends; RefusedError where none does."""
    try:
        element, end = scan_once(text, character)
    except RecursionError:
        element, end = _deep(text, character, is_last)
    except (StopIteration, json.JSONDecodeError) as error:
        fault = error.value if isinstance(error, StopIteration) else error.pos
        is_near_end = fault > len(text) - _CUT_OFF or str(error).startswith("Unterminated")
        raise RefusedError(goes_on=is_near_end and not is_last) from None
    except ValueError:
        raise RefusedError from None
    if not isinstance(element, dict):
        match = _BEHIND.match(text, end)
        following = match.group(1) if match else None
        if following is None and not is_last:
            raise RefusedError(goes_on=True)  # a number may
        if following not in (None, ",", "]"):
            raise RefusedError
    if not is_utf8 and _NO_UTF8.search(text, character, end):
        raise RefusedError
    has_escape = text.find("\\u", character, end) >= 0
    if has_escape and any(match.group(1) for match in _SURROGATES.finditer(text, character, end)):
        raise RefusedError
    return element, end


def _deep(text: str, character: int, is_last: bool) -> tuple[Any, int]:
    """Return an element that is nested too deep for a decoder with recursion, a note in place of what is
    deepest; one that holds a list of events lacks its end.
    """
    data = text[character:].encode("utf-8", "surrogateescape")
    if next_event(data, 1, AFTER_ONE) is not None:
        raise RefusedError
    try:
        element, end = Tolerant(data).parse(0, quotes=False)
    except BrokenError as broken:
        raise RefusedError(goes_on=broken.cut_off and not is_last) from None
    return element, character + len(data[:end].decode("utf-8", "surrogateescape"))
