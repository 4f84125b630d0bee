"""`tracelane` without a command, on a terminal: the traces that can be opened; typing filters them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from textual.app import App, ComposeResult
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Input

from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import format_bytes

from ..config import DARK_THEME, Config
from ..themes import THEMES
from ..widgets.table import ColumnView, VirtualTable
from .answer import PickScreen
from .help import FilterLine

UNITS = ((86_400, "d"), (3600, "h"), (60, "min"))


@dataclass(frozen=True)
class ListedTrace:
    """A file or folder that can be opened."""

    path: str
    size: int
    age_s: float
    ranks: int  # files in a folder, 0 for a file


class TraceListScreen(PickScreen):
    """Answers with the number of the trace chosen, or None."""

    DEFAULT_CSS = "TraceListScreen { align: center middle; }"
    longest = 20
    _seen: Sequence[int] | None = None  # the rows that the typed words leave; None: all

    def compose(self) -> ComposeResult:
        """Make the line and the list."""
        with Vertical() as frame:
            frame.border_title = self._heading
            frame.border_subtitle = f"type to filter · ↑↓ choose · {self._hint} · Esc closes"
            yield FilterLine(compact=True)
            yield VirtualTable(empty="no such trace: fewer letters?")

    @property
    def first_focus(self) -> Widget:
        """What takes the keys: the line, which leaves the arrows to the list."""
        return self.query_one(Input)

    def on_input_changed(self, event: Input.Changed) -> None:
        """List the traces in whose rows all words stand that are typed."""
        event.stop()
        words = event.value.lower().split()
        texts = [" ".join(column.text(row) for column in self._columns).lower() for row in range(self._rows)]
        self._seen = seen = [row for row, text in enumerate(texts) if all(word in text for word in words)]
        columns = [_of_rows(column, seen) for column in self._columns]
        self.query_one(VirtualTable).show(columns, len(seen))

    def action_move(self, by: int) -> None:
        """Choose the trace below or above."""
        self.query_one(VirtualTable).cursor += by

    def action_page(self, by: int) -> None:
        """Choose a trace a page further."""
        self.query_one(VirtualTable).action_page(by)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Answer with the trace under the cursor."""
        event.stop()
        self.query_one(VirtualTable).action_choose()

    def on_virtual_table_row_chosen(self, event: VirtualTable.RowChosen) -> None:
        event.stop()
        event.prevent_default()
        self.dismiss(event.row if self._seen is None else self._seen[event.row])


class TraceList(App[int | None]):
    """Ends with the number of the trace chosen, None for none."""

    ENABLE_COMMAND_PALETTE = False

    def __init__(self, traces: Sequence[ListedTrace], config: Config) -> None:
        """Offer some traces in the colours of the settings."""
        super().__init__()
        self._traces = traces
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = config.theme if config.theme in self.available_themes else DARK_THEME

    def on_mount(self) -> None:
        """Show the list."""
        traces = self._traces
        columns = [
            ColumnView("Trace", 0, lambda row: safe(traces[row].path)),
            ColumnView("Size", 10, lambda row: format_bytes(traces[row].size), right=True),
            ColumnView("Age", 8, lambda row: age_text(traces[row].age_s), right=True),
            ColumnView("Ranks", 6, lambda row: f"{traces[row].ranks or ''}", right=True),
        ]
        self.push_screen(TraceListScreen("Open a trace", columns, len(traces), hint="Enter opens"), self.exit)


def _of_rows(column: ColumnView, rows: Sequence[int]) -> ColumnView:
    return replace(column, text=lambda row: column.text(rows[row]))


def age_text(seconds: float) -> str:
    """Return an age in its largest unit: "3 h"; "now" below a minute."""
    size, unit = next(((size, unit) for size, unit in UNITS if seconds >= size), (0, ""))
    return f"{int(seconds // size)} {unit}" if size else "now"
