"""Programs and devices that share a pid, told apart by what runs in their lanes.

Kineto writes a device's lanes under the device's index as their pid, and names the devices 0 to 15, whether
they exist or not. In a container programs have pids as small, mostly 1. Metadata then speak of one pid twice,
and what comes last would hold for both:

    {"name": "process_labels", "pid": 1, "args": {"labels": "CPU"}}        the program
    {"name": "process_labels", "pid": 1, "args": {"labels": "GPU 1"}}      the second GPU

A pid with lanes of both becomes two processes, each with its own metadata. The device's has the JSON text of
the pid with a space after it (`1 `): the same value, but another key, so that whatever goes by pid (clocks,
folds, tables) tells the two apart. A pid with lanes of a program alone is called as the program. Where no
metadata speak of a device, a program holds its device's lanes on purpose: it stays one process.

A thread and a stream that share a tid, too, are one lane, which is the device's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..base.arrays import Bools
from ..base.kineto import OPS
from .batches import NumberedBatches
from .lanes import LaneEntry, OwnNames, ProcessEntry, display_order
from .pids import SHARED_PID
from .roles import DEVICE, HOST, NAME, PROFILER, device_label


class _Shared(NamedTuple):
    """A process, what metadata call the device and the program of its pid, and whose its lanes are."""

    process: ProcessEntry
    device: OwnNames | None
    program: OwnNames | None
    works: list[LaneEntry]
    others: list[LaneEntry]


def told_apart(processes: Sequence[ProcessEntry], batches: NumberedBatches) -> list[ProcessEntry]:
    """Return the processes in display order, each that is a program and a device as two."""
    categories = tuple(map(batches.strings.text, batches.categories))

    def holding(is_one: Callable[[str], bool]) -> Bools:
        """Tell of each track whether it holds something of a category."""
        return batches.tracks_holding(np.array(list(map(is_one, categories)), np.bool_))

    called = [_called(process, categories) for process in processes]
    has_operators = any(category in OPS for category in categories)
    if not any(device and (program or has_operators) for device, program in called):
        return list(processes)
    on_device = holding(DEVICE.__contains__)
    some = [
        _Shared(process, device, program, *_parted(process.lanes, on_device))
        for process, (device, program) in zip(processes, called)
    ]
    if not any(one.device and (one.program or (one.works and one.others)) for one in some):
        return list(processes)  # as nearly always: what follows looks at all events again
    operators = holding(OPS.__contains__)
    of_host = holding(lambda category: category in HOST and category not in PROFILER)
    parts = [part for one in some for part in _parts(one, of_host if one.program else operators)]
    return sorted(parts, key=display_order)


def _called(process: ProcessEntry, categories: Sequence[str]) -> tuple[OwnNames | None, OwnNames | None]:
    """Return what metadata call the device and the program of a pid, each what was said last."""
    device, program = None, None
    for names in (*process.names.before, process.names) if process.lanes else ():
        if device_label(categories, names.labels) or NAME.match(names.name):
            device = names
        elif names.labels:
            program = names
    return device, program


def _parted(lanes: Sequence[LaneEntry], on_device: Bools) -> tuple[list[LaneEntry], list[LaneEntry]]:
    """Return the lanes that hold work of a device, and the others."""
    works = [lane for lane in lanes if _is_among(lane, on_device)]
    return works, [lane for lane in lanes if not _is_among(lane, on_device)]


def _is_among(lane: LaneEntry, tracks: Bools) -> bool:
    return isinstance(lane.content, int) and bool(tracks[lane.content])


def _parts(shared: _Shared, of_program: Bools) -> list[ProcessEntry]:
    """Return the processes that one is; `of_program` are the tracks that only a program has."""
    process, device, program, works, others = shared
    is_program = any(_is_among(lane, of_program) for lane in others)
    if device and works and is_program:
        name = process.names.name
        own = program or OwnNames("" if NAME.match(name) else name)
        own_part = process._replace(names=own, lanes=others)
        return [own_part, ProcessEntry(process.pid + SHARED_PID, device, works, 0)]
    if device and program and (works or is_program):
        return [process._replace(names=device if works else program)]
    return [process]
