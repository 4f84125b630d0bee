"""Reading on where text is damaged: what is whole is never lost, what is not is reported.

A damaged element ends before the next event: an object with the keys of one, at whatever depth the damage
makes it stand. Up to there it is read by the tolerant parser, without and then with forgiveness for stray
quotes. What still cannot be read is passed over. Events are looked for in one pass that keeps the innermost
brackets that are open, so that all takes time in proportion to the text.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from .json_text import AFTER_ONE, BEGIN, TOKEN, Read, next_event
from .scan_reference import RefusedError, decode_strictly
from .tolerant import BrokenError, Habits, Tolerant

WINDOWS = (64 << 10, 1 << 20, 16 << 20)
"""So much text is looked at for one element: more only where it ends within it."""
FIRST_SEARCH, SEARCH = 64 << 10, 1 << 20
"""So much text is looked at for the next event at first, and then at a time."""
MAX_TAIL_LENGTH = 64 << 10
"""An event that the text's end seems to cut off is tried for stray quotes if no more than this is left."""
LEARN_FROM = 64
"""So many intact events teach the writer's habits."""

_GAP = re.compile(rb"[\s,]*+")
_NEXT = re.compile(rb'\}(?=\s*+,?\s*+\{\s*+")')
_CLOSE = re.compile(rb'\]\s*+(?:,\s*+"[^"\\]{1,100}"\s*+:|\}|\Z|[\[{])')
_OPENERS = re.compile(rb"(?:\[\s*+)++")
_CLOSE_BEHIND = re.compile(rb'[}"]\s*+(\])\s*+(?:,\s*+"[^"\\]{1,100}"\s*+:|\}\s*+(?:[\[{]|\Z)|\Z)')
_CONTROL = re.compile(rb"[\x00-\x1f]")
CUT_OFF = "an event is cut off by the end of the text"
NO_NUMBER = "NaN or Infinity, which JSON does not know"
WRITTEN_SO = frozenset({"", NO_NUMBER})
"""What is wrong with events that their writer wrote so, whatever happened to the file."""


class RepairedEvent(NamedTuple):
    """An element that could be read; `why` is empty where its own text is sound."""

    value: Any
    offset: int
    length: int
    why: str = ""


class Unreadable(NamedTuple):
    """ScanText from which no element could be made out."""

    offset: int
    length: int
    why: str
    cut_off: bool = False


Mended: TypeAlias = tuple[RepairedEvent | Unreadable, int]
"""What came of a damaged place, and where reading goes on: at an event, a bracket, the text's end."""


def closes_array(data: bytes) -> bool:
    """Tell whether the bracket that a text begins with closes the event array: no event follows it."""
    behind = data.lstrip(b"] \t\r\n}")
    return not (behind[:1] == b"," and BEGIN.match(behind.lstrip(b", \t\r\n]}")))


def learn_habits(data: bytes) -> Habits:
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
        self._read = read
        self._habits = habits
        self._none_from: dict[bytes, int] = {}  # by `behind`: from where on no event was found

    def mend(self, offset: int) -> Mended:
        """Read the element that begins at an offset, which is not sound, or pass over it."""
        broken = BrokenError(0, "text that belongs to no event")
        for size in WINDOWS:
            data = self._read(offset, size)
            openers = _OPENERS.match(data)
            if openers is not None and next_event(data[openers.end() :], 0) == 0:
                why = "brackets opened before an event"
                return Unreadable(offset, len(openers.group().rstrip()), why), offset + openers.end()
            following = next_event(data, 1, AFTER_ONE)
            ends = following is not None or len(data) < size
            try:
                value, end, why = self._element(data[:following], offset, ends)
            except BrokenError as error:
                broken = error
                if following is not None and error.cut_off:
                    broken = BrokenError(error.at, "the next event begins within it")
                if ends or not error.cut_off:
                    break
                continue
            return RepairedEvent(value, offset, end, why), offset + end
        return self._passed_over(offset, broken)

    def swallowed(self, offset: int, size: int) -> bool:
        """Tell whether an event that does not end within so much text holds others: its end is damaged."""
        return self._next_event(offset + 1, AFTER_ONE, offset + size) is not None

    def _element(self, data: bytes, offset: int, ends: bool) -> tuple[Any, int, str]:
        """Return the element that a text begins with, its end, and what was wrong with it. `ends`: it cannot
        go on behind the text.
        """
        parser = Tolerant(data, partial(self._habits, offset))
        is_object = data[:1] == b"{"
        try:
            value, end = parser.parse(0, quotes=False)
        except BrokenError as broken:
            if not is_object or (broken.cut_off and (not ends or len(data) > MAX_TAIL_LENGTH)):
                raise
            return self._forgiven(parser, broken)
        if not is_object and data[:1] != b"[" and data[end:].lstrip()[:1] not in (b"", b",", b"]"):
            raise BrokenError(0, "text that belongs to no event")
        text = data[:end]
        try:
            return decode_strictly(text), end, ""
        except RefusedError:
            return value, end, _fault(text)

    def _forgiven(self, parser: Tolerant, broken: BrokenError) -> tuple[Any, int, str]:
        """Return what `_element` does of an event that is `broken` without forgiveness for stray text and
        quotes, with as little of it as does.
        """
        for quotes, stray in ((False, True), (True, False), (True, True)):
            try:
                value, end = parser.parse(0, quotes=quotes, stray=stray)
            except BrokenError:
                continue
            why = "unescaped quotes or stray text in an event"
            return value, end, why if quotes else min(parser.forgiven, default=why)
        raise broken

    def _next_event(self, offset: int, behind: bytes = b"", limit: int | None = None) -> int | None:
        """Return the offset at which the next event begins, before `limit`; see `next_event`."""
        if offset >= self._none_from.get(behind, offset + 1):
            return None
        at, size = offset, FIRST_SEARCH
        while limit is None or at < limit:
            data = self._read(at, size)
            begin = next_event(data, 0, behind)
            if begin is not None:
                return at + begin if limit is None or at + begin < limit else None
            if len(data) < size:
                self._none_from[behind] = offset
                return None
            at += 0 if size < SEARCH else SEARCH // 2  # the keys of an event may stand in both halves
            size = SEARCH
        return None

    def _passed_over(self, offset: int, broken: BrokenError) -> Mended:
        """Return what is said of text that cannot be read, and where to go on."""
        resume = self._next_event(offset + 1, AFTER_ONE if broken.cut_off else b"")
        cut_off = False
        if resume is None:
            resume, cut_off = self._closing(offset) if not broken.cut_off else (None, True)
            resume = self._end(offset) if resume is None else resume
        length = self._length(offset, resume)
        why = CUT_OFF if cut_off else broken.why if not broken.cut_off else "an event without its end"
        return Unreadable(offset, length, why, cut_off), resume

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
        tail = self._read(max(offset, end - 4096), min(end - offset, 4096))
        return end - offset - (len(tail) - len(tail.rstrip(b" \t\r\n,")))


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
            item, end = mending.mend(at)
        items.append(item)
        at = end


def _fault(text: bytes) -> str:
    """Say what a decoder had against a text that the tolerant parser takes."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return "bytes that are no UTF-8"
    if any(_CONTROL.search(token.group()) for token in TOKEN.finditer(text)):
        return "raw control characters in a string"
    if re.search(rb"\b(?:NaN|nan|NAN|[Ii]nf(?:inity)?|INF)\b", text):
        return NO_NUMBER
    if re.search(rb'\\(?!["\\/bfnrtu])', text):
        return "escapes that JSON does not know"
    if re.search(rb",\s*[,}\]]", text):
        return "stray commas"
    return "text that is not quite JSON"
