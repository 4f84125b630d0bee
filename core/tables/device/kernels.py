"""What ran on the devices: per name how often, how long, how evenly; and every run of a kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from ...base.arrays import F64, I64, AnyArray, distinct, sum_of
from ...base.errors import UsageError
from ...base.numbers import whole_number
from ...base.pattern import Pattern
from ...base.short_names import short_name
from ...query.args import json_value_text, number_of
from ...query.groups import Groups, Labels
from ...query.views import SliceId
from ..frame.frame import Frame, FrameGroups
from ..frame.frame_columns import capture_notes, row_arguments, work_of
from ..frame.kinds import KERNEL_TYPES, kind_table
from ..frame.metrics import Metric, spread_metrics
from ..frame.schema import ARG, Column, TableSchema, Unit
from ..frame.scope import Scope
from ..frame.shape import (
    ON_STREAM,
    Aggregate,
    Shape,
    first,
    flagged,
    given,
    moment,
    n,
    ratio_of,
    same,
    share_of_all,
    statistic,
    text,
    total,
)
from ..frame.table import Table, Tables
from ..frame.table_rows import Values
from ..frame.text_column import TextColumn
from ..steps.attribution import with_steps, work_in_windows
from .aiu_cycles import NO_CYCLES, IdealCycles, ideal_aggregates, parse_ideal, stamp_aggregates
from .device_state import waited_of

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
HISTOGRAM = TableSchema(
    "histogram",
    "Durations",
    (
        Column("from_ns", "from", "ns"),
        Column("to_ns", "below", "ns"),
        Column("count", "runs", "count"),
        Column("total_ns", "total", "ns"),
    ),
)
BINS = 12


def _step_labels(runs: Frame) -> TextColumn:
    """Return the label of each run's step, "" for none."""
    return TextColumn(with_steps(runs).step + 1, ["", *(() if runs.steps is None else runs.steps.labels)])


INSTANCES = Shape(
    "instances",
    "Runs",
    {
        "start_ns": ("at", moment("start")),
        "duration_ns": first("dur"),
        "step": ("Step", first(_step_labels, "text")),
        "name": ("kernel", flagged(text("name"), "is_name")),
        **ON_STREAM,
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

    `name` is a regular expression, UsageError where nothing matches; `arguments` are shown beside what is
    known of every launch. Times are cut to the scope's range; a run's step is the one in which it starts. The
    histogram and the totals hold all runs, whatever the limit.
    """
    work = work_of(scope)
    runs = work[work.named(Pattern(name, ignore_case=True), short_name)]
    if len(work) and not len(runs):
        raise UsageError(f"no device work here has a name that matches {name!r}")
    keys = (runs.start, -runs.dur) if order == "slowest" else (runs.start,)
    listed = runs[np.lexsort(keys)[:limit]]
    aggregates = dict(INSTANCES.aggregates)
    if work.steps is None:
        del aggregates["step"]
    for key, (heading, unit) in LAUNCHED_WITH.items():
        if (values := _argument_column(listed, key, is_text=unit == "text")) is not None:
            aggregates[key] = (heading, given(values, unit))
    for key in arguments:
        values = row_arguments(listed, key)
        texts = ["" if value is None else json_value_text(value) for value in values]
        aggregates[f"{ARG}{key}"] = (key, given(texts, "text"))
    totals = {"count": len(runs), "total_ns": sum_of(runs.dur)}
    table = replace(INSTANCES, aggregates=aggregates).of(listed.each(), jump="dur", totals=totals)
    return table, _histogram(scope, runs.dur)


class LongWork(NamedTuple):
    """A slice of device work and how long it took in a scope, ns, without its waits for other ranks."""

    id: SliceId
    duration: int


def longest_work(scope: Scope, count: int) -> list[LongWork]:
    """Return the longest runs of kernels in a scope, the longest first, of equals the earliest; where there
    are only copies, the longest of these. Waiting for other ranks does not count. Raises Cancelled.
    """
    work = work_of(scope)
    kernels = work[~work.is_type("memory")]
    work = kernels if len(kernels) else work
    work = work.plus(own=work.dur - waited_of(work))
    if len(work) > count:
        work = work[work.own >= np.partition(work.own, len(work) - count)[len(work) - count]]
    ordinals = work.from_parts(lambda part: part.index.column("slices.ordinal")[part.position])
    longest = np.lexsort((ordinals, work.source, work.start, -work.own))[:count]
    columns = (work.source[longest], ordinals[longest], work.own[longest])
    return [LongWork(SliceId(*key), ns) for *key, ns in zip(*(column.tolist() for column in columns))]


def _argument_column(runs: Frame, key: str, *, is_text: bool) -> Values | None:
    """Return a promoted argument of some runs, None where none of them has it."""
    values = row_arguments(runs, key)
    if all(value is None for value in values):
        return None
    if is_text:
        return ["" if value is None else str(value) for value in values]
    return np.array([np.nan if value is None else value for value in values], np.float64)


def _histogram(scope: Scope, durations: I64) -> Table:
    edges = np.empty(0, np.int64)
    if len(durations):
        low, high = max(1, int(durations.min())), int(durations.max()) + 1
        spaced: F64 = np.geomspace(low, max(high, low + 1), BINS + 1)
        edges = distinct(np.rint(spaced).astype(np.int64))
        edges[0], edges[-1] = min(int(durations.min()), low), max(high, low + 1)
    bins = max(0, len(edges) - 1)
    which = np.searchsorted(edges, durations, "right") - 1
    groups = Groups(which.astype(np.int64), bins)
    data = {"from_ns": edges[:-1], "to_ns": edges[1:], "count": groups.counts}
    data["total_ns"] = groups.sums(durations)
    return Table.from_arrays(HISTOGRAM, scope.text, data)


GroupBy: TypeAlias = Literal["name", "short", "stream", "type", "kind", "step", "op", "module", "annotation"]

KERNELS = Shape(
    "kernels",
    "Kernels",
    {
        "name": flagged(text("row"), "is_name"),
        "type": same("type_name"),
        "kind": same("kind_name"),
        "count": n(),
        "total_ns": total("dur"),
        "share": share_of_all("dur"),
        **{
            key: flagged(statistic(key, "dur"), "statistic")
            for key in ("mean_ns", "median_ns", "p95_ns", "min_ns", "max_ns", "stdev_ns")
        },
    },
    {"keys": ("name",), "chief": ("name", "total_ns", "share", "count")},
)
UP_TO_TOTAL = ("name", "type", "kind", "count", "total_ns")
BEHIND_TOTAL = tuple(key for key in KERNELS.aggregates if key not in UP_TO_TOTAL)
RUNS = 1000
"""How many runs are listed unless --limit says otherwise."""
COLUMN_OF = {"type": "type_name", "kind": "kind_name"}
"""The columns that rows are made of, where they are not called as what `by` says."""
OWNED = ("op", "module")
"""What owns work: of a graph's what a capture says."""
COLUMNS_BY = ("name", "short", "type", "kind", "op", "module", "annotation")
NO_TYPE = "other"
OUTSIDE = "outside the steps"
TITLES = {"stream": "Streams", "type": "Kernel types", "kind": "Kernel kinds", "step": "Kernels by step"}
HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
NO_VALUE = "(none)"
IDEAL, CYCLES = "ideal:", "cycles"
"""What names a column of ideal cycles begins with the one; the other names those that a device counted."""


def analyse_kernels(
    scope: Scope,
    by: str = "name",
    group_by: str = "",
    column: Sequence[str] = (),
    runs: str = "",
    order: Order = "slowest",
    limit: int | None = None,
) -> Tables:
    """Return the device work by name (or what `by` and `group_by` say), or the runs of matching names; with
    the ideal cycles that a file or folder of an AIU's compiler has.
    """
    keys = [argument_key(text) for text in column if not text.startswith(IDEAL) and text != CYCLES]
    ideals = [text for text in column if text.startswith(IDEAL)]
    if len(ideals) > 1:
        raise UsageError("ideal cycles come from one file or folder")
    cycles = parse_ideal(ideals[0]) if ideals else NO_CYCLES
    if runs:
        check_pattern(runs)
        if ideals or CYCLES in column:
            what = "ideal cycles are" if ideals else f"{CYCLES} are"
            raise UsageError(f"{what} for kernels by name, not for --runs")
        runs_table = cache(partial(instances, scope, runs, order, limit or RUNS, keys))
        tables = {"kernels": lambda: runs_table()[0], "histogram": lambda: runs_table()[1]}
    else:
        rows, has_stamps = group_by or by, CYCLES in column
        tables = {"kernels": lambda: kernels(scope, rows, arguments=keys, ideal=cycles, stamps=has_stamps)}
    return Tables(scope.text, scope.origin, tables)


def check_pattern(text: str) -> None:
    """Raise UsageError where a text is no regular expression."""
    Pattern(text, ignore_case=True).check("--runs")


def kernels(
    scope: Scope,
    by: GroupBy | str = "name",
    arguments: Sequence[str] = (),
    ideal: IdealCycles = NO_CYCLES,
    stamps: bool = False,
) -> Table:
    """Return the device work of a scope by name, short name, stream, type, kind, step, argument (as
    `arg:KEY`), by the op or module that owns it, or by the annotation that launched it; most time first, with
    sum and mean of further arguments, the `ideal` cycles by name, and with `stamps` the cycles of each phase
    as an AIU counted them. Short names join no two names.

    A step has the work that was launched in it, by window the part of all work that lies in its time on the
    host (steps that overlap share it); what no step has stands apart.
    `stdev_ns` is the sample's (n - 1) and none for a single slice; `type` and `kind` are "mixed" where there
    are several; a kind is "unknown" where no pattern knows the name.
    """
    work = work_of(scope)
    if by == "step":
        steps = work.steps if scope.attribute == "window" else None
        work = with_steps(work) if steps is None else work_in_windows(work, steps)
    types = TextColumn(np.minimum(work.type, len(KERNEL_TYPES)), (*KERNEL_TYPES, NO_TYPE))
    work = work.plus(type_name=types, kind_name=TextColumn(work.kind, kind_table().names))
    title = f"Kernels by {by}" if by.startswith(ARG) else TITLES.get(by, KERNELS.title)
    shape = replace(KERNELS, title=title)
    if by == "short":  # these are short forms, which are not shortened again
        shape = replace(shape, aggregates={**shape.aggregates, "name": text("row")})
    waited = waited_of(work)
    if waited.any():
        work = work.plus(waited=waited)
        before, after = ({key: shape.aggregates[key] for key in keys} for keys in (UP_TO_TOTAL, BEHIND_TOTAL))
        shape = replace(shape, aggregates={**before, "waited_ns": ("waited", total("waited")), **after})
    for key in arguments:
        shape = replace(shape, aggregates={**shape.aggregates, **argument_aggregates(work, key)})
    more, notes = ideal_aggregates(work, ideal) if ideal.of_call else ({}, ())
    if stamps:
        phases, said = stamp_aggregates(work)
        more, notes = {**more, **phases}, (*notes, *said)
    chief = (*shape.more["chief"], *(("waited_ns",) if waited.any() else ()), *more)
    if by in OWNED and bool(work.is_by_capture.any()):
        of_captures = total(lambda work: np.where(work.is_by_capture, work.dur, 0))
        shape = replace(shape, aggregates={**shape.aggregates, "by_capture_ns": of_captures})
    shape = replace(shape, aggregates={**shape.aggregates, **more}, more={**shape.more, "chief": chief})
    notes = (*notes, *(capture_notes(work) if by in OWNED else ()))
    totals = {"count": len(work), "total_ns": sum_of(work.dur)}
    groups = work.plus(row=_rows_of(work, by)).group("row")
    return shape.of(groups, jump="dur", sort="total_ns", totals=totals, notes=notes)


def kernel_metrics(scope: Scope) -> list[Metric]:
    """Return number and time of device work; `kernels.time` is without copies, fills and waits."""
    work = work_of(scope)
    time = sum_of(work.dur[work.is_type("compute", "communication")])
    calls, *rest = spread_metrics("kernels", work.dur)
    return [
        calls._replace(name="kernels.calls"),
        Metric("kernels.names", "count", len(set(work.name.texts))),
        Metric("kernels.time", "ns", time if len(work) else None),
        *rest,
    ]


def check_column(text: str) -> None:
    """Raise UsageError where a text names no further column: arg:KEY, ideal:PATH or cycles."""
    if not text.startswith(IDEAL) and text != CYCLES:
        argument_key(text)


def argument_key(text: str) -> str:
    """Return the key that `arg:KEY` names; UsageError for anything else."""
    if not text.startswith(ARG) or len(text) == len(ARG):
        raise UsageError(f"{text!r} names no argument: arg:KEY, as arg:bytes")
    return text.removeprefix(ARG)


def argument_numbers(work: Frame, key: str) -> AnyArray:
    """Return an argument of each row as a number, NaN where there is none; FLEX writes some as "0x1f".

    UsageError for an argument that no row has as a number.
    """
    numbers = [
        whole_number(value, 16)
        if isinstance(value, str) and HEXADECIMAL.fullmatch(value)
        else number_of(value)
        for value in row_arguments(work, key)
    ]
    result = np.array([np.nan if number is None else number for number in numbers], np.float64)
    if len(result) and np.isnan(result).all():
        raise UsageError(f"no kernel has a number as its argument {key!r}")
    return result


def argument_aggregates(work: Frame, key: str) -> dict[str, tuple[str, Aggregate]]:
    """Return two columns: the sum of an argument and its mean over those of a group that have it.

    Both are none where no one has. UsageError for an argument that no slice has as a number.
    """
    numbers = argument_numbers(work, key)
    has = ~np.isnan(numbers)

    def sums(g: FrameGroups) -> AnyArray:
        of = np.bincount(g.codes[has], weights=numbers[has], minlength=g.size)
        return np.where(g.counts_where(has) > 0, of, np.nan)

    unit: Unit = "bytes" if key.lower() == "bytes" else "number"
    mean = replace(flagged(ratio_of(Aggregate(sums), n(lambda _: has)), "statistic"), unit=unit)
    return {f"{ARG}{key}": (key, Aggregate(sums, unit)), f"{ARG}{key}_mean": (f"mean {key}", mean)}


def _rows_of(work: Frame, by: str) -> TextColumn:
    """Return what a row of the table is for each row of the work."""
    if by in COLUMNS_BY:
        words: TextColumn = getattr(work, COLUMN_OF.get(by, by))
        return words
    if by == "stream":
        titles = [f"rank {one.rank} {one.title} stream" for one in work.devices]
        of = dict(zip(work.stream.tolist(), work.device_row.tolist()))
        return TextColumn(work.stream, [f"{titles[of[at]]} {name}" for at, name in enumerate(work.streams)])
    if by == "step":
        steps = () if work.steps is None else work.steps.titles
        return TextColumn(work.step + 1, [OUTSIDE, *(f"step {title}" for title in steps)])
    labels = Labels()
    values = row_arguments(work, argument_key(by))
    texts = [NO_VALUE if value is None else json_value_text(value) for value in values]
    return TextColumn(labels.codes(texts), list(labels))
