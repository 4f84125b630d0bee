"""The screen while a trace is being indexed: what was read so far, coarsely, and how far the work is."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import Static

from tracelane.core.base.errors import CacheError
from tracelane.core.base.safe_text import safe
from tracelane.core.index.indexing import Indexing
from tracelane.core.query.sketch import Sketch

from ..actions import select, view
from ..actions.refusal import Refusal
from ..commands.command import key_text
from ..commands.table import COMMANDS, command
from ..draw.labels import fit_middle
from ..draw.sketch_lines import line_of, moved_focus, scroll_within
from ..keys import keys_of
from ..lanes import messages
from ..lanes.look import glyphs
from ..lanes.sketch_canvas import SketchCanvas
from ..session import Session
from ..text.progress import StagePace, drawn_bar
from ..widgets.bars import Bar, Footer, MessageLine
from .answer import AnswerScreen
from .main import bindings

TICK_S = 0.1
FIRST_TICK_S = 0.02
"""Until there is something to see."""
BAR_CELLS = 16
INTERRUPTED = 130
"""The exit code of a shell's Ctrl+C."""
QUESTION = "stop indexing and quit? y/n"

TIME_MOVES: Final[Mapping[str, Callable[[view.Timeline, Session], Session]]] = {
    "zoom-in": view.zoom_in,
    "zoom-out": view.zoom_out,
    "zoom-in-far": view.zoom_in_far,
    "zoom-out-far": view.zoom_out_far,
    "pan-left": view.pan_left,
    "pan-right": view.pan_right,
    "page-left": view.page_left,
    "page-right": view.page_right,
    "trace-start": view.trace_start,
    "trace-end": view.trace_end,
    "previous": lambda sketch, session: select.cursor_moved(sketch, session, -1),
    "next": lambda sketch, session: select.cursor_moved(sketch, session, 1),
    "reset": view.reset,
}
LANE_MOVES: Final[Mapping[str, int]] = {"up": -1, "down": 1, "lane-up": -1, "lane-down": 1}
WITHOUT_TRACE: Final = frozenset(
    {"palette", "help", "theme", "redraw", "suspend", "quit", "close-or-quit", "stop-indexing"}
)
"""Commands of the viewer that need no trace."""
PAGES: Final[Mapping[str, int]] = {"page-up": -1, "page-down": 1}


def opening_keys(
    remapped: Mapping[str, str], commands: Collection[str] = (*TIME_MOVES, *WITHOUT_TRACE)
) -> list[tuple[str, str]]:
    """Return (first key, short title) of those commands that the footer shows while there is no index."""
    titles = {entry.id: entry.footer for entry in COMMANDS if entry.id in commands}
    titles["stop-indexing"] = "stop"
    keys = {name: keys_of(command(name), remapped) for name, title in titles.items() if title}
    return [(key_text(own[0]), titles[name]) for name, own in keys.items() if own]


class StopQuestion(AnswerScreen[bool]):
    """One line that asks; y says yes, every other key no."""

    DEFAULT_CSS = """
    StopQuestion { align: left bottom; background: transparent; }
    StopQuestion > Static { width: 1fr; height: 1; background: $footer-background; color: $text-warning; }
    """

    def compose(self) -> ComposeResult:
        """Show the question in the footer's place."""
        yield Static(QUESTION, markup=False)

    def on_key(self, event: events.Key) -> None:
        """Take the answer."""
        event.stop()
        self.dismiss(event.key in ("y", "Y"))


class OpeningScreen(Screen[None]):
    """Header with progress, minimap, ruler, lanes, footer; ends by saying how indexing ended."""

    DEFAULT_CSS = """
    OpeningScreen { layout: vertical; overflow: hidden; layers: base above; }
    OpeningScreen > #header { background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings()
    AUTO_FOCUS = "SketchCanvas"

    def __init__(
        self,
        indexing: Indexing,
        title: str,
        keys: list[tuple[str, str]],
        end: Callable[[Exception | None], None],
        begin: Session | None = None,
    ) -> None:
        """Watch an index being built; `title` names the trace, `keys` are what the footer shows. All that
        is known is shown, or the time window and cursor of `begin`. `end` is called once: when the index is
        there, or with the error where there will be none.
        """
        super().__init__()
        self.session = begin or Session(view.view_of(0, 1, 1), 0)
        self.sketch = Sketch.empty()
        self.moved = begin is not None
        """Whether the time window or the cursor was moved by hand."""
        self._indexing = indexing
        self._title = safe(title)
        self._keys = keys
        self._picture: Path | None = None  # the one that is drawn
        self._pace = StagePace()
        self._ended = False
        self._end = end

    def compose(self) -> ComposeResult:
        """Put the parts one below the other."""
        yield Bar(id="header")
        yield SketchCanvas()
        yield Footer(self._keys, id="footer")
        yield MessageLine()

    def on_mount(self) -> None:
        """Begin to watch."""
        self._timer = self.set_interval(FIRST_TICK_S, self._watch)
        self._watch()

    def let_go(self) -> None:
        """Hold nothing any more: the trace is shown elsewhere."""
        self._timer.stop()
        self.sketch = Sketch.empty()
        self._show()

    @property
    def canvas(self) -> SketchCanvas:
        """The lane area."""
        return self.query_one(SketchCanvas)

    # -- what the process tells -----------------------------------------------------------------------------

    def _watch(self) -> None:
        if self._ended:
            return
        try:
            committed = self._indexing.poll()
        except Exception as error:
            self._ended = True
            self._end(error)
            return
        if committed:
            # A list or a question on top is answered first: the screen below it must not go away.
            if self.app.screen is self:
                self._ended = True
                self._end(None)
            return
        if self._indexing.picture != self._picture:
            if self._picture is None:
                self._timer.stop()
                self._timer = self.set_interval(TICK_S, self._watch)
            self._picture = self._indexing.picture
            self._draw()
        self._fill_header()

    def _draw(self) -> None:
        if self._picture is None:
            return
        try:
            self.sketch = Sketch.read(self._picture)
        except CacheError:
            return  # removed meanwhile: the next one is announced
        if not self.moved:
            self._fit()
        self._show()

    def _fit(self) -> None:
        """Show all that is known, the cursor in the middle."""
        viewport = view.view_of(*self.sketch.opening_span, self.session.viewport.width)
        self.session = replace(self.session, viewport=viewport, cursor=viewport.edge(viewport.width // 2))

    def _show(self) -> None:
        self.canvas.show(self.sketch, self.session)

    def _fill_header(self) -> None:
        progress, source = self._indexing.progress, self._indexing.source
        now = time.monotonic()
        self._pace.begins(progress, now)
        words = self._pace.words(progress, now)
        share = progress.share
        bar = "" if share is None else drawn_bar(share, BAR_CELLS, "#-" if glyphs().ascii else "█░") + " "
        if progress.stage != "reading":
            words, bar = words[:1], ""
        stage = "indexing" if progress.stage == "reading" else "building the index"
        name = fit_middle(self._title, max(12, self.size.width // 3), glyphs().ellipsis).rstrip()
        pieces = [
            Text(f" {name}", "bold"),
            Text(" provisional ", "bold reverse"),
            Text(f"{stage} {bar}{words[0] if words else ''}".rstrip()),
            *([] if source.seekable else [Text("compressed: in file order")]),
            *map(Text, words[1:]),
            Text("coarse, without labels"),
        ]
        self.query_one("#header", Bar).pieces = tuple(pieces)

    # -- commands -------------------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Show a message until the next command."""
        self.query_one(MessageLine).answer = safe(text)

    def run_command(self, command_id: str) -> bool:
        """Do a command that needs no index; False where it is none of these."""
        self.say("")
        try:
            if command_id in TIME_MOVES:
                self._need_lanes()
                self._move(TIME_MOVES[command_id](self.sketch, self.session))
                self.moved = self.moved or command_id != "reset"
            elif command_id in LANE_MOVES:
                self._need_lanes()
                self._go_to_lane(LANE_MOVES[command_id])
            elif command_id in PAGES:
                self._scroll(PAGES[command_id] * max(1, self.canvas.lane_lines - 2))
            elif command_id == "close":
                self.say(f"indexing goes on: {command('stop-indexing').keys_text} stops it")
            else:
                return False
        except Refusal as refusal:
            self.say(str(refusal))
        return True

    def ask_to_stop(self) -> None:
        """Ask whether to stop, and quit on yes."""

        def answered(stop: bool | None) -> None:
            if stop:
                self.app.exit(return_code=INTERRUPTED)
            else:
                self.say("indexing goes on")

        self.app.push_screen(StopQuestion(), answered)

    def _need_lanes(self) -> None:
        if not self.sketch.lanes:
            raise Refusal("nothing has been read yet")

    def _move(self, session: Session) -> None:
        self.session = session
        self._show()

    def _go_to_lane(self, by: int) -> None:
        lines, height = self.canvas.lines, self.canvas.lane_lines
        focus = moved_focus(lines, self.session.focus, by)
        y = line_of(lines, focus) or 0
        scroll = min(max(self.session.scroll, y - height + 1), max(0, y - 1))
        self._move(replace(self.session, focus=focus, scroll=scroll_within(lines, scroll, height)))

    def _scroll(self, by: int) -> None:
        canvas = self.canvas
        scroll = scroll_within(canvas.lines, self.session.scroll + by, canvas.lane_lines)
        self._move(replace(self.session, scroll=scroll))

    # -- mouse, size ----------------------------------------------------------------------------------------

    @on(SketchCanvas.Resized)
    def _resized(self, message: SketchCanvas.Resized) -> None:
        message.stop()
        viewport = self.session.viewport.resized(message.cells)
        self.session = replace(self.session, viewport=viewport)
        if not self.moved:
            self._fit()
        self._show()

    @on(messages.Zoomed)
    def _zoomed(self, message: messages.Zoomed) -> None:
        message.stop()
        self._by_mouse(lambda: view.zoomed(self.sketch, self.session, message.factor, message.at))

    @on(messages.Panned)
    def _panned(self, message: messages.Panned) -> None:
        message.stop()
        self._by_mouse(lambda: view.panned(self.sketch, self.session, message.share))

    @on(messages.TimePressed)
    def _time_pressed(self, message: messages.TimePressed) -> None:
        message.stop()
        self._by_mouse(lambda: view.keep_cursor(replace(self.session, cursor=message.at)))

    @on(messages.Scrolled)
    def _scrolled(self, message: messages.Scrolled) -> None:
        message.stop()
        self._scroll(message.lines)

    def _by_mouse(self, move: Callable[[], Session]) -> None:
        self.say("")
        try:
            self._need_lanes()
            self._move(move())
            self.moved = True
        except Refusal as refusal:
            self.say(str(refusal))
