"""Numbers written in decimal digits, many at once: eight digits of each lie in one 64-bit word.

The digits of a word are joined by pairs, fours and eights, each by one multiplication (D. Lemire, "Quickly
parsing eight digits", 2018).
"""

from __future__ import annotations

import numpy as np

from ..columns import F64, I64
from .stretch import Mask, Stretch

LONGEST = 18
"""Digits of an integer that surely fits into 64 bits."""
_EXACT = 1 << 53
"""An integer below this, divided by a power of ten below 10**22, is the float nearest to the decimal text."""
_ZEROS = np.uint64(0x3030303030303030)
_ABOVE_NINE = np.uint64(0x7676767676767676)
_HIGH = np.uint64(0x8080808080808080)
_PAIRS, _FOURS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)
_TEN, _HUNDRED, _THOUSANDS = np.uint64(2561), np.uint64(6553601), np.uint64(42949672960001)
_8, _16, _32 = np.uint64(8), np.uint64(16), np.uint64(32)
_POWERS = 10 ** np.arange(LONGEST + 1, dtype=np.int64)
_ZERO, _MINUS, _DOT = b"0-."


def integers(stretch: Stretch, starts: I64, ends: I64) -> tuple[I64, Mask]:
    """Return the integers written from each start to each end, and which of them are JSON integers of at most
    LONGEST digits; -0 is none.
    """
    letters = stretch.letters
    first = letters[starts]
    negative = first == _MINUS
    signed = bool(negative.any())
    if signed:
        starts = starts + negative
        first = letters[starts]
    lengths = ends - starts
    values, sound = _digits(stretch, ends, lengths)
    sound &= (first != _ZERO) | (lengths == 1)
    if signed:
        sound &= ~negative | (values != 0)
        np.negative(values, where=negative, out=values)
    return values, sound


def decimals(stretch: Stretch, starts: I64, ends: I64) -> tuple[I64, I64, I64, Mask]:
    """Return whole part, decimals as an integer, how many decimals there are (0 without a dot), and which
    are plain JSON numbers without sign or exponent, of not too many digits.
    """
    letters = stretch.letters
    lengths = ends - starts
    places = np.zeros(len(ends), np.int64)
    left = None
    for count in (3, 1, 2, 4, 5, 6, 7, 8, 9):
        if left is None:
            dotted = letters[ends - 1 - count] == _DOT
            dotted &= lengths > count + 1
            if dotted.all():
                places += count
                break
            places[dotted] = count
            left = np.flatnonzero(~dotted)
        else:
            dotted = letters[ends[left] - 1 - count] == _DOT
            dotted &= lengths[left] > count + 1
            places[left[dotted]] = count
            left = left[~dotted]
        if not left.size:
            break
    dot = places > 0
    whole_ends = ends - places - dot
    whole_lengths = whole_ends - starts
    whole, sound = _digits(stretch, whole_ends, whole_lengths)
    sound &= (letters[starts] != _ZERO) | (whole_lengths == 1)
    if dot.any():
        fraction, decimal = _digits(stretch, ends, places)
        sound &= decimal | ~dot
    else:
        fraction = np.zeros(len(ends), np.int64)
    return whole, fraction, places, sound


def nanoseconds(stretch: Stretch, starts: I64, ends: I64, largest: int) -> tuple[I64, Mask]:
    """Return the ns that texts of µs mean, half to even, and which are plain numbers below `largest` µs."""
    whole, fraction, places, sound = decimals(stretch, starts, ends)
    sound &= whole < largest
    np.minimum(whole, largest, out=whole)
    if (places == 3).all():
        return whole * 1000 + fraction, sound
    short = places <= 3
    if short.all():
        return whole * 1000 + fraction * _POWERS[3 - places], sound
    scale = _POWERS[np.maximum(places - 3, 0)]
    part, rest = np.divmod(fraction, scale)
    part += (2 * rest > scale) | ((2 * rest == scale) & (part & 1 == 1))
    part = np.where(short, fraction * _POWERS[np.maximum(3 - places, 0)], part)
    return whole * 1000 + part, sound


def floats(stretch: Stretch, starts: I64, ends: I64) -> tuple[F64, Mask]:
    """Return the floats nearest to what is written, and for which of the texts that is sure."""
    whole, fraction, places, sound = decimals(stretch, starts, ends)
    power = _POWERS[places]
    sound &= whole < _EXACT // power
    return np.asarray((whole * power + fraction) / power, np.float64), sound


def _digits(stretch: Stretch, ends: I64, lengths: I64) -> tuple[I64, Mask]:
    """Return the integers of so many digits before each end, and which are of digits alone, at least one."""
    sound = lengths > 0
    longest = int(lengths.max(initial=0))
    values, plain = _eight(stretch, ends, np.minimum(lengths, 8))
    sound &= plain
    if longest > 8:
        more, plain = _eight(stretch, ends - 8, np.clip(lengths - 8, 0, 8))
        values += more * _POWERS[8]
        sound &= plain
    if longest > 16:
        more, plain = _eight(stretch, ends - 16, np.clip(lengths - 16, 0, 2))
        values += more * _POWERS[16]
        sound &= plain
        sound &= lengths <= LONGEST
    return values, sound


def _eight(stretch: Stretch, ends: I64, lengths: I64) -> tuple[I64, Mask]:
    """Return the integers of up to eight digits before each end; none is 0."""
    word = stretch.words(ends - 8)[:, 0]
    word ^= _ZEROS
    unused = ((8 - lengths) * 8).astype(np.uint64)  # a shift by 64 leaves nothing
    word >>= unused
    word <<= unused
    plain = ((word + _ABOVE_NINE) | word) & _HIGH == 0
    word *= _TEN
    word >>= _8
    word &= _PAIRS
    word *= _HUNDRED
    word >>= _16
    word &= _FOURS
    word *= _THOUSANDS
    word >>= _32
    return word.astype(np.int64), plain
