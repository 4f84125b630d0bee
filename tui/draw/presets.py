"""Which lanes are shown, in what order: all, devices first; devices; with what launches; as in the file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from types import MappingProxyType

from tracelane.core.trace import Lane, Process, Trace

from ..session import Session
from .palette import key_of
from .quiet import is_device

PRESETS = MappingProxyType(
    {
        "everything": "all lanes, devices first",
        "devices": "device lanes alone",
        "launching": "devices, and the threads that launch to them",
        "file": "all lanes, as the file orders them",
    }
)
"""In the order in which a key goes through them, each with what it shows."""


HOST = ("cpu_op", "python", "runtime", "driver")
"""What happens on the host: profilers let it stand in a process with a device's label too."""
WORK = ("kernel", "memcpy", "memset")
"""What happens on devices, also where their lanes and processes have no names that say so."""


def preset_of(session: Session) -> str:
    """Return the preset in force."""
    if session.preset in PRESETS:
        return session.preset
    return "everything" if session.devices_first else "file"


@lru_cache(maxsize=4)
def device_lanes(trace: Trace) -> frozenset[int]:
    """Return the places of the lanes of devices, and of what is measured of them."""
    devices = set()
    for number, lane in enumerate(trace.lanes):
        works = not _begins_with(trace, lane, HOST) if is_device(lane) else _begins_with(trace, lane, WORK)
        if works or _is_measured(trace, lane.process):
            devices.add(number)
    return frozenset(devices)


def _is_measured(trace: Trace, process: Process) -> bool:
    """Tell whether a process was laid over the trace: a log, or what was computed of a device."""
    return bool(trace.members) and process.source >= len(trace.members) and not process.aside


def _begins_with(trace: Trace, lane: Lane, families: Collection[str]) -> bool:
    """Tell whether the first slice of a lane has a category of one of these families of colours."""
    return bool(lane.slices and lane.depth) and key_of(trace.first_category(lane), "") in families


@lru_cache(maxsize=4)
def launching_lanes(trace: Trace) -> MappingProxyType[int, int]:
    """Return the places of the threads that call a device's runtime or driver, and for how many ns."""
    ns_by_lane: dict[int, int] = {}
    spent = [trace.ns_by_lane(source, _calls(trace, source)) for source in range(trace.source_count)]
    for number, lane in enumerate(trace.lanes):
        if lane.slices and not is_device(lane) and (ns := spent[lane.source].get(lane.number, 0)):
            ns_by_lane[number] = ns
    return MappingProxyType(ns_by_lane)


def _calls(trace: Trace, source: int) -> list[int]:
    """Return the numbers of a source's categories that are calls of a runtime or driver."""
    categories = enumerate(trace.categories(source))
    return [number for number, name in categories if key_of(name, "") in ("runtime", "driver")]


def ordered(trace: Trace, processes: Sequence[Process], session: Session) -> Sequence[Process]:
    """Return processes in the preset's order; what is measured of a process stays below it."""
    if preset_of(session) == "file":
        return processes
    devices, launching = device_lanes(trace), launching_lanes(trace)
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
    devices, launching = device_lanes(trace), launching_lanes(trace)
    return sorted(process.lanes, key=lambda number: (number not in devices, -launching.get(number, 0)))


def is_left_out(trace: Trace, number: int, session: Session) -> bool:
    """Tell whether a preset leaves a lane out."""
    preset = preset_of(session)
    if preset not in ("devices", "launching") or number in device_lanes(trace):
        return False
    return preset == "devices" or number not in launching_lanes(trace)
