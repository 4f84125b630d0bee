"""The ruler above the lanes: ticks, steps, range, cursor."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from textual import events

from tracelane.core.export.marks import Mark
from tracelane.core.trace import Trace

from ..draw.ruler import origin_of, ruler_lines
from ..session import Session
from ..steps import step_marks
from .look import look_of
from .messages import TimePressed
from .time_area import TimeStrip


class Ruler(TimeStrip):
    """Shows the time of a session, in as many lines as it is given; a click puts the cursor there."""

    DEFAULT_CSS = """
    Ruler { height: 1; width: 1fr; }
    """

    _marks: Sequence[Mark] = ()
    _measured_from: Mark | None = None

    def show(
        self,
        trace: Trace,
        session: Session,
        marks: Sequence[Mark] = (),
        measured_from: Mark | None = None,
    ) -> None:
        """Show the time of a session, its marks, how far the cursor is from one."""
        self._trace, self._session, self._marks = trace, session, marks
        self._measured_from = measured_from
        self.draw_anew()

    def drawn_lines(self, trace: Trace, session: Session) -> list[list[Segment]]:
        """Return ticks, and above them steps where there are two lines."""
        steps, origin = step_marks(trace, session.clocks, session.steps), origin_of(trace, session)
        height = self.size.height
        return ruler_lines(session, origin, steps, look_of(self), height, self._marks, self._measured_from)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Put the cursor where a press without a drag was."""
        if self._drag_from is not None and not self._dragged:
            self.post_message(TimePressed(self.time_at(event.x)))
