"""A table in the shapes of other libraries: numpy, pandas, Arrow, polars, and HTML for notebooks.

Times stay whole ns, texts strings, objects JSON text where a library has no column for them. The libraries
are optional: each is imported when its shape is asked for.
"""

from __future__ import annotations

from html import escape
from importlib import import_module
from typing import Any

import numpy as np

from ..base.arrays import I64, AnyArray
from ..base.errors import MissingPackageError
from ..base.safe_text import json_text, safe
from .cell_text import is_left, text_in_cell
from .schema import Column
from .table import Table

HTML_ROWS = 50
"""Rows that a notebook draws."""


def column_array(table: Table, key: str) -> AnyArray:
    """Return a column as a numpy array: numbers as they are, texts and objects as an array of objects."""
    values = table.data[table.column(key).key]
    if isinstance(values, np.ndarray):
        return values
    array = np.empty(len(values), object)
    array[:] = values
    return array


def pandas_frame(table: Table) -> Any:
    """Return the table as a pandas DataFrame; `attrs` holds the title, the scope and each column's unit."""
    pandas = package("pandas", "to_pandas()")
    frame = pandas.DataFrame({column.key: column_array(table, column.key) for column in table.columns})
    frame.attrs.update(title=table.title, scope=table.scope, units=dict(table.units))
    return frame


def arrow_table(table: Table) -> Any:
    """Return the table as a pyarrow Table; the metadata of each field names its unit."""
    arrow = package("pyarrow", "to_arrow()")
    fields, arrays = [], []
    for column in table.columns:
        array = arrow.array(_plain_values(table, column), from_pandas=True)
        if arrow.types.is_null(array.type):
            array = array.cast(arrow.string())
        arrays.append(array)
        fields.append(arrow.field(column.key, array.type, metadata={"unit": column.unit}))
    metadata = {"title": table.title, "scope": table.scope}
    return arrow.Table.from_arrays(arrays, schema=arrow.schema(fields, metadata=metadata))


def polars_frame(table: Table) -> Any:
    """Return the table as a polars DataFrame."""
    polars = package("polars", "to_polars()")
    columns = {}
    for column in table.columns:
        values = _plain_values(table, column)
        kind = None if isinstance(values, np.ndarray) else polars.String
        columns[column.key] = polars.Series(column.key, values, dtype=kind)
    return polars.DataFrame(columns)


def html_table(table: Table, limit: int | None = HTML_ROWS, order: I64 | None = None) -> str:
    """Return the first rows, or all, as an HTML table as people read them, its title and scope above."""
    columns = table.drawn_columns
    rows = list(table.rows(order, limit))
    head = "".join(f"<th{_side(column)}>{escape(column.heading)}</th>" for column in columns)
    lines = []
    for row in rows:
        cells = (
            f"<td{_side(column)}{_whole_name(column, row)}>"
            f"{escape(safe(text_in_cell(table, column, row[column.key])))}</td>"
            for column in columns
        )
        lines.append(f"<tr>{''.join(cells)}</tr>")
    notes = [safe(note) for note in table.drawn_notes]
    if len(table) > len(rows):
        notes.insert(0, f"{len(table) - len(rows):,} more rows of {len(table):,}")
    below = "".join(f"<div>{escape(note)}</div>" for note in notes)
    title = escape(safe(f"{table.title}: {table.scope}"))
    return (
        f"<div><b>{title}</b><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table>{below}</div>"
    )


def package(name: str, purpose: str) -> Any:
    """Return an optional package; MissingPackageError says in one line how to get it."""
    try:
        return import_module(name)
    except ImportError as error:
        if (error.name or "").split(".")[0] != name.split(".")[0]:
            raise
        raise MissingPackageError(f"{purpose} needs {name}: pip install {name}", name) from None


def _side(column: Column) -> str:
    return f' style="text-align:{"left" if is_left(column) else "right"}"'


def _whole_name(column: Column, row: dict[str, Any]) -> str:
    """Return the full name as what the mouse shows over a name that is drawn short."""
    value = row[column.key]
    return f' title="{escape(safe(value))}"' if column.is_name and isinstance(value, str) else ""


def _plain_values(table: Table, column: Column) -> Any:
    """Return numbers as an array, anything else as a list of texts or None."""
    values = table.data[column.key]
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values
    if column.unit == "object":
        return [json_text(value) for value in values]
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values) and len(values):
        return np.array(values, np.int64)
    return [None if value is None else str(value) for value in values]
