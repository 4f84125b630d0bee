"""The slices of a trace as files that other programs read: Parquet, and a SQLite database of all views."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import Cancelled, MissingPackageError, TracelaneError
from ..base.installed import install_hint
from ..base.progress import ProgressCallback, no_progress
from ..base.safe_text import json_text
from ..export.cut import whole_path
from ..query.args import EventArguments, events_with_arguments
from ..tables.frame.frames import package
from ..tables.frame.scope import Scope
from ..tables.frame.text_column import TextColumn
from ..tables.host.slice_table import NAMES, SLICE_COLUMNS, SOURCE_BITS, TEXTS, slice_chunks
from .engines import has_duckdb, whole_characters, write_tables
from .tokens import QueryWords, quoted_name
from .views import ALIASES, VIEWS, QueryTables

PIECE = 1 << 14
ALL = QueryWords("", frozenset(VIEWS), (), True)
INDEXED = (("slices", "ts"), ("slices", "id"), ("kernels", "id"), ("flows", "source"))
INSERT = "INSERT OR REPLACE INTO file.args VALUES "
ROWS = 300
"""Rows of arguments that a statement writes: a third of the time of a statement for each."""
REMEMBERED = 1 << 14
"""Values whose JSON is remembered: shapes and types are the same in every step."""
MIN, MAX = -(1 << 63), (1 << 63) - 1
"""Integers that SQLite has."""
CACHE_KIB = 64 << 10
"""Memory for pages of the new file."""


def write_parquet(scope: Scope, out: Path) -> int:
    """Write the slices of a scope, whole, as Parquet with the columns of `slices`; return how many. Raises
    MissingPackageError without pyarrow and without DuckDB, Cancelled, TracelaneError.
    """
    try:
        package("pyarrow.parquet", "Parquet")
    except MissingPackageError:
        if not has_duckdb():
            raise MissingPackageError(
                f"Parquet needs pyarrow or duckdb: {install_hint('pyarrow')}", "pyarrow"
            ) from None
        with whole_path(out) as building:
            return _parquet_by_duckdb(scope, building)
    with whole_path(out) as building:
        return _parquet_by_arrow(scope, building)


def _parquet_by_arrow(scope: Scope, out: Path) -> int:
    arrow, parquet = package("pyarrow", "Parquet"), package("pyarrow.parquet", "Parquet")
    types = {column.key: arrow.string() if column.key in TEXTS else arrow.int64() for column in SLICE_COLUMNS}
    schema = arrow.schema(
        [arrow.field(c.key, types[c.key], metadata={"unit": c.unit}) for c in SLICE_COLUMNS]
    )
    count = 0
    with parquet.ParquetWriter(str(out), schema, compression="zstd") as writer:
        for chunk in slice_chunks(scope):
            arrays = [
                arrow.array(list(map(whole_characters, chunk[key])), arrow.string())
                if key in TEXTS
                else arrow.array(chunk[key])
                for key in NAMES
            ]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
            count += len(chunk["id"])
    return count


def _parquet_by_duckdb(scope: Scope, out: Path) -> int:
    import duckdb

    count = 0
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tracelane-"))
        connection = stack.enter_context(closing(duckdb.connect(str(Path(folder) / "slices.duckdb"))))
        kinds = ", ".join(
            f"{quoted_name(column.key)} {'VARCHAR' if column.unit == 'text' else 'BIGINT'}"
            for column in SLICE_COLUMNS
        )
        connection.execute(f"CREATE TABLE slices ({kinds})")
        for chunk in slice_chunks(scope):
            columns = {key: one.objects if isinstance(one, TextColumn) else one for key, one in chunk.items()}
            connection.register("chunk", columns)
            connection.execute("INSERT INTO slices SELECT * FROM chunk")
            connection.unregister("chunk")
            count += len(chunk["id"])
        path = str(out).replace("'", "''")
        connection.execute(f"COPY slices TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
    return count


def write_sqlite(scope: Scope, out: Path, progress: ProgressCallback = no_progress) -> int:
    """Write a SQLite database with a table for each view, and `args` (id, key, value) of all slices in it. Of
    a scope that is not the whole trace it has the slices in it, whole, with what belongs to them; counters
    and steps are those of its time. Returns how many slices. Raises Cancelled, UnreadableError,
    TracelaneError.
    """
    query_tables = QueryTables.of(scope.trace, ALL, scope.steps or None, scope.cancelled)
    with ExitStack() as stack:
        building = stack.enter_context(whole_path(out))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tracelane-"))
        raw = sqlite3.connect(Path(folder) / "raw.sqlite", isolation_level=None)
        database = stack.enter_context(closing(raw))
        for pragma in ("journal_mode = off", "synchronous = off"):
            database.execute(f"PRAGMA {pragma}")
        database.set_progress_handler(lambda: int(scope.cancelled()), 100_000)
        try:
            write_tables(database, query_tables)
            return _copy(database, scope, building, progress)
        except sqlite3.Error as error:
            if "interrupted" in str(error):
                raise (Cancelled() if scope.cancelled() else KeyboardInterrupt()) from None
            raise TracelaneError(f"cannot write {out}: {error}") from None


def _copy(database: sqlite3.Connection, scope: Scope, out: Path, progress: ProgressCallback) -> int:
    database.execute("ATTACH ? AS file", [str(out)])
    for pragma in ("journal_mode = off", "synchronous = off", f"cache_size = -{CACHE_KIB}"):
        database.execute(f"PRAGMA file.{pragma}")
    conditions = dict.fromkeys(VIEWS, "1")
    if scope.range is not None or scope.lanes is not None or scope.where is not None:
        database.execute("CREATE TABLE chosen (id INTEGER PRIMARY KEY)")
        for chunk in slice_chunks(scope, ("id",)):
            ids = ((one,) for one in np.asarray(chunk["id"]).tolist())
            database.executemany("INSERT INTO chosen VALUES (?)", ids)
        inside = "id IN (SELECT id FROM chosen)"
        conditions = dict.fromkeys(("slices", "ops", "kernels", "launches"), inside)
        conditions["flows"] = "source IN (SELECT id FROM chosen) AND target IN (SELECT id FROM chosen)"
        low, high = scope.range or (MIN, MAX)
        conditions["counters"] = f"ts >= {low} AND ts < {high}"
        for view in ("steps", "device_states", "untrusted"):
            conditions[view] = f"ts < {high} AND ts + dur > {low}"
    for view in VIEWS:
        names = ", ".join(quoted_name(key) for key in VIEWS[view] if key not in ALIASES)
        aliases = (f"{key} AS ({ALIASES[key]})" for key in VIEWS[view] if key in ALIASES)  # take no room
        database.execute(f"CREATE TABLE file.{view} ({', '.join([names, *aliases])})")
        database.execute(f"INSERT INTO file.{view} SELECT {names} FROM main.{view} WHERE {conditions[view]}")
    database.execute(
        "CREATE TABLE file.args (id INTEGER, key TEXT, value, PRIMARY KEY (id, key)) WITHOUT ROWID"
    )
    database.execute("BEGIN")
    for source, index in enumerate(scope.trace.indexes):
        base = source << SOURCE_BITS
        query = "SELECT id FROM file.slices WHERE id >= ? AND id < ? ORDER BY id"
        chosen = [row[0] - base for row in database.execute(query, [base, base + (1 << SOURCE_BITS)])]
        known: dict[str, str] = {}
        for events in events_with_arguments(index, np.array(chosen, np.int64), progress, scope.cancelled):
            _insert_arguments(database, _flat(base, events, known))
    database.execute("COMMIT")
    for table, column in INDEXED:
        database.execute(f"CREATE INDEX file.{table}_{column} ON {table} ({column})")
    (count,) = database.execute("SELECT count(*) FROM file.slices").fetchone()
    database.execute("DETACH file")
    return int(count)


def _insert_arguments(database: sqlite3.Connection, values: list[Any]) -> None:
    """Insert rows of (id, key, value) that stand in one list; a row with an id and key again replaces it."""
    whole = len(values) - len(values) % (3 * ROWS)
    for low, high, rows in ((0, whole, ROWS), (whole, len(values), 1)):
        statement = INSERT + ", ".join(["(?, ?, ?)"] * rows)
        pieces = [values[at : at + 3 * rows] for at in range(low, high, 3 * rows)]
        try:
            database.executemany(statement, pieces)
        except UnicodeEncodeError:
            whole_pieces = ([whole_characters(v) if isinstance(v, str) else v for v in one] for one in pieces)
            database.executemany(statement, whole_pieces)


def _flat(base: int, events: Iterable[EventArguments], known: dict[str, str]) -> list[Any]:
    """Return id, key and value of arguments one after another, the values as SQLite has them: lists, objects
    and what else it lacks as JSON, which `known` remembers by what Python calls the value.
    """
    values: list[Any] = []
    for ordinal, arguments in events:
        for key, value in arguments.items():
            kind = value.__class__
            if not (kind is str or kind is float or (kind is int and MIN <= value <= MAX)):
                text = repr(value)
                if text not in known:
                    if len(known) >= REMEMBERED:
                        known.clear()
                    known[text] = json_text(value, default=str)
                value = known[text]
            values += (base + ordinal, key, value)
    return values
