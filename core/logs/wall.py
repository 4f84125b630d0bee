"""The wall time of a trace, and the times in which its devices were busy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import I64
from ..base.errors import UsageError
from ..index.format import RowKind
from ..trace import Trace

if TYPE_CHECKING:
    from ..tables.devices import Device

EPOCHS = (10**18, 4 * 10**18)
"""Lane times between these (2001 to 2096) are taken for ns since 1970: what older profilers wrote."""


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
        return 0 if EPOCHS[0] <= self.trace.opening_span[0] < EPOCHS[1] else None

    @property
    def missing(self) -> str:
        """Return why no log can be laid over the trace."""
        path = self.trace.sources[0].path if self.trace.sources else "the trace"
        return f"{path}: has no wall time (baseTimeNanoseconds), so no log can be laid over it"

    @cached_property
    def devices(self) -> Mapping[str, Device]:
        """The devices by key: the pid as people write it, with the source's number where pids repeat."""
        from ..tables.devices import device_keys  # only where logs are laid over a trace

        return device_keys(self.trace)

    @cached_property
    def time(self) -> DeviceTime:
        """When the devices were busy; UsageError where the trace tells no wall time."""
        if self.base is None:
            raise UsageError(self.missing)
        start, end = self.trace.opening_span
        busy = {key: self._busy(device) for key, device in self.devices.items()}
        return DeviceTime(self.devices, busy, (start + self.base, end + self.base))

    def _busy(self, device: Device) -> tuple[I64, I64]:
        """Return starts and ends of a device's kernels and copies; of all its slices where it has neither."""
        from ..base.kineto import WORK

        index = self.trace.indexes[device.source]
        own = self.trace.sources[device.source].base_time_ns
        base = (self.base or 0) if own is None else own
        work = np.array([name in WORK for name in index.categories], bool)
        starts, ends, kinds = [], [], []
        for lane_index in device.lanes:
            for number in self.trace.lanes[lane_index].rows:
                row = index.rows[number]
                if int(row["kind"]) != RowKind.SLICES:
                    continue
                first, last = int(row["first"]), int(row["first"]) + int(row["count"])
                begin = index.column("slices.start")[first:last].astype(np.int64) + base
                starts.append(begin)
                ends.append(begin + index.durations_between(first, last))
                kinds.append(work[index.column("slices.category")[first:last]])
        start, end, kind = np.concatenate(starts), np.concatenate(ends), np.concatenate(kinds)
        return (start[kind], end[kind]) if kind.any() else (start, end)
