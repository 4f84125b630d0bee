"""A summary as a small JSON file: a baseline that a repository can keep, read back for comparisons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import UnreadableError
from ..base.safe_text import json_text
from ..tables.metrics import Metric
from ..tables.summary import CATEGORIES, KERNELS, OPS, STEPS, LeftOut, Summary
from ..tables.table import Column, Table

SCHEMA = 1
KIND = "summary"
COLUMNS: dict[str, tuple[Column, ...]] = {
    "kernels": KERNELS,
    "ops": OPS,
    "categories": CATEGORIES,
    "steps": STEPS,
}
ROWS = 30
"""Rows kept of each table."""
LARGEST = 4 << 20
"""Bytes beyond which a file is not looked at as a summary."""
_HEAD = 256


def as_object(summary: Summary, rows: int = ROWS) -> dict[str, Any]:
    """Return the JSON object of a summary; a table is a list of rows, and what was left out is told."""
    short = summary.shortened(rows)
    return {
        "schema": SCHEMA,
        "table": KIND,
        "title": short.title,
        "scope": short.scope,
        "metrics": {
            name: {"value": metric.value, "unit": metric.unit} for name, metric in short.metrics.items()
        },
        **{name: [list(row.values()) for row in short.tables[name].rows()] for name in COLUMNS},
        "columns": {name: [column.key for column in columns] for name, columns in COLUMNS.items()},
        "left_out": {
            name: {"rows": rest.rows, "sums": dict(rest.sums), "most": rest.most}
            for name, rest in short.left_out.items()
        },
    }


def as_json(summary: Summary, rows: int = ROWS) -> str:
    """Return the summary as JSON text with a row of a table per line."""
    whole = as_object(summary, rows)
    lines = []
    for key, value in whole.items():
        if key in COLUMNS and value:
            items = ",\n  ".join(json_text(row) for row in value)
            lines.append(f" {json_text(key)}: [\n  {items}\n ]")
        elif key == "metrics":
            items = ",\n  ".join(f"{json_text(name)}: {json_text(each)}" for name, each in value.items())
            lines.append(f" {json_text(key)}: {{\n  {items}\n }}")
        else:
            lines.append(f" {json_text(key)}: {json_text(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def is_summary(path: Path) -> bool:
    """Tell whether a file is a summary, by its first bytes; a trace is never taken for one."""
    try:
        if path.stat().st_size > LARGEST:
            return False
        with path.open("rb") as stream:
            head = b"".join(stream.read(_HEAD).split())
    except OSError:
        return False
    return head.startswith(b"{") and b'"table":"summary"' in head


def read_summary(path: Path) -> Summary:
    """Return the summary that a file holds; UnreadableError where it is damaged or of another version."""
    try:
        told = json.loads(path.read_bytes())
        if told["schema"] != SCHEMA:
            raise UnreadableError(f"{path} is a summary of version {told['schema']}: make it anew")
        found = {
            name: Metric(name, each["unit"], each["value"]) for name, each in dict(told["metrics"]).items()
        }
        tables = {name: _table(name, columns, told) for name, columns in COLUMNS.items()}
        left_out = {
            name: LeftOut(int(rest["rows"]), {k: int(v) for k, v in rest["sums"].items()}, int(rest["most"]))
            for name, rest in dict(told["left_out"]).items()
        }
        return Summary(str(told["title"]), str(told["scope"]), found, tables, left_out)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise UnreadableError(f"{path} is no whole summary: make it anew with `tracelane summary`") from error


def _table(name: str, columns: tuple[Column, ...], told: dict[str, Any]) -> Table:
    places = [told["columns"][name].index(column.key) for column in columns]
    rows = told[name]
    data: dict[str, Any] = {}
    for column, place in zip(columns, places):
        values = [row[place] for row in rows]
        data[column.key] = [str(v) for v in values] if column.unit == "text" else np.array(values, np.int64)
    scope = str(told["scope"])
    return Table(f"summary_{name}", name.capitalize(), scope, columns, data, keys=(columns[0].key,))
