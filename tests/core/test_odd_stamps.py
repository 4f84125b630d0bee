"""Stamps of logs that are no times, too late, or of another notation cost their row and give no warning."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from tracelane.core.telemetry.stamps import NO_TIME, parse_stamps

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
