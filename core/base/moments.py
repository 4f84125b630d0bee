"""Moments of a trace as people read them: what they count from, and with how many digits they differ."""

from __future__ import annotations

import numpy as np

from .arrays import AnyArray

_MINUTE, _HOUR, _DAY = 60 * 10**9, 3600 * 10**9, 86400 * 10**9
_SIZES = (1_000, 1_000_000, 1_000_000_000, _MINUTE, _HOUR, _DAY)
_CUT = {3: (1, 1, 1_000, 1_000_000, 10**8, _MINUTE, _HOUR), 6: (1, 1, 1, 1_000, 1_000, 1_000, 1_000)}
"""What `format_ns` cuts off with so many digits, ns: below each of the sizes, and beyond the last."""
EXACT = 9


def moment_digits(moments: AnyArray) -> int:
    """Return the fewest digits (3, 6 or 9) with which no two different moments (ns) are written the same."""
    distinct = np.unique(np.abs(moments[moments == moments]).astype(np.int64))
    sizes = np.searchsorted(_SIZES, distinct, "right")
    for digits, cut in _CUT.items():
        written = distinct // np.array(cut)[sizes]
        if not np.any((written[1:] == written[:-1]) & (sizes[1:] == sizes[:-1])):
            return digits
    return EXACT


def origin_text(origin_ns: int) -> str:
    return f"times count from where the trace begins: {ts_text(origin_ns)}"


def ts_text(ns: int) -> str:
    """Return a trace time as `ts` stands in a file (µs), in the form in which it may be typed."""
    sign = "-" if ns < 0 else ""
    return f"@{sign}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"
