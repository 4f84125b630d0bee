"""From the launch call to the kernel: how long the call took, how long the work waited, how many queued.

A launch is a call, whatever it starts: a graph launch that started 544 kernels is one launch, and its time
counts once. The delay of a call runs from its end to the start of its first work, and has two parts:
*waiting*, in which the stream of that work was busy with earlier work, and *latency*, the rest. HTA counts
pairs of call and work instead; its numbers are those of the table `pairs`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..base.arrays import I64, U32, AnyArray
from ..index.format import NONE
from .groups import Groups, Labels, concatenated
from .host import launch_sides
from .metrics import Metric
from .schema import Column, TableSchema
from .scope import Scope
from .table import Table, Tables, Values
from .work import Work, work_of

LONG_CALL_NS = 50_000
LONG_DELAY_NS = 100_000
"""Beyond these a call or a delay is an outlier (HTA's limits)."""
OUTLIERS = 20
"""How many of the longest delays are listed unless --limit says otherwise."""

LAUNCHES = TableSchema(
    "launches",
    "Launches",
    (
        Column("name", "launch call", "text", is_name=True),
        Column("count", "launches", "count"),
        Column("call_ns", "calls", "ns"),
        Column("call_mean_ns", "call mean", "ns"),
        Column("call_max_ns", "call max", "ns"),
        Column("kernels", "kernels", "count"),
        Column("kernel_ns", "kernel time", "ns"),
        Column("kernel_mean_ns", "kernel mean", "ns"),
        Column("delay_ns", "delay", "ns"),
        Column("waiting_ns", "of it waiting", "ns"),
        Column("latency_ns", "latency", "ns"),
        Column("delay_mean_ns", "delay mean", "ns"),
        Column("delay_median_ns", "delay median", "ns"),
        Column("delay_p95_ns", "delay p95", "ns"),
        Column("delay_max_ns", "delay max", "ns"),
        Column("short_kernels", "shorter than their call", "count"),
        Column("long_calls", "call > 50 µs", "count"),
        Column("long_delays", "delay > 100 µs", "count"),
    ),
    chief=("name", "delay_median_ns", "call_ns", "count"),
)
QUEUES = TableSchema(
    "queues",
    "Queue length",
    (
        Column("rank", "rank", "text"),
        Column("device", "device", "text"),
        Column("stream", "stream", "text"),
        Column("count", "changes", "count"),
        Column("mean", "mean of changes", "number"),
        Column("mean_over_time", "mean over time", "number"),
        Column("max", "longest", "count"),
    ),
)
LONGEST_DELAYS = TableSchema(
    "outliers",
    "Longest launch delays",
    (
        Column("start_ns", "at", "ns", moment=True),
        Column("kernel", "kernel", "text", is_name=True),
        Column("launch", "launch call", "text", is_name=True),
        Column("delay_ns", "delay", "ns"),
        Column("waiting_ns", "of it waiting", "ns"),
        Column("call_ns", "call time", "ns"),
        Column("kernel_ns", "kernel time", "ns"),
        Column("rank", "rank", "text"),
        Column("device", "device", "text"),
        Column("stream", "stream", "text"),
    ),
)
PAIRS = TableSchema(
    "pairs",
    "Pairs",
    (
        Column("count", "pairs", "count"),
        Column("call_ns", "calls", "ns"),
        Column("kernel_ns", "kernels", "ns"),
        Column("delay_ns", "delay", "ns"),
        Column("short_kernels", "shorter than their call", "count"),
        Column("long_calls", "call > 50 µs", "count"),
        Column("long_delays", "delay > 100 µs", "count"),
    ),
    is_drawn=False,
)
STATISTICS = TableSchema(
    "statistics",
    "Statistics",
    (
        Column("of", "of", "text"),
        Column("total_ns", "total", "ns"),
        Column("mean_ns", "mean", "ns", statistic=True),
        Column("median_ns", "median", "ns", statistic=True),
        Column("p95_ns", "p95", "ns", statistic=True),
        Column("min_ns", "min", "ns", statistic=True),
        Column("max_ns", "max", "ns", statistic=True),
    ),
    is_drawn=False,
)


@dataclass(frozen=True, eq=False)
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
    free_from: I64  # when the stream had done all that began there before, trace time; the least int64: never
    without: int  # slices whose launch the trace does not tell
    ambiguous: int  # whose launch is doubtful: another is as likely, or it begins after its work

    @cached_property
    def delays(self) -> I64:
        """How long each piece of work waited after its call was done."""
        waited: I64 = np.maximum(0, self.kernel_starts - self.call_starts - self.calls)
        return waited

    @cached_property
    def waiting(self) -> I64:
        """The part of each delay in which the stream was busy with earlier work."""
        ends = self.call_starts + self.calls
        free = np.minimum(np.maximum(self.free_from, ends), self.kernel_starts)
        waited: I64 = np.maximum(0, free - ends)
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

    @cached_property
    def pairs(self) -> Pairs:
        """Each piece of work with its call, over all devices."""
        devices = self.devices
        sources = [np.full(len(device.kernels), device.work.device.source, np.int64) for device in devices]
        return Pairs(
            concatenated(sources),
            concatenated([device.launches for device in devices], np.uint32),
            concatenated([device.kernels for device in devices], np.uint32),
            concatenated([device.calls for device in devices]),
            concatenated([device.kernel_starts for device in devices]),
            concatenated([device.kernel_times for device in devices]),
            concatenated([device.delays for device in devices]),
            concatenated([device.waiting for device in devices]),
        )

    @cached_property
    def calls(self) -> LaunchCalls:
        """Each call with what it launched, over all devices."""
        return calls_of(self.pairs)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Device work and the calls that launched it, a row per piece of work; ns."""

    sources: I64
    launches: U32  # positions
    kernels: U32  # positions
    call_ns: I64
    starts: I64  # of the work, trace time
    kernel_ns: I64
    delay_ns: I64
    waiting_ns: I64


@dataclass(frozen=True, eq=False)
class LaunchCalls:
    """Launch calls, a row per call, in order of source and position; ns."""

    sources: I64
    launches: U32  # positions
    first: I64  # the row of Pairs that holds its first work
    call_ns: I64
    kernels: I64  # pieces of work that it launched
    kernel_ns: I64  # their sum
    delay_ns: I64  # from the end of the call to the start of the first of them
    waiting_ns: I64

    @property
    def latency_ns(self) -> I64:
        """The part of the delay in which the stream had nothing earlier to do."""
        return self.delay_ns - self.waiting_ns


def calls_of(pairs: Pairs) -> LaunchCalls:
    """Return each call once, with the first of its work and the sums of all of it."""
    order = np.lexsort((pairs.kernels, pairs.starts, pairs.launches, pairs.sources))
    sources, launches = pairs.sources[order], pairs.launches[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (sources[1:] != sources[:-1]) | (launches[1:] != launches[:-1])
    begins = np.flatnonzero(fresh)
    first = order[begins]
    groups = Groups(np.cumsum(fresh) - 1, len(begins))
    return LaunchCalls(
        pairs.sources[first],
        pairs.launches[first],
        first,
        pairs.call_ns[first],
        groups.counts,
        groups.sums(pairs.kernel_ns[order]),
        pairs.delay_ns[first],
        pairs.waiting_ns[first],
    )


def analyse_launches(scope: Scope, limit: int | None = None) -> Tables:
    """Return the launches by call, the queues of the streams, the longest delays, statistics over all calls,
    and the sums over all pairs of call and work.
    """
    result = launches(scope)
    tables = {
        "launches": lambda: launch_table(result),
        "queues": lambda: queue_table(result),
        "outliers": lambda: outlier_table(result, limit or OUTLIERS),
        "statistics": lambda: statistics_table(result),
        "pairs": lambda: pair_table(result),
    }
    return Tables(result.scope, result.origin, tables)


def launch_metrics(scope: Scope) -> list[Metric]:
    """Return how many launches there are, how long their calls take and how long their work waits."""
    result = launches(scope)
    calls = result.calls
    metrics = [Metric("launches.calls", "count", len(calls.launches))]
    for key, values in (("call", calls.call_ns), ("delay", calls.delay_ns)):
        of_key = _statistics(values)
        metrics += [
            Metric(f"launches.{key}.{stat}", "ns", of_key[f"{stat}_ns"]) for stat in ("median", "p95", "max")
        ]
    return metrics


def launches(scope: Scope) -> LaunchTimes:
    """Return the launches of the device work that starts in a scope, joined by flow, else by correlation."""
    devices = []
    free = free_streams(scope)
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
        devices.append(
            DeviceLaunches(
                work,
                work.positions[known],
                side.launches[known],
                work.streams[known],
                side.starts[known],
                calls,
                work.starts[known],
                index.duration(work.positions[known]),
                free[work.device.source, work.device.process].at(work.positions[known]),
                int(whole.sum() - known.sum()),
                int(side.ambiguous[known].sum()),
            )
        )
    return LaunchTimes(scope.text, scope.origin, tuple(devices))


@dataclass(frozen=True, eq=False)
class FreeStreams:
    """For each piece of work of one device: until when earlier work kept its stream busy."""

    positions: U32  # ascending
    times: I64  # trace time; the least int64 for the first on its stream

    def at(self, positions: AnyArray) -> I64:
        """Return the time for some of the work, by position."""
        times: I64 = self.times[np.searchsorted(self.positions, positions)]
        return times


def free_streams(scope: Scope) -> dict[tuple[int, int], FreeStreams]:
    """Return by (source, process) until when streams were busy; of the whole trace, as work that began before
    a range may reach into it.
    """
    free = {}
    for work in work_of(replace(scope, range=None, where=None, work=None)):
        times = np.full(len(work), np.iinfo(np.int64).min)
        for _, rows in work.by_stream():
            times[rows[1:]] = np.maximum.accumulate(work.ends[rows])[:-1]
        free[work.device.source, work.device.process] = FreeStreams(work.positions, times)
    return free


def launch_table(times: LaunchTimes) -> Table:
    """Return a row per launch call's name, most launches first."""
    labels = Labels()
    calls, pairs = times.calls, times.pairs
    codes = np.zeros(len(calls.launches), np.int64)
    indexes = {device.work.device.source: device.work.index for device in times.devices}
    for source, index in indexes.items():
        own = np.flatnonzero(calls.sources == source)
        codes[own] = labels.of_slices(index, calls.launches[own])
    groups = Groups(codes, len(labels))
    of_delay = groups.statistics(calls.delay_ns)
    count = of_delay["count"]
    call_ns, kernels, kernel_ns = (
        groups.sums(values) for values in (calls.call_ns, calls.kernels, calls.kernel_ns)
    )
    data: dict[str, Values] = {
        "name": list(labels),
        "count": count,
        "call_ns": call_ns,
        "call_mean_ns": call_ns / count,
        "call_max_ns": groups.most(calls.call_ns),
        "kernels": kernels,
        "kernel_ns": kernel_ns,
        "kernel_mean_ns": kernel_ns / kernels,
        "delay_ns": of_delay["total_ns"],
        "waiting_ns": groups.sums(calls.waiting_ns),
        "latency_ns": groups.sums(calls.latency_ns),
        "delay_mean_ns": of_delay["mean_ns"],
        "delay_median_ns": of_delay["median_ns"],
        "delay_p95_ns": of_delay["p95_ns"],
        "delay_max_ns": of_delay["max_ns"],
        "short_kernels": groups.counts_where(calls.kernel_ns < calls.call_ns),
        "long_calls": groups.counts_where(calls.call_ns > LONG_CALL_NS),
        "long_delays": groups.counts_where(calls.delay_ns > LONG_DELAY_NS),
    }
    ambiguous = sum(device.ambiguous for device in times.devices)
    notes = (f"{ambiguous:,} launches are doubtful: another call is as likely, or it begins after its work",)
    return Table.from_arrays(
        LAUNCHES,
        times.scope,
        data,
        totals={
            "count": len(calls.launches),
            "kernels": len(pairs.kernels),
            "without_launch": sum(device.without for device in times.devices),
            "ambiguous": ambiguous,
        },
        notes=notes if ambiguous else (),
        positions=pairs.kernels[calls.first[of_delay["longest"]]],
        sources=calls.sources[of_delay["longest"]],
    ).sort("count")


def pair_table(times: LaunchTimes) -> Table:
    """Return the sums over all pairs of call and work, as HTA counts them: a call that launched three kernels
    is three pairs.
    """
    pairs = times.pairs
    row = {
        "count": len(pairs.kernels),
        "call_ns": int(pairs.call_ns.sum()),
        "kernel_ns": int(pairs.kernel_ns.sum()),
        "delay_ns": int(pairs.delay_ns.sum()),
        "short_kernels": int((pairs.kernel_ns < pairs.call_ns).sum()),
        "long_calls": int((pairs.call_ns > LONG_CALL_NS).sum()),
        "long_delays": int((pairs.delay_ns > LONG_DELAY_NS).sum()),
    }
    return Table.from_rows(PAIRS, times.scope, [row])


def statistics_table(times: LaunchTimes) -> Table:
    """Return a row for all calls, one for what they launched, and one each for the delays and their parts."""
    calls = times.calls
    rows = [
        {"of": "call", **_statistics(calls.call_ns)},
        {"of": "kernel", **_statistics(times.pairs.kernel_ns)},
        {"of": "delay", **_statistics(calls.delay_ns)},
        {"of": "waiting", **_statistics(calls.waiting_ns)},
        {"of": "latency", **_statistics(calls.latency_ns)},
    ]
    return Table.from_rows(STATISTICS, times.scope, rows)


def queue_table(launch_times: LaunchTimes) -> Table:
    """Return a row per stream: how many launches were called but not yet started."""
    rows = []
    for device in launch_times.devices:
        for stream in device.work.stream_names:
            times, lengths = device.queue(stream)
            if len(times):
                durations = np.diff(times)
                span = int(times[-1] - times[0])
                mean = int((lengths[:-1] * durations).sum()) / span if span else None
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
    return Table.from_rows(QUEUES, launch_times.scope, rows)


def outlier_table(times: LaunchTimes, limit: int = OUTLIERS) -> Table:
    """Return the calls whose first work waited longest, beyond the limit of an outlier."""
    delays, first = times.calls.delay_ns, times.calls.first
    late = np.flatnonzero(delays > LONG_DELAY_NS)
    late = late[np.argsort(-delays[late], kind="stable")[:limit]]
    edges = np.cumsum([len(device.kernels) for device in times.devices])
    rows, jumps = [], []
    for pair in first[late].tolist():
        number = int(np.searchsorted(edges, pair, "right"))
        device = times.devices[number]
        at = pair - (int(edges[number - 1]) if number else 0)
        rows.append(_outlier(times, device, at))
        jumps.append((device.work.device.source, int(device.kernels[at])))
    return Table.from_rows(LONGEST_DELAYS, times.scope, rows, jumps)


def _outlier(times: LaunchTimes, device: DeviceLaunches, at: int) -> dict[str, Any]:
    index = device.work.index
    kernel, launch = index.strings(
        index.column("slices.name")[np.array([device.kernels[at], device.launches[at]], np.int64)]
    )
    return {
        "start_ns": int(device.kernel_starts[at]) - times.origin,
        "kernel": kernel,
        "launch": launch,
        "delay_ns": int(device.delays[at]),
        "waiting_ns": int(device.waiting[at]),
        "call_ns": int(device.calls[at]),
        "kernel_ns": int(device.kernel_times[at]),
        "rank": str(device.work.rank),
        "device": device.work.title,
        "stream": device.work.stream_names[int(device.streams[at])],
    }


def _statistics(values: I64) -> dict[str, int | float | None]:
    if not len(values):
        return {column.key: None for column in STATISTICS.columns[1:]} | {"total_ns": 0}
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
