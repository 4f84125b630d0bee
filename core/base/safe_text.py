"""Text from a trace made harmless: to a terminal, in JSON, in a spreadsheet, in Markdown.

A character that could act instead of being read (controls, escapes, changes of the writing direction,
invisible ones) is written as its number, ⟨U+001B⟩ (in JSON as its escape): a reader sees that it was there.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

from .held import held_by_name
from .late_pattern import late_pattern

_BLANKS = frozenset("\t\n\r\v\f\x85\u2028\u2029\u00a0")
_ACTIVE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories that are never written as they are: controls, formats (bidi, zero-width, tags), surrogates,
private and unassigned characters, line and paragraph separators."""
_INVISIBLE = (
    *((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2800, 0x2800)),
    *((0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0100, 0xE01EF)),
)
"""Ranges in other categories that terminals draw as nothing: fillers, joiners, variation selectors, the blank
of Braille."""
_PLAIN_JSON = json.JSONEncoder(ensure_ascii=False)
_FORMULA = frozenset("=+-@\t\r\n＝＋－＠")
"""What a cell begins with that a spreadsheet would calculate."""
_QUOTED = late_pattern('[",\r\n]')
_MARKUP = late_pattern(
    r"[\\`*\[\]<>|@&~^${}]|(?<![^\W_])_|_(?![^\W_])|(?<![^\W\d_])#|://|www\.", re.IGNORECASE
)
"""Underscores and # within words mean nothing to Markdown."""
_RULE = late_pattern("[-=+ ]+")
"""A line that makes a heading of the one before, or is drawn as a rule."""


def safe(text: str) -> str:
    """Return the text on one line, harmless to any terminal: line breaks and tabs become a space."""
    if text.isascii() and text.isprintable():
        return text
    return _on_one_line(text)


def safe_lines(text: str) -> str:
    """Return the text harmless to any terminal; its line breaks stay."""
    if text.isascii() and (text.isprintable() or text.replace("\n", "").isprintable()):
        return text
    return text.translate(_LINES)


def json_text(value: Any, indent: int | None = None, default: Callable[[Any], Any] | None = None) -> str:
    """Return a value as JSON; what is not printable in it is escaped, other scripts stay readable. `default`
    gives a stand-in for what JSON has no form for.
    """
    if indent is None and default is None:
        text = _PLAIN_JSON.encode(value)  # `dumps` makes an encoder each time
    else:
        text = json.dumps(value, ensure_ascii=False, indent=indent, default=default)
    return text if text.isascii() and "\x7f" not in text else text.translate(_JSON)


def csv_line(values: Iterable[object]) -> str:
    """Return values as a line of CSV, numbers as they are, None as nothing. A text that a spreadsheet would
    calculate (=, +, -, @) gets an apostrophe before it; line breaks are written as their numbers, between
    quotes, so that a row is one line for every reader.
    """
    cells = [_csv_cell(value) for value in values]
    return (",".join(cells) if cells != [""] else '""') + "\n"


def markdown_code(text: str) -> str:
    """Return a text as inline code of Markdown, in which nothing is a link, an image, HTML or a mention."""
    text = safe(text)
    if not text.strip():
        return text
    pad = " " if text[0] in "` " or text[-1] in "` " else ""
    fence = "`" * (_longest_run(text) + 1)
    return f"{fence}{pad}{text}{pad}{fence}"


def markdown_cell(text: str, code: bool = False) -> str:
    """Return a text for a cell of a Markdown table, as code where it holds markup or `code` asks for it."""
    text = safe(text)
    return markdown_code(text).replace("|", "\\|") if code or has_markup(text) else text


def markdown_block(text: str) -> str:
    """Return lines as a block of Markdown in which they stand as they are."""
    text = safe_lines(text).rstrip()
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}text\n{text}\n{fence}"


def has_markup(text: str) -> bool:
    """Tell whether Markdown might take something in a text for more than its characters."""
    # owner/project#1 is a link on GitHub.
    return _MARKUP.search(text) is not None or ("/" in text and "#" in text)


def markdown_words(text: str) -> str:
    """Return prose for Markdown on one line, those of its words that hold markup as inline code."""
    text = safe(text)
    if _RULE.fullmatch(text):
        return markdown_code(text)
    parts: list[str] = []
    code: list[str] = []
    for word in text.split(" "):
        if has_markup(word):
            code.append(word)
            continue
        if code:
            parts.append(markdown_code(" ".join(code)))
            code = []
        parts.append(word)
    if code:
        parts.append(markdown_code(" ".join(code)))
    return " ".join(parts)


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _csv_cell(value: object) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, (int, float)) else _csv_text(str(value))


@held_by_name
def _csv_text(text: str) -> str:
    quoted = _QUOTED.search(text) is not None
    if not (text.isascii() and text.isprintable()):
        text = text.translate(_CELL)
    if text.lstrip()[:1] in _FORMULA and text.strip():
        text = "'" + text
    return '"' + text.replace('"', '""') + '"' if quoted else text


def _is_active(character: str) -> bool:
    if unicodedata.category(character) in _ACTIVE:
        return True
    number = ord(character)
    return number > 0x300 and any(low <= number <= high for low, high in _INVISIBLE)


class _Characters(dict[int, int | str]):
    """What to write for each character, computed on first use: a table for `str.translate`."""

    def __init__(self, unchanged: str = "", blanks: frozenset[str] = frozenset()) -> None:
        super().__init__({ord(character): character for character in unchanged})
        self._blanks = blanks

    def __missing__(self, number: int) -> int | str:
        character = chr(number)
        if character in self._blanks:
            value: int | str = " "
        elif _is_active(character):
            value = self.escape(number)
        else:
            value = number
        self[number] = value
        return value

    def escape(self, number: int) -> str:
        return f"⟨U+{number:04X}⟩"


class _JsonCharacters(_Characters):
    """The same for JSON, where blanks other than the usual one are escaped too."""

    def __missing__(self, number: int) -> int | str:
        if chr(number).isprintable():
            return super().__missing__(number)
        value = self[number] = self.escape(number)
        return value

    def escape(self, number: int) -> str:
        """Return the escape of a character, of one beyond 16 bits as two."""
        if number <= 0xFFFF:
            return f"\\u{number:04x}"
        high, low = divmod(number - 0x10000, 0x400)
        return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


_ONE_LINE = _Characters(blanks=_BLANKS)
_LINES = _Characters(unchanged="\n")
_CELL = _Characters()
_JSON = _JsonCharacters(unchanged="\n")


@held_by_name
def _on_one_line(text: str) -> str:
    return text.translate(_ONE_LINE)
