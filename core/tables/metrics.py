"""Metrics: numbers of a trace under names that do not change, for checks and comparisons
(`step.length.median`).

A function of each analysis computes those of one group; the analysis's row in the registry names group and
function.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..base.arrays import I64, mean_of, sum_of
from ..base.errors import UsageError
from .analysis import loaded
from .registry import ANALYSES
from .schema import Unit
from .scope import Scope

Number = int | float
SPREAD = ("count", "total", "mean", "median", "p95", "min", "max")
"""Of a set of times; the median and p95 are values that occur."""
GROUPS = {row.metric_group: row.metrics for row in ANALYSES if row.metrics}
"""Prefix of a metric's name -> the function that computes the metrics of that group."""
ROWS = "rows"
"""The group of the metrics of single rows of a summary's tables (`Summary.metric`)."""
ROW_GROUPS = ("kernel", "op", "module")
"""What those begin with: `kernel.NAME.median`."""


class Metric(NamedTuple):
    """One number: its name, its unit (ns for times); None where the trace has nothing of the kind."""

    name: str
    unit: Unit
    value: Number | None


def metrics(scope: Scope, groups: Iterable[str] | None = None) -> dict[str, Metric]:
    """Return the metrics of a scope by name: of these groups (what stands before the first dot), or all."""
    names = GROUPS if groups is None else groups
    return {metric.name: metric for group in names for metric in loaded(GROUPS[group])(scope)}


def metric_group_of(name: str) -> str:
    """Return what a metric's name begins with, ROWS for single kernels, ops, modules; or UsageError."""
    group = name.partition(".")[0]
    if group in ROW_GROUPS:
        return ROWS
    if group not in GROUPS:
        known = ", ".join(f"{key}." for key in (*GROUPS, *ROW_GROUPS))
        raise UsageError(f"no metric {name!r}: they begin with {known}")
    return group


def no_metric(name: str, known: Iterable[str]) -> UsageError:
    """Return the error for a metric that there is none of, with those that there are."""
    rows = ", ".join(f"{group}.NAME.median" for group in ROW_GROUPS)
    stats = "count, total (self_cpu, self_device), mean, median, p95, min or max"
    return UsageError(f"no metric {name!r}; there are {', '.join(known)}, and of single rows {rows}: {stats}")


def spread_metrics(name: str, values: I64) -> list[Metric]:
    """Return count, total, mean, median, p95, least and most of times in ns."""
    numbers: list[Number | None] = [0, *[None] * (len(SPREAD) - 1)]
    if len(values):
        middle = (round(mean_of(values)), percentile(values, 50), percentile(values, 95))
        numbers = [len(values), sum_of(values), *middle, int(values.min()), int(values.max())]
    return [
        Metric(f"{name}.{stat}", "count" if stat == "count" else "ns", value)
        for stat, value in zip(SPREAD, numbers)
    ]


def percentile(values: I64, share: int) -> int:
    """Return the smallest value that at least `share` percent of the values do not exceed."""
    ordered = np.sort(values)
    return int(ordered[max(0, -(-len(ordered) * share // 100) - 1)])


def ratio(part: int, whole: int) -> float | None:
    """Return a part as a share of 1, None of nothing."""
    return part / whole if whole else None
