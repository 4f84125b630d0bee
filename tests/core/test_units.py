"""Times, counts and bytes as people read them: what is written says what it was made of."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tracelane.core.base.units import (
    about_ns,
    count_of,
    format_bytes,
    format_moment,
    format_ns,
    format_share,
    moment_digits,
    ts_text,
)

NS = {"d": 86400 * 10**9, "h": 3600 * 10**9, "min": 60 * 10**9, "s": 10**9, "ms": 10**6, "µs": 10**3, "ns": 1}
EDGES = [edge for size in NS.values() for edge in (size - 1, size, size + 1, 10 * size, 999 * size)]
TIMES = st.one_of(
    st.sampled_from(EDGES),
    st.integers(0, 1 << 62),
    st.integers(0, 1 << 40),
    st.integers(0, 1 << 31),
    st.integers(0, 5000),
)


def parts_of(text: str) -> list[tuple[Fraction, str]]:
    """Return the numbers and units of a duration without a sign."""
    pairs = re.findall(r"([\d,.]+) (\S+)", text)
    assert " ".join(f"{number} {unit}" for number, unit in pairs) == text
    return [(Fraction(number.replace(",", "")), unit) for number, unit in pairs]


def ns_of(text: str) -> Fraction:
    return sum((number * NS[unit] for number, unit in parts_of(text)), Fraction(0))


def last_digit(text: str, digits: int) -> Fraction:
    """Return the ns that the last digit of a duration stands for, where it has that many decimals."""
    unit = parts_of(text)[-1][1]
    return Fraction(NS[unit]) if unit in ("ns", "min", "h") else Fraction(NS[unit], 10**digits)


@given(TIMES)
def test_nine_digits_are_exact(ns: int) -> None:
    """A duration with nine digits is the nanoseconds it was made of, and a minus is only put before it."""
    assert ns_of(format_ns(ns, 9)) == ns
    assert format_ns(-ns, 9) == ("-" if ns else "") + format_ns(ns, 9)


@given(TIMES)
def test_three_digits_are_cut_off(ns: int) -> None:
    """A duration with three digits is less than one of its last digit below the truth, and never above; its
    unit is the greatest that goes into it, and a smaller one never counts up to a greater.
    """
    text = format_ns(ns)
    step = last_digit(text, 1 if " min " in text else 3)
    assert 0 <= ns - ns_of(text) < step or step < 1
    parts = parts_of(text)
    greatest = next((unit for unit, size in NS.items() if ns >= size), "ns")
    assert parts[0][1] == greatest
    for (_, above), (number, unit) in pairwise(parts):
        assert number < NS[above] // NS[unit]


@given(TIMES)
def test_about_is_three_digits_of_it(ns: int) -> None:
    """About a duration is within half a percent of it, and says no more than three digits below a minute."""
    for text in (about_ns(ns), about_ns(-ns).removeprefix("-")):
        if ns < NS["min"]:
            assert abs(ns_of(text) - ns) * 200 <= ns
            assert len(re.sub(r"\D", "", text).strip("0")) <= 3
        else:
            assert text == format_ns(ns)
    assert about_ns(-ns).startswith("-") or ns == 0


@given(TIMES)
def test_moments_have_a_sign(ns: int) -> None:
    """A moment is written with a sign, even where it is the origin itself."""
    assert format_moment(ns) == f"+{format_ns(ns, 9)}"
    assert ns == 0 or format_moment(-ns) == f"-{format_ns(ns, 9)}"


@given(st.integers(-(1 << 62), 1 << 62))
@example(-1)
def test_a_stamp_stands_as_in_a_file(ns: int) -> None:
    """A time as `ts` has it is exact in µs."""
    assert Fraction(ts_text(ns).removeprefix("@")) * 1000 == ns


@given(st.lists(st.one_of(TIMES, st.builds(lambda at, by: at + by, TIMES, st.integers(0, 2000))), min_size=2))
def test_digits_tell_moments_apart(moments: list[int]) -> None:
    """With the digits proposed no two different moments are written the same; with fewer some are."""
    distinct = {*moments}
    digits = moment_digits(np.array(moments, np.int64))
    assert len({format_ns(moment, digits) for moment in distinct}) == len(distinct)
    if digits > 3:
        assert len({format_ns(moment, digits - 3) for moment in distinct}) < len(distinct)


@given(st.integers(0, 1 << 52))
@example(1023)
@example(1024)
@example(1 << 50)
def test_sizes_are_near(count: int) -> None:
    """A size is written to three digits or one decimal, in the unit of which it has one to 1,024."""
    number, unit = format_bytes(count).split()
    size = 1024 ** ("B", "KiB", "MiB", "GiB", "TiB").index(unit)
    assert abs(Fraction(number) * size - count) <= Fraction(size, 200 if count < 10 * size else 20)
    assert unit == "TiB" or count < 1024 * size
    assert count >= size or count == 0
    assert format_bytes(-count) == ("-" if count else "") + format_bytes(count)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (count_of(1, "call"), "1 call"),
        (count_of(0, "call"), "0 calls"),
        (count_of(2, "call"), "2 calls"),
        (count_of(1200, "copy", "copies"), "1,200 copies"),
        (count_of(1, "copy", "copies"), "1 copy"),
        (format_share(0.1234), "12.3 %"),
        (format_share(1), "100.0 %"),
        (format_ns(123_500_000_000), "2 min 03.5 s"),
        (format_ns(64 * 86400 * 10**9 + 3600 * 10**9), "64 d 01 h"),
        (format_ns(7_320_000_000_000), "2 h 02 min"),
    ],
)
def test_words(text: str, expected: str) -> None:
    """Counts have their nouns, shares are percents, long times have two units."""
    assert text == expected
