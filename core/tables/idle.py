"""Why streams were idle: every gap, whether the host was late, and the launch that ended it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.arrays import I64, U32, AnyArray
from ..base.short_names import short_name
from ..index.format import NONE
from ..query.chain import enclosing
from .host import LaunchSide, launch_sides
from .metrics import Metric
from .schema import Column, TableSchema
from .scope import Scope
from .step_spans import step_spans
from .table import Table, Tables
from .work import Work, work_of

CLASSES = ("host_wait", "kernel_wait", "other")
KERNEL_WAIT_NS = 30_000
"""A gap shorter than this (ns) is what the hardware needs between two kernels (30 µs, as in HTA)."""
GAPS = 20
"""How many of the longest gaps are listed unless --limit says otherwise."""

STREAMS = TableSchema(
    "streams",
    "Idle time",
    (
        Column("rank", "rank", "text"),
        Column("device", "device", "text"),
        Column("stream", "stream", "text"),
        Column("slices", "slices", "count"),
        Column("gaps", "gaps", "count"),
        Column("idle_ns", "idle", "ns"),
        Column("host_wait_ns", "host wait", "ns"),
        Column("host_wait_gaps", "host wait gaps", "count"),
        Column("host_wait_share", "host wait %", "share"),
        Column("kernel_wait_ns", "kernel wait", "ns"),
        Column("kernel_wait_gaps", "kernel wait gaps", "count"),
        Column("kernel_wait_share", "kernel wait %", "share"),
        Column("other_ns", "other", "ns"),
        Column("other_gaps", "other gaps", "count"),
        Column("other_share", "other %", "share"),
    ),
    chief=("stream", "device", "idle_ns", "host_wait_share", "kernel_wait_share", "rank"),
)
LONGEST_GAPS = TableSchema(
    "gaps",
    "Longest gaps",
    (
        Column("start_ns", "at", "ns", moment=True),
        Column("gap_ns", "gap", "ns"),
        Column("after", "ended by", "text", is_name=True),
        Column("class", "class", "text"),
        Column("launch", "launch", "text", is_name=True),
        Column("launch_after_ns", "launched after", "ns"),
        Column("rank", "rank", "text"),
        Column("device", "device", "text"),
        Column("stream", "stream", "text"),
        Column("before", "before it", "text", is_name=True),
        Column("host", "what the CPU did", "text"),
    ),
)


@dataclass(frozen=True, eq=False)
class StreamGaps:
    """The gaps of one stream, columns of equal length by time; `launch` is NONE where none is known.

    `launch_starts` is trace time; `kinds` are places in CLASSES.
    """

    work: Work
    stream: str
    slices: int
    starts: I64
    ends: I64
    kinds: AnyArray
    before: U32  # positions of what ended last before the gap, and of what ended it
    after: U32
    launches: U32
    launch_starts: I64

    def of_class(self, number: int) -> tuple[int, int]:
        """Return (ns, gaps) of one class."""
        lengths = (self.ends - self.starts)[self.kinds == number]
        return int(lengths.sum()), len(lengths)

    @property
    def idle_ns(self) -> int:
        """All gaps together."""
        return int((self.ends - self.starts).sum())


@dataclass(frozen=True)
class Idle:
    """The gaps of all streams of a scope."""

    scope: str
    origin: int
    streams: tuple[StreamGaps, ...]


def analyse_idle(
    scope: Scope, kernel_wait: float = 30.0, recurring: bool = False, limit: int | None = None
) -> Tables:
    """Return the gaps by stream and the longest ones, or those that recur; `kernel_wait` is in µs."""
    from .gap_groups import recurring_gaps

    result = idle(scope, round(kernel_wait * 1000))
    tables = {"streams": lambda: idle_table(result), "gaps": lambda: gap_table(result, limit or GAPS)}
    if recurring:
        steps = step_spans(scope.trace, scope.clocks, scope.steps or None)
        tables = {"idle": lambda: recurring_gaps(result, steps)}
    return Tables(result.scope, result.origin, tables)


def idle_metrics(scope: Scope) -> list[Metric]:
    """Return the idle time of all streams by its cause."""
    streams = idle(scope).streams
    metrics = []
    for number, name in enumerate(CLASSES):
        of_class = [stream.of_class(number) for stream in streams]
        metrics.append(Metric(f"idle.{name}", "ns", sum(ns for ns, _ in of_class)))
        metrics.append(Metric(f"idle.{name}_gaps", "count", sum(gaps for _, gaps in of_class)))
    return metrics


def idle(scope: Scope, kernel_wait_ns: int = KERNEL_WAIT_NS) -> Idle:
    """Return the gaps of each stream: host_wait where the launch that ended it began after the work before
    it was done, else kernel_wait below a limit, else other.

    A gap runs from the latest end so far, so it is never negative and no time counts twice.
    """
    streams = []
    for work in work_of(scope):
        side = launch_sides(scope, work)
        for stream, rows in work.by_stream():
            streams.append(stream_gaps(work, side, stream, rows, kernel_wait_ns))
    return Idle(scope.text, scope.origin, tuple(streams))


def stream_gaps(
    work: Work, side: LaunchSide, stream: str, rows: I64, kernel_wait_ns: int = KERNEL_WAIT_NS
) -> StreamGaps:
    """Return the gaps of one stream; `places` are its slices in the columns of the work, by start."""
    starts, ends = work.starts[rows], work.ends[rows]
    reach = np.maximum.accumulate(ends)
    after = np.flatnonzero(starts[1:] > reach[:-1]) + 1
    gap_starts, gap_ends = reach[after - 1], starts[after]
    # The slice that reached farthest is the last one at which the reach grew.
    grew = np.concatenate([[True], reach[1:] > reach[:-1]])
    farthest = np.maximum.accumulate(np.where(grew, np.arange(len(rows)), 0))
    known = side.launches[rows[after]] != NONE
    late = known & (side.starts[rows[after]] > gap_starts)
    return StreamGaps(
        work,
        stream,
        len(rows),
        gap_starts,
        gap_ends,
        gap_classes(late, gap_ends - gap_starts, kernel_wait_ns),
        work.positions[rows[farthest[after - 1]]],
        work.positions[rows[after]],
        side.launches[rows[after]],
        side.starts[rows[after]],
    )


def gap_classes(late: AnyArray, lengths: I64, kernel_wait_ns: int = KERNEL_WAIT_NS) -> AnyArray:
    """Return the places in CLASSES of gaps by whether the launch that ended them began in them, and by
    their length in ns (HTA's rule).
    """
    return np.where(late, 0, np.where(lengths < kernel_wait_ns, 1, 2)).astype(np.uint8)


def idle_table(result: Idle) -> Table:
    """Return a row per stream."""
    notes = ("gaps run from the latest end so far; HTA takes the previous row's end, which may be earlier",)
    rows = [_row(stream) for stream in result.streams]
    total = sum(stream.idle_ns for stream in result.streams)
    totals = {"idle_ns": total}
    return Table.from_rows(STREAMS, result.scope, rows, totals=totals, notes=notes)


def gap_table(result: Idle, limit: int = 20) -> Table:
    """Return the longest gaps of all streams, longest first."""
    ranked = sorted(
        (
            (int(stream.ends[at] - stream.starts[at]), number, at)
            for number, stream in enumerate(result.streams)
            for at in _longest(stream, limit)
        ),
        key=lambda gap: (-gap[0], gap[1], gap[2]),
    )[:limit]
    rows = [_gap_row(result.streams[number], at, result.origin) for _, number, at in ranked]
    jumps = [(result.streams[n].work.device.source, int(result.streams[n].after[at])) for _, n, at in ranked]
    return Table.from_rows(LONGEST_GAPS, result.scope, rows, jumps)


def _longest(stream: StreamGaps, limit: int) -> list[int]:
    places_by_length: list[int] = np.argsort(stream.starts - stream.ends, kind="stable")[:limit].tolist()
    return places_by_length


def _row(stream: StreamGaps) -> dict[str, Any]:
    total = stream.idle_ns
    row: dict[str, Any] = {
        "rank": str(stream.work.rank),
        "device": stream.work.title,
        "stream": stream.stream,
        "slices": stream.slices,
        "gaps": len(stream.starts),
        "idle_ns": total,
    }
    for number, name in enumerate(CLASSES):
        ns, gaps = stream.of_class(number)
        row |= {f"{name}_ns": ns, f"{name}_gaps": gaps, f"{name}_share": ns / total if total else None}
    return row


def _gap_row(stream: StreamGaps, at: int, origin: int) -> dict[str, Any]:
    index = stream.work.index
    names = index.column("slices.name")
    launch = int(stream.launches[at])
    known = launch != NONE
    around = enclosing(index, launch) if known else []
    return {
        "start_ns": int(stream.starts[at]) - origin,
        "gap_ns": int(stream.ends[at] - stream.starts[at]),
        "class": CLASSES[int(stream.kinds[at])],
        "rank": str(stream.work.rank),
        "device": stream.work.title,
        "stream": stream.stream,
        "before": index.string(int(names[int(stream.before[at])])),
        "after": index.string(int(names[int(stream.after[at])])),
        "launch": index.string(int(names[launch])) if known else "",
        "launch_after_ns": int(stream.launch_starts[at] - stream.starts[at]) if known else None,
        "host": " < ".join(short_name(index.string(int(names[at]))) for at in around[:3]),
    }
