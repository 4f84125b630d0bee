"""`tracelane export`: a trace, or a part of it, in a format that other programs read."""

from __future__ import annotations

from pathlib import Path

import click

from tracelane.core.base.output import print_text
from tracelane.core.base.safe_text import safe

from .opened import TraceOptions, opened_options


@click.command()
@opened_options
@click.option(
    "-o",
    "--out",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write; how it ends says the format.",
)
def export(opened: TraceOptions, out: Path) -> None:
    """Write a trace, or a part of it, for other programs; the name of the file says for which.

    .pftrace: Perfetto, with tracks, flows, counters and arguments. .speedscope.json: speedscope, a profile
    per lane. .folded: stacks for flamegraph.pl. .sqlite: the views of `tracelane sql` as tables. .parquet:
    the slices (needs pyarrow or duckdb). .html: a page with pictures and tables. .json.gz, .json: the trace's
    own events, byte by byte.
    """
    from tracelane.core.python.exporting import writer_of
    from tracelane.tui.text.progress import ProgressBar

    write = writer_of(out)
    scope = opened.scope()
    with ProgressBar(out.name) as progress:
        done = write(scope, out, opened.title, progress)
    print_text(safe(f"{out}: {done}"))
