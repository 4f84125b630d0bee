"""Wall time: of a trace, in which its devices were busy, and time zones as users write them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import I64
from ..base.clock import wall_base_of
from ..base.errors import UsageError
from ..trace import Trace

if TYPE_CHECKING:
    from ..trace.devices import Device


@dataclass(frozen=True, eq=False)
class DeviceTime:
    """The devices of a trace by key, and when each was busy in wall time (UTC ns)."""

    devices: Mapping[str, Device]
    busy: Mapping[str, tuple[I64, I64]]
    window: tuple[int, int]  # of the trace, wall time


class Wall:
    """Wall time of a trace, and when its devices were busy in it."""

    def __init__(self, trace: Trace) -> None:
        """Take a trace; everything is computed on first use."""
        self.trace = trace

    @cached_property
    def base(self) -> int | None:
        """Wall time (UTC ns) at trace time zero, None where the trace does not tell."""
        for source in self.trace.sources:
            if source.base_time_ns is not None:
                return source.base_time_ns
        return wall_base_of(self.trace.opening_span[0])

    @property
    def missing(self) -> str:
        """Return why no log can be laid over the trace."""
        path = self.trace.sources[0].path if self.trace.sources else "the trace"
        return f"{path}: has no wall time (baseTimeNanoseconds), so no log can be aligned with it"

    @cached_property
    def devices(self) -> Mapping[str, Device]:
        """The devices by key: the pid as people write it, with the source's number where pids repeat."""
        from ..trace.devices import device_keys  # only where logs are laid over a trace

        return device_keys(self.trace)

    @cached_property
    def time(self) -> DeviceTime:
        """When the devices were busy; UsageError where the trace tells no wall time."""
        if self.base is None:
            raise UsageError(self.missing)
        from ..tables.device_state import IDLE, WAITING, device_states
        from ..tables.scope import Scope

        window = self.trace.opening_span
        states = device_states(Scope(self.trace, window, clocks=self.trace.clocks))
        busy = {key: (np.empty(0, np.int64), np.empty(0, np.int64)) for key in self.devices}
        keys = {device: key for key, device in self.devices.items()}
        for one in states:
            working = (one.states != IDLE) & (one.states != WAITING)
            starts, ends = one.edges[:-1][working], one.edges[1:][working]
            busy[keys[one.device.device]] = starts + self.base, ends + self.base
        return DeviceTime(self.devices, busy, (window[0] + self.base, window[1] + self.base))


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
