"""What the bytes of a block must hold for an argument to fit: most blocks need no decoding."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .filter import NUMBER, Argument

EXACT = 1 << 53
"""Integers below this are equal only where their digits are; beyond, decoders round."""
_PLAIN = re.compile(r"[ !#-.0-\[\]-~]*", re.ASCII)
_WORDS = re.compile(r"[A-Za-z_]{2,}", re.ASCII)
_WRITTEN = ("-infinity", "nan", "true", "false", "null")
"""Words of values as text that stand otherwise in the source, or in other case."""


@dataclass(frozen=True)
class Needle:
    """A pattern that is found in every block that may hold what is looked for, escapes aside."""

    pattern: re.Pattern[bytes]
    escape: bytes  # a block with this may spell it otherwise
    ascii: bool = False  # so may one with other letters

    def may_hold(self, block: bytes) -> bool:
        """Tell whether a block can hold it: False is certain."""
        if self.pattern.search(block) is not None or self.escape in block:
            return True
        return self.ascii and not block.isascii()


def needles_of(term: Argument) -> tuple[Needle, ...]:
    """Return what a block must hold, all of it, for a term (its negation aside) to fit an argument in it."""
    needles = [key_needle(term.key)]
    key = needles[0].pattern.pattern
    text = term.text
    if term.number is not None and term.number.op == "=":
        value = term.number.value
        if value.denominator == 1 and abs(value) < EXACT:
            # Digits alone must be these; with a point or an exponent they may be written in many ways.
            digits = str(abs(value.numerator)).encode()
            number = rb'\s*:\s*"?(?:\s|\\[nrtf])*(?:[+-]?0*%s(?![\d.eE])|[+-]?\d*[.eE])' % digits
            needles = [Needle(re.compile(key + number), needles[0].escape)]
    elif text is not None and text.how == "is" and not _spelt_otherwise(text.text):
        if _PLAIN.fullmatch(text.text):
            exactly = rb'\s*:\s*"?' + re.escape(text.text.encode())
            needles = [Needle(re.compile(key + exactly), needles[0].escape)]
    elif text is not None and text.how == "in":
        words = [word for word in _WORDS.findall(text.text) if not _in_written(word)]
        if words:
            longest = max(words, key=len).encode()
            needles.append(Needle(re.compile(re.escape(longest), re.IGNORECASE), b"\\u", ascii=True))
    return tuple(needles)


def key_needle(key: str) -> Needle:
    """Return what a block must hold for a key to be in it."""
    pattern = re.escape(b'"' + key.encode("utf-8", "replace") + b'"')
    return Needle(re.compile(pattern), b"\\u" if _PLAIN.fullmatch(key) else b"\\")


def _spelt_otherwise(text: str) -> bool:
    """Tell whether a value whose text is this may stand with other spaces or digits in the source."""
    return text[:1] in ("[", "{") or NUMBER.fullmatch(text.strip()) is not None or _in_written(text)


def _in_written(word: str) -> bool:
    return any(word.lower() in written for written in _WRITTEN)
