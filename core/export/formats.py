"""A table as JSON, CSV or Markdown: exact values, no colours, for scripts and CI."""

from __future__ import annotations

from typing import Any

from ..base.safe_text import csv_line, has_markup, json_text, markdown_cell, markdown_words
from ..base.units import format_bytes, format_ns
from ..ingest.columns import I64
from ..tables.table import Column, Table, Value

SCHEMA = 1
SMALL = 0.01
"""Three decimals tell too little of smaller numbers."""


def as_object(table: Table, order: I64 | None = None, limit: int | None = None) -> dict[str, Any]:
    """Return the JSON object of a table: its rows by column key, totals, scope and notes."""
    return {
        "schema": SCHEMA,
        "table": table.name,
        "scope": table.scope,
        **dict(table.totals),
        "rows": list(table.rows(order, limit)),
        **({"notes": list(table.notes)} if table.notes else {}),
    }


def as_json(table: Table, order: I64 | None = None, limit: int | None = None) -> str:
    """Return the table as indented JSON text."""
    return json_text(as_object(table, order, limit), indent=1) + "\n"


def as_csv(table: Table, order: I64 | None = None, limit: int | None = None) -> str:
    """Return the table as CSV with a header of column keys; values are unrounded."""
    rows = table.rows(order, limit)
    return csv_line(column.key for column in table.columns) + "".join(csv_line(row.values()) for row in rows)


def as_markdown(table: Table, order: I64 | None = None, limit: int | None = None) -> str:
    """Return the table as Markdown with readable units, its scope above and its notes below.

    Columns in which some text holds markup are set as code.
    """
    lines = [f"**{markdown_words(table.title)}** ({markdown_words(table.scope)})", ""]
    lines.append("| " + " | ".join(markdown_cell(column.heading) for column in table.columns) + " |")
    lines.append("|" + "|".join(" --- " if c.unit == "text" else " ---: " for c in table.columns) + "|")
    rows = list(table.rows(order, limit))
    cells = [_markdown_column(column, [row[column.key] for row in rows]) for column in table.columns]
    lines += ["| " + " | ".join(row) + " |" for row in zip(*cells)]
    lines += ["", *map(markdown_words, table.notes)] if table.notes else []
    return "\n".join(lines) + "\n"


def _markdown_column(column: Column, values: list[Value]) -> list[str]:
    texts = [shown(column, value) for value in values]
    code = column.unit == "text" and any(map(has_markup, texts))
    return [markdown_cell(text, code) for text in texts]


def shown(column: Column, value: Value) -> str:
    """Return a value as a person reads it, in the column's unit; a change with its sign."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if column.change and value > 0:
        return "+" + _shown(column, value)
    return _shown(column, value)


def _shown(column: Column, value: int | float) -> str:
    match column.unit:
        case "ns":
            return format_ns(value)
        case "share":
            return f"{value:.2%}"
        case "bytes":
            return format_bytes(value)
        case "bytes/s":
            return format_bytes(value) + "/s"
        case "count":
            return f"{value:,}"
        case _:
            if isinstance(value, int):
                return f"{value:,}"
            if value and abs(value) < SMALL:
                return f"{value:.3g}"
            return f"{value:,.3f}".rstrip("0").rstrip(".")
