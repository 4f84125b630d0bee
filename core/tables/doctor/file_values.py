"""What a value of a file means to the recount: times in ns, names and categories, samples of counters."""

from __future__ import annotations

import decimal
import json
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from ...base.numbers import whole_number

MAX_EXPONENT = 308
"""A number from 10^308 on is no time."""
MAX_NUMBER_LENGTH = 100
"""Characters beyond which a counter's text is not taken for a number."""
_EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,6})?", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NOTE = re.compile(r"\(([1-9]\d{0,2}(?:,\d{3}){1,4}) bytes\)", re.ASCII)
"""In place of a text of more than 4 KB in an event of more than 16 MB."""
MAX_ESCAPE = 6
"""Bytes of the escape of a character, such as \\u00e9, at most for each byte of it."""
_BLANKS = " \t\n\r\f\v"


def ns_of(value: object, unit: int) -> int | None:
    """Return the ns of a `ts` or `dur` that counts `unit` ns, None where it means no time. No digit is lost:
    the product is exact, and rounded once, half to even.
    """
    if isinstance(value, str):
        text = value.strip()
        value = Decimal(text) if _NUMBER.fullmatch(text) else None
    if isinstance(value, Decimal):
        if value and value.adjusted() >= MAX_EXPONENT:
            return None
        return round(_EXACT.multiply(value, unit))
    if type(value) is not int:
        return None
    return value * unit if abs(value) < 10 ** (MAX_EXPONENT + 3) else None


def indexed_text(value: object) -> str:
    """Return what a name or category is called in the index: of what is no text its JSON text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, default=float, ensure_ascii=False)


def is_same_text(value: object, text: str) -> bool:
    """Tell whether a name in the index is that of the file. `"n" * 5000` is `(5,002 bytes)` there, where the
    event is too large to be read whole: as it stands in the file, with its quotes and perhaps escapes.
    """
    if isinstance(value, str) or value is None:
        if text == (value or "") or "\ufffd" in text:
            return True
        note, size = _NOTE.fullmatch(text), len((value or "").encode("utf-8", "replace")) + len('""')
        return note is not None and size <= whole_number(note[1].replace(",", "")) <= MAX_ESCAPE * size
    try:
        return bool(json.loads(text) == _plain(value))
    except (ValueError, RecursionError):
        return False


def _plain(value: object) -> object:
    return json.loads(json.dumps(value, default=float))


def samples_of(event: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers among the arguments of a counter event, by key."""
    arguments = [event[key] for key in ("args", "attr") if isinstance(event.get(key), dict)]
    samples = {}
    for key, value in (arguments[0] if arguments else {}).items():
        if isinstance(value, str):
            text = value.strip(_BLANKS)
            value = float(text) if len(value) <= MAX_NUMBER_LENGTH and _DECIMAL.fullmatch(text) else None
        if type(value) is int or isinstance(value, float | Decimal):
            try:
                number = float(value)
            except OverflowError:
                continue
            if math.isfinite(number):
                samples[key] = number
    return samples


class SharedText:
    """The name or category of slices, which they have of their begin, or else of their end. Both may stand
    far from each other: what is known of the one is held until the other comes.
    """

    def __init__(self, what: str, text: Callable[[int], str]) -> None:
        """`text` returns the index's by its number."""
        self.what, self.text = what, text
        self.without: set[int] = set()  # positions of slices whose begin has none, and whose end is to come
        self._unlike: set[int] = set()  # of those whose end came first, and has another

    def is_wrong_at_begin(self, value: object, text: str, position: int, end_came: bool) -> bool:
        end_is_unlike = position in self._unlike
        self._unlike.discard(position)
        if indexed_text(value):
            return not is_same_text(value, text)
        if not end_came:
            self.without.add(position)
        return end_is_unlike

    def is_wrong_at_end(self, value: object, text: str, position: int, begin_came: bool) -> bool:
        is_same = is_same_text(value, text)
        if not begin_came:
            self._unlike |= set() if is_same else {position}
            return False
        has_begin_none = position in self.without
        self.without.discard(position)
        return has_begin_none and not is_same
