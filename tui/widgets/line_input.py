"""A line to type in that shows what is pasted into it harmlessly."""

from __future__ import annotations

from textual.widgets import Input

from tracelane.core.base.safe_text import safe


class LineInput(Input):
    """An input in which characters that could act on the terminal become visible marks."""

    def insert(self, text: str, index: int) -> None:
        """Insert a text at a place."""
        super().insert(safe(text), index)

    def replace(self, text: str, start: int, end: int) -> None:
        """Replace what stands between two places."""
        super().replace(safe(text), start, end)

    def validate_value(self, value: str) -> str:
        """Clean what is set as a whole, such as a value that is proposed."""
        return safe(value)
