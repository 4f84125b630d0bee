"""Times, counts and bytes as people read them, exact where the unit allows; moments of a trace: what they
count from, and with how many digits they differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .arrays import AnyArray

_TIME_UNITS = ((1, "ns"), (1_000, "µs"), (1_000_000, "ms"), (1_000_000_000, "s"))
_MINUTE, _HOUR, _DAY = 60 * 10**9, 3600 * 10**9, 86400 * 10**9
_SHORT = 3
"""Decimals of a duration that need not be exact."""
TIME_LIMIT = (1 << 62) - 1
"""Times beyond ± this many ns (146 years) are clamped where text is read, so that no sum or difference of two
times overflows int64. Stamps that count from 1970 fit until 2116.
"""
TIME_LIMIT_TEXT = "±146 years (2^62 - 1 ns)"


def format_ns(ns: float, digits: int = 3) -> str:
    """Return a duration with the unit that fits it: "512 ns", "37.097 µs", "2 min 03.5 s", "64 d 01 h". With
    more than three digits long durations have all units down to seconds, "64 d 01 h 02 min 03.000004 s": nine
    digits are exact.
    """
    ns = round(ns)
    if ns < 0:
        return "-" + format_ns(-ns, digits)
    if ns >= _MINUTE and digits > _SHORT:
        return _all_units(ns, digits)
    if ns >= _DAY:
        return f"{ns // _DAY:,} d {ns % _DAY // _HOUR:02d} h"
    if ns >= _HOUR:
        return f"{ns // _HOUR} h {ns % _HOUR // _MINUTE:02d} min"
    if ns >= _MINUTE:
        tenths = ns % _MINUTE // 10**8
        return f"{ns // _MINUTE} min {tenths // 10:02d}.{tenths % 10} s"
    size, unit = next((size, unit) for size, unit in reversed(_TIME_UNITS) if ns >= size or size == 1)
    if size == 1:
        return f"{ns} ns"
    return f"{_decimal(ns, size, digits)} {unit}"


def about_ns(ns: float) -> str:
    """Return a duration to three significant digits, as sentences have it: "37.1 µs", "1.2 s"; minutes and
    more as they are.
    """
    ns = round(ns)
    if abs(ns) >= _MINUTE:
        return format_ns(ns)
    size = next((size for size, _ in reversed(_TIME_UNITS) if abs(ns) >= size), 1)
    grain = max(1, 10 ** max(0, len(str(abs(ns) // size)) - 3) * size // 100)
    while abs(ns) // grain >= 1000 and size > 1:
        grain *= 10
    return format_ns((ns + grain // 2) // grain * grain)


def _all_units(ns: int, digits: int) -> str:
    parts = [f"{ns // _DAY:,} d"] if ns >= _DAY else []
    if ns >= _HOUR:
        parts.append(f"{ns % _DAY // _HOUR:02d} h" if parts else f"{ns // _HOUR} h")
    parts.append(f"{ns % _HOUR // _MINUTE:02d} min" if parts else f"{ns // _MINUTE} min")
    whole, dot, fraction = _decimal(ns % _MINUTE, 10**9, digits).partition(".")
    return " ".join([*parts, f"{whole:0>2}{dot}{fraction} s"])


def format_moment(ns: float, digits: int = 9) -> str:
    """Return a time counted from an origin, with its sign: "+37.097 µs", "-2 min 03.5 s"."""
    return format_ns(ns, digits) if round(ns) < 0 else "+" + format_ns(ns, digits)


def _decimal(value: int, size: int, digits: int) -> str:
    """Return value / size, rounded down to at most `digits` decimals, without trailing zeros."""
    whole, rest = divmod(value, size)
    fraction = f"{rest:0{len(str(size)) - 1}d}"[:digits].rstrip("0")
    return f"{whole}.{fraction}" if fraction else str(whole)


def format_count(count: int) -> str:
    """Return a count with separators: "1,234,567"."""
    return f"{count:,}"


def count_of(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: "1 call", "1,200 calls"; `plural` where an s is not enough."""
    return f"{format_count(count)} {noun if count == 1 else plural or noun + 's'}"


def format_bytes(count: float) -> str:
    """Return a size in binary units: "512 B", "4.0 KiB", "1.25 GiB"."""
    if abs(count) < 1024:
        return f"{round(count)} B"
    value = float(count)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        value /= 1024
        if abs(value) < 1024 or unit == "TiB":
            break
    return f"{value:.1f} {unit}" if abs(value) >= 10 else f"{value:.2f} {unit}"


def format_ratio(ratio: float) -> str:
    """Return how many times as long something takes, in three digits without an exponent: "3.54"."""
    return f"{ratio:,.0f}" if ratio >= 99.95 else f"{ratio:.3g}"


def format_share(share: float) -> str:
    """Return a share of 1 as percent: "12.3 %"."""
    return f"{share * 100:.1f} %"


_SIZES = (1_000, 1_000_000, 1_000_000_000, _MINUTE, _HOUR, _DAY)
_CUT = {3: (1, 1, 1_000, 1_000_000, 10**8, _MINUTE, _HOUR), 6: (1, 1, 1, 1_000, 1_000, 1_000, 1_000)}
"""What `format_ns` cuts off with so many digits, ns: below each of the sizes, and beyond the last."""
EXACT = 9


def moment_digits(moments: AnyArray) -> int:
    """Return the fewest digits (3, 6 or 9) with which no two different moments (ns) are written the same."""
    import numpy as np  # `index` starts without it

    from .arrays import distinct

    lengths = distinct(np.abs(moments[moments == moments]).astype(np.int64))
    sizes = np.searchsorted(_SIZES, lengths, "right")
    for digits, cut in _CUT.items():
        written = lengths // np.array(cut)[sizes]
        if not np.any((written[1:] == written[:-1]) & (sizes[1:] == sizes[:-1])):
            return digits
    return EXACT


def origin_text(origin_ns: int) -> str:
    return f"times count from where the trace begins: {ts_text(origin_ns)}"


def ts_text(ns: int) -> str:
    """Return a trace time as `ts` stands in a file (µs), in the form in which it may be typed."""
    sign = "-" if ns < 0 else ""
    return f"@{sign}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"
