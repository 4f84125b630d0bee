"""Every run of a kernel: time, duration, stream and launch arguments; and the spread of durations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from ..base.arrays import F64, I64, AnyArray, sum_of
from ..base.ids import SliceId
from ..base.pattern import Pattern
from ..base.progress import CancelledCallback
from ..base.short_names import short_name
from ..query.groups import Groups
from ..query.scan import json_value_text
from .attribution import with_steps
from .frame import Frame, Words
from .frame_columns import row_arguments, work_of
from .schema import ARG, TableSchema, Unit, columns_from
from .scope import Scope
from .shape import Shape, first, flagged, given, moment, text
from .table import Table
from .table_rows import Values

Order: TypeAlias = Literal["slowest", "time"]

LAUNCHED_WITH: Mapping[str, tuple[str, Unit]] = {
    "grid": ("grid", "text"),
    "block": ("block", "text"),
    "registers": ("registers", "number"),
    "shared_memory": ("shared memory", "bytes"),
    "blocks_per_sm": ("blocks/SM", "number"),
    "occupancy": ("occupancy %", "number"),
    "bytes": ("bytes", "bytes"),
    "bandwidth": ("GB/s", "number"),
}
"""Launch arguments of kernels and copies: each is a column if one of the listed runs has it."""
BINS = 12


def _step_labels(runs: Frame) -> Words:
    """Return the label of each run's step, "" for none."""
    return Words(with_steps(runs).step + 1, ["", *(() if runs.steps is None else runs.steps.labels)])


RUNS = Shape(
    "instances",
    "Runs",
    {
        "start_ns": ("at", moment("start")),
        "duration_ns": first("dur"),
        "step": ("Step", first(_step_labels, "text")),
        "name": ("kernel", flagged(text("name"), "is_name")),
        "rank": text("rank"),
        "device": text("device"),
        "stream": text("stream_name"),
    },
)


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
    work = work_of(scope)
    runs = work[_matching(work, Pattern(name, ignore_case=True), scope.cancelled)]
    keys = (runs.start, -runs.dur) if order == "slowest" else (runs.start,)
    listed = runs[np.lexsort(keys)[:limit]]
    asks = dict(RUNS.asks)
    if work.steps is None:
        del asks["step"]
    for key, (heading, unit) in LAUNCHED_WITH.items():
        if (values := _argument_column(listed, key, is_text=unit == "text")) is not None:
            asks[key] = (heading, given(values, unit))
    for key in arguments:
        values = row_arguments(listed, key)
        texts = ["" if value is None else json_value_text(value) for value in values]
        asks[f"{ARG}{key}"] = (key, given(texts, "text"))
    totals = {"count": len(runs), "total_ns": sum_of(runs.dur)}
    table = replace(RUNS, asks=asks).of(listed.each(), jump="dur", totals=totals)
    return table, _histogram(scope, runs.dur)


@dataclass(frozen=True)
class LongWork:
    """A slice of device work and how long it took in a scope, ns."""

    id: SliceId
    duration: int


def longest_work(scope: Scope, count: int) -> list[LongWork]:
    """Return the longest runs of kernels in a scope, the longest first, of equals the earliest; where there
    are only copies, the longest of these. Raises Cancelled.
    """
    work = work_of(scope)
    kernels = work[~work.is_type("memory")]
    work = kernels if len(kernels) else work
    if len(work) > count:
        work = work[work.dur >= np.partition(work.dur, len(work) - count)[len(work) - count]]
    ordinals = work.from_parts(lambda part: part.index.column("slices.ordinal")[part.position])
    longest = np.lexsort((ordinals, work.source, work.start, -work.dur))[:count]
    columns = (work.source[longest], ordinals[longest], work.dur[longest])
    return [LongWork(SliceId(*key), ns) for *key, ns in zip(*(column.tolist() for column in columns))]


def _matching(work: Frame, pattern: Pattern, cancelled: CancelledCallback) -> AnyArray:
    """Return which rows have a matching name; each distinct name is tested once."""
    names = work.name.texts
    hits = pattern.matches_in(names, cancelled)
    short_hits = pattern.matches_in([short_name(raw) for raw in names], cancelled)
    fits = np.array(hits, np.bool_) | np.array(short_hits, np.bool_)
    return np.asarray(fits[work.name.codes])


def _argument_column(runs: Frame, key: str, *, is_text: bool) -> Values | None:
    """Return a promoted argument of some runs, None where none of them has it."""
    values = row_arguments(runs, key)
    if all(value is None for value in values):
        return None
    if is_text:
        return ["" if value is None else str(value) for value in values]
    return np.array([np.nan if value is None else value for value in values], np.float64)


def _histogram(scope: Scope, durations: I64) -> Table:
    """Return how many runs fall in each of a few classes of duration, even on a logarithmic scale."""
    columns = columns_from("""
        from_ns, to_ns = below, count = runs, total_ns
    """)
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
