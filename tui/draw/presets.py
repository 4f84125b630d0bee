"""Which lanes are shown, in what order: all, devices first; devices; with what launches; as in the file."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from tracelane.core.trace import Process, Trace
from tracelane.core.trace.lane_order import devices_first, drawn_device_lanes, lanes_devices_first

from ..session import Session

PRESETS = MappingProxyType(
    {
        "everything": "all lanes, devices first",
        "devices": "device lanes alone",
        "launching": "devices, and the threads that launch to them",
        "file": "all lanes, as the file orders them",
    }
)
"""In the order in which a key goes through them, each with what it shows."""


def preset_of(session: Session) -> str:
    if session.preset in PRESETS:
        return session.preset
    return "everything" if session.devices_first else "file"


def ordered(trace: Trace, processes: Sequence[Process], session: Session) -> Sequence[Process]:
    """Return processes in the preset's order; what is measured of a process stays below it."""
    if preset_of(session) == "file":
        return processes
    return devices_first(trace, processes)


def lanes_in_order(trace: Trace, process: Process, session: Session) -> Sequence[int]:
    """Return the places of a process's lanes in the preset's order: devices, then those that launch most."""
    if preset_of(session) == "file":
        return process.lanes
    return lanes_devices_first(trace, process)


def is_left_out(trace: Trace, number: int, session: Session) -> bool:
    """Tell whether a preset leaves a lane out."""
    preset = preset_of(session)
    if preset not in ("devices", "launching") or number in drawn_device_lanes(trace):
        return False
    return preset == "devices" or number not in trace.launching_lanes
