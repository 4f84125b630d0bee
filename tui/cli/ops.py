"""`tracelane ops`: PyTorch's key_averages from a trace file."""

from __future__ import annotations

from pathlib import Path

import click

from .options import DECODER, FORCE, INDEX_DIR, TRACES
from .scoped import FORMAT, FROM, LANES, STEP, TO, WHERE, scope_of

ROWS = 100
"""As many as PyTorch prints."""


@click.command()
@TRACES
@FROM
@TO
@STEP
@LANES
@WHERE
@click.option(
    "--group-by", metavar="shape|stack:N|module", help="Tell ops apart by input shapes, N frames, module."
)
@click.option(
    "--sort",
    metavar="KEY",
    help="One of PyTorch's sort keys, as self_cpu_time_total; without it table and md are sorted by self time"
    " (of the device where there is one), json and csv stand in PyTorch's own order.",
)
@click.option("--limit", type=click.IntRange(1), default=None, help="Rows; of a table 100, else all.")
@FORMAT
@DECODER
@INDEX_DIR
@FORCE
def ops(
    traces: tuple[str, ...],
    begin: str | None,
    end: str | None,
    step: str | None,
    lanes: str | None,
    where: str | None,
    group_by: str | None,
    sort: str | None,
    limit: int | None,
    form: str,
    decoder: str,
    index_dir: Path | None,
    force: bool,
) -> None:
    """Print what PyTorch's key_averages().table() printed, from the trace file alone."""
    import numpy as np

    from tracelane.core.analysis import ops as analysis
    from tracelane.core.analysis.op_groups import NO_GROUPING, parse_grouping
    from tracelane.core.export import formats
    from tracelane.core.trace import open_trace
    from tracelane.tui.text.ops_table import ops_text
    from tracelane.tui.text.progress import ProgressBar

    by = NO_GROUPING if group_by is None else parse_grouping(group_by)
    if sort is not None:
        analysis.sort_column(sort)  # a wrong key is told before the trace is read
    with ProgressBar(Path(traces[0]).name) as progress:
        trace = open_trace(traces, index_dir=index_dir, decoder=decoder, force=force, progress=progress)
    table = analysis.ops(scope_of(trace, begin, end, step, lanes, where), by)
    if sort is None and form in ("table", "md"):
        sort = "self_device_time_total" if np.any(table.data["self_device_ns"]) else "self_cpu_time_total"
    order = np.arange(len(table)) if sort is None else analysis.order(table, sort)
    if form == "table":
        click.echo(f"ops: {table.scope}")
        click.echo(ops_text(table, order, limit or ROWS, analysis.has_memory(trace, table)), nl=False)
        for note in table.notes:
            click.echo(note)
        return
    write = {"json": formats.as_json, "csv": formats.as_csv, "md": formats.as_markdown}[form]
    click.echo(write(table, order, limit), nl=False)
