"""What the mouse does on lanes, ruler and minimap."""

from __future__ import annotations

from dataclasses import replace

from tracelane.core.base.units import format_ns

from ..actions import lanes, view
from ..actions.refusal import Refusal
from ..lanes import messages
from ..things import gap_thing_at, row_of, thing_in
from .controller import Controller


class MouseController(Controller):
    """Answers to the timeline's messages."""

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

    def zoomed(self, message: messages.Zoomed) -> None:
        try:
            self.store.go(
                view.zoomed(self.store.trace, self.store.session, message.factor, message.at), "zoom"
            )
        except Refusal as refusal:
            self.app.say(str(refusal))

    def panned(self, message: messages.Panned) -> None:
        try:
            self.store.go(view.panned(self.store.trace, self.store.session, message.share), "pan")
        except Refusal as refusal:
            self.app.say(str(refusal))

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

    def time_pressed(self, message: messages.TimePressed) -> None:
        self.store.go(view.keep_cursor(replace(self.store.session, cursor=message.at)), "walk")

    def time_dragged(self, message: messages.TimeDragged) -> None:
        self.store.go(replace(self.store.session, range=(message.a, message.b), anchor=None), "drag")
        self.app.say(f"{format_ns(message.b - message.a)}: {{focus}} zooms to it, {{close}} drops it")
