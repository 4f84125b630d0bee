"""Layout that is derived from a widget's size."""

from __future__ import annotations

from collections.abc import Callable

from textual.geometry import Size
from textual.screen import Screen
from textual.widget import Widget


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
