"""Commands for traces of several ranks, and for folders of several captures."""

from __future__ import annotations

from tracelane.core.index.captures import ranks_text

from ..actions import clocks
from ..actions.refusal import Refusal
from ..screens.pick import PickScreen
from ..widgets.table import ColumnView
from .controller import Commands, Controller

GROUPINGS = {"host": "host", "tp": "tensor parallel", "pp": "pipeline parallel", "dp": "data parallel"}


class RankController(Controller):
    """Commands for ranks and captures."""

    def commands(self) -> Commands:
        """Return what carries out each of its commands."""
        return {
            "rank-clocks": self.do_rank_clocks,
            "captures": self.do_captures,
            "rank-groups": self.do_rank_groups,
        }

    def do_rank_clocks(self) -> None:
        """Switch the correction of the ranks' clocks by their collectives off, or on again."""
        self.store.go(clocks.switch_alignment(self.store.trace, self.store.session))
        self.app.say(clocks.clocks_text(self.store.trace, self.store.session))

    def do_rank_groups(self) -> None:
        """List what the ranks of a store may be grouped by; choosing one draws them anew."""
        if not self.store.trace.opens:
            raise Refusal("ranks are grouped in the picture of a capture store: see tracelane collect --help")

        def choose(row: int | None) -> None:
            if row is not None:
                self.app.rank_grouping = list(GROUPINGS)[row]
                self.app.exit()

        columns = [ColumnView("By", 0, lambda row: list(GROUPINGS.values())[row])]
        self.app.push_screen(
            PickScreen("Groups of ranks", columns, len(GROUPINGS), hint="Enter groups"), choose
        )

    def do_captures(self) -> None:
        """List the captures; choosing one closes this trace and opens it."""
        captures = self.store.trace.captures
        if len(captures) < 2:
            raise Refusal("no other capture in this folder")
        open_capture = self.store.trace.open_capture
        columns = [
            ColumnView("", 1, lambda row: "*" if row == open_capture else ""),
            ColumnView("When", 24, lambda row: captures[row].when),
            ColumnView("Ranks", 12, lambda row: ranks_text(captures[row].ranks) or "none"),
            ColumnView("Files", 6, lambda row: f"{len(captures[row].members):,}", right=True),
            ColumnView("Missing", 16, lambda row: ranks_text(captures[row].missing)),
            ColumnView("Run", 0, lambda row: captures[row].run),
        ]

        def chosen(row: int | None) -> None:
            if row is not None and row != open_capture:
                self.app.wanted_capture = row + 1
                self.app.exit()

        self.app.push_screen(PickScreen("Captures", columns, len(captures), hint="Enter opens it"), chosen)
