"""A panel that shows a table of an analysis: one line on what it speaks of, then its rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widget import Widget

from tracelane.core.base.colours import key_of
from tracelane.core.export.formats import is_left, text_in_cell
from tracelane.core.tables.compare.compare import PRESENCE, VERDICT, WITHIN, delta_key
from tracelane.core.tables.frame.schema import Column as TableColumn
from tracelane.core.tables.frame.table import Table, Value
from tracelane.core.tables.registry import PANELS
from tracelane.core.trace import Trace

from ..draw.palette import Look, Palette
from ..keys import said
from ..widgets.bars import Bar
from ..widgets.table import ColumnView, VirtualTable

WIDTHS = {"ns": 12, "count": 10, "share": 8, "bytes": 10, "bytes/s": 12, "number": 12}
WIDE = ("name", "lane", "heat")
"""Columns that take what the others leave."""
COLOURED = ("name", "category", "op", "kernel")
"""Columns before whose values the colour of the row's slice stands."""
BAR_WIDTH = 12
"""Cells of a column with bars at least."""
MIN_NAME = 28
TEXT_WIDTH = 18
"""Cells of any other column of text at most."""
MEASURED = 1000
"""Rows whose text is measured for the width of a column of text."""
FEW = 200
"""So many rows have their numbers measured; in longer tables a column has at least what its unit may need."""
DURATION = re.compile(r"([+-]?[\d,]+)(?:\.(\d+))? (ns|µs|ms|s)")
ARROWS = ("  ", " ▲", " ▼")
"""Behind a change: none, more, less; -1 is the last."""
ABOUT = " ≈"
"""Behind a change that is noise, in place of these."""
MORE, LESS = "table--more", "table--less"


class TablePane(Vertical):
    """Scope line and table; keeps the sorting when other rows are shown."""

    DEFAULT_CSS = """
    TablePane { height: 1fr; padding: 0 1; }
    TablePane > Bar { color: $text-muted; }
    """

    nothing = "nothing found"
    """Stands in place of rows where there are none."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._says_scope = False  # whether the line speaks of what is shown
        self.shown_table: Table | None = None
        empty = PANELS[id][1].empty if id in PANELS else self.nothing
        self.table = VirtualTable(id=f"{id}-rows", empty=empty)
        """The rows."""

    @property
    def first_focus(self) -> Widget:
        return self.table

    def focus_after(self, focused: Widget) -> Widget | None:
        return None

    def compose(self) -> ComposeResult:
        yield Bar()
        yield self.table

    class RowsChanged(Message):
        """Other rows are shown, or none."""

    def say(self, *texts: str) -> None:
        """Show a line in place of rows: what is waited for, or what is to be done."""
        self._says_scope = False
        self.table.is_counting = True
        self.table.refresh()
        self._put(*texts)

    def say_alone(self, text: str) -> None:
        """Show a line and no rows: none are to come."""
        if self.shown_table is not None:
            self.shown_table = None
            self.table.show((), 0)
            self.post_message(self.RowsChanged())
        self.say(text)

    def _put(self, *texts: str) -> None:
        self.query_one(Bar).pieces = tuple(Text(said(self, text)) for text in texts if text)

    def show(self, table: Table, columns: list[ColumnView], sort: str) -> None:
        """Show a table, sorted by the column that the one before was, at first by `sort`, greatest first; one
        that is compared at first by how much that changed.
        """
        rows = self.table
        rows.is_counting = False
        order, before = rows.sorted_by, self.shown_table
        if PRESENCE in table.data and (before is None or PRESENCE not in before.data):
            changes = [column.key for column in shown_columns(table) if column.change]
            order, sort = None, delta_key(sort) if delta_key(sort) in changes else next(iter(changes), sort)
        rows.show(columns, len(table))
        keys = [column.key for column in shown_columns(table)]
        descending = True
        if order is not None and before is not None:
            key = shown_columns(before)[order[0]].key
            if key in keys:
                sort, descending = key, order[1]
        if sort in keys:
            rows.sort(keys.index(sort), descending)
        rows.cursor = 0
        self.shown_table = table
        self.post_message(self.RowsChanged())
        self.tell()

    def tell(self) -> None:
        """Say again what the table shown speaks of."""
        self._says_scope = True
        self.table.is_counting = False
        self.table.refresh()
        self._say_all()

    def on_descendant_focus(self) -> None:
        self._say_all()

    def on_descendant_blur(self) -> None:
        self._say_all()

    def _say_all(self) -> None:
        table = self.shown_table
        if table is None or not self._says_scope:
            return
        number = f"{len(table):,} row{'s' if len(table) != 1 else ''}"
        jump = f" · Enter: {table.jumps_to}" if table.positions is not None else ""
        keys = f"← → sort{jump}" if self.has_focus_within else "{other-pane}: arrows here"
        self._put(table.scope, number, keys, *table.drawn_notes)


def columns_of(table: Table, read_by: str = "") -> list[ColumnView]:
    """Return the table's columns as the widget draws and sorts them; what people read it by has bars."""
    read_by = read_by or table.read_by
    columns = shown_columns(table)
    chief = [key for key in table.chief if any(column.key == key for column in columns)]
    if any(column.change for column in columns):
        chief = []  # what changed stands beside what is held against it
    views = [_column(table, column, column.key in WIDE, read_by) for column in columns]
    return [
        replace(view, chief=chief.index(column.key) + 1 if column.key in chief else 0)
        for view, column in zip(views, columns)
    ]


def shown_columns(table: Table) -> list[TableColumn]:
    """Return the columns without those that say nothing: empty texts, zero bytes without a memory profile."""

    def says_nothing(column: TableColumn) -> bool:
        values = table.data[column.key]
        if column.unit == "text":
            return len(values) > 0 and not any(values)
        return column.unit in ("bytes", "bytes/s") and not np.any(np.nan_to_num(np.asarray(values)))

    return [column for column in table.drawn_columns if not says_nothing(column)]


def _column(table: Table, column: TableColumn, wide: bool, read_by: str) -> ColumnView:
    text = is_left(column)
    least = len(column.title)
    if text:
        values = table.data[column.key][:MEASURED]
        longest = max((len(text_in_cell(table, column, value)) for value in values), default=0)
        least = max(least, min(MIN_NAME if wide else TEXT_WIDTH, longest))
    else:
        rows = [*range(0, len(table), len(table) // FEW + 1), *range(len(table))[-1:]]
        written = (written_in(table, column, table.value(row, column.key)) for row in rows)
        least = max(least, *map(len, written), WIDTHS[column.unit] if len(table) > FEW else 0)
    part = _part(table, column, read_by)
    if part is not None:
        least = max(least, BAR_WIDTH)
    titled = len(column.title) + 2  # with the arrow of the sorting
    if column.change:
        least, titled = least + len(ARROWS[0]), titled + len(ARROWS[0])

    verdicts = table.data.get(VERDICT.key)

    def is_noise(row: int) -> bool:
        return verdicts is not None and verdicts[row] == WITHIN

    def cell_text(row: int) -> str:
        value = table.value(row, column.key)
        text = written_in(table, column, value)
        if not column.change:
            return text
        sign = _sign(value)
        return text + (ABOUT if sign and is_noise(row) else ARROWS[sign])

    def style(row: int) -> str:
        return "" if is_noise(row) else ("", MORE, LESS)[_sign(table.value(row, column.key))]

    return ColumnView(
        column.heading,
        0 if wide else max(least, titled),
        cell_text,
        right=not text,
        keys=partial(table.sort_keys, column),
        least=max(least, titled) if wide else least,
        style=style if column.change else None,
        part=part,
    )


def written_in(table: Table, column: TableColumn, value: Value) -> str:
    """Return a value as a cell shows it: below one another decimals and units of durations align."""
    text = text_in_cell(table, column, value)
    match = DURATION.fullmatch(text) if column.unit == "ns" else None
    digits = table.moment_digits.get(column.key, 3)
    if match is None:
        return text
    whole, fraction, unit = match[1], match[2], match[3]
    decimals = " " * (digits + 1) if unit == "ns" else f".{fraction or '':0<{digits}}"
    return f"{whole}{decimals} {unit:<2}"


def _part(table: Table, column: TableColumn, read_by: str) -> Callable[[int], float] | None:
    """Return how long the bar behind each row's value is: a share's own length, and of what the table is read
    by its part of the greatest; None for columns without bars.
    """
    if column.change or column.statistic:
        return None
    if column.unit == "share":
        return lambda row: _positive(table.value(row, column.key))
    if column.key != read_by or column.unit not in ("ns", "bytes", "count") or not len(table):
        return None
    greatest = float(np.fmax.reduce(np.asarray(table.data[column.key], np.float64), initial=0.0))
    return lambda row: _positive(table.value(row, column.key)) / greatest if greatest else 0.0


def _positive(value: Value) -> float:
    return float(value) if isinstance(value, int | float | np.number) and value > 0 else 0.0


def with_swatches(
    columns: list[ColumnView], table: Table, trace: Trace, palette: Callable[[], Palette]
) -> list[ColumnView]:
    """Return the columns with the colour that the lanes give a row's slice before its name."""
    keys = [column.key for column in shown_columns(table)]
    positions, sources = table.positions, table.sources
    number = next((at for at, key in enumerate(keys) if key in COLOURED), -1)
    if number < 0 or positions is None:
        return columns

    def swatch(row: int) -> Style | None:
        position, source = int(positions[row]), 0 if sources is None else int(sources[row])
        if not trace.has_slice(source, position):
            return None
        slices = trace.slices(source, [position])
        return palette().style(key_of(slices.categories[0], slices.names[0]), Look.BAR)

    return [replace(column, swatch=swatch) if at == number else column for at, column in enumerate(columns)]


def _sign(value: Value) -> int:
    """Return 1 for more, -1 for less, 0 for neither."""
    if not isinstance(value, int | float) or value != value:
        return 0
    return (value > 0) - (value < 0)
