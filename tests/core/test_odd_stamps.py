"""Stamps of logs that are no times, too late, or of another notation cost their row and give no warning."""

from __future__ import annotations

import warnings
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracelane.core.logs.stamps import NO_TIME, parse_stamps

GOOD = {"civil": b"2026-06-20 07:10:01", "compact": b"20260620 07:10:01", "epoch": b"1781939401"}
GOOD_NS = 1_781_939_401_000_000_000
ODD = (
    b"2026-06-20 07:10:02Z",
    b"2026-06-20 07:10:02+02:00",
    b"2026-06-20 07:10:02 UTC",
    b"9999-12-31 23:59:59",
    b"1677-01-01 00:00:00",
    b"0000-00-00 00:00:00",
    b"2026-13-40 07:10:02",
    b"2026-02-29 07:10:02",
    b"2026-04-31 07:10:02",
    b"2026-06-20 24:00:00",
    b"2026-06-20 07:60:00",
    b"2026-06-20 07:10:60",
    b"2026-06-00 07:10:02",
    b"99991231 23:59:59",
    b"12/31/9999 23:59:59",
    b"NaT",
    b"now",
    b"",
    b"\xff" * 20,
    b"9" * 30,
    b"9" * 5000,
    b"1e300",
    b"1e999",
    b"-5",
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", GOOD)
@pytest.mark.parametrize("odd", ODD)
def test_an_odd_stamp_costs_its_row(kind: str, odd: bytes) -> None:
    """The good stamp beside it keeps its time, the odd one has none, and no warning reaches stderr."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stamps = parse_stamps([GOOD[kind], odd, GOOD[kind]])
    assert stamps.ns.tolist() == [GOOD_NS, NO_TIME, GOOD_NS]


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_stamp_first(odd: bytes) -> None:
    """A log that begins with an odd stamp is read, or has no times; the stamp itself is in no far year."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stamps = parse_stamps([odd, GOOD["civil"]]).ns
    assert np.all((stamps == NO_TIME) | (np.abs(stamps) < 1 << 62))


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        (b"2026-06-20 07:10:02.1234567890123", 1_781_939_402_123_456_789),
        (b"2026/06/20 07:10:02,5", 1_781_939_402_500_000_000),
    ],
)
def test_digits_of_a_fraction(text: bytes, ns: int) -> None:
    """A fraction has ns, further digits are cut off; a comma is a point."""
    assert parse_stamps([text]).ns.tolist() == [ns]


@given(st.datetimes(min_value=datetime(1800, 1, 1), max_value=datetime(2100, 12, 31)))
def test_every_civil_time_is_read(moment: datetime) -> None:
    """A date and time of day is so many days and seconds after 1970, leap years and all."""
    since = moment - datetime(1970, 1, 1)
    ns = (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
    text = moment.strftime("%Y-%m-%d %H:%M:%S.%f").encode()
    assert parse_stamps([text, b"2026-13-40 00:00:00"]).ns.tolist() == [ns, NO_TIME]
