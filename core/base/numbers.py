"""Text that becomes a number, of whatever count of digits.

Python's own `int` refuses more than 4,300 digits, and so do `json.loads` and `tomllib.loads`, with an error
that no caller expects: one such number in a file would take the whole file with it. No other module turns
text into an integer (the plugin of mypy in bundle/ and tests/test_numbers.py hold them to it).
"""

from __future__ import annotations

import json
import re
from typing import Any

from .late_pattern import late_pattern

NUMBER = late_pattern(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
"""A number as arguments of events have it in text, and as filters name it."""
MAX_DIGITS = 4000
"""What has more digits counts as more than anything: what is printed or compared must stay printable."""
MAX_NUMBER: int = 10**MAX_DIGITS


def whole_number(text: str | bytes, base: int = 10) -> int:
    """Return the integer that a text is, ± MAX_NUMBER where it is further from 0. `base` 0: as in a program,
    "0x1f". Raises ValueError for what is none.
    """
    if len(text) <= MAX_DIGITS:
        return int(text, base)
    plain = (text.decode("ascii", "replace") if isinstance(text, bytes) else text).strip()
    sign = -1 if plain.startswith("-") else 1
    digits = plain.lstrip("+-") if plain[1:2] not in "+-" else plain
    if base == 10 and digits.isdecimal():
        digits = digits.lstrip("0") or "0"
        return sign * (int(digits) if len(digits) <= MAX_DIGITS else MAX_NUMBER)
    if base in (2, 4, 8, 16, 32):  # `int` has no limit for these, nor is it slow
        return max(-MAX_NUMBER, min(MAX_NUMBER, int(plain, base)))
    raise ValueError(f"no whole number: {plain[:40]!r}…")


def json_value(text: str | bytes) -> Any:
    """Return the value of a JSON text. Raises ValueError for what is none, or is nested too deeply."""
    try:
        return json.loads(text, parse_int=whole_number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def toml_tables(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text. Raises ValueError, whose text is one line, for what is none."""
    import tomllib  # most have no settings

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError:  # of `int`, whose advice is for programmers
        raise ValueError("a number in it has more than 4,000 digits") from None
