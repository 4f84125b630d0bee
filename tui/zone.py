"""Time zones: the one that wall times are read and written in, by name or offset; this machine's if none."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache

from tracelane.core.base.errors import UsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?", re.IGNORECASE)


@lru_cache(maxsize=16)
def zone_of(name: str) -> tzinfo | None:
    """Return the zone of a name (Europe/Zurich), an offset (+02:00) or UTC; None, this machine's, for "" and
    "local". Raises UsageError for anything else.
    """
    if name.lower() in ("", "local"):
        return None
    if name.upper() in ("UTC", "GMT", "Z"):
        return UTC
    if match := _OFFSET.fullmatch(name):
        offset = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        if offset < timedelta(hours=24):
            return timezone(offset if match[1] == "+" else -offset)
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # names of zones are rare, and this is large

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(
            f"{name!r} is no time zone known here: give Europe/Zurich, +02:00, UTC or local"
        ) from None


def moment_of(stamp: int, zone: str = "") -> datetime | None:
    """Return the local date and time, to the second, of ns since 1970; None where no calendar reaches."""
    try:
        return (_EPOCH + timedelta(seconds=stamp // 10**9)).astimezone(zone_of(zone))
    except (OverflowError, ValueError, OSError):
        return None


def zone_text(moment: datetime) -> str:
    """Return how far a local time is from UTC as people write it: "UTC+05:30", "UTC"."""
    minutes = round((moment.utcoffset() or timedelta()).total_seconds() / 60)
    if not minutes:
        return "UTC"
    return f"UTC{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
