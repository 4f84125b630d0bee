"""How a device spends its time: busy and idle, compute, communication and memory, and what overlaps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...base.arrays import I64, Intervals, sum_of
from ..frame.frame import Frame, FrameGroups
from ..frame.frame_columns import NEVER, timed_work
from ..frame.kinds import KERNEL_TYPES
from ..frame.metrics import Metric, ratio
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.shape import Aggregate, Shape, flagged, n, ratio_of, text, total
from ..frame.table import Table, Tables
from ..frame.table_rows import Values
from ..frame.work_device import WorkDevice
from .device_state import state_table
from .untrusted_periods import unknown_time


def _of_device(value: Callable[[WorkDevice], int | str]) -> Aggregate:
    def answers(g: FrameGroups) -> Values:
        values = [value(g.frame.devices[row]) for row in g.frame.device_row[g.first()].tolist()]
        return (
            list(map(str, values))
            if any(isinstance(one, str) for one in values)
            else np.array(values, np.int64)
        )

    return Aggregate(answers, "id")


def covered(*types: str) -> Aggregate:
    """Take the time in which work of one of these types runs, or any work."""

    def of(g: FrameGroups) -> I64:
        unions = (part.union(part.is_type(*types) if types else slice(None)) for part in g.parts)
        return np.array([union.length for union in unions], np.int64)

    return Aggregate(lambda g: g.once(types, of))


def less(whole: Aggregate, part: Aggregate) -> Aggregate:
    """Subtract one from another."""
    return Aggregate(lambda g: np.asarray(whole.of(g)) - np.asarray(part.of(g)))


def _unknown(g: FrameGroups) -> I64:
    """Return for how long it is not known of each group whether its device did nothing, ns."""

    def of(part: Frame) -> int:
        time = unknown_time(part.scope, part.first_device.device)
        if not len(time):
            return 0
        return time.clipped(int(part.start.min()), int(part.end.max())).without(part.union()).length

    times: I64 = g.once(_unknown, lambda groups: np.array([of(part) for part in groups.parts], np.int64))
    return times


START, END = Aggregate(lambda g: g.least(g.frame.start)), Aggregate(lambda g: g.most(g.frame.end, NEVER))
BUSY, COMPUTE, COMMUNICATION = covered(), covered("compute"), covered("communication")
SPAN, NON_COMPUTE = less(less(END, START), Aggregate(_unknown)), less(BUSY, COMPUTE)
IDLE = less(SPAN, BUSY)
OVERLAP = less(COMMUNICATION, less(covered("compute", "communication"), COMPUTE))
DEVICE: Mapping[str, Aggregate | tuple[str, Aggregate]] = {
    "rank": _of_device(lambda device: device.rank),
    "device": ("number", flagged(_of_device(lambda device: device.number), "detail")),
    "label": ("device", text("device")),
}
DEVICES = Shape(
    "devices",
    "Device time",
    {
        **DEVICE,
        "slices": n(),
        "kernel_time_ns": SPAN,
        "busy_ns": BUSY,
        "idle_ns": IDLE,
        "idle_share": ("idle %", ratio_of(IDLE, SPAN)),
        "compute_ns": COMPUTE,
        "compute_share": ("compute %", ratio_of(COMPUTE, SPAN)),
        "non_compute_ns": ("non-compute", NON_COMPUTE),
        "non_compute_share": ("non-compute %", ratio_of(NON_COMPUTE, SPAN)),
        "comm_ns": ("communication", COMMUNICATION),
        "memory_ns": covered("memory"),
        "comm_compute_overlap_ns": ("overlap", OVERLAP),
        "comm_compute_overlap_share": ("overlap %", ratio_of(OVERLAP, COMMUNICATION)),
        "start_ns": ("first start", flagged(START, "moment", "detail")),
        "end_ns": ("last end", flagged(END, "moment", "detail")),
    },
    {
        "keys": ("rank", "label"),
        "chief": ("label", "rank", "busy_ns", "idle_share", "idle_ns", "compute_share"),
    },
)
STREAMS = Shape(
    "streams",
    "Streams",
    {
        **DEVICE,
        "stream": text("stream_name"),
        "slices": n(),
        "kernel_time_ns": SPAN,
        "busy_ns": BUSY,
        "idle_ns": IDLE,
        "sum_ns": total("dur"),
    },
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
        ns = sum_of(length[running == mask])
        if ns:
            times["+".join(name for at, name in enumerate(KERNEL_TYPES) if mask >> at & 1)] = ns
    return times


def analyse_breakdown(scope: Scope) -> Tables:
    """Return the devices, what they did, and the time by combination of types and by stream."""
    work = timed_work(scope)
    tables = {
        "devices": lambda: device_table(work),
        "states": lambda: state_table(scope),
        "types": lambda: type_table(work),
        "streams": lambda: STREAMS.of(work.group("stream")),
    }
    return Tables(work.scope.text, scope.origin, tables)


def breakdown_metrics(scope: Scope) -> list[Metric]:
    """Return the times of all devices together."""
    work = timed_work(scope)
    devices, untimed = device_table(work), work.scope.untimed
    keys = {key: key for key in ("kernel_time", "busy", "idle", "compute", "comm", "memory")}
    keys["overlap"] = "comm_compute_overlap"
    sums = {name: sum_of(devices.numbers(f"{key}_ns")) for name, key in keys.items()}
    return [
        Metric("device.count", "count", len(devices)),
        *([Metric("device.untimed", "count", untimed)] if untimed else ()),
        *(Metric(f"device.{key}", "ns", ns) for key, ns in sums.items()),
        Metric("device.busy_share", "share", ratio(sums["busy"], sums["kernel_time"])),
        Metric("device.overlap_share", "share", ratio(sums["overlap"], sums["comm"])),
    ]


def device_table(work: Frame) -> Table:
    """Return a row per device; the jump leads to its longest piece of work."""
    return DEVICES.of(work.group("device_row"), jump="dur")


def type_table(work: Frame) -> Table:
    """Return a row per device and combination of types, by the time in which exactly these run."""
    rows: list[dict[str, Any]] = []
    for part in work.by("device_row"):
        device, busy_ns = part.first_device, part.union().length
        times = exclusive([part.union(part.type == number) for number in range(len(KERNEL_TYPES))])
        names = {"rank": device.rank, "device": device.number, "label": device.title}
        rows += [
            {**names, "type": types, "ns": ns, "share": ns / busy_ns}
            for types, ns in sorted(times.items(), key=lambda item: -item[1])
        ]
    more = (
        Column("type", "running", "text"),
        Column("ns", "time", "ns"),
        Column("share", "of busy", "share"),
    )
    schema = TableSchema("types", "Kernel types", (*STREAMS.schema.columns[:3], *more))
    return Table.from_rows(schema, work.scope.text, rows)
