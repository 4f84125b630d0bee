"""A parser of single JSON values that forgives what profilers get wrong; own stack, no recursion.

Forgiven: NaN, Infinity and their kin, control characters, bad UTF-8, bad escapes, lone surrogates, doubled or
trailing commas. When asked (`stray`), a value that is none is kept as its text, up to the next key or
bracket, and a key may lack its opening quote. When asked (`quotes`), quotes in strings that nobody escaped:
then one ends a string only if what follows is what the writer puts behind a value: a key that it was seen to
write next, a well-known key of events, at last any key or closing bracket.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import Any

from ..base.numbers import whole_number
from .json_text import TOKEN, text_of
from .stray import BEHIND_ITEM, BEHIND_VALUE, DECIMAL_COMMA, STRAY_TEXT, decimal_comma, stray_end, time_meant

MAX_DEPTH = 512
"""Values nested deeper are passed over and replaced by a note."""
TOO_DEEP = "(nested too deep)"
EXACT_KEYS = frozenset({"ts", "dur"})
MAX_DIGITS = 4000
MAX_GAP_LENGTH = 256
"""More blanks and commas between two values are no habit."""

_BLANK = re.compile(rb"\s*+")
_GAP = re.compile(rb"[\s,]*+")
_WORD = re.compile(
    rb"-?(?:[Ii]nfinity|[Ii]nf|INF|[Nn]a[Nn]|NAN|true|false|null|True|False|None)(?![A-Za-z0-9_])"
)
_NUMBER = re.compile(rb"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?(?![A-Za-z0-9_.])")
_MEANING: dict[bytes, Any] = {b"true": True, b"false": False, b"null": None, b"none": None}

# A quote that may end a value: what must stand behind it.
_AFTER_ANY = rb'\s*+(?:,\s*+"[^"\\\n]{1,80}"\s*+:|[,\s]*+[}\]]\s*+(?:[,}\]]|\{\s*+"|\Z))'
_KNOWN = (
    rb"ph|name|cat|pid|tid|ts|dur|args|id|id2|bp|s|tts|tdur|cname|sf|esf|stack|scope|attr|bind_id|flow_in"
    rb"|flow_out"
)
_AFTER_LAST = rb'[,\s]*+\}\s*+(?:[,\]]|\{\s*+"|\Z)'
_AFTER_KNOWN = rb'\s*+(?:,\s*+"(?:' + _KNOWN + rb')"\s*+:|' + _AFTER_LAST + rb")"
_AFTER_ITEM = rb'\s*+(?:,\s*+(?:"|[-\d\[{tfn])|[,\s]*+\]\s*+(?:[,}\]]|\Z))'
_END_ANY = re.compile(rb'"(?=' + _AFTER_ANY + rb")")
_END_KNOWN = re.compile(rb'"(?=' + _AFTER_KNOWN + rb")")
_END_ITEM = re.compile(rb'"(?=' + _AFTER_ITEM + rb")")
_NO_KEY = re.compile(rb"[{}\[\]\n]")
_END_KEY = re.compile(rb'"(?=\s*+:)')
_BOUNDARY = re.compile(rb'\}\s*+,?\s*+\{\s*+"')
"""Between two events, or two objects of a list: a broken string ends before it."""
MAX_BROKEN_KEY_LENGTH = 256
_KEY_WITHOUT_QUOTE = re.compile(rb'([A-Za-z_][^"\\{}\[\],:\n]{0,80})"(?=\s*+:)')
QUOTE_MISSING = "a key without its opening quote"


class BrokenError(ValueError):
    """No value can be made out; says where and why."""

    def __init__(self, at: int, why: str, *, cut_off: bool = False) -> None:
        super().__init__(why)
        self.at = at
        self.why = why
        self.cut_off = cut_off


@dataclass
class Habits:
    """What the writer was seen to put behind the value of each key of an event: the next key, as written."""

    followers: dict[str, set[bytes]] = field(default_factory=dict)
    seen: int = 0
    _gaps: set[bytes] = field(default_factory=set)
    _patterns: dict[str, re.Pattern[bytes]] = field(default_factory=dict)

    def learn(self, text: bytes, event: object) -> None:
        if not isinstance(event, dict) or len(event) > 32:
            return
        self.seen += 1
        keys = [key for key in event if isinstance(key, str)]
        end = 0
        for key, following in pairwise(keys):
            match = re.compile(rb'"' + re.escape(following.encode()) + rb'"\s*+:').search(text, end)
            if match is None:
                return
            before = text[max(end, match.start() - MAX_GAP_LENGTH) : match.start()]
            gap = before[len(before.rstrip().removesuffix(b",").rstrip()) :]
            end = match.end()
            if b"," in gap:
                self.followers.setdefault(key, set()).add(gap + match.group())
                self._gaps.add(gap)
                self._patterns.clear()

    def end_of(self, key: str) -> re.Pattern[bytes]:
        """Return what a quote that ends this key's value looks like in the writer's hand. Behind it stands
        what was seen behind this key, or a well-known key set apart as keys were seen to be.
        """
        if not self._gaps:
            return _END_KNOWN
        pattern = self._patterns.get(key)
        if pattern is None:
            after = [re.escape(text) for text in sorted(self.followers.get(key, ()))]
            after += [re.escape(text) + rb'"(?:' + _KNOWN + rb')"\s*+:' for text in sorted(self._gaps)]
            after.append(_AFTER_LAST)
            pattern = self._patterns[key] = re.compile(b'"(?=' + b"|".join(after) + b")")
        return pattern


@dataclass
class _Open:
    """A container being read."""

    begin: int
    value: dict[str, Any] | list[Any]
    is_object: bool
    key: str = ""


class _Stray(str):
    """The text of a time that is no number."""

    __slots__ = ()


class Tolerant:
    """Parses values from one text; `quotes` and `stray` say whether that is forgiven. The writer's habits are
    asked for where quotes are: to learn them takes longer than to read an event.
    """

    def __init__(self, data: bytes, habits: Callable[[], Habits] = Habits) -> None:
        self._data = data
        self._habits = habits
        self._ends: dict[re.Pattern[bytes], tuple[int, int]] = {}
        self._stray = False
        self._stack: list[_Open] = []
        self.forgiven: set[str] = set()
        """What stray text the last call of `parse` forgave, in words."""

    @property
    def begins(self) -> list[int]:
        """Where the objects and lists begin that were open where the last call of `parse` broke."""
        return [one.begin for one in self._stack]

    def parse(self, start: int, *, quotes: bool, stray: bool = False) -> tuple[Any, int]:
        """Return the value that begins at `start` and where it ends; BrokenError if there is none."""
        self._stray = stray
        self.forgiven = set()
        value, end = self._parse(start, quotes)
        if stray and isinstance(value, dict):
            self._settle_times(value)
        return value, end

    def _settle_times(self, event: dict[str, Any]) -> None:
        """Put numbers for the stray texts of times that can mean one thing only."""
        for key in EXACT_KEYS & event.keys():
            if isinstance(event[key], _Stray):
                event[key] = time_meant(event[key], has_decimal_commas=DECIMAL_COMMA in self.forgiven)

    def _parse(self, start: int, quotes: bool) -> tuple[Any, int]:
        data = self._data
        size = len(data)
        stack = self._stack = []
        at = start
        while True:
            # Here a value begins, or a key, or a container ends.
            match = (_GAP if stack else _BLANK).match(data, at)
            at = match.end() if match else at
            if at >= size:
                raise BrokenError(size, "the text ends within it", cut_off=True)
            byte = data[at]
            top = stack[-1] if stack else None
            value: Any
            if byte in b"}]" and top is not None:
                if (byte == 0x7D) != top.is_object:
                    raise BrokenError(at, "a bracket of the wrong kind")
                value = top.value
                stack.pop()
                at += 1
                if not stack:
                    return value, at
                top = stack[-1]
            else:
                if top is not None and top.is_object:
                    top.key, at = self._key(at, top, quotes)
                    if at >= size:
                        raise BrokenError(size, "the text ends within it", cut_off=True)
                    byte = data[at]
                if byte in b"{[" and len(stack) < MAX_DEPTH:
                    stack.append(_Open(at, {} if byte == 0x7B else [], byte == 0x7B))
                    at += 1
                    continue
                if byte in b"{[":
                    value, at = TOO_DEEP, self._behind_container(at)
                else:
                    value, at = self._plain(at, byte, stack, quotes)
                if top is None:
                    return value, at
            if isinstance(top.value, dict):
                top.value[top.key] = value
            else:
                top.value.append(value)
            at = self._after_blanks(at)
            if at < size and data[at] not in b",}]":
                raise BrokenError(at, "something between a value and the next comma")

    def _behind_container(self, at: int) -> int:
        """Return the place behind an object or list, of which only the number of brackets is looked at."""
        depth = 0
        for token in TOKEN.finditer(self._data, at):
            byte = self._data[token.start()]
            depth += (byte in b"{[") - (byte in b"}]")
            if depth == 0:
                return token.end()
        raise BrokenError(len(self._data), "the text ends within it", cut_off=True)

    def _key(self, at: int, top: _Open, quotes: bool) -> tuple[str, int]:
        """Return the key at a place, and where its value begins. Stray text behind a value has none."""
        data = self._data
        if data[at] != 0x22:
            match = _KEY_WITHOUT_QUOTE.match(data, at) if self._stray else None
            colon = self._after_colon(match.end()) if match else None
            if match is not None and colon is not None:
                self.forgiven.add(QUOTE_MISSING)
                return text_of(match.group(1)), colon
            if self._stray and top.value and data[at] not in b"{[":
                return "", at
            raise BrokenError(at, "no key where one is expected")
        end = self._closing_quote(at)
        raw, colon = data[at + 1 : end - 1], self._after_colon(end)
        if colon is None and quotes:
            limit = min(len(data), at + MAX_BROKEN_KEY_LENGTH)
            closing = _END_KEY.search(data, end, limit)
            if closing is not None and not _NO_KEY.search(data, at, closing.start()):
                raw, end = data[at + 1 : closing.start()], closing.end()
                colon = self._after_colon(end)
        if colon is None:
            cut_off = not data[end:].strip() if len(data) - end < 64 else False
            raise BrokenError(end, "a key without its colon", cut_off=cut_off)
        return text_of(raw), colon

    def _after_colon(self, at: int) -> int | None:
        """Return where the value begins whose colon stands at a place, blanks left out; None without one."""
        at = self._after_blanks(at)
        return self._after_blanks(at + 1) if self._data[at : at + 1] == b":" else None

    def _after_blanks(self, at: int) -> int:
        match = _BLANK.match(self._data, at)
        return match.end() if match else at

    def _closing_quote(self, at: int) -> int:
        """Return the place behind the quote that closes the string at a place, if none is stray."""
        token = TOKEN.match(self._data, at)
        if token is None or not token.group(2):
            raise BrokenError(len(self._data), "the text ends within a string", cut_off=True)
        return token.end(1)

    def _plain(self, at: int, byte: int, stack: list[_Open], quotes: bool) -> tuple[Any, int]:
        data = self._data
        if byte == 0x22:
            return self._string(at, stack, quotes)
        exact = len(stack) == 1 and stack[0].key in EXACT_KEYS
        stray = self._stray and bool(stack)
        behind = (BEHIND_VALUE if stack[-1].is_object else BEHIND_ITEM) if stray else _BLANK
        number = _NUMBER.match(data, at)
        if number is not None and behind.match(data, number.end()):
            return _number(number, exact), number.end()
        word = _WORD.match(data, at)
        if word is not None and behind.match(data, word.end()):
            return _word(word.group()), word.end()
        if stray:
            return self._stray_text(at, stack[-1].is_object, exact)
        if len(data) - at < 16 and data[at:].strip(b"-+.0123456789eEINTFabcdefilnrstuy") == b"":
            raise BrokenError(len(data), "the text ends within it", cut_off=True)
        raise BrokenError(at, "no value where one is expected")

    def _stray_text(self, at: int, in_object: bool, exact: bool) -> tuple[Any, int]:
        """Return what some text means that is no value, and where it ends; a time's is settled later."""
        end = stray_end(self._data, at, in_object)
        if end is None:
            raise BrokenError(at, "no value where one is expected")
        if end == len(self._data):
            raise BrokenError(end, "the text ends within it", cut_off=True)
        raw = self._data[at:end].rstrip()
        text = text_of(raw.removesuffix(b'"') if raw.count(b'"') % 2 else raw)
        number = decimal_comma(text)
        is_number = number is not None and (number.is_certain or not exact)
        self.forgiven.add(DECIMAL_COMMA if is_number else STRAY_TEXT)
        if exact:
            return _Stray(text), end
        return text if number is None else float(number.text), end

    def _string(self, at: int, stack: list[_Open], quotes: bool) -> tuple[str, int]:
        data = self._data
        end = self._closing_quote(at)
        if not quotes or not stack:
            return text_of(data[at + 1 : end - 1]), end
        end = self._end_of_string(at + 1, stack)
        if end < 0:
            raise BrokenError(at, "a string whose end cannot be made out")
        return text_of(data[at + 1 : end]), end + 1

    def _end_of_string(self, begin: int, stack: list[_Open]) -> int:
        """Return the place of the quote that most probably ends the string, or -1."""
        top = stack[-1]
        limit = self._next(_BOUNDARY, begin)
        if limit < 0:
            limit = len(self._data)
        if not top.is_object:
            patterns = [_END_ITEM]
        elif len(stack) > 1:
            patterns = [_END_ANY]
        else:
            patterns = [self._habits().end_of(top.key), _END_KNOWN, _END_ANY]
        for pattern in patterns:
            if 0 <= (end := self._next(pattern, begin)) < limit:
                return end
        return -1

    def _next(self, pattern: re.Pattern[bytes], begin: int) -> int:
        """Return the first unescaped match at or after `begin`, or -1; each search is remembered."""
        low, hit = self._ends.get(pattern, (begin + 1, -1))
        if low <= begin and (hit < 0 or hit >= begin):
            return hit
        data = self._data
        at = begin
        while True:
            match = pattern.search(data, at)
            hit = match.start() if match else -1
            if hit < 0 or not _escaped(data, begin, hit):
                break
            at = hit + 1
        self._ends[pattern] = (begin, hit)
        return hit


def _escaped(data: bytes, begin: int, at: int) -> bool:
    low = at
    while low > begin and data[low - 1] == 0x5C:
        low -= 1
    return (at - low) % 2 == 1


def _number(match: re.Match[bytes], exact: bool) -> Any:
    text = match.group().decode()
    if text.lstrip("+-").isdigit():
        if len(text) > MAX_DIGITS:
            return text
        return whole_number(text)
    try:
        return Decimal(text) if exact else float(text)
    except ArithmeticError:  # an exponent beyond Decimal's
        return float(text)


def _word(word: bytes) -> Any:
    lower = word.lower().lstrip(b"-")
    if lower in _MEANING:
        return _MEANING[lower]
    value = float("nan") if lower == b"nan" else float("inf")
    return -value if word.startswith(b"-") else value
