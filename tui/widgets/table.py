"""A table of any length: only the visible rows are ever asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tracelane.core.base.arrays import I64, AnyArray
from tracelane.core.base.safe_text import safe
from tracelane.core.tables.frame.table_rows import sorted_rows

from ..commands.table import FocusedPart
from ..draw.glyphs import label_in
from ..widget_message import WidgetMessage

NAME_SHARE = 45
"""Percent of the width that the columns of no fixed width, which hold names, get at least."""
GAP = 2
"""Cells between two columns."""
SWATCH = "▌"
MARKS = 3
"""Cells for the marks that tell of columns which there is no room for."""
MIN_OPEN = 4
"""Cells that a column of no fixed width gets at least."""


@dataclass(frozen=True, eq=False)
class ColumnView:
    """A column: its title, its width in cells (0: what is left over), and what it sorts by.

    `text(row)` is asked for visible rows only; `keys()` for one sortable value per row where rows are sorted
    by the column, None where they cannot be.
    """

    title: str
    width: int
    text: Callable[[int], str]
    right: bool = False
    keys: Callable[[], AnyArray] | None = None
    least: int = (
        0  # cells at least, where there is room for few columns; 0: its width, or the table's own number
    )
    style: Callable[[int], str] | None = None  # the component class of a row's cell, "" for the row's own
    part: Callable[[int], float] | None = None  # how much of a row's cell a bar behind its text takes, 0..1
    swatch: Callable[[int], Style | None] | None = None  # the colour that stands before a row's text
    chief: int = 0  # its place among those that stay where there is room for few, from 1 on; 0: as it stands


class VirtualTable(ScrollView, can_focus=True):
    """Rows of text with a cursor; a click on a heading or ← → sorts, numbers greatest first; Space turns."""

    part: ClassVar[FocusedPart] = "table"
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "table--heading",
        "table--cursor",
        "table--row",
        "table--more",
        "table--less",
        "table--title",
        "table--bar",
    }
    DEFAULT_CSS = """
    VirtualTable {
        height: 1fr;
        scrollbar-size-vertical: 1;
        & > .table--heading { color: $text-muted; text-style: bold; }
        & > .table--cursor { background: $primary 30%; }
        & > .table--more { color: $text-warning; }
        & > .table--less { color: $text-success; }
        & > .table--bar { background: $primary 35%; }
        & > .table--title { color: $text-accent; text-style: bold; }
        &:focus > .table--cursor { background: $primary; color: $text; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "move(-2147483648)", show=False),
        Binding("end", "move(2147483648)", show=False),
        Binding("enter", "choose", show=False),
        Binding("left", "sort_beside(-1)", show=False),
        Binding("right", "sort_beside(1)", show=False),
        Binding("space", "turn_round", show=False),
    ]

    cursor: reactive[int] = reactive(0)
    """Place of the cursor among the rows as sorted."""

    @dataclass
    class RowChosen(WidgetMessage):
        """Somebody pressed Enter on a row, or clicked the row under the cursor."""

        table: VirtualTable
        row: int  # as handed in, whatever the sorting
        listing: int  # which of the lists that the table has shown it is a row of

        @property
        def about(self) -> str:
            return self.table.id or ""

        @property
        def is_current(self) -> bool:
            """Whether the table still shows that list: keys in one read may have replaced it."""
            return self.listing == self.table.listing

        @property
        def control(self) -> VirtualTable:
            return self.table

    def __init__(
        self,
        *,
        id: str | None = None,
        classes: str | None = None,
        empty: str = "nothing here",
        least: int = MIN_OPEN,
    ) -> None:
        """Make an empty table; `empty` is shown instead of rows; open columns get `least` cells or more."""
        super().__init__(id=id, classes=classes)
        self._columns: Sequence[ColumnView] = ()
        self._order: I64 = np.zeros(0, dtype=np.int64)
        self._sorted_by: tuple[int, bool] | None = None
        self._empty = empty
        self.is_counting = False
        """Whether rows may still come: until then nothing is said of there being none."""
        self._least = least
        self.listing = 0
        """Counts the lists that were shown."""

    @property
    def row_count(self) -> int:
        return len(self._order)

    @property
    def order(self) -> I64:
        """The rows as they stand, by the numbers that they were handed in with."""
        return self._order

    @property
    def row(self) -> int | None:
        """The row under the cursor as handed in, None where there are none."""
        return int(self._order[self.cursor]) if len(self._order) else None

    def show(self, columns: Sequence[ColumnView], rows: int) -> None:
        """Show other rows, in the order given, cursor on the first."""
        self.listing += 1
        self._columns = columns
        self._order = np.arange(rows, dtype=np.int64)
        self._sorted_by = None
        self.cursor = 0
        self.virtual_size = Size(0, rows + 1)
        self.scroll_to(0, 0, animate=False, immediate=True)
        self.refresh()

    def sort(self, column: int, descending: bool = False) -> None:
        """Sort by a column; rows with equal keys keep their order."""
        keys = self._columns[column].keys
        if keys is None:
            return
        row = self.row
        self._order = order = sorted_rows(keys(), descending)
        self._sorted_by = (column, descending)
        if row is not None:
            self.cursor = int(np.flatnonzero(order == row)[0])
        self.refresh()

    @property
    def sorted_by(self) -> tuple[int, bool] | None:
        return self._sorted_by

    # -- watch ----------------------------------------------------------------------------------------------

    def validate_cursor(self, cursor: int) -> int:
        return max(0, min(cursor, len(self._order) - 1))

    def watch_cursor(self, cursor: int) -> None:
        # The heading takes the first line, whatever the scrolling, so a row stands one line lower.
        self.scroll_to_region(Region(0, cursor, 1, 2), animate=False, immediate=True)
        self.refresh()

    # -- drawing --------------------------------------------------------------------------------------------

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    def render_line(self, y: int) -> Strip:
        width = self._width
        if y == 0:
            style = self.get_component_rich_style("table--heading")
            return self._strip(self._heading, width, style, self._more(width))
        position = y - 1 + self.scroll_offset.y
        if position >= len(self._order):
            is_known = self.listing > 0 and not self.is_counting
            text = self._empty if position == 0 and is_known else ""
            return Strip([Segment(text, self.rich_style)]).adjust_cell_length(width, self.rich_style)
        name = "table--cursor" if position == self.cursor else "table--row"
        row = int(self._order[position])
        return self._strip(
            lambda number: safe(self._columns[number].text(row)),
            width,
            self.get_component_rich_style(name),
            style_of=None if position == self.cursor else lambda number: self._style_of(number, row),
            row=row,
        )

    def _style_of(self, number: int, row: int) -> Style | None:
        style = self._columns[number].style
        name = "" if style is None else style(row)
        return self.get_component_rich_style(name) if name else None

    def _heading(self, number: int) -> str:
        title = self._columns[number].title
        if self._sorted_by and self._sorted_by[0] == number:
            return title + (" ▼" if self._sorted_by[1] else " ▲")
        return title

    def _placed(self, width: int) -> list[tuple[int, int]]:
        """Return (column, cells) of those that are drawn: all, or the chief ones and as many others as there
        is room for, or where none is chief the first and those around the one sorted by.
        """
        columns = self._columns
        fixed = sum(column.width for column in columns) + GAP * (len(columns) - 1)
        open_columns = sum(not column.width for column in columns)
        left = (width - fixed) // max(1, open_columns)
        named = width * NAME_SHARE // 100 // max(1, open_columns)
        least = [column.width or max(column.least or self._least, named) for column in columns]
        if sum(least) + GAP * (len(columns) - 1) <= width:
            return [(at, column.width or max(least[at], left)) for at, column in enumerate(columns)]
        sorted_column = self._sorted_by[0] if self._sorted_by else 0
        for number, column in enumerate(columns):
            if column.width and column.least and number != sorted_column:
                least[number] = column.least  # without the room for the arrow of the sorting
        is_ranked = any(column.chief for column in columns)
        drawn = (self._chief_ones if is_ranked else self._from_the_first)(least, width - MARKS)
        room = width - MARKS - sum(least[number] + GAP for number in drawn) + GAP
        placed = [(number, max(0, min(width - MARKS, least[number]))) for number in drawn]
        # What is over goes to the first column that takes it.
        for position, (number, size) in enumerate(placed):
            if room > 0 and not columns[number].width:
                placed[position] = (number, size + room)
                break
        return placed

    def _chief_ones(self, least: Sequence[int], width: int) -> list[int]:
        """Return the columns that find room: the chief one, that sorted by, other chief ones, then the others
        from the first on.
        """
        numbers = range(len(least))
        ranked = sorted(numbers, key=lambda number: self._columns[number].chief or len(least) + 1)
        if self._sorted_by:
            ranked = list(dict.fromkeys((ranked[0], self._sorted_by[0], *ranked)))
        drawn, room = [ranked[0]], width - least[ranked[0]]
        for number in ranked[1:]:
            if least[number] + GAP <= room:
                drawn.append(number)
                room -= least[number] + GAP
            elif not self._columns[number].chief:
                break
        return sorted(drawn)

    def _from_the_first(self, least: Sequence[int], width: int) -> list[int]:
        """Return the first column, then as many whole ones as there is room for, from the second on or
        further right, so that the one sorted by is among them.
        """
        sorted_column = self._sorted_by[0] if self._sorted_by else 0
        skipped, room = 1, width - least[0]
        while (
            skipped < sorted_column and sum(size + GAP for size in least[skipped : sorted_column + 1]) > room
        ):
            skipped += 1
        drawn = [0]
        for number in range(skipped, len(least)):
            if room < least[number] + GAP:
                break
            room -= least[number] + GAP
            drawn.append(number)
        return drawn

    def _more(self, width: int) -> str:
        """Return what tells of columns that there is no room for: it stands at the heading's end."""
        drawn = [number for number, _ in self._placed(width)]
        before = drawn != list(range(len(drawn)))
        behind = bool(drawn) and drawn[-1] + 1 < len(self._columns)
        return ("‹" if before else "") + ("›" if behind else "")

    def _strip(
        self,
        text_of: Callable[[int], str],
        width: int,
        style: Style,
        end: str = "",
        style_of: Callable[[int], Style | None] | None = None,
        row: int | None = None,
    ) -> Strip:
        line = Text(no_wrap=True, end="", style=style)
        for number, size in self._placed(width):
            column = self._columns[number]
            swatch = None if row is None or column.swatch is None else column.swatch(row)
            lead = SWATCH if column.swatch is not None and row is not None else ""
            text = text_of(number).replace("\n", " ")
            cell = Text(text if column.right else label_in(text, size - len(lead)), no_wrap=True, end="")
            cell.truncate(size - len(lead), overflow="ellipsis")
            blank = " " * (size - len(lead) - cell.cell_len)
            line.append(" " * GAP if number else "")
            if lead:
                line.append(lead if swatch is not None else " ", swatch)
            begin = len(line.plain)
            line.append(
                blank + cell.plain if column.right else cell.plain + blank,
                None if style_of is None else style_of(number),
            )
            if row is not None and style_of is not None and column.part is not None:  # not under the cursor
                cells = round(min(1.0, max(0.0, column.part(row))) * size)
                line.stylize(
                    Style(bgcolor=self.get_component_rich_style("table--bar").bgcolor), begin, begin + cells
                )
        line.truncate(max(0, width - len(end)), pad=bool(end))
        line.append(end)
        if not line.spans:
            return Strip([Segment(line.plain, style)]).adjust_cell_length(width, style)
        return Strip(line.render(self.app.console)).adjust_cell_length(width, style)

    # -- actions --------------------------------------------------------------------------------------------

    def action_move(self, by: int) -> None:
        self.cursor += by

    def action_page(self, by: int) -> None:
        self.cursor += by * max(1, self.size.height - 2)

    def action_sort_beside(self, by: int) -> None:
        """Sort by the next column (+1) or the one before (-1) that can be sorted, the greatest first."""
        now = self._sorted_by[0] if self._sorted_by else -1 if by > 0 else len(self._columns)
        for column in range(now + by, len(self._columns) if by > 0 else -1, by):
            if self._columns[column].keys is not None:
                self.sort(column, self._columns[column].right)
                return

    def action_turn_round(self) -> None:
        if self._sorted_by is not None:
            self.sort(self._sorted_by[0], not self._sorted_by[1])

    def action_choose(self) -> None:
        if (row := self.row) is not None:
            self.post_message(self.RowChosen(self, row, self.listing))

    def on_click(self, event: events.Click) -> None:
        if event.y == 0:
            self._sort_at(event.x)
            return
        position = event.y - 1 + self.scroll_offset.y
        if position >= len(self._order):
            return
        if position == self.cursor:
            self.action_choose()
        self.cursor = position

    def _sort_at(self, x: int) -> None:
        left = 0
        for number, size in self._placed(self._width):
            if left <= x < left + size + GAP:
                now = self._sorted_by
                again = now is not None and now[0] == number
                self.sort(number, not now[1] if now is not None and again else self._columns[number].right)
            left += size + GAP
