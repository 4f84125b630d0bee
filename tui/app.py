"""The viewer: it holds the Session, and every key replaces it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import events, on
from textual.binding import BindingType
from textual.filter import LineFilter
from textual.geometry import Size
from textual.screen import Screen

from tracelane.core.base.errors import DamagedIndexError
from tracelane.core.base.safe_text import safe
from tracelane.core.base.settings import config_path
from tracelane.core.base.units import format_count, format_ns
from tracelane.core.overlay.counters import files_of
from tracelane.core.trace import Trace

from .actions import focus, view
from .actions.logs import on_log
from .config import DARK_THEME, Config, read_config
from .controllers.counters import CounterController
from .controllers.cutting import CutController
from .controllers.device_clocks import DeviceClockController
from .controllers.findings import FindingsController
from .controllers.hits import HitsController
from .controllers.logs import LogController
from .controllers.marks import MarkController
from .controllers.mouse import MouseController
from .controllers.navigation import NavigationController
from .controllers.panels import PanelController
from .controllers.prompts import PromptController
from .controllers.ranks import RankController
from .controllers.reloading import ReloadController
from .controllers.saving import SaveController
from .controllers.saving_slices import SliceSaver
from .controllers.searching import SearchController
from .controllers.selection import SelectionController
from .controllers.sources import SourceController
from .controllers.steps import StepController
from .controllers.tables import TableController
from .draw.glyphs import ASCII as ASCII_GLYPHS
from .draw.labels import fit_middle
from .draw.layout import layout_of
from .draw.opening import with_devices_in_view
from .fitting import fit_to_screen
from .keys import clashes, footer_keys, unbound_message
from .lanes import messages
from .lanes.canvas import LaneCanvas
from .lanes.look import glyphs
from .lanes.minimap import Minimap
from .lanes.ruler import Ruler
from .panels.panel import Panel
from .panels.problems import ledger_state
from .prepared import Prepared
from .screens.main import MainScreen
from .screens.palette import CommandProvider
from .session import Session
from .session_store import SessionStore
from .stage import Stage
from .terminal.driver import TerminalDriver
from .themes import THEMES
from .widgets.ascii_filter import AsciiFilter
from .widgets.bars import Bar
from .widgets.prompt import Prompt
from .widgets.table import VirtualTable
from .widgets.text_pane import TextPane

ASCII = AsciiFilter()


class TracelaneApp(Stage):
    """Shows a trace. Actions only set `session`; one watcher brings what is seen up to date."""

    TITLE = "tracelane"
    ENABLE_COMMAND_PALETTE = False  # its key is in our own table, where it can be remapped
    COMMANDS: ClassVar[set[type[CommandProvider]]] = {CommandProvider}  # type: ignore[assignment]
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(
        self,
        trace: Trace,
        session: Session | None = None,
        config: Config | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        """Show a trace as a session sees it, or as at first; settings come from the user's file. `notes` are
        said at the start.
        """
        store = SessionStore(trace, session)
        super().__init__(store, read_config(config_path()) if config is None else config)
        self.notes = tuple(notes)
        self.panels = PanelController(self, store)
        self.selection = SelectionController(self, store)
        self.searching = SearchController(self, store)
        self.marking = MarkController(self, store)
        self.tables = TableController(self, store, self.panels, self.selection)
        self.findings = FindingsController(self, store, self.panels, self.selection)
        self.hit_list = HitsController(self, store, self.panels, self.searching)
        self.counters = CounterController(self, store)
        self.device_clocks = DeviceClockController(self, store)
        self.logs = LogController(self, store)
        self.mouse = MouseController(self, store)
        self.reloading = ReloadController(self, store)
        self.steps = StepController(self, store)
        self.cutting = CutController(self, store)
        self.saving = SaveController(self, store, SliceSaver(self, store), self.marking)
        self.navigation = NavigationController(self, store, self.searching, self.panels)
        self.prompts = PromptController(
            self,
            store,
            self.marking,
            self.searching,
            self.logs,
            self.steps,
            self.saving,
            self.cutting,
            self.device_clocks,
        )
        for controller in (
            *(self.panels, self.selection, self.searching, self.marking, self.tables, self.hit_list),
            *(self.counters, self.device_clocks, self.logs, self.reloading, self.steps, self.saving),
            *(self.navigation, self.prompts, RankController(self, store), SourceController(self, store)),
        ):
            self.handlers.update(controller.commands())
        store.subscribe(self.draw_session)
        store.subscribe(self.counters.follow_clocks)
        store.subscribe_trace(self._draw_trace)
        self.searching.listeners.append(self.fill_header)
        self.reloading.listeners.append(self.fill_header)
        self._roomed_for: tuple[Size, int] | None = None  # the room that host lanes were folded for
        self.use_command_palette = True
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = self.config.theme if self.config.theme in self.available_themes else DARK_THEME
        if self.config.keys:
            self.set_keymap(dict(self.config.keys))

    # -- starting -----------------------------------------------------------------------------------------

    def get_default_screen(self) -> Screen[None]:
        """Make the screen."""
        return self.main_screen()

    def main_screen(self) -> MainScreen:
        """Make the screen; nothing is drawn until it is filled."""
        self.hold_frames()
        size = self.size
        fit = fit_to_screen(
            self.store.trace, self.store.session, size.width, size.height, bool(self.marking.marks_seen)
        )
        self.store.lane_lines, self._roomed_for = fit.lanes, (size, fit.lanes)
        self.store.place(fit.session)
        return MainScreen(footer_keys(self.config.keys), fit)

    @on(MainScreen.Composed)
    def _fill(self) -> None:
        """Fill what does not change."""
        self.is_filled = True
        self.main.query_one(Panel).choose(self.store.session.panel)
        self.main.query_one(LaneCanvas).eighths = self.config.eighths
        complaints = [*self.config.complaints, *(clashes(self.config.keys) if self.config.keys else [])]
        notes = [*self.notes, *(note for source in self.store.trace.sources for note in source.notes)]
        if complaints or notes:
            self.say("; ".join((*complaints, *notes)))
        elif self.store.trace.has_outliers:
            left, right = self.store.trace.opening_span
            low, high = self.store.trace.span
            self.say(
                f"showing {format_ns(right - left)} of {format_ns(high - low)}: "
                "the rest lies far away; 0 shows all"
            )
        self._relaid()
        self.show_frames()
        self.searching.search_again()
        self.look_into_trace()

    def look_into_trace(self) -> None:
        """Begin what goes on beside the timeline: looking after the files, for findings, at device clocks."""
        self.reloading.begin_watch()
        self.call_after_refresh(self.findings.look_for_findings)
        self.call_after_refresh(self.device_clocks.look_at_device_clocks)
        self.call_after_refresh(self.counters.compute_wanted_lanes)

    def _draw_trace(self) -> None:
        """Show the trace anew after logs were laid over it."""
        self.searching.search_again()
        self.store.redraw()
        self._relaid()

    def fill_header(self) -> None:
        """Say in the header what is open, and what there is to know of it."""
        names = [Path(source.path).name for source in files_of(self.store.trace.sources)]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        title = fit_middle(
            safe(names[0]), max(12, self.main.size.width // 2 - len(more)), glyphs().ellipsis
        ).rstrip()
        state, well = ledger_state(files_of(self.store.trace.sources))
        left, right = self.store.trace.span
        pieces = [
            Text(f" {title}{more}", "bold"),
            *self.reloading.verification_notes(),
            *self.reloading.change_notes(),
            *self.searching.search_notes(),
            Text(state, "" if well else "bold yellow"),
            Text(format_ns(right - left)),
        ]
        lanes = len(self.store.trace.lanes)
        pieces.append(Text(f"{format_count(lanes)} lane{'s' if lanes != 1 else ''}"))
        self.main.query_one("#header", Bar).pieces = tuple(pieces)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Draw all in ASCII where the locale has nothing else."""
        filters = super().get_line_filters()
        return [*filters, ASCII] if glyphs() is ASCII_GLYPHS else filters

    # -- the one watcher ----------------------------------------------------------------------------------

    def draw_session(self, before: Session, now: Session) -> None:
        """Bring everything that is seen up to date."""
        if not self.composed:
            return
        layout = self.store.layout_now
        main = self.main
        if (before.search, before.filter, before.clocks) != (now.search, now.filter, now.clocks):
            self.searching.search_again()
        main.query_one(LaneCanvas).show(self.store.trace, now, layout)
        main.query_one(Ruler).show(
            self.store.trace, now, layout, self.marking.marks_seen, self.marking.measured_from
        )
        if before.viewport != now.viewport or before.clocks != now.clocks:
            main.query_one(Minimap).show(self.store.trace, now, layout)
        if before.panel != now.panel:
            main.query_one(Panel).choose(now.panel)
        if self._room(before) != self._room(now):
            self._relaid()
        moved = (before.cursor, before.focus) != (now.cursor, now.focus)
        if _shown(before) != _shown(now) or (moved and on_log(self.store.trace, now)):
            self.panels.panel_soon()

    def watch_maximised(self) -> None:
        """Share the room out anew."""
        self._relaid()
        main = self.main
        main.set_focus(main.query_one(Panel).body(self.store.session.panel) if self.maximised else None)
        if not self.maximised:
            main.set_focus(main.query_one(LaneCanvas))

    @on(MainScreen.Relaid)
    def _relaid(self) -> None:
        main = self.main
        if isinstance(main, MainScreen) and self.composed:
            session = self.store.session
            self.fill_header()
            empty = self._is_empty(session)
            main.give_room(session.panel_size, self.maximised, empty)

    @on(messages.TimeAreaResized)
    def _area_resized(self, message: messages.TimeAreaResized) -> None:
        """Keep the place in another size of the lane area."""
        if not self.composed:
            return
        session, lines = self.store.session, self.store.lane_lines
        self.store.lane_lines = max(1, message.lines)
        seen = focus.in_view(session, self.store.layout_now, lines) == session
        room = self.main.size, self.store.lane_lines
        if session.selection is None and session.panel == "details" and room != self._roomed_for:
            self._roomed_for = room  # an empty panel: what opens folded depends on the screen alone
            session = with_devices_in_view(self.store.trace, session, self.store.lane_lines)
        if session.viewport.width != message.cells:
            viewport = session.viewport.resized(message.cells)
            session = view.keep_cursor(replace(session, viewport=viewport))
        layout = layout_of(self.store.trace, session, self.store.layout_now)
        session = replace(session, scroll=layout.scrolled(session.scroll, self.store.lane_lines))
        if seen:  # what was in sight stays in sight
            session = focus.in_view(session, layout, self.store.lane_lines)
        if session == self.store.session:
            self.store.redraw()
        else:
            self.store.session = session
        self.main.query_one(Minimap).show(self.store.trace, self.store.session, self.store.layout_now)

    # -- what others ask for ------------------------------------------------------------------------------

    @property
    def session(self) -> Session:
        """What is being looked at."""
        return self.store.session

    @property
    def trace(self) -> Trace:
        """What is open."""
        return self.store.trace

    def open_trace(self, prepared: Prepared, session: Session) -> None:
        """Show this trace from now on, with its marks and as it was left; before its lanes are composed."""
        self.store.open(prepared.trace, session)
        self.store.resume(prepared)
        self.reloading.verification.attach(prepared.trace.indexes)
        self.marking.read()

    def report_error(self, error: Exception) -> None:
        """Open the trace anew where its index is damaged; show any other error."""
        if not (isinstance(error, DamagedIndexError) and self.reloading.reopen(error)):
            super().report_error(error)

    def on_unmount(self) -> None:
        """Look after nothing any more."""
        self.reloading.close()

    # -- messages of widgets ------------------------------------------------------------------------------

    @on(Prompt.Left)
    def _prompt_left(self) -> None:
        self.prompts.left()

    @on(Prompt.Answered)
    def _prompt_answered(self, message: Prompt.Answered) -> None:
        self.prompts.answered(message)

    @on(VirtualTable.RowChosen, "#findings-rows")
    def _finding_chosen(self, message: VirtualTable.RowChosen) -> None:
        self.findings.chosen(message)

    @on(VirtualTable.RowChosen, "#problems")
    def _ledger_row_chosen(self, message: VirtualTable.RowChosen) -> None:
        self.panels.ledger_row_chosen(message)

    @on(VirtualTable.RowChosen)
    def _table_row_chosen(self, message: VirtualTable.RowChosen) -> None:
        self.tables.row_chosen(message)

    @on(Panel.Made)
    def _panel_made(self) -> None:
        self.panels.made()

    @on(TextPane.Resized)
    def _pane_resized(self) -> None:
        self.panels.pane_resized()

    @on(TerminalDriver.Ended)
    def _ended(self, message: TerminalDriver.Ended) -> None:
        self.marking.end(message)

    @on(messages.SlicePressed)
    def _slice_pressed(self, message: messages.SlicePressed) -> None:
        self.mouse.slice_pressed(message)

    @on(messages.LanePressed)
    def _lane_pressed(self, message: messages.LanePressed) -> None:
        self.mouse.lane_pressed(message)

    @on(messages.Zoomed)
    def _zoomed(self, message: messages.Zoomed) -> None:
        self.mouse.zoomed(message)

    @on(messages.Panned)
    def _panned(self, message: messages.Panned) -> None:
        self.mouse.panned(message)

    @on(messages.Scrolled)
    def _scrolled(self, message: messages.Scrolled) -> None:
        self.mouse.scrolled(message)

    @on(messages.ViewMoved)
    def _view_moved(self, message: messages.ViewMoved) -> None:
        self.mouse.view_moved(message)

    @on(messages.TimePressed)
    def _time_pressed(self, message: messages.TimePressed) -> None:
        self.mouse.time_pressed(message)

    @on(messages.TimeDragged)
    def _time_dragged(self, message: messages.TimeDragged) -> None:
        self.mouse.time_dragged(message)

    # -- commands -----------------------------------------------------------------------------------------

    def action_jump(self, source: int, ordinal: int) -> None:
        """Select a slice by its identity, from a link."""
        self.selection.jump(source, ordinal)

    def action_panel(self, name: str) -> None:
        """Show a panel, from a click on its tab."""
        self.panels.show(name)

    def action_command(self, command_id: str) -> None:
        """Do a command of the table, from a key."""
        self.run_command(command_id)

    def on_key(self, event: events.Key) -> None:
        """Say so when a key does nothing here."""
        if self.screen is self.main and event.key not in self.screen.active_bindings:
            self.say(unbound_message(event.key, event.character))

    def watch_theme(self, theme_name: str) -> None:
        """Draw the panels in the new colours."""
        if self.composed:
            self.store.redraw()
            self.main.query_one(Minimap).show(self.store.trace, self.store.session, self.store.layout_now)
            self.panels.panel_soon()

    def _is_empty(self, session: Session) -> bool:
        """Tell whether the panel has nothing to show."""
        nothing = session.selection is None and not on_log(self.store.trace, session)
        return nothing and session.panel == "details"

    def _room(self, session: Session) -> tuple[object, ...]:
        """Return what the panel's height depends on."""
        return session.panel_size, session.panel, self._is_empty(session)


def _shown(session: Session) -> tuple[object, ...]:
    """Return what the panel's contents depend on."""
    what = session.range, session.baseline, session.only, session.filter, session.steps
    return session.panel, session.selection, session.clocks, *what
