"""All metrics of a trace: numbers under names that do not change, for checks and comparisons
(`step.length.median`).

A function of each analysis computes those of one group; the analysis's row in the registry names group and
function.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..base.errors import UsageError
from .analysis import loaded
from .frame.metrics import Metric
from .frame.scope import Scope
from .registry import ANALYSES

GROUPS = {row.metric_group: row.metrics for row in ANALYSES if row.metrics}
"""Prefix of a metric's name -> the function that computes the metrics of that group."""
ROWS = "rows"
"""The group of the metrics of single rows of a summary's tables (`Summary.metric`)."""
ROW_GROUPS = ("kernel", "op", "module")
"""What those begin with: `kernel.NAME.median`."""


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
