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
NAME_SHARE = 0.45
"""Part of the width that the first text column gets before columns of numbers do."""
LEAST_COLUMNS = 4
"""So many columns stay in any case."""
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
    sizes, kept = _fitted(columns, sizes, width)
    left_out = len(columns) - len(kept)
    columns, sizes = tuple(columns[place] for place in kept), [sizes[place] for place in kept]
    rows = [[row[place] for place in kept] for row in rows]
    lines = [safe(f"{table.title}: {table.scope}")]
    notes = [safe(note) for note in table.notes]
    if left_out:
        notes.append(f"{left_out} more columns: in a wider terminal, or with --format csv")
    if not rows:
        lines.append("nothing in it")
        return "\n".join([*lines, *notes])
    lines.append(_line([safe(column.heading) for column in columns], columns, sizes))
    lines.extend(_line(row, columns, sizes) for row in rows)
    if len(rows) < len(table):
        lines.append(f"{ELLIPSIS} {len(table) - len(rows):,} more of {len(table):,}")
    return "\n".join([*lines, *notes])


def _fitted(columns: tuple[Column, ...], sizes: list[int], width: int) -> tuple[list[int], list[int]]:
    """Return widths that fit and the places of the columns that are drawn.

    The first LEAST_COLUMNS - 1 numbers matter most, then further texts, then further numbers in their order:
    what matters least gives way until the first text has what it needs or NAME_SHARE of the width. Then the
    widest text columns are narrowed, none below LEAST.
    """
    sizes, places = list(sizes), list(range(len(columns)))
    texts = [place for place in places if is_left(columns[place])]

    def over() -> int:
        return sum(sizes[place] for place in places) + GAP * (len(places) - 1) - width

    if texts:
        name = texts[0]
        spare = max(0, sizes[name] - max(LEAST, int(NAME_SHARE * width)))
        numbers = [place for place in places if place not in texts]
        first, others = numbers[: LEAST_COLUMNS - 1], numbers[LEAST_COLUMNS - 1 :]
        for place in reversed([*first, *texts[1:], *others]):
            if over() <= spare or len(places) <= LEAST_COLUMNS:
                break
            places.remove(place)
    texts = [place for place in texts if place in places]
    too_wide = over()
    while too_wide > 0 and texts:
        widest = max(texts, key=sizes.__getitem__)
        if sizes[widest] <= LEAST:
            break
        sizes[widest] -= 1
        too_wide -= 1
    return sizes, places


def _line(cells: list[str], columns: tuple[Column, ...], sizes: list[int]) -> str:
    parts = []
    for text, column, size in zip(cells, columns, sizes):
        if cell_len(text) > size:
            text = set_cell_size(text, size - 1) + ELLIPSIS
        blank = " " * (size - cell_len(text))
        parts.append(text + blank if column.unit == "text" else blank + text)
    return (" " * GAP).join(parts).rstrip()
