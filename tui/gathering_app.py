"""The viewer of several files that are still being indexed: those that are there, the others as they come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import monotonic, thread_time
from typing import Final

from rich.text import Text
from textual.screen import Screen

from tracelane.core.index.gathering import Gathering
from tracelane.core.trace import Trace
from tracelane.core.trace.partial import PartialTrace

from .actions import view
from .actions.table import MOVES
from .app import TracelaneApp
from .carried import Carried, session_over
from .commands import command
from .config import Config
from .gathering_text import failure_of, file_lines, header_pieces, one_line
from .lanes import messages
from .lanes.canvas import LaneCanvas
from .lanes.minimap import Minimap
from .prepared import Prepared
from .screens.files import FilesScreen
from .screens.opening import INTERRUPTED, TICK_S, WITHOUT_TRACE, StopQuestion, opening_keys
from .session import Session
from .settling import scroll_kept, settled, sources_in
from .text.progress import StagePace
from .widgets.bars import Bar

LINES_FROM = 3
"""In a panel of so many lines each file has one."""
LANES = "lanes"
"""The mode in which lanes are shown, of some files and then of all."""
INTERVAL_S = 0.5
"""Files that have come are shown this often at most, and that takes at most a tenth of the time."""
SHARE = 10
TELL_S = 0.25
"""How far the work is gets told this often: every line that changes costs the processes time."""
WITH_SOME: Final = WITHOUT_TRACE | {
    *MOVES,
    "details",
    "launch",
    "kernel",
    "source",
    "copy",
    "flows",
    "hidden",
    "back",
    "forward",
    "panel-details",
    "legend",
    "maximise",
    "other-pane",
    "close",
}
"""Commands whose answer depends on nothing but what is seen."""
PANELS: Final = ("details", "legend")


class GatheringApp(TracelaneApp):
    """Shows the files that are there; what is looked at stays in place when others come."""

    def __init__(
        self,
        gathering: Gathering,
        title: str,
        prepare: Callable[[], Prepared],
        config: Config | None = None,
        before: Carried | None = None,
    ) -> None:
        """Watch files being indexed; `prepare` makes the trace of all when they are there. With `before`
        the view is what it was when they were shown the last time.
        """
        super().__init__(Trace(()), Session(view.view_of(0, 1, 1), 0), config)
        self.has_all = False
        """Whether the trace on show is that of all files."""
        self.handlers |= {"stop-indexing": self.stop_indexing, "close-or-quit": self.close_or_quit}
        self.panels.hint = self._hint
        self._gathering = gathering
        self._title = title
        self._prepare = prepare
        self._prepared: Prepared | None = None
        self._over = False
        self._before = before
        self._pace = StagePace()
        self._shown = 0  # files of which the trace on show knows what has become
        self._grown_at: float | None = None  # thread time when files joined those on show, not yet drawn
        self._next = 0.0
        self._has_own_view = before is not None
        self._work_told = Text()
        self._next_told = 0.0

    def get_default_screen(self) -> Screen[None]:
        """Make the first screen."""
        keys = opening_keys(self.config.keys, WITHOUT_TRACE)
        return FilesScreen(keys, self._header(), file_lines(self._gathering))

    def on_mount(self) -> None:
        """Begin to watch."""
        self._timer = self.set_interval(TICK_S, self._watch_files)

    # -- what comes -----------------------------------------------------------------------------------------

    @property
    def _files(self) -> FilesScreen | None:
        """The screen that lists files, None once there are lanes."""
        screen = self.screen_stack[0] if self.screen_stack else None
        return screen if isinstance(screen, FilesScreen) else None

    async def _watch_files(self) -> None:
        leaving = self.return_code is not None or not self.screen_stack
        if self.has_all or leaving:
            return
        if not self._over:
            try:
                self._over = self._gathering.poll()
            except Exception as error:
                self._fail(error)
                return
            if self._over:
                self._put_together()
        # A list or a question on top is answered first: what is below it must not change.
        if self.screen is self.main:
            if self._prepared is not None:
                await self._settle(self._prepared)
            elif self._may_grow and self._has_news and not self._over:
                self._grown_at = thread_time()
                await self._grow()
        self._tell()

    @property
    def _has_news(self) -> bool:
        gathering = self._gathering
        return bool(gathering.ready) and len(gathering.ready) + len(gathering.failed) > self._shown

    @property
    def _may_grow(self) -> bool:
        """Whether enough time has passed since files joined the last time, for what that and drawing took."""
        now = monotonic()
        if self._grown_at is not None:
            self._next = now + max(INTERVAL_S - TICK_S, SHARE * (thread_time() - self._grown_at))
            self._grown_at = None
        return now >= self._next

    def _put_together(self) -> None:
        """Make the trace of all files, away from the screen."""
        self.jobs.start(self._prepare_all, "opening")

    def _prepare_all(self) -> None:
        try:
            prepared = self._prepare()
        except Exception as error:
            self.call_from_thread(self._fail, error)
        else:
            self.call_from_thread(self._have_prepared, prepared)

    def _have_prepared(self, prepared: Prepared) -> None:
        self._prepared = prepared

    def _fail(self, error: Exception) -> None:
        self.trouble = error
        self.exit()

    async def _grow(self) -> None:
        """Show what has come."""
        gathering = self._gathering
        ready = list(gathering.ready)
        ranks = (place for place in ready if gathering.members[place].rank is not None)
        missing = {
            place: failure_of(gathering, place) or "not indexed yet"
            for place in range(len(gathering.members))
            if place not in ready
        }
        first = next(ranks, ready[0])
        before = self.trace if isinstance(self.trace, PartialTrace) else None
        trace = PartialTrace(gathering.indexes, gathering.members, missing, first, before)
        if self._files is not None:
            self.open_trace(Prepared(trace), self._first_view(trace))
            await self._show_lanes()
        else:
            layout, session = self.store.layout_now, replace(self.session, clocks=trace.clocks)
            self.store.trace = trace
            self.reloading.verification.attach(trace.indexes)
            if not self._moved:
                fresh = view.first_session(trace, session.viewport.width)
                session = replace(session, viewport=fresh.viewport, cursor=fresh.cursor)
            self._take(
                replace(
                    session, scroll=scroll_kept(layout, session, self.store.layout_now, self.store.lane_lines)
                )
            )
        self._shown = len(ready) + len(gathering.failed)

    def _first_view(self, trace: PartialTrace) -> Session:
        found = None if self._before is None else session_over(self._before, trace)
        if found is None:
            self._has_own_view = False
            return view.first_session(trace, self.size.width)
        # Tables and searches wait for the other files.
        return replace(found, panel="details", search="", filter="", only="")

    async def _settle(self, prepared: Prepared) -> None:
        """Show the trace of all files in place of what was there of it."""
        trace, partial = prepared.trace, self.trace
        session = prepared.session or view.first_session(trace, self.session.viewport.width)
        self.has_all = True
        self._timer.stop()
        self.notes = tuple(prepared.notes)
        if not isinstance(partial, PartialTrace):
            self.open_trace(prepared, session)
            await self._show_lanes()
            return
        before, seen = self.store.layout_now, self.session
        lines = self.store.lane_lines
        if self._moved:
            session = settled(session, seen, partial, trace)
        self.open_trace(prepared, session)
        if self._moved:
            places = sources_in(partial, trace)
            session = replace(session, scroll=scroll_kept(before, seen, self.store.layout_now, lines, places))
        else:
            self._roomed_for = None  # it opens as it would have without any waiting
        self.panels.arguments.clear()
        self._take(session)
        self._fill()
        self.post_message(messages.TimeAreaResized(seen.viewport.width, lines))

    async def _show_lanes(self) -> None:
        # The first screen of a stack cannot be exchanged: the lanes get a stack of their own.
        self.add_mode(LANES, self.main_screen)
        await self.switch_mode(LANES)

    def _take(self, session: Session) -> None:
        """Draw the trace on show anew, in this session."""
        self.store.place(session)
        self.store.announce_trace()
        self.main.query_one(Minimap).show(self.trace, session)
        self.panels.panel_soon()

    # -- what is told ---------------------------------------------------------------------------------------

    def _tell(self) -> None:
        now = monotonic()
        if self.has_all or now < self._next_told:
            return
        self._next_told = now + TELL_S
        files = self._files
        if files is not None:
            if files.is_mounted:
                files.show(self._header(), file_lines(self._gathering))
        elif self.composed:
            self.fill_header()
            if self._work_told != self._work:
                self.panels.panel_soon()

    def _header(self) -> tuple[Text, ...]:
        width = self.size.width
        return header_pieces(self._gathering, self._pace, monotonic(), self._title, width, self._over)

    def fill_header(self) -> None:
        if self.has_all:
            super().fill_header()
        else:
            for bar in self.main.query("#header").results(Bar):
                bar.pieces = self._header()

    @property
    def _work(self) -> Text:
        """What is going on with each file that is not there."""
        if any(pane.size.height >= LINES_FROM for pane in self.main.query("#details")):
            return Text("\n").join(file_lines(self._gathering))
        return one_line(self._gathering)

    def _hint(self) -> Text:
        """Return what the details say where nothing is selected: how far the other files are."""
        if self.has_all:
            return self.findings.banner()
        self._work_told = self._work
        return self._work_told

    def say(self, text: str) -> None:
        """Show a message in the footer until the next command."""
        files = self._files
        if files is None:
            super().say(text)
        elif files.is_mounted:
            files.say(text)

    # -- commands -------------------------------------------------------------------------------------------

    @property
    def _moved(self) -> bool:
        """Whether the view stays where it is when files come."""
        return self._has_own_view or self.store.has_moved

    def run_command(self, command_id: str) -> None:
        """Do a command; while files are missing, say so of those that need all."""
        if self.has_all:
            super().run_command(command_id)
        elif command_id == "close" and self._nothing_to_close():
            self.say(f"indexing goes on: {command('stop-indexing').shown_keys} stops it")
        elif command_id in (WITHOUT_TRACE if self._files is not None else WITH_SOME):
            super().run_command(command_id)
        else:
            when = "the first file is" if command_id in WITH_SOME else "all files are"
            self.say(f"{command(command_id).title}: when {when} there")

    def _nothing_to_close(self) -> bool:
        if self._files is not None:
            return True
        session = self.session
        on_lanes = isinstance(self.main.focused, LaneCanvas) and not self.maximised
        dropped = session.range is None and session.selection is None
        return on_lanes and dropped and session.panel == "details"

    def action_panel(self, name: str) -> None:
        """Show a panel, from a click on its tab."""
        if self.has_all or name in PANELS:
            super().action_panel(name)
        else:
            self.say("tables wait for the other files")

    def stop_indexing(self) -> None:
        """Ask whether to stop, and quit on yes."""
        if self.has_all:
            self.navigation.do_stop_indexing()
            return

        def answered(stop: bool | None) -> None:
            if stop:
                self.exit(return_code=INTERRUPTED)
            else:
                self.say("indexing goes on")

        self.push_screen(StopQuestion(), answered)

    def close_or_quit(self) -> None:
        """Close what is on top; if nothing is, quit."""
        if self._files is not None:
            self.exit()
        else:
            self.navigation.do_close_or_quit()

    def look_into_trace(self) -> None:
        """Look for findings and after the files once all are there."""
        if self.has_all:
            super().look_into_trace()
