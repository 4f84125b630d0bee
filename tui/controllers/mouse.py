"""What the mouse does on lanes, ruler and minimap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import format_ns
from tracelane.core.trace import Trace

from ..actions import lanes, view
from ..actions.refusal import Refusal
from ..draw.things import gap_thing_at, row_of, thing_in
from ..lanes import messages
from ..session import Session
from .controller import Controller


class MouseController(Controller):
    """Answers to the timeline's messages."""

    def answer(self, message: messages.TimelineMessage) -> None:
        """Do what a message asks for."""
        match message:
            case messages.Hovered():
                self.app.hover(self._named(message))
            case messages.SlicePressed():
                self.slice_pressed(message)
            case messages.LanePressed():
                self.lane_pressed(message)
            case messages.Zoomed(factor, at):
                self._go(partial(view.zoomed, factor=factor, about=at), "zoom")
            case messages.Panned(share):
                self._go(partial(view.panned, share=share), "pan")
            case messages.Scrolled():
                self.scrolled(message)
            case messages.ViewMoved():
                self.view_moved(message)
            case messages.TimePressed(at):
                self.store.go(view.keep_cursor(replace(self.store.session, cursor=at)), "walk")
            case messages.TimeDragged():
                self.time_dragged(message)

    def _named(self, message: messages.Hovered) -> str:
        """Return the name of what the mouse is over, and how long it takes."""
        trace = self.store.trace
        row = None if message.row is None else row_of(self.store.layout_now, message.row)
        thing = None if row is None else thing_in(trace, self.store.session.clocks, row, message.index)
        if thing is None:
            return ""
        name = safe(trace.label(thing.row, thing.index))
        return name if thing.slice is None else f"{name}  {format_ns(thing.end - thing.start)}"

    def _go(self, move: Callable[[Trace, Session], Session], together: str) -> None:
        try:
            self.store.go(move(self.store.trace, self.store.session), together)
        except Refusal as refusal:
            self.app.say(str(refusal))

    def slice_pressed(self, message: messages.SlicePressed) -> None:
        self.app.say("")
        session = replace(self.store.session, focus=message.row, cursor=message.at)
        row = row_of(self.store.layout_now, message.row)
        thing = None if row is None else thing_in(self.store.trace, session.clocks, row, message.index)
        if thing is None and row is not None:
            thing = gap_thing_at(self.store.trace, session.clocks, row, message.at)
        if thing is None:
            self.store.go(replace(session, selection=None), "walk")
            return
        self.store.go(replace(session, selection=thing.id, panel="details"), "walk")
        if message.chain >= 2:
            self.app.run_command("focus")

    def lane_pressed(self, message: messages.LanePressed) -> None:
        self.app.say("")
        self.store.go(
            lanes.line_folded(self.store.trace, self.store.session, message.line, self.store.lane_lines)
        )

    def scrolled(self, message: messages.Scrolled) -> None:
        scroll = self.store.layout_now.scrolled(
            self.store.session.scroll + message.lines, self.store.lane_lines
        )
        self.store.go(replace(self.store.session, scroll=scroll), "scroll")

    def view_moved(self, message: messages.ViewMoved) -> None:
        low, high = view.limits(self.store.trace, self.store.session.clocks)
        self.store.go(
            view.go_to(self.store.trace, self.store.session, min(max(message.at, low), high)), "pan"
        )

    def time_dragged(self, message: messages.TimeDragged) -> None:
        self.store.go(replace(self.store.session, range=(message.a, message.b), anchor=None), "drag")
        self.app.say(f"{format_ns(message.b - message.a)}: {{focus}} zooms to it, {{close}} drops it")
