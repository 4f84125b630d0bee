"""Text from a trace made fit for a terminal: no control, escape, bidirectional or invisible characters."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_BLANKS = frozenset("\t\n\r\v\f\x85\u2028\u2029\u00a0")
_DROPPED = frozenset({"Cf"})  # bidi marks and overrides, zero-width joiners, tags, byte order marks
_REPLACED = frozenset({"Cc", "Cs", "Co", "Cn"})


def safe(text: str) -> str:
    """Return the text on one line, harmless to any terminal.

    Line breaks and tabs become a space, other controls, lone surrogates and unassigned characters U+FFFD;
    invisible format characters (among them all that turn the writing direction) are dropped.
    """
    if text.isascii() and text.isprintable():
        return text
    return _cleaned(text)


@lru_cache(maxsize=1 << 14)
def _cleaned(text: str) -> str:
    return "".join(_safe_character(character) for character in text)


@lru_cache(maxsize=1 << 12)
def _safe_character(character: str) -> str:
    if character in _BLANKS:
        return " "
    category = unicodedata.category(character)
    if category in _DROPPED:
        return ""
    if category in _REPLACED:
        return REPLACEMENT
    return character
