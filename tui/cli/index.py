"""`tracelane index`: read a trace and keep its index, without showing it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracelane.core.base.output import print_text
from tracelane.core.base.safe_text import json_text

from .options import JSON, TRACE, choice_options, with_index_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracelane.core.base.progress import ProgressCallback
    from tracelane.core.index.choice import Choice
    from tracelane.core.index.options import IndexOptions
    from tracelane.core.index.store import Index


@click.command()
@TRACE
@JSON
@choice_options
@with_index_options
def index(
    trace: str,
    as_json: bool,
    index_options: IndexOptions,
    choice: Choice,
) -> None:
    """Read a trace and keep its index, so that it opens at once later.

    Of a folder, all captures are read, unless --capture chooses one.
    """
    from tracelane.core.index.choice import ALL
    from tracelane.core.index.opening import open_indexes
    from tracelane.tui.text.progress import ProgressBar

    began = time.monotonic()
    with ProgressBar(Path(trace).name) as progress:
        opened = open_indexes(
            [trace],
            index_options,
            choice=replace(choice, capture=choice.capture or ALL),
            progress=progress,
        )
        seconds = time.monotonic() - began
        _pack(opened.indexes, progress)
    for index in opened.indexes:
        _tell(index, seconds, as_json)


def _pack(indexes: Sequence[Index], progress: ProgressCallback) -> None:
    """Keep the text of compressed files beside their indexes, in blocks that can be read one by one."""
    from tracelane.core.index.blockstore import write_block_store  # loads numpy: not while a process starts
    from tracelane.core.index.packing import worth_packing

    for index in indexes:
        if worth_packing(index):
            write_block_store(index, progress=progress)


def _tell(index: Index, seconds: float, as_json: bool) -> None:
    from tracelane.core.base.safe_text import safe
    from tracelane.tui.text.summary import SCHEMA

    size = sum(file.stat().st_size for file in index.folder.rglob("*") if file.is_file())
    events, slices = int(index.read_report["events"]), int(index.read_report["slices"])
    facts = {"schema": SCHEMA, "path": index.path, "index": str(index.folder), "index_bytes": size}
    facts |= {"events": events, "slices": slices, "seconds": round(seconds, 3)}
    if as_json:
        print_text(json_text(facts))
        return
    print_text(f"{safe(index.path)}: {events:,} events, {slices:,} slices in {seconds:.1f} s")
    print_text(f"  {size / 1e6:.1f} MB in {safe(str(index.folder))}")
    for note in index.notes:
        print_text(f"  {safe(note)}", error=True)
