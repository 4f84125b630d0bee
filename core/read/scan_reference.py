"""The plain twin of scan.c: JSON by Python's own decoder, columns by `EventWriter`.

It is the oracle for the tests of the native scanner, reads where there is none, and takes from it the events
that are sound but unusual (see TL_UNUSUAL). Both accept the same texts and make the same batches of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NoReturn

from ..base.errors import Cancelled
from .batch import Batch, ColumnBuffers, Numbering, StringTable
from .event_writer import EventWriter, Real
from .json_text import AFTER_ONE, next_event
from .scanner import Reason, ScanStop, ScanText, ScanWatch
from .tolerant import BrokenError, Habits, Tolerant

WINDOW = 256 << 10
"""ScanText that is decoded at a time; more where an event is longer."""
MOST_DIGITS = 4300
"""Longer numbers are refused, as Python refuses them."""
_GAP = re.compile(r"[ \t\n\r,]*")
_BEHIND = re.compile(r"[ \t\n\r]*([^ \t\n\r])?")
_LISTED_EVENT = re.compile(
    r'(?:\[[ \t\n\r]*+)++(\{[ \t\n\r]*+"'
    r'(?:ph|name|cat|pid|tid|ts|dur|id|id2|scope|bp|s|cname|args|attr)"[ \t\n\r]*+:)?+'
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
    if len(text) > MOST_DIGITS:
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
        raise RefusedError(Reason.BAD_UTF8, error.start) from None
    element, end = read_element(text, 0, True, True)
    if end != len(text):
        raise RefusedError(Reason.NO_COMMA, end)
    return element


class RefusedError(ValueError):
    """A text that is not accepted: where and why."""

    def __init__(self, reason: Reason, at: int) -> None:
        super().__init__(reason.value)
        self.reason = reason
        self.at = at


class ReferenceScanner:
    """Reads elements into columns; see `Scanner`."""

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

        def width(begin: int, end: int) -> int:
            return end - begin if is_ascii else len(text[begin:end].encode("utf-8", "surrogateescape"))

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
                return ScanStop(Reason.NO_VALUE, base + at, base + begin, base + begin, irregular)
            if text[character] == "]":
                return ScanStop(Reason.CLOSED, base + at, base + begin, base + begin, irregular)
            try:
                element, end = read_element(text, character, is_last, is_utf8)
            except RefusedError as refused:
                byte = begin + width(character, refused.at)
                return ScanStop(refused.reason, base + at, base + begin, base + byte, irregular)
            stop = begin + width(character, end)
            if stop - begin > longest:
                return ScanStop(Reason.LONG, base + at, base + begin, base + stop, irregular)
            self.writer.write(element, offset + base + begin, offset + base + stop, irregular=irregular)
            done, at = end, stop


def read_element(text: str, character: int, is_last: bool, is_utf8: bool) -> tuple[Any, int]:
    """Return the element that begins at a character, and where it ends; RefusedError where none does."""
    try:
        element, end = scan_once(text, character)
    except RecursionError:
        element, end = _deep(text, character, is_last)
    except StopIteration as stop:
        raise _refused(text, stop.value, is_last) from None
    except json.JSONDecodeError as error:
        unterminated = error.msg.startswith("Unterminated")
        raise _refused(text, len(text) if unterminated else error.pos, is_last) from None
    except ValueError:
        raise RefusedError(Reason.BAD_NUMBER, character) from None
    if not isinstance(element, dict):
        match = _BEHIND.match(text, end)
        following = match.group(1) if match else None
        if following is None and not is_last:
            raise RefusedError(Reason.TEXT, end)  # a number may go on
        if following not in (None, ",", "]"):
            raise RefusedError(Reason.NO_COMMA, end)
    if not is_utf8 and _NO_UTF8.search(text, character, end):
        raise RefusedError(Reason.BAD_UTF8, character)
    has_escape = text.find("\\u", character, end) >= 0
    if has_escape and any(match.group(1) for match in _SURROGATES.finditer(text, character, end)):
        raise RefusedError(Reason.SURROGATE, character)
    return element, end


def _refused(text: str, at: int, is_last: bool) -> RefusedError:
    if at > len(text) - _CUT_OFF and not is_last:
        return RefusedError(Reason.TEXT, at)
    return RefusedError(Reason.NOT_JSON if at < len(text) else Reason.TEXT_ENDS, at)


def _deep(text: str, character: int, is_last: bool) -> tuple[Any, int]:
    """Return an element that is nested too deep for a decoder with recursion, a note in place of what is
    deepest; one that holds a list of events lacks its end.
    """
    data = text[character:].encode("utf-8", "surrogateescape")
    if next_event(data, 1, AFTER_ONE) is not None:
        raise RefusedError(Reason.NOT_JSON, character)
    try:
        element, end = Tolerant(data, Habits()).parse(0, quotes=False)
    except BrokenError as broken:
        if broken.cut_off:
            raise RefusedError(Reason.TEXT_ENDS if is_last else Reason.TEXT, len(text)) from None
        raise RefusedError(Reason.NOT_JSON, character) from None
    return element, character + len(data[:end].decode("utf-8", "surrogateescape"))
