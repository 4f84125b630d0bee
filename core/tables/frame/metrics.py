"""Numbers under names that do not change from run to run, and the usual ones of a set of times."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...base.arrays import I64, mean_of, sum_of
from .schema import Unit

Number = int | float
SPREAD = ("count", "total", "mean", "median", "p95", "min", "max")
"""Of a set of times; the median and p95 are values that occur."""


class Metric(NamedTuple):
    """One number: its name, its unit (ns for times); None where the trace has nothing of the kind."""

    name: str
    unit: Unit
    value: Number | None


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
