"""What the mouse does on lanes, ruler and minimap."""

from __future__ import annotations

from dataclasses import replace

from textual import on

from tracelane.core.base.units import format_ns

from ..actions import lanes, view
from ..actions.refusal import Refusal
from ..lanes import messages
from ..things import gap_at, row_of, thing_in
from .base import Viewer


class Mouse(Viewer):
    """Answers to the timeline's messages."""

    @on(messages.SlicePressed)
    def _slice_pressed(self, message: messages.SlicePressed) -> None:
        self.say("")
        session = replace(self.session, focus=message.row, cursor=message.at)
        row = row_of(self.layout_now, message.row)
        thing = None if row is None else thing_in(self.trace, session.clocks, row, message.place)
        if thing is None and row is not None:
            thing = gap_at(self.trace, session.clocks, row, message.at)
        if thing is None:
            self.go(replace(session, selection=None), "walk")
            return
        self.go(replace(session, selection=thing.id, panel="details"), "walk")
        if message.chain >= 2:
            self.run_command("focus")

    @on(messages.LanePressed)
    def _lane_pressed(self, message: messages.LanePressed) -> None:
        self.say("")
        self.go(lanes.line_folded(self.trace, self.session, message.line, self.lane_lines))

    @on(messages.Zoomed)
    def _zoomed(self, message: messages.Zoomed) -> None:
        try:
            self.go(view.zoomed(self.trace, self.session, message.factor, message.at), "zoom")
        except Refusal as refusal:
            self.say(str(refusal))

    @on(messages.Panned)
    def _panned(self, message: messages.Panned) -> None:
        try:
            self.go(view.panned(self.trace, self.session, message.share), "pan")
        except Refusal as refusal:
            self.say(str(refusal))

    @on(messages.Scrolled)
    def _scrolled(self, message: messages.Scrolled) -> None:
        scroll = self.layout_now.scrolled(self.session.scroll + message.lines, self.lane_lines)
        self.go(replace(self.session, scroll=scroll), "scroll")

    @on(messages.ViewMoved)
    def _view_moved(self, message: messages.ViewMoved) -> None:
        low, high = view.limits(self.trace, self.session.clocks)
        self.go(view.go_to(self.trace, self.session, min(max(message.at, low), high)), "pan")

    @on(messages.TimePressed)
    def _time_pressed(self, message: messages.TimePressed) -> None:
        self.go(view.keep_cursor(replace(self.session, cursor=message.at)), "walk")

    @on(messages.TimeDragged)
    def _time_dragged(self, message: messages.TimeDragged) -> None:
        self.go(replace(self.session, range=(message.a, message.b), anchor=None), "drag")
        self.say(f"{format_ns(message.b - message.a)}: f zooms to it, Esc drops it")
