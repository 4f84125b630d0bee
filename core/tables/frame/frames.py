"""A table's values as people read them, and the table in the shapes of other libraries: numpy, pandas, Arrow,
polars, and HTML for notebooks.

Times stay whole ns, texts strings, objects JSON text where a library has no column for them. The libraries
are optional: each is imported when its shape is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from html import escape
from importlib import import_module
from typing import Any

import numpy as np

from ...base.arrays import I64, AnyArray
from ...base.errors import MissingPackageError, UsageError
from ...base.installed import install_hint
from ...base.picture import Picture
from ...base.safe_text import json_text, safe
from ...base.short_names import short_name
from ...base.units import format_bytes, format_moment, format_ns
from .schema import Column, Unit
from .table_rows import TableRows
from .text_column import TextColumn

CHIEF_NUMBERS = 3
"""Columns of numbers that matter more than any text but the name."""
SMALL = 0.01
"""Three decimals tell too little of smaller numbers."""
TEXT_IN: Mapping[Unit, Callable[[Any], str]] = {
    "id": str,
    "ns": format_ns,
    "share": "{:.2%}".format,
    "bytes": format_bytes,
    "bytes/s": lambda value: format_bytes(value) + "/s",
    "count": "{:,}".format,
}


def is_left(column: Column) -> bool:
    """Tell whether values of a column stand at its left: text and what identifies."""
    return column.unit in ("text", "id")


def by_priority(table: TableRows, sort: str = "") -> list[int]:
    """Return the places of a table's drawn columns, those that people look for first at the beginning: the
    name, the one that rows are sorted by, the chief ones, then the first numbers, other texts, other numbers.
    """
    columns, chief = table.drawn_columns, table.chief
    texts = [at for at, column in enumerate(columns) if is_left(column)]
    numbers = [at for at, column in enumerate(columns) if not is_left(column)]
    order = [*texts[:1], *numbers[:CHIEF_NUMBERS], *texts[1:], *numbers[CHIEF_NUMBERS:]]
    ranks = {key: rank for rank, key in enumerate((sort, *chief), 1) if key}
    if texts:
        ranks = {columns[texts[0]].key: 0} | {
            key: rank for key, rank in ranks.items() if key != columns[texts[0]].key
        }
    return sorted(order, key=lambda at: ranks.get(columns[at].key, len(ranks) + 1))


def text_in_cell(table: TableRows, column: Column, value: Any) -> str:
    """Return a value of a table as a person reads it, of a name as much as tells it from the others."""
    if column.is_name and isinstance(value, str) and value:
        return table.short_forms[column.key].get(value) or short_name(value)
    if column.moment and isinstance(value, int | float):
        return format_moment(value, table.moment_digits[column.key])
    return text_in_unit(column, value)


def text_in_unit(column: Column, value: Any) -> str:
    """Return a value as a person reads it, in the column's unit; a change with its sign."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, Sized):
        return f"{len(value):,}"
    if column.change and value > 0:
        return "+" + _text(column, value)
    return _text(column, value)


def _text(column: Column, value: int | float) -> str:
    if column.unit in TEXT_IN:
        return TEXT_IN[column.unit](value)
    if isinstance(value, int):
        return f"{value:,}"
    if value and abs(value) < SMALL:
        return f"{value:.3g}"
    return f"{value:,.3f}".rstrip("0").rstrip(".")


HTML_ROWS = 50
"""Rows that a notebook draws."""
HTML_COLUMNS = (4, 7, 10)
"""How many columns a page shows on narrow, middling and wide screens."""
NO_BREAK = "white-space:nowrap"
SENTENCE = 40
"""Characters from which on a text that is no name breaks between its words."""
TEXT_ROWS = 20
"""Rows that `print` shows."""
WIDEST = 60
"""Characters of a cell that `print` shows."""
BAR_WIDTH, BAR_HEIGHT = 400, 17
"""Of a picture of bars, in pixels."""


def column_array(table: TableRows, key: str) -> AnyArray:
    """Return a column as a numpy array: numbers as they are, texts and objects as an array of objects."""
    values = table.data[table.column(key).key]
    if isinstance(values, np.ndarray):
        return values
    if isinstance(values, TextColumn):
        return values.objects
    array = np.empty(len(values), object)
    array[:] = values
    return array


def pandas_frame(table: TableRows) -> Any:
    """Return the table as a pandas DataFrame; `attrs` holds the title, the scope and each column's unit."""
    pandas, table = package("pandas", "to_pandas()"), table.with_origin
    frame = pandas.DataFrame({column.key: column_array(table, column.key) for column in table.columns})
    frame.attrs.update(title=table.title, scope=table.scope, units=dict(table.units))
    return frame


def arrow_table(table: TableRows) -> Any:
    """Return the table as a pyarrow Table; the metadata of each field names its unit."""
    arrow, table = package("pyarrow", "to_arrow()"), table.with_origin
    fields, arrays = [], []
    for column in table.columns:
        array = arrow.array(_plain_values(table, column), from_pandas=True)
        if arrow.types.is_null(array.type):
            array = array.cast(arrow.string())
        arrays.append(array)
        fields.append(arrow.field(column.key, array.type, metadata={"unit": column.unit}))
    metadata = {"title": table.title, "scope": table.scope}
    return arrow.Table.from_arrays(arrays, schema=arrow.schema(fields, metadata=metadata))


def polars_frame(table: TableRows) -> Any:
    """Return the table as a polars DataFrame."""
    polars, table = package("polars", "to_polars()"), table.with_origin
    columns = {}
    for column in table.columns:
        values = _plain_values(table, column)
        kind = None if column.moment or isinstance(values, np.ndarray) else polars.String
        columns[column.key] = polars.Series(column.key, values, dtype=kind)
    return polars.DataFrame(columns)


def html_table(table: TableRows, limit: int | None = HTML_ROWS, order: I64 | None = None) -> str:
    """Return the first rows, or all, as an HTML table as people read them, its title and scope above."""
    table = table.as_read
    columns, classes = table.drawn_columns, _classes(table)
    rows = list(table.rows(order, limit))
    head = "".join(
        f"<th{own}{_side(column)}>{escape(column.heading)}</th>" for column, own in zip(columns, classes)
    )
    lines = []
    for row in rows:
        texts = (escape(safe(text_in_cell(table, column, row[column.key]))) for column in columns)
        cells = (
            f"<td{own}{_side(column, text)}{_whole_name(column, row)}>{text}</td>"
            for column, own, text in zip(columns, classes, texts)
        )
        lines.append(f"<tr>{''.join(cells)}</tr>")
    notes = [safe(note) for note in table.drawn_notes]
    if len(table) > len(rows):
        notes.insert(0, f"{len(table) - len(rows):,} more rows of {len(table):,}")
    below = "".join(f"<div>{escape(note)}</div>" for note in notes)
    title = escape(safe(f"{table.title}: {table.scope}"))
    return (
        f'<div><b>{title}</b><div style="overflow-x:auto"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>{below}</div>"
    )


def text_table(table: TableRows, limit: int = TEXT_ROWS) -> str:
    """Return the first rows as aligned text, names short as people read them, notes below."""
    table = table.as_read
    columns = table.drawn_columns
    rows = [
        [safe(text_in_cell(table, column, row[column.key]))[:WIDEST] for column in columns]
        for row in table.rows(None, limit)
    ]
    heading = [safe(column.heading) for column in columns]
    sizes = [max(map(len, cells)) for cells in zip(heading, *rows)]
    lines = [
        "  ".join(
            text.ljust(size) if is_left(column) else text.rjust(size)
            for text, size, column in zip(cells, sizes, columns)
        ).rstrip()
        for cells in [heading, *rows]
    ]
    left = len(table) - len(rows)
    more = [f"… {left:,} more of {len(table):,}"] if left else []
    return "\n".join([safe(f"{table.title}: {table.scope}"), *lines, *more, *map(safe, table.drawn_notes)])


def bars_of(table: TableRows, key: str, limit: int) -> Picture:
    """Return the first rows as bars of a column of numbers; UsageError where it is none."""
    numbers = [column for column in table.drawn_columns if not is_left(column)]
    column = table.column(key) if key else next(iter(numbers), None)
    if column is None or is_left(column):
        raise UsageError(f"{key or table.name} has no numbers to draw")
    label = next((one for one in table.drawn_columns if is_left(one)), column)
    rows = list(table.rows(None, limit))
    most = max((abs(row[column.key] or 0) for row in rows), default=0) or 1
    lines = []
    for at, row in enumerate(rows):
        y, value = (at + 2) * BAR_HEIGHT, row[column.key] or 0
        name = escape(safe(text_in_cell(table, label, row[label.key]))[:40])
        text = escape(safe(text_in_cell(table, column, row[column.key])))
        wide = abs(value) / most * BAR_WIDTH
        lines.append(
            f'<text x="280" y="{y + 12}" text-anchor="end">{name}</text><rect x="290" y="{y}" '
            f'width="{wide:.1f}" height="{BAR_HEIGHT - 3}" fill="#4477aa"/><text x="{296 + wide:.1f}" '
            f'y="{y + 12}">{text}</text>'
        )
    title = escape(safe(f"{table.title}: {table.scope} · {column.heading}"))
    height = (len(rows) + 2) * BAR_HEIGHT
    return Picture(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{400 + BAR_WIDTH}" height="{height}" '
        f'font-family="sans-serif" font-size="12"><text x="4" y="14">{title}</text>{"".join(lines)}</svg>'
    )


def package(name: str, purpose: str) -> Any:
    """Return an optional package; MissingPackageError says in one line how to get it."""
    try:
        return import_module(name)
    except ImportError as error:
        if (error.name or "").split(".")[0] != name.split(".")[0]:
            raise
        raise MissingPackageError(f"{purpose} needs {name}: {install_hint(name)}", name) from None


def _classes(table: TableRows) -> list[str]:
    """Return the class of each column's cells: the less a column matters, the wider a page that shows it."""
    classes = [""] * len(table.drawn_columns)
    for rank, at in enumerate(by_priority(table, table.read_by)):
        level = sum(rank >= most for most in HTML_COLUMNS)
        classes[at] = f' class="{"abcd"[level]}"' if level else ""
    return classes


def _side(column: Column, text: str = "") -> str:
    """Return the style of a cell: only sentences break, long names are cut (whole on hover)."""
    if len(text) > SENTENCE and is_left(column) and not column.is_name:
        return ' style="text-align:left;min-width:24em"'
    if is_left(column):
        return f' style="text-align:left;{NO_BREAK};max-width:32em;overflow:hidden;text-overflow:ellipsis"'
    return f' style="text-align:right;{NO_BREAK}"'


def _whole_name(column: Column, row: dict[str, Any]) -> str:
    """Return the full name as what the mouse shows over a name that is drawn short."""
    value = row[column.key]
    return f' title="{escape(safe(value))}"' if column.is_name and isinstance(value, str) else ""


def _plain_values(table: TableRows, column: Column) -> Any:
    """Return numbers as an array, large moments as a list with None, all else as one of texts or None."""
    values = table.data[column.key]
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values
    if column.moment:
        return [None if time != time else time for time in values]
    if column.unit == "object":
        return [json_text(value) for value in values]
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values) and len(values):
        return np.array(values, np.int64)
    return [None if value is None else str(value) for value in values]
