"""`tracelane range`: what happens between two times, per name or per lane."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracelane.core.base.errors import UsageError

from .options import DECODER, FORCE, INDEX_DIR, TRACES

if TYPE_CHECKING:
    from tracelane.core.trace import Trace

DEFAULT_WIDTH = 160
"""Columns of the table where nothing says how wide the terminal is."""


@click.command("range")
@TRACES
@click.option("--from", "begin", metavar="TIME", help="Count from here: +12.5ms, @µs, 09:28:06.1 or step:4.")
@click.option("--to", "end", metavar="TIME", help="Count up to here; of a step, up to its end.")
@click.option("--lanes", metavar="REGEX", help="Count only lanes whose title matches.")
@click.option("--by", type=click.Choice(["name", "lane"]), default="name", show_default=True, help="Rows.")
@click.option(
    "--sort", metavar="COLUMN", help="Sort by this column, greatest first; -COLUMN: smallest first."
)
@click.option("--limit", type=click.IntRange(1), default=None, help="Rows; of a table 30, else all.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv", "md"]),
    default="table",
    show_default=True,
    help="How to print it.",
)
@DECODER
@INDEX_DIR
@FORCE
def ranges(
    traces: tuple[str, ...],
    begin: str | None,
    end: str | None,
    lanes: str | None,
    by: str,
    sort: str | None,
    limit: int | None,
    form: str,
    decoder: str,
    index_dir: Path | None,
    force: bool,
) -> None:
    """Say what happens in a stretch of time, or in the whole trace: per name and category, or per lane.

    Slices that the edges cut count by their part inside; times are in ns in JSON and CSV.
    """
    from tracelane.core.analysis.range_table import lane_table, range_table
    from tracelane.core.analysis.scope import Scope
    from tracelane.core.export import formats
    from tracelane.core.trace import open_trace
    from tracelane.tui.text.progress import ProgressBar
    from tracelane.tui.text.table import table_text

    with ProgressBar(Path(traces[0]).name) as progress:
        trace = open_trace(traces, index_dir=index_dir, decoder=decoder, force=force, progress=progress)
    scope = Scope(trace, _range(trace, begin, end), _lanes(trace, lanes))
    table = lane_table(scope) if by == "lane" else range_table(scope)
    key = (sort or ("busy_ns" if by == "lane" else "self_ns")).strip()
    try:
        order = table.order(key.removeprefix("-"), not key.startswith("-"))
    except KeyError as error:
        raise UsageError(f"--sort: {error.args[0]}") from None
    if form == "table":
        width = (
            shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns if sys.stdout.isatty() else DEFAULT_WIDTH
        )
        click.echo(table_text(table, width, order, limit or 30))
        return
    write = {"json": formats.as_json, "csv": formats.as_csv, "md": formats.as_markdown}[form]
    click.echo(write(table, order, limit), nl=False)


def _range(trace: Trace, begin: str | None, end: str | None) -> tuple[int, int] | None:
    from tracelane.tui.clock import time_frame
    from tracelane.tui.times import parse_span

    if begin is None and end is None:
        return None
    frame = time_frame(trace)
    start, stop = trace.span
    if begin is not None:
        start, reach = parse_span(begin, frame)
        stop = reach if reach > start else stop  # a step alone means all of it
    if end is not None:
        stop = parse_span(end, frame)[1]
    if stop <= start:
        raise UsageError("--from must lie before --to, and within the trace")
    return start, stop


def _lanes(trace: Trace, pattern: str | None) -> list[int] | None:
    if not pattern:
        return None
    try:
        wanted = re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise UsageError(f"--lanes is no regular expression: {error}") from None
    titles = ((lane.index, f"{lane.process.title} {lane.title}") for lane in trace.lanes)
    found = [place for place, title in titles if wanted.search(title)]
    if not found:
        raise UsageError(f"no lane has a title in which {pattern!r} is found")
    return found
