"""Text in a pane that scrolls by the arrows; and layout that is derived from a widget's size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.geometry import Size
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from ..commands.table import FocusedPart
from ..textual_inside import put_text
from ..widget_message import WidgetMessage


def follow_size(widget: Widget, fit: Callable[[], object]) -> None:
    """Call a function whenever a layout has given a mounted widget another size, at once where it has one.

    Textual's Resize and Show are no base for that. A widget that is mounted between two layouts is unknown to
    the compositor; when it is painted, and any widget asks for its own size, the compositor builds its map of
    all widgets anew. The next layout then finds the widget in the map, at the size it has: neither shown nor
    resized, it is told nothing until the terminal is resized. What every layout tells is that it took place.
    """
    fitted = Size(0, 0)

    def check(_: Screen[object] | None = None) -> None:
        nonlocal fitted
        if widget.outer_size and widget.outer_size != fitted:
            fitted = widget.outer_size
            widget.call_next(fit)

    widget.screen.screen_layout_refresh_signal.subscribe(widget, check, immediate=True)
    check()


class TextPane(VerticalScroll, can_focus=True):
    """Text that scrolls and is laid out anew when its width changes."""

    part: ClassVar[FocusedPart] = "text"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "turn(-1)", show=False),
        Binding("down", "turn(1)", show=False),
        Binding("pageup", "turn(-1, True)", show=False),
        Binding("pagedown", "turn(1, True)", show=False),
        Binding("home", "turn(-1000000)", show=False),
        Binding("end", "turn(1000000)", show=False),
        Binding("left,right,enter", "turn(0)", show=False),
    ]
    DEFAULT_CSS = """
    TextPane { height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; }
    TextPane > Static { width: 1fr; height: auto; }
    """

    @dataclass
    class Resized(WidgetMessage):
        """The pane has another width."""

        pane: TextPane

        @property
        def control(self) -> TextPane:
            return self.pane

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._cells = 0
        self._text = Text()
        self._has_body = False

    def compose(self) -> ComposeResult:
        yield Static()

    @property
    def text_width(self) -> int:
        return max(10, self.size.width - 3)

    def show(self, text: Text, *, top: bool = True) -> None:
        """Show a text, from its first line on unless told otherwise.

        Until the body is mounted the text is only kept: a layout may have measured the body already, and
        textual measures anew only what is mounted. A text of 30 lines would stay one line high.
        """
        self._text = text
        if not self._has_body:
            return
        for body in self.query(Static):  # while the App closes, the pane may have lost it already
            put_text(body, text)
        if top:
            self.scroll_to(0, 0, animate=False, immediate=True)

    def action_turn(self, by: int, pages: bool = False) -> None:
        """Scroll by lines or pages; where all is seen already, the key does not go on to the lanes."""
        lines = by * max(1, self.size.height - 1) if pages else by
        self.scroll_to(y=self.scroll_offset.y + lines, animate=False)

    def on_mount(self) -> None:
        self._has_body = True
        put_text(self.query_one(Static), self._text)
        follow_size(self, self._fit)

    def _fit(self) -> None:
        if self.outer_size.width != self._cells:
            self._cells = self.outer_size.width
            self.post_message(self.Resized(self))
