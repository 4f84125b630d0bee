"""Whether the metrics and rows of a comparison changed by more than their noise.

Noise is what repeats: with at least LEAST earlier runs the same number of each run; else the same thing of
each step of both sides. The test is that of noise.py. A row of kernels, ops or modules is judged by its time
in a step, a row of steps by that step's time against the scatter of all steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..base.arrays import AnyArray
from .baselines import row_values
from .noise import (
    LEAST,
    Comparison,
    Spread,
    Verdict,
    compare,
    compare_single_values,
    compare_spreads,
    spread_of,
)
from .schema import Column
from .summary import LEADING, SPREAD_COLUMNS, Summary
from .table import Table

OTHERS = "(others)"
REPEATED = {
    "kernels.time": "kernel_ns",
    "step.wall": "wall_ns",
    "step.cpu_busy": "cpu_busy_ns",
    "step.device_busy": "device_busy_ns",
    "step.idle": "idle_ns",
}
"""Name of a metric, or of a group of step metrics -> the column of the steps that it is computed from."""
VERDICT = Column("verdict", "noise", "text")
ERROR = Column("error_ns", "error of the change", "ns", statistic=True, detail=True)
"""What the noise says of a row's change, and the standard error that it was held against."""
UNKNOWN: Verdict = "noise unknown"
JUDGED = ("kernels", "ops", "modules", "steps")
"""Tables whose rows are judged; the step of a row of `steps` is judged by its kernels where it has any."""


def noise_of_runs(metric: str, before: Summary, now: Summary) -> Comparison | None:
    """Return a metric of several earlier runs against that of now; None where they are too few."""
    metrics = [run.metrics.get(metric) for run in before.runs]
    values = [one.value for one in metrics if one is not None and one.value is not None]
    current = now.metrics.get(metric)
    if len(values) < LEAST or current is None or current.value is None:
        return None
    return compare(values, [current.value])


def noise_of_steps(metric: str, before: Summary, now: Summary) -> Comparison | None:
    """Return the steps of both sides by the column that a metric is made of; None for other metrics, and
    where a summary was shortened or made before it held the column.
    """
    key = REPEATED.get(metric) or (
        REPEATED.get(metric.rpartition(".")[0]) if metric.startswith("step.") else None
    )
    sides = (before.runs or (before,), (now,))
    if key is None or any(not _has_steps(run, key) for runs in sides for run in runs):
        return None
    values = [[ns for run in runs for ns in run.tables["steps"].numbers(key).tolist()] for runs in sides]
    return compare(*values) if all(values) else None


def _has_steps(run: Summary, key: str) -> bool:
    return key in run.tables["steps"].data and "steps" not in run.left_out


def with_verdicts(name: str, table: Table, before: Summary, now: Summary) -> Table:
    """Return a comparison of rows with what the noise says of each change."""
    names = table.texts(table.columns[0].key)
    if len(before.runs) >= LEAST:
        comparisons = _rows_of_runs(name, names, before, now)
    elif name == "steps":
        comparisons = _single_steps(table, before, now)
    else:
        comparisons = _rows_of_steps(name, names, before, now)
    data: dict[str, AnyArray | list[str]] = {
        **table.data,
        VERDICT.key: [UNKNOWN if one is None else one.verdict for one in comparisons],
        ERROR.key: np.array(
            [np.nan if one is None or one.error is None else one.error for one in comparisons], np.float64
        ),
    }
    return replace(table, columns=(*table.columns, VERDICT, ERROR), data=data)


def _rows_of_runs(name: str, names: list[str], before: Summary, now: Summary) -> list[Comparison | None]:
    """Return of each row its leading time in the earlier runs against that of now."""
    key = judged_by(name, now.tables[name])
    past = row_values(before.runs, name, key)
    label = now.tables[name].columns[0].key
    present = dict(zip(now.tables[name].texts(label), now.tables[name].numbers(key).tolist()))
    zeros = [0] * sum(name not in run.left_out for run in before.runs)
    comparisons = []
    for row in names:
        values = past.get(row, zeros)
        current = present.get(row, None if name in now.left_out or row == OTHERS else 0)
        comparisons.append(None if len(values) < LEAST or current is None else compare(values, [current]))
    return comparisons


def _rows_of_steps(name: str, names: list[str], before: Summary, now: Summary) -> list[Comparison | None]:
    """Return of each row the median of its leading time in a step, before and now."""
    past, present = (_row_spreads(name, side) for side in (before, now))
    comparisons: list[Comparison | None] = []
    for row in names:
        sides = past(row), present(row)
        if sides[0] is None or sides[1] is None:
            comparisons.append(None)
            continue
        one = compare_spreads(sides[0], sides[1])
        # What runs in less than half of the steps on both sides has no median to compare.
        idle = not one.before.median and not one.now.median
        comparisons.append(None if idle else one)
    return comparisons


def _row_spreads(name: str, side: Summary) -> Callable[[str], Spread | None]:
    """Return what tells the scatter of a row of a side over its steps, None where that is not known."""
    runs = side.runs or (side,)
    if len(runs) > 1 or any(column.key not in runs[0].tables[name].data for column in SPREAD_COLUMNS):
        return lambda row: None
    table = runs[0].tables[name]
    columns = [table.numbers(column.key).tolist() for column in SPREAD_COLUMNS]
    spreads = {
        row: Spread(steps, float(middle), float(deviation))
        for row, steps, middle, deviation in zip(table.texts(table.columns[0].key), *columns)
    }
    steps = max((spread.count for spread in spreads.values()), default=0)
    absent = Spread(steps, 0.0, 0.0) if steps and name not in side.left_out else None

    def spread(row: str) -> Spread | None:
        known = spreads.get(row, absent)
        return known if known is not None and known.count and row != OTHERS else None

    return spread


def _single_steps(table: Table, before: Summary, now: Summary) -> list[Comparison | None]:
    """Return of each step its time now against before, with the scatter of all steps as noise."""
    key = judged_by("steps", now.tables["steps"])
    if any(not _has_steps(run, key) for run in (*(before.runs or (before,)), now)):
        return [None] * len(table)
    sides = [side.tables["steps"].numbers(key).tolist() for side in (before, now)]
    spreads = [spread_of(values) if values else None for values in sides]
    comparisons: list[Comparison | None] = []
    for row in range(len(table)):
        at = int(table.texts(table.columns[0].key)[row]) - 1
        singles = [
            None if spread is None or at >= len(values) else replace(spread, median=float(values[at]))
            for spread, values in zip(spreads, sides)
        ]
        pair = singles[0], singles[1]
        comparisons.append(
            None if pair[0] is None or pair[1] is None else compare_single_values(pair[0], pair[1])
        )
    return comparisons


def judged_by(name: str, table: Table) -> str:
    """Return the column by which rows are judged: of steps their kernels, where they have any."""
    if name == "steps" and "kernel_ns" in table.data and table.numbers("kernel_ns").any():
        return "kernel_ns"
    return LEADING[name]
