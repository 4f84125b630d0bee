"""A table as JSON, CSV or Markdown: exact values, no colours, for scripts and CI."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

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
    return json.dumps(as_object(table, order, limit), indent=1, ensure_ascii=False) + "\n"


def as_csv(table: Table, order: I64 | None = None, limit: int | None = None) -> str:
    """Return the table as CSV with a header of column keys; values are unrounded."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.key for column in table.columns])
    for row in table.rows(order, limit):
        writer.writerow(["" if value is None else value for value in row.values()])
    return out.getvalue()


def as_markdown(table: Table, order: I64 | None = None, limit: int | None = None) -> str:
    """Return the table as Markdown with readable units, its scope above and its notes below."""
    lines = [f"**{table.title}** ({table.scope})", ""]
    lines.append("| " + " | ".join(column.heading for column in table.columns) + " |")
    lines.append("|" + "|".join(" --- " if c.unit == "text" else " ---: " for c in table.columns) + "|")
    for row in table.rows(order, limit):
        cells = (shown(column, row[column.key]).replace("|", "\\|") for column in table.columns)
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", *table.notes] if table.notes else []
    return "\n".join(lines) + "\n"


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
