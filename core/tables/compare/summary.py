"""The summary of a trace: a few tables whose row names stay the same from run to run, for comparisons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from ...base.arrays import I64, MAX, sum_of
from ...base.errors import UsageError
from ...base.kineto import MODULE
from ...base.short_names import comparable_name, is_short_form
from ...query.groups import Groups, Labels, concatenated, dense
from ...query.lookup import names_with_prefix
from ...trace.step_spans import step_spans
from ..device.untrusted import with_known_ends
from ..frame.frame_columns import module_label, timed_work
from ..frame.metrics import Metric, Number
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.table import ABSENT, Table, Tables, Value
from ..frame.table_rows import Values
from ..host.op_events import NO_KIND, PYTHON, STEP, STEPS, host_kinds
from ..metric_groups import ROW_GROUPS, ROWS, metric_group_of, metrics, no_metric
from ..steps.attribution import step_scopes
from .comparable import Recorded, Side, recorded
from .compare import Spread, spread_of

SPREAD_COLUMNS = (
    Column("steps", "steps", "count", detail=True),
    Column("step_median_ns", "median of a step", "ns", detail=True),
    Column("step_deviation_ns", "deviation of a step", "ns", detail=True),
)
"""Columns for the scatter of a row's leading time over the steps; with 0 steps nothing is known."""
CALL_COLUMNS = (
    Column("mean_ns", "mean of a call", "ns", statistic=True, detail=True),
    Column("median_ns", "median of a call", "ns", statistic=True, detail=True),
    Column("p95_ns", "p95 of a call", "ns", statistic=True, detail=True),
    Column("min_ns", "shortest call", "ns", statistic=True, detail=True),
    Column("max_ns", "longest call", "ns", statistic=True, detail=True),
)
"""Columns for the scatter of a row's calls; one of an op or module lasts as long as it does on the host."""
CADENCE = Column("cadence_ns", "cadence", "ns", detail=True)
"""Of a step what its device needs (see step_length.py), 0 where that is not known."""
SCATTER = (*SPREAD_COLUMNS, *CALL_COLUMNS, CADENCE)
"""What is neither added up nor compared row by row."""
_HOST = (
    Column("count", "count", "count"),
    Column("self_cpu_ns", "self CPU", "ns"),
    Column("self_device_ns", "self device", "ns"),
)
SCHEMAS = {
    name: TableSchema(f"summary_{name}", name.capitalize(), columns, keys=(columns[0].key,))
    for name, columns in {
        "kernels": (
            Column("name", "kernel", "text", is_name=True),
            Column("count", "count", "count"),
            Column("total_ns", "total", "ns"),
            *SPREAD_COLUMNS,
            *CALL_COLUMNS,
        ),
        "ops": (Column("name", "op", "text"), *_HOST, *SPREAD_COLUMNS, *CALL_COLUMNS),
        "modules": (Column("module", "module", "text"), *_HOST, *SPREAD_COLUMNS, *CALL_COLUMNS),
        "categories": (
            Column("category", "category", "text"),
            Column("count", "count", "count"),
            Column("self_ns", "self", "ns"),
        ),
        "steps": (
            Column("place", "nth step", "text"),
            Column("length_ns", "length", "ns"),
            CADENCE,
            Column("wall_ns", "wall", "ns"),
            Column("cpu_busy_ns", "CPU busy", "ns"),
            Column("device_busy_ns", "device busy", "ns"),
            Column("kernel_ns", "kernels", "ns"),
            Column("idle_ns", "device idle", "ns"),
        ),
    }.items()
}
"""The tables of a summary. Their first column is what a row is called from run to run."""
METRICS = TableSchema(
    "metrics",
    "Metrics",
    (
        Column("name", "metric", "text"),
        Column("value", "value", "number"),
        Column("unit", "unit", "text"),
    ),
)
LEFT_OUT = TableSchema(
    "left_out",
    "Left out",
    (
        Column("table", "table", "text"),
        Column("rows", "rows", "count"),
        Column("sums", "sums", "object"),
        Column("most", "most", "ns"),
    ),
    is_drawn=False,
)
LACKS = TableSchema(
    "lacks",
    "What the recording lacks",
    (
        Column("trouble", "trouble", "text"),
        Column("need", "need", "text"),
        Column("missing", "missing", "count"),
        Column("total", "total", "count"),
        Column("text", "text", "text"),
    ),
    is_drawn=False,
)
LEADING = {
    "kernels": "total_ns",
    "ops": "self_cpu_ns",
    "modules": "self_cpu_ns",
    "categories": "self_ns",
    "steps": "length_ns",
}
"""Table -> the time by which its rows are ranked and their changes weighed."""
NAMED = {group: f"{group}s" for group in ROW_GROUPS}
"""What a metric of a single row begins with -> the table that has the row (`kernel.NAME.median`)."""
COUNTED_STEPS = 32
"""The most steps, evenly spread, from which the scatter of kernels, ops and modules is computed."""
WHOLE = "Trace"
"""The category of the spans that profilers draw over all they recorded."""


class LeftOut(NamedTuple):
    """Rows that a table of a summary does not hold: how many, their sums, the most that one of them has."""

    rows: int
    sums: Mapping[str, int]
    most: int  # of the leading column


@dataclass(frozen=True)
class Summary:
    """One side of a comparison. `tables` are kernels, ops, modules, categories and steps; most time first.

    `runs` are the summaries that it is the median of, where it is one of several; `recorded` is what its
    recording lacks, of which a comparison must know.
    """

    title: str
    scope: str
    metrics: Mapping[str, Metric]
    tables: Mapping[str, Table]
    left_out: Mapping[str, LeftOut] = field(default_factory=dict)
    runs: tuple[Summary, ...] = ()
    recorded: Recorded = field(default_factory=Recorded)

    @property
    def members(self) -> tuple[Summary, ...]:
        """The runs that it is the median of, itself where it is one."""
        return self.runs or (self,)

    @property
    def runs_ahead(self) -> bool:
        """Whether the host of a member runs ahead of its device: a step is as long as that needs."""
        ahead = (run.metrics.get("step.ahead") for run in self.members)
        return any(one is not None and bool(one.value) for one in ahead)

    @property
    def has_lengths_of_device(self) -> bool:
        """Whether devices tell how long steps are: a host runs ahead, or work ends after its step's mark."""
        marks = (
            (run.metrics.get("step.length.total"), run.metrics.get("step.wall.total")) for run in self.members
        )
        return self.runs_ahead or any(
            a is not None and b is not None and a.value != b.value for a, b in marks
        )

    @property
    def has_cadence(self) -> bool:
        """Whether it is known of all members how long the device needs for a step."""
        medians = [run.metrics.get("step.cadence.median") for run in self.members]
        return all(one is not None and one.value is not None for one in medians)

    def by_cadence(self) -> Summary:
        """Return the summary with steps as long as the device needs, also where the host waits for it."""
        metrics = dict(self.metrics)
        mean, count = (self.metrics.get(name) for name in ("step.cadence.mean", "step.count"))
        for name, metric in self.metrics.items():
            group, _, stat = name.rpartition(".")
            cadence = self.metrics.get(f"step.cadence.{stat}")
            if group == "step.length" and cadence is not None:
                metrics[name] = metric._replace(value=cadence.value)
            elif name == "step.length.total" and mean and count and mean.value and count.value:
                metrics[name] = metric._replace(value=round(mean.value * count.value))
        steps = self.tables["steps"]
        if CADENCE.key in steps.data:
            data = {**steps.data, "length_ns": steps.data[CADENCE.key]}
            steps = replace(steps, data=data)
        return replace(self, metrics=metrics, tables={**self.tables, "steps": steps})

    @property
    def side(self) -> Side:
        """What a comparison must know of it besides its numbers."""
        return Side(self.title, self.recorded)

    def metric(self, name: str) -> Metric | None:
        """Return a metric by its name: one of `metrics`, or of a row of a table, as `kernel.NAME.median`.

        What stands after the last dot is a column: count, total, mean, median, p95, min, max; of ops and
        modules self_cpu, self_device in place of total. NAME is a row's name, its short form or the name in a
        trace. Without such a row the metric has no value; None where no such metric can be.
        """
        if name in self.metrics:
            return self.metrics[name]
        group, _, rest = name.partition(".")
        row, _, stat = rest.rpartition(".")
        table = self.tables.get(NAMED.get(group, ""))
        if table is None or not row:
            return None
        key = "count" if stat == "count" else f"{stat}_ns"
        column = next((column for column in SCHEMAS[NAMED[group]].columns[1:] if column.key == key), None)
        if column is None or stat == "step_deviation":
            return None
        if self.runs:
            values = [one.value for run in self.runs if (one := run.metric(name)) and one.value is not None]
            return Metric(name, column.unit, median_number(values) if values else None)
        at = _row_called(row, table.texts(table.columns[0].key)) if key in table.data else None
        return Metric(name, column.unit, None if at is None else int(table.numbers(key)[at]))

    def column(self, table: str, key: str) -> dict[str, int]:
        rows = self.tables[table]
        return dict(zip(rows.texts(rows.columns[0].key), rows.numbers(key).tolist()))

    def shortened(self, rows: int) -> Summary:
        """Return the summary with at most so many rows a table; steps are kept from the first on."""
        tables, left_out = dict(self.tables), dict(self.left_out)
        for name, table in self.tables.items():
            if len(table) > rows:
                tables[name] = table.head(rows)
                left_out[name] = _left_out(table, rows, LEADING[name])
        return replace(self, tables=tables, left_out=left_out)


def of_one_kind(runs: Sequence[Summary]) -> list[Summary]:
    """Return runs whose steps are measured alike: where the host of one runs ahead of its device, the steps
    of all are as long as the device needs, if that is known of all.
    """
    is_mixed = len({run.runs_ahead for run in runs}) > 1 and all(run.has_cadence for run in runs)
    return [run.by_cadence() if is_mixed and not run.runs_ahead else run for run in runs]


def median_number(values: Sequence[Number]) -> Number:
    """Return the median, a whole number where all values are."""
    middle = median(values)
    return round(middle) if all(isinstance(value, int) for value in values) else float(middle)


def _row_called(name: str, names: Sequence[str]) -> int | None:
    """Return the row with a name, else the one whose name is printed so; UsageError where several are."""
    known = comparable_name(name)
    if known in names:
        return names.index(known)
    rows = [at for at, one in enumerate(names) if is_short_form(name, one)]
    if len(rows) > 1:
        raise UsageError(
            f"{name!r} is the short form of several names: {', '.join(names[at] for at in rows)}"
        )
    return rows[0] if rows else None


def analyse_summary(scope: Scope, rows: int = 30) -> Tables:
    """Return metrics, kernels, ops, modules, categories, steps of a scope, and what was left out of them."""
    title = ", ".join(Path(source.path).name for source in scope.trace.sources)
    return summary_tables(summarise(scope, title), rows)


def summary_tables(summary: Summary, rows: int) -> Tables:
    """Return a summary as tables of at most so many rows."""
    short = summary.shortened(rows)
    totals: dict[str, Value] = {"title": short.title}
    if short.recorded.devices is not None:
        totals["devices"] = short.recorded.devices
    metrics: dict[str, Values] = {
        "name": list(short.metrics),
        "value": [metric.value for metric in short.metrics.values()],  # as they are: whole or not, or none
        "unit": [metric.unit for metric in short.metrics.values()],
    }
    left_out = [
        {"table": name, "rows": rest.rows, "sums": dict(rest.sums), "most": rest.most}
        for name, rest in short.left_out.items()
    ]
    tables: dict[str, Callable[[], Table]] = {
        "metrics": lambda: Table.from_arrays(
            replace(METRICS, title=short.title), short.scope, metrics, totals=totals
        ),
        **{name: partial(short.tables.__getitem__, name) for name in short.tables},
        "left_out": lambda: Table.from_rows(LEFT_OUT, short.scope, left_out),
        "lacks": lambda: Table.from_rows(LACKS, short.scope, [one._asdict() for one in short.recorded.lacks]),
    }
    return Tables(short.scope, 0, tables)


def summarise(scope: Scope, title: str) -> Summary:
    """Return the summary of a scope."""
    whole = scope
    scope = with_known_ends(whole)
    text, spreads, calls = timed_work(scope).scope.text, _spreads(scope), _host_calls(scope)
    tables = {
        "kernels": _kernels(scope, spreads["kernels"]),
        "ops": _ops(scope, "name", spreads["ops"], calls["ops"]),
        "modules": _ops(scope, "module", spreads["modules"], calls["modules"]),
        "categories": _categories(scope),
        "steps": _steps(scope),
    }
    return Summary(title, text, metrics(scope), tables, recorded=recorded(whole))


def summarise_work(scope: Scope, title: str) -> Summary:
    """Return the part of a summary by which kernels, ops and steps are compared: without other tables, and
    with the metrics of steps alone.
    """
    whole = scope
    scope = with_known_ends(whole)
    spreads, calls = _spreads(scope), _host_calls(scope)
    tables = {
        "kernels": _kernels(scope, spreads["kernels"]),
        "ops": _ops(scope, "name", spreads["ops"], calls["ops"]),
        "steps": _steps(scope),
    }
    text = timed_work(scope).scope.text
    return Summary(title, text, metrics(scope, ("step",)), tables, recorded=recorded(whole))


def metrics_named(scope: Scope, names: Iterable[str], summary: Summary | None = None) -> dict[str, Metric]:
    """Return a scope's metrics by name, of single rows too; UsageError for one that there cannot be."""
    names = list(dict.fromkeys(names))
    groups = dict.fromkeys(map(metric_group_of, names))
    if summary is None and ROWS in groups:
        summary = summarise(scope, "")
    known = metrics(scope, groups) if summary is None else dict(summary.metrics)
    for name in names:
        metric = known.get(name) if summary is None else summary.metric(name)
        if metric is None:
            raise no_metric(name, known)
        known[name] = metric
    return {name: known[name] for name in names}


@dataclass(frozen=True, eq=False)
class _CallTimes:
    """How long the calls of each name took: the row of each name in CALL_COLUMNS."""

    rows: Mapping[str, int]
    columns: Mapping[str, I64]

    @classmethod
    def of_groups(cls, labels: Labels, codes: I64, durations: I64) -> _CallTimes:
        """Compute them of calls: the label's number and the duration (ns) of each; no label is without."""
        statistics = Groups(codes, len(labels)).statistics(durations)
        most = np.nextafter(float(MAX), 0)  # the largest float that is an int64
        keys = [column.key for column in CALL_COLUMNS]
        return cls(labels, {key: np.minimum(np.rint(statistics[key]), most).astype(np.int64) for key in keys})

    def of(self, names: Sequence[str]) -> dict[str, Values]:
        """Return the columns for rows of these names; 0 for a name without calls of its own."""
        at = np.array([self.rows.get(name, ABSENT) for name in names], np.int64)
        return {key: np.where(at == ABSENT, 0, np.append(of, 0)[at]) for key, of in self.columns.items()}


def _host_calls(scope: Scope) -> dict[str, _CallTimes]:
    """Return the durations on the host of all calls of ops, and of modules as Python frames show them."""
    labels = {"ops": Labels(), "modules": Labels()}
    codes: dict[str, list[I64]] = {name: [] for name in labels}
    durations: dict[str, list[I64]] = {name: [] for name in labels}
    modules = {at: names_with_prefix(scope.trace.indexes[at], MODULE) for at in scope.sources}
    for chunk in scope.chunks():
        kinds = host_kinds(chunk.index)[chunk.categories]
        of_module = (kinds == PYTHON) & np.isin(chunk.names, modules[chunk.source])
        for name, own, label in (("ops", kinds != NO_KIND, _op), ("modules", of_module, module_label)):
            rows = np.flatnonzero(own)
            codes[name].append(labels[name].of_slices(chunk.index, chunk.positions[rows], label))
            durations[name].append(chunk.durations[rows])
    return {
        name: _CallTimes.of_groups(own, concatenated(codes[name]), concatenated(durations[name]))
        for name, own in labels.items()
    }


def _op(name: str) -> str:
    return STEPS if name.startswith(STEP) else comparable_name(name)


class _StepTimes(NamedTuple):
    """The leading times of the rows of one table in each step."""

    steps: int
    times: Mapping[str, list[int]]  # of the steps that have any

    def of(self, names: Sequence[str]) -> dict[str, Values]:
        """Return the columns of SPREAD_COLUMNS for rows of these names; a step without the name counts 0."""
        spreads = []
        for name in names:
            present = self.times.get(name, [])
            values = present + [0] * (self.steps - len(present))
            spreads.append(spread_of(values) if values else Spread(0, 0.0, 0.0))
        columns = (
            [spread.count for spread in spreads],
            [min(round(spread.median), MAX) for spread in spreads],
            [min(round(spread.deviation), MAX) for spread in spreads],
        )
        return {column.key: np.array(values, np.int64) for column, values in zip(SPREAD_COLUMNS, columns)}


def _spreads(scope: Scope) -> dict[str, _StepTimes]:
    """Return the times of kernels, ops and modules in each of up to COUNTED_STEPS steps."""
    from ..device.kernels import kernels

    times: dict[str, dict[str, list[int]]] = {"kernels": {}, "ops": {}, "modules": {}}
    steps = None
    if scope.work is None:  # of a single step nothing repeats
        steps = step_spans(scope.trace, scope.clocks, scope.steps or None, scope.source)
    scopes = [] if steps is None else [step for _, step in step_scopes(scope, steps, COUNTED_STEPS)]
    if len(scopes) < 2:
        scopes = []
    for step in scopes:
        scope.check()
        of_kernels, of_ops = kernels(step), _host_ops(step)
        of_tables = (("kernels", of_kernels, "name"), ("ops", of_ops, "name"), ("modules", of_ops, "module"))
        for table, rows, key in of_tables:
            sums: Counter[str] = Counter()
            for name, ns in zip(rows.texts(key), rows.numbers(LEADING[table]).tolist()):
                sums[comparable_name(name)] += ns
            for name, ns in sums.items():
                times[table].setdefault(name, []).append(ns)
    return {table: _StepTimes(len(scopes), by_name) for table, by_name in times.items()}


def _kernels(scope: Scope, times: _StepTimes) -> Table:
    from ..device.kernels import kernels

    table = kernels(scope)
    names = [comparable_name(name) for name in table.texts("name")]
    work, labels = timed_work(scope), Labels()
    rows, numbers = dense(work.name.codes)
    codes = labels.codes([comparable_name(work.name.texts[number]) for number in numbers.tolist()])
    calls = _CallTimes.of_groups(labels, codes[rows], work.dur)
    return summed("kernels", scope.text, {**table.data, "name": names}, (times.of, calls.of))


def _host_ops(scope: Scope) -> Table:
    """Return the ops of the host, told apart by module."""
    from ..host.op_sums import Grouping
    from ..host.ops import ops

    table = ops(scope, Grouping("module"))
    return table.take(np.asarray(table.data["on_device"]) == 0)


def _ops(scope: Scope, key: str, times: _StepTimes, calls: _CallTimes) -> Table:
    """Return the ops of the host by name, or by module: those within none are left out then."""
    table = _host_ops(scope)
    if key == "module":
        table = table.take(np.array([bool(name) for name in table.texts(key)], np.bool_))
    names = [comparable_name(name) for name in table.texts(key)]
    data = {**table.data, "count": table.numbers("calls"), key: names}
    return summed("ops" if key == "name" else "modules", scope.text, data, (times.of, calls.of))


def _categories(scope: Scope) -> Table:
    from ..host.range_table import range_table

    table = range_table(scope)
    own = np.array([category != WHOLE for category in table.texts("category")], np.bool_)
    return summed("categories", scope.text, table.take(own).data)


def _steps(scope: Scope) -> Table:
    """Return the steps by their place: numbers and names differ from run to run."""
    from ..steps.steps import UNKNOWN, known_numbers, steps

    table = steps(scope)
    cadence = np.nan_to_num(np.asarray(table.data[CADENCE.key], np.float64)).astype(np.int64)
    data: dict[str, Values] = {**table.data, "place": numbered(len(table)), CADENCE.key: cadence}
    data |= {key: known_numbers(table, key) for key in UNKNOWN if key in data}
    return Table.from_arrays(SCHEMAS["steps"], scope.text, data)


def numbered(count: int) -> list[str]:
    """Return what that many steps are called in a summary."""
    return [str(at) for at in range(1, count + 1)]


def summed(
    name: str,
    scope: str,
    data: Mapping[str, Values],
    scatters: Sequence[Callable[[Sequence[str]], Mapping[str, Values]]] = (),
) -> Table:
    """Return a table of a summary: the rows of each label added up, most of the leading column first, with
    their scatter over steps and calls where that is known.
    """
    schema = SCHEMAS[name]
    label, *sums = (column for column in schema.columns if column not in SCATTER)
    whole = Table.from_arrays(replace(schema, columns=(label, *sums)), scope, data)
    rows = whole.group(label.key, [column.key for column in sums]).sort(LEADING[name])
    if not scatters:
        return rows
    data = {**rows.data, **{key: of for one in scatters for key, of in one(rows.texts(label.key)).items()}}
    return replace(rows, columns=schema.columns, data=data)


def _left_out(table: Table, rows: int, leading: str) -> LeftOut:
    rest = table.take(slice(rows, None))
    numbers = [column.key for column in table.columns[1:] if column not in SCATTER]
    sums = {key: sum_of(rest.numbers(key)) for key in numbers}
    return LeftOut(len(rest), sums, int(rest.numbers(leading).max()))
