"""Back and forward through the views, closing, quitting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..actions import ranges, select
from ..actions.history import History
from ..actions.refusal import Refusal
from ..lanes.canvas import LaneCanvas
from ..session import Session
from ..session_store import SessionStore
from ..stage import Stage
from ..terminal.driver import TerminalDriver
from .controller import Commands, Controller
from .panels import PanelController
from .queries import QueryController
from .searching import SearchController


class NavigationController(Controller):
    """Commands that leave something."""

    def __init__(
        self,
        app: Stage,
        store: SessionStore,
        searching: SearchController,
        panels: PanelController,
        queries: QueryController,
    ) -> None:
        """Work on a store, and show what comes of it."""
        super().__init__(app, store)
        self.searching = searching
        self.panels = panels
        self.queries = queries

    def commands(self) -> Commands:
        """Return what carries out each of its commands."""
        return {
            "back": self.do_back,
            "forward": self.do_forward,
            "close": self.do_close,
            "close-or-quit": self.do_close_or_quit,
            "redraw": self.do_redraw,
            "suspend": self.do_suspend,
            "stop-indexing": self.do_stop_indexing,
            "quit": self.app.exit,
        }

    def do_back(self) -> None:
        """Go to the view before."""
        previous = self.store.history.back(self.store.session)
        if previous is None:
            raise Refusal("this is the first view")
        self._walk(*previous)

    def do_forward(self) -> None:
        """Go to the view that was gone back from."""
        following = self.store.history.forward(self.store.session)
        if following is None:
            raise Refusal("this is the last view")
        self._walk(*following)

    def _walk(self, session: Session, history: History) -> None:
        # The screen may have been resized since; panels and ruler are no places to go back to.
        now = self.store.session
        viewport = session.viewport.resized(now.viewport.width)
        session = replace(session, viewport=viewport, panel=now.panel, panel_size=now.panel_size)
        self.store.walk(replace(session, anchor=None), history)

    def closers(self) -> list[tuple[str, Callable[[], object]]]:
        """Return what Esc does, in its order: in words, and what does it."""
        main, session, go = self.app.main, self.store.session, self.store.go
        canvas = main.query_one(LaneCanvas)
        in_panel = main.focused is not None and main.focused is not canvas
        steps: list[tuple[bool, str, Callable[[], object]]] = [
            (self.app.has_notice, "message", self.app.dismiss_message),
            *self._top(),
            (in_panel, "lanes", lambda: main.set_focus(canvas)),
            (self.searching.looked_through is not None, "stop search", self.searching.stop_search),
            (self.searching.asks_titles, "stop", self.searching.stop_titles),
            (self.queries.is_running, "stop query", self.queries.stop),
            (bool(session.search), "end search", lambda: go(replace(session, search=""))),
            (session.range is not None, "drop range", lambda: go(ranges.without_range(session))),
            (session.selection is not None, "drop selection", lambda: go(select.without_selection(session))),
            (session.baseline is not None, "stop comparing", lambda: go(replace(session, baseline=None))),
        ]
        return [(what, close) for holds, what, close in steps if holds]

    def _top(self) -> list[tuple[bool, str, Callable[[], object]]]:
        """Return what lies on top of the lanes."""
        return [
            (self.app.maximised, "smaller panel", self._unmaximise),
            (self.store.session.panel == "legend", "close legend", self.panels.do_legend),
        ]

    def _unmaximise(self) -> None:
        self.app.maximised = False

    def escape_text(self) -> str:
        """Return what Esc would do now, empty for nothing."""
        return next((what for what, _ in self.closers()), "")

    def do_close(self) -> None:
        """Close what is on top, then drop the search, the range, the selection, the baseline."""
        for _, close in self.closers()[:1]:
            close()

    def _close_top(self) -> bool:
        for holds, _, close in self._top():
            if holds:
                close()
                return True
        return False

    def do_close_or_quit(self) -> None:
        """Close what is on top; if nothing is, quit."""
        if not self._close_top():
            self.app.exit()

    def do_redraw(self) -> None:
        """Draw all anew: what the terminal shows is not taken for known any more."""
        if isinstance(self.app._driver, TerminalDriver):
            self.app._driver.forget()
        self.app.screen.refresh(layout=True)
        self.app.say("redrawn")

    def do_suspend(self) -> None:
        """Give the terminal back until the shell lets the viewer go on."""
        if not self.app.can_be_suspended:
            raise Refusal("only a viewer on a terminal can be suspended")
        self.app.action_suspend_process()

    def do_stop_indexing(self) -> None:
        """Say that there is nothing to stop: while there is, another screen answers."""
        raise Refusal("nothing is being indexed: {close-or-quit} quits")
