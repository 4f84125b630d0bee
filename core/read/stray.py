"""What stands where a value should and is none: how far it goes, and what a number in it may mean.

Writers print pointers, words of their language and numbers of their locale without quotes; each costs no more
than itself.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple

from ..base.numbers import whole_number

DECIMAL_COMMA = "decimal commas: LC_NUMERIC of the writer"
STRAY_TEXT = "a value that is no JSON, kept as its text"
MAX_STRAY_LENGTH = 4096
"""Longer text is no value that somebody wrote."""

_MARK = re.compile(rb"[()\[\]{},]")
_KEY_BEHIND = re.compile(rb',\s*+(?:"[^"\\\n]{1,80}"|[A-Za-z_][^"\\{}\[\],:\n]{0,80}")\s*+:')
BEHIND_VALUE = re.compile(rb"(?<!\s)\s*+(?:,(?!\s*+[-+.\d(])|\}|\Z)")
"""What stands behind the value of a key, right at its end: elsewhere among blanks nothing is matched, as each
of them would look at all that follow. A number behind its comma belongs to it: keys have quotes.
"""
BEHIND_ITEM = re.compile(rb"(?<!\s)\s*+(?:[,\]]|\Z)")
"""What stands behind an item of a list."""
_CLOSING = {0x28: 0x29, 0x5B: 0x5D, 0x7B: 0x7D}

_COMMA = re.compile(r"([-+]?)(\d{1,40}),(\d{1,40})((?:[eE][-+]?\d{1,3})?)", re.ASCII)
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:(?:,\d{3}){2,9}(?:\.\d{1,40})?|,\d{3}\.\d{1,40})", re.ASCII)
_POINTS = re.compile(r"[-+]?\d{1,3}(?:\.\d{3}){1,9},\d{1,40}", re.ASCII)
_HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]{1,16}", re.ASCII)
_SUFFIXED = re.compile(r"([-+]?\d{1,40}(?:\.\d{1,40})?)(?:[uU][lL]{0,2}|[lL]{1,2}[uU]?|[fF])", re.ASCII)


class CommaNumber(NamedTuple):
    """A number with a decimal comma."""

    text: str  # with a point
    is_certain: bool  # its comma cannot be one between thousands


def stray_end(data: bytes, at: int, in_object: bool) -> int | None:
    """Return where text that is no value ends: before a comma and a key (in a list before any comma), or
    before the bracket that closes what it stands in. Brackets within it are passed over where they pair up,
    else it ends before the first. None where it is longer than MAX_STRAY_LENGTH; the text's end where it is
    cut.
    """
    for nested in (True, False):
        open_: list[int] = []
        for mark in _MARK.finditer(data, at, at + MAX_STRAY_LENGTH):
            byte, offset = data[mark.start()], mark.start()
            if byte == 0x2C:
                if not open_ and (not in_object or _ends_member(data, offset)):
                    return offset
            elif byte in _CLOSING:
                if nested:
                    open_.append(_CLOSING[byte])
                elif byte != 0x28:
                    return None
            elif open_:
                if byte != open_.pop():
                    break
            elif byte != 0x29:
                return offset if (byte == 0x7D) == in_object else None
    return None if len(data) - at > MAX_STRAY_LENGTH else len(data)


def _ends_member(data: bytes, comma: int) -> bool:
    behind = data[comma + 1 : comma + 64].lstrip(b" \t\r\n,")
    return behind[:1] == b"}" or _KEY_BEHIND.match(data, comma) is not None


def decimal_comma(text: str) -> CommaNumber | None:
    match = _COMMA.fullmatch(text)
    if match is None:
        return None
    sign, whole, fraction, exponent = match.groups()
    may_be_thousands = len(whole) <= 3 and len(fraction) == 3 and whole[0] != "0" and not exponent
    return CommaNumber(f"{sign}{whole}.{fraction}{exponent}", not may_be_thousands)


def time_meant(text: str, *, has_decimal_commas: bool) -> Decimal | str:
    """Return the number that the text of a `ts` or `dur` means, if it can be one only, else the text. A comma
    before three digits is a decimal one where others of the event are (`has_decimal_commas`).
    """
    comma = decimal_comma(text)
    if comma is not None:
        return Decimal(comma.text) if comma.is_certain or has_decimal_commas else str(text)
    if _THOUSANDS.fullmatch(text):
        return Decimal(text.replace(",", ""))
    if _POINTS.fullmatch(text):
        return Decimal(text.replace(".", "").replace(",", "."))
    if _HEXADECIMAL.fullmatch(text):
        return Decimal(whole_number(text, 16))
    suffixed = _SUFFIXED.fullmatch(text)
    return Decimal(suffixed.group(1)) if suffixed else str(text)
