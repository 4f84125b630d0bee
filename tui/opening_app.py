"""The viewer of a trace that is still being indexed: a provisional picture, then the trace in its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from textual import on
from textual.screen import Screen

from tracelane.core.index.indexing import Indexing
from tracelane.core.trace import Trace

from .actions import view
from .app import TracelaneApp
from .commands import command
from .config import Config
from .draw.layout import layout_of
from .prepared import Prepared
from .screens.opening import WITHOUT_TRACE, OpeningScreen, opening_keys
from .session import Session

SETTLED = "settled"


class OpeningApp(TracelaneApp):
    """Shows what is known until the index is there; lane, time window and cursor stay in place then."""

    def __init__(
        self,
        indexing: Indexing,
        title: str,
        prepare: Callable[[], Prepared],
        config: Config | None = None,
        begin: Session | None = None,
    ) -> None:
        """Watch an index being built; `prepare` opens it when it is there. With `begin` its time window and
        cursor are shown from the start.
        """
        super().__init__(Trace(()), Session(view.view_of(0, 1, 1), 0), config)
        self.handlers |= {"stop-indexing": self.stop_indexing, "close-or-quit": self.close_or_quit}
        self._indexing = indexing
        self._title = title
        self._prepare = prepare
        self._begin = None if begin is None else Session(begin.viewport, begin.cursor)

    def get_default_screen(self) -> Screen[None]:
        """Make the first screen."""
        return OpeningScreen(self._indexing, self._title, opening_keys(self.config.keys), self._begin)

    @property
    def opening(self) -> OpeningScreen | None:
        """The provisional screen, None once the trace is shown."""
        screen = self.screen_stack[0] if self.screen_stack else None
        return screen if isinstance(screen, OpeningScreen) else None

    def run_command(self, command_id: str) -> None:
        """Do a command; while there is no index, say so of those that need it."""
        opening = self.opening
        if opening is None:
            super().run_command(command_id)
        elif not opening.run_command(command_id):
            if command_id in WITHOUT_TRACE:
                super().run_command(command_id)
            else:
                self.say(f"{command(command_id).title}: when the index is there")

    def say(self, text: str) -> None:
        """Show a message in the footer until the next command."""
        opening = self.opening
        if opening is None:
            super().say(text)
        elif opening.is_mounted:
            opening.say(text)

    def stop_indexing(self) -> None:
        """Ask whether to stop."""
        if self.opening is None:
            self.navigation.do_stop_indexing()
        else:
            self.opening.ask_to_stop()

    def close_or_quit(self) -> None:
        """Close what is on top; if nothing is, quit."""
        if self.opening is None:
            self.navigation.do_close_or_quit()
        else:
            self.exit()

    @on(OpeningScreen.Failed)
    def _failed(self, message: OpeningScreen.Failed) -> None:
        self.trouble = message.error
        self.exit()

    @on(OpeningScreen.Committed)
    async def _committed(self) -> None:
        opening = self.opening
        if opening is None:
            return
        try:
            prepared = self._prepare()
        except Exception as error:
            self.trouble = error
            self.exit()
            return
        session = prepared.session or view.first_session(prepared.trace, opening.session.viewport.width)
        self.notes = tuple(prepared.notes)
        self.open_trace(prepared, self._settled(prepared.trace, session, opening))
        # The first screen of a stack cannot be exchanged: the viewer gets a stack of its own.
        self.add_mode(SETTLED, self.main_screen)
        await self.switch_mode(SETTLED)
        opening.let_go()

    def _settled(self, trace: Trace, session: Session, opening: OpeningScreen) -> Session:
        """Return the session with lane, time window and cursor as they were on the provisional screen."""
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
