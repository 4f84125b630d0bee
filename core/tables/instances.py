"""Every run of a kernel: time, duration, stream and launch arguments; and the spread of durations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from ..base.arrays import F64, I64, AnyArray
from ..base.ids import SliceId
from ..base.pattern import Pattern
from ..base.progress import CancelledCallback
from ..base.short_names import short_name
from ..index.store import Index
from ..query.promoted_terms import argument_values
from ..query.scan import json_value_text
from ..read.promoted import PROMOTED, Kind
from .attribution import STEP, work_by_steps
from .devices import kernel_types
from .groups import Groups, concatenated
from .kinds import KERNEL_TYPES
from .schema import ARG, Column, TableSchema
from .scope import Scope
from .step_spans import StepSpans, step_spans
from .table import Table
from .work import Work, work_of

Order: TypeAlias = Literal["slowest", "time"]

COLUMNS = (
    Column("start_ns", "at", "ns", moment=True),
    Column("duration_ns", "duration", "ns"),
    Column("name", "kernel", "text", is_name=True),
    Column("rank", "rank", "text"),
    Column("device", "device", "text"),
    Column("stream", "stream", "text"),
)
LAUNCHED_WITH = (
    Column("grid", "grid", "text"),
    Column("block", "block", "text"),
    Column("registers", "registers", "number"),
    Column("shared_memory", "shared memory", "bytes"),
    Column("blocks_per_sm", "blocks/SM", "number"),
    Column("occupancy", "occupancy %", "number"),
    Column("bytes", "bytes", "bytes"),
    Column("bandwidth", "GB/s", "number"),
)
"""Launch arguments of kernels and copies: each is a column if one of the listed runs has it."""
BINS = 12


def instances(
    scope: Scope,
    name: str = "",
    order: Order = "slowest",
    limit: int | None = None,
    arguments: Sequence[str] = (),
) -> tuple[Table, Table]:
    """Return (the runs of the kernels whose name or short name matches, a histogram of their durations).

    `name` is a regular expression; `arguments` are shown beside what is known of every launch. Times are cut
    to the scope's range; a run's step is the one in which it starts. The histogram and the totals hold all
    runs, whatever the limit.
    """
    works = work_of(scope)
    pattern = Pattern(name, ignore_case=True)
    rows = [_matching(work, pattern, scope.cancelled) for work in works]
    owner = np.repeat(np.arange(len(works)), [len(at) for at in rows])
    row = np.concatenate(rows) if works else np.empty(0, np.int64)
    starts = concatenated([work.starts[at] for work, at in zip(works, rows)])
    durations = concatenated([work.durations[at] for work, at in zip(works, rows)])
    ranked = np.lexsort((starts, -durations)) if order == "slowest" else np.argsort(starts, kind="stable")
    ranked = ranked[:limit]
    owner, row = owner[ranked], row[ranked]
    origin = scope.origin
    data: dict[str, AnyArray | list[str]] = {
        "start_ns": starts[ranked] - origin,
        "duration_ns": durations[ranked],
    }
    picked = [(works[o], p) for o, p in zip(owner.tolist(), row.tolist())]
    data["name"] = [work.index.string(int(work.names[at])) for work, at in picked]
    data["rank"] = [str(work.rank) for work, _ in picked]
    data["device"] = [work.title for work, _ in picked]
    data["stream"] = [work.stream_names[int(work.streams[at])] for work, at in picked]
    columns: tuple[Column, ...] = COLUMNS
    if (steps := step_spans(scope.trace, scope.clocks, scope.steps or None)) is not None:
        own_steps = _steps_of_runs(scope, steps, picked, starts[ranked]).tolist()
        data["step"] = [steps.labels[at] if at >= 0 else "" for at in own_steps]
        columns = (*columns[:2], STEP, *columns[2:])
    for column in LAUNCHED_WITH:
        values = _argument(column, picked)
        if values is not None:
            data[column.key] = values
            columns = (*columns, column)
    for key in arguments:
        columns = (*columns, Column(f"{ARG}{key}", key, "text"))
        data[columns[-1].key] = _texts(works, owner, row, key)
    table = Table.from_arrays(
        TableSchema("instances", "Runs", columns),
        scope.text,
        data,
        totals={"count": len(durations), "total_ns": int(durations.sum())},
        positions=np.array([work.positions[at] for work, at in picked], np.uint32),
        sources=np.array([work.device.source for work, _ in picked], np.int64),
    )
    return table, _histogram(scope, durations)


@dataclass(frozen=True)
class LongWork:
    """A slice of device work and how long it took in a scope, ns."""

    id: SliceId
    duration: int


def longest_work(scope: Scope, count: int) -> list[LongWork]:
    """Return the longest runs of kernels in a scope, the longest first, of equals the earliest; where there
    are only copies, the longest of these. Raises Cancelled.
    """
    works = work_of(scope)
    kernels = [work for work in (work.take(np.flatnonzero(~_is_copy(work))) for work in works) if len(work)]
    candidates = []
    for work in kernels or works:
        lengths = work.durations
        rows = np.arange(len(lengths))
        if len(lengths) > count:
            least = np.partition(lengths, len(lengths) - count)[len(lengths) - count]
            rows = np.flatnonzero(lengths >= least)
        rows = rows[np.lexsort((work.starts[rows], -lengths[rows]))[:count]]
        ordinals = work.index.column("slices.ordinal")[work.positions[rows]]
        source = work.device.source
        candidates += [
            (-length, start, source, ordinal)
            for length, start, ordinal in zip(
                lengths[rows].tolist(), work.starts[rows].tolist(), ordinals.tolist()
            )
        ]
    candidates.sort()
    return [LongWork(SliceId(source, ordinal), -length) for length, _, source, ordinal in candidates[:count]]


def _is_copy(work: Work) -> AnyArray:
    """Tell which slices copy or set memory, by their category or name."""
    kinds = kernel_types(work.index, work.names, work.categories)
    is_copy: AnyArray = kinds == KERNEL_TYPES.index("memory")
    return is_copy


def _matching(work: Work, pattern: Pattern, cancelled: CancelledCallback) -> I64:
    """Return the indexes of the slices with a matching name; each distinct name is tested once."""
    which, numbers = work.distinct_names
    names = work.index.strings(numbers)
    hits = pattern.matches_in(names, cancelled)
    short_hits = pattern.matches_in([short_name(raw) for raw in names], cancelled)
    good = np.array(hits, np.bool_) | np.array(short_hits, np.bool_)
    return np.flatnonzero(good[which]) if len(which) else np.empty(0, np.int64)


def _steps_of_runs(scope: Scope, steps: StepSpans, runs: list[tuple[Work, int]], starts: I64) -> I64:
    """Return the place of the step of each run: that of its launch, by window that in which it starts."""
    if scope.attribute == "window":
        return steps.holding(starts)
    launched = work_by_steps(scope, steps)
    rows = [launched.steps_at(work.device.source, work.positions[[at]]) for work, at in runs]
    return np.concatenate(rows) if rows else np.empty(0, np.int64)


def _argument(column: Column, picked: list[tuple[Work, int]]) -> AnyArray | list[str] | None:
    """Return a promoted argument of these slices, None where no slice has it."""
    kind = next(promoted.kind for promoted in PROMOTED if promoted.key == column.key)
    values = [work.index.promoted(column.key, int(work.positions[at])) for work, at in picked]
    if all(value is None for value in values):
        return None
    if kind is Kind.TEXT:
        indexes: list[Index] = [work.index for work, _ in picked]
        return ["" if v is None else index.string(int(v)) for index, v in zip(indexes, values)]
    return np.array([np.nan if value is None else value for value in values], np.float64)


def _texts(works: tuple[Work, ...], owner: I64, row: I64, key: str) -> list[str]:
    """Return any argument of these slices as text, empty where there is none."""
    texts = [""] * len(owner)
    for number, work in enumerate(works):
        mine = np.flatnonzero(owner == number)
        values = argument_values(work.index, key, work.positions[row[mine]])
        for at, value in zip(mine.tolist(), values):
            texts[at] = "" if value is None else json_value_text(value)
    return texts


def _histogram(scope: Scope, durations: I64) -> Table:
    """Return how many runs fall in each of a few classes of duration, even on a logarithmic scale."""
    columns = (
        Column("from_ns", "from", "ns"),
        Column("to_ns", "below", "ns"),
        Column("count", "runs", "count"),
        Column("total_ns", "total", "ns"),
    )
    edges = np.empty(0, np.int64)
    if len(durations):
        low, high = max(1, int(durations.min())), int(durations.max()) + 1
        spaced: F64 = np.geomspace(low, max(high, low + 1), BINS + 1)
        edges = np.unique(np.rint(spaced).astype(np.int64))
        edges[0], edges[-1] = min(int(durations.min()), low), max(high, low + 1)
    bins = max(0, len(edges) - 1)
    which = np.searchsorted(edges, durations, "right") - 1
    groups = Groups(which.astype(np.int64), bins)
    data = {
        "from_ns": edges[:-1],
        "to_ns": edges[1:],
        "count": groups.counts,
        "total_ns": groups.sums(durations),
    }
    return Table.from_arrays(TableSchema("histogram", "Durations", columns), scope.text, data)
