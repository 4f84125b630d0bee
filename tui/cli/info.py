"""The command that says what a trace holds."""

from __future__ import annotations

from pathlib import Path

from tracelane.core.base.safe_text import json_text
from tracelane.core.read.reader import scanner_name
from tracelane.core.tables.table import Tables
from tracelane.tui.text.summary import info_tables, summary, trace_info, writable

from .opened import TraceOptions
from .printing import Printout, print_output


def run_info(options: TraceOptions) -> None:
    """Say what a trace holds: events by kind, flows, processes and lanes, and every problem met.

    Of a folder it describes all captures, unless --capture chooses one. `scanner` is what reads here: the
    native core or plain Python; both make the same index. JSON is an object per file, a line each.
    """
    (trace,), opened = options.traces, options.of_all_captures.read()
    scanner = scanner_name(options.index_options.decoder)
    # A file as it was typed; of a folder which file it is.
    paths = [source.path if Path(trace).is_dir() else trace for source in opened.sources]
    print_output(
        Printout("info", Tables.of(*info_tables(opened))),
        options.form,
        json=lambda _: (
            json_text({**trace_info(opened, number), "path": str(path), "scanner": scanner}) + "\n"
            for number, path in enumerate(paths)
        ),
        text=lambda _: [writable(summary(opened)) + f"\n  scanner: {scanner}"],
    )
