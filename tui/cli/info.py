"""`tracelane info`: what a trace holds and what went wrong while reading it."""

from __future__ import annotations

import json
from pathlib import Path

import click

from tracelane.core.base.errors import UsageError

from .options import DECODER, FORCE, INDEX_DIR, JSON, TRACE


@click.command()
@TRACE
@JSON
@DECODER
@INDEX_DIR
@FORCE
def info(trace: str, as_json: bool, decoder: str, index_dir: Path | None, force: bool) -> None:
    """Say what a trace holds: events by kind, flows, processes and lanes, and every problem met."""
    from tracelane.core.index.choice import EVERYTHING
    from tracelane.core.trace import open_trace
    from tracelane.tui.text.progress import ProgressBar
    from tracelane.tui.text.summary import summary, trace_info, writable

    with ProgressBar(Path(trace).name) as progress:
        opened = open_trace(
            trace, index_dir=index_dir, decoder=decoder, force=force, choice=EVERYTHING, progress=progress
        )
    if not as_json:
        click.echo(writable(summary(opened)))
    elif len(opened.sources) == 1:
        click.echo(json.dumps({**trace_info(opened), "path": trace}))
    else:
        raise UsageError(f"--json tells of one trace, and {trace} holds {len(opened.sources)}")
