"""Back and forward through the views, closing, quitting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..actions import ranges, select
from ..actions.history import History
from ..actions.refusal import Refusal
from ..lanes.canvas import LaneCanvas
from ..session import Session
from ..session_store import SessionStore
from ..stage import Stage
from ..terminal.driver import TerminalDriver
from .panels import PanelController
from .searching import SearchController


class NavigationController:
    """Commands that leave something."""

    def __init__(
        self, app: Stage, store: SessionStore, searching: SearchController, panels: PanelController
    ) -> None:
        """Work on a store, and show what comes of it."""
        self.app = app
        self.store = store
        self.searching = searching
        self.panels = panels

    def commands(self) -> Mapping[str, Callable[[], object]]:
        """Return what carries out each of its commands."""
        return {
            "back": self.do_back,
            "forward": self.do_forward,
            "close": self.do_close,
            "close-or-quit": self.do_close_or_quit,
            "redraw": self.do_redraw,
            "suspend": self.do_suspend,
            "stop-indexing": self.do_stop_indexing,
            "quit": self.do_quit,
        }

    def do_back(self) -> None:
        """Go to the view before."""
        found = self.store.history.back(self.store.session)
        if found is None:
            raise Refusal("this is the first view")
        self._walk(*found)

    def do_forward(self) -> None:
        """Go to the view that was gone back from."""
        found = self.store.history.forward(self.store.session)
        if found is None:
            raise Refusal("this is the last view")
        self._walk(*found)

    def _walk(self, session: Session, history: History) -> None:
        self.store.history = history
        # The screen may have been resized since; panels and ruler are no places to go back to.
        now = self.store.session
        viewport = session.viewport.resized(now.viewport.width)
        session = replace(session, viewport=viewport, panel=now.panel, panel_size=now.panel_size)
        self.store.session = replace(session, anchor=None)

    def _close_top(self) -> bool:
        main = self.app.main
        if self.app.maximised:
            self.app.maximised = False
        elif self.store.session.panel == "legend":
            self.panels.do_legend()
        elif main.focused is not None and main.focused is not main.query_one(LaneCanvas):
            main.set_focus(main.query_one(LaneCanvas))
        else:
            return False
        return True

    def do_close(self) -> None:
        """Close what is on top, then drop the search, the range, the selection, the baseline."""
        if self._close_top() or self.searching.stop_search() or self.searching.stop_titles():
            return
        if self.store.session.search:
            self.store.go(replace(self.store.session, search=""))
        elif self.store.session.range is not None:
            self.store.go(ranges.without_range(self.store.session))
        elif self.store.session.selection is not None:
            self.store.go(select.without_selection(self.store.session))
        elif self.store.session.baseline is not None:
            self.store.go(replace(self.store.session, baseline=None))

    def do_close_or_quit(self) -> None:
        """Close what is on top; if nothing is, quit."""
        if not self._close_top():
            self.app.exit()

    def do_redraw(self) -> None:
        """Draw all anew: what the terminal shows is not taken for known any more."""
        if isinstance(self.app._driver, TerminalDriver):
            self.app._driver.forget()
        self.app.screen.refresh(layout=True)
        self.app.say("drawn anew")

    def do_suspend(self) -> None:
        """Give the terminal back until the shell lets the viewer go on."""
        if not self.app.can_be_suspended:
            raise Refusal("only a viewer on a terminal can be suspended")
        self.app.action_suspend_process()

    def do_stop_indexing(self) -> None:
        """Say that there is nothing to stop: while there is, another screen answers."""
        raise Refusal("nothing is being indexed: Q quits")

    def do_quit(self) -> None:
        """Quit."""
        self.app.exit()
