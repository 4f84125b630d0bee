"""Runs compared: metrics and rows of a summary against those of earlier ones, and what of it is noise.

Noise is what repeats: with at least MIN earlier runs the same number of each run; else the same thing of
each step of both sides. The test is that of compare.py. A row of kernels, ops or modules is judged by its
time in a step, a row of steps by that step's time against the scatter of all steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ...base.arrays import I64, sum_of
from ...base.errors import UsageError
from ..frame.metrics import Metric, Number
from ..frame.schema import Column, TableSchema
from ..frame.table import ABSENT, Table
from ..frame.table_rows import Values
from ..frame.text_column import TextColumn
from .comparable import CANNOT, Need, needs_of, reasons_of
from .compare import (
    MIN,
    UNKNOWN,
    VERDICT,
    WITHIN,
    Comparison,
    RowNoise,
    Spread,
    Verdict,
    compare,
    compare_spreads,
    compare_values,
    delta_key,
    spread_of,
)
from .summary import (
    LEADING,
    NAMED,
    SCATTER,
    SCHEMAS,
    SPREAD_COLUMNS,
    LeftOut,
    Summary,
    median_number,
    of_one_kind,
)

CONTRIBUTION = Column("contribution", "of all change", "share", statistic=True)
WITH_DEVICE = ("ops", "modules")
"""Tables whose rows are ranked by their time on the host and on the device, added up."""
JUDGED = ("kernels", "ops", "modules", "steps")
"""Tables whose rows are judged; the step of a row of `steps` is judged by its kernels where it has any."""
OF_COUNTS: Mapping[Verdict, Verdict] = {"slower": "higher", "faster": "lower"}
"""What is said of numbers that are no times."""
OTHERS = "(others)"
LENGTH = "step.length."
STEP_COUNT = "step.count"
"""What the metrics of how long a step is begin with."""
REPEATED = {
    "kernels.time": "kernel_ns",
    "step.length": "length_ns",
    "step.wall": "wall_ns",
    "step.cpu_busy": "cpu_busy_ns",
    "step.device_busy": "device_busy_ns",
    "step.idle": "idle_ns",
}
"""Name of a metric, or of a group of step metrics -> the column of the steps that it is computed from."""
BEFORE = 10
"""The most earlier runs, nearest first, that a run of a history is compared with."""


class MetricChange(NamedTuple):
    """A metric on both sides; `relative` is the change as a share of `before`, None where it has none.

    `noise` compares what repeats: the value of several earlier runs, else the same thing of each step; None
    where nothing does. With a `reason` the sides cannot be compared.
    """

    metric: Metric
    before: Number | None
    noise: Comparison | None = None
    runs: int = 0  # earlier runs that the noise is of; 0: it is of the steps
    reason: str = ""  # why the sides cannot be compared

    @property
    def change(self) -> Number | None:
        now = self.metric.value
        return None if now is None or self.before is None else now - self.before

    @property
    def relative(self) -> float | None:
        return None if self.change is None or not self.before else self.change / self.before

    @property
    def verdict(self) -> Verdict:
        """What the noise says of the change; "noise unknown" for what does not repeat, "cannot be compared"
        where one side's recording lacks what the other has.
        """
        if self.reason:
            return CANNOT
        verdict = UNKNOWN if self.noise is None else self.noise.verdict
        return verdict if self.metric.unit == "ns" else OF_COUNTS.get(verdict, verdict)

    def exceeds(self, share: float, least_ns: int = 0) -> bool:
        """Tell whether it rose by more than a share, a time also by `least_ns` and beyond its noise."""
        change, time = self.change, self.metric.unit == "ns"
        if self.reason or change is None or change <= 0 or (time and change < least_ns):
            return False
        if self.verdict in (WITHIN, "faster", "lower"):
            return False
        return self.relative is None or self.relative > share


class Difference(NamedTuple):
    """A summary against the median of earlier ones; `tables` by name, the worst first (steps in order).

    `reasons` say by need (`needs_of`) why what needs it cannot be compared.
    """

    before: Summary
    now: Summary
    metrics: Mapping[str, MetricChange]
    tables: Mapping[str, Table]
    reasons: Mapping[Need, str] = MappingProxyType({})

    @property
    def lengths_text(self) -> str:
        """How steps are measured where the host of a side runs ahead of its device, else nothing."""
        sides = (self.before, self.now)
        if not any(side.runs_ahead for side in sides):
            return ""
        device = "from the start of a step's work to the next"
        if all(side.runs_ahead or side.has_cadence for side in sides):
            return f"a length is {device}, as the host runs ahead"
        return f"the host of one side runs ahead: there a length is {device}, on the other that of its mark"

    def metric(self, name: str) -> MetricChange | None:
        """Return a metric on both sides, that of a row of a table too; None where no such metric can be."""
        if name in self.metrics:
            return self.metrics[name]
        now, past = self.now.metric(name), self.before.metric(name)
        if now is None or past is None:
            return None
        reason = _reason(now, past.value, self.before, self.now, self.reasons)
        return MetricChange(now, past.value, *_metric_noise(name, self.before, self.now), reason)


def difference(earlier: Sequence[Summary], now: Summary, least_ns: int = 0) -> Difference:
    """Return what changed; rows of which no time changed by `least_ns` or more are left out of the tables.

    A name that a shortened summary may have left out is not called new: it counts among the others.
    """
    *earlier, now = of_one_kind([*earlier, now])
    before = median_of_runs(earlier)
    reasons = reasons_of([run.side for run in earlier], now.side)
    tables = {}
    for name in LEADING:
        if name in now.tables and name in before.tables:  # not made before there was such a table
            sides = _with_others(name, now, before)
            noise = row_noise(name, before, now) if name in JUDGED else None
            table = compare(*sides, noise=noise, scope=against(before, now))
            if noise is not None and _row_need(name, table, (before, now)) in reasons:
                table = replace(table, data={**table.data, VERDICT.key: [CANNOT] * len(table)})
            tables[name] = _ranked(name, table, least_ns)
    metrics = {}
    for name in dict.fromkeys((*now.metrics, *before.metrics)):
        past = before.metrics.get(name)
        metric = now.metrics.get(name) or before.metrics[name]._replace(value=None)
        value = None if past is None else past.value
        reason = _reason(metric, value, before, now, reasons)
        metrics[name] = MetricChange(metric, value, *_metric_noise(name, before, now), reason)
    return Difference(before, now, metrics, tables, reasons)


def against(before: Summary, now: Summary) -> str:
    """Return what a comparison speaks of: "compiled against eager"."""
    return f"{now.title} against {before.title}"


def _reason(
    metric: Metric, past: Number | None, before: Summary, now: Summary, reasons: Mapping[Need, str]
) -> str:
    """Return why a metric cannot be compared: what a recording lacks, or that one side has nothing of it."""
    need = _need(metric.name, (before, now))
    if (metric.value is None) == (past is None):
        return "" if metric.value is None else reasons.get(need, "")
    side = now if metric.value is None else before
    return reasons.get(need) or f"{side.title} lacks {metric.name}"


def _need(name: str, sides: Sequence[Summary]) -> Need:
    """Return what a metric needs: of the length of steps what devices tell, where a host runs ahead; so of
    all that is told of steps, where there are not as many: device work may be what they are found by.
    """
    is_length = name.startswith(LENGTH) and any(side.has_lengths_of_device for side in sides)
    is_of_other_steps = name.startswith("step.") and _have_other_steps(sides)
    return "device" if is_length or is_of_other_steps else needs_of(name)


def _row_need(name: str, table: Table, sides: Sequence[Summary]) -> Need:
    """Return what the rows of a table need, by the column by which they are judged, in each step."""
    is_of_devices = name == "kernels" or judged_by(name, table) == "kernel_ns"
    is_of_devices |= name == "steps" and _need(LENGTH, sides) == "device"
    return "device" if is_of_devices or _have_other_steps(sides) else "host"


def _have_other_steps(sides: Sequence[Summary]) -> bool:
    """Tell whether sides have another number of steps."""
    return len({side.metrics[STEP_COUNT].value for side in sides if STEP_COUNT in side.metrics}) > 1


def history_table(summaries: Sequence[Summary], metric: str) -> Table:
    """Return a metric of each of some runs, in order, against the median of up to BEFORE runs before it with
    which it can be compared.
    """
    known = [one for run in summaries if (one := run.metric(metric)) is not None]
    unit = known[-1].unit if known else "number"
    columns = (
        Column("run", "run", "text"),
        Column("value", "value", unit, statistic=True),
        Column("change", "against those before", unit, statistic=True, change=True),
        Column("relative", "±%", "share", statistic=True, change=True),
        Column("verdict", "noise", "text"),
        Column("runs", "of runs", "count", detail=True),
        Column("reason", "why not", "text", detail=True),
    )
    scope = f"{len(summaries):,} runs, each against the median of up to {BEFORE} before it"
    schema = TableSchema("history", f"History of {metric}", columns)
    return Table.from_rows(schema, scope, list(_history(summaries, metric)), totals={"metric": metric})


def _history(summaries: Sequence[Summary], name: str) -> Iterator[dict[str, Any]]:
    earlier: list[tuple[Summary, Number]] = []
    for run in of_one_kind(summaries):
        row: dict[str, Any] = {"change": None, "relative": None, "verdict": "", "runs": 0, "reason": ""}
        metric = run.metric(name)
        value = None if metric is None else metric.value
        need, alike = _need(name, summaries), earlier
        if earlier and metric is not None:
            alike = [one for one in earlier if need not in reasons_of([one[0].side], run.side)]
        if earlier and (value is None or not alike):
            reason = "" if value is None else reasons_of([earlier[-1][0].side], run.side)[need]
            row |= {"verdict": CANNOT, "reason": reason or f"{run.title} lacks {name}"}
        elif metric is not None and value is not None and (past := [number for _, number in alike[-BEFORE:]]):
            noise = compare_values(past, [value]) if len(past) >= MIN else None
            one = MetricChange(metric, median_number(past), noise, len(past) if noise else 0)
            row = {key: getattr(one, key) for key in row}
        if value is not None:
            earlier.append((run, value))
        yield {"run": run.title, "value": value, **row}


def median_of_runs(runs: Sequence[Summary]) -> Summary:
    """Return the summary whose numbers are the medians over at least one run; its `runs` are those given.

    A single run is returned as it is. A row that a run lacks counts as 0 in that run, unless the summary of
    the run was shortened and may have left the row out.
    """
    if not runs:
        raise UsageError("a comparison needs at least one earlier run")
    if len(runs) == 1:
        return runs[0]
    metrics: dict[str, Metric] = {}
    for metric in (metric for run in runs for metric in run.metrics.values() if metric.name not in metrics):
        values = _metric_values(runs, metric.name)
        metrics[metric.name] = metric._replace(value=median_number(values) if values else None)
    names = [name for name in LEADING if all(name in run.tables for run in runs)]
    return Summary(
        f"median of {len(runs)} runs: {', '.join(run.title for run in runs)}",
        runs[0].scope,
        metrics,
        {name: _median_table(name, runs) for name in names},
        {name: _median_left_out(name, runs) for name in names if any(name in run.left_out for run in runs)},
        tuple(runs),
    )


def _metric_values(runs: Sequence[Summary], name: str) -> list[Number]:
    metrics = (run.metric(name) for run in runs)
    return [metric.value for metric in metrics if metric is not None and metric.value is not None]


def _row_values(runs: Sequence[Summary], table: str, key: str) -> dict[str, list[int]]:
    """Return by row the numbers of a column, one for each run that has the row or is known not to have it."""
    columns = [run.column(table, key) for run in runs]
    return {
        row: [
            values.get(row, 0)
            for run, values in zip(runs, columns)
            if row in values or table not in run.left_out
        ]
        for row in dict.fromkeys(row for values in columns for row in values)
    }


def _median_table(name: str, runs: Sequence[Summary]) -> Table:
    """Return the medians of all rows, without the scatter over the steps of one run."""
    label, *others = _unscattered(runs[0].tables[name]).columns
    numbers = [column for column in others if all(column.key in run.tables[name].data for run in runs)]
    columns = {column.key: _row_values(runs, name, column.key) for column in numbers}
    data: dict[str, Values] = {label.key: list(columns[LEADING[name]])}
    for key, rows in columns.items():
        data[key] = np.array([round(median(values)) for values in rows.values()], np.int64)
    schema = replace(SCHEMAS[name], columns=(label, *numbers))
    table = Table.from_arrays(schema, runs[0].scope, data)
    return table if name == "steps" else table.sort(LEADING[name])


def _median_left_out(name: str, runs: Sequence[Summary]) -> LeftOut:
    """Return what the runs may have left out: medians of the sums, the largest row of any run."""
    rests = [run.left_out[name] for run in runs if name in run.left_out]
    keys = set.intersection(*(set(rest.sums) for rest in rests))
    sums = {key: round(median(rest.sums[key] for rest in rests)) for key in sorted(keys)}
    return LeftOut(max(rest.rows for rest in rests), sums, max(rest.most for rest in rests))


def _unscattered(table: Table) -> Table:
    columns = tuple(column for column in table.columns if column not in SCATTER)
    return replace(table, columns=columns)


def _with_others(name: str, now: Summary, before: Summary) -> tuple[Table, Table]:
    """Return both sides' tables, each with a row of others where one of them was shortened."""
    mine, other = _unscattered(now.tables[name]), _unscattered(before.tables[name])
    if name == "steps" or not (name in now.left_out or name in before.left_out):
        return mine, other
    here, there = mine.join(other)
    return (
        _pooled(name, mine, here[there == ABSENT], now, before),
        _pooled(name, other, there[here == ABSENT], before, now),
    )


def _pooled(name: str, table: Table, lonely: I64, own: Summary, other: Summary) -> Table:
    """Add up what the other side may have left out, and what this side has."""
    most = other.left_out[name].most if name in other.left_out else -1
    small = lonely[table.numbers(LEADING[name])[lonely] <= most]
    sums = own.left_out[name].sums if name in own.left_out else {}
    data: dict[str, Values] = {}
    rest = table.take(np.delete(np.arange(len(table)), small))
    for key, values in rest.data.items():
        if isinstance(values, list | TextColumn):
            data[key] = [*values, OTHERS]
        else:
            data[key] = np.append(values, sum_of(table.numbers(key)[small]) + sums.get(key, 0))
    return replace(rest, data=data)


def _ranked(name: str, table: Table, least_ns: int) -> Table:
    """Return the rows that changed, the worst first: by how much more there is of some columns together, with
    their share of all change of them. Steps stay in order, all of them.
    """
    keys = ("self_cpu_ns", "self_device_ns") if name in WITH_DEVICE else (judged_by(name, table),)
    change: I64 = np.sum([table.numbers(delta_key(key)) for key in keys], axis=0, dtype=np.int64)
    everything = sum_of(np.abs(change))
    share = change / everything if everything else np.full(len(change), np.nan)
    names = {column.key: table.texts(column.key) for column in table.columns if column.is_name}
    columns = (*table.columns, CONTRIBUTION)
    whole = replace(table, columns=columns, data={**table.data, CONTRIBUTION.key: share}, left_out=names)
    if name == "steps":
        return whole
    changes = {column.key: column.unit for column in table.columns if column.change}
    moved = [np.abs(table.numbers(key)) >= max(1, least_ns) for key, unit in changes.items() if unit == "ns"]
    if not least_ns:
        moved += [table.numbers(key) != 0 for key, unit in changes.items() if unit == "count"]
    order = np.argsort(-change, kind="stable")
    return whole.take(order[np.any(moved, axis=0)[order]])


def judged_by(name: str, table: Table) -> str:
    """Return the column by which rows are judged: of steps their kernels, where they have any."""
    if name == "steps" and "kernel_ns" in table.data and table.numbers("kernel_ns").any():
        return "kernel_ns"
    return LEADING[name]


def _metric_noise(name: str, before: Summary, now: Summary) -> tuple[Comparison | None, int]:
    """Return what repeats of a metric, and in how many earlier runs: else it is in the steps, by the column
    that the metric is made of; None where that is not known.
    """
    past, present = _metric_values(before.members, name), _metric_values([now], name)
    if len(past) >= MIN and present:
        return compare_values(past, present), len(past)
    group, _, row = name.partition(".")
    if group in NAMED and f"{row.rpartition('.')[2]}_ns" == LEADING[NAMED[group]]:
        return row_noise(NAMED[group], before, now)(row.rpartition(".")[0]), 0
    key = REPEATED.get(name) or REPEATED.get(name.rpartition(".")[0])
    if key is None or not _have_steps((*before.members, now), key):
        return None, 0
    past, present = (
        [ns for run in runs for ns in run.tables["steps"].numbers(key).tolist()]
        for runs in (before.members, [now])
    )
    return (compare_values(past, present) if past and present else None), 0


def row_noise(name: str, before: Summary, now: Summary) -> RowNoise:
    """Return what compares what repeats of a row: its leading time in each earlier run, or in each step."""
    by_runs, key = len(before.members) >= MIN, judged_by(name, now.tables[name])
    if by_runs:
        sides = _spreads_over_runs(name, before, key, MIN), _spreads_over_runs(name, now, key, 1)
    elif name == "steps":
        is_known = _have_steps((*before.members, now), key)
        sides = (_single_steps(before, key), _single_steps(now, key)) if is_known else (({}, None),) * 2
    else:
        sides = _spreads_over_steps(name, before), _spreads_over_steps(name, now)

    def noise(row: str) -> Comparison | None:
        past, present = (spreads.get(row, absent) for spreads, absent in sides)
        if past is None or present is None or row == OTHERS:
            return None
        # What runs in less than half of the steps on both sides has no median to compare.
        is_idle = not (by_runs or name == "steps" or past.median or present.median)
        return None if is_idle else compare_spreads(past, present)

    return noise


def noise_in_a_step(name: str, before: Summary, now: Summary) -> Callable[[str, int, int], Comparison | None]:
    """Return what compares a row's time in one step of each side, ns before and now, by how that scatters
    from step to step.
    """
    sides = _spreads_over_steps(name, before), _spreads_over_steps(name, now)

    def noise(row: str, before_ns: int, now_ns: int) -> Comparison | None:
        past, present = (spreads.get(row, absent) for spreads, absent in sides)
        if past is None or present is None:
            return None
        return compare_spreads(past.of_single(before_ns), present.of_single(now_ns))

    return noise


Spreads = tuple[Mapping[str, Spread], Spread | None]
"""How the leading time of rows scatters: by row, and of a row that a side lacks (None: not known)."""


def _spreads_over_runs(name: str, side: Summary, key: str, least: int) -> Spreads:
    rows = _row_values(side.members, name, key).items()
    zeros = [0] * sum(name not in run.left_out for run in side.members)
    spreads = {row: spread_of(values) for row, values in rows if len(values) >= least}
    return spreads, spread_of(zeros) if len(zeros) >= least else None


def _spreads_over_steps(name: str, side: Summary) -> Spreads:
    table = side.tables[name]
    if side.runs or any(column.key not in table.data for column in SPREAD_COLUMNS):
        return {}, None
    columns = [table.numbers(column.key).tolist() for column in SPREAD_COLUMNS]
    rows = zip(table.texts(table.columns[0].key), *columns)
    spreads = {row: Spread(steps, float(middle), float(scatter)) for row, steps, middle, scatter in rows}
    steps = max((spread.count for spread in spreads.values()), default=0)
    absent = Spread(steps, 0.0, 0.0) if steps and name not in side.left_out else None
    return {row: spread for row, spread in spreads.items() if spread.count}, absent


def _single_steps(side: Summary, key: str) -> Spreads:
    """Return the time of each step, with the scatter of all."""
    steps = side.column("steps", key)
    scatter = spread_of([*steps.values()]) if steps else None
    return {row: scatter.of_single(ns) for row, ns in steps.items() if scatter}, None


def _have_steps(runs: Sequence[Summary], key: str) -> bool:
    """Tell whether all runs have all their steps, with a column."""
    return all(key in run.tables["steps"].data and "steps" not in run.left_out for run in runs)
