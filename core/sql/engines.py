"""The two engines: DuckDB, which reads the arrays where they are, and SQLite, which gets copies of them.
Neither lets a query write, open a file, load an extension or change a setting. SQLite asks an authorizer
about each thing that a statement would do; of DuckDB's statements the parse tree is looked through, files and
extensions are switched off, and the settings are locked.
"""

from __future__ import annotations

import json
import math
import os
import re
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn, TypeAlias, TypeVar

import numpy as np

from ..base.arrays import AnyArray
from ..base.errors import Cancelled, MissingPackageError, TracelaneError
from ..base.installed import install_hint
from ..base.progress import CancelledCallback
from ..base.threads import BackgroundThread
from .tokens import quoted_name, unanswerable
from .views import KEYS, QueryTables

Result = TypeVar("Result")
EngineName: TypeAlias = Literal["duckdb", "sqlite"]
PIECE = 1 << 14
"""Rows that are copied or fetched at a time."""
MEMORY_MB = 1024
"""What an engine may take for itself; what needs more, as a sort, goes on in a temporary file or fails."""
MAX_VALUE_LENGTH = 64 << 20
"""Bytes of one text or blob in SQLite."""
THREADS = 4
POLL_SECONDS = 0.05
GRACE_SECONDS = 1.0
"""Some functions, as SQLite's instr, look at nothing while they work, for hours if the texts are long: an
engine that has not heeded an interrupt for so long is left to itself, and ends with the process.
"""
STEPS_PER_POLL = 20_000
"""Instructions of SQLite between two looks at whether the answer is still wanted."""

TABLE_FUNCTIONS = frozenset({"range", "generate_series", "unnest"})
REFUSED_FUNCTIONS = frozenset(
    {
        *("current_setting", "getenv", "getvariable", "write_log", "nextval", "currval", "setseed"),
        *("json_execute_serialized_sql", "json_serialize_sql", "json_serialize_plan", "sleep_ms"),
        *("load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"),
        *("file_exists", "which_secret", "txid_current", "in_search_path", "parse_duckdb_log_message"),
    }
)
"""Functions of one value that reach beyond the views."""
VALUE = re.compile(r'\(SELECT "arg value" FROM "arg (.*?)" WHERE \("arg id" = \(?(.*?)\)\)\)?')
"""What arg(…) has become in a query."""
ROW_NUMBERS = frozenset({"rowid", "oid", "_rowid_"})
"""Columns that each table of SQLite has, and no view of these."""
OF_SQLITE = ("sqlite_", "pragma_")
"""What names of SQLite's own tables begin with."""
SQLITE_TYPES = {"O": "TEXT", "f": "REAL"}
ALLOWED_ACTIONS = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)


class Answer(NamedTuple):
    """The answer to a query: the names of its columns, and what returns the next rows, none at the end."""

    columns: tuple[str, ...]
    fetch: Callable[[], list[tuple[Any, ...]]]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows. Raises UsageError where the query fails on the way, Cancelled."""
        while rows := self.fetch():
            yield from rows


class TimeLimit:
    """How long a query may take: the time of the engine's calls, and between them what this thread computes
    with the rows. That it waits there for who reads them, as a pager, does not count.
    """

    def __init__(self, seconds: float, cancelled: CancelledCallback) -> None:
        """Allow so many seconds, any time where they are 0."""
        self._seconds, self._cancelled = seconds, cancelled
        self._left = seconds or math.inf
        self._until = math.inf
        self._computed = time.thread_time()
        self.is_given_up = False
        """Whether an engine that heeds no interrupt was left to itself."""

    @contextmanager
    def counted(self) -> Iterator[None]:
        self._left -= time.thread_time() - self._computed
        self._until = time.monotonic() + self._left
        try:
            yield
        finally:
            self._left = self._until - time.monotonic()
            self._computed = time.thread_time()

    def is_over(self) -> bool:
        """Tell whether the engine is to stop: the time is over, or nobody wants the answer."""
        return self._cancelled() or time.monotonic() >= self._until

    def raise_reason(self) -> NoReturn:
        """Raise why the engine was interrupted: Cancelled, TracelaneError, KeyboardInterrupt for Ctrl+C."""
        if self._cancelled():
            raise Cancelled
        if time.monotonic() >= self._until:
            allowed = f"the query was stopped after {self._seconds:g} s"
            raise TracelaneError(f"{allowed}: a greater timeout allows more, 0 any time")
        raise KeyboardInterrupt


def has_duckdb() -> bool:
    from importlib.util import find_spec

    return find_spec("duckdb") is not None


@contextmanager
def answer_of(engine: EngineName, query_tables: QueryTables, limit: TimeLimit) -> Iterator[Answer]:
    """Run a query; its rows are there until the context ends. Raises UsageError for what no query may do."""
    with tempfile.TemporaryDirectory(prefix="tracelane-sql-") as folder:
        answer_by = _duckdb_answer if engine == "duckdb" else _sqlite_answer
        with answer_by(query_tables, folder, limit) as answer:
            yield answer


# -- SQLite -----------------------------------------------------------------------------------------------


class _Quantile:
    """quantile_cont(value, share), and the median, as DuckDB has them: between two values in proportion."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self.share = 0.5

    def step(self, value: float | None, share: float = 0.5) -> None:
        self.share = share
        if value is not None:
            self.values.append(value)

    def finalize(self) -> float | None:
        if not self.values or not 0 <= self.share <= 1:
            return None
        ordered = sorted(self.values)
        rank = Fraction(repr(self.share)) * (len(ordered) - 1)  # 0.95 as written, not as a float holds it
        low, high = (Fraction(ordered[at]) for at in (math.floor(rank), math.ceil(rank)))
        return float(low + (high - low) * (rank - math.floor(rank)))


class _Deviation(_Quantile):
    """stddev: of a sample, none of a single value."""

    def finalize(self) -> float | None:
        if len(self.values) < 2:
            return None
        return float(np.std(np.array(self.values, np.float64), ddof=1))


AGGREGATES = (("median", 1, _Quantile), ("quantile_cont", 2, _Quantile), ("stddev", 1, _Deviation))


@contextmanager
def _sqlite_answer(query_tables: QueryTables, folder: str, limit: TimeLimit) -> Iterator[Answer]:
    """Copy the arrays into a database in a temporary folder and run the query on it."""
    path = Path(folder) / "trace.sqlite"
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    with _closed(database, limit):
        for pragma in (
            "journal_mode = off",
            "synchronous = off",
            "locking_mode = exclusive",
            "temp_store = 1",
        ):
            database.execute(f"PRAGMA {pragma}")
        write_tables(database, query_tables)
        for name, count, kind in AGGREGATES:
            database.create_aggregate(name, count, kind)  # type: ignore[arg-type]
        database.execute("PRAGMA case_sensitive_like = on")
        database.execute(f"PRAGMA cache_size = -{MEMORY_MB * 256}")
        database.execute(f"PRAGMA hard_heap_limit = {MEMORY_MB << 20}")
        database.execute("PRAGMA query_only = on")
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_LENGTH)
        database.set_authorizer(_authorized({*query_tables.views, *query_tables.tables}))
        database.set_progress_handler(lambda: int(limit.is_over()), STEPS_PER_POLL)
        _refuse_own_names(query_tables)
        text = query_tables.words.sqlite_text
        with _sqlite_errors(limit):
            cursor = _answered(database.interrupt, limit, lambda: database.execute(text))

        def fetch() -> list[tuple[Any, ...]]:
            with _sqlite_errors(limit):
                return _answered(database.interrupt, limit, lambda: cursor.fetchmany(PIECE))

        # Names are between the quotes of the query again.
        yield Answer(_column_names(cursor, '"' if "`" in query_tables.words.text else "`"), fetch)


def _refuse_own_names(query_tables: QueryTables) -> None:
    """Raise UsageError where a query names tables of which views are made, or SQLite's numbers of rows."""
    words = query_tables.words
    for name in words.relations & {*query_tables.tables} - {*query_tables.views}:
        raise unanswerable(f"there is no table {name}")
    for name in words.names & ROW_NUMBERS:
        raise unanswerable(f"there is no column {name}")


def _column_names(cursor: Any, quote: str = '"') -> tuple[str, ...]:
    """Return the names of columns as the query wrote them: with double quotes for `quote`, and arg(…)."""
    names = (str(entry[0]).replace(quote, '"') for entry in cursor.description or ())
    return tuple(VALUE.sub(r"arg(\2, '\1')", name) for name in names)


def write_tables(database: sqlite3.Connection, query_tables: QueryTables) -> None:
    """Copy all tables of arrays into a database, piece by piece, and create the views over them."""
    for name, table in query_tables.tables.items():
        columns = ", ".join(
            f"{quoted_name(column)} {SQLITE_TYPES.get(values.dtype.kind, 'INTEGER')}"
            f"{' PRIMARY KEY' if column in KEYS else ''}"
            for column, values in table.items()
        )
        database.execute(f"CREATE TABLE {quoted_name(name)} ({columns})")
        insert = f"INSERT INTO {quoted_name(name)} VALUES ({', '.join('?' * len(table))})"
        length = len(next(iter(table.values()))) if table else 0
        database.execute("BEGIN")
        for low in range(0, length, PIECE):
            if query_tables.cancelled():
                raise Cancelled
            database.executemany(
                insert, zip(*(_sqlite_values(column[low : low + PIECE]) for column in table.values()))
            )
        database.execute("COMMIT")
    create_views(database, query_tables)


def create_views(database: Any, query_tables: QueryTables) -> None:
    for name, sql in query_tables.views.items():
        if sql:
            database.execute(f"CREATE VIEW {quoted_name(name)} AS {sql}")


def _sqlite_values(values: AnyArray) -> list[Any]:
    plain: list[Any] = values.tolist()
    return list(map(whole_characters, plain)) if values.dtype.kind == "O" else plain


def whole_characters(text: str) -> str:
    """Return a text as engines and files take it: half of a character becomes U+FFFD."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _authorized(tables: set[str]) -> Callable[..., int]:
    """Return what tells SQLite whether a statement may do something: read these tables, and nothing else."""

    def decide(action: int, first: str | None, second: str | None, *_: str | None) -> int:
        allowed = action in ALLOWED_ACTIONS
        if action == sqlite3.SQLITE_FUNCTION:
            allowed = (second or "").lower() not in REFUSED_FUNCTIONS
        elif action == sqlite3.SQLITE_READ:
            # No table, or no column of it, is what is read of a table that the query itself makes.
            name = first or ""
            allowed = not name or name in tables or not (second or name.lower().startswith(OF_SQLITE))
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    return decide


@contextmanager
def _sqlite_errors(limit: TimeLimit) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):
            limit.raise_reason()
        raise unanswerable(error) from None
    except (sqlite3.Error, sqlite3.Warning, MemoryError, ValueError) as error:
        raise unanswerable("only SELECT is allowed" if str(error) == "not authorized" else error) from None


# -- DuckDB -----------------------------------------------------------------------------------------------


DUCKDB_SETTINGS = (
    "default_null_order = 'sqlite'",
    "enable_progress_bar = false",
    "python_enable_replacements = false",
    "enable_external_access = false",
    "lock_configuration = true",
)
"""What is set once the views are there; the last ends all setting."""


@contextmanager
def _duckdb_answer(query_tables: QueryTables, folder: str, limit: TimeLimit) -> Iterator[Answer]:
    try:
        import duckdb
    except ImportError:
        raise MissingPackageError(
            f"the engine duckdb needs the package duckdb: {install_hint('duckdb')}", "duckdb"
        ) from None
    settings: dict[str, str | bool | int | float | list[str]] = {
        "threads": min(THREADS, os.cpu_count() or 1),
        "memory_limit": f"{MEMORY_MB}MB",
        "temp_directory": folder,
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
    }
    connection = duckdb.connect(":memory:", config=settings)
    with _closed(connection, limit):
        for name, table in query_tables.tables.items():
            connection.register(name, dict(table))
        create_views(connection, query_tables)
        for setting in DUCKDB_SETTINGS:
            connection.execute(f"SET {setting}")

        def execute() -> None:
            check_duckdb_query(connection, query_tables.words.text, set(query_tables.views))
            connection.execute(query_tables.words.text)

        with _duckdb_errors(limit):
            _answered(connection.interrupt, limit, execute)

        def fetch() -> list[tuple[Any, ...]]:
            with _duckdb_errors(limit):
                return list(_answered(connection.interrupt, limit, lambda: connection.fetchmany(PIECE)))

        yield Answer(_column_names(connection), fetch)


def check_duckdb_query(connection: Any, text: str, views: set[str]) -> None:
    """Raise UsageError for all but one SELECT over the views and tables of its own."""
    if len(connection.extract_statements(text)) != 1:
        raise unanswerable("one SELECT at a time, please")
    (answer,) = connection.execute("SELECT json_serialize_sql(?)", [text]).fetchone()
    tree = json.loads(answer)
    if tree.get("error"):
        message = str(tree.get("error_message") or "it is no query")
        if "Only SELECT" in message:
            message = "only SELECT is allowed"
        raise unanswerable(message)
    nodes = list(_nodes(tree.get("statements", [])))
    tables = views | {str(entry.get("key", "")) for node in nodes for entry in _entries(node.get("cte_map"))}
    known = {name.lower() for name in tables}
    for node in nodes:
        kind, path = node.get("type"), _path(node)
        if kind == "BASE_TABLE" and (len(path) != 1 or path[0].lower() not in known):
            raise unanswerable(f"there is no table {'.'.join(path)}")
        if kind in ("SHOW_REF", "COLUMN_DATA", "DELIM_GET"):
            raise unanswerable("only SELECT is allowed")
        if kind == "TABLE_FUNCTION":
            name = _path(node.get("function") or {})
            if len(name) != 1 or name[0].lower() not in TABLE_FUNCTIONS:
                raise unanswerable(f"{'.'.join(name)}() is not allowed")
        elif kind == "FUNCTION" and (len(path) > 1 or path[0].lower() in REFUSED_FUNCTIONS):
            raise unanswerable(f"{'.'.join(path)}() is not allowed")


def _path(node: Mapping[str, Any]) -> list[str]:
    """Return the parts of the name of a table or function in a parse tree."""
    name = node.get("qualified_name")
    if isinstance(name, dict) and isinstance(name.get("path"), list):
        return [str(part) for part in name["path"]]
    parts = ("catalog_name", "schema_name", "table_name", "catalog", "schema", "function_name")
    return [str(node[part]) for part in parts if node.get(part)] or [""]


def _entries(mapping: Any) -> list[Mapping[str, Any]]:
    entries = mapping.get("map") if isinstance(mapping, dict) else None
    return [entry for entry in entries or () if isinstance(entry, dict)]


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects of a parse tree."""
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            yield node
            todo.extend(node.values())
        elif isinstance(node, list):
            todo.extend(node)


@contextmanager
def _duckdb_errors(limit: TimeLimit) -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.InterruptException:
        limit.raise_reason()
    except duckdb.Error as error:
        raise unanswerable(error) from None
    except RuntimeError as error:
        if "interrupt" in str(error).lower():
            limit.raise_reason()
        raise TracelaneError(str(unanswerable(error))) from None


# -- both -------------------------------------------------------------------------------------------------


def _answered(interrupt: Callable[[], None], limit: TimeLimit, work: Callable[[], Result]) -> Result:
    """Return what a call of an engine returns, or raise what it raises. It runs in a thread of its own:
    inside a recursive query DuckDB looks neither for signals nor at anything else but `interrupt`. Ctrl+C,
    the limit, and an answer that is no longer wanted interrupt it from here.
    """
    results: list[Result] = []
    with limit.counted():
        if limit.is_over():
            limit.raise_reason()
        thread = BackgroundThread(lambda: results.append(work()))
        try:
            while not thread.join(POLL_SECONDS):
                if limit.is_over():
                    break
        except KeyboardInterrupt:
            _interrupted(interrupt, limit, thread)
            raise
        if not _interrupted(interrupt, limit, thread):
            limit.raise_reason()
    if thread.error is not None:
        raise thread.error
    return results[0]


def _interrupted(interrupt: Callable[[], None], limit: TimeLimit, thread: BackgroundThread) -> bool:
    """Interrupt what a thread does until it ends; tell whether it has, or is left to itself."""
    until = time.monotonic() + GRACE_SECONDS
    while not thread.join(POLL_SECONDS):
        interrupt()
        if time.monotonic() >= until:
            limit.is_given_up = True
            return False
    return True


@contextmanager
def _closed(database: Any, limit: TimeLimit) -> Iterator[None]:
    """Close a database at the end, but one whose engine still works: that would wait for it."""
    try:
        yield
    finally:
        if not limit.is_given_up:
            database.close()
