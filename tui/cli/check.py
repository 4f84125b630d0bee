"""`tracelane check`: a trace against limits, for CI."""

from __future__ import annotations

from pathlib import Path

import click

from tracelane.core.base.errors import UsageError
from tracelane.core.base.output import print_pieces, print_text
from tracelane.core.base.safe_text import safe

from .ci_reports import GITHUB, JUNIT, CheckResult, report_results
from .limits import Limit, parse_limit, read_limits
from .opened import TraceOptions, opened_options

EXCEEDED = 1
LIMIT = "METRIC=VALUE"


@click.command()
@opened_options
@click.option(
    "--max", "most", metavar="METRIC=VALUE", multiple=True, help="Fail if it is more: kernels.calls=400."
)
@click.option(
    "--min", "least", metavar="METRIC=VALUE", multiple=True, help="Fail if it is less: device.busy_share=80%."
)
@click.option("--limits", "file", metavar="FILE", help="Read limits from a TOML file: [max] and [min].")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@JUNIT
@GITHUB
@click.pass_context
def check(
    context: click.Context,
    opened: TraceOptions,
    most: tuple[str, ...],
    least: tuple[str, ...],
    file: str | None,
    as_json: bool,
    junit: str | None,
    github: bool,
) -> None:
    """Hold a trace's metrics to limits: exit code 0 if all are kept, 1 if not, 2 if the trace is unreadable.

    `tracelane summary TRACE` lists the metrics. Values take units: 250ms, 1.5GiB, 80%. A metric of which the
    trace has nothing keeps no limit.
    """
    from tracelane.core.export.formats import json_pieces, json_rows
    from tracelane.core.tables.metrics import metric_group_of, metrics

    limits = [
        *(parse_limit(text, at_most=True) for text in most),
        *(parse_limit(text, at_most=False) for text in least),
        *([] if file is None else read_limits(Path(file))),
    ]
    if not limits:
        raise UsageError("no limits: give --max METRIC=VALUE, --min METRIC=VALUE or --limits FILE")
    groups = dict.fromkeys(metric_group_of(limit.metric) for limit in limits)
    scope = opened.scope()
    found = metrics(scope, groups)
    unknown = [limit.metric for limit in limits if limit.metric not in found]
    if unknown:
        raise UsageError(f"no metric {unknown[0]!r}; there are {', '.join(found)}")
    kept = [limit.is_kept(found[limit.metric]) for limit in limits]
    if as_json:
        rows = [_row(limit, found[limit.metric].value, good) for limit, good in zip(limits, kept)]
        tables = {"limits": json_rows(rows), "totals": json_rows([{"kept": all(kept)}])}
        print_pieces(json_pieces("check", scope.text, 0, tables))
    else:
        for limit, good in zip(limits, kept):
            print_text(safe(f"{'ok      ' if good else 'EXCEEDED'}  {limit.told(found[limit.metric])}"))
    results = [
        CheckResult(limit.metric, limit.told(found[limit.metric]), not good)
        for limit, good in zip(limits, kept)
    ]
    report_results("tracelane check", results, junit, github)
    if not all(kept):
        context.exit(EXCEEDED)


def _row(limit: Limit, value: int | float | None, kept: bool) -> dict[str, object]:
    bound = "max" if limit.at_most else "min"
    return {"metric": limit.metric, "value": value, bound: limit.value, "kept": kept}
