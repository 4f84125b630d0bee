"""Several earlier runs as one side of a comparison: every number is its median over the runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from types import MappingProxyType

import numpy as np

from ..base.errors import UsageError
from .metrics import Metric, Number
from .schema import TableSchema
from .summary import LEADING, SPREAD_COLUMNS, LeftOut, Summary
from .table import Table, Values

SCATTER = frozenset(column.key for column in SPREAD_COLUMNS)


def median_of_runs(runs: Sequence[Summary]) -> Summary:
    """Return the summary whose numbers are the medians over at least one run; its `runs` are the summaries
    given.

    A single run is returned as it is. A row that a run lacks counts as 0 in that run, unless the summary of
    the run was shortened and may have left the row out.
    """
    if not runs:
        raise UsageError("a comparison needs at least one earlier run")
    if len(runs) == 1:
        return runs[0]
    names = [name for name in LEADING if all(name in run.tables for run in runs)]
    left_out = {name: _left_out(name, runs) for name in names if any(name in run.left_out for run in runs)}
    return Summary(
        f"median of {len(runs)} runs: {', '.join(run.title for run in runs)}",
        runs[0].scope,
        _metrics(runs),
        {name: _table(name, runs) for name in names},
        left_out,
        tuple(runs),
    )


def row_values(runs: Sequence[Summary], table: str, key: str) -> Mapping[str, list[int]]:
    """Return by row name the numbers of a column, one for each run that has the row or is known not to have
    it.
    """
    held = [_by_name(run.tables[table], key) for run in runs]
    names = dict.fromkeys(name for rows in held for name in rows)
    return MappingProxyType(
        {
            name: [
                rows.get(name, 0)
                for run, rows in zip(runs, held)
                if name in rows or table not in run.left_out
            ]
            for name in names
        }
    )


def _by_name(table: Table, key: str) -> dict[str, int]:
    return dict(zip(table.texts(table.columns[0].key), table.numbers(key).tolist()))


def _metrics(runs: Sequence[Summary]) -> dict[str, Metric]:
    names = dict.fromkeys(name for run in runs for name in run.metrics)
    metrics = {}
    for name in names:
        present = [run.metrics[name] for run in runs if name in run.metrics]
        values = [metric.value for metric in present if metric.value is not None]
        metrics[name] = replace(present[0], value=median_number(values) if values else None)
    return metrics


def median_number(values: Sequence[Number]) -> Number:
    """Return the median, a whole number where all values are."""
    middle = median(values)
    return round(middle) if all(isinstance(value, int) for value in values) else float(middle)


def _table(name: str, runs: Sequence[Summary]) -> Table:
    """Return a table of the medians of all rows. Columns with the scatter over the steps of one run are left
    out: a median over runs has none.
    """
    first = runs[0].tables[name]
    label, *others = [column for column in first.columns if column.key not in SCATTER]
    numbers = [column for column in others if all(column.key in run.tables[name].data for run in runs)]
    values = {column.key: row_values(runs, name, column.key) for column in numbers}
    names = list(next(iter(values.values()))) if values else []
    data: dict[str, Values] = {label.key: names}
    for key, by_name in values.items():
        data[key] = np.array([round(median(by_name[row])) for row in names], np.int64)
    schema = TableSchema(f"summary_{name}", first.title, (label, *numbers), keys=(label.key,))
    table = Table.from_arrays(schema, first.scope, data)
    return table if name == "steps" else table.sort(LEADING[name])


def _left_out(name: str, runs: Sequence[Summary]) -> LeftOut:
    """Return what the runs may have left out: the sums as medians, and the largest single row that any run
    left out.
    """
    rests = [run.left_out[name] for run in runs if name in run.left_out]
    keys = set.intersection(*(set(rest.sums) for rest in rests))
    return LeftOut(
        max(rest.rows for rest in rests),
        {key: round(median(rest.sums[key] for rest in rests)) for key in sorted(keys)},
        max(rest.most for rest in rests),
    )
