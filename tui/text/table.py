"""A table of an analysis as text for a terminal: columns as wide as they must be, names cut where need be."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

from tracelane.core.base.arrays import I64
from tracelane.core.base.safe_text import safe
from tracelane.core.export.formats import is_left, shown_in
from tracelane.core.tables.table import Column, Table

GAP = 2
LEAST = 12
"""Cells that a text column keeps at least."""
ELLIPSIS = "…"


def table_text(table: Table, width: int, order: I64 | None = None, limit: int | None = None) -> str:
    """Return title, scope, heading and rows as lines of at most `width` cells, and what is left out."""
    columns = table.drawn_columns
    rows = [
        [safe(shown_in(table, column, row[column.key])) for column in columns]
        for row in table.rows(order, limit)
    ]
    sizes = [
        max([cell_len(safe(column.heading)), *(cell_len(row[place]) for row in rows)])
        for place, column in enumerate(columns)
    ]
    sizes = _fitted(columns, sizes, width)
    lines = [safe(f"{table.title}: {table.scope}")]
    notes = [safe(note) for note in table.notes]
    if not rows:
        lines.append("nothing in it")
        return "\n".join([*lines, *notes])
    lines.append(_line([safe(column.heading) for column in columns], columns, sizes))
    lines.extend(_line(row, columns, sizes) for row in rows)
    if len(rows) < len(table):
        lines.append(f"{ELLIPSIS} {len(table) - len(rows):,} more of {len(table):,}")
    return "\n".join([*lines, *notes])


def _fitted(columns: tuple[Column, ...], sizes: list[int], width: int) -> list[int]:
    """Return the widths with the widest text columns narrowed until the line fits, none below LEAST."""
    sizes = list(sizes)
    over = sum(sizes) + GAP * (len(sizes) - 1) - width
    texts = [place for place, column in enumerate(columns) if is_left(column)]
    while over > 0 and texts:
        widest = max(texts, key=sizes.__getitem__)
        if sizes[widest] <= LEAST:
            break
        sizes[widest] -= 1
        over -= 1
    return sizes


def _line(cells: list[str], columns: tuple[Column, ...], sizes: list[int]) -> str:
    parts = []
    for text, column, size in zip(cells, columns, sizes):
        if cell_len(text) > size:
            text = set_cell_size(text, size - 1) + ELLIPSIS
        blank = " " * (size - cell_len(text))
        parts.append(text + blank if column.unit == "text" else blank + text)
    return (" " * GAP).join(parts).rstrip()
