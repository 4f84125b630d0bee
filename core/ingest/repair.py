"""Reading events out of text that no decoder takes: what is whole is never lost, what is not is reported.

Each element is first handed to the decoder as it stands up to the next separator, then read by the tolerant
parser, first without and then with forgiveness for stray quotes. What still cannot be read is passed over up
to the next text that reads as an event (an object with a `ph`). Time is linear: every attempt is paid from
one budget.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..base.json_text import STRING
from .decode import decode_fast
from .problem import Problem
from .tolerant import BrokenError, Habits, Tolerant

BUDGET = 4
"""So many times the text's length may be read in failing attempts before the rest is given up."""
SPARE = 64 * 1024
LEAST_COST = 100
LONGEST_TAIL = 64 * 1024
"""An event that the text's end seems to cut off is tried for stray quotes if no more than this is left."""
MOST_SEPARATORS = 16
LEARN_FROM = 64
"""So many intact events teach the writer's habits."""

_GAP = re.compile(rb"[\s,]*+")
_NEXT = re.compile(rb'\}(?=\s*+,?\s*+\{\s*+")')
_CANDIDATE = re.compile(rb'\{\s*+"[^"\\]{1,64}"\s*+:')
_AFTER_PLAIN = re.compile(rb"\s*+(?:[,\]]|\Z)")
_CLOSE = re.compile(rb'\]\s*+(?:,\s*+"[^"\\]{1,100}"\s*+:|\}|\Z|[\[{])')
_CLOSE_BEHIND = re.compile(rb'[}"]\s*+(\])\s*+(?:,\s*+"[^"\\]{1,100}"\s*+:|\}\s*+(?:[\[{]|\Z)|\Z)')
_CONTROL = re.compile(rb"[\x00-\x1f]")
_STRING = re.compile(STRING, re.S)


@dataclass(frozen=True)
class RepairedEvent:
    """An element that could be read; `why` is empty where its own text is sound."""

    value: Any
    offset: int
    length: int
    why: str = ""


@dataclass(frozen=True)
class Unreadable:
    """Text from which no element could be made out."""

    offset: int
    length: int
    why: str
    cut_off: bool = False


@dataclass
class Repairs:
    """What came of one text, in its order."""

    items: list[RepairedEvent | Unreadable] = field(default_factory=list)

    @property
    def events(self) -> list[RepairedEvent]:
        """The elements that could be read."""
        return [item for item in self.items if isinstance(item, RepairedEvent)]

    def problems(self) -> list[Problem]:
        """Return the damage by kind and reason: how often, and where first."""
        found: dict[tuple[str, str], list[int]] = {}
        for item in self.items:
            if isinstance(item, Unreadable):
                kind = "truncated" if item.cut_off else "unreadable"
            elif item.why:
                kind = "repaired"
            else:
                continue
            found.setdefault((kind, item.why), []).append(item.offset)
        return [Problem(kind, len(at), at[0], why) for (kind, why), at in found.items()]


def repair(data: bytes, offset: int = 0) -> list[RepairedEvent | Unreadable]:
    """Return what can be read of a text of array elements, in its order; offsets count from `offset`."""
    repairs, _, _ = repair_array(data, decode_fast, offset, at_end=True)
    return repairs.items


def repair_array(
    data: bytes, decode: Callable[[bytes], list[object]], offset: int, *, at_end: bool
) -> tuple[Repairs, int | None, int]:
    """Return what can be read, the place of the bracket that closes the array, and how much of data was used.

    Unless `at_end`, an element that the text's end cuts off is left for the next text.
    """
    return _Repair(data, decode, offset, at_end).run()


class _Repair:
    def __init__(
        self, data: bytes, decode: Callable[[bytes], list[object]], offset: int, at_end: bool
    ) -> None:
        self._data = data
        self._decode = decode
        self._offset = offset
        self._at_end = at_end
        self._habits = Habits()
        self._parser = Tolerant(data, self._habits)
        self._budget = BUDGET * len(data) + SPARE
        self._out = Repairs()
        self._following = -1
        self._tried = -1

    def run(self) -> tuple[Repairs, int | None, int]:
        data = self._data
        self._learn()
        at = 0
        while True:
            match = _GAP.match(data, at)
            at = match.end() if match else at
            if at >= len(data):
                return self._out, None, len(data)
            if data[at] == 0x5D and _CLOSE.match(data, at):
                return self._out, at, at
            try:
                value, end, why = self._element(at)
            except BrokenError as broken:
                if broken.cut_off and not self._at_end:
                    return self._out, None, at
                at = self._pass_over(at, broken)
                continue
            self._out.items.append(RepairedEvent(value, self._offset + at, end - at, why))
            at = end

    def _learn(self) -> None:
        """Look at the intact events first, as the first one may be the broken one."""
        data = self._data
        at = 0
        for _ in range(2 * LEARN_FROM):
            match = _NEXT.search(data, at)
            if match is None or self._habits.seen >= LEARN_FROM:
                return
            begin = data.index(b"{", match.end())
            following = _NEXT.search(data, begin)
            if following is None:
                return
            text = data[begin : following.end()]
            try:
                events = self._decode(text)
            except (ValueError, RecursionError):
                pass
            else:
                self._habits.learn(text, events[0])
            at = match.end()

    def _element(self, at: int) -> tuple[Any, int, str]:
        """Return the element at a place, its end, and what was wrong with it."""
        data = self._data
        if data[at] == 0x7B and (end := self._next_separator(at)) > 0 and end != self._tried:
            self._tried = end
            try:
                events = self._decode(data[at:end])
            except (ValueError, RecursionError):
                events = []
            if len(events) == 1:
                return events[0], end, ""
        try:
            value, end = self._parse(at, quotes=False)
        except BrokenError as broken:
            if data[at] != 0x7B or (broken.cut_off and len(data) - at > LONGEST_TAIL):
                raise
            try:
                value, end = self._parse(at, quotes=True)
            except BrokenError:
                raise broken from None
            if self._swallows(at, end):
                raise broken from None
            return value, end, "unescaped quotes or stray text in an event"
        text = data[at:end]
        try:
            events = self._decode(text)
        except (ValueError, RecursionError):
            return value, end, _fault(text)
        return events[0], end, ""

    def _swallows(self, at: int, end: int) -> bool:
        """Whether what was taken for one event holds another one that is sound by itself."""
        data = self._data
        for _ in range(MOST_SEPARATORS):
            match = _NEXT.search(data, at, end)
            if match is None:
                return False
            at = match.end()
            begin = data.index(b"{", at)
            following = _NEXT.search(data, begin)
            try:
                events = self._decode(data[begin : following.end() if following else end])
            except (ValueError, RecursionError):
                continue
            if isinstance(events[0], dict) and "ph" in events[0]:
                return True
        return False

    def _next_separator(self, at: int) -> int:
        """Return where the object before the next separator ends, or 0; searched once for any place."""
        if self._following and self._following <= at:
            match = _NEXT.search(self._data, at)
            self._following = match.end() if match else 0
        return self._following

    def _parse(self, at: int, *, quotes: bool) -> tuple[Any, int]:
        if self._budget <= 0:
            raise BrokenError(at, "text too broken to be read")
        try:
            value, end = self._parser.parse(at, quotes=quotes)
        except BrokenError as broken:
            self._budget -= max(LEAST_COST, broken.at - at)
            raise
        if self._data[at] not in b"{[" and not _AFTER_PLAIN.match(self._data, end):
            raise BrokenError(at, "text that belongs to no event")
        return value, end

    def _next_event(self, at: int) -> int | None:
        """Return where the next object with a `ph` begins."""
        while self._budget > 0:
            match = _CANDIDATE.search(self._data, at)
            if match is None:
                return None
            self._budget -= match.end() - at
            try:
                value, end, _ = self._element(match.start())
            except BrokenError:
                at = match.start() + 1
                continue
            if isinstance(value, dict) and "ph" in value:
                return match.start()
            at = end
        return None

    def _pass_over(self, at: int, broken: BrokenError) -> int:
        """Report text that cannot be read and return where to go on."""
        data = self._data
        end = None if broken.cut_off else self._next_event(at + 1)
        if end is None:
            closing = None if broken.cut_off else _CLOSE_BEHIND.search(data, at)
            end = closing.start(1) if closing else len(data)
        cut_off = broken.cut_off and end == len(data)
        length = len(data[at:end].rstrip(b" \t\r\n,"))
        why = "an event is cut off by the end of the text" if cut_off else broken.why
        self._out.items.append(Unreadable(self._offset + at, length, why, cut_off))
        return end


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
