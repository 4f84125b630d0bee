"""The minimap: the whole trace in a line; a click or drag moves the view there."""

from __future__ import annotations

from textual import events
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from tracelane.core.query.hits import Hits
from tracelane.core.trace import Trace

from ..draw.layout import Layout
from ..draw.overview import minimap_line, minimap_view
from ..draw.states import DrawnStates
from ..session import ZOOM_STEP, Session
from .look import look_of
from .messages import ViewMoved, Zoomed


class Minimap(Widget):
    """Shows how busy the trace is and which part is visible."""

    DEFAULT_CSS = """
    Minimap { height: 1; width: 1fr; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._trace: Trace | None = None
        self._session: Session | None = None
        self._strips: list[Strip] = []
        self._drawn_size = Size(0, 0)
        self._dragging = False
        self._hits: Hits | None = None
        self._states: DrawnStates | None = None

    def mark(self, hits: Hits | None) -> None:
        """Mark the cells in which a search found something."""
        self._hits = hits
        self._strips = []
        self.refresh()

    def know(self, states: DrawnStates | None) -> None:
        """Draw what devices did, as far as it is known."""
        self._states = states
        self._strips = []
        self.refresh()

    def show(self, trace: Trace, session: Session, layout: Layout | None = None) -> None:
        """Show a trace and the part of it that a session sees; the layout is not used."""
        self._trace, self._session = trace, session
        self._strips = []
        self.refresh()

    def render_line(self, y: int) -> Strip:
        if self._trace is None or self._session is None:
            return Strip.blank(self.size.width, self.rich_style)
        if not self._strips or self._drawn_size != self.size:
            self._drawn_size = self.size
            line = minimap_line(self._trace, self._session, look_of(self), self._hits, self._states)
            self._strips = [Strip(line, self.size.width)]
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width, self.rich_style)

    def notify_style_update(self) -> None:
        """Draw in the new theme's colours."""
        super().notify_style_update()
        self._strips = []

    # -- mouse ----------------------------------------------------------------------------------------------

    def _time(self, x: int) -> int:
        look = look_of(self)
        if self._trace is None:
            return 0
        view = minimap_view(self._trace, look.area)
        cell = min(view.width - 1, max(0, x - look.titles))
        return (view.edge(cell) + view.edge(cell + 1)) // 2

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if event.button == 1:
            self._dragging = True
            self.capture_mouse()
            self.post_message(ViewMoved(self._time(event.x)))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Move the view along with a drag."""
        if self._dragging:
            self.post_message(ViewMoved(self._time(event.x)))

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """End a drag."""
        self._dragging = False
        self.release_mouse()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.post_message(Zoomed(ZOOM_STEP, self._time(event.x)))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.post_message(Zoomed(1 / ZOOM_STEP, self._time(event.x)))
