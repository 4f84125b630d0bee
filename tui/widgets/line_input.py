"""A line to type in that shows what is pasted into it harmlessly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual import events
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.suggester import Suggester
from textual.widgets import Input

from tracelane.core.base.safe_text import safe

PASSED_ON: Final = frozenset({"ctrl+l", "ctrl+q", "ctrl+z"})
"""Keys that a line leaves to the App: redraw, quit, suspend. All others are its own."""


def completed_lines(line: str, words: Sequence[str]) -> list[str]:
    """Return what a line may become: words that begin with it, else the line with its last word completed."""
    whole = [word for word in words if word.startswith(line) and word != line]
    head, space, last = line.rpartition(" ")
    if whole or not last:
        return whole
    return [f"{head}{space}{word}" for word in words if word.startswith(last) and word != last]


class LineSuggester(Suggester):
    """Shows the first word that completes a line behind it, greyed."""

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__(case_sensitive=True)
        self._words = words

    async def get_suggestion(self, value: str) -> str | None:
        return next(iter(completed_lines(value, self._words)), None)


class LineInput(Input):
    """An input in which characters that could act on the terminal become visible marks; it takes every key.

    Its cursor does not blink: over a slow line nothing is to be sent while nothing happens.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete(1)", show=False),
        Binding("shift+tab", "complete(-1)", show=False),
    ]
    words: Sequence[str] = ()
    """What Tab completes."""
    _offers: Sequence[str] = ()  # what Tab goes through while nothing else is typed
    cursor_blink: reactive[bool] = reactive(False, init=False)

    async def on_key(self, event: events.Key) -> None:
        """Carry out a key of its own at once: found by its binding it would come after the letters that
        arrived together with it. What is no key of a line does nothing.
        """
        if event.is_printable or event.key in PASSED_ON:
            return
        event.stop()
        event.prevent_default()
        for binding in self._bindings.key_to_bindings.get(event.key, ())[:1]:
            await self.run_action(binding.action)

    def action_complete(self, by: int) -> None:
        """Put in what completes the line; again: the next one (1) or the one before (-1)."""
        if self.value not in self._offers:
            self._offers = [self.value, *completed_lines(self.value, self.words)]
        at = self._offers.index(self.value) + by
        self._put(self._offers[at % len(self._offers)])

    def _put(self, line: str) -> None:
        self.value = line
        self.cursor_position = len(line)

    def insert(self, text: str, index: int) -> None:
        super().insert(safe(text), index)

    def replace(self, text: str, start: int, end: int) -> None:
        """Replace what stands between two places."""
        super().replace(safe(text), start, end)

    def validate_value(self, value: str) -> str:
        return safe(value)
