"""What has time from left to right, where a drag takes a range: ruler, minimap and critical path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from tracelane.core.export.marks import Mark
from tracelane.core.query.hits import Hits
from tracelane.core.tables.findings.leading import Leading
from tracelane.core.trace import Trace

from ..commands.table import FocusedPart
from ..draw.cells import LineCells
from ..draw.overview import cell_text, minimap_lines, overview_of
from ..draw.room import MAX_STRIP
from ..draw.ruler import RulerMarks, origin_of, ruler_lines
from ..draw.run_marks import lonely_work
from ..draw.states import DrawnStates
from ..draw.verdict import StatePart, StateShares, VerdictFacts, part_cells, part_text, verdict_lines
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


PICKED: Final = Style(reverse=True)
"""What the arrows have chosen in a strip that has them."""
PICKING: Final[tuple[Binding, ...]] = (
    Binding("left", "pick(-1)", show=False),
    Binding("right", "pick(1)", show=False),
    Binding("enter", "choose", show=False),
)
"""The keys of a strip that has the arrows."""


class Minimap(TimeStrip, can_focus=True):
    """Shows how busy the trace is, or each of many steps, and which part is visible. A cell that is clicked,
    or chosen by the arrows and Enter, becomes the middle of the view.
    """

    FOCUS_ON_CLICK = False
    part: ClassVar[FocusedPart] = "strip"
    BINDINGS: ClassVar[list[BindingType]] = [*PICKING]

    @dataclass
    class CellHovered(WidgetMessage):
        """The mouse or the arrows came to another cell, of which this is said; empty: to none."""

        text: str

    _hits: Hits | None = None
    _states: DrawnStates | None = None
    _picked: int | None = None
    _said = ""

    def mark(self, hits: Hits | None) -> None:
        self._hits = hits
        self.draw_anew()

    def know(self, states: DrawnStates | None) -> None:
        self._states = states
        self.draw_anew()

    def drawn_lines(self, trace: Trace, session: Session) -> list[list[Segment]]:
        look = look_of(self)
        lines = minimap_lines(trace, session, look, self._hits, self._states)[: self.size.height]
        if self._picked is not None and lines:
            cells = LineCells(lines[0], look.palette.blank)
            cells.add(look.titles + self._picked, look.titles + self._picked + 1, PICKED)
            lines[0] = cells.segments()
        return lines

    def time_at(self, x: int) -> int:
        edges = self._edges
        return edges[min(len(edges) - 1, self.cell_at(x))]

    @property
    def _edges(self) -> tuple[int, ...]:
        if self._trace is None or self._session is None:
            return (0, 0)
        return overview_of(self._trace, self._session, look_of(self).area).edges

    def pressed(self, x: int) -> None:
        self._go(self.cell_at(x))

    def _go(self, cell: int) -> None:
        edges = self._edges
        at, end = (edges[min(len(edges) - 1, one)] for one in (cell, cell + 1))
        self.post_message(ViewMoved((at + end) // 2))

    # -- keys and mouse -------------------------------------------------------------------------------------

    def on_focus(self) -> None:
        if self._trace is not None and self._session is not None:
            view = self._session.viewport
            self._pick(
                overview_of(self._trace, self._session, look_of(self).area).cell((view.start + view.end) // 2)
            )

    def on_blur(self) -> None:
        self._picked = None
        self._say("")
        self.draw_anew()

    def action_pick(self, by: int) -> None:
        self._pick((self._picked or 0) + by)

    def _pick(self, cell: int) -> None:
        self._picked = max(0, min(cell, len(self._edges) - 2))
        self._say(self._text_of(self._picked))
        self.draw_anew()

    def action_choose(self) -> None:
        if self._picked is not None:
            self._go(self._picked)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        super().on_mouse_move(event)
        cell = event.x - look_of(self).titles
        self._say(self._text_of(cell) if 0 <= cell < len(self._edges) - 1 else "")

    def on_leave(self) -> None:
        self._say("")

    def _text_of(self, cell: int) -> str:
        if self._trace is None or self._session is None:
            return ""
        return cell_text(self._trace, self._session, look_of(self).area, cell)

    def _say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self.post_message(self.CellHovered(text))


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


class Verdict(Widget, can_focus=True):
    """Two lines: a bar of states where there are devices, and a sentence; what is being counted until both
    are known, nothing while files are read. A part of the bar that is clicked, or chosen by the arrows and
    Enter, leads to where it lasts longest.
    """

    FOCUS_ON_CLICK = False
    part: ClassVar[FocusedPart] = "strip"
    BINDINGS: ClassVar[list[BindingType]] = [*PICKING]
    DEFAULT_CSS = """
    Verdict { height: 1; width: 1fr; }
    """

    class Pressed(WidgetMessage):
        """The finding was clicked."""

    @dataclass
    class PartHovered(WidgetMessage):
        """The mouse or the arrows came to another part of the bar, of which this is said; empty: to none."""

        text: str

    @dataclass
    class PartChosen(WidgetMessage):
        """A part of the bar is asked for where it lasts longest."""

        part: StatePart

    _picked: int | None = None

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
        line = verdict_lines(self.facts, min(height, MAX_STRIP), look)[y]
        if y == 0 and self._picked is not None and (parts := self._parts):
            cells = LineCells(line, look.palette.blank)
            chosen = parts[min(self._picked, len(parts) - 1)][1]
            cells.add(look.titles + chosen.start, look.titles + chosen.stop, PICKED)
            line = cells.segments()
        return Strip(line, self.size.width)

    @property
    def _parts(self) -> list[tuple[StatePart, range]]:
        """The parts of the bar with their cells; nothing where it is not shown."""
        spent = None if self.facts is None else self.facts.spent
        return part_cells(spent, look_of(self).area) if spent is not None and self.size.height > 1 else []

    def _part_at(self, event: events.MouseEvent) -> StatePart | None:
        if event.y >= self.size.height - 1:
            return None
        cell = event.x - look_of(self).titles
        return next((part for part, cells in self._parts if cell in cells), None)

    # -- keys and mouse -------------------------------------------------------------------------------------

    def on_focus(self) -> None:
        self._pick(0)

    def on_blur(self) -> None:
        self._picked = None
        self._say_part(None)
        self.refresh()

    def action_pick(self, by: int) -> None:
        self._pick((self._picked or 0) + by)

    def _pick(self, number: int) -> None:
        if parts := self._parts:
            self._picked = max(0, min(number, len(parts) - 1))
            self._say_part(parts[self._picked][0])
            self.refresh()

    def action_choose(self) -> None:
        """Ask for the chosen part; without a bar for the finding below it."""
        parts = self._parts
        if self._picked is None or not parts:
            self.post_message(self.Pressed())
        else:
            self.post_message(self.PartChosen(parts[min(self._picked, len(parts) - 1)][0]))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._say_part(self._part_at(event))

    def on_leave(self) -> None:
        self._say_part(None)

    def _say_part(self, part: StatePart | None) -> None:
        spent = None if self.facts is None else self.facts.spent
        text = "" if part is None or spent is None else part_text(spent, part)
        if text != self._said:
            self._said = text
            self.post_message(self.PartHovered(text))

    def on_click(self, event: events.Click) -> None:
        if event.y == self.size.height - 1:
            self.post_message(self.Pressed())
        elif (part := self._part_at(event)) is not None:
            self.post_message(self.PartChosen(part))
