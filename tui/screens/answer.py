"""Screens on top of the lanes, answered once however fast keys come: a list to choose from, a copied text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from tracelane.core.base.safe_text import safe

from ..commands.table import command
from ..widgets.table import ColumnView, VirtualTable

T = TypeVar("T")


class AnswerScreen(ModalScreen[T]):
    """A screen that is answered once: keys that were pressed before it was gone answer nothing else.

    What is behind it keeps its colours: to dim it would send every cell of the screen twice. It covers the
    panel rather than the lanes, whose cells take most bytes when they are drawn again.

    Of the viewer's keys only that to draw anew works on it.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(",".join(command("redraw").keys), "app.redraw", show=False, id="redraw")
    ]

    DEFAULT_CSS = "AnswerScreen { align: center bottom; background: transparent; }"

    def dismiss(self, result: T | None = None) -> AwaitComplete:
        """Answer and go away; a screen that is not on top has been answered already.

        Textual would take away whatever is on top, or end the program where nothing is; its `is_current` is
        true of a screen behind another one too.
        """
        return super().dismiss(result) if self.app.screen is self else AwaitComplete()


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
        with Vertical() as frame:
            frame.border_title = self._heading
            frame.border_subtitle = f"{self._hint} · Esc closes"
            yield VirtualTable()

    @property
    def first_focus(self) -> Widget:
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


MAX_LENGTH = 200_000
"""Characters that are shown; all are copied."""


class CopiedText(AnswerScreen[None]):
    """Shows a text until a key closes it."""

    DEFAULT_CSS = """
    CopiedText > VerticalScroll {
        width: 90%; max-width: 140; height: auto; max-height: 60%;
        border: round $primary; background: $surface; padding: 0 1;
    }
    CopiedText Static { width: 1fr; height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter,y", "dismiss", "Close", show=False)]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._heading = title
        self._text = text

    def compose(self) -> ComposeResult:
        lines = [safe(line) for line in self._text[:MAX_LENGTH].split("\n")]
        if len(self._text) > MAX_LENGTH:
            lines.append(f"… {len(self._text) - MAX_LENGTH:,} more characters were copied but are not shown")
        with VerticalScroll() as frame:
            frame.border_title = self._heading
            frame.border_subtitle = "Esc closes"
            yield Static(Text("\n".join(lines)))
