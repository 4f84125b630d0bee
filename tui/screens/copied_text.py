"""Text that was copied, shown as well: not every terminal lets a program reach the clipboard."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from tracelane.core.base.safe_text import safe

from .answer import AnswerScreen

LONGEST = 200_000
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
        """Make the frame."""
        lines = [safe(line) for line in self._text[:LONGEST].split("\n")]
        if len(self._text) > LONGEST:
            lines.append(f"… {len(self._text) - LONGEST:,} more characters were copied but are not shown")
        with VerticalScroll() as frame:
            frame.border_title = self._heading
            frame.border_subtitle = "Esc closes"
            yield Static(Text("\n".join(lines)))
