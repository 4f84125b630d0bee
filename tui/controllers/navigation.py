"""Back and forward through the views, closing, quitting; what the mouse does on lanes, ruler and minimap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import format_ns
from tracelane.core.trace import Trace

from ..actions import lanes, view
from ..actions.scene import History, Refusal
from ..draw.things import gap_thing_at, row_of, thing_in
from ..lanes import messages
from ..lanes.canvas import LaneCanvas
from ..lanes.strips import Minimap
from ..session import Session
from ..stage import Controller, Stage, does, hears
from .counters import QueryController
from .panels import PanelController
from .searching import SearchController


class NavigationController(Controller):
    def __init__(
        self, app: Stage, searching: SearchController, panels: PanelController, queries: QueryController
    ) -> None:
        super().__init__(app)
        self.searching = searching
        self.panels = panels
        self.queries = queries

    @does("back")
    def do_back(self) -> None:
        previous = self.store.now.history.back(self.store.session)
        if previous is None:
            raise Refusal("this is the first view")
        self._walk(*previous)

    @does("forward")
    def do_forward(self) -> None:
        following = self.store.now.history.forward(self.store.session)
        if following is None:
            raise Refusal("this is the last view")
        self._walk(*following)

    def _walk(self, session: Session, history: History) -> None:
        # The screen may have been resized since; panels and ruler are no places to go back to.
        now = self.store.session
        viewport = session.viewport.resized(now.viewport.width)
        session = session._replace(viewport=viewport, panel=now.panel, panel_size=now.panel_size)
        session = session._replace(anchor=None)
        self.store.dispatch(replace(self.store.now, session=session, history=history))

    def closers(self) -> list[tuple[str, Callable[[], object]]]:
        """Return what Esc does, in its order: in words, and what does it."""
        main, session, go = self.app.main, self.store.session, self.store.go
        canvas = main.query_one(LaneCanvas)
        in_panel = main.focused is not None and main.focused is not canvas
        steps: list[tuple[bool, str, Callable[[], object]]] = [
            (self.app.has_notice, "message", self.app.dismiss_message),
            *self._top(),
            (in_panel, "lanes", lambda: main.set_focus(canvas)),
            (self.store.now.search.looked_through is not None, "stop search", self.searching.stop_search),
            (self.searching.asks_titles, "stop", self.searching.stop_titles),
            (self.queries.is_running, "stop query", self.queries.stop),
            (bool(session.search), "end search", lambda: go(session._replace(search=""))),
            (session.range is not None, "drop range", lambda: go(session._replace(range=None, anchor=None))),
            (session.selection is not None, "drop selection", lambda: go(session._replace(selection=None))),
            (session.baseline is not None, "stop comparing", lambda: go(session._replace(baseline=None))),
        ]
        return [(what, close) for holds, what, close in steps if holds]

    def _top(self) -> list[tuple[bool, str, Callable[[], object]]]:
        return [
            (self.app.maximised, "smaller panel", self._unmaximise),
            (self.store.session.panel == "legend", "close legend", self.panels.do_legend),
        ]

    def _unmaximise(self) -> None:
        self.app.maximised = False

    def escape_text(self) -> str:
        return next((what for what, _ in self.closers()), "")

    @does("close")
    def do_close(self) -> None:
        for _, close in self.closers()[:1]:
            close()

    def _close_top(self) -> bool:
        for holds, _, close in self._top():
            if holds:
                close()
                return True
        return False

    @does("quit")
    def do_quit(self) -> None:
        self.app.exit()

    @does("close-or-quit")
    def do_close_or_quit(self) -> None:
        if not self._close_top():
            self.app.exit()

    @hears(Minimap.CellHovered)
    def _minimap_hovered(self, message: Minimap.CellHovered) -> None:
        self.app.hover(message.text)

    @does("redraw")
    def do_redraw(self) -> None:
        self.app.action_redraw()
        self.app.say("redrawn")

    @does("suspend")
    def do_suspend(self) -> None:
        if not self.app.can_be_suspended:
            raise Refusal("only a viewer on a terminal can be suspended")
        self.app.action_suspend_process()

    @does("stop-indexing")
    def do_stop_indexing(self) -> None:
        """Say that there is nothing to stop: while there is, another screen answers."""
        raise Refusal("nothing is being indexed: {close-or-quit} quits")


class MouseController(Controller):
    @hears(messages.TimelineMessage)
    def answer(self, message: messages.TimelineMessage) -> None:
        trace, session, lines = self.store.trace, self.store.session, self.store.now.lane_lines
        match message:
            case messages.Hovered():
                self.app.hover(self._named(message))
            case messages.SlicePressed():
                self.slice_pressed(message)
            case messages.LanePressed():
                self.app.say("")
                line = message.line.of_latest(self.store.now.latest_ranks)
                self.store.go(lanes.line_folded(trace, session, line, lines))
            case messages.Zoomed(factor, at):
                self._go(partial(view.zoomed, factor=factor, about=at), "zoom")
            case messages.Panned(share):
                self._go(partial(view.panned, share=share), "pan")
            case messages.Scrolled():
                scroll = self.store.layout_now.scrolled(session.scroll + message.lines, lines)
                self.store.go(session._replace(scroll=scroll), "scroll")
            case messages.ViewMoved():
                low, high = view.limits(trace, session.clocks)
                self.store.go(view.go_to(trace, session, min(max(message.at, low), high)), "pan")
            case messages.TimePressed(at):
                self.store.go(view.keep_cursor(session._replace(cursor=at)), "walk")
            case messages.TimeDragged():
                self.store.go(session._replace(range=(message.a, message.b), anchor=None), "drag")
                self.app.say(f"{format_ns(message.b - message.a)}: {{focus}} zooms to it, {{close}} drops it")

    def _named(self, message: messages.Hovered) -> str:
        """Return the name of what the mouse is over, and how long it takes; what a hatch stands for."""
        trace = self.store.trace
        row = None if message.row is None else row_of(self.store.layout_now, message.row)
        thing = None if row is None else thing_in(trace, self.store.session.clocks, row, message.index)
        if thing is None:
            return message.waits
        name = safe(trace.label(thing.row, thing.index))
        return name if thing.slice is None else f"{name}  {format_ns(thing.end - thing.start)}"

    def _go(self, move: Callable[[Trace, Session], Session], together: str) -> None:
        try:
            self.store.go(move(self.store.trace, self.store.session), together)
        except Refusal as refusal:
            self.app.say(str(refusal))

    def slice_pressed(self, message: messages.SlicePressed) -> None:
        self.app.say("")
        session = self.store.session._replace(focus=message.row, cursor=message.at)
        row = row_of(self.store.layout_now, message.row)
        thing = None if row is None else thing_in(self.store.trace, session.clocks, row, message.index)
        if thing is None and row is not None:
            thing = gap_thing_at(self.store.trace, session.clocks, row, message.at)
        if thing is None:
            self.store.go(session._replace(selection=None), "walk")
            return
        self.store.go(session._replace(selection=thing.id, panel="details"), "walk")
        if message.chain >= 2:
            self.app.run_command("focus")
