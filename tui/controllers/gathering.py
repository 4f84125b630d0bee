"""Files that are being indexed, one or many: those that are there, the others as they come."""

from __future__ import annotations

from dataclasses import replace
from time import monotonic, thread_time
from typing import Final

from rich.text import Text
from textual.screen import Screen

from tracelane.core.trace import PartialTrace

from ..actions import view
from ..actions.table import MOVES
from ..commands.table import command
from ..lanes import messages
from ..lanes.canvas import LaneCanvas
from ..lanes.strips import Minimap
from ..screens.files import (
    WITHOUT_TRACE,
    FilesScreen,
    StopQuestion,
    failure_of,
    file_lines,
    header_pieces,
    one_line,
    opening_keys,
)
from ..session import Session
from ..session_store import SourceState
from ..stage import Controller, Stage
from ..text.progress import StagePace
from ..view_state import PendingFiles, Prepared, scroll_kept, session_for, session_over, sources_in
from .drawing import DrawingController

TICK_S = 0.1
INTERRUPTED = 130
"""The exit code of a shell's Ctrl+C."""
LINES_FROM = 3
"""From this many lines on, the panel has a line for each file."""
LANES = "lanes"
"""The mode in which lanes are shown, of some files and then of all."""
INTERVAL_S = 0.5
"""Files that have come are shown this often at most, and that takes at most a tenth of the time."""
SHARE = 10
TELL_S = 0.25
"""Seconds between two updates of the progress: drawing a line takes time from the processes that read."""
WITH_SOME: Final = WITHOUT_TRACE | {
    *MOVES,
    *("details", "launch", "kernel", "source", "copy", "flows", "hidden", "back", "forward"),
    *("panel-details", "legend", "maximise", "other-pane", "close"),
}
"""Commands that need no more than what is on the screen, and so work before all files are there."""
PANELS: Final = ("details", "legend")


class GatheringController(Controller):
    """Shows the files that are there; what is looked at stays in place when others come."""

    def __init__(self, app: Stage, drawing: DrawingController, files: PendingFiles) -> None:
        super().__init__(app)
        self.drawing = drawing
        self.panels = drawing.panels
        self._gathering = files.gathering
        self._title = files.title
        self._prepare = files.prepare
        self._prepared: Prepared | None = None
        self._is_complete = False
        self._before = files.before
        self._pace = StagePace()
        self._drawn_files = 0  # files of which the trace on show knows what has become
        self._grown_at: float | None = None  # thread time when files joined those on show, not yet drawn
        self._next = 0.0
        self._has_own_view = files.before is not None
        self._work_text = Text()
        self._next_text_at = 0.0

    def first_screen(self) -> Screen[None]:
        keys = opening_keys(self.app.config.keys)
        return FilesScreen(keys, self.header(), file_lines(self._gathering))

    def begin(self) -> None:
        self._timer = self.app.set_interval(TICK_S, self._watch_files)

    # -- what comes -----------------------------------------------------------------------------------------

    @property
    def _files(self) -> FilesScreen | None:
        """The screen that lists files, None once there are lanes."""
        screen = self.app.screen_stack[0] if self.app.screen_stack else None
        return screen if isinstance(screen, FilesScreen) else None

    async def _watch_files(self) -> None:
        leaving = self.app.return_code is not None or not self.app.screen_stack
        if self.store.is_ready or leaving:
            return
        if not self._is_complete:
            try:
                self._is_complete = self._gathering.poll()
            except Exception as error:
                self._fail(error)
                return
            if self._is_complete:
                self.app.jobs.start(self._put_together, "opening")
        # A list or a question on top is answered first: what is below it must not change.
        if self.app.screen is self.app.main:
            if self._prepared is not None:
                await self._settle(self._prepared)
            elif self._may_grow and self._has_news and not self._is_complete:
                self._grown_at = thread_time()
                await self._grow()
        self._tell()

    @property
    def _has_news(self) -> bool:
        gathering = self._gathering
        return bool(gathering.ready) and len(gathering.ready) + len(gathering.failed) > self._drawn_files

    @property
    def _may_grow(self) -> bool:
        """Whether files may join now: enough time has passed since the last ones did, given how long joining
        and drawing took then.
        """
        now = monotonic()
        if self._grown_at is not None:
            self._next = now + max(INTERVAL_S - TICK_S, SHARE * (thread_time() - self._grown_at))
            self._grown_at = None
        return now >= self._next

    def _put_together(self) -> None:
        """Make the trace of all files, away from the screen."""
        try:
            prepared = self._prepare()
        except Exception as error:
            self.app.tell(self._fail, error)
        else:
            self.app.tell(self._have_prepared, prepared)

    def _have_prepared(self, prepared: Prepared) -> None:
        self._prepared = prepared

    def _fail(self, error: Exception) -> None:
        self.store.source_is(SourceState.FAILED)
        self.app.trouble = error
        self.app.exit()

    async def _grow(self) -> None:
        gathering = self._gathering
        ready = list(gathering.ready)
        ranks = (number for number in ready if gathering.members[number].rank is not None)
        missing = {
            number: failure_of(gathering, number) or "not indexed yet"
            for number in range(len(gathering.members))
            if number not in ready
        }
        first = next(ranks, ready[0])
        before = self.store.trace if isinstance(self.store.trace, PartialTrace) else None
        trace = PartialTrace.of(gathering, missing, first, before)
        if self._files is not None:
            self.store.open(Prepared(trace), self._first_view(trace))
            await self._show_lanes()
        else:
            layout, session = self.store.layout_now, replace(self.store.session, clocks=trace.clocks)
            self.store.show_trace(trace, self.store.session)
            if not self._moved:
                fresh = view.first_session(trace, session.viewport.width)
                session = replace(session, viewport=fresh.viewport, cursor=fresh.cursor)
            self._take(
                replace(
                    session,
                    scroll=scroll_kept(layout, session, self.store.layout_now, self.store.now.lane_lines),
                )
            )
        self._drawn_files = len(ready) + len(gathering.failed)

    def _first_view(self, trace: PartialTrace) -> Session:
        session = None if self._before is None else session_over(self._before, trace)
        if session is None:
            self._has_own_view = False
            return view.first_session(trace, self.app.size.width)
        # Tables and searches wait for the other files.
        return replace(session, panel="details", search="", filter="", only="")

    async def _settle(self, prepared: Prepared) -> None:
        """Show the trace of all files in place of what was there of it."""
        trace, partial = prepared.trace, self.store.trace
        session = prepared.session or view.first_session(trace, self.store.session.viewport.width)
        self.store.source_is(SourceState.READY)
        self.app.opening = None
        self._timer.stop()
        if not isinstance(partial, PartialTrace):
            self.store.open(prepared, session)
            await self._show_lanes()
            return
        before, seen = self.store.layout_now, self.store.session
        lines = self.store.now.lane_lines
        if self._moved:
            session = session_for(session, seen, partial, trace)
        self.store.open(prepared, session)
        if self._moved:
            sources = sources_in(partial, trace)
            session = replace(
                session, scroll=scroll_kept(before, seen, self.store.layout_now, lines, sources)
            )
        else:
            self.drawing.forget_room()  # it opens as it would have without any waiting
        self.panels.arguments.clear()
        self._take(session)
        self.drawing.fill()
        self.app.post_message(messages.TimeAreaResized(seen.viewport.width, lines))

    async def _show_lanes(self) -> None:
        # The first screen of a stack cannot be exchanged: the lanes get a stack of their own.
        self.app.add_mode(LANES, self.drawing.main_screen)
        await self.app.switch_mode(LANES)

    def _take(self, session: Session) -> None:
        """Draw the trace on show anew, in this session."""
        self.store.show(session)
        self.app.main.query_one(Minimap).show(self.store.trace, session)
        self.panels.panel_soon()

    # -- what is told ---------------------------------------------------------------------------------------

    def _tell(self) -> None:
        now = monotonic()
        if self.store.is_ready or now < self._next_text_at:
            return
        self._next_text_at = now + TELL_S
        files = self._files
        if files is not None:
            if files.is_mounted:
                files.show(self.header(), file_lines(self._gathering))
        elif self.app.composed:
            self.drawing.fill_header()
            if self._work_text != self._work:
                self.panels.panel_soon()

    def header(self) -> tuple[Text, ...]:
        width = self.app.size.width
        return header_pieces(self._gathering, self._pace, monotonic(), self._title, width, self._is_complete)

    @property
    def _work(self) -> Text:
        """What is going on with each file that is not there."""
        if any(pane.size.height >= LINES_FROM for pane in self.app.main.query("#details")):
            return Text("\n").join(file_lines(self._gathering))
        return one_line(self._gathering)

    def hint(self) -> Text:
        """Return how far the other files are."""
        self._work_text = self._work
        return self._work_text

    # -- commands -------------------------------------------------------------------------------------------

    @property
    def _moved(self) -> bool:
        """Whether the view stays where it is when files come."""
        return self._has_own_view or self.store.now.has_moved

    def takes(self, command_id: str) -> bool:
        """Answer what needs all files: that they are not there yet."""
        if command_id == "stop-indexing":
            self._ask_to_stop()
        elif command_id == "close-or-quit" and self._files is not None:
            self.app.exit()
        elif command_id == "close" and self._nothing_to_close():
            self.app.say(f"indexing continues: {command('stop-indexing').keys_text} stops it")
        elif command_id in (WITHOUT_TRACE if self._files is not None else WITH_SOME):
            return False
        else:
            self.app.say(f"{command(command_id).title}: when {self._awaited(command_id)} there")
        return True

    def _awaited(self, command_id: str) -> str:
        if len(self._gathering.members) == 1:
            return "the file is"
        return "the first file is" if command_id in WITH_SOME else "all files are"

    def _nothing_to_close(self) -> bool:
        if self._files is not None:
            return True
        session = self.store.session
        on_lanes = isinstance(self.app.main.focused, LaneCanvas) and not self.app.maximised
        dropped = session.range is None and session.selection is None
        return on_lanes and dropped and session.panel == "details"

    def takes_panel(self, name: str) -> bool:
        """Say of tables that they wait."""
        if name in PANELS:
            return False
        self.app.say("tables wait for the other files")
        return True

    def _ask_to_stop(self) -> None:
        """Ask whether to stop, and quit on yes."""

        def answered(stop: bool | None) -> None:
            if stop:
                self.app.exit(return_code=INTERRUPTED)
            else:
                self.app.say("indexing continues")

        self.app.push_screen(StopQuestion(), answered)
