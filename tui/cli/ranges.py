"""`tracelane range`: what happens between two times, per name or per lane."""

from __future__ import annotations

from pathlib import Path

import click

from tracelane.core.base.errors import UsageError

from .options import DECODER, FORCE, INDEX_DIR, TRACES
from .scoped import FORMAT, FROM, LANES, STEP, TO, WHERE, scope_of, terminal_width


@click.command("range")
@TRACES
@FROM
@TO
@STEP
@LANES
@WHERE
@click.option("--by", type=click.Choice(["name", "lane"]), default="name", show_default=True, help="Rows.")
@click.option(
    "--sort", metavar="COLUMN", help="Sort by this column, greatest first; -COLUMN: smallest first."
)
@click.option("--limit", type=click.IntRange(1), default=None, help="Rows; of a table 30, else all.")
@FORMAT
@DECODER
@INDEX_DIR
@FORCE
def ranges(
    traces: tuple[str, ...],
    begin: str | None,
    end: str | None,
    step: str | None,
    lanes: str | None,
    where: str | None,
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
    from tracelane.core.export import formats
    from tracelane.core.trace import open_trace
    from tracelane.tui.text.progress import ProgressBar
    from tracelane.tui.text.table import table_text

    with ProgressBar(Path(traces[0]).name) as progress:
        trace = open_trace(traces, index_dir=index_dir, decoder=decoder, force=force, progress=progress)
    scope = scope_of(trace, begin, end, step, lanes, where)
    table = lane_table(scope) if by == "lane" else range_table(scope)
    key = (sort or ("busy_ns" if by == "lane" else "self_ns")).strip()
    try:
        order = table.order(key.removeprefix("-"), not key.startswith("-"))
    except KeyError as error:
        raise UsageError(f"--sort: {error.args[0]}") from None
    if form == "table":
        click.echo(table_text(table, terminal_width(), order, limit or 30))
        return
    write = {"json": formats.as_json, "csv": formats.as_csv, "md": formats.as_markdown}[form]
    click.echo(write(table, order, limit), nl=False)
