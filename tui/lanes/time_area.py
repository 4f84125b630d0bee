"""What the timeline's widgets have in common: a drag takes a range of time, strips are drawn once."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from textual import events
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from tracelane.core.trace import Trace

from ..session import ZOOM_STEP, Session
from .look import look_of
from .messages import Panned, TimeDragged, Zoomed

WHEEL_PAN = 0.1


class TimeArea(Widget):
    """A widget with time from left to right: dragging over it takes a range."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._drag_from: int | None = None
        self._dragged = False

    def time_at(self, x: int) -> int:
        """Return the time, ns, at which a cell of the widget begins."""
        raise NotImplementedError

    def has_time(self, x: int) -> bool:
        """Tell whether a drag may begin at a cell."""
        return True

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin a drag over time."""
        if event.button == 1 and self.has_time(event.x):
            self._drag_from, self._dragged = event.x, False
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Follow a drag; without one this costs nothing."""
        if self._drag_from is not None and (self._dragged or event.x != self._drag_from):
            self._dragged = True
            self._post_drag(event.x, done=False)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """End a drag."""
        if self._drag_from is not None and self._dragged:
            self._post_drag(event.x, done=True)
        self._drag_from = None
        self.release_mouse()

    def _post_drag(self, x: int, done: bool) -> None:
        if self._drag_from is not None:
            a, b = sorted((self._drag_from, x))
            self.post_message(TimeDragged(self.time_at(a), self.time_at(b + 1), done))


class TimeStrip(TimeArea):
    """Lines above the lanes, drawn when what they show has changed; the wheel zooms here."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._trace: Trace | None = None
        self._session: Session | None = None
        self._strips: Sequence[Strip] = ()
        self._drawn_size = Size(0, 0)

    def drawn_lines(self, trace: Trace, session: Session) -> list[list[Segment]]:
        """Return the lines as they are to be drawn."""
        raise NotImplementedError

    def draw_anew(self) -> None:
        """Have the lines drawn with the next frame."""
        self._strips = ()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        if self._trace is None or self._session is None:
            return Strip.blank(self.size.width, self.rich_style)
        if not self._strips or self._drawn_size != self.size:
            self._drawn_size = self.size
            lines = self.drawn_lines(self._trace, self._session)
            self._strips = [Strip(line, self.size.width) for line in lines]
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width, self.rich_style)

    def notify_style_update(self) -> None:
        """Draw in the new theme's colours."""
        super().notify_style_update()
        self._strips = ()

    def time_at(self, x: int) -> int:
        """Return the time in view at which a cell begins."""
        if self._session is None:
            return 0
        view = self._session.viewport.resized(look_of(self).area)
        return view.edge(min(view.width, self.cell_at(x)))

    def cell_at(self, x: int) -> int:
        """Return the cell of the time area, the first one beside the titles."""
        return max(0, x - look_of(self).titles)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Zoom in about the mouse; with shift pan left."""
        self._wheel(event, -1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Zoom out about the mouse; with shift pan right."""
        self._wheel(event, 1)

    def _wheel(self, event: events.MouseEvent, direction: int) -> None:
        event.stop()
        if event.shift:
            self.post_message(Panned(direction * WHEEL_PAN))
        else:
            self.post_message(Zoomed(ZOOM_STEP if direction < 0 else 1 / ZOOM_STEP, self.time_at(event.x)))
