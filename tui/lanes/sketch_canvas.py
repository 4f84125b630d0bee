"""Minimap, ruler and lanes of a trace that is still being indexed, drawn as far as it was read."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tracelane.core.query.sketch import Sketch

from ..draw.lines import LineContext
from ..draw.sketch_lines import (
    SketchLine,
    overview_levels,
    overview_segments,
    ruler_segments,
    scroll_within,
    sketch_lines,
    sketch_segments,
)
from ..session import ZOOM_STEP, Session
from ..widgets.sized import follow_size
from .canvas import WHEEL_LINES, WHEEL_PAN
from .look import look_of
from .messages import Panned, Scrolled, TimePressed, Zoomed

HEAD = 2
"""Lines above the lanes: minimap and ruler."""


class SketchCanvas(Widget, can_focus=True):
    """Draws a sketch in a session; `show` is all it needs, what the mouse does comes back as messages."""

    DEFAULT_CSS = """
    SketchCanvas { height: 1fr; width: 1fr; }
    """

    @dataclass
    class Resized(Message):
        """The area for time and lanes has another size."""

        cells: int

    def __init__(self) -> None:
        super().__init__()
        self._sketch = Sketch.empty()
        self._session: Session | None = None
        self._heads: list[Strip] = []
        self._look: LineContext | None = None
        self._levels: list[int] = []  # the minimap's: they change with the picture, not with the view
        self.lines: tuple[SketchLine, ...] = ()

    @property
    def lane_lines(self) -> int:
        """Lines that lanes have."""
        return max(1, self.size.height - HEAD)

    def show(self, sketch: Sketch, session: Session) -> None:
        """Show a sketch in a session; costs nothing until the next frame."""
        if sketch is not self._sketch:
            self.lines, self._levels = sketch_lines(sketch), []
        self._sketch, self._session = sketch, session
        self._prepare()
        self.refresh()

    def _prepare(self) -> None:
        self._heads = []
        self._look = look_of(self)

    def render_line(self, y: int) -> Strip:
        session, look, width = self._session, self._look, self.size.width
        if session is None or look is None or not self.lines:
            return Strip.blank(width, self.rich_style)
        if y < HEAD:
            if not self._heads:
                if len(self._levels) != look.area:
                    self._levels = overview_levels(self._sketch, look.area)
                overview = overview_segments(self._sketch, self._levels, session, look)
                self._heads = [
                    Strip(overview, width),
                    Strip(ruler_segments(self._sketch, session, look), width),
                ]
            return self._heads[y]
        number = scroll_within(self.lines, session.scroll, self.lane_lines) + y - HEAD
        line = self.lines[number] if number < len(self.lines) else None
        return Strip(sketch_segments(line, self._sketch, session, look), width)

    def on_mount(self) -> None:
        """Follow the size."""
        follow_size(self, self._fit)

    def _fit(self) -> None:
        """Tell how much time fits, and draw anew."""
        self._prepare()
        self.post_message(self.Resized(look_of(self).area))

    def notify_style_update(self) -> None:
        """Draw in the new theme's colours."""
        super().notify_style_update()
        self._prepare()

    # -- mouse ----------------------------------------------------------------------------------------------

    def _time(self, x: int) -> int:
        look = look_of(self)
        if self._session is None:
            return 0
        view = self._session.viewport.resized(look.area)
        return view.edge(min(view.width, max(0, x - look.titles)))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor under the mouse."""
        if event.x >= look_of(self).titles:
            self.post_message(TimePressed(self._time(event.x)))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll the lanes up; with shift pan left, with ctrl or over the ruler zoom in."""
        self._wheel(event, -1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll the lanes down; with shift pan right, with ctrl or over the ruler zoom out."""
        self._wheel(event, 1)

    def _wheel(self, event: events.MouseEvent, direction: int) -> None:
        event.stop()
        if event.ctrl or event.y < HEAD:
            self.post_message(Zoomed(ZOOM_STEP if direction < 0 else 1 / ZOOM_STEP, self._time(event.x)))
        elif event.shift:
            self.post_message(Panned(direction * WHEEL_PAN))
        else:
            self.post_message(Scrolled(direction * WHEEL_LINES))
