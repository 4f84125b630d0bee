"""The critical path of a step, a line above the lanes; a click goes to its segment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.segment import Segment
from textual import events
from textual.message import Message

from tracelane.core.trace import Trace

from ..session import Session
from .look import look_of
from .time_area import TimeStrip

if TYPE_CHECKING:
    from ..draw.path_line import DrawnPath


class PathStrip(TimeStrip):
    """Shows the segments in view."""

    DEFAULT_CSS = """
    PathStrip { height: 1; width: 1fr; }
    """

    _path: DrawnPath | None = None

    @dataclass
    class Pressed(Message):
        """A time on the path was clicked."""

        at: int

    def show(self, trace: Trace, session: Session, path: DrawnPath | None) -> None:
        """Show a path as a session sees it."""
        self._trace, self._session, self._path = trace, session, path
        self.draw_anew()

    def drawn_lines(self, trace: Trace, session: Session) -> list[list[Segment]]:
        """Return the path's line."""
        if self._path is None:
            return []
        from ..draw.path_line import path_line  # most sessions draw no path

        return [path_line(self._path, session, look_of(self))]

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Go to the segment under a press without a drag."""
        if self._drag_from is not None and not self._dragged:
            self.post_message(self.Pressed(self.time_at(event.x)))
