"""`tracelane index`: read a trace and keep its index, without showing it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracelane.core.base.output import print_text
from tracelane.core.base.safe_text import json_text

from .forms import print_tables
from .options import FORMAT, JSON, OUT, TRACE, choice_options, with_index_options

if TYPE_CHECKING:
    from tracelane.core.base.progress import ProgressCallback
    from tracelane.core.index.choice import Choice
    from tracelane.core.index.options import IndexOptions
    from tracelane.core.index.store import Index
    from tracelane.core.tables.table import Unit

SCHEMA = 1
COLUMNS: Sequence[tuple[str, str, Unit]] = (
    ("path", "trace", "text"),
    ("index", "index", "text"),
    ("index_bytes", "size", "bytes"),
    ("events", "events", "count"),
    ("slices", "slices", "count"),
    ("seconds", "seconds", "number"),
)


@click.command()
@TRACE
@FORMAT
@JSON
@OUT
@choice_options
@with_index_options
def index(
    trace: str,
    form: str,
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
    facts = [_facts(index, seconds) for index in opened.indexes]
    form = "json" if as_json else form
    if form in ("csv", "md", "html"):
        from tracelane.core.tables.table import Column, Table, TableSchema

        columns = tuple(Column(key, title, unit) for key, title, unit in COLUMNS)
        print_tables(
            form, "index", [Table.from_rows(TableSchema("indexes", "Indexes", columns), trace, facts)]
        )
        return
    for index, one in zip(opened.indexes, facts):
        if form == "json":
            print_text(json_text({"schema": SCHEMA, **one}))
        else:
            _tell(index, one)


def _pack(indexes: Sequence[Index], progress: ProgressCallback) -> None:
    """Keep the text of compressed files beside their indexes, in blocks that can be read one by one."""
    from tracelane.core.index.blockstore import write_block_store  # loads numpy: not while a process starts
    from tracelane.core.index.packing import worth_packing

    for index in indexes:
        if worth_packing(index):
            write_block_store(index, progress=progress)


def _facts(index: Index, seconds: float) -> dict[str, Any]:
    size = sum(file.stat().st_size for file in index.folder.rglob("*") if file.is_file())
    events, slices = int(index.read_report["events"]), int(index.read_report["slices"])
    facts = {"path": index.path, "index": str(index.folder), "index_bytes": size}
    return {**facts, "events": events, "slices": slices, "seconds": round(seconds, 3)}


def _tell(index: Index, facts: Mapping[str, Any]) -> None:
    from tracelane.core.base.safe_text import safe

    counts = f"{facts['events']:,} events, {facts['slices']:,} slices in {facts['seconds']:.1f} s"
    print_text(f"{safe(index.path)}: {counts}")
    print_text(f"  {facts['index_bytes'] / 1e6:.1f} MB in {safe(facts['index'])}")
    for note in index.notes:
        print_text(f"  {safe(note)}", error=True)
