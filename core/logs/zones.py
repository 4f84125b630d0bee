"""Time zones as users write them, and the zone of this host."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, tzinfo

from ..base.errors import UsageError

SECOND = 1_000_000_000
_OFFSET = re.compile(r"(?:UTC|GMT)?\s*([+-])(\d{1,2})(?::?(\d{2}))?", re.IGNORECASE)


def zone_offset(zone: str, local_ns: int) -> int:
    """Return by how many seconds a zone is ahead of UTC when its clocks show `local_ns` (as if it were UTC).

    Takes a name ("Europe/Zurich"), "UTC", an offset ("-04:00", "+0530") or "local", the zone of this host.
    Raises UsageError for anything else.
    """
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    text = zone.strip()
    match = _OFFSET.fullmatch(text)
    if match:
        hours, minutes = int(match[2]), int(match[3] or 0)
        if hours > 14 or minutes > 59:
            raise UsageError(f"no time zone is {text} from UTC")
        return (-1 if match[1] == "-" else 1) * (hours * 3600 + minutes * 60)
    if text.upper() in ("UTC", "GMT", "Z"):
        return 0
    if text.lower() == "local":
        return host_offset(local_ns)
    try:
        return _at(local_ns, ZoneInfo(text))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(
            f"no time zone is called {text!r}: give a name (Europe/Zurich), an offset (+02:00), UTC or local"
        ) from None


def host_offset(local_ns: int) -> int:
    """Return by how many seconds this host's clocks are ahead of UTC at a local time."""
    return _at(local_ns, None)


def _at(local_ns: int, zone: tzinfo | None) -> int:
    try:
        civil = datetime(1970, 1, 1) + timedelta(seconds=local_ns // SECOND)
        moment = civil.astimezone() if zone is None else civil.replace(tzinfo=zone)
        offset = moment.utcoffset()
    except (OverflowError, OSError):
        return 0
    return 0 if offset is None else round(offset.total_seconds())


def offset_text(offset_s: float) -> str:
    """Return an offset from UTC as people write it: "UTC+05:30"."""
    minutes = round(abs(offset_s) / 60)
    return f"UTC{'-' if offset_s < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
