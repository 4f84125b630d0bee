"""The minimap: the whole trace in a line or two; a click moves the view there, a drag takes a range."""

from __future__ import annotations

from rich.segment import Segment
from textual import events

from tracelane.core.query.hits import Hits
from tracelane.core.trace import Trace

from ..draw.overview import minimap_lines, overview_of
from ..draw.states import DrawnStates
from ..session import Session
from .look import look_of
from .messages import ViewMoved
from .time_area import TimeStrip


class Minimap(TimeStrip):
    """Shows how busy the trace is, or each of many steps, and which part is visible."""

    DEFAULT_CSS = """
    Minimap { height: 1; width: 1fr; }
    """

    _hits: Hits | None = None
    _states: DrawnStates | None = None

    def mark(self, hits: Hits | None) -> None:
        """Mark the cells in which a search found something."""
        self._hits = hits
        self.draw_anew()

    def know(self, states: DrawnStates | None) -> None:
        """Draw what devices did, as far as it is known."""
        self._states = states
        self.draw_anew()

    def show(self, trace: Trace, session: Session) -> None:
        """Show a trace and the part of it that a session sees."""
        self._trace, self._session = trace, session
        self.draw_anew()

    def drawn_lines(self, trace: Trace, session: Session) -> list[list[Segment]]:
        """Return the lines that there is room for."""
        return minimap_lines(trace, session, look_of(self), self._hits, self._states)[: self.size.height]

    def time_at(self, x: int) -> int:
        """Return the time at which a cell begins."""
        if self._trace is None or self._session is None:
            return 0
        edges = overview_of(self._trace, self._session, look_of(self).area).edges
        return edges[min(len(edges) - 1, self.cell_at(x))]

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Move the view to where a press without a drag was."""
        if self._drag_from is not None and not self._dragged:
            self.post_message(ViewMoved((self.time_at(event.x) + self.time_at(event.x + 1)) // 2))
