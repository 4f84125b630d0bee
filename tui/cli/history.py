"""Show metrics over many summaries, as a table and a plot: each against the median of those before it.

DIR is a folder of files that `tracelane summary TRACE --json` wrote; you can also name files. They are
ordered by name, with numbers by value. From the fourth run on it says whether a change is more than
noise. Without --metric it is the first of kernels.time, step.wall.median, ops.self_cpu that exists.
--limit has only the last runs; all count for the noise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tracelane.core.base.errors import UnreadableError, UsageError
from tracelane.core.base.output import print_text
from tracelane.core.base.safe_text import safe
from tracelane.core.export.formats import json_pieces, json_table, text_in_unit
from tracelane.core.export.summary_file import is_summary, read_summary
from tracelane.core.tables.diff import history_table
from tracelane.core.tables.metrics import metric_group_of, no_metric
from tracelane.core.tables.summary import Summary
from tracelane.core.tables.table import Table, Tables
from tracelane.tui.draw.glyphs import glyphs_for
from tracelane.tui.text.table import plot_text, table_text

from .limits import DEFAULT_METRICS
from .opened import TraceOptions
from .printing import Printout, print_output, table_style, terminal_width

_DIGITS = re.compile(r"(\d+)")


def run_history(options: TraceOptions, paths: tuple[str, ...], by_time: bool) -> None:
    names = options.names
    for name in names:
        metric_group_of(name)
    summaries = _read(_files(paths, by_time))
    known = {name for summary in summaries for name, one in summary.metrics.items() if one.value is not None}
    for name in names:
        if not any(summary.metric(name) for summary in summaries):
            raise no_metric(name, summaries[-1].metrics)
    chosen = names or [name for name in DEFAULT_METRICS if name in known][:1]
    if not chosen:
        raise UsageError(f"none of {', '.join(DEFAULT_METRICS)} is in the summaries: name one with --metric")
    if options.form == "csv" and len(chosen) > 1:
        raise UsageError("--format csv holds one metric: name one with --metric")
    tables = {name: _last(summaries, name, options.limit) for name in chosen}
    scope = next(iter(tables.values())).scope
    printed = Tables(scope, 0, {name: partial(tables.__getitem__, name) for name in tables})
    print_output(
        Printout("history", printed),
        options.form,
        json=lambda _: json_pieces(
            "history", scope, 0, {name: json_table(one) for name, one in tables.items()}
        ),
        text=lambda _: ["\n\n".join(map(_text, tables.values()))],
    )


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
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts]


def _read(files: Sequence[Path]) -> list[Summary]:
    return [replace(read_summary(file), title=file.name) for file in files]


def _last(summaries: Sequence[Summary], metric: str, limit: int | None) -> Table:
    table = history_table(summaries, metric)
    return table if limit is None else table.take(slice(max(0, len(table) - limit), None))


def _text(table: Table) -> str:
    column = table.columns[1]
    width = terminal_width()
    numbers = [None if row["value"] is None else row["value"] for row in table.rows()]
    plot = plot_text(numbers, lambda value: text_in_unit(column, value), width, glyphs_for().ascii)
    text = table_text(table, table_style().plain)
    return f"{text}\n\n{plot}" if plot else text
