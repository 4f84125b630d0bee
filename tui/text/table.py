"""A table of an analysis as text for a terminal, names cut where need be; a row of numbers as a plot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from tracelane.core.base.arrays import I64
from tracelane.core.base.safe_text import safe
from tracelane.core.tables.frame.frames import by_priority, is_left, text_in_cell
from tracelane.core.tables.frame.schema import Column
from tracelane.core.tables.frame.table import Table

GAP = 2
MIN = 12
"""The least cells of a text column."""
NAME_SHARE = 0.45
"""Part of the width that the first text column gets before columns of numbers do."""
MIN_COLUMNS = 4
"""This many columns are always drawn."""
ELLIPSIS = "…"
BAR = 8
"""Cells of the bar of a share of 100 %."""
EIGHTHS = " ▏▎▍▌▋▊▉█"
BOLD, DIM, CYAN, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[0m"


class TableStyle(NamedTuple):
    """For how many cells columns are chosen, whether text is cut to them, and whether there are colours."""

    width: int
    is_coloured: bool = False
    cuts: bool = True

    @property
    def plain(self) -> TableStyle:
        """The style without colours and bars."""
        return TableStyle(self.width, cuts=self.cuts)

    def painted(self, colour: str, text: str) -> str:
        return f"{colour}{text}{PLAIN}" if self.is_coloured and text else text


def table_text(
    table: Table,
    style: TableStyle,
    order: I64 | None = None,
    limit: int | None = None,
    *,
    sort: str = "",
    empty: str = "nothing in it",
) -> str:
    """Return title, scope, heading and rows as lines that fit the width, and what is left out.

    The column by which rows are sorted stays where others give way; `empty` stands for rows that are none.
    """
    columns = table.drawn_columns
    rows = [
        [safe(text_in_cell(table, column, row[column.key])) for column in columns]
        for row in table.rows(order, limit)
    ]
    sizes = [
        max([cell_len(safe(column.heading)), *(cell_len(row[position]) for row in rows)])
        for position, column in enumerate(columns)
    ]
    fitted, positions = _fitted(table, sizes, style.width, sort or table.read_by)
    sizes = fitted if style.cuts else sizes
    left_out = len(columns) - len(positions)
    columns, sizes = (
        tuple(columns[position] for position in positions),
        [sizes[position] for position in positions],
    )
    lines = [style.painted(BOLD, safe(f"{table.title}: {table.scope}"))]
    notes = [safe(note) for note in table.drawn_notes]
    if rows:
        heading = aligned_line([safe(column.heading) for column in columns], columns, sizes)
        lines.append(style.painted(BOLD, heading))
        texts = [aligned_line([row[position] for position in positions], columns, sizes) for row in rows]
        bars = _bars(table, columns, sizes, style, order, limit)
        width = sum(sizes) + GAP * (len(sizes) - 1)
        lines += [set_cell_size(text, width) + bar for text, bar in zip(texts, bars)] if bars else texts
        if left_out:
            which = "1 more column" if left_out == 1 else f"{left_out} more columns"
            notes.append(f"{which}: --columns all")
        if len(rows) < len(table):
            lines.append(f"{ELLIPSIS} {len(table) - len(rows):,} more of {len(table):,}")
    else:
        lines.append(safe(empty))
    for note in notes:
        parts = [note]
        if style.cuts and len(note) > style.width:  # cut at words
            parts = wrap(note, style.width, break_long_words=False, break_on_hyphens=False)
        lines += [style.painted(DIM, part) for part in parts]
    return "\n".join(lines)


def _bars(
    table: Table,
    columns: tuple[Column, ...],
    sizes: list[int],
    style: TableStyle,
    order: I64 | None,
    limit: int | None,
) -> list[str]:
    """Return the text after each row: the first share as a bar, where there are colours and room."""
    share = next((column.key for column in columns if column.unit == "share"), None)
    width = sum(sizes) + GAP * len(sizes) + BAR
    if not style.is_coloured or share is None or width > style.width:
        return []
    return [
        " " * GAP + style.painted(CYAN, _bar(row[share])) if row[share] is not None else ""
        for row in table.rows(order, limit)
    ]


def _bar(share: float) -> str:
    eighths = max(0, min(8 * BAR, round(share * 8 * BAR)))
    full, rest = divmod(eighths, 8)
    return "█" * full + (EIGHTHS[rest] if rest else "")


def _fitted(table: Table, sizes: list[int], width: int, sort: str) -> tuple[list[int], list[int]]:
    """Return widths that fit and the positions of the columns that are drawn.

    What matters least (`by_priority`) gives way until the first text has what it
    needs or NAME_SHARE of the width. Then the widest text columns are narrowed, none below MIN.
    """
    columns = table.drawn_columns
    sizes, positions = list(sizes), list(range(len(columns)))
    texts = [position for position in positions if is_left(columns[position])]

    def excess() -> int:
        return sum(sizes[position] for position in positions) + GAP * (len(positions) - 1) - width

    if texts:
        name = texts[0]
        spare = max(0, sizes[name] - max(MIN, int(NAME_SHARE * width)))
        for position in reversed(by_priority(table, sort)[1:]):
            if excess() <= spare or len(positions) <= MIN_COLUMNS:
                break
            positions.remove(position)
    texts = [position for position in texts if position in positions]
    too_wide = excess()
    while too_wide > 0 and texts:
        widest = max(texts, key=sizes.__getitem__)
        if sizes[widest] <= MIN:
            break
        sizes[widest] -= 1
        too_wide -= 1
    return sizes, positions


def aligned_line(cells: Sequence[str], columns: Sequence[Column], sizes: Sequence[int]) -> str:
    """Return cells of these sizes in a line, texts to the left; one that is too long is cut."""
    parts = []
    for text, column, size in zip(cells, columns, sizes):
        if cell_len(text) > size:
            text = set_cell_size(text, size - 1) + ELLIPSIS
        blank = " " * (size - cell_len(text))
        parts.append(text + blank if column.unit == "text" else blank + text)
    return (" " * GAP).join(parts).rstrip()


HEIGHT = 8
BLOCKS = " ▁▂▃▄▅▆▇█"
ASCII_BLOCKS = "    ::::#"
NO_VALUE = "·"
"""Stands on the axis where there is no value."""


def plot_text(
    values: Sequence[float | None], written: Callable[[float], str], width: int, ascii_only: bool = False
) -> str:
    """Return columns from the least value (an eighth of a line high) to the greatest (HEIGHT lines high).

    With more values than cells the last ones are drawn. "" where there is no value at all.
    """
    present = [value for value in values if value is not None]
    if not present:
        return ""
    low, high = min(present), max(present)
    labels = [written(high), written(low)]
    margin = max(map(cell_len, labels)) + 1
    room = max(1, width - margin - 1)
    drawn = list(values)[-room:]
    wide = max(1, min(4, room // max(1, len(drawn))))
    blocks = ASCII_BLOCKS if ascii_only else BLOCKS
    heights = [_height(value, low, high) for value in drawn]
    lines = []
    for line in range(HEIGHT - 1, -1, -1):
        label = labels[0] if line == HEIGHT - 1 else labels[1] if line == 0 else ""
        cells = "".join(_cell(height, line, blocks, ascii_only) * wide for height in heights)
        edge = "|" if ascii_only else "│"
        lines.append(f"{' ' * (margin - 1 - cell_len(label))}{label} {edge}{cells}".rstrip())
    return "\n".join(lines)


def _height(value: float | None, low: float, high: float) -> int | None:
    """Return how many eighths of a line a column is high; None for no value."""
    if value is None:
        return None
    full = 8 * HEIGHT
    return full // 2 if high <= low else 1 + round((value - low) / (high - low) * (full - 1))


def _cell(height: int | None, line: int, blocks: str, ascii_only: bool) -> str:
    if height is None:
        return ("." if ascii_only else NO_VALUE) if line == 0 else " "
    return blocks[max(0, min(8, height - 8 * line))]
