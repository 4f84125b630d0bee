"""Check a trace against limits and earlier runs: exit code 0 if all hold, 1 if not, 2 if unreadable.

`tracelane summary TRACE` lists the metrics. Values take units: 250ms, 1.5GiB, 80%. A limit fails if the
trace lacks its metric. With --baseline, --fail-above 5% fails where the time of kernels (or
what --metric names) rose by more than that, and by more than its noise: that of three and more baselines,
else of the steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from tracelane.core.base.errors import UsageError
from tracelane.core.base.safe_text import safe
from tracelane.core.export.formats import json_pieces, json_rows
from tracelane.core.tables.diff import MetricChange, difference
from tracelane.core.tables.metrics import Metric, metric_group_of
from tracelane.core.tables.summary import metrics_named, summarise
from tracelane.core.tables.table import Tables

from .limits import Limit, Threshold, parse_limit, read_limits, report_results, results_table
from .opened import TraceOptions
from .printing import Printout, print_output
from .sides import read_sides

EXCEEDED = 1
LIMIT = "METRIC=VALUE"


def run_check(
    options: TraceOptions,
    most: tuple[str, ...],
    least: tuple[str, ...],
    file: str | None,
    baselines: tuple[str, ...],
) -> None:
    limits = _limits(most, least, file)
    threshold = Threshold.of(options.names, options.fail_above, options.min_time)
    _check_complete(limits, baselines, options.fail_above)
    for limit in limits:
        metric_group_of(limit.metric)  # said before a trace is read
    whole = replace(options, traces=(), begin=None, end=None, step=None, skip_first=None, device_offsets=())
    earlier = read_sides(baselines, whole, options)
    scope = options.scope()
    here = summarise(scope, options.title) if earlier else None
    outcomes = _outcomes(limits, metrics_named(scope, (limit.metric for limit in limits), here))
    changes = []
    if earlier and here is not None:
        changes = threshold.gated(difference(earlier, here), options.where)
    results = [*(limit.result(metric) for limit, metric in outcomes), *threshold.results(changes)]
    passed = not any(result.failed for result in results)
    lines = (safe(f"{'EXCEEDED' if one.failed else 'ok      '}  {one.text}") for one in results)
    print_output(
        Printout("check", Tables.of(results_table(results, scope.text))),
        options.form,
        json=lambda _: _json(scope.text, outcomes, threshold, changes, passed),
        text=lambda _: ["\n".join(lines)],
    )
    report_results("tracelane check", results, options.junit, options.github)
    if not passed:
        click.get_current_context().exit(EXCEEDED)


def _limits(most: Sequence[str], least: Sequence[str], file: str | None) -> list[Limit]:
    return [
        *(parse_limit(text, at_most=True) for text in most),
        *(parse_limit(text, at_most=False) for text in least),
        *([] if file is None else read_limits(Path(file))),
    ]


def _check_complete(limits: Sequence[Limit], baselines: Sequence[str], fail_above: str | None) -> None:
    """Raise UsageError where there is nothing to check, or half of what a comparison needs."""
    if bool(baselines) != (fail_above is not None):
        raise UsageError(
            "give --baseline and --fail-above together: the earlier run, and by how much a metric may rise"
        )
    if not limits and not baselines:
        raise UsageError(
            "no limits: give --max METRIC=VALUE, --min METRIC=VALUE, --limits FILE, or --baseline A with "
            "--fail-above"
        )


def _outcomes(limits: Sequence[Limit], metrics: Mapping[str, Metric]) -> list[tuple[Limit, Metric]]:
    """Return each limit with its metric; UsageError for a value in a wrong unit."""
    for limit in limits:
        limit.check_unit(metrics[limit.metric])
    return [(limit, metrics[limit.metric]) for limit in limits]


def _json(
    scope: str,
    outcomes: Sequence[tuple[Limit, Metric]],
    threshold: Threshold,
    changes: Sequence[MetricChange],
    passed: bool,
) -> Iterator[str]:
    failed = threshold.failed(changes)
    compared = [
        {
            "metric": one.metric.name,
            "value": one.metric.value,
            "before": one.before,
            "relative": one.relative,
            "verdict": one.verdict,
            "kept": one not in failed,
        }
        for one in changes
    ]
    tables = {
        "limits": json_rows([limit.row(metric) for limit, metric in outcomes]),
        "baseline": json_rows(compared),
        "totals": json_rows([{"kept": passed}]),
    }
    return json_pieces("check", scope, 0, tables)
