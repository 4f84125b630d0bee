"""Numbers as people read them."""

from __future__ import annotations

import pytest

from tracelane.core.base.units import (
    format_bytes,
    format_count,
    format_ns,
    format_share,
)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (1, "1 ns"),
        (999, "999 ns"),
        (1000, "1 µs"),
        (37_097, "37.097 µs"),
        (2_095_790, "2.095 ms"),
        (999_999_999, "999.999 ms"),
        (1_500_000_000, "1.5 s"),
        (123_500_000_000, "2 min 03.5 s"),
        (3_660 * 10**9, "1 h 01 min"),
        (5_533_068_085 * 10**6, "64 d 00 h"),
        (64 * 86400 * 10**9 + 3600 * 10**9, "64 d 01 h"),
        (-1500, "-1.5 µs"),
    ],
)
def test_times(ns: int, text: str) -> None:
    """Each duration has the unit that fits it, rounded down."""
    assert format_ns(ns) == text


def test_counts_bytes_shares() -> None:
    """Counts have separators, sizes binary units, shares one decimal."""
    assert format_count(1234567) == "1,234,567"
    assert [format_bytes(n) for n in (5, 4096, 1342177280, 15 << 20)] == [
        "5 B",
        "4.00 KiB",
        "1.25 GiB",
        "15.0 MiB",
    ]
    assert format_share(0.1234) == "12.3 %"
