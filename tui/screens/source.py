"""A source file, to be read only, at the line that a trace names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from tracelane.core.base.safe_text import safe

from ..widgets.table import ColumnView, VirtualTable
from .answer import AnswerScreen

TAB = 4
NUMBER_CELLS = 6


class SourceScreen(AnswerScreen[None]):
    """Shows the lines of a file in the panel's place, the cursor on the one named."""

    DEFAULT_CSS = """
    SourceScreen > Vertical {
        width: 100%; height: 60%; max-height: 16; border: round $primary; background: $surface; padding: 0 1;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,V", "dismiss", "Close", show=False)]

    def __init__(self, path: Path, lines: Sequence[str], line: int) -> None:
        """Show these lines of a file, the cursor on a line counted from 1."""
        super().__init__()
        self._path = path
        self._lines = lines
        self._line = line

    def compose(self) -> ComposeResult:
        """Make the frame and the lines."""
        with Vertical() as frame:
            frame.border_title = safe(f"{self._path}:{self._line}").replace("[", r"\[")
            frame.border_subtitle = "Esc closes"
            yield VirtualTable(empty="an empty file")

    def on_mount(self) -> None:
        """Fill the lines in and go to the one named."""
        columns = [
            ColumnView("Line", NUMBER_CELLS, lambda row: str(row + 1), right=True),
            ColumnView("", 0, lambda row: self._lines[row].expandtabs(TAB)),
        ]
        for table in self.query(VirtualTable):
            table.show(columns, len(self._lines))
        self.call_after_refresh(self._go)

    def _go(self) -> None:
        for table in self.query(VirtualTable):
            table.cursor = len(self._lines) - 1
            # From below: some lines before it are seen too.
            table.cursor = max(0, self._line - 1 - table.size.height // 3)
            table.cursor = self._line - 1
            table.focus()
