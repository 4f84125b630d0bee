"""What a recount of the files of a trace came to, as tables; which files can be recounted, and how long that
takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ...base.errors import UsageError
from ...base.units import count_of, format_bytes
from ...index.store import Index
from ...read.source import Source
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.table import Table, Tables, row_of_object
from .json_elements import backend_name
from .recount import Recounted, recount

SECONDS_PER_GB: Mapping[str, int] = {"yajl2_c": 65}
"""Processor time of a gigabyte of text with ijson's parsers, see docs/performance.md."""
SECONDS_OF_PLAIN = 320
"""The same with any other, of which the one in Python is there everywhere."""
RECOUNT = TableSchema(
    "recount",
    "Recount",
    (
        Column("file", "file", "text"),
        Column("verdict", "verdict", "text"),
        Column("events", "equal events", "count"),
        Column("text", "what", "text"),
        Column("byte", "compared up to byte", "id"),
        Column("difference", "difference", "object"),
        Column("backend", "read with", "text"),
    ),
    keys=("file",),
)
CATEGORIES = TableSchema(
    "categories",
    "Slices by category",
    (
        Column("file", "file", "text", detail=True),
        Column("category", "category", "text"),
        Column("slices", "slices in the file", "count"),
        Column("duration_ns", "their time", "ns"),
        Column("index_slices", "slices in the index", "count"),
        Column("index_duration_ns", "their time there", "ns"),
    ),
    keys=("file", "category"),
)
EQUAL, IN_PART, DIFFERENT = "equal", "equal in part", "different"


def recount_tables(scope: Scope, strict: bool) -> Tables:
    """Return the result of each file, and its slices by category. A difference fails, where `strict` also
    what could not be compared up to the end. Raises UsageError for what no file of JSON holds.
    """
    results = [
        (Path(index.path).name, recount(index, source, scope.progress, scope.cancelled))
        for index, source in sources_of(scope)
    ]
    rows = [_row(name, result) for name, result in results]
    verdicts = [row["verdict"] for row in rows]
    totals = {
        "events": sum(result.events for _, result in results),
        "failed": DIFFERENT in verdicts or (strict and IN_PART in verdicts),
    }
    makers: dict[str, Callable[[], Table]] = {
        "recount": lambda: Table.from_rows(RECOUNT, scope.text, rows, totals=totals),
        "categories": partial(_categories, scope, results),
    }
    return Tables(scope.text, scope.origin, makers)


def sources_of(scope: Scope) -> list[tuple[Index, Source]]:
    """Return the indexes of a scope with their files; UsageError where one cannot be read by ijson."""
    pairs = []
    for index in scope.trace.indexes:
        source, why = index.source, ""
        if not isinstance(source, Source):
            why = "has no file that can be read"
        elif source.kind == "stdin":
            why = "standard input cannot be read twice: recount a file"
        elif source.becomes_json:
            why = "is no JSON: ijson reads nothing else"
        if why or not isinstance(source, Source):
            raise UsageError(f"{Path(index.path).name}: {why}")
        pairs.append((index, source))
    return pairs


def estimate(scope: Scope) -> str:
    """Return what a recount reads with, and about how long that takes."""
    backend = backend_name()
    size = sum(_text_bytes(index) for index, _ in sources_of(scope))
    seconds = max(1, round(size / 1e9 * SECONDS_PER_GB.get(backend, SECONDS_OF_PLAIN)))
    what = (
        "this file"
        if len(scope.trace.indexes) == 1
        else f"these {count_of(len(scope.trace.indexes), 'file')}"
    )
    return f"reads with {backend} of ijson, some {seconds:,} s for {what} ({format_bytes(size)} of text)"


def _text_bytes(index: Index) -> int:
    """Return how long the text of a file is, unpacked, up to its last event; for the estimate alone."""
    offsets, lengths = index.column("blocks.offset"), index.column("blocks.length")
    return int(offsets[-1] + lengths[-1]) if len(offsets) else 0


def _row(name: str, result: Recounted) -> dict[str, Any]:
    difference, stop = result.difference, result.stop
    return {
        "file": name,
        "verdict": DIFFERENT if difference else IN_PART if stop else EQUAL,
        "events": result.events,
        "text": result.text,
        "byte": stop.offset if stop and not difference else None,
        "difference": {} if difference is None else difference._asdict(),
        "backend": backend_name(),
    }


def _categories(scope: Scope, results: Sequence[tuple[str, Recounted]]) -> Table:
    rows = [
        row_of_object(CATEGORIES.columns, one, file=name)
        for name, result in results
        for one in result.categories
    ]
    return Table.from_rows(CATEGORIES, scope.text, rows)
