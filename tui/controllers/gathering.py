"""Files that are being indexed, one or many: those that are there are drawn, others say how far they are."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic, thread_time
from typing import Final, NamedTuple

from rich.text import Text
from textual import events

from ..actions import view
from ..actions.scene import History
from ..actions.table import MOVES
from ..commands.table import command
from ..keys import footer_pairs
from ..lanes.canvas import LaneCanvas
from ..lanes.strips import Minimap
from ..screens.files import StopQuestion, file_texts, header_pieces, one_line
from ..session import Session
from ..session_store import SourceState
from ..stage import Controller, Stage
from ..text.progress import StagePace
from ..textual_inside import AltKey
from ..view_state import PendingFiles, Prepared, carried, history_over, scroll_kept, session_over, sources_now
from ..widgets.prompt import Prompt
from .drawing import DrawingController

TICK_S = 0.1
INTERRUPTED = 130
"""The exit code of a shell's Ctrl+C."""
INTERVAL_S = 0.5
"""Files that have come are shown this often at most, and that takes at most a twentieth of the time."""
SHARE = 20
KEYS_BEFORE: Final = {"help": "help", "close-or-quit": "quit", "stop-indexing": "stop"}
"""Commands that the footer shows while no file is there, as it calls them."""
TELL_S = 0.25
"""Seconds between two updates of the progress: drawing a line takes time from the processes that read."""
WITHOUT_TRACE: Final = frozenset(
    {"palette", "help", "theme", "redraw", "suspend", "quit", "close-or-quit", "stop-indexing"}
)
"""Commands of the viewer that need no trace."""
WITH_SOME: Final = WITHOUT_TRACE | {
    *MOVES,
    *("details", "launch", "kernel", "source", "copy", "flows", "hidden", "back", "forward"),
    *("panel-details", "legend", "maximise", "other-pane", "close"),
}
"""Commands that need no more than what is on the screen, and so work before all files are there."""
ASKING: Final = ("search", "command-line", "go-to", "compare")
"""Commands that open a line to type in."""
PANELS: Final = ("details", "legend")
WAITING: Final = ("only", "search", "filter", "steps", "baseline", "clocks", "zone", "colour_by")
"""What no key changes in a session before all files are there: options or the last time ask for it."""


class EarlyLine(NamedTuple):
    """What was typed for a command that asks for a line, before it could ask."""

    command_id: str
    text: str = ""
    is_whole: bool = False  # Enter came


class GatheringController(Controller):
    """Shows the files that are there; what is looked at stays in place when others come."""

    def __init__(self, app: Stage, drawing: DrawingController, files: PendingFiles) -> None:
        super().__init__(app)
        self.drawing = drawing
        self.panels = drawing.panels
        self._pending, self._gathering = files, files.gathering
        self._prepared: Prepared | None = None
        self._is_complete = False
        self._pace = StagePace()
        self._grown_at: float | None = None  # thread time when files joined those on show, not yet drawn
        self._next = 0.0
        self._texts: Mapping[int, str] = {}  # how far each file was when that was drawn last
        self._next_text_at = 0.0
        self._early_line: EarlyLine | None = None

    def begin(self) -> None:
        self._timer = self.app.set_interval(TICK_S, self._watch_files)

    # -- what comes -----------------------------------------------------------------------------------------

    def _watch_files(self) -> None:
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
        if self.app.composed and self.app.screen is self.app.main:
            if self._prepared is not None:
                self._show(self._prepared)
            elif self._may_grow and self._has_news:
                self._grown_at = thread_time()
                self._show(self._pending.so_far())
        self._tell()

    @property
    def _has_news(self) -> bool:
        files = self._gathering
        return not self._is_complete and bool(files.ready) and files.missing != self.store.trace.missing

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
            prepared = self._pending.prepare()
        except Exception as error:
            self.app.tell(self._fail, error)
        else:
            self.app.tell(self._have_prepared, prepared)

    def _have_prepared(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._watch_files()

    def _fail(self, error: Exception) -> None:
        self.store.source_is(SourceState.FAILED)
        self.app.trouble = error
        self.app.exit()

    def _show(self, prepared: Prepared) -> None:
        """Show the trace of more files, or of all, in place of the one on the screen. A view that the user
        has moved stays where it is; any other is that in which such a trace opens.
        """
        trace, store, seen = prepared.trace, self.store, self.store.session
        session = prepared.session or view.first_session(trace, seen.viewport.width)
        if is_all := prepared is self._prepared:
            store.source_is(SourceState.READY)
            self.app.opening = None
            self._timer.stop()
        else:
            session = session._replace(panel=seen.panel)
            self._next_text_at = 0.0
        before, layout = carried(store.trace, seen, "", store.now.history), store.layout_now
        own = session_over(before, trace) if store.now.has_moved and self._has_lanes else None
        if own is None:
            had_marks = bool(store.marks_seen)
            session = self.drawing.fit_of(trace, session).session  # or all would be laid out and drawn twice
            store.open(prepared, session)
            if bool(store.marks_seen) != had_marks:
                session = self.drawing.fit().session
        else:
            options = {name: getattr(session, name) for name in WAITING}
            session, views = own._replace(**options), history_over(before, trace)
            past, future = ([one._replace(**options) for one in each] for each in (views.past, views.future))
            history = History((*prepared.history.past, *past), tuple(future))
            store.open(prepared._replace(history=history), session)
            lines, sources = store.now.lane_lines, sources_now(before, trace)
            session = session._replace(scroll=scroll_kept(layout, seen, store.layout_now, lines, sources))
        self._take(view.keep_cursor(session))
        if is_all:
            self.panels.arguments.clear()
            self.drawing.know_missing({})
            self.drawing.fill()
            self._ask_early_line()

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
        if self.app.composed:
            self.drawing.fill_header()
            texts = file_texts(self._gathering)
            if texts != self._texts:
                self._texts = texts
                self.drawing.know_missing(texts)
                self.panels.panel_soon()

    def keys(self) -> list[tuple[str, str]]:
        """Return what the footer shows while no file is there; nothing once one is."""
        return [] if self._has_lanes else footer_pairs(KEYS_BEFORE, self.app.config.keys)

    def header(self) -> tuple[Text, ...]:
        width = self.app.size.width
        return header_pieces(
            self._gathering, self._pace, monotonic(), self._pending.title, width, self._is_complete
        )

    def hint(self) -> Text:
        """Return how far the other files are."""
        return one_line(self._gathering)

    # -- commands -------------------------------------------------------------------------------------------

    @property
    def _has_lanes(self) -> bool:
        return bool(self.store.trace.lanes)

    def takes(self, command_id: str) -> bool:
        """Answer what needs all files: that they are not there yet."""
        if command_id == "stop-indexing":
            self._ask_to_stop()
        elif command_id == "close" and self._nothing_to_close():
            self.app.say(f"indexing continues: {command('stop-indexing').keys_text} stops it")
        elif command_id in (WITH_SOME if self._has_lanes else WITHOUT_TRACE):
            return False
        else:
            if command_id in ASKING:
                self._early_line = EarlyLine(command_id)
            self.app.say(self._waits(command_id))
        return True

    def takes_key(self, key: events.Key) -> bool:
        """Take what is typed after the key of a command that asks for a line: it asks once the files are
        there, with this in its line, and answers at once if Enter came. Esc drops it.
        """
        line = self._early_line
        if line is None or line.is_whole or self.app.screen is not self.app.main:
            return False
        if key.key == "escape" or isinstance(key, AltKey):  # Esc and the next key, in one packet
            self._early_line = None
            self.app.say("")
            return key.key == "escape"
        if key.key == "backspace":
            line = line._replace(text=line.text[:-1])
        elif key.key == "enter":
            line = line._replace(is_whole=True)
        elif key.is_printable and key.character:
            line = line._replace(text=line.text + key.character)
        else:
            return False
        self._early_line = line
        text = f": {line.text}" if line.text else ""
        self.app.say(f"{self._waits(line.command_id)}{text}")
        return True

    def _ask_early_line(self) -> None:
        """Ask for the line that was typed too early."""
        line, self._early_line = self._early_line, None
        if line is not None:
            self.app.run_command(line.command_id)
            prompt = self.app.main.query_one(Prompt)
            if prompt.is_open:
                prompt.fill(line.text)
                if line.is_whole:
                    self.app.post_message(events.Key("enter", "\r"))

    def _waits(self, command_id: str) -> str:
        return f"{command(command_id).title}: when {self._awaited(command_id)} there"

    def _awaited(self, command_id: str) -> str:
        if len(self._gathering.members) == 1:
            return "the file is"
        return "the first file is" if command_id in WITH_SOME else "all files are"

    def _nothing_to_close(self) -> bool:
        session = self.store.session
        on_lanes = isinstance(self.app.main.focused, LaneCanvas) and not self.app.maximised
        dropped = session.range is None and session.selection is None
        return on_lanes and dropped and session.panel == "details"

    def takes_panel(self, name: str) -> bool:
        """Say of tables that they wait."""
        if name in PANELS:
            return False
        self.app.say(f"tables wait until {self._awaited(name)} there")
        return True

    def _ask_to_stop(self) -> None:
        """Ask whether to stop, and quit on yes."""

        def answered(stop: bool | None) -> None:
            if stop:
                self.app.exit(return_code=INTERRUPTED)
            else:
                self.app.say("indexing continues")

        self.app.push_screen(StopQuestion(), answered)
