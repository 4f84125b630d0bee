"""The commands on indexes: reading traces to keep theirs, listing and clearing those kept."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from tracelane.core.base.output import print_text
from tracelane.core.base.private import config_path
from tracelane.core.base.safe_text import json_text, safe
from tracelane.core.base.units import format_bytes
from tracelane.core.index.cache import cache_root
from tracelane.core.index.cached import UNLIMITED, CacheEntry, clear_cache, evicted, limit_of, list_cache
from tracelane.core.index.opening import open_indexes
from tracelane.core.tables.frame.schema import Column, TableSchema
from tracelane.tui.config import read_config
from tracelane.tui.text.progress import ProgressBar

from .printing import Printout, print_output
from .trace_options import TraceOptions

SCHEMA = 1
INDEXES = TableSchema(
    "indexes",
    "Indexes",
    (
        Column("path", "trace", "text"),
        Column("index", "index", "text"),
        Column("index_bytes", "size", "bytes"),
        Column("events", "events", "count"),
        Column("slices", "slices", "count"),
        Column("seconds", "seconds", "number"),
    ),
)


def run_index(options: TraceOptions) -> None:
    from tracelane.core.tables.frame.table import Table, Tables  # numpy, which no reader of a file waits for

    (trace,) = options.traces
    began = time.monotonic()
    with ProgressBar(Path(trace).name) as progress:
        opened = open_indexes(
            options.paths, options.index_options, choice=options.of_all_captures.choice, progress=progress
        )
    seconds = time.monotonic() - began
    facts = [{**one, "seconds": round(seconds, 3)} for one in opened.facts()]
    table = Table.from_rows(INDEXES, trace, facts)
    print_output(
        Printout("index", Tables.of(table)),
        options.form,
        json=lambda _: (json_text({"schema": SCHEMA, **one}) + "\n" for one in facts),
        text=lambda _: ["\n".join(map(_index_text, facts))],
    )
    for note in opened.notes():
        print_text(f"  {safe(note)}", error=True)


def _index_text(facts: Mapping[str, Any]) -> str:
    counts = f"{facts['events']:,} events, {facts['slices']:,} slices in {facts['seconds']:.1f} s"
    size = f"{facts['index_bytes'] / 1e6:.1f} MB in {safe(facts['index'])}"
    return f"{safe(facts['path'])}: {counts}\n  {size}"


CACHED = TableSchema(
    "indexes",
    "Indexes",
    (
        Column("path", "trace", "text"),
        Column("bytes", "size", "bytes"),
        Column("slices", "slices", "count"),
        Column("used", "last opened", "text"),
        Column("folder", "folder", "text"),
        Column("state", "state", "text"),
    ),
)


def run_cache() -> None:
    ctx = click.get_current_context()
    if ctx.invoked_subcommand is None and isinstance(ctx.command, click.Group):
        ctx.invoke(ctx.command.commands["list"])


def run_list(options: TraceOptions) -> None:
    from tracelane.core.tables.frame.table import Table, Tables

    for complaint in read_config(config_path()).complaints:
        print_text(f"tracelane: {complaint}", error=True)
    entries = list_cache()
    lines, rows = map(_line, entries), map(_row, entries)
    table = Table.from_rows(CACHED, "the cache", [*rows])
    print_output(Printout("cache", Tables.of(table)), options.form, text=lambda _: ["\n".join(lines)])
    if options.form != "text":
        return
    for one in evicted():
        made_room = f"made room {_date(one.when)}, {one.bytes / 1e6:.1f} MB: {safe(one.path)}"
        print_text(made_room, error=True)
    if not entries:
        print_text("no indexes are kept", error=True)
    elif (root := cache_root()) is not None:
        limit = limit_of(root)
        allowed = "without a limit" if limit == UNLIMITED else f"of {format_bytes(limit)} at most"
        total = format_bytes(sum(entry.bytes for entry in entries))
        print_text(f"{total} {allowed} in {safe(str(root))}", error=True)


def _line(entry: CacheEntry) -> str:
    folder = f"{entry.folder.parent.name}/{entry.folder.name}"
    size, date = f"{entry.bytes / 1e6:10.1f} MB", _date(entry.used)
    return f"{size}  {date}  {folder}  {safe(entry.path)}{_state(entry)}"


def _row(entry: CacheEntry) -> dict[str, Any]:
    return {
        **{key: getattr(entry, key) for key in ("path", "bytes", "slices")},
        "folder": str(entry.folder),
        "used": _date(entry.used),
        "state": _state(entry).strip(" ()"),
    }


def run_clear(older_than: float | None) -> None:
    removed, size, left = clear_cache(older_than=older_than)
    in_use = f", {left} in use and kept" if left else ""
    print_text(f"{removed} removed, {size / 1e6:.1f} MB{in_use}", error=True)


def _state(entry: CacheEntry) -> str:
    return "  (of another version)" if not entry.current else "  (open)" if entry.in_use else ""


def _date(stamp: float) -> str:
    return datetime.fromtimestamp(stamp).strftime("%Y-%m-%d %H:%M")
