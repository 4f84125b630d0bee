"""From the launch call to the kernel: how long the call took, how long the work waited, how many queued."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..base.arrays import I64, U32, AnyArray
from ..index.format import NONE
from .groups import Groups, Labels, concatenated
from .host import launch_sides
from .metrics import Metric
from .scope import Scope
from .table import Column, Table, Tables, Values
from .work import Work, work_of

LONG_CALL_NS = 50_000
LONG_DELAY_NS = 100_000
"""Beyond these a call or a delay is an outlier (HTA's limits)."""
OUTLIERS = 20
"""Longest delays that are listed where no limit says otherwise."""

COLUMNS = (
    Column("name", "launch call", "text", is_name=True),
    Column("count", "launches", "count"),
    Column("call_ns", "calls", "ns"),
    Column("call_mean_ns", "mean", "ns"),
    Column("call_max_ns", "max", "ns"),
    Column("kernel_ns", "kernels", "ns"),
    Column("kernel_mean_ns", "mean", "ns"),
    Column("delay_ns", "delay", "ns"),
    Column("delay_mean_ns", "mean", "ns"),
    Column("delay_median_ns", "median", "ns"),
    Column("delay_p95_ns", "p95", "ns"),
    Column("delay_max_ns", "max", "ns"),
    Column("short_kernels", "shorter than their call", "count"),
    Column("long_calls", "call > 50 µs", "count"),
    Column("long_delays", "delay > 100 µs", "count"),
)
QUEUE_COLUMNS = (
    Column("rank", "rank", "text"),
    Column("device", "device", "text"),
    Column("stream", "stream", "text"),
    Column("count", "changes", "count"),
    Column("mean", "mean of changes", "number"),
    Column("mean_over_time", "mean over time", "number"),
    Column("max", "longest", "count"),
)
OUTLIER_COLUMNS = (
    Column("start_ns", "at", "ns", moment=True),
    Column("kernel", "kernel", "text", is_name=True),
    Column("launch", "launch call", "text", is_name=True),
    Column("delay_ns", "delay", "ns"),
    Column("call_ns", "call", "ns"),
    Column("kernel_ns", "kernel", "ns"),
    Column("rank", "rank", "text"),
    Column("device", "device", "text"),
    Column("stream", "stream", "text"),
)
STATISTICS_COLUMNS = (
    Column("of", "of", "text"),
    Column("total_ns", "total", "ns"),
    Column("mean_ns", "mean", "ns", statistic=True),
    Column("median_ns", "median", "ns", statistic=True),
    Column("p95_ns", "p95", "ns", statistic=True),
    Column("min_ns", "min", "ns", statistic=True),
    Column("max_ns", "max", "ns", statistic=True),
)


@dataclass(frozen=True)
class DeviceLaunches:
    """The work of one device whose launch is known and which starts in the range, columns of equal length.

    Times are whole ones in ns (never cut), starts in trace time; `delays` = max(0, kernel start - call end).
    """

    work: Work
    kernels: U32
    launches: U32
    streams: AnyArray
    call_starts: I64
    calls: I64
    kernel_starts: I64
    kernel_times: I64
    without: int  # slices whose launch the trace does not tell

    @cached_property
    def delays(self) -> I64:
        """How long each piece of work waited after its call was done."""
        waited: I64 = np.maximum(0, self.kernel_starts - self.call_starts - self.calls)
        return waited

    def queue(self, stream: str, *, finished: bool = False) -> tuple[I64, I64]:
        """Return (times, launches called but not yet started or `finished`) of one stream, by change."""
        mask = self.streams == self.work.stream_names.index(stream)
        until = self.kernel_starts + self.kernel_times if finished else self.kernel_starts
        times = np.concatenate([self.call_starts[mask], until[mask]])
        steps = np.repeat(np.array([1, -1], np.int64), int(mask.sum()))
        order = np.argsort(times, kind="stable")  # a launch before a start at the same ns
        return times[order], np.cumsum(steps[order])


@dataclass(frozen=True)
class LaunchTimes:
    """The launches of all devices of a scope."""

    scope: str
    origin: int
    devices: tuple[DeviceLaunches, ...]

    @property
    def calls(self) -> I64:
        """How long each call took, over all devices."""
        return concatenated([device.calls for device in self.devices])

    @property
    def kernel_times(self) -> I64:
        """How long the work of each call took, over all devices."""
        return concatenated([device.kernel_times for device in self.devices])

    @property
    def delays(self) -> I64:
        """How long each piece of work waited after its call was done, over all devices."""
        return concatenated([device.delays for device in self.devices])


def analyse_launches(scope: Scope, limit: int | None = None) -> Tables:
    """Return the launches by call, the queues of the streams, the longest delays, and the sums of all."""
    found = launches(scope)
    tables = {
        "launches": lambda: launch_table(found),
        "queues": lambda: queue_table(found),
        "outliers": lambda: outlier_table(found, limit or OUTLIERS),
        "statistics": lambda: statistics_table(found),
    }
    return Tables(found.scope, found.origin, tables)


def launch_metrics(scope: Scope) -> list[Metric]:
    """Return how many launches there are, how long their calls take and how long their work waits."""
    found = launches(scope)
    metrics = [Metric("launches.calls", "count", len(found.calls))]
    for key, values in (("call", found.calls), ("delay", found.delays)):
        of_key = _statistics(values)
        metrics += [
            Metric(f"launches.{key}.{stat}", "ns", of_key[f"{stat}_ns"]) for stat in ("median", "p95", "max")
        ]
    return metrics


def launches(scope: Scope) -> LaunchTimes:
    """Return the launches of the device work that starts in a scope, joined by flow, else by correlation."""
    found = []
    for work in work_of(scope):
        side = launch_sides(scope, work)
        index = work.index
        # Cut at the edge, a slice's start is not its own.
        whole = np.ones(len(work), np.bool_)
        if scope.range is not None:
            offset = scope.clocks.offset(work.device.source, work.device.pid)
            own = index.column("slices.start")[work.positions] + offset
            whole = (own == work.starts) | scope.is_whole(work.device.source, work.positions.astype(np.int64))
        known = whole & (side.launches != NONE)
        calls = index.duration(side.launches[known])
        found.append(
            DeviceLaunches(
                work,
                work.positions[known],
                side.launches[known],
                work.streams[known],
                side.starts[known],
                calls,
                work.starts[known],
                index.duration(work.positions[known]),
                int(whole.sum() - known.sum()),
            )
        )
    return LaunchTimes(scope.text, scope.origin, tuple(found))


def launch_table(found: LaunchTimes) -> Table:
    """Return a row per launch call's name, most launches first."""
    labels = Labels()
    codes = [labels.of_slices(device.work.index, device.launches) for device in found.devices]
    groups = Groups(concatenated(codes), len(labels))
    call, kernel, delay = found.calls, found.kernel_times, found.delays
    calls, kernels, of_delay = groups.sums(call), groups.sums(kernel), groups.statistics(delay)
    count = of_delay["count"]
    data: dict[str, Values] = {
        "name": list(labels),
        "count": count,
        "call_ns": calls,
        "call_mean_ns": calls / count,
        "call_max_ns": groups.most(call),
        "kernel_ns": kernels,
        "kernel_mean_ns": kernels / count,
        "delay_ns": of_delay["total_ns"],
        "delay_mean_ns": of_delay["mean_ns"],
        "delay_median_ns": of_delay["median_ns"],
        "delay_p95_ns": of_delay["p95_ns"],
        "delay_max_ns": of_delay["max_ns"],
        "short_kernels": groups.counts_where(kernel < call),
        "long_calls": groups.counts_where(call > LONG_CALL_NS),
        "long_delays": groups.counts_where(delay > LONG_DELAY_NS),
    }
    positions = concatenated([device.kernels for device in found.devices], np.uint32)
    sources = np.repeat(
        np.array([device.work.device.source for device in found.devices], np.int64),
        [len(device.kernels) for device in found.devices],
    )
    return Table(
        "launches",
        "Launches",
        found.scope,
        COLUMNS,
        data,
        {
            "count": len(delay),
            "without_launch": sum(device.without for device in found.devices),
            "short_kernels": int((kernel < call).sum()),
            "long_calls": int((call > LONG_CALL_NS).sum()),
            "long_delays": int((delay > LONG_DELAY_NS).sum()),
        },
        positions=positions[of_delay["longest"]],
        sources=sources[of_delay["longest"]],
    ).sort("count")


def statistics_table(found: LaunchTimes) -> Table:
    """Return a row for all calls, one for what they launched and one for the delays in between."""
    rows = [
        {"of": "call", **_statistics(found.calls)},
        {"of": "kernel", **_statistics(found.kernel_times)},
        {"of": "delay", **_statistics(found.delays)},
    ]
    columns = STATISTICS_COLUMNS
    return Table.from_rows("statistics", "Statistics", found.scope, columns, rows, is_drawn=False)


def queue_table(found: LaunchTimes) -> Table:
    """Return a row per stream: how many launches were called but not yet started."""
    rows = []
    for device in found.devices:
        for stream in device.work.stream_names:
            times, lengths = device.queue(stream)
            if len(times):
                held = np.diff(times)
                span = int(times[-1] - times[0])
                mean = int((lengths[:-1] * held).sum()) / span if span else None
                rows.append(
                    {
                        "rank": str(device.work.rank),
                        "device": device.work.title,
                        "stream": stream,
                        "count": len(times),
                        "mean": float(lengths.mean()),
                        "mean_over_time": mean,
                        "max": int(lengths.max()),
                    }
                )
    return Table.from_rows("queues", "Queue length", found.scope, QUEUE_COLUMNS, rows)


def outlier_table(found: LaunchTimes, limit: int = 20) -> Table:
    """Return the launches whose work waited longest, beyond the limit of an outlier."""
    ranked = []
    for number, device in enumerate(found.devices):
        delays = device.delays
        least = np.partition(delays, -limit)[-limit] if len(delays) > limit else 0
        hits = np.flatnonzero(delays >= max(least, LONG_DELAY_NS + 1))
        hits = hits[np.argsort(-delays[hits], kind="stable")[:limit]]
        ranked += [(-int(delays[at]), number, int(at)) for at in hits]
    ranked = sorted(ranked)[:limit]
    rows = [_outlier(found, found.devices[number], at) for _, number, at in ranked]
    jumps = [(found.devices[n].work.device.source, int(found.devices[n].kernels[at])) for _, n, at in ranked]
    return Table.from_rows("outliers", "Longest launch delays", found.scope, OUTLIER_COLUMNS, rows, jumps)


def _outlier(found: LaunchTimes, device: DeviceLaunches, at: int) -> dict[str, Any]:
    index = device.work.index
    kernel, launch = index.strings(
        index.column("slices.name")[np.array([device.kernels[at], device.launches[at]], np.int64)]
    )
    return {
        "start_ns": int(device.kernel_starts[at]) - found.origin,
        "kernel": kernel,
        "launch": launch,
        "delay_ns": int(device.delays[at]),
        "call_ns": int(device.calls[at]),
        "kernel_ns": int(device.kernel_times[at]),
        "rank": str(device.work.rank),
        "device": device.work.title,
        "stream": device.work.stream_names[int(device.streams[at])],
    }


def _statistics(values: I64) -> dict[str, int | float | None]:
    if not len(values):
        return {column.key: None for column in STATISTICS_COLUMNS[1:]} | {"total_ns": 0}
    total = int(values.sum())
    median, high = np.quantile(values, (0.5, 0.95)).tolist()
    return {
        "total_ns": total,
        "mean_ns": total / len(values),
        "median_ns": median,
        "p95_ns": high,
        "min_ns": int(values.min()),
        "max_ns": int(values.max()),
    }
