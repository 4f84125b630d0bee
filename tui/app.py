"""The viewer: it wires store, controllers and widgets together, and does nothing itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import BindingType
from textual.filter import LineFilter
from textual.screen import Screen

from tracelane.core.base.errors import DamagedIndexError
from tracelane.core.base.private import config_path
from tracelane.core.query.views import SliceId
from tracelane.core.trace import Trace

from .config import DARK_THEME, Config, read_config
from .controllers.clocks import ClockController
from .controllers.comparing import CompareController
from .controllers.counters import CounterController, QueryController
from .controllers.drawing import DrawingController
from .controllers.findings import FindingsController
from .controllers.hits import HitsController
from .controllers.marks import MarkController
from .controllers.navigation import MouseController, NavigationController
from .controllers.overview import OverviewController
from .controllers.panels import PanelController
from .controllers.path import PathController
from .controllers.prompts import PromptController
from .controllers.reloading import ReloadController
from .controllers.saving import SaveController
from .controllers.searching import SearchController
from .controllers.selection import SelectionController
from .controllers.tables import TableController
from .draw.glyphs import ASCII as ASCII_GLYPHS
from .draw.header import HeaderPiece
from .keys import bound_keys, unbound_message
from .lanes.look import AsciiFilter, glyphs
from .session import Session
from .session_store import SessionStore, SourceState, ViewerState
from .stage import Controller, Stage
from .terminal.memory import MemoryTrimmer
from .text.overview import FactBlock
from .themes import THEMES
from .view_state import PendingFiles, Prepared

ASCII = AsciiFilter()


class TracelaneApp(Stage):
    """Shows a trace, or files that are still being indexed and then their trace."""

    TITLE = "tracelane"
    ENABLE_COMMAND_PALETTE = False  # its key is in our own table, where it can be remapped
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(
        self,
        source: Trace | Prepared | PendingFiles,
        session: Session | None = None,
        config: Config | None = None,
    ) -> None:
        """Show a trace, alone as a session sees it, or as at first; settings come from the user's file."""
        if isinstance(source, PendingFiles):
            store = SessionStore(source.so_far(), SourceState.READING)
        else:
            store = SessionStore(source if isinstance(source, Prepared) else Prepared(source, session))
        super().__init__(store, read_config(config_path()) if config is None else config)
        self.searching = SearchController(self)
        self.panels = PanelController(self)
        self.marking = MarkController(self)
        self.selection = SelectionController(self)
        self.findings = FindingsController(self, self.panels, self.selection)
        self.overviews = OverviewController(self, self.panels, self.findings)
        self.drawing = DrawingController(self, self.panels, self.overviews)
        self.paths = PathController(self, self.drawing)
        self.tables = TableController(self, self.panels)
        self.queries = QueryController(self, self.panels)
        self.hit_list = HitsController(self, self.panels, self.searching)
        self.counters = CounterController(self)
        self.clocks = ClockController(self)
        self.mouse = MouseController(self)
        self.reloading = ReloadController(self)
        self.saving = SaveController(self)
        self.navigation = NavigationController(self, self.searching, self.panels, self.queries)
        self.prompts = PromptController(self)
        self.comparing = CompareController(self)
        # Of two that carry out a command the later one does: findings before what lies at the cursor.
        for controller in [one for one in vars(self).values() if isinstance(one, Controller)]:
            self.handlers.update(controller.commands())
            self.verbs.update(controller.verbs())
            self.fillers.update(controller.fillers())
            self.followed.update(controller.followed())
            for heard, hearer in controller.hearers().items():
                self.hearers.setdefault(heard, []).append(hearer)
        store.follow(self._state_changed, self.drawing.fitted)
        if isinstance(source, PendingFiles):
            from .controllers.gathering import GatheringController  # a trace that is there needs none of it

            self.opening = GatheringController(self, self.drawing, source)
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = self.config.theme if self.config.theme in self.available_themes else DARK_THEME
        self._bound_keys = bound_keys(self.config.keys)
        if self.config.keys:
            self.set_keymap(dict(self.config.keys))

    def _state_changed(self, before: ViewerState, now: ViewerState) -> None:
        """Bring up to date what depends on what has changed."""
        if now.trace is not before.trace:
            self.reloading.attach()
            if now.own_trace is not before.own_trace:
                self.marking.read()
        if not self.composed:
            return
        if now.session.clocks != before.session.clocks:
            self.counters.follow_clocks()
        if now.trace is not before.trace:
            self.drawing.draw_trace()
        elif now.session != before.session:
            self.drawing.draw_session(before.session, now.session)
            self.findings.offer()
        elif now.marks != before.marks:
            self.drawing.redraw()
        if now.search is not before.search:
            self.searching.show_hits()
            self.drawing.fill_header()
            self.hit_list.follow()
        self.paths.follow()

    def header_notes(self) -> list[HeaderPiece]:
        return self.reloading.header_notes() + self.searching.header_notes()

    def header_changed(self) -> None:
        self.drawing.fill_header()

    def hint(self) -> Text:
        return self.findings.banner() if self.opening is None else self.opening.hint()

    def overview(self) -> Sequence[FactBlock]:
        return self.overviews.blocks() if self.opening is None else ()

    def notices_changed(self) -> None:
        self.drawing.fill_footer()

    def escape_text(self) -> str:
        return self.navigation.escape_text()

    def search_again(self) -> None:
        self.searching.search_again()

    def trace_ready(self) -> None:
        for begin in (
            self.reloading.begin_watch,
            self.findings.look_for_findings,
            self.counters.compute_wanted_lanes,
            self.drawing.look_at_busy_shares,
            self.drawing.look_for_absent,
        ):
            self.call_after_refresh(begin)

    def get_default_screen(self) -> Screen[None]:
        return self.drawing.main_screen()

    def on_mount(self) -> None:
        """Begin to watch files that are being read, and memory."""
        MemoryTrimmer().begin(self)
        if self.opening is not None:
            self.opening.begin()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Draw all in ASCII where the locale has nothing else."""
        filters = super().get_line_filters()
        return [*filters, ASCII] if glyphs() is ASCII_GLYPHS else filters

    @property
    def session(self) -> Session:
        return self.store.session

    @property
    def trace(self) -> Trace:
        return self.store.trace

    def report_error(self, error: Exception) -> None:
        """Open the trace anew where its index is damaged; show any other error."""
        if not (isinstance(error, DamagedIndexError) and self.reloading.reopen(error)):
            super().report_error(error)

    def on_unmount(self) -> None:
        self.reloading.close()

    def watch_maximised(self) -> None:
        self.drawing.maximise()

    def watch_theme(self, theme_name: str) -> None:
        self.drawing.draw_theme()

    # -- commands -----------------------------------------------------------------------------------------

    def action_jump(self, source: int, ordinal: int) -> None:
        """Select a slice by its identity, from a link."""
        self.jump(SliceId(source, ordinal))

    def action_panel(self, name: str) -> None:
        if self.opening is None or not self.opening.takes_panel(name):
            self.panels.show(name)

    def action_command(self, command_id: str) -> None:
        self.run_command(command_id)

    def on_key(self, event: events.Key) -> None:
        """Say so when a key does nothing here."""
        if self.screen is not self.main or event.key in self._bound_keys:
            return
        if event.key not in self.screen.active_bindings:  # those that a part has of its own, asked one by one
            self.say(unbound_message(event.key, event.character))
