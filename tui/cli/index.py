"""`tracelane index`: read a trace and keep its index, without showing it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click

from .options import DECODER, FORCE, INDEX_DIR, JSON, TRACE


@click.command()
@TRACE
@FORCE
@JSON
@DECODER
@INDEX_DIR
def index(trace: str, force: bool, as_json: bool, decoder: str, index_dir: Path | None) -> None:
    """Read a trace and keep its index, so that it opens at once later."""
    from tracelane.core.base.safe_text import safe
    from tracelane.core.index.ingest import ingest_index
    from tracelane.tui.text.progress import ProgressBar
    from tracelane.tui.text.summary import SCHEMA

    began = time.monotonic()
    with ProgressBar(Path(trace).name) as progress:
        made = ingest_index(trace, index_dir=index_dir, decoder=decoder, force=force, progress=progress)
    seconds = time.monotonic() - began
    size = sum(file.stat().st_size for file in made.folder.iterdir() if file.is_file())
    events, slices = int(made.ledger["events"]), int(made.ledger["slices"])
    if as_json:
        facts = {
            "schema": SCHEMA,
            "path": trace,
            "index": str(made.folder),
            "index_bytes": size,
            "events": events,
            "slices": slices,
            "seconds": round(seconds, 3),
        }
        click.echo(json.dumps(facts))
    else:
        click.echo(
            f"{safe(trace)}: {events:,} events, {slices:,} slices, {size / 1e6:.1f} MB in {seconds:.1f} s"
        )
        click.echo(safe(str(made.folder)))
