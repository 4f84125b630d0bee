"""Answer a SELECT over the views slices, ops, kernels, launches, flows, counters, steps and args('key').

arg(id, 'key') is an argument of one event, as a value. Times are whole ns, columns are listed in
docs/sql.md. A query only reads the trace: no files, no settings, no network. DuckDB (pip install
duckdb) reads the index as it is; SQLite gets a copy of the columns that the query names.
"""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Literal

import click

from tracelane.core.base.errors import UsageError
from tracelane.core.base.safe_text import csv_line
from tracelane.core.export.formats import JsonTable, json_pieces
from tracelane.core.sql.query import QueryAnswer, run_query, unit_of_column
from tracelane.core.tables.table import Tables

from .opened import TraceOptions
from .options import LISTED_ROWS
from .printing import Printout, print_output

LONGEST_QUERY = 1 << 20


def run_sql(
    options: TraceOptions,
    query: str | None,
    file: Path | None,
    engine: Literal["auto", "duckdb", "sqlite"],
    timeout: float,
) -> None:
    text = _query(query, file)
    # DuckDB's bindings complain on stderr of what is not collected when the process ends.
    atexit.unregister(gc.freeze)
    trace, limit = options.open(), options.limit
    with run_query(trace, text, engine, options.step_name, timeout) as answer:
        scope, most = (
            f"answered by {answer.engine}",
            limit or (LISTED_ROWS if options.form == "text" else None),
        )
        rows = Tables(scope, 0, {"rows": lambda: answer.table(scope, most)})
        print_output(
            Printout("sql", rows),
            options.form,
            json=lambda _: _json(answer, scope, limit),
            csv=lambda _: _csv(answer, limit),
        )


def _query(query: str | None, file: Path | None) -> str:
    """Return the text of the query; UsageError where there are two, or none."""
    if (query is None) == (file is None):
        raise UsageError('give one query: as "select …" behind the trace, or with --file')
    if query is not None:
        return query
    assert file is not None
    with click.open_file(str(file), encoding="utf-8", errors="strict") as source:
        try:
            text: str = source.read(LONGEST_QUERY + 1)
        except UnicodeDecodeError:
            raise UsageError(f"{file} is no text in UTF-8") from None
    if len(text) > LONGEST_QUERY:
        raise UsageError(f"{file} is too long for a query")
    return text


def _json(answer: QueryAnswer, scope: str, limit: int | None) -> Iterator[str]:
    columns = [{"name": key, "unit": unit_of_column(key)} for key in answer.columns]
    rows = (dict(zip(answer.columns, row)) for row in islice(answer.rows, limit))
    return json_pieces("sql", scope, 0, {"rows": JsonTable(columns, rows)})


def _csv(answer: QueryAnswer, limit: int | None) -> Iterator[str]:
    yield csv_line(answer.columns)
    for row in islice(answer.rows, limit):
        yield csv_line(row)
