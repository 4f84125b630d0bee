"""Exact time: what a trace writes in decimal microseconds, as integer nanoseconds, rounded half to even.

A float64 that was read from a decimal text lies within half a unit in the last place (ulp) of it. For most
stamps that is proof enough of the nanosecond meant; where it is not, the text itself decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

SPLITTABLE = 2.0**43
"""Below this many µs the formula of `ns_from_floats` finds the nearest ns of the float itself."""
CONCLUSIVE = 2.0**42
"""Below this many µs an ulp is less than half a ns: a float equal to that of whole ns means them."""
MAX_DIGITS = 19
"""Digits in ns that the vectorised parser takes; of as many the first is at most 3, to stay below 2**62."""
LARGEST_EXPONENT = 308
"""Beyond it a number is no finite float; nobody's clock means it."""

_NUMBER = re.compile(r"([+-]?)(\d+)?(?:\.(\d*))?(?:[eE]([+-]?\d{1,6}))?", re.ASCII)
_POWERS = 10 ** np.arange(MAX_DIGITS - 1, -1, -1, dtype=np.int64)


def ns_from_text(text: str) -> int | None:
    """Return the ns that a decimal text of µs means, half-even; None where it is no finite number."""
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


def ns_of(value: object) -> int | None:
    """Return the ns of one `ts` or `dur` as decoded: int, float, Decimal or numeric string; else None.

    A float is taken for the shortest decimal that reads as it.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value * 1000
    if isinstance(value, str | float | Decimal):
        return ns_from_text(str(value))
    return None


def ns_from_floats(micros: F64, large_are_short: Callable[[], bool] = bool) -> tuple[I64, Mask | None]:
    """Return the ns of float µs, and a mask of those whose text is needed to be sure (None: all are sure).

    `large_are_short` is asked, where it would help, whether all texts of numbers from CONCLUSIVE to
    SPLITTABLE have at most 3 decimals.
    """
    size = np.abs(micros)
    largest = size.max() if size.size else 0.0
    if largest < SPLITTABLE:
        part, ns = _split(micros)
        if (ns / 1000.0 == micros).all() and (largest < CONCLUSIVE or large_are_short()):
            return ns, None
    else:
        part, ns = _split(np.where(size < SPLITTABLE, micros, 0.0))
    # All decimal texts of x lie within half an ulp of it: they round alike unless a half ns is that near.
    reach = np.spacing(np.where(size < SPLITTABLE, size, 0.0)) * 500.0 + 1e-9
    sure = np.abs(part - np.floor(part) - 0.5) > reach
    sure |= (size < CONCLUSIVE) & (ns / 1000.0 == micros)
    sure &= size < SPLITTABLE
    return ns, None if sure.all() else ~sure


def _split(micros: F64) -> tuple[F64, I64]:
    whole = np.floor(micros)
    part = (micros - whole) * 1000.0
    return part, whole.astype(np.int64) * 1000 + np.rint(part).astype(np.int64)


def ns_from_texts(texts: Sequence[bytes]) -> I64 | None:
    """Return the ns of plain decimal texts with at most 3 decimals, or None where one is of another make."""
    try:
        table = np.array(texts, dtype=np.bytes_)
    except (TypeError, ValueError):
        return None
    width = table.dtype.itemsize
    if not len(texts) or not width:
        return None
    letters = table.view(np.uint8).reshape(len(texts), width)
    lengths = (letters != 0).sum(axis=1)
    if lengths.min() == width:
        return _equally_long(letters)
    result = np.zeros(len(texts), np.int64)
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        values = _equally_long(letters[rows, :length]) if length else None
        if values is None:
            return None
        result[rows] = values
    return result


def _equally_long(letters: npt.NDArray[np.uint8]) -> I64 | None:
    """Return the ns of a matrix of characters, a text a row, whose dots all stand in one column."""
    width = letters.shape[1]
    dots = np.flatnonzero(letters[0] == ord("."))
    decimals = 0
    if dots.size:
        dot = int(dots[0])
        decimals = width - 1 - dot
        if dots.size > 1 or decimals > 3 or not (letters[:, dot] == ord(".")).all():
            return None
        letters = np.concatenate([letters[:, :dot], letters[:, dot + 1 :]], axis=1)
    digits = letters - np.uint8(ord("0"))  # anything but a digit wraps to more than 9
    if digits.size == 0 or digits.max() > 9:
        return None
    count = digits.shape[1] + 3 - decimals
    if count > MAX_DIGITS or (count == MAX_DIGITS and digits[:, 0].max() > 3):
        return None
    powers = _POWERS[MAX_DIGITS - count :][: digits.shape[1]]
    return np.asarray(digits @ powers, dtype=np.int64)
