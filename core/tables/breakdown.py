"""How a device spends its time: busy and idle, compute, communication and memory, and what overlaps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..base.intervals import Intervals, merge
from .devices import kernel_types
from .kinds import KERNEL_TYPES
from .metrics import Metric, ratio
from .schema import Column, TableSchema
from .scope import Scope
from .table import Table, Tables, row_of_object
from .work import KindRule, Work, work_of

DEVICE = (
    Column("rank", "rank", "id"),
    Column("device", "number", "id", detail=True),
    Column("label", "device", "text"),
)
DEVICES = TableSchema(
    "devices",
    "Device time",
    (
        *DEVICE,
        Column("slices", "slices", "count"),
        Column("kernel_time_ns", "kernel time", "ns"),
        Column("busy_ns", "busy", "ns"),
        Column("idle_ns", "idle", "ns"),
        Column("idle_share", "idle %", "share"),
        Column("compute_ns", "compute", "ns"),
        Column("compute_share", "compute %", "share"),
        Column("non_compute_ns", "non-compute", "ns"),
        Column("non_compute_share", "non-compute %", "share"),
        Column("comm_ns", "communication", "ns"),
        Column("memory_ns", "memory", "ns"),
        Column("comm_compute_overlap_ns", "overlap", "ns"),
        Column("comm_compute_overlap_share", "overlap %", "share"),
        Column("start_ns", "first start", "ns", moment=True, detail=True),
        Column("end_ns", "last end", "ns", moment=True, detail=True),
    ),
    keys=("rank", "label"),
    chief=("label", "rank", "busy_ns", "idle_share", "idle_ns", "compute_share"),
)
STREAMS = TableSchema(
    "streams",
    "Streams",
    (
        *DEVICE,
        Column("stream", "stream", "text"),
        Column("slices", "slices", "count"),
        Column("kernel_time_ns", "kernel time", "ns"),
        Column("busy_ns", "busy", "ns"),
        Column("idle_ns", "idle", "ns"),
        Column("sum_ns", "sum", "ns"),
    ),
)
TYPES = TableSchema(
    "types",
    "Kernel types",
    (
        *DEVICE,
        Column("type", "running", "text"),
        Column("ns", "time", "ns"),
        Column("share", "of busy", "share"),
    ),
)


@dataclass(frozen=True)
class StreamTimes:
    """The times of one stream in ns; `sum_ns` adds all durations, overlapping or not."""

    stream: str
    slices: int
    kernel_time_ns: int
    busy_ns: int
    sum_ns: int

    @property
    def idle_ns(self) -> int:
        """The time between the first start and the last end in which nothing runs."""
        return self.kernel_time_ns - self.busy_ns


@dataclass(frozen=True)
class DeviceTimes:
    """The times of one device in ns; `types` is the time during which exactly these types run.

    Keys of `types` are a type or several joined by "+", in the order of KERNEL_TYPES.
    """

    rank: int
    device: int | str
    label: str
    slices: int
    start: int
    end: int
    busy_ns: int
    compute_ns: int
    comm_ns: int
    memory_ns: int
    comm_compute_overlap_ns: int
    types: Mapping[str, int]
    streams: tuple[StreamTimes, ...]
    source: int
    longest: int  # position of the longest piece of work

    @property
    def kernel_time_ns(self) -> int:
        """From the first start to the last end."""
        return self.end - self.start

    @property
    def idle_ns(self) -> int:
        """The part of it in which nothing runs."""
        return self.kernel_time_ns - self.busy_ns

    @property
    def non_compute_ns(self) -> int:
        """The part of it in which something runs but no compute."""
        return self.kernel_time_ns - self.idle_ns - self.compute_ns

    @property
    def busy_share(self) -> float | None:
        """The busy part of the kernel time as a share of 1; None when there is none."""
        return ratio(self.busy_ns, self.kernel_time_ns)

    @property
    def idle_share(self) -> float | None:
        """The idle part of the kernel time."""
        return ratio(self.idle_ns, self.kernel_time_ns)

    @property
    def compute_share(self) -> float | None:
        """The part of the kernel time in which compute runs."""
        return ratio(self.compute_ns, self.kernel_time_ns)

    @property
    def non_compute_share(self) -> float | None:
        """The part of the kernel time in which something runs but no compute."""
        return ratio(self.non_compute_ns, self.kernel_time_ns)

    @property
    def comm_compute_overlap_share(self) -> float | None:
        """How much of the communication is hidden behind compute; None without communication."""
        return ratio(self.comm_compute_overlap_ns, self.comm_ns)


@dataclass(frozen=True)
class Breakdown:
    """The devices of a scope."""

    scope: str
    origin: int
    devices: tuple[DeviceTimes, ...]


def breakdown(scope: Scope, rule: KindRule = kernel_types) -> Breakdown:
    """Return how each device of a scope spends its time; `rule` says what compute is."""
    return Breakdown(scope.text, scope.origin, tuple(device_times(work, rule) for work in work_of(scope)))


def device_times(work: Work, rule: KindRule = kernel_types) -> DeviceTimes:
    """Return how one device spends its time."""
    kinds = work.kinds(rule)
    sets = []
    for number in range(len(KERNEL_TYPES)):
        mask = kinds == number
        sets.append(merge(work.starts[mask], work.ends[mask]))
    compute, communication, memory, _ = sets
    streams = []
    for name, rows in work.by_stream():
        starts, ends = work.starts[rows], work.ends[rows]
        span, total = int(ends.max() - starts[0]), int((ends - starts).sum())
        streams.append(StreamTimes(name, len(rows), span, merge(starts, ends).length, total))
    return DeviceTimes(
        rank=work.rank,
        device=work.number,
        label=work.title,
        slices=len(work),
        start=int(work.starts.min()),
        end=int(work.ends.max()),
        busy_ns=merge(work.starts, work.ends).length,
        compute_ns=compute.length,
        comm_ns=communication.length,
        memory_ns=memory.length,
        comm_compute_overlap_ns=communication.intersection(compute).length,
        types=exclusive(sets),
        streams=tuple(streams),
        source=work.device.source,
        longest=int(work.positions[np.argmax(work.durations)]),
    )


def exclusive(sets: list[Intervals]) -> dict[str, int]:
    """Return the ns during which exactly one combination of the types runs, for those that occur."""
    edges = np.concatenate([part for item in sets for part in (item.starts, item.ends)])
    bits = [
        np.full(len(item), sign << number, np.int64) for number, item in enumerate(sets) for sign in (1, -1)
    ]
    order = np.argsort(edges, kind="stable")
    running = np.cumsum(np.concatenate(bits)[order])[:-1]
    length = np.diff(edges[order])
    times = {}
    for mask in range(1, 1 << len(sets)):
        ns = int(length[running == mask].sum())
        if ns:
            times["+".join(name for at, name in enumerate(KERNEL_TYPES) if mask >> at & 1)] = ns
    return times


def analyse_breakdown(scope: Scope) -> Tables:
    """Return the devices, and the time by combination of types and by stream."""
    result = breakdown(scope)
    tables = {
        "devices": lambda: breakdown_table(result),
        "types": lambda: type_table(result),
        "streams": lambda: stream_table(result),
    }
    return Tables(result.scope, result.origin, tables)


def breakdown_metrics(scope: Scope) -> list[Metric]:
    """Return the times of all devices together."""
    devices = breakdown(scope).devices
    sums = {
        "kernel_time": sum(device.kernel_time_ns for device in devices),
        "busy": sum(device.busy_ns for device in devices),
        "idle": sum(device.idle_ns for device in devices),
        "compute": sum(device.compute_ns for device in devices),
        "comm": sum(device.comm_ns for device in devices),
        "memory": sum(device.memory_ns for device in devices),
        "overlap": sum(device.comm_compute_overlap_ns for device in devices),
    }
    return [
        Metric("device.count", "count", len(devices)),
        *(Metric(f"device.{key}", "ns", ns) for key, ns in sums.items()),
        Metric("device.busy_share", "share", ratio(sums["busy"], sums["kernel_time"])),
        Metric("device.overlap_share", "share", ratio(sums["overlap"], sums["comm"])),
    ]


def breakdown_table(result: Breakdown) -> Table:
    """Return a row per device; the jump leads to its longest piece of work."""
    rows = [
        row_of_object(
            DEVICES.columns, device, start_ns=device.start - result.origin, end_ns=device.end - result.origin
        )
        for device in result.devices
    ]
    jumps = [(device.source, device.longest) for device in result.devices]
    return Table.from_rows(DEVICES, result.scope, rows, jumps)


def type_table(result: Breakdown) -> Table:
    """Return a row per device and combination of types, by the time in which exactly these run."""
    rows = [
        {**row_of_object(DEVICE, device), "type": types, "ns": ns, "share": ns / device.busy_ns}
        for device in result.devices
        for types, ns in sorted(device.types.items(), key=lambda item: -item[1])
    ]
    return Table.from_rows(TYPES, result.scope, rows)


def stream_table(result: Breakdown) -> Table:
    """Return a row per stream."""
    rows = [
        row_of_object(STREAMS.columns, stream, **row_of_object(DEVICE, device))
        for device in result.devices
        for stream in device.streams
    ]
    return Table.from_rows(STREAMS, result.scope, rows)
