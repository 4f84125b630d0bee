"""What has time from left to right, where a drag takes a range: ruler, minimap and critical path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual import events
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from tracelane.core.export.marks import Mark
from tracelane.core.query.hits import Hits
from tracelane.core.tables.findings.leading import Leading
from tracelane.core.trace import Trace

from ..draw.overview import minimap_lines, overview_of
from ..draw.room import MAX_STRIP
from ..draw.ruler import RulerMarks, origin_of, ruler_lines
from ..draw.run_marks import lonely_work
from ..draw.states import DrawnStates
from ..draw.verdict import StateShares, VerdictFacts, part_text, verdict_lines
from ..session import ZOOM_STEP, Session
from ..steps import step_marks
from ..widget_message import WidgetMessage
from .look import look_of
from .messages import Panned, Scrolled, TimeDragged, TimePressed, ViewMoved, Zoomed

if TYPE_CHECKING:
    from ..draw.path_line import DrawnPath


WHEEL_PAN, WHEEL_LINES = 0.1, 3


class TimeArea(Widget):
    """A widget with time from left to right: dragging over it takes a range."""

    wheel_scrolls: ClassVar[bool] = False

    _trace: Trace | None = None
    _session: Session | None = None
    _drag_from: int | None = None
    _dragged = False

    def time_at(self, x: int) -> int:
        """Return the time in view, ns, at which a cell of the widget begins."""
        if self._session is None:
            return 0
        view = self._session.viewport.resized(look_of(self).area)
        return view.edge(min(view.width, self.cell_at(x)))

    def cell_at(self, x: int) -> int:
        """Return the cell of the time area, the first one beside the titles."""
        return max(0, x - look_of(self).titles)

    def has_time(self, x: int) -> bool:
        """Tell whether a drag may begin at a cell."""
        return True

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if event.button == 1 and self.has_time(event.x):
            self._drag_from, self._dragged = event.x, False
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Follow a drag; without one this costs nothing."""
        if self._drag_from is not None and (self._dragged or event.x != self._drag_from):
            self._dragged = True
            self._post_drag(event.x, done=False)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        if self._drag_from is not None:
            if self._dragged:
                self._post_drag(event.x, done=True)
            else:
                self.pressed(event.x)
        self._drag_from = None
        self.release_mouse()

    def pressed(self, x: int) -> None:
        """Answer a press without a drag."""

    def _post_drag(self, x: int, done: bool) -> None:
        if self._drag_from is not None:
            a, b = sorted((self._drag_from, x))
            self.post_message(TimeDragged(self.time_at(a), self.time_at(b + 1), done))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, -1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, 1)

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        event.stop()
        self.post_message(Panned(-WHEEL_PAN))

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        event.stop()
        self.post_message(Panned(WHEEL_PAN))

    def _wheel(self, event: events.MouseEvent, direction: int) -> None:
        """Zoom with ctrl, and without on strips; pan with shift; else scroll the lanes."""
        event.stop()
        if event.shift and not event.ctrl:
            self.post_message(Panned(direction * WHEEL_PAN))
        elif event.ctrl or not self.wheel_scrolls:
            self.post_message(Zoomed(ZOOM_STEP if direction < 0 else 1 / ZOOM_STEP, self.time_at(event.x)))
        else:
            self.post_message(Scrolled(direction * WHEEL_LINES))


class TimeStrip(TimeArea):
    """Lines above the lanes, drawn when what they show has changed; the wheel zooms here."""

    DEFAULT_CSS = "TimeStrip { height: 1; width: 1fr; }"

    _strips: Sequence[Strip] = ()
    _drawn_size = Size(0, 0)

    def drawn_lines(self, trace: Trace, session: Session) -> list[list[Segment]]:
        raise NotImplementedError

    def show(self, trace: Trace, session: Session) -> None:
        self._trace, self._session = trace, session
        self.draw_anew()

    def draw_anew(self) -> None:
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
        super().notify_style_update()
        self._strips = ()


class Ruler(TimeStrip):
    """Shows the time of a session, in as many lines as it is given; a click puts the cursor there."""

    _marks: Sequence[Mark] = ()
    _measured_from: Mark | None = None

    def show(
        self, trace: Trace, session: Session, marks: Sequence[Mark] = (), measured_from: Mark | None = None
    ) -> None:
        self._marks, self._measured_from = marks, measured_from
        super().show(trace, session)

    def drawn_lines(self, trace: Trace, session: Session) -> list[list[Segment]]:
        steps, origin = step_marks(trace, session.clocks, session.steps), origin_of(trace, session)
        return ruler_lines(
            session,
            origin,
            steps,
            look_of(self),
            self.size.height,
            RulerMarks(self._marks, self._measured_from, lonely_work(trace, session.clocks)),
        )

    def pressed(self, x: int) -> None:
        self.post_message(TimePressed(self.time_at(x)))


class Minimap(TimeStrip):
    """Shows how busy the trace is, or each of many steps, and which part is visible."""

    _hits: Hits | None = None
    _states: DrawnStates | None = None

    def mark(self, hits: Hits | None) -> None:
        self._hits = hits
        self.draw_anew()

    def know(self, states: DrawnStates | None) -> None:
        self._states = states
        self.draw_anew()

    def drawn_lines(self, trace: Trace, session: Session) -> list[list[Segment]]:
        return minimap_lines(trace, session, look_of(self), self._hits, self._states)[: self.size.height]

    def time_at(self, x: int) -> int:
        if self._trace is None or self._session is None:
            return 0
        edges = overview_of(self._trace, self._session, look_of(self).area).edges
        return edges[min(len(edges) - 1, self.cell_at(x))]

    def pressed(self, x: int) -> None:
        self.post_message(ViewMoved((self.time_at(x) + self.time_at(x + 1)) // 2))


class PathStrip(TimeStrip):
    """Shows the segments in view."""

    _path: DrawnPath | None = None

    @dataclass
    class Pressed(WidgetMessage):
        """A time on the path was clicked."""

        at: int

    def show(self, trace: Trace, session: Session, path: DrawnPath | None = None) -> None:
        self._path = path
        super().show(trace, session)

    def drawn_lines(self, trace: Trace, session: Session) -> list[list[Segment]]:
        if self._path is None:
            return []
        from ..draw.path_line import path_line  # most sessions draw no path

        return [path_line(self._path, session, look_of(self))]

    def pressed(self, x: int) -> None:
        self.post_message(self.Pressed(self.time_at(x)))


class Verdict(Widget):
    """Two lines: a bar of states where there are devices, and a sentence; what is being counted until both
    are known, nothing while files are read.
    """

    DEFAULT_CSS = """
    Verdict { height: 1; width: 1fr; }
    """

    class Pressed(WidgetMessage):
        """The finding was clicked."""

    @dataclass
    class PartHovered(WidgetMessage):
        """The mouse came over another part of the bar, of which this is said; empty: over none."""

        text: str

    _said = ""
    facts: VerdictFacts | None = None
    """What it says; None while files are read."""

    def count(self) -> None:
        """Say that it is being counted, what is not known already."""
        self._say(self.facts or VerdictFacts())

    def know(self, spent: StateShares | None) -> None:
        self._say((self.facts or VerdictFacts())._replace(spent=spent, is_counted=True))

    def judge(self, leading: Leading | None) -> None:
        self._say((self.facts or VerdictFacts())._replace(leading=leading, is_judged=True))

    def offer(self, text: str) -> None:
        """Say what a key does with the finding, if anything."""
        if self.facts is not None:
            self._say(self.facts._replace(offer=text))

    def _say(self, facts: VerdictFacts) -> None:
        if facts != self.facts:
            self.facts = facts
            self.refresh()

    def render_line(self, y: int) -> Strip:
        look, height = look_of(self), self.size.height
        if self.facts is None or y >= MAX_STRIP:
            return Strip.blank(self.size.width, look.palette.blank)
        return Strip(verdict_lines(self.facts, min(height, MAX_STRIP), look)[y], self.size.width)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        look, spent = look_of(self), None if self.facts is None else self.facts.spent
        is_bar = spent is not None and event.y < self.size.height - 1
        self._say_part(part_text(spent, event.x - look.titles, look.area) if spent and is_bar else "")

    def on_leave(self) -> None:
        self._say_part("")

    def _say_part(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self.post_message(self.PartHovered(text))

    def on_click(self, event: events.Click) -> None:
        if event.y == self.size.height - 1:
            self.post_message(self.Pressed())
