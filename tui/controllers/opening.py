"""A file that is being indexed: a provisional picture, then the trace in its place."""

from __future__ import annotations

from dataclasses import replace

from textual.screen import Screen

from tracelane.core.trace import Trace

from ..actions import view
from ..commands.table import command
from ..draw.layout import layout_of
from ..prepared import OneFile
from ..screens.opening import WITHOUT_TRACE, OpeningScreen, opening_keys
from ..session import Session
from ..session_store import SessionStore, SourceState
from ..stage import Stage
from .drawing import DrawingController

LANES = "lanes"
"""The mode in which the lanes are shown."""


class OpeningController:
    """Shows what is known until the index is there; lane, time window and cursor stay in place then."""

    def __init__(self, app: Stage, store: SessionStore, drawing: DrawingController, file: OneFile) -> None:
        """Watch an index being built."""
        self.app = app
        self.store = store
        self.drawing = drawing
        self._file = file
        begin = file.begin
        self.screen = OpeningScreen(
            file.indexing,
            file.title,
            opening_keys(app.config.keys),
            self._end,
            None if begin is None else Session(begin.viewport, begin.cursor),
        )
        """The provisional picture."""

    def first_screen(self) -> Screen[None]:
        """Return the provisional picture's screen."""
        return self.screen

    def begin(self) -> None:
        """Do nothing: the screen watches."""

    def takes(self, command_id: str) -> bool:
        """Carry out a command that needs no index; of any other one say that it needs the index."""
        if self.screen.run_command(command_id):
            return True
        if command_id == "stop-indexing":
            self.screen.ask_to_stop()
        elif command_id == "close-or-quit":
            self.app.exit()
        elif command_id in WITHOUT_TRACE:
            return False
        else:
            self.app.say(f"{command(command_id).title}: when the index is there")
        return True

    def takes_panel(self, name: str) -> bool:
        """Show no panel."""
        return True

    def _end(self, error: Exception | None) -> None:
        """Show the trace, or leave with what went wrong."""
        if error is None:
            self.app.call_later(self._open)
        else:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.store.state = SourceState.FAILED
        self.app.trouble = error
        self.app.exit()

    async def _open(self) -> None:
        try:
            prepared = self._file.prepare()
        except Exception as error:
            self._fail(error)
            return
        session = prepared.session or view.first_session(prepared.trace, self.screen.session.viewport.width)
        self.drawing.notes = tuple(prepared.notes)
        self.store.open(prepared, self._with_opening_view(prepared.trace, session))
        self.store.state = SourceState.READY
        self.app.opening = None
        # The first screen of a stack cannot be exchanged: the viewer gets a stack of its own.
        self.app.add_mode(LANES, self.drawing.main_screen)
        await self.app.switch_mode(LANES)
        self.screen.let_go()

    def _with_opening_view(self, trace: Trace, session: Session) -> Session:
        """Return the session with lane, time window and cursor as they were on the provisional screen."""
        opening = self.screen
        before = opening.session
        if opening.moved:
            viewport = before.viewport.kept_within(view.limits(trace, session.clocks))
            session = view.keep_cursor(replace(session, viewport=viewport, cursor=before.cursor))
        if before.focus is None:
            return session
        focused = replace(session, focus=before.focus)
        layout = layout_of(trace, focused, None)
        y = layout.y_of(before.focus)
        if y is None:
            return session
        lines = opening.canvas.lane_lines
        self.store.lane_lines = lines  # until the lane area tells its size
        return replace(focused, scroll=layout.scrolled(y - lines // 2, lines))
