"""Which lanes are shown, in what order: all, devices first; devices; with what launches; as in the file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from types import MappingProxyType

from tracelane.core.trace import Process, Trace

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


@lru_cache(maxsize=4)
def device_lanes(trace: Trace) -> frozenset[int]:
    measured = (process.lanes for process in trace.processes if _is_measured(trace, process))
    return trace.device_lanes.union(*measured)


def _is_measured(trace: Trace, process: Process) -> bool:
    """Tell whether a process was laid over the trace: a log, or what was computed of a device."""
    return bool(trace.members) and process.source >= len(trace.members) and not process.aside


def ordered(trace: Trace, processes: Sequence[Process], session: Session) -> Sequence[Process]:
    """Return processes in the preset's order; what is measured of a process stays below it."""
    if preset_of(session) == "file":
        return processes
    devices, launching = device_lanes(trace), trace.launching_lanes
    keys: list[tuple[int, int]] = []
    for process in processes:
        if keys and _is_measured(trace, process):
            keys.append(keys[-1])
        elif process.aside:
            keys.append((3, 0))
        elif any(number in devices for number in process.lanes):
            keys.append((0, 0))
        else:
            busiest = max((launching.get(number, 0) for number in process.lanes), default=0)
            keys.append((1, -busiest) if busiest else (2, 0))
    return [process for _, process in sorted(zip(keys, processes), key=lambda pair: pair[0])]


def lanes_in_order(trace: Trace, process: Process, session: Session) -> Sequence[int]:
    """Return the places of a process's lanes in the preset's order: devices, then those that launch most."""
    if preset_of(session) == "file":
        return process.lanes
    devices, launching = device_lanes(trace), trace.launching_lanes
    return sorted(process.lanes, key=lambda number: (number not in devices, -launching.get(number, 0)))


def is_left_out(trace: Trace, number: int, session: Session) -> bool:
    """Tell whether a preset leaves a lane out."""
    preset = preset_of(session)
    if preset not in ("devices", "launching") or number in device_lanes(trace):
        return False
    return preset == "devices" or number not in trace.launching_lanes
