"""A trace in a few tables of names that last from run to run: what comparisons compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from ..base.comparable import comparable_name
from .metrics import Metric, metrics
from .scope import Scope
from .table import Column, Table, Tables, Values

_COUNT = Column("count", "count", "count")
KERNELS = (Column("name", "kernel", "text", is_name=True), _COUNT, Column("total_ns", "total", "ns"))
OPS = (
    Column("name", "op", "text"),
    _COUNT,
    Column("self_cpu_ns", "self CPU", "ns"),
    Column("self_device_ns", "self device", "ns"),
)
CATEGORIES = (Column("category", "category", "text"), _COUNT, Column("self_ns", "self", "ns"))
STEPS = (
    Column("place", "nth step", "text"),
    Column("wall_ns", "wall", "ns"),
    Column("cpu_busy_ns", "CPU busy", "ns"),
    Column("device_busy_ns", "device busy", "ns"),
    Column("kernel_ns", "kernels", "ns"),
    Column("idle_ns", "device idle", "ns"),
)
METRICS = (Column("name", "metric", "text"), Column("value", "value"), Column("unit", "unit", "text"))
LEFT_OUT = (
    Column("table", "table", "text"),
    Column("rows", "rows", "count"),
    Column("sums", "sums", "object"),
    Column("most", "most", "ns"),
)
LEADING = {"kernels": "total_ns", "ops": "self_cpu_ns", "categories": "self_ns", "steps": "wall_ns"}
"""Table -> the time by which its rows are ranked and their changes weighed."""
WHOLE = "Trace"
"""The category of the spans that profilers draw over all they recorded."""


@dataclass(frozen=True)
class LeftOut:
    """Rows that a table of a summary does not hold: how many, their sums, the most that one of them has."""

    rows: int
    sums: Mapping[str, int]
    most: int  # of the leading column


@dataclass(frozen=True)
class Summary:
    """One side of a comparison. `tables` are kernels, ops, categories and steps; most time first."""

    title: str
    scope: str
    metrics: Mapping[str, Metric]
    tables: Mapping[str, Table]
    left_out: Mapping[str, LeftOut] = field(default_factory=dict)

    def shortened(self, rows: int) -> Summary:
        """Return the summary with at most so many rows a table; steps are kept from the first on."""
        tables, left_out = dict(self.tables), dict(self.left_out)
        for name, table in self.tables.items():
            if len(table) > rows:
                tables[name] = table.head(rows)
                left_out[name] = _left_out(table, rows, LEADING[name])
        return replace(self, tables=tables, left_out=left_out)


def analyse_summary(scope: Scope, rows: int = 30) -> Tables:
    """Return metrics, kernels, ops, categories and steps of a scope, and what was left out of them."""
    title = ", ".join(Path(source.path).name for source in scope.trace.sources)
    return summary_tables(summarise(scope, title), rows)


def summary_tables(found: Summary, rows: int) -> Tables:
    """Return a summary as tables of at most so many rows."""
    short = found.shortened(rows)
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
        "metrics": lambda: Table(
            "metrics", short.title, short.scope, METRICS, metrics, {"title": short.title}
        ),
        **{name: partial(short.tables.__getitem__, name) for name in short.tables},
        "left_out": lambda: Table.from_rows(
            "left_out", "Left out", short.scope, LEFT_OUT, left_out, is_drawn=False
        ),
    }
    return Tables(short.scope, 0, tables)


def summarise(scope: Scope, title: str) -> Summary:
    """Return the summary of a scope."""
    tables = {
        "kernels": _kernels(scope),
        "ops": _ops(scope),
        "categories": _categories(scope),
        "steps": _steps(scope),
    }
    return Summary(title, scope.text, metrics(scope), tables)


def _kernels(scope: Scope) -> Table:
    from .kernels import kernels

    found = kernels(scope)
    names = [comparable_name(str(name)) for name in found.data["name"]]
    return _summed("kernels", scope, KERNELS, names, found)


def _ops(scope: Scope) -> Table:
    from .ops import ops

    found = ops(scope)
    data = {**found.data, "count": found.data["calls"]}
    host = np.flatnonzero(np.asarray(found.data["on_device"]) == 0)
    names = [comparable_name(str(found.data["name"][at])) for at in host.tolist()]
    kept = {key: np.asarray(data[key])[host] for key in ("count", "self_cpu_ns", "self_device_ns")}
    return _summed("ops", scope, OPS, names, replace(found, data=kept))


def _categories(scope: Scope) -> Table:
    from .range_table import range_table

    found = range_table(scope)
    own = [at for at, category in enumerate(found.data["category"]) if category != WHOLE]
    kept = {key: np.asarray(found.data[key])[own] for key in ("count", "self_ns")}
    labels = [str(found.data["category"][at]) for at in own]
    return _summed("categories", scope, CATEGORIES, labels, replace(found, data=kept))


def _steps(scope: Scope) -> Table:
    """Return the steps by their place: numbers and names differ from run to run."""
    from .steps import steps

    found = steps(scope).steps
    data: dict[str, Values] = {"place": [str(place) for place in range(1, len(found) + 1)]}
    data |= {column.key: np.asarray(found.data[column.key], np.int64) for column in STEPS[1:]}
    return Table("summary_steps", "Steps", scope.text, STEPS, data, keys=("place",))


def _summed(name: str, scope: Scope, columns: tuple[Column, ...], labels: list[str], table: Table) -> Table:
    """Return the rows of each label added up, by the leading column."""
    label, *sums = columns
    data: dict[str, Values] = {
        label.key: labels,
        **{column.key: table.numbers(column.key) for column in sums},
    }
    whole = Table(f"summary_{name}", name.capitalize(), scope.text, columns, data)
    return whole.group(label.key, [column.key for column in sums]).sort(LEADING[name])


def _left_out(table: Table, rows: int, leading: str) -> LeftOut:
    rest = table.take(slice(rows, None))
    sums = {c.key: int(rest.numbers(c.key).sum()) for c in table.columns if c.unit != "text"}
    return LeftOut(len(rest), sums, int(rest.numbers(leading).max()))
