"""The ruler above the lanes: ticks, steps, range, cursor; the wheel zooms here."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from tracelane.core.export.marks import Mark
from tracelane.core.trace import Trace

from ..draw.layout import Layout
from ..draw.ruler import Origin, origin_of, ruler_lines
from ..fitting import ruler_height
from ..session import ZOOM_STEP, Session, Viewport
from ..steps import StepMark, step_marks
from .look import look_of
from .messages import Panned, TimeDragged, TimePressed, Zoomed

WHEEL_PAN = 0.1


class Ruler(Widget):
    """Shows the time of a session; two lines where the trace has steps or a range is set, else one."""

    DEFAULT_CSS = """
    Ruler { height: auto; width: 1fr; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None, lines: int = 1) -> None:
        """Make an empty ruler of so many lines."""
        super().__init__(id=id, classes=classes)
        self._empty_lines = lines
        self._trace: Trace | None = None
        self._session: Session | None = None
        self._marks: Sequence[Mark] = ()
        self._measured_from: Mark | None = None
        self._strips: list[Strip] = []
        self._drawn_size = Size(0, 0)
        self._drag_from: int | None = None
        self._dragged = False

    def show(
        self,
        trace: Trace,
        session: Session,
        layout: Layout | None = None,
        marks: Sequence[Mark] = (),
        measured_from: Mark | None = None,
    ) -> None:
        """Show the time of a session, its marks, how far the cursor is from one; the layout is not used."""
        before = self._wanted_height()
        self._trace, self._session, self._marks = trace, session, marks
        self._measured_from = measured_from
        self._strips = []
        self.refresh(layout=self._wanted_height() != before)

    def _wanted_height(self) -> int:
        if self._trace is None or self._session is None:
            return self._empty_lines
        return ruler_height(self._trace, self._session, bool(self._marks))

    def _steps(self) -> Sequence[StepMark]:
        if self._trace is None or self._session is None:
            return ()
        return step_marks(self._trace, self._session.clocks, self._session.steps)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of lines."""
        return self._wanted_height()

    def render_line(self, y: int) -> Strip:
        if self._trace is None or self._session is None:
            return Strip.blank(self.size.width, self.rich_style)
        if not self._strips or self._drawn_size != self.size:
            self._drawn_size = self.size
            look, height = look_of(self), self.size.height
            lines = ruler_lines(
                self._session, self._origin(), self._steps(), look, height, self._marks, self._measured_from
            )
            self._strips = [Strip(line, self.size.width) for line in lines]
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width, self.rich_style)

    def _origin(self) -> Origin:
        if self._trace is None or self._session is None:
            return Origin(0)
        return origin_of(self._trace, self._session)

    def notify_style_update(self) -> None:
        """Draw in the new theme's colours."""
        super().notify_style_update()
        self._strips = []

    # -- mouse ----------------------------------------------------------------------------------------------

    def _time(self, x: int) -> int:
        look = look_of(self)
        if self._session is None:
            return 0
        view: Viewport = self._session.viewport.resized(look.area)
        return view.edge(min(view.width, max(0, x - look.titles)))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin a drag over time."""
        if event.button == 1:
            self._drag_from, self._dragged = event.x, False
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Follow a drag."""
        if self._drag_from is not None and (self._dragged or event.x != self._drag_from):
            self._dragged = True
            self._post_drag(event.x, done=False)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """End a drag; without one, a click puts the cursor there."""
        if self._drag_from is not None:
            if self._dragged:
                self._post_drag(event.x, done=True)
            else:
                self.post_message(TimePressed(self._time(event.x)))
        self._drag_from = None
        self.release_mouse()

    def _post_drag(self, x: int, done: bool) -> None:
        if self._drag_from is not None:
            a, b = sorted((self._drag_from, x))
            self.post_message(TimeDragged(self._time(a), self._time(b + 1), done))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Zoom in about the mouse; with shift pan left."""
        event.stop()
        self.post_message(Panned(-WHEEL_PAN) if event.shift else Zoomed(ZOOM_STEP, self._time(event.x)))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Zoom out about the mouse; with shift pan right."""
        event.stop()
        self.post_message(Panned(WHEEL_PAN) if event.shift else Zoomed(1 / ZOOM_STEP, self._time(event.x)))
