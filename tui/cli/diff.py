"""`tracelane diff`: what changed from one trace, or part of one, to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tracelane.core.base.errors import UsageError
from tracelane.core.base.output import print_text
from tracelane.core.base.safe_text import markdown_words, safe

from .ci_reports import GITHUB, JUNIT, CheckResult, report_results
from .limits import parse_value
from .options import choice_options, with_index_options
from .scoped import STEP_NAME, WHERE, terminal_width
from .sides import read_side, split_side

if TYPE_CHECKING:
    from tracelane.core.index.choice import Choice
    from tracelane.core.index.options import IndexOptions
    from tracelane.core.tables.diff import Difference, MetricChange

EXCEEDED = 1
ROWS = 15
ORDER = ("steps", "categories", "ops", "kernels")
DEFAULT_METRICS = ("kernels.time", "step.wall.median", "ops.self_cpu")
"""The first of these that both sides have is what --fail-above holds to, where --metric does not say: the
time of kernels, without copies and memsets, repeats where walls of the host do not.
"""


@click.command()
@click.argument("before", metavar="A")
@click.argument("now", metavar="B")
@click.option(
    "--metric",
    "names",
    multiple=True,
    metavar="METRIC",
    help="What --fail-above holds to, as step.wall.median.",
)
@click.option("--fail-above", metavar="SHARE", help="Exit with 1 if a metric rose by more than this: 5%.")
@click.option(
    "--min-time", default="0", metavar="TIME", help="Changes of a time below this do not count: 100us."
)
@click.option("--limit", type=click.IntRange(1), help=f"Rows; of a table {ROWS}, else all.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "md"]),
    default="table",
    show_default=True,
    help="How to print it.",
)
@WHERE
@STEP_NAME
@JUNIT
@GITHUB
@choice_options
@with_index_options
@click.pass_context
def diff(
    context: click.Context,
    before: str,
    now: str,
    names: tuple[str, ...],
    fail_above: str | None,
    min_time: str,
    limit: int | None,
    form: str,
    where: str | None,
    step_name: str | None,
    junit: str | None,
    github: bool,
    index_options: IndexOptions,
    choice: Choice,
) -> None:
    """Say what changed from A to B: metrics, steps, categories, ops and kernels, the worst first.

    --fail-above holds the time of kernels to a share (no copies, no memsets) or what --metric names. Where
    steps repeat, a rise within their noise does not fail; where nothing repeats, the share alone decides.

    A side is a trace, a step of it (A:step=4, A:step=nth:-1), a stretch (A:+10ms..+20ms), or a file that
    `tracelane summary --json` wrote. Names are compared without generated hashes and step numbers.
    --run, --capture, --rank and --step-name are for both sides.
    """
    from tracelane.core.index.inputs import check_there
    from tracelane.core.tables.diff import difference
    from tracelane.core.tables.metrics import metric_group_of
    from tracelane.tui.text.diff import told

    share = None if fail_above is None else parse_value(fail_above)
    least = round(parse_value(min_time))
    if least < 0 or (share is not None and share < 0):
        raise UsageError("--fail-above and --min-time take no negative values")
    for name in names:
        metric_group_of(name)
    check_there(split_side(side)[0] for side in (before, now))
    sides = [read_side(side, index_options, choice, step_name, where) for side in (before, now)]
    found = difference(sides[0], sides[1], least)
    held = _held(found, names)
    failed = [] if share is None else [change for change in held if change.exceeds(share, least)]
    if form == "json":
        print_text(_json(found, limit, failed), end="")
    else:
        _print(found, form, limit)
    verdicts = [
        CheckResult(change.metric.name, f"{told(change)}; {fail_above} is allowed", change in failed)
        for change in (held if share is not None else [])
    ]
    report_results("tracelane diff", verdicts, junit, github)
    for change in failed:
        print_text(f"tracelane: {told(change)}; {fail_above} is allowed", error=True)
    if failed:
        context.exit(EXCEEDED)


def _held(found: Difference, names: tuple[str, ...]) -> list[MetricChange]:
    """Return the metrics that --fail-above holds to; UsageError for one that a side lacks."""
    if not names:
        known = [name for name in DEFAULT_METRICS if found.metrics[name].change is not None]
        return [found.metrics[name] for name in known[:1]]
    for name in names:
        if name not in found.metrics:
            raise UsageError(f"no metric {name!r}; there are {', '.join(found.metrics)}")
        if found.metrics[name].change is None:
            raise UsageError(f"{name} cannot be compared: a side has nothing of the kind")
    return [found.metrics[name] for name in names]


def _print(found: Difference, form: str, limit: int | None) -> None:
    from tracelane.core.export.formats import as_markdown
    from tracelane.tui.text.diff import compact, metric_table
    from tracelane.tui.text.table import table_text

    names = [name for name in ORDER if name != "steps" or len(found.tables["steps"]) > 1]
    tables = [metric_table(found), *(compact(name, found.tables[name]) for name in names)]
    sides = [f"{side.title}: {side.scope}" for side in (found.before, found.now)]
    if form == "md":
        print_text("".join(f"{letter}  {markdown_words(side)}\n" for letter, side in zip("AB", sides)))
        print_text("\n".join(as_markdown(table, limit=limit) for table in tables), end="")
        return
    print_text("".join(f"{letter}  {safe(side)}\n" for letter, side in zip("AB", sides)))
    first, *rest = tables
    texts = [table_text(first, terminal_width())]
    for table in rest:
        texts.append(
            table_text(table, terminal_width(), limit=limit or ROWS)
            if len(table)
            else f"{table.title}: nothing changed"
        )
    print_text("\n\n".join(texts))


def _json(found: Difference, limit: int | None, failed: list[MetricChange]) -> str:
    from tracelane.core.export.formats import json_pieces, json_rows, json_table

    sides = [
        {"side": side, "title": one.title, "scope": one.scope}
        for side, one in (("a", found.before), ("b", found.now))
    ]
    metrics = [
        {
            "name": name,
            "unit": change.metric.unit,
            "a": change.before,
            "b": change.metric.value,
            "change": change.change,
            "relative": change.relative,
            "verdict": change.verdict,
            "error": None if change.noise is None else change.noise.error,
        }
        for name, change in found.metrics.items()
    ]
    tables = {
        "sides": json_rows(sides),
        "metrics": json_rows(metrics),
        **{name: json_table(table, limit=limit) for name, table in found.tables.items()},
        "failed": json_rows([{"name": change.metric.name} for change in failed]),
    }
    scope = f"{found.now.scope} against {found.before.scope}"
    return "".join(json_pieces("diff", scope, 0, tables))
