"""Python's regular expressions rewritten for RE2, so that they mean the same.

The two differ in which characters are digits, letters and blanks, in which differ by case only, in where
words begin and in what a dollar means. Python's own parser reads an expression, and each class of characters
is written as the ranges that Python's engine matches. What RE2 cannot express raises NotLinearError.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, TypeAlias

RE2_LARGEST = 64 << 20
"""Bytes that RE2 may take for one expression: long classes of letters exceed the 8 MB that are usual."""
COUNT_LARGEST = 10**9
ALPHABETS = re.ASCII | re.UNICODE
CASED_END = 0x1F000
"""Characters from here on are symbols, ideographs and private."""
NOTHING = r"[^\x{0}-\x{10FFFF}]"
_CATEGORIES = {
    codes.CATEGORY_DIGIT: r"\d",
    codes.CATEGORY_NOT_DIGIT: r"\D",
    codes.CATEGORY_SPACE: r"\s",
    codes.CATEGORY_NOT_SPACE: r"\S",
    codes.CATEGORY_WORD: r"\w",
    codes.CATEGORY_NOT_WORD: r"\W",
}
Item: TypeAlias = tuple[Any, Any]
"""What Python's parser makes of a piece: (an opcode, what belongs to it)."""


class NotLinearError(Exception):
    """RE2 has no such expression."""


@dataclass(frozen=True)
class Translated:
    """An expression for RE2, which means the same in all texts, or in those of ASCII that are not empty."""

    text: str
    ascii_only: bool


def re2_syntax(pattern: re.Pattern[str]) -> Translated:
    """Return an expression in RE2's syntax. Raises NotLinearError."""
    writer = _Writer()
    text = "".join(writer.sequence(_items(pattern), pattern.flags, last=True))
    return Translated(text, writer.ascii_only)


def ways_to_match(pattern: re.Pattern[str]) -> int:
    """Return in how many ways an expression could match from one position; many where something repeats."""
    return _ways(_items(pattern))


def _items(pattern: re.Pattern[str]) -> Sequence[Item]:
    return list(parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG))


def _ways(items: Iterable[Item]) -> int:
    ways = 1
    for code, value in items:
        ways = min(ways * _ways_of(code, value), COUNT_LARGEST)
    return ways


def _ways_of(code: Any, value: Any) -> int:
    if code in (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN, codes.AT, codes.FAILURE):
        return 1
    if code is codes.BRANCH:
        return sum(_ways(branch) for branch in value[1])
    if code is codes.SUBPATTERN:
        return _ways(value[3])
    return COUNT_LARGEST  # repeats, lookaround, back-references


class _Writer:
    """Writes parsed Python expressions in RE2's syntax."""

    def __init__(self) -> None:
        self.ascii_only = False

    def sequence(self, items: Iterable[Item], flags: int, last: bool) -> Iterator[str]:
        """Yield the pieces of a sequence; `last`: nothing comes after it."""
        items = list(items)
        for at, (code, value) in enumerate(items):
            yield self._item(code, value, flags, last and at == len(items) - 1)

    def _item(self, code: Any, value: Any, flags: int, last: bool) -> str:
        if code is codes.LITERAL:
            return _case_class(value, flags) if flags & re.IGNORECASE else _escaped_for_re2(value)
        if code is codes.NOT_LITERAL:
            return _class(f"[^{_escaped(value)}]", flags)
        if code is codes.ANY:
            return "(?s:.)" if flags & re.DOTALL else r"[^\n]"
        if code is codes.IN:
            return _class(f"[{''.join(map(_source, value))}]", flags)
        if code is codes.FAILURE:
            return NOTHING
        if code is codes.AT:
            return self._position(value, flags, last)
        if code is codes.BRANCH:
            return "(?:" + "|".join(self._group(branch, flags, last) for branch in value[1]) + ")"
        if code is codes.SUBPATTERN:
            _, added, removed, inner = value
            if added & ALPHABETS:
                raise NotLinearError("(?a:…)")  # whose meaning within other groups varies
            return self._group(inner, (flags | added) & ~removed, last)
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            least, most, inner = value
            lazy = "?" if code is codes.MIN_REPEAT else ""
            count = f"{{{least},{'' if most is codes.MAXREPEAT else most}}}"
            return f"{self._group(inner, flags, last=False)}{count}{lazy}"
        raise NotLinearError(str(code))

    def _group(self, items: Iterable[Item], flags: int, last: bool) -> str:
        return f"(?:{''.join(self.sequence(items, flags, last))})"

    def _position(self, value: Any, flags: int, last: bool) -> str:
        if value is codes.AT_BEGINNING:
            return "(?m:^)" if flags & re.MULTILINE else r"\A"
        if value is codes.AT_BEGINNING_STRING:
            return r"\A"
        if value is codes.AT_END_STRING:
            return r"\z"
        if value is codes.AT_END:
            if flags & re.MULTILINE:
                return "(?m:$)"
            if last:
                return r"(?:\z|(\n)\z)"  # the group is no part of the match
            raise NotLinearError("$ within")
        if value in (codes.AT_BOUNDARY, codes.AT_NON_BOUNDARY):
            self.ascii_only = True  # RE2 knows the borders of ASCII words only
            return r"\b" if value is codes.AT_BOUNDARY else r"\B"
        raise NotLinearError(str(value))


def _source(item: Item) -> str:
    """Return a part of a class as it is written for Python."""
    code, value = item
    if code is codes.NEGATE:
        return "^"
    if code is codes.LITERAL:
        return _escaped(value)
    if code is codes.RANGE:
        return f"{_escaped(value[0])}-{_escaped(value[1])}"
    if code is codes.CATEGORY and value in _CATEGORIES:
        return _CATEGORIES[value]
    raise NotLinearError(str(code))


def _escaped(number: int) -> str:
    return f"\\U{number:08x}"


def _escaped_for_re2(number: int) -> str:
    return f"\\x{{{number:X}}}"


def _case_class(number: int, flags: int) -> str:
    """Return the class of the characters that are this one, case aside."""
    others = re.findall(_escaped(number), _with_case(), flags & (re.IGNORECASE | ALPHABETS))
    return "[" + "".join(map(_escaped_for_re2, sorted({number, *map(ord, others)}))) + "]"


@lru_cache(maxsize=256)
def _class(source: str, flags: int) -> str:
    """Return the class of all characters that an expression for one character matches."""
    flags &= re.IGNORECASE | ALPHABETS
    ranges = [match.span() for match in re.finditer(f"(?:{source})+", _all_characters(), flags)]
    if not ranges:
        return NOTHING
    parts = (f"{_escaped_for_re2(low)}-{_escaped_for_re2(end - 1)}" for low, end in ranges)
    return f"[{''.join(parts)}]"


@lru_cache(maxsize=1)
def _all_characters() -> str:
    """Return a text of all characters in the order of their code points."""
    numbers = array("I", range(sys.maxunicode + 1))  # four bytes each wherever Python runs today
    return numbers.tobytes().decode(
        "utf-32-le" if sys.byteorder == "little" else "utf-32-be", "surrogatepass"
    )


@lru_cache(maxsize=1)
def _with_case() -> str:
    """Return all characters that have an upper or lower case; all lie before CASED_END."""
    characters = map(chr, range(CASED_END))
    return "".join(one for one in characters if one.lower() != one or one.upper() != one)
