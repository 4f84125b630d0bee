"""Say what changed from A to B: metrics, steps, categories, ops, modules and kernels, the worst first.

--fail-above checks the time of kernels (without copies and memsets), or what --metric names. A rise
within the noise does not fail; the noise is that of the steps, or of three or more earlier runs (A A A
B). Where nothing repeats, only the share decides.

A side is a trace, a step of it (A:step=4, A:step=nth:-1), a range (A:+10ms..+20ms), or a file that
`tracelane summary --json` wrote. Names are compared without generated hashes and step numbers.
--run, --capture, --rank and --step-name are for all sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click

from tracelane.core.base.errors import UsageError
from tracelane.core.base.output import print_text
from tracelane.core.base.safe_text import markdown_words, safe
from tracelane.core.export.formats import json_pieces, json_rows, json_table
from tracelane.core.export.forms import emit
from tracelane.core.tables.compare import TEST
from tracelane.core.tables.diff import Difference, MetricChange, difference
from tracelane.core.tables.diff_trees import diff_trees, largest_changes
from tracelane.core.tables.table import Table, Tables
from tracelane.tui.text.diff import compact_tables, noise_basis, side_titles
from tracelane.tui.text.table import table_text

from .limits import Threshold, report_results
from .opened import TraceOptions
from .options import COMPARED_ROWS, split_side
from .printing import Printout, print_output, table_style
from .sides import read_sides, side_options

EXCEEDED = 1
TREE_ROWS = 40


def run_diff(options: TraceOptions, as_tree: bool) -> None:
    threshold = Threshold.of(options.names, options.fail_above, options.min_time)
    sides, limit = options.traces, options.limit
    if len(sides) < 2:
        raise UsageError("diff compares two sides or more: A B, or several earlier runs and B")
    if as_tree:
        _print_trees(options)
        return
    *earlier, now = read_sides(sides, options)
    result = difference(earlier, now, threshold.least_ns)
    gated = threshold.gated(result, options.where)
    failed = threshold.failed(gated)
    tables, titles = compact_tables(result), side_titles(result)
    heading = " · ".join(f"{side_name} {title}" for side_name, title in titles)
    cut = tables if limit is None else [table.head(limit) for table in tables]
    print_output(
        Printout("diff", replace(Tables.of(*cut), scope=heading)),
        options.form,
        json=lambda _: _json(result, limit, failed),
        text=lambda _: [_text(tables, titles, limit or COMPARED_ROWS)],
        md=lambda listing: [_markdown_titles(titles), *emit(listing, "md")],
    )
    results = threshold.results(gated)
    report_results("tracelane diff", results, options.junit, options.github)
    for one in results:
        if one.failed:
            print_text(f"tracelane: {one.text}", error=True)
    if failed:
        click.get_current_context().exit(EXCEEDED)


def _print_trees(options: TraceOptions) -> None:
    if len(options.traces) != 2:
        raise UsageError("diff --tree compares two traces, or parts of them")
    parts = [split_side(side) for side in options.traces]
    before, now = (side_options(options, *part).scope() for part in parts)
    titles = [Path(side).name.partition(".")[0] for side in options.traces]
    table = diff_trees(before, now, (titles[0], titles[1]))
    if options.form == "text":
        print_text(safe(table.notes[0]) + "\n")
        table = replace(largest_changes(table, options.limit or TREE_ROWS), notes=())
    print_output(
        Printout("diff", Tables.of(table), limit=options.limit, empty="nothing changed"), options.form
    )


def _text(tables: Sequence[Table], titles: Sequence[tuple[str, str]], limit: int) -> str:
    first, *rest = tables
    texts = ["".join(f"{side_name}  {safe(title)}\n" for side_name, title in titles) + "\n"]
    texts[0] += table_text(first, table_style().plain)
    for table in rest:
        has_rows = len(table) > 0
        text = table_text(table, table_style().plain, limit=limit) if has_rows else ""
        texts.append(text or f"{table.title}: nothing changed")
    return "\n\n".join(texts)


def _markdown_titles(titles: Sequence[tuple[str, str]]) -> str:
    return "".join(f"{side_name}  {markdown_words(title)}\n" for side_name, title in titles) + "\n"


def _json(result: Difference, limit: int | None, failed: list[MetricChange]) -> Iterator[str]:
    sides = [
        {"side": side, "title": one.title, "scope": one.scope}
        for side, one in (
            *(("a", run) for run in result.before.members),
            ("b", result.now),
        )
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
            "noise_limit": None if change.noise is None else change.noise.limit,
            "noise_of": noise_basis(change),
        }
        for name, change in result.metrics.items()
    ]
    tables = {
        "sides": json_rows(sides),
        "metrics": json_rows(metrics),
        **{name: json_table(table, limit=limit) for name, table in result.tables.items()},
        "noise": json_rows([{"test": TEST}]),
        "failed": json_rows([{"name": change.metric.name} for change in failed]),
    }
    scope = f"{result.now.scope} against {result.before.scope}"
    return json_pieces("diff", scope, 0, tables)
