"""From the launch call to the kernel: how long the call took, how long the work waited, how many queued.

A launch is a call, whatever it starts: a graph launch that started 544 kernels is one launch, and its time
counts once. The delay of a call runs from its end to the start of its first work, and has two parts:
*waiting*, in which the stream of that work was busy with earlier work, and *latency*, the rest. HTA counts
pairs of call and work instead; its numbers are those of the table `pairs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ...base.arrays import I64, mean_of, sum_of
from ..frame.frame import Frame
from ..frame.frame_columns import timed_work
from ..frame.metrics import Metric
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.shape import (
    ON_STREAM,
    Aggregate,
    Shape,
    first,
    flagged,
    moment,
    n,
    ratio_of,
    statistic,
    text,
    total,
)
from ..frame.table import Table, Tables

LONG_CALL_NS = 50_000
LONG_DELAY_NS = 100_000
"""Beyond these a call or a delay is an outlier (HTA's limits)."""
OUTLIERS = 20
"""How many of the longest delays are listed unless --limit says otherwise."""

COUNTS: Mapping[str, tuple[str, Aggregate]] = {
    "short_kernels": ("shorter than their call", n(lambda work: work.kernel_ns < work.call_ns)),
    "long_calls": ("call > 50 µs", n(lambda work: work.call_ns > LONG_CALL_NS)),
    "long_delays": ("delay > 100 µs", n(lambda work: work.delay > LONG_DELAY_NS)),
}
LAUNCHES = Shape(
    "launches",
    "Launches",
    {
        "name": ("launch call", flagged(text("call"), "is_name")),
        "count": ("launches", n()),
        "call_ns": ("calls", total("call_ns")),
        "call_mean_ns": statistic("mean_ns", "call_ns"),
        "call_max_ns": statistic("max_ns", "call_ns"),
        "kernels": total("kernels"),
        "kernel_ns": ("kernel time", total("kernel_ns")),
        "kernel_mean_ns": ratio_of(total("kernel_ns"), total("kernels")),
        "delay_ns": total("delay"),
        "waiting_ns": ("of it waiting", total("waiting")),
        "latency_ns": total("latency"),
        "delay_mean_ns": statistic("mean_ns", "delay"),
        "delay_median_ns": statistic("median_ns", "delay"),
        "delay_p95_ns": statistic("p95_ns", "delay"),
        "delay_max_ns": statistic("max_ns", "delay"),
        **COUNTS,
    },
    {"chief": ("name", "delay_median_ns", "call_ns", "count")},
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
LONGEST_DELAYS = Shape(
    "outliers",
    "Longest launch delays",
    {
        "start_ns": ("at", moment("start")),
        "kernel": flagged(text("name"), "is_name"),
        "launch": ("launch call", flagged(text("call"), "is_name")),
        "delay_ns": first("delay"),
        "waiting_ns": ("of it waiting", first("waiting")),
        "call_ns": ("call time", first("call_ns")),
        "kernel_ns": ("kernel time", first("full_ns")),
        **ON_STREAM,
    },
)
PAIRS = Shape(
    "pairs",
    "Pairs",
    {
        "count": ("pairs", n()),
        "call_ns": ("calls", total("call_ns")),
        "kernel_ns": ("kernels", total("kernel_ns")),
        "delay_ns": total("delay"),
        **COUNTS,
    },
    {"is_drawn": False},
)
OF_ALL = TableSchema(
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
STATISTICS = tuple(column.key for column in OF_ALL.columns[1:])


def analyse_launches(scope: Scope, limit: int | None = None) -> Tables:
    """Return launches by call, queues, the longest delays, statistics over calls, and sums over pairs."""
    work = begun_work(scope)
    pairs = launched(work)
    calls = launch_calls(pairs)
    late = calls[calls.delay > LONG_DELAY_NS].top("delay", limit or OUTLIERS)
    tables = {
        "launches": lambda: launch_table(work, calls),
        "queues": lambda: queue_table(pairs),
        "outliers": lambda: LONGEST_DELAYS.of(late.each(), jump="delay"),
        "statistics": lambda: statistics_table(pairs, calls),
        "pairs": lambda: PAIRS.of(pairs.together()),
    }
    return Tables(work.scope.text, scope.origin, tables)


def launch_metrics(scope: Scope) -> list[Metric]:
    """Return how many launches there are, how long their calls take and how long their work waits."""
    calls = launch_calls(launched(begun_work(scope)))
    metrics = [Metric("launches.calls", "count", len(calls))]
    for key, values in (("call", calls.call_ns), ("delay", calls.delay)):
        of_key = _statistics(values)
        metrics += [
            Metric(f"launches.{key}.{stat}", "ns", of_key[f"{stat}_ns"]) for stat in ("median", "p95", "max")
        ]
    return metrics


def begun_work(scope: Scope) -> Frame:
    """Return the device work that starts in a scope; until when its stream was busy is told by the whole
    trace, as work that began before a range may reach into it.
    """
    work = timed_work(scope)
    if scope.range is None and scope.where is None and scope.work is None:
        return work
    whole = timed_work(replace(scope, range=None, where=None, work=None))
    order, keys = np.argsort(_keys(whole)), _keys(work)
    reach = whole.reach[order[np.searchsorted(_keys(whole)[order], keys)]]
    return work.plus(reach=reach)[work.is_begun]


def _keys(work: Frame) -> I64:
    """Return a number for each row by which it is found in another frame."""
    return np.asarray(work.source << 32 | work.position)


def launched(work: Frame) -> Frame:
    """Return the work whose launch is known, by flow, else by correlation; `kernel_ns` is never cut."""
    pairs = work[work.launch >= 0]
    return pairs.plus(kernel_ns=pairs.full_ns)


def launch_calls(pairs: Frame) -> Frame:
    """Return each call once, by source and position: the first of its work, with the sums of all of it."""
    of_call = pairs.group("source", "launch")
    calls = of_call.one_row("start", "position")
    sums = {"kernels": of_call.counts, "kernel_ns": of_call.sums(pairs.kernel_ns)}
    return calls.plus(call=calls.names_of("launch"), **sums)


def launch_table(work: Frame, calls: Frame) -> Table:
    """Return a row per launch call, most first; delays are those of first works, jumps the longest."""
    pairs, ambiguous = sum_of(calls.kernels), int(np.count_nonzero(work.is_doubtful[work.launch >= 0]))
    notes = (f"{ambiguous:,} launches are doubtful: another call is as likely, or it begins after its work",)
    totals = {"count": len(calls), "kernels": pairs, "without_launch": len(work) - pairs}
    totals["ambiguous"] = ambiguous
    groups = calls.group("call", within="source")
    return LAUNCHES.of(groups, jump="delay", sort="count", totals=totals, notes=notes if ambiguous else ())


def statistics_table(pairs: Frame, calls: Frame) -> Table:
    """Return a row for all calls, one for what they launched, and one each for the delays and their parts."""
    of = {"call": calls.call_ns, "kernel": pairs.kernel_ns}
    of |= {"delay": calls.delay, "waiting": calls.waiting, "latency": calls.latency}
    rows = [{"of": name, **_statistics(values)} for name, values in of.items()]
    return Table.from_rows(OF_ALL, pairs.scope.text, rows)


def queue_table(pairs: Frame) -> Table:
    """Return a row per stream: how many launches were called but not yet started."""
    rows = []
    for stream in pairs.by("stream"):
        times, lengths = stream.queue(stream.start)
        span = int(times[-1] - times[0])
        high, low = (sum_of(lengths[:-1] * half) for half in np.divmod(np.diff(times), 1 << 32))
        mean = ((high << 32) + low) / span if span else None
        names = [words[:1].tolist()[0] for words in (stream.rank, stream.device, stream.stream_name)]
        values = (*names, len(times), float(lengths.mean()), mean, int(lengths.max()))
        rows.append(dict(zip((column.key for column in QUEUES.columns), values)))
    return Table.from_rows(QUEUES, pairs.scope.text, rows)


def _statistics(values: I64) -> dict[str, int | float | None]:
    if not len(values):
        return dict.fromkeys(STATISTICS) | {"total_ns": 0}
    median, high = np.quantile(values, (0.5, 0.95)).tolist()
    return dict(
        zip(STATISTICS, (sum_of(values), mean_of(values), median, high, int(values.min()), int(values.max())))
    )
