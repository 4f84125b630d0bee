"""Reading on where text is damaged: what is whole is never lost, what is not is reported.

A damaged element is first read by the tolerant parser, without and then with forgiveness for stray quotes.
What still cannot be read is passed over up to the next place where an event begins: an object with a `ph`,
sound or to be repaired, at whatever depth the damage makes it stand. Each step is paid for by the distance
that it goes on, so that all takes time in proportion to the text.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..base.json_text import STRING
from .scan_reference import RefusedError, decode_strictly, scan_once
from .tolerant import BrokenError, Habits, Tolerant

WINDOWS = (64 << 10, 1 << 20, 16 << 20)
"""So much text is looked at for one element: more only where it ends within it."""
SEARCH = 1 << 20
"""So much text is looked at for the next event at a time."""
LONGEST_SOUND = SEARCH // 2
"""Events that reading goes on at are no longer than this."""
SPARE = 64 << 10
SHARE = 4
"""Attempts, strict and tolerant ones, may each read so many times the distance gone, and SPARE."""
LEAST_COST = 32
"""What an attempt costs at least."""
LONGEST_TAIL = 64 << 10
"""An event that the text's end seems to cut off is tried for stray quotes if no more than this is left."""
MOST_NESTED = 16
LEARN_FROM = 64
"""So many intact events teach the writer's habits."""

FIRST_LOOK = 2048
"""So much text is decoded at first, to see whether it is an event."""
CUT_WORD = 16
"""A fault so close to the end of some text may be only that it ends there."""
FAR = 64
"""So far back it is looked for what stands before an event."""
_AFTER_ONE = b",}"
"""What stands before an event that is not the first of a list. Events that an argument lists are no reason to
take the text around them for damaged where nothing but its end is missing.
"""
_GAP = re.compile(rb"[\s,]*+")
_NEXT = re.compile(rb'\}(?=\s*+,?\s*+\{\s*+")')
_BEGIN = re.compile(rb'\{\s*+"([^"\\]{1,64})"\s*+:')
_AFTER_PLAIN = re.compile(rb"\s*+(?:[,\]]|\Z)")
_CLOSE = re.compile(rb'\]\s*+(?:,\s*+"[^"\\]{1,100}"\s*+:|\}|\Z|[\[{])')
_STRAY = re.compile(rb'\][\s\]}]*+,[\s,\]}]*+\{\s*+"')
_CLOSE_BEHIND = re.compile(rb'[}"]\s*+(\])\s*+(?:,\s*+"[^"\\]{1,100}"\s*+:|\}\s*+(?:[\[{]|\Z)|\Z)')
_CONTROL = re.compile(rb"[\x00-\x1f]")
_STRING = re.compile(STRING, re.S)
CUT_OFF = "an event is cut off by the end of the text"

Read = Callable[[int, int], bytes]
"""Returns the text at an offset, so many bytes of it; fewer only at its end."""


@dataclass(frozen=True)
class RepairedEvent:
    """An element that could be read; `why` is empty where its own text is sound."""

    value: Any
    offset: int
    length: int
    why: str = ""


@dataclass(frozen=True)
class Unreadable:
    """ScanText from which no element could be made out."""

    offset: int
    length: int
    why: str
    cut_off: bool = False


@dataclass(frozen=True)
class Mended:
    """What came of a damaged place, and where reading goes on: at an event, a bracket, the text's end."""

    item: RepairedEvent | Unreadable
    resume: int


def closes_array(data: bytes) -> bool:
    """Tell whether the bracket that a text begins with closes the event array: no event follows it."""
    return _STRAY.match(data) is None


def learn_habits(data: bytes) -> Habits:
    """Return how the writer of some text puts its events, by those that are intact."""
    habits = Habits()
    at = 0
    for _ in range(2 * LEARN_FROM):
        match = _NEXT.search(data, at)
        if match is None or habits.seen >= LEARN_FROM:
            break
        begin = data.index(b"{", match.end())
        following = _NEXT.search(data, begin)
        if following is None:
            break
        text = data[begin : following.end()]
        with contextlib.suppress(RefusedError):
            habits.learn(text, decode_strictly(text))
        at = match.end()
    return habits


class Repair:
    """Mends single places of a text, which is read by offset; what comes of one depends on its text alone."""

    def __init__(self, read: Read, habits: Callable[[int], Habits]) -> None:
        """Take the text, and what says how its writer puts events near an offset."""
        self._read = read
        self._habits = habits

    def mend(self, offset: int) -> Mended:
        """Read the element that begins at an offset, which is not sound, or pass over it."""
        broken = BrokenError(0, "text that belongs to no event")
        data = b""
        for size in WINDOWS:
            data = self._read(offset, size)
            at_end = len(data) < size
            try:
                value, end, why = self._element(data, offset, at_end)
            except BrokenError as error:
                broken = error
                if at_end or not broken.cut_off or self._event_in(data, 1, offset, _AFTER_ONE) is not None:
                    break
                continue
            return Mended(RepairedEvent(value, offset, end, why), offset + end)
        return self._passed_over(offset, broken)

    def swallowed(self, offset: int, size: int) -> bool:
        """Tell whether an event that does not end within so much text holds others: its end is damaged."""
        return self._next_event(offset + 1, _AFTER_ONE, offset + size) is not None

    def _element(self, data: bytes, offset: int, at_end: bool) -> tuple[Any, int, str]:
        """Return the element that a text begins with, its end, and what was wrong with it."""
        begins = self._begins_event(data)
        parser = Tolerant(data, self._habits(offset), begins)
        is_object = data[:1] == b"{"
        try:
            value, end = parser.parse(0, quotes=False)
        except BrokenError as broken:
            if not is_object or (broken.cut_off and (not at_end or len(data) > LONGEST_TAIL)):
                raise
            try:
                value, end = parser.parse(0, quotes=True)
            except BrokenError:
                raise broken from None
            if self._swallows(data, end):
                raise broken from None
            return value, end, "unescaped quotes or stray text in an event"
        if not is_object and data[:1] != b"[" and not _AFTER_PLAIN.match(data, end):
            raise BrokenError(0, "text that belongs to no event")
        text = data[:end]
        try:
            return decode_strictly(text), end, ""
        except RefusedError:
            return value, end, _fault(text)

    def _swallows(self, data: bytes, end: int) -> bool:
        """Whether what was taken for one event holds another one that is sound by itself."""
        begins = self._begins_event(data)
        at = 0
        for _ in range(MOST_NESTED):
            match = _NEXT.search(data, at, end)
            if match is None:
                return False
            at = data.index(b"{", match.end())
            if begins(at):
                return True
        return False

    def _begins_event(self, data: bytes) -> Callable[[int], bool]:
        """Return what tells whether a sound event with a `ph` begins at a place of a text."""
        text = ""

        def begins(at: int) -> bool:
            nonlocal text
            text = text or data.decode("latin-1")  # a byte is a character, and JSON stays JSON
            return _sound_event(text, at)[0]

        return begins

    def _event_in(self, data: bytes, start: int, offset: int, behind: bytes = b"") -> int | None:
        """Return where in a text, from `start` on, the next event begins; ends are left to the next text.

        `behind`: only those that one of these letters stands before.
        """
        text = data.decode("latin-1")
        parser = Tolerant(data, self._habits(offset), lambda at: _sound_event(text, at)[0])
        strict = tolerant = 0  # what attempts of either kind have cost so far
        for match in _BEGIN.finditer(data, start):
            at = match.start()
            if at >= LONGEST_SOUND and len(data) == SEARCH:
                return None
            if behind and data[max(0, at - FAR) : at].rstrip()[-1:] not in behind:
                continue
            affordable = SPARE + SHARE * (at - start)
            if strict > affordable:
                continue
            is_event, is_json, cost = _sound_event(text, at)
            if is_event:
                return at
            strict += max(cost, LEAST_COST)
            if is_json or tolerant > affordable:
                continue
            try:
                value, end = parser.parse(at, quotes=False)
                if _is_event(value):
                    return at
            except BrokenError as broken:
                end = broken.at
            tolerant += max(end - at, LEAST_COST)
        return None

    def _next_event(self, offset: int, behind: bytes = b"", limit: int | None = None) -> int | None:
        """Return the offset at which the next event begins, before `limit`; see `_event_in`."""
        while limit is None or offset < limit:
            data = self._read(offset, SEARCH)
            at = self._event_in(data, 0, offset, behind)
            if at is not None:
                return offset + at if limit is None or offset + at < limit else None
            if len(data) < SEARCH:
                return None
            offset += LONGEST_SOUND
        return None

    def _passed_over(self, offset: int, broken: BrokenError) -> Mended:
        """Return what is said of text that cannot be read, and where to go on."""
        resume = self._next_event(offset + 1, _AFTER_ONE if broken.cut_off else b"")
        cut_off = False
        if resume is None:
            resume, cut_off = self._closing(offset) if not broken.cut_off else (None, True)
            resume = self._end(offset) if resume is None else resume
        length = self._length(offset, resume)
        why = CUT_OFF if cut_off else broken.why if not broken.cut_off else "an event without its end"
        return Mended(Unreadable(offset, length, why, cut_off), resume)

    def _closing(self, offset: int) -> tuple[int | None, bool]:
        """Return where the bracket stands that closes the array behind a damaged element."""
        while True:
            data = self._read(offset, SEARCH)
            match = _CLOSE_BEHIND.search(data)
            if match is not None and (match.end() < len(data) or len(data) < SEARCH):
                return offset + match.start(1), False
            if len(data) < SEARCH:
                return None, False
            offset += SEARCH // 2

    def _end(self, offset: int) -> int:
        while data := self._read(offset, SEARCH):
            offset += len(data)
        return offset

    def _length(self, offset: int, end: int) -> int:
        """Return the length of text without the blanks and commas that it ends with."""
        tail = self._read(max(offset, end - 4096), min(end - offset, 4096))
        return end - offset - (len(tail) - len(tail.rstrip(b" \t\r\n,")))


def _sound_event(text: str, at: int) -> tuple[bool, bool, int]:
    """Tell whether a sound event begins at a place, whether any sound value does, and how much was read to
    know it.
    """
    size = FIRST_LOOK
    while True:
        some = text[at : at + size]  # as a fault costs the decoder as much time as there is text before it
        try:
            value, end = scan_once(some, 0)
            return _is_event(value), True, end
        except RecursionError:
            return False, False, SPARE
        except StopIteration as stop:
            fault = stop.value
        except json.JSONDecodeError as error:
            fault = size if error.msg.startswith("Unterminated") else error.pos
        except ValueError:
            return False, False, size
        if fault < size - CUT_WORD or len(some) < size:
            return False, False, fault
        size *= 8


def _is_event(value: object) -> bool:
    """Tell whether an object is an event, and not one of an event's arguments that has a `ph` by chance."""
    return isinstance(value, dict) and "ph" in value and not value.keys().isdisjoint(("ts", "pid", "name"))


def repair(data: bytes) -> list[RepairedEvent | Unreadable]:
    """Return what can be read of a text of array elements, in its order; offsets count from its begin."""
    items: list[RepairedEvent | Unreadable] = []
    habits = learn_habits(data[: WINDOWS[1]])
    mending = Repair(lambda at, size: data[at : at + size], lambda at: habits)
    at = 0
    while True:
        match = _GAP.match(data, at)
        at = match.end() if match else at
        if at >= len(data) or (data[at] == 0x5D and _CLOSE.match(data, at)):
            return items
        following = _NEXT.search(data, at)
        end = following.end() if following else len(data)
        try:
            value = decode_strictly(data[at:end].rstrip(b" \t\r\n,"))
            item: RepairedEvent | Unreadable = RepairedEvent(value, at, end - at)
        except RefusedError:
            mended = mending.mend(at)
            item, end = mended.item, mended.resume
        items.append(item)
        at = end


def _fault(text: bytes) -> str:
    """Say what a decoder had against a text that the tolerant parser takes."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return "bytes that are no UTF-8"
    if any(_CONTROL.search(match.group()) for match in _STRING.finditer(text)):
        return "raw control characters in a string"
    if re.search(rb"\b(?:NaN|nan|NAN|[Ii]nf(?:inity)?|INF)\b", text):
        return "NaN or Infinity, which JSON does not know"
    if re.search(rb'\\(?!["\\/bfnrtu])', text):
        return "escapes that JSON does not know"
    if re.search(rb",\s*[,}\]]", text):
        return "stray commas"
    return "text that is not quite JSON"
