"""What widgets tell the controllers."""

from __future__ import annotations

from textual.message import Message


class WidgetMessage(Message):
    """A message that controllers hear: by its class, and where that does not say all by what it is about."""

    @property
    def about(self) -> str:
        """The id of a table, or for what something was typed; empty where the class says all."""
        return ""

    @property
    def is_current(self) -> bool:
        """Whether it still holds; others are not heard."""
        return True
