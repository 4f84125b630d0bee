"""A value of a table as a person reads it, in the unit of its column."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

from ..base.short_names import short_name
from ..base.units import format_bytes, format_moment, format_ns
from .schema import Column
from .table_rows import TableRows

CHIEF_NUMBERS = 3
"""Columns of numbers that matter more than any text but the name."""
SMALL = 0.01
"""Three decimals tell too little of smaller numbers."""


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
    match column.unit:
        case "id":
            return str(value)
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
