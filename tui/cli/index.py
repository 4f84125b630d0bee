"""Read a trace and keep its index, so that it opens at once later.

Of a folder, all captures are read, unless --capture chooses one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracelane.core.base.output import print_text
from tracelane.core.base.safe_text import json_text, safe
from tracelane.core.index.opening import open_indexes
from tracelane.core.tables.schema import TableSchema, columns_from
from tracelane.tui.text.progress import ProgressBar

from .opened import TraceOptions
from .printing import Printout, print_output

SCHEMA = 1
INDEXES = TableSchema(
    "indexes",
    "Indexes",
    columns_from(
        "path: text = trace, index: text, index_bytes = size, events: count, slices: count, seconds: number"
    ),
)


def run_index(options: TraceOptions) -> None:
    from tracelane.core.tables.table import Table, Tables  # numpy, which no reader of a file waits for

    (trace,) = options.traces
    began = time.monotonic()
    with ProgressBar(Path(trace).name) as progress:
        opened = open_indexes(
            options.traces, options.index_options, choice=options.of_all_captures.choice, progress=progress
        )
        seconds = time.monotonic() - began
        opened.write_block_stores(progress)
    facts = [{**one, "seconds": round(seconds, 3)} for one in opened.facts()]
    table = Table.from_rows(INDEXES, trace, facts)
    print_output(
        Printout("index", Tables.of(table)),
        options.form,
        json=lambda _: (json_text({"schema": SCHEMA, **one}) + "\n" for one in facts),
        text=lambda _: ["\n".join(map(_text, facts))],
    )
    for note in opened.notes():
        print_text(f"  {safe(note)}", error=True)


def _text(facts: Mapping[str, Any]) -> str:
    counts = f"{facts['events']:,} events, {facts['slices']:,} slices in {facts['seconds']:.1f} s"
    size = f"{facts['index_bytes'] / 1e6:.1f} MB in {safe(facts['index'])}"
    return f"{safe(facts['path'])}: {counts}\n  {size}"
