"""Tables as JSON, CSV or Markdown: exact values, no colours, for scripts and CI."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, NamedTuple

from ..base.arrays import I64
from ..base.safe_text import csv_line, has_markup, json_text, markdown_cell, markdown_words, safe
from ..tables.frame.frames import is_left as is_left
from ..tables.frame.frames import text_in_cell as text_in_cell
from ..tables.frame.frames import text_in_unit as text_in_unit
from ..tables.frame.schema import Unit
from ..tables.frame.table import Table, Tables
from .listing import Listing

SCHEMA = 2
UNITS: Mapping[str, Unit] = {"_ns": "ns", "_bytes": "bytes", "_share": "share"}
"""Suffix of a number's name -> its unit."""


class JsonTable(NamedTuple):
    """A table of JSON: its columns with their units, and its rows, which may be made as they are written."""

    columns: Sequence[Mapping[str, str]]
    rows: Iterable[Mapping[str, Any]]


def as_json(tables: Tables, command: str) -> str:
    """Return tables as JSON text."""
    return "".join(pieces_of_json(tables, command))


def pieces_of_json(
    tables: Tables, command: str, order: I64 | None = None, limit: int | None = None
) -> Iterator[str]:
    """Yield tables as JSON; order and limit are for the first one, totals become a table of one row."""
    first, *others = tables
    parts = {
        first.name: json_table(first, order, limit),
        **{table.name: json_table(table) for table in others},
    }
    if tables.totals:
        parts["totals"] = json_rows([tables.totals])
    notes = dict.fromkeys((*tables.notes, *(note for table in tables for note in table.notes)))
    yield from json_pieces(command, tables.scope, tables.origin_ns, parts, list(notes))


def json_pieces(
    command: str, scope: str, origin_ns: int, tables: Mapping[str, JsonTable], notes: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the JSON of a command, a row per line; moments count from `origin_ns` of trace time."""
    head = {"schema": SCHEMA, "command": command, "scope": scope, "origin_ns": origin_ns}
    yield "{\n" + "".join(f" {json_text(key)}: {json_text(value)},\n" for key, value in head.items())
    yield ' "tables": {'
    for number, (name, table) in enumerate(tables.items()):
        columns = json_text(table.columns)
        yield f'{"," if number else ""}\n  {json_text(name)}: {{\n   "columns": {columns},\n   "rows": ['
        before = "\n    "
        for row in table.rows:
            yield before + json_text(row)
            before = ",\n    "
        yield "]\n  }"
    yield f'\n }},\n "notes": {json_text(list(notes))}\n}}\n'


def json_table(table: Table, order: I64 | None = None, limit: int | None = None) -> JsonTable:
    """Return a table as one of JSON; beside a `name` that people see short its short form."""
    columns = [{"name": column.key, "unit": column.unit} for column in table.columns]
    forms = table.short_forms.get("name")
    if forms is None:
        return JsonTable(columns, table.rows(order, limit))
    rows = ({**row, "short_name": forms.get(row["name"], "")} for row in table.rows(order, limit))
    return JsonTable([*columns, {"name": "short_name", "unit": "text"}], rows)


def json_rows(rows: Sequence[Mapping[str, Any]]) -> JsonTable:
    """Return rows as a table of JSON, its units by name and value; a row that lacks a key has null."""
    values: dict[str, Any] = {}
    for row in rows:
        values |= {key: value for key, value in row.items() if value is not None or key not in values}
    columns = [{"name": key, "unit": _unit_of(key, value)} for key, value in values.items()]
    return JsonTable(columns, [{key: row.get(key) for key in values} for row in rows])


def pieces_of_csv(table: Table, order: I64 | None = None, limit: int | None = None) -> Iterator[str]:
    """Yield a table as CSV with a header of column keys; values are unrounded, objects as their length."""
    table = table.with_origin
    columns = [column for column in table.columns if not (column.detail and column.unit == "object")]
    rows = ((_csv_value(row[column.key]) for column in columns) for row in table.rows(order, limit))
    yield csv_line(column.key for column in columns)
    yield from map(csv_line, rows)


def as_markdown(table: Table, order: I64 | None = None, limit: int | None = None) -> str:
    """Return the table as Markdown with readable units, its scope above and its notes below. Columns in which
    some text holds markup are set as code.
    """
    columns = table.drawn_columns
    lines = [f"**{markdown_words(table.title)}** ({markdown_words(table.scope)})", ""]
    lines.append("| " + " | ".join(markdown_cell(column.heading) for column in columns) + " |")
    lines.append("|" + "|".join(" --- " if is_left(column) else " ---: " for column in columns) + "|")
    rows, cells = list(table.rows(order, limit)), []
    for column in columns:
        texts = [text_in_cell(table, column, row[column.key]) for row in rows]
        code = column.unit == "text" and any(map(has_markup, texts))
        cells.append([markdown_cell(text, code) for text in texts])
    lines += ["| " + " | ".join(row) + " |" for row in zip(*cells)]
    lines += ["", *map(markdown_words, table.drawn_notes)] if table.drawn_notes else []
    return "\n".join(lines) + "\n"


def json_form(listing: Listing) -> Iterator[str]:
    yield from pieces_of_json(listing.tables, listing.command, listing.order, listing.limit)


def csv_form(listing: Listing) -> Iterator[str]:
    """Yield the first table as CSV, which has no place for notes: they are said."""
    yield from pieces_of_csv(listing.tables.main, listing.order, listing.limit)
    for note in listing.notes:
        listing.say(safe(note))


def markdown_form(listing: Listing) -> Iterator[str]:
    """Yield the tables that people read, one below the other."""
    first, *others = listing.drawn
    yield as_markdown(first, listing.order, listing.limit)
    for table in others:
        yield "\n" + as_markdown(table)


def html_form(listing: Listing) -> Iterator[str]:
    """Yield a page of the tables that people read; nothing in it is loaded from elsewhere."""
    from .html_page import page_end, page_head, page_table

    yield page_head(f"{listing.command}: {listing.tables.scope}")
    first, *others = listing.drawn
    yield page_table(first, listing.limit, listing.order)
    for number, table in enumerate(others, 1):
        yield page_table(table, None, None, number)
    yield page_end()


def _csv_value(value: Any) -> Any:
    if value is None or isinstance(value, (str, int, float)):  # nearly all: to ask for Sized takes longer
        return value
    return len(value) if isinstance(value, Sized) else value


def _unit_of(key: str, value: Any) -> Unit:
    if isinstance(value, str) or value is None:
        return "text"
    if isinstance(value, list | dict):
        return "object"
    return next((unit for ending, unit in UNITS.items() if key.endswith(ending)), "number")
