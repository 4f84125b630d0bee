"""Exact time: a decimal text means the ns that half-even rounding makes of it."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from tracelane.core.read.event_writer import ns_from_text, time_of


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("0", 0),
        ("1712195495505582.988", 1712195495505582988),
        (" 400 ", 400_000),
        ("1E+2", 100_000),
        ("1e-3", 1),
        ("1.7e15", 1_700_000_000_000_000_000),
        ("-50", -50_000),
        ("9223372036854775807", 9223372036854775807000),
        ("0.0005", 0),
        ("0.0015", 2),
        ("0.00050000000000000000000001", 1),
        ("-0.0015", -2),
        (".5", 500),
        ("5.", 5000),
        ("1e-999999", 0),
        ("0e999999", 0),
        ("1" + "0" * 5000, None),
        ("1e999999", None),
        ("1e400", None),
        ("1e9999999", None),
        ("abc", None),
        ("", None),
        (".", None),
        ("1 2", None),
        ("0x10", None),
        ("nan", None),
        ("inf", None),
        ("1_000", None),
        ("١", None),
    ],
)
def test_texts(text: str, ns: int | None) -> None:
    """Each form of number a trace may hold means its exact ns, and what is no finite number means none."""
    assert ns_from_text(text) == ns


@pytest.mark.parametrize("value", [True, None, [], {}, math.nan, math.inf, Decimal("NaN")])
def test_unusable_values(value: object) -> None:
    """What is no number is no time, booleans included."""
    assert time_of(value) is None
