"""A list to choose one thing from, over the lanes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widget import Widget

from ..widgets.table import ColumnView, VirtualTable
from .answer import AnswerScreen


class PickScreen(AnswerScreen[int | None]):
    """Answers with the number of the row chosen, or None."""

    DEFAULT_CSS = """
    PickScreen > Vertical {
        width: 90%; max-width: 120; height: auto; max-height: 90%;
        border: round $primary; background: $surface; padding: 0 1;
    }
    """
    longest: ClassVar[int] = 12
    """Rows shown at once: closing a list of 20 rows over lanes sends 5 KB."""
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss", "Close", show=False)]

    def __init__(self, title: str, columns: Sequence[ColumnView], rows: int, *, hint: str) -> None:
        """Offer rows under a title; `hint` says what Enter does."""
        super().__init__()
        self._heading = title
        self._columns = columns
        self._rows = rows
        self._hint = hint

    def compose(self) -> ComposeResult:
        """Make the list."""
        with Vertical() as frame:
            frame.border_title = self._heading
            frame.border_subtitle = f"{self._hint} · Esc closes"
            yield VirtualTable()

    @property
    def first_focus(self) -> Widget:
        """What takes the keys."""
        return self.query_one(VirtualTable)

    def on_mount(self) -> None:
        """Fill the list, which is gone already where an answer came first."""
        for table in self.query(VirtualTable):
            table.styles.height = min(self._rows, self.longest) + 1
            table.show(self._columns, self._rows)
            self.first_focus.focus()

    def on_virtual_table_row_chosen(self, event: VirtualTable.RowChosen) -> None:
        event.stop()
        self.dismiss(event.row)
