"""The clocks of devices held against the host's: no device work begins before the call that launched it did.

The clock that is proposed for a device is the smallest shift under which that holds of all its work: the
quickest launch then takes no time, so the true clock is later by what it took. How far work lies behind its
launches under the proposed clock is told as its spread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..base.arrays import I64
from ..base.clock import ClockKey, Clocks
from ..base.errors import UsageError
from ..base.kineto import ANNOTATIONS, OPS, RUNTIME
from ..base.units import format_count, format_ns
from ..query.lookup import processes_of
from ..query.lost import untimed_work
from .devices import Device, device_keys, device_title, lane_categories

if TYPE_CHECKING:
    from . import Trace

HOST = OPS | ANNOTATIONS | RUNTIME
AUTO = "auto"
SECOND = 1_000_000_000
FURTHEST_S = 10**9
UNITS: Mapping[str, Decimal] = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "µs": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
}
"""Units in which an offset may be typed, in seconds; each before those that it ends with."""
LATE_NS = SECOND
"""Later than this (ns) is a wrong clock. Earlier may be a cold device, modules being loaded, or the
profiler's buffers.
"""


class DeviceClock(NamedTuple):
    """What the work of one device says of its clock; numbers of work whose launch is known, times in ns."""

    device: Device
    title: str
    pairs: int  # pieces of work whose launch is known
    early: int  # that begin before their launch began, as the clocks stand
    earliest: tuple[int, int] | None  # positions of the one that does so by most, and of its launch
    lead_ns: int  # by how much it does
    stampless: int  # of the early ones those that stand at 0 in the file: their times are lost
    extent: tuple[int, int]  # from when to when all of the work lies, trace time
    apart_ns: int  # how far all of the work lies after (before: negative) all of the host's; 0: they meet
    proposed_ns: int | None  # the device's own clock as proposed, None where nothing tells
    middle_ns: int = 0  # under the proposed clock: how long after its launch work begins, median and 95 %
    late_ns: int = 0
    alone: bool = True  # the process holds nothing but the device's lanes, so it can be moved

    @property
    def key(self) -> ClockKey:
        return self.device.source, self.device.pid

    @property
    def needs_shift(self) -> bool:
        """Whether the clock is wrong: work begins before its launch, or all lies away from the host's."""
        return self.early > self.stampless or bool(self.apart_ns)

    @property
    def can_be_moved(self) -> bool:
        """Whether the clock is wrong, it is known by how much, and nothing else has to move with it."""
        return self.proposed_ns is not None and self.needs_shift and self.alone

    @property
    def trouble(self) -> str:
        """What is wrong with the clock, in a sentence; empty where nothing is."""
        count = format_count(self.pairs)
        if self.early and self.stampless == self.early:
            part = "all" if self.stampless == self.pairs else f"{format_count(self.stampless)} of"
            return f"{self.title}: {part} {count} device events have timestamp 0; their times are lost"
        if self.early:
            lost = f" ({format_count(self.stampless)} have timestamp 0)" if self.stampless else ""
            what = f"{format_count(self.early)} of {count} kernels and copies begin before their launch began"
            return f"{self.title}: {what}, by up to {format_ns(self.lead_ns)}{lost}"
        if self.apart_ns:
            side = "after" if self.apart_ns > 0 else "before"
            return f"{self.title}: all its work is {format_ns(abs(self.apart_ns))} {side} the host's"
        return ""

    @property
    def proposal(self) -> str:
        """The evidence for the proposed clock in a sentence, or why there is no proposal."""
        if self.proposed_ns is None:
            if not self.pairs:
                return f"{self.title}: no launch of its work is known, so its clock cannot be estimated"
            return f"{self.title}: the work has no times, so the clock cannot be estimated"
        later = f"{format_ns(self.middle_ns)} (median), {format_ns(self.late_ns)} (p95)"
        return (
            f"{self.title} moved by {signed(self.proposed_ns)}, the least with which no work begins before "
            f"its launch; it begins {later} later"
        )


def device_clocks(trace: Trace, clocks: Clocks, only: int | None = None) -> tuple[DeviceClock, ...]:
    """Return of each device (of one source) that did work what its times say of its clock, as displayed."""
    result = []
    keys = device_keys(trace)
    for source in range(len(trace.indexes)) if only is None else (only,):
        own = {key: device for key, device in keys.items() if device.source == source}
        if own:
            result += list(_of_source(trace, source, own, clocks))
    return tuple(result)


def troubled(trace: Trace, clocks: Clocks) -> tuple[DeviceClock, ...]:
    """Return the devices whose clocks cannot be right."""
    return tuple(one for one in device_clocks(trace, clocks) if one.trouble)


def with_device_clocks(trace: Trace, clocks: Clocks, texts: Sequence[str]) -> Clocks:
    """Return the clocks with those of devices set as PID=S (seconds added to its times), PID=auto or auto.

    Raises UsageError for what is none of these, names no device, or cannot be estimated.
    """
    keys = device_keys(trace)
    estimates: tuple[DeviceClock, ...] | None = None
    for text in texts:
        pid, equals, value = text.rpartition("=")
        pid, value = pid.strip(), value.strip()
        if not equals and value != AUTO:
            raise UsageError(f"--device-offset takes PID=SECONDS, PID=auto or auto, not {text!r}")
        if equals and pid not in keys:
            raise UsageError(
                f"--device-offset: no device has the pid {pid!r}; there is {', '.join(keys) or 'none'}"
            )
        if value != AUTO:
            clocks = set_by_hand(trace, clocks, keys[pid], offset_of(value))
            continue
        if estimates is None:
            estimates = device_clocks(trace, clocks)
        selected = [one for one in estimates if not equals or one.device == keys[pid]]
        clocks = estimated(trace, clocks, [one for one in selected if equals or one.trouble])
    return clocks


def estimated(trace: Trace, clocks: Clocks, devices: Sequence[DeviceClock]) -> Clocks:
    """Return the clocks with those of devices as proposed; UsageError where one has no proposal."""
    for one in devices:
        check_movable(trace, one.device)
        if one.proposed_ns is None:
            raise UsageError(one.proposal)
        if one.needs_shift:
            clocks = clocks.shifted(one.key, one.proposed_ns)
    return clocks


def set_by_hand(trace: Trace, clocks: Clocks, device: Device, offset_ns: int) -> Clocks:
    """Return the clocks with a device's own set; UsageError where it has none of its own."""
    check_movable(trace, device)
    return clocks.shifted((device.source, device.pid), offset_ns)


def offset_of(text: str) -> int:
    """Return the ns of a time as typed, 250ms, or of a number of seconds; UsageError where it is none."""
    number = text.strip()
    unit = next((unit for unit in UNITS if number.endswith(unit)), "")
    try:
        seconds = Decimal(number.removesuffix(unit)) * UNITS.get(unit, 1)
    except InvalidOperation:
        seconds = Decimal("nan")
    if not seconds.is_finite():
        raise UsageError(f"give a time, such as -250ms or -0.25 (seconds), or auto, not {text!r}")
    if abs(seconds) >= FURTHEST_S:
        raise UsageError("no clock is wrong by that much")
    return round(seconds * SECOND)


def seconds_of(offset_ns: int) -> str:
    """Return a number of ns as seconds, exact: what offset_of reads."""
    return f"{Decimal(offset_ns) / SECOND:f}"


def check_movable(trace: Trace, device: Device) -> None:
    """Raise UsageError where a device shares its process with lanes of the host: no clock is its own."""
    if not _alone(trace, device):
        raise UsageError(
            f"{device.label}: its process holds lanes of the host too, so it has no clock of its own"
        )


def moved_text(trace: Trace, clocks: Clocks) -> str:
    """Return in words which devices have another clock than the trace opened with; empty where none has."""
    changed = {
        key: ns - trace.clocks.offsets.get(key, 0)
        for key, ns in clocks.offsets.items()
        if key[1] and ns != trace.clocks.offsets.get(key, 0)
    }
    if not changed:
        return ""
    names = {(device.source, device.pid): device for device in device_keys(trace).values()}
    texts = [
        f"{device_title(trace, names[key])} moved by {signed(ns)}"
        for key, ns in changed.items()
        if key in names
    ]
    return ", ".join(texts)


def signed(ns: int) -> str:
    """Return a shift with its sign: "+1.2 ms"."""
    return ("+" if ns > 0 else "") + format_ns(ns, 9)


def _alone(trace: Trace, device: Device) -> bool:
    of = (p.lanes for p in trace.processes if (p.source, p.number) == (device.source, device.process))
    lanes = [trace.lanes[at] for at in next(of, range(0))]
    return {lane.index for lane in lanes if lane.slices + lane.unclosed} <= set(device.lanes)


def _of_source(
    trace: Trace, source: int, keys: Mapping[str, Device], clocks: Clocks
) -> Iterator[DeviceClock]:
    index, launches = trace.indexes[source], trace.launches(source)
    of_process = processes_of(index, launches.kernels)
    sure = launches.is_called
    untimed = untimed_work(index, launches)
    host = _host_span(trace, source, list(keys.values()), clocks)
    for device in keys.values():
        here = of_process == device.process
        if not here.any():
            continue
        kernels, known = launches.kernels[here], sure[here]
        offset = clocks.offset(source, device.pid)
        starts = index.column("slices.start")[kernels].astype(np.int64)
        called = launches.launch[here][known]
        begun = index.column("slices.start")[called].astype(np.int64) + clocks.offset(source)
        lead: I64 = begun - starts[known] - clocks.offset(source)  # the own clock that they ask for at least
        own = offset - clocks.offset(source)
        early = lead > own
        stamped = ~np.isin(kernels, untimed)
        stampless = early & ~stamped[known]
        ends = starts + index.duration(kernels)
        extent = int(starts.min()) + offset, int(ends.max()) + offset
        distance = 0
        if host is not None and stamped.any():
            distance = _distance(int(starts[stamped].min()) + offset, int(ends[stamped].max()) + offset, host)
        stated = lead[~stampless]
        worst = int(np.argmax(lead)) if early.any() else -1
        proposed = int(stated.max()) if len(stated) else None
        needed = proposed is not None and (proposed > own or bool(distance))
        rest = np.sort((proposed if needed else own) - stated) if len(stated) else np.zeros(1, np.int64)
        yield DeviceClock(
            device,
            device_title(trace, device),
            len(lead),
            int(np.count_nonzero(early)),
            (int(kernels[known][worst]), int(called[worst])) if worst >= 0 else None,
            int(lead[worst]) - own if worst >= 0 else 0,
            int(np.count_nonzero(stampless)),
            extent,
            distance,
            proposed,
            int(rest[(len(rest) - 1) // 2]),
            int(rest[(len(rest) - 1) * 95 // 100]),
            _alone(trace, device),
        )


def _host_span(
    trace: Trace, source: int, devices: Sequence[Device], clocks: Clocks
) -> tuple[int, int] | None:
    """Return from when to when the lanes with the host's ops and calls reach; None without any."""
    index = trace.indexes[source]
    device_processes = {device.process for device in devices}
    spans = []
    for process in trace.processes:
        if process.source == source and process.number not in device_processes:
            for at in process.lanes:
                lane = trace.lanes[at]
                if lane.slices and any(category in HOST for category in lane_categories(index, lane.rows)):
                    offset = clocks.offset(source, process.pid)
                    spans.append((lane.start + offset, lane.end + offset))
    return (min(start for start, _ in spans), max(end for _, end in spans)) if spans else None


def _distance(start: int, end: int, host: tuple[int, int]) -> int:
    """Return how far [start, end) lies from the host's time, 0 unless by more than both last.

    After the host's time it must lie by more than LATE_NS, too.
    """
    distance = max(start - host[1], host[0] - end)
    if distance <= max(end - start, host[1] - host[0], LATE_NS if start >= host[1] else 0):
        return 0
    return distance if start >= host[1] else -distance
