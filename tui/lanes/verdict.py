"""The strip of the verdict above the lanes: what devices did, and the costliest finding."""

from __future__ import annotations

from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tracelane.core.tables.findings.finding import Finding, Findings

from ..draw.labels import fit
from ..draw.verdict import StateShares, bar_line, finding_line
from .look import look_of


class Verdict(Widget):
    """Two lines: a bar of states where there are devices, and a sentence; empty until both are known."""

    DEFAULT_CSS = """
    Verdict { height: 1; width: 1fr; }
    """

    class Pressed(Message):
        """The finding was clicked."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._shares: StateShares | None = None
        self._is_known = False
        self._finding: Finding | None = None
        self._is_judged = False
        self._offer = ""

    def know(self, shares: StateShares | None) -> None:
        self._shares, self._is_known = shares, True
        self.refresh()

    def judge(self, findings: Findings | None) -> None:
        self._is_judged = findings is not None
        self._finding = findings.leading if findings is not None else None
        self.refresh()

    def offer(self, text: str) -> None:
        """Say what a key does with the finding, if anything."""
        if text != self._offer:
            self._offer = text
            self.refresh()

    def render_line(self, y: int) -> Strip:
        look, is_last = look_of(self), y == self.size.height - 1
        if is_last and self._is_judged:
            line = finding_line(self._finding, self._offer, look)
        elif not is_last and self._shares is not None:
            line = bar_line(self._shares, look)
        elif not is_last and self._is_known:
            text = fit(" When the devices worked is not known", self.size.width, look.glyphs.ellipsis)
            line = [Segment(text, look.palette.dim)]
        else:
            return Strip.blank(self.size.width, look.palette.blank)
        return Strip(line, self.size.width)

    def on_click(self, event: events.Click) -> None:
        if event.y == self.size.height - 1:
            self.post_message(self.Pressed())
