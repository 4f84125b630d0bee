"""Metrics over many runs in order: how each differs from those before it, and by more than their noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .baselines import median_number
from .diff import MetricChange
from .metrics import Metric, Number
from .noise import LEAST, compare
from .schema import Column, TableSchema, Unit
from .summary import Summary
from .table import Table

BEFORE = 10
"""The most earlier runs, nearest first, that a run is compared with."""


@dataclass(frozen=True)
class RunOfMetric:
    """The value of a metric in one run; `change` is the difference to the median of the runs before it, None
    for the first run.
    """

    title: str
    value: Number | None
    change: MetricChange | None

    @property
    def verdict(self) -> str:
        """What the noise of the runs before says of the change, "" where there is nothing to compare."""
        return "" if self.change is None or self.change.change is None else self.change.verdict


def metric_history(summaries: Sequence[Summary], metric: str) -> list[RunOfMetric]:
    """Return a metric of each of some runs, given in their order, against up to BEFORE runs before it."""
    runs: list[RunOfMetric] = []
    earlier: list[Number] = []
    for summary in summaries:
        current = summary.metrics.get(metric)
        value = None if current is None else current.value
        change = None
        if current is not None and value is not None:
            if earlier:
                past = earlier[-BEFORE:]
                noise = compare(past, [value]) if len(past) >= LEAST else None
                change = MetricChange(current, median_number(past), noise, len(past) if noise else 0)
            earlier.append(value)
        runs.append(RunOfMetric(summary.title, value, change))
    return runs


def history_table(summaries: Sequence[Summary], metric: str) -> Table:
    """Return a row per run."""
    unit = unit_of_metric(summaries, metric)
    columns = (
        Column("run", "run", "text"),
        Column("value", "value", unit, statistic=True),
        Column("change", "against those before", unit, statistic=True, change=True),
        Column("relative", "±%", "share", statistic=True, change=True),
        Column("verdict", "noise", "text"),
        Column("runs", "of runs", "count", detail=True),
    )
    rows = [
        {
            "run": run.title,
            "value": run.value,
            "change": None if run.change is None else run.change.change,
            "relative": None if run.change is None else run.change.relative,
            "verdict": run.verdict,
            "runs": 0 if run.change is None else run.change.runs,
        }
        for run in metric_history(summaries, metric)
    ]
    scope = f"{len(rows):,} runs, each against the median of up to {BEFORE} before it"
    schema = TableSchema("history", f"History of {metric}", columns)
    return Table.from_rows(schema, scope, rows, totals={"metric": metric})


def unit_of_metric(summaries: Sequence[Summary], metric: str) -> Unit:
    """Return the unit of a metric, that of a plain number where no run has it."""
    known: list[Metric] = [run.metrics[metric] for run in summaries if metric in run.metrics]
    return known[-1].unit if known else "number"
