"""List or clear the indexes kept of traces opened before."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from tracelane.core.base.output import print_text
from tracelane.core.base.private import config_path
from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import format_bytes
from tracelane.core.index.cache import cache_root
from tracelane.core.index.cached import UNLIMITED, CacheEntry, clear_cache, evicted, limit_of, list_cache
from tracelane.core.tables.schema import TableSchema, columns_from
from tracelane.core.tables.table import Table, Tables
from tracelane.tui.config import read_config

from .opened import TraceOptions
from .printing import Printout, print_output

INDEXES = TableSchema(
    "indexes",
    "Indexes",
    columns_from(
        "path: text = trace, bytes = size, slices, used: text = last opened, folder: text, state: text"
    ),
)


def run_list(options: TraceOptions) -> None:
    for complaint in read_config(config_path()).complaints:
        print_text(f"tracelane: {complaint}", error=True)
    entries = list_cache()
    lines = map(_line, entries)
    print_output(
        Printout("cache", Tables.of(_table(entries))), options.form, text=lambda _: ["\n".join(lines)]
    )
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


def _table(entries: Sequence[CacheEntry]) -> Table:
    rows = [
        {
            **{key: getattr(entry, key) for key in ("path", "bytes", "slices")},
            "folder": str(entry.folder),
            "used": _date(entry.used),
            "state": _state(entry).strip(" ()"),
        }
        for entry in entries
    ]
    return Table.from_rows(INDEXES, "the cache", rows)


def run_clear(older_than: float | None) -> None:
    removed, size, left = clear_cache(older_than=older_than)
    in_use = f", {left} in use and kept" if left else ""
    print_text(f"{removed} removed, {size / 1e6:.1f} MB{in_use}", error=True)


def _state(entry: CacheEntry) -> str:
    return "  (of another version)" if not entry.current else "  (open)" if entry.in_use else ""


def _date(stamp: float) -> str:
    return datetime.fromtimestamp(stamp).strftime("%Y-%m-%d %H:%M")
