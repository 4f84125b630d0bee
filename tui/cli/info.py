"""`tracelane info`: what a trace holds and what went wrong while reading it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracelane.core.base.output import print_text
from tracelane.core.base.safe_text import json_text

from .forms import print_tables
from .options import FORMAT, OUT, TRACE, choice_options, with_index_options

if TYPE_CHECKING:
    from tracelane.core.index.choice import Choice
    from tracelane.core.index.options import IndexOptions


@click.command()
@TRACE
@FORMAT
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object per file, a line each.")
@OUT
@choice_options
@with_index_options
def info(trace: str, form: str, as_json: bool, index_options: IndexOptions, choice: Choice) -> None:
    """Say what a trace holds: events by kind, flows, processes and lanes, and every problem met.

    Of a folder it describes all captures, unless --capture chooses one. `scanner` is what reads here: the
    native core or plain Python; both make the same index.
    """
    from tracelane.core.index.choice import ALL
    from tracelane.core.read.reader import scanner_name
    from tracelane.core.trace import open_trace
    from tracelane.tui.text.progress import ProgressBar
    from tracelane.tui.text.summary import info_tables, summary, trace_info, writable

    choice = replace(choice, capture=choice.capture or ALL)
    with ProgressBar(Path(trace).name) as progress:
        opened = open_trace(trace, index_options, choice=choice, progress=progress)
    scanner = scanner_name(index_options.decoder)
    form = "json" if as_json else form
    if form == "text":
        print_text(writable(summary(opened)) + f"\n  scanner: {scanner}")
    elif form != "json":
        print_tables(form, "info", info_tables(opened))
    for number, source in enumerate(opened.sources if form == "json" else ()):
        # A file as it was typed; of a folder which file it is.
        path = source.path if Path(trace).is_dir() else trace
        print_text(json_text({**trace_info(opened, number), "path": str(path), "scanner": scanner}))
