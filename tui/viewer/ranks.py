"""Commands for traces of several ranks."""

from __future__ import annotations

from ..actions import ranks
from .base import Viewer


class Ranks(Viewer):
    """Commands for ranks."""

    def do_rank_clocks(self) -> None:
        """Take back what collectives corrected of the ranks' clocks, or correct them again."""
        self.go(ranks.switched(self.trace, self.session))
        self.say(ranks.clocks_text(self.trace, self.session))
