"""The critical path in the viewer: a line above the lanes, and a walk along its segments."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tracelane.core.base.progress import CancelledCallback
from tracelane.core.base.units import format_count, format_ns, format_share

from ..actions import view
from ..actions.ranges import scope_of
from ..actions.scene import Refusal
from ..lanes.strips import PathStrip
from ..stage import Controller, Stage, does, hears
from ..steps import step_at, step_marks
from .drawing import DrawingController

if TYPE_CHECKING:
    from ..draw.path_line import DrawnPath

Span = tuple[int, int] | None
MAX_KINDS = 3
AROUND = 4
"""On both sides of a segment that is zoomed in to, so many times its length is seen."""


class PathController(Controller):
    """Commands of the critical path of the range, else of the step at the cursor, else of all."""

    def __init__(self, app: Stage, drawing: DrawingController) -> None:
        super().__init__(app)
        self.drawing = drawing
        self._path: DrawnPath | None = None
        self._shown_for: tuple[Span, str] | None = None  # what is shown, or being looked for

    @does("critical")
    def do_path(self) -> None:
        if self._shown_for is None:
            self._look_for(*self._target())
        else:
            self._show(None)

    def follow(self) -> None:
        """Show the path of the step that was gone to, where one is shown; none of another trace or clocks."""
        if self._shown_for is None or self._path is None:
            return
        path, session = self._path, self.store.session
        if path.trace is not self.store.own_trace or path.path.graph.scope.clocks != self.store.own_clocks:
            self._show(None)
        elif session.range is None and (session.aim == "step" or not path.holds(session.cursor)):
            target = self._target()
            if target != self._shown_for:
                self._look_for(*target, says=False)

    @hears(PathStrip.Pressed)
    def go_to(self, message: PathStrip.Pressed) -> None:
        """Select what the path goes through where it was clicked."""
        if self._path is not None and self._path.holds(message.at):
            self._go(self._path, self._path.at(message.at))

    def _target(self) -> tuple[Span, str]:
        """Return the time whose path is meant, and what it is called."""
        session = self.store.session
        if session.range is not None:
            return session.range, "range"
        steps = step_marks(self.store.trace, session.clocks, session.steps)
        before = [step for step in steps if step.start <= session.cursor]
        step = step_at(steps, session.cursor) or next(iter(before[-1:] or steps[:1]), None)
        return (None, "") if step is None else ((step.start, step.end), step.title)

    def _look_for(self, span: Span, title: str, says: bool = True) -> None:
        if self.store.trace.answers is not None:
            raise Refusal("a picture of many ranks or of two runs has no critical path: open one of them")
        self._shown_for = span, title
        if says:
            self.app.say("looking for the critical path…")
        session = self.store.session._replace(range=span, clocks=self.store.own_clocks, only="", filter="")
        trace = self.store.own_trace

        def drawn(cancelled: CancelledCallback) -> DrawnPath:
            from tracelane.core.tables.path.critical_path import critical_path

            from ..draw.path_line import DrawnPath

            path = critical_path(scope_of(trace, session, cancelled))
            return DrawnPath(trace, f"path {title}".strip(), path, path.names)

        self.app.jobs.ask("critical path", drawn, partial(self._have_path, says=says))

    def _have_path(self, path: DrawnPath, says: bool) -> None:
        if self._shown_for is None:
            return
        self._show(path if len(path) else None)
        if not len(path):
            self.app.say("nothing runs here: there is no critical path")
        elif says:
            self.app.say(
                f"critical path {_summary(path)}; {{next-segment}} goes along it, {{critical}} removes it"
            )

    def _show(self, path: DrawnPath | None) -> None:
        self._path = path
        if path is None:
            self._shown_for = None
            self.app.jobs.cancel("critical path")
        self.drawing.know_path(path)

    @does("next-segment", 1)
    @does("previous-segment", -1)
    def _walk(self, direction: int) -> None:
        """Go to the next segment that is a cell wide; where none is left, to the next one, zoomed in to."""
        path, session = self._path, self.store.session
        if path is None:
            if self._shown_for is None:
                self._look_for(*self._target())
            return
        least = max(1, session.viewport.span // max(1, session.viewport.width))
        number = path.next_from(session.cursor, direction, least)
        if number is not None:
            self._go(path, number)
        elif (number := path.next_from(session.cursor, direction, 1)) is not None:
            self._go(path, number, is_narrow=True)
        else:
            raise Refusal("the critical path ends here" if direction > 0 else "the critical path begins here")

    def _go(self, path: DrawnPath, number: int, is_narrow: bool = False) -> None:
        """Put the cursor on a segment, and select its slice."""
        start, end = int(path.starts[number]), int(path.ends[number])
        session, trace = self.store.session._replace(cursor=start, panel="details"), self.store.trace
        if is_narrow:
            margin = (end - start) * AROUND
            session = view.zoomed_to(trace, session, start - margin, end + margin)._replace(cursor=start)
        else:
            session = view.in_sight(trace, session, start, start + 1)
        identity = path.slice_at(number)
        if identity is None:
            self.store.go(session._replace(selection=None), "walk")
        else:
            self.store.show(session)
            self.app.jump(identity)
            # A wait lies before the slice that it belongs to.
            self.store.show(view.keep_cursor(self.store.session._replace(cursor=start)))
        self.app.say(f"{format_count(number + 1)} of {format_count(len(path))}: {path.text(number)}")


def _summary(path: DrawnPath) -> str:
    """Return how long a path is, and the kinds that take most of it."""
    from tracelane.core.tables.path.path_walk import KINDS

    total = path.path.elapsed_ns
    kinds = sorted(zip(path.path.ns_by_kind, KINDS), reverse=True)[:MAX_KINDS]
    shares = [f"{kind.replace('_', ' ')} {format_share(ns / max(1, total))}" for ns, kind in kinds if ns]
    return f"{format_ns(total)}: {', '.join(shares)}"
