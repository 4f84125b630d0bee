"""A line to type in that shows what is pasted into it harmlessly."""

from __future__ import annotations

from textual import events
from textual.reactive import reactive
from textual.widgets import Input

from tracelane.core.base.safe_text import safe


class LineInput(Input):
    """An input in which characters that could act on the terminal become visible marks.

    Its cursor does not blink: over a slow line nothing is to be sent while nothing happens.
    """

    cursor_blink: reactive[bool] = reactive(False, init=False)

    async def on_key(self, event: events.Key) -> None:
        """Carry out a key of its own at once: found by its binding it would come after the letters that
        arrived together with it.
        """
        bindings = self._bindings.key_to_bindings.get(event.key)
        if bindings and not event.is_printable:
            event.stop()
            event.prevent_default()
            await self.run_action(bindings[0].action)

    def insert(self, text: str, index: int) -> None:
        super().insert(safe(text), index)

    def replace(self, text: str, start: int, end: int) -> None:
        """Replace what stands between two places."""
        super().replace(safe(text), start, end)

    def validate_value(self, value: str) -> str:
        """Clean what is set as a whole, such as a value that is proposed."""
        return safe(value)
