"""Numbers written in decimal digits, many at once: eight digits of each lie in one 64-bit word.

The digits of a word are joined by pairs, fours and eights, each by one multiplication (D. Lemire, "Quickly
parsing eight digits", 2018).
"""

from __future__ import annotations

import numpy as np

from ..columns import F64, I64
from .spans import Spans
from .stretch import Mask, Words

LONGEST = 18
"""Digits of an integer that surely fits into 64 bits."""
_EXACT = 1 << 53
"""An integer below this, divided by a power of ten below 10**22, is the float nearest to the decimal text."""
_ZEROS = np.uint64(0x3030303030303030)
_ABOVE_NINE = np.uint64(0x7676767676767676)
_HIGH = np.uint64(0x8080808080808080)
_PAIRS, _FOURS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)
_DOTS, _ONES = np.uint64(0x1E1E1E1E1E1E1E1E), np.uint64(0x0101010101010101)
_TEN, _HUNDRED, _THOUSANDS = np.uint64(2561), np.uint64(6553601), np.uint64(42949672960001)
_8, _16, _32, _BYTE = (np.uint64(number) for number in (8, 16, 32, 255))
_POWERS = 10 ** np.arange(LONGEST + 1, dtype=np.int64)
_FOURTH, _FOURTH_IS_DOT = np.uint64(0xFF << 32), np.uint64((ord(".") ^ ord("0")) << 32)
"""Of eight characters the last but three."""
_BEFORE_DOT, _BEHIND_DOT = np.uint64(0xFFFFFFFF), np.uint64(0xFFFFFF << 40)
_MINUS, _DOT = (np.uint64(letter ^ ord("0")) for letter in b"-.")


def integers(spans: Spans) -> tuple[I64, Mask]:
    """Return the integers that are written, and which are JSON integers of at most LONGEST digits; -0 is
    none.
    """
    digits, lengths = spans.words ^ _ZEROS, spans.lengths
    first = digits[0] & _BYTE
    negative = first == _MINUS
    signed = bool(negative.any())
    if signed:
        unsigned = _behind_first(digits)
        digits, lengths = np.where(negative, unsigned, digits), lengths - negative
        first = digits[0] & _BYTE
    values, sound = _number(digits, lengths)
    sound &= (first != 0) | (lengths == 1)
    if signed:
        sound &= ~negative | (values != 0)
        np.negative(values, where=negative, out=values)
    return values, sound


def are_digits(spans: Spans) -> Mask:
    """Tell which texts are JSON integers without a sign, of at most as many digits as words are kept of."""
    lengths = spans.lengths
    digits = spans.words ^ _ZEROS
    sound = np.asarray((digits[0] & _BYTE != 0) | (lengths == 1))
    sound &= lengths > 0
    if int(lengths.max(initial=0)) > 8 * len(digits):
        sound &= lengths <= 8 * len(digits)
    for number, word in enumerate(digits, 1):
        unused = 64 * number - 8 * lengths
        if number < len(digits):
            np.maximum(unused, 0, out=unused)
        word <<= unused.view(np.uint64)  # a shift by 64 or more leaves nothing
        word |= word + _ABOVE_NINE
        word &= _HIGH
        sound &= word == 0
    return sound


def decimals(spans: Spans) -> tuple[I64, I64, I64, Mask]:
    """Return whole part, decimals as an integer, how many decimals there are (0 without a dot), and which
    are plain JSON numbers without sign or exponent, of at most seven decimals and not too many digits.
    """
    digits, lengths = spans.words ^ _ZEROS, spans.lengths
    last = _eight_before(digits, lengths)
    places = _decimal_places(last, lengths)
    wholes = lengths - places
    wholes -= places > 0
    whole, sound = _number(digits, wholes)
    sound &= (digits[0] & _BYTE != 0) | (wholes == 1)
    unused = (64 - 8 * places).view(np.uint64)  # a shift by 64 leaves nothing
    last >>= unused
    last <<= unused
    fraction, plain = _value(last)
    sound &= plain
    return whole, fraction, places, sound


def nanoseconds(spans: Spans, largest: int) -> tuple[I64, Mask]:
    """Return the ns that texts of µs mean, half to even, and which are plain numbers below `largest` µs."""
    digits, lengths = spans.words ^ _ZEROS, spans.lengths
    last = _eight_before(digits, lengths)
    dotted = last & _FOURTH == _FOURTH_IS_DOT
    dotted &= lengths > 4
    if not dotted.all():
        return _any_nanoseconds(spans, largest)
    # As the profiler writes them, with three decimals: without the dot, they are the number of ns.
    near = (last & _BEFORE_DOT) << _8
    near |= last & _BEHIND_DOT
    values, sound = _value(near)
    if int(lengths.max(initial=0)) > 8:
        more, plain = _digits_before(digits, lengths - 8)
        more *= _POWERS[7]
        values += more
        sound &= plain
    sound &= (digits[0] & _BYTE != 0) | (lengths == 5)
    sound &= (values >= 0) & (values < 1000 * largest)  # of 19 digits some are too large, and below 0 then
    sound &= lengths <= 20
    return values, sound


def _any_nanoseconds(spans: Spans, largest: int) -> tuple[I64, Mask]:
    whole, fraction, places, sound = decimals(spans)
    sound &= whole < largest
    np.minimum(whole, largest, out=whole)
    whole *= 1000
    short = places <= 3
    if short.all():
        fraction *= _POWERS[3 - places]
        whole += fraction
        return whole, sound
    scale = _POWERS[np.maximum(places - 3, 0)]
    part, rest = np.divmod(fraction, scale)
    part += (2 * rest > scale) | ((2 * rest == scale) & (part & 1 == 1))
    whole += np.where(short, fraction * _POWERS[np.maximum(3 - places, 0)], part)
    return whole, sound


def floats(spans: Spans) -> tuple[F64, Mask]:
    """Return the floats nearest to what is written, and for which of the texts that is sure."""
    whole, fraction, places, sound = decimals(spans)
    power = _POWERS[places]
    sound &= whole < _EXACT // power
    return np.asarray((whole * power + fraction) / power, np.float64), sound


def _decimal_places(last: Words, lengths: I64) -> I64:
    """Return how many digits stand behind the dot, if there is one among the last eight characters."""
    places = np.zeros(len(last), np.int64)
    left: I64 | None = None
    for count in (3, 1, 2, 4, 5, 6, 7):
        dotted = (last >> np.uint64(8 * (7 - count))) & _BYTE == _DOT
        dotted &= lengths > count + 1
        if left is None:
            places += 3 * dotted
            other = last ^ _DOTS  # where a byte is zero:
            left = np.flatnonzero(~dotted & ((other - _ONES) & ~other & _HIGH != 0))
            last, lengths = last[left], lengths[left]
        else:
            places[left[dotted]] = count
            left, last, lengths = left[~dotted], last[~dotted], lengths[~dotted]
        if not left.size:
            break
    return places


def _number(digits: Words, ends: I64) -> tuple[I64, Mask]:
    """Return the integers that the digits before each end make, and which are so, with at least one digit."""
    values, sound = _digits_before(digits, ends)
    sound &= ends > 0
    return values, sound


def _digits_before(digits: Words, ends: I64) -> tuple[I64, Mask]:
    """Return the integers that the digits before each end make, none being 0, and which are at most LONGEST
    digits.
    """
    longest = int(ends.max(initial=0))
    values, sound = _value(_eight_before(digits, ends))
    if longest > 8:
        more, plain = _value(_eight_before(digits, ends - 8))
        more *= _POWERS[8]
        values += more
        sound &= plain
    if longest > 16:
        more, plain = _value(_eight_before(digits, ends - 16))
        more *= _POWERS[16]
        values += more
        sound &= plain
        sound &= ends <= LONGEST
    return values, sound


def _eight_before(digits: Words, ends: I64) -> Words:
    """Return the eight characters before each end, the last the highest, with zeros where there are fewer."""
    if not len(ends):
        return np.zeros(0, np.uint64)
    low, high = 8 * int(ends.min()), 8 * int(ends.max())
    bits = ends[:1] * 8 if low == high else ends * 8
    found = np.zeros(len(ends), np.uint64)
    for number, word in enumerate(digits):
        edge = 64 * (number + 1)
        if low <= edge and high > edge - 64:  # a shift by 64 or, below 0, by even more leaves nothing
            found |= word << (edge - bits).view(np.uint64)
        if high > edge and low < edge + 64:
            found |= word >> (bits - edge).view(np.uint64)
    return found


def _value(word: Words) -> tuple[I64, Mask]:
    """Return the integer that eight digits make, and whether they are digits."""
    plain = ((word + _ABOVE_NINE) | word) & _HIGH == 0
    word = word * _TEN
    word >>= _8
    word &= _PAIRS
    word *= _HUNDRED
    word >>= _16
    word &= _FOURS
    word *= _THOUSANDS
    word >>= _32
    return word.view(np.int64), plain


def _behind_first(digits: Words) -> Words:
    """Return texts without their first characters."""
    found = digits >> _8
    found[:-1] |= digits[1:] << np.uint64(56)
    return found
