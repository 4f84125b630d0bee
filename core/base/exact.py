"""Exact time: what a trace writes in decimal microseconds, as integer nanoseconds, rounded half to even."""

from __future__ import annotations

import re

LARGEST_EXPONENT = 308
"""Beyond it a number is no finite float; nobody's clock means it."""

_NUMBER = re.compile(r"([+-]?)(\d+)?(?:\.(\d*))?(?:[eE]([+-]?\d{1,6}))?", re.ASCII)


def ns_from_text(text: str) -> int | None:
    """Return a decimal text of µs in ns, rounded half to even; None where it is no finite number."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        return None
    sign, whole, fraction, exponent = match.groups()
    digits = (whole or "") + (fraction or "")
    if not digits:
        return None
    significant = digits.lstrip("0")
    if not significant:
        return 0
    shift = int(exponent or 0) - len(fraction or "") + 3
    if shift + len(significant) > LARGEST_EXPONENT + 3:
        return None
    value: int
    if shift >= 0:
        value = _int(significant) * 10**shift
    elif -shift > len(significant):
        value = 0
    else:
        value, rest = divmod(_int(significant), scale := 10**-shift)
        if 2 * rest > scale or (2 * rest == scale and value & 1):
            value += 1
    return -value if sign == "-" else value


def _int(digits: str) -> int:
    """Return the integer of any number of digits (int() refuses more than 4,300)."""
    value = 0
    for start in range(0, len(digits), 4000):
        piece = digits[start : start + 4000]
        value = value * 10 ** len(piece) + int(piece)
    return value
