"""Commands for traces of several ranks, and for folders of several captures."""

from __future__ import annotations

from tracelane.core.index.captures import ranks_text
from tracelane.core.trace import Trace

from ..actions import ranks
from ..actions.refusal import Refusal
from ..config import Config
from ..screens.pick import PickScreen
from ..session import Session
from ..widgets.table import Column
from .base import Viewer


class Ranks(Viewer):
    """Commands for ranks and captures."""

    def __init__(self, trace: Trace, session: Session | None, config: Config) -> None:
        """Want no other capture yet."""
        super().__init__(trace, session, config)
        self.wanted_capture: int | None = None  # the number of the one to be opened next, 1: the newest

    def do_rank_clocks(self) -> None:
        """Take back what collectives corrected of the ranks' clocks, or correct them again."""
        self.go(ranks.switched(self.trace, self.session))
        self.say(ranks.clocks_text(self.trace, self.session))

    def do_captures(self) -> None:
        """List the captures; choosing one closes this trace and opens it."""
        captures = self.trace.captures
        if len(captures) < 2:
            raise Refusal("no other capture lies beside this one")
        shown = self.trace.shown_capture
        columns = [
            Column("", 1, lambda row: "*" if row == shown else ""),
            Column("When", 24, lambda row: captures[row].when),
            Column("Ranks", 12, lambda row: ranks_text(captures[row].ranks) or "none"),
            Column("Files", 6, lambda row: f"{len(captures[row].members):,}", right=True),
            Column("Missing", 16, lambda row: ranks_text(captures[row].missing)),
            Column("Run", 0, lambda row: captures[row].run),
        ]

        def chosen(row: int | None) -> None:
            if row is not None and row != shown:
                self.wanted_capture = row + 1
                self.exit()

        self.push_screen(PickScreen("Captures", columns, len(captures), hint="Enter opens it"), chosen)
