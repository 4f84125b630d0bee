"""A query over a trace, and its answer: row by row, or as a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Literal, NamedTuple, TypeAlias
from uuid import UUID

import numpy as np

from ..base.arrays import distinct
from ..base.errors import UsageError
from ..base.progress import CancelledCallback, never
from ..index.store import SCAN_CHUNK
from ..tables.frame.schema import Column, TableSchema, Unit
from ..tables.frame.table import Table
from ..tables.host.slice_table import SOURCE_BITS
from ..trace import Trace
from .engines import EngineName, TimeLimit, answer_of, has_duckdb
from .tokens import query_words
from .views import ALIASES, OP_VIEW, QueryTables

EngineChoice: TypeAlias = Literal["auto", "duckdb", "sqlite"]
UNITS: dict[str, Unit] = {
    **dict.fromkeys(("ts", "dur", "self", *ALIASES, "delay", *OP_VIEW), "ns"),
    **dict.fromkeys(("id", "source", "target", "kernel", "rank"), "id"),
}
"""Units of columns that keep the names that they have in the views."""


class QueryAnswer(NamedTuple):
    """The rows of a query; columns of equal names are told apart by a number behind them."""

    trace: Trace
    engine: EngineName
    columns: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]

    def table(self, scope: str, limit: int | None = None) -> Table:
        """Return the rows, at most `limit`, as a table; a note says whether there are more. Its moments count
        from `origin_ns` of trace time.
        """
        rows: list[dict[str, Any]] = []
        more = False
        for values in self.rows:
            if len(rows) == limit:
                more = True
                break
            rows.append(dict(zip(self.columns, values)))
        columns = tuple(_column(key, [row[key] for row in rows]) for key in self.columns)
        notes = (f"there are more rows than these {len(rows):,}",) if more else ()
        table = Table.from_rows(TableSchema("rows", "Query", columns), scope, rows, notes=notes)
        table = replace(table.counted_from(0), begins_ns=self.trace.opening_span[0])
        return table if "id" not in self.columns else with_jumps(self.trace, table)


@contextmanager
def run_query(
    trace: Trace,
    query: str,
    engine: EngineChoice = "auto",
    step_name: str | None = None,
    timeout_s: float = 0.0,
    cancelled: CancelledCallback = never,
) -> Iterator[QueryAnswer]:
    """Answer a query while the context lasts: one SELECT over the views. `auto` is DuckDB where it is
    installed, else SQLite, which may work for `timeout_s` seconds, 0: any time. Raises UsageError with the
    engine's words where the query is none or may not be, MissingPackageError where the engine is not
    installed, TracelaneError where the time is over, Cancelled.
    """
    words = query_words(query)
    if not words.text.strip():
        raise UsageError("the query is empty")
    if "\0" in query:
        raise UsageError("the query holds a NUL character")
    chosen: EngineName = engine if engine != "auto" else "duckdb" if has_duckdb() else "sqlite"
    query_tables = QueryTables.of(trace, words, step_name, cancelled)
    with answer_of(chosen, query_tables, TimeLimit(timeout_s, cancelled)) as answer:
        rows = (tuple(map(_plain, row)) for row in answer.rows())
        yield QueryAnswer(trace, chosen, _told_apart(answer.columns), rows)


def with_jumps(trace: Trace, table: Table) -> Table:
    """Return a table whose rows lead to the slices that their column `id` names, where there are such."""
    ids = np.array([one if isinstance(one, int | np.integer) else -1 for one in table.data["id"]], np.int64)
    sources, ordinals = ids >> SOURCE_BITS, ids & ((1 << SOURCE_BITS) - 1)
    positions = np.full(len(ids), -1, np.int64)
    for source in distinct(sources[(sources >= 0) & (sources < len(trace.indexes))]).tolist():
        column = trace.indexes[source].column("slices.ordinal")
        rows = np.flatnonzero(sources == source)
        known, which = np.unique(ordinals[rows], return_inverse=True)
        of_distinct = np.full(len(known), -1, np.int64)
        for low in range(0, len(column), SCAN_CHUNK):
            own = column[low : low + SCAN_CHUNK].astype(np.int64)
            at = np.minimum(np.searchsorted(known, own), len(known) - 1)
            hits = np.flatnonzero(known[at] == own)
            of_distinct[at[hits]] = low + hits
        positions[rows] = of_distinct[which]
    return replace(table, positions=positions, sources=np.maximum(sources, 0), jumps_to="the slice")


def unit_of_column(key: str) -> Unit:
    """Return the unit of a column of an answer where its name tells, else "text"."""
    return UNITS.get(key, "text")


def _column(key: str, values: list[Any]) -> Column:
    if any(isinstance(value, list | dict) for value in values):
        return Column(key, key, "object")
    if any(isinstance(value, str) for value in values):
        return Column(key, key, "text", is_name=key == "name")
    if key in UNITS and all(isinstance(value, int) or value is None for value in values):
        return Column(key, key, UNITS[key], moment=key in ("ts", "start_ns"))
    numbers = any(isinstance(value, int | float) for value in values)
    return Column(key, key, "number" if numbers else "text")


def _plain(value: Any) -> Any:
    """Return a value of an engine as JSON, CSV and tables have it."""
    match value:
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case bytes() | bytearray() | memoryview():
            return bytes(value).hex()
        case datetime() | date() | time() | timedelta() | UUID():
            return str(value)
        case float() if value != value or value in (float("inf"), float("-inf")):
            return None
        case tuple() | set() | list():
            return [_plain(each) for each in value]
        case dict():
            return {str(key): _plain(each) for key, each in value.items()}
        case _:
            return value


def _told_apart(names: tuple[str, ...]) -> tuple[str, ...]:
    counts: dict[str, int] = {}
    result: list[str] = []
    for name in names:
        counts[name] = count = counts.get(name, 0) + 1
        while count > 1 and f"{name}_{count}" in names:
            counts[name] = count = count + 1
        result.append(name if count == 1 else f"{name}_{count}")
    return tuple(result)
