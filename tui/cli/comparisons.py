"""The commands that compare runs, `diff`, `check` and `history`, and their sides as they are typed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from tracelane.core.base.errors import IncomparableError, UnreadableError, UsageError
from tracelane.core.base.numbers import whole_number
from tracelane.core.base.output import print_text
from tracelane.core.base.safe_text import markdown_words, safe
from tracelane.core.export.formats import json_pieces, json_rows, json_table, text_in_unit
from tracelane.core.export.forms import emit
from tracelane.core.export.summary_file import is_summary, read_summary
from tracelane.core.index.inputs import check_there
from tracelane.core.index.opening import keep_cached
from tracelane.core.store.opened import open_store
from tracelane.core.store.tables import summary_of_store
from tracelane.core.tables.compare.comparable import CANNOT, Need, reasons_of, side_of
from tracelane.core.tables.compare.compare import TEST
from tracelane.core.tables.compare.diff import Difference, MetricChange, difference, history_table
from tracelane.core.tables.compare.diff_trees import diff_trees, largest_changes
from tracelane.core.tables.compare.run_names import run_names
from tracelane.core.tables.compare.summary import Summary, metrics_named, summarise
from tracelane.core.tables.frame.metrics import Metric
from tracelane.core.tables.frame.table import Table, Tables
from tracelane.core.tables.metric_groups import metric_group_of, no_metric
from tracelane.tui.draw.glyphs import glyphs_for
from tracelane.tui.text.diff import compact_tables, noise_basis, side_titles
from tracelane.tui.text.table import plot_text

from .completing import DEFAULT_METRICS
from .limits import Limit, Threshold, check_unit, parse_limit, read_limits, report_results, results_table
from .options import COMPARED_ROWS, STEP, is_store_path, split_side
from .printing import Printout, as_text, print_output, terminal_width
from .trace_options import TraceOptions


def read_sides(
    sides: Sequence[str], like: TraceOptions, opened: TraceOptions | None = None, more: Sequence[str] = ()
) -> list[Summary]:
    """Return the summary of each side, read from a file of one or made from a trace or a part of it, chosen
    as `like` says. What is `opened` afterwards must be there, and does not leave the cache while sides are
    read; nor do they. Of `more` paths none may be missing.

    Raises UsageError for a part that means nothing, UnreadableError for what cannot be read.
    """
    parts = [split_side(side) for side in sides]
    check_there([*(opened.traces if opened else ()), *more, *(path for path, _ in parts)])
    all_options = [side_options(like, *part) for part in parts]
    for one in (*([opened] if opened else []), *all_options):
        if not is_store_path(one.traces[0]):
            keep_cached(one.files, one.index_options)
    summaries = [_read_side(text, options) for text, options in zip(sides, all_options)]
    if len(sides) + (opened is not None) < 2:
        return summaries
    return [replace(one, title=name) for one, name in zip(summaries, side_names(sides, opened))]


def side_names(sides: Sequence[str], opened: TraceOptions | None = None) -> list[str]:
    """Return what sides are called, last what is `opened` beside them: what differs in their names."""
    parts = [split_side(side) for side in sides]
    if opened is not None:
        first, *others = opened.traces
        parts.append((os.path.dirname(first) if others else first, ""))
    return run_names([path for path, _ in parts], [part for _, part in parts])


def _read_side(text: str, options: TraceOptions) -> Summary:
    path, part = split_side(text)
    if is_store_path(path):
        if part or options.where is not None or options.lanes is not None:
            raise UsageError(f"{path} holds summaries of whole traces: it has no parts such as {text!r}")
        return summary_of_store(open_store(path))
    first = options.files.members[0]
    if str(first.path) == path and is_summary(first.source):
        if part:
            raise UsageError(f"{path} is a summary: it has no parts such as {part!r}")
        for name in ("where", "lanes"):
            if getattr(options, name) is not None:
                raise UsageError(f"{path} is a summary, in which --{name} can choose nothing: name the trace")
        return read_summary(Path(path))
    return summarise(options.scope(), Path(text).name)


def side_options(like: TraceOptions, path: str, part: str) -> TraceOptions:
    """Return what options say of one side; UsageError for a part that means nothing."""
    begin, dots, end = part.partition("..")
    if part.startswith(STEP):
        return replace(like, traces=(path,), step=part.removeprefix(STEP))
    if part and not dots:
        raise UsageError(f"what part of {path} is {part!r}? Say step=4, or FROM..TO as +10ms..+20ms")
    return replace(like, traces=(path,), begin=begin or None, end=end or None)


EXCEEDED = 1
LINES = {"ok": "ok      ", "exceeded": "EXCEEDED", CANNOT: "UNKNOWN "}
"""How the line of a result begins."""
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
        json=lambda _: _diff_json(result, sides, limit, failed),
        text=lambda _: [_diff_text(tables, titles, limit or COMPARED_ROWS)],
        md=lambda listing: [
            *(f"{side}  {markdown_words(title)}\n" for side, title in titles),
            "\n",
            *emit(listing, "md"),
        ],
    )
    results = threshold.results(gated)
    report_results("tracelane diff", results, options.junit, options.github)
    for one in results:
        if one.verdict == "exceeded":
            print_text(f"tracelane: {one.text}", error=True)
    if failed:
        click.get_current_context().exit(EXCEEDED)
    if unsure := [one.text for one in results if one.verdict == CANNOT]:
        raise IncomparableError("; ".join(unsure))
    if not gated:
        raise_incomparable(result.reasons)


def raise_incomparable(reasons: Mapping[Need, str]) -> None:
    """Raise IncomparableError where one side's recording lacks what the other has."""
    if reasons:
        raise IncomparableError(f"{CANNOT}: {'; '.join(dict.fromkeys(reasons.values()))}")


def _print_trees(options: TraceOptions) -> None:
    if len(options.traces) != 2:
        raise UsageError("diff --tree compares two traces, or parts of them")
    parts = [split_side(side) for side in options.traces]
    before, now = (side_options(options, *part).scope() for part in parts)
    titles = side_names(options.traces)
    table = diff_trees(before, now, (titles[0], titles[1]))
    reasons = reasons_of([side_of(before, titles[0])], side_of(now, titles[1]))
    if options.form == "text":
        print_text(safe(table.notes[0]) + "\n")
        table = replace(largest_changes(table, options.limit or TREE_ROWS), notes=())
    print_output(
        Printout("diff", Tables.of(table), limit=options.limit, empty="nothing changed"), options.form
    )
    raise_incomparable(reasons)


def _diff_text(tables: Sequence[Table], titles: Sequence[tuple[str, str]], limit: int) -> str:
    first, *rest = tables
    texts = ["".join(f"{side_name}  {safe(title)}\n" for side_name, title in titles) + "\n"]
    texts[0] += as_text(first)
    for table in rest:
        texts.append(as_text(table, limit=limit) if len(table) else f"{table.title}: nothing changed")
    return "\n\n".join(texts)


def _diff_json(
    result: Difference, typed: Sequence[str], limit: int | None, failed: list[MetricChange]
) -> Iterator[str]:
    named = (*(("a", run) for run in result.before.members), ("b", result.now))
    sides = [
        {"side": side, "title": one.title, "path": path, "scope": one.scope}
        for (side, one), path in zip(named, typed)
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
            "reason": change.reason,
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


LIMIT = "METRIC=VALUE"


def run_check(
    options: TraceOptions,
    most: tuple[str, ...],
    least: tuple[str, ...],
    file: str | None,
    baselines: tuple[str, ...],
) -> None:
    limits = [
        *(parse_limit(text, at_most=True) for text in most),
        *(parse_limit(text, at_most=False) for text in least),
        *([] if file is None else read_limits(Path(file))),
    ]
    threshold = Threshold.of(options.names, options.fail_above, options.min_time)
    _check_complete(limits, baselines, options.fail_above)
    for limit in limits:
        metric_group_of(limit.metric)  # said before a trace is read
    whole = replace(options, traces=(), begin=None, end=None, step=None, skip_first=None, device_offsets=())
    earlier = read_sides(baselines, whole, options)
    scope = options.scope()
    here = summarise(scope, side_names(baselines, options)[-1]) if earlier else None
    metrics = metrics_named(scope, (limit.metric for limit in limits), here)
    for limit in limits:
        check_unit(limit.metric, limit.typed, metrics[limit.metric].unit)
    outcomes = [(limit, metrics[limit.metric]) for limit in limits]
    changes: list[MetricChange] = []
    reasons: Mapping[Need, str] = {}
    if earlier and here is not None:
        result = difference(earlier, here)
        changes, reasons = threshold.gated(result, options.where), result.reasons
    results = [*(limit.result(metric) for limit, metric in outcomes), *threshold.results(changes)]
    passed = all(result.is_kept for result in results)
    lines = (safe(f"{LINES[one.verdict]}  {one.text}") for one in results)
    print_output(
        Printout("check", Tables.of(results_table(results, scope.text))),
        options.form,
        json=lambda _: _check_json(scope.text, outcomes, threshold, changes, passed),
        text=lambda _: ["\n".join(lines)],
    )
    report_results("tracelane check", results, options.junit, options.github)
    if not passed:
        is_exceeded = any(result.verdict == "exceeded" for result in results)
        click.get_current_context().exit(EXCEEDED if is_exceeded else IncomparableError.exit_code)
    if not changes:
        raise_incomparable(reasons)


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


def _check_json(
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
            "kept": one not in failed and not one.reason,
            "reason": one.reason,
        }
        for one in changes
    ]
    tables = {
        "limits": json_rows([limit.row(metric) for limit, metric in outcomes]),
        "baseline": json_rows(compared),
        "totals": json_rows([{"kept": passed}]),
    }
    return json_pieces("check", scope, 0, tables)


_DIGITS = re.compile(r"(\d+)")


def run_history(options: TraceOptions, paths: tuple[str, ...], by_time: bool) -> None:
    names = options.names
    for name in names:
        metric_group_of(name)
    summaries = [replace(read_summary(file), title=file.name) for file in _files(paths, by_time)]
    known = {name for summary in summaries for name, one in summary.metrics.items() if one.value is not None}
    for name in names:
        if not any(summary.metric(name) for summary in summaries):
            raise no_metric(name, summaries[-1].metrics)
    chosen = names or [name for name in DEFAULT_METRICS if name in known][:1]
    if not chosen:
        raise UsageError(f"none of {', '.join(DEFAULT_METRICS)} is in the summaries: name one with --metric")
    if options.form == "csv" and len(chosen) > 1:
        raise UsageError("--format csv holds one metric: name one with --metric")
    last = slice(-options.limit if options.limit else None, None)
    tables = {name: history_table(summaries, name).take(last) for name in chosen}
    scope = next(iter(tables.values())).scope
    printed = Tables(scope, 0, {name: partial(tables.__getitem__, name) for name in tables})
    print_output(
        Printout("history", printed),
        options.form,
        json=lambda _: json_pieces(
            "history", scope, 0, {name: json_table(one) for name, one in tables.items()}
        ),
        text=lambda _: ["\n\n".join(map(_history_text, tables.values()))],
    )
    last_reasons = [one.texts("reason")[-1] for one in tables.values() if len(one)]
    if any(last_reasons):
        raise IncomparableError(f"{CANNOT}: {'; '.join(dict.fromkeys(filter(None, last_reasons)))}")


def _files(paths: Sequence[str], by_time: bool) -> list[Path]:
    """Return the summaries that are named or lie in the folders, in order; UnreadableError for none."""
    files: list[Path] = []
    for path in map(Path, paths):
        try:
            inside = [one for one in path.iterdir() if one.is_file()] if path.is_dir() else [path]
        except OSError as error:
            raise UnreadableError(f"cannot read {path}: {error.strerror or error}") from error
        if not path.exists():
            raise UnreadableError(f"{path} does not exist")
        summaries = [one for one in inside if is_summary(one)]
        if not summaries:
            raise UnreadableError(f"{path}: no summary here (tracelane summary TRACE --json writes them)")
        if path.is_dir() and (others := sum(one.suffix == ".json" for one in inside if one not in summaries)):
            print_text(
                f"tracelane: {safe(str(path))}: {others} other JSON files are no summaries", error=True
            )
        files += sorted(summaries, key=_natural)
    if by_time:
        files.sort(key=lambda file: file.stat().st_mtime_ns)
    return files


def _natural(path: Path) -> list[tuple[int, int, str]]:
    """Return what sorts run 9 before run 10."""
    parts = _DIGITS.split(path.name)
    return [(1, whole_number(part), "") if part.isdecimal() else (0, 0, part) for part in parts]


def _history_text(table: Table) -> str:
    column = table.columns[1]
    width = terminal_width()
    numbers = [None if row["value"] is None else row["value"] for row in table.rows()]
    plot = plot_text(numbers, lambda value: text_in_unit(column, value), width, glyphs_for().ascii)
    text = as_text(table)
    return f"{text}\n\n{plot}" if plot else text
