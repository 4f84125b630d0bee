"""Write a trace, or a part of it, for other programs; the name of the file says for which.

.pftrace: Perfetto, with tracks, flows, counters and arguments. .speedscope.json: speedscope, a profile
per lane. .folded: stacks for flamegraph.pl. .sqlite: the views of `tracelane sql` as tables. .parquet:
the slices (needs pyarrow or duckdb). .html: a page with pictures and tables. .json.gz, .json: the trace's
own events, byte by byte.
"""

from __future__ import annotations

from pathlib import Path

from tracelane.core.base.output import print_text
from tracelane.core.base.safe_text import safe
from tracelane.core.python.exporting import writer_of
from tracelane.tui.text.progress import ProgressBar

from .opened import TraceOptions


def run_export(options: TraceOptions, out: Path) -> None:
    write = writer_of(out)
    scope = options.scope()
    with ProgressBar(out.name) as progress:
        done = write(scope, out, options.title, progress)
    print_text(safe(f"{out}: {done}"))
