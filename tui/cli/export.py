"""`tracelane export`: a trace, or a part of it, in a format that other programs read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracelane.core.base.errors import TracelaneError, UsageError
from tracelane.core.base.output import print_text, write_new_file
from tracelane.core.base.safe_text import safe

from .opened import TraceOptions, opened_options

if TYPE_CHECKING:
    from tracelane.core.tables.scope import Scope


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
    kind = next((one for one in WRITERS if out.name.lower().endswith(one)), None)
    if kind is None:
        raise UsageError(f"{out}: its name must end with one of {', '.join(WRITERS)}")
    if out.exists():
        raise UsageError(f"{out} is there already: choose another name, or remove it")
    if not out.parent.is_dir():
        raise TracelaneError(f"{out} cannot be written: there is no folder {out.parent}")
    scope = opened.scope()
    print_text(safe(f"{out}: {WRITERS[kind](scope, out, opened)}"))


def _perfetto(scope: Scope, out: Path, opened: TraceOptions) -> str:
    from tracelane.core.export.perfetto import write_perfetto
    from tracelane.tui.text.progress import ProgressBar

    with ProgressBar(out.name) as progress:
        done = write_perfetto(scope, out, progress)
    return (
        f"{done.slices:,} slices on {done.tracks:,} tracks, {done.instants:,} instants, "
        f"{done.samples:,} counter samples, {done.flows:,} flows"
    )


def _speedscope(scope: Scope, out: Path, opened: TraceOptions) -> str:
    from tracelane.core.export.speedscope import speedscope_pieces

    _write(out, speedscope_pieces(scope, opened.title))
    return "written for speedscope"


def _folded(scope: Scope, out: Path, opened: TraceOptions) -> str:
    from tracelane.core.tables.tree import analyse_tree, folded_lines

    tables = analyse_tree(scope, "thread")
    _write(out, folded_lines(tables))
    return f"{len(tables.main):,} nodes of the call tree"


def _sqlite(scope: Scope, out: Path, opened: TraceOptions) -> str:
    from tracelane.core.sql.files import write_sqlite
    from tracelane.tui.text.progress import ProgressBar

    with ProgressBar(out.name) as progress:
        return f"{write_sqlite(scope, out, progress):,} slices"


def _parquet(scope: Scope, out: Path, opened: TraceOptions) -> str:
    from tracelane.core.sql.files import write_parquet

    return f"{write_parquet(scope, out):,} slices"


def _html(scope: Scope, out: Path, opened: TraceOptions) -> str:
    from tracelane.core.export.html_report import html_report

    _write(out, html_report(scope, opened.title))
    return "written"


def _json(scope: Scope, out: Path, opened: TraceOptions) -> str:
    """Write the events as they stand in the file, of a whole trace all of the file."""
    from tracelane.tui.text.progress import ProgressBar

    files = scope.trace.source_count
    if files != 1:
        raise UsageError(f"there are {files} files: write them one by one, of ranks with --rank N")
    if scope.where is not None:
        raise UsageError("--where chooses slices, and events are written with all that belongs to them")
    trace = scope.trace
    with ProgressBar(out.name) as progress:
        if scope.range is None and scope.lanes is None:
            return f"{trace.copy_source(0, out, progress):,} bytes of text"
        window = scope.range or trace.span_at(scope.clocks)
        chosen = None if scope.lanes is None else sorted(trace.lanes[at].number for at in scope.lanes)
        done = trace.cut(0, window, out, scope.clocks, lanes=chosen, progress=progress)
    return f"{done.events:,} events"


def _write(out: Path, pieces: Iterable[str]) -> None:

    try:
        write_new_file(out, pieces)
    except OSError as error:
        raise TracelaneError(f"{out} cannot be written: {error.strerror or error}") from None


WRITERS: Mapping[str, Callable[[Scope, Path, TraceOptions], str]] = {
    ".speedscope.json": _speedscope,
    ".json.gz": _json,
    ".json": _json,
    ".parquet": _parquet,
    ".sqlite": _sqlite,
    ".pftrace": _perfetto,
    ".folded": _folded,
    ".html": _html,
}
"""What a file's name may end with, and what writes it; the first that fits counts."""
