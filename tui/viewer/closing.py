"""Back and forward through the views, closing, quitting."""

from __future__ import annotations

from dataclasses import replace

from ..actions import ranges, select
from ..actions.history import History
from ..actions.refusal import Refusal
from ..lanes.canvas import LaneCanvas
from ..session import Session
from ..terminal.driver import TerminalDriver
from .panels import Panels
from .searching import Searching


class Closing(Panels, Searching):
    """Commands that leave something."""

    def do_back(self) -> None:
        """Go to the view before."""
        found = self.history.back(self.session)
        if found is None:
            raise Refusal("this is the first view")
        self._walk(*found)

    def do_forward(self) -> None:
        """Go to the view that was gone back from."""
        found = self.history.forward(self.session)
        if found is None:
            raise Refusal("this is the last view")
        self._walk(*found)

    def _walk(self, session: Session, history: History) -> None:
        self.history = history
        # The screen may have been resized since; panels and ruler are no places to go back to.
        now = self.session
        viewport = session.viewport.resized(now.viewport.width)
        session = replace(session, viewport=viewport, panel=now.panel, panel_size=now.panel_size)
        self.session = replace(session, anchor=None)

    def _close_top(self) -> bool:
        main = self.main
        if self.maximised:
            self.maximised = False
        elif self.session.panel == "legend":
            self.do_legend()
        elif main.focused is not None and main.focused is not main.query_one(LaneCanvas):
            main.set_focus(main.query_one(LaneCanvas))
        else:
            return False
        return True

    def do_close(self) -> None:
        """Close what is on top, then drop the search, the range, the selection, the baseline."""
        if self._close_top() or self.stop_search() or self.stop_titles():
            return
        if self.session.search:
            self.go(replace(self.session, search=""))
        elif self.session.range is not None:
            self.go(ranges.dropped(self.session))
        elif self.session.selection is not None:
            self.go(select.dropped(self.session))
        elif self.session.baseline is not None:
            self.go(replace(self.session, baseline=None))

    def do_close_or_quit(self) -> None:
        """Close what is on top; if nothing is, quit."""
        if not self._close_top():
            self.exit()

    def do_redraw(self) -> None:
        """Draw all anew: what the terminal shows is not taken for known any more."""
        if isinstance(self._driver, TerminalDriver):
            self._driver.forget()
        self.screen.refresh(layout=True)
        self.say("drawn anew")

    def do_suspend(self) -> None:
        """Give the terminal back until the shell lets the viewer go on."""
        if not self.can_be_suspended:
            raise Refusal("only a viewer on a terminal can be suspended")
        self.action_suspend_process()

    def do_stop_indexing(self) -> None:
        """Say that there is nothing to stop: while there is, another screen answers."""
        raise Refusal("nothing is being indexed: Q quits")

    def do_quit(self) -> None:
        """Quit."""
        self.exit()
