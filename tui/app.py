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

from tracelane.core.base.safe_text import safe
from tracelane.core.base.settings import config_path
from tracelane.core.base.units import format_count, format_ns
from tracelane.core.overlay.counters import files_of
from tracelane.core.trace import Trace

from .actions import focus, view
from .actions.logs import on_log
from .config import DARK_THEME, Config, read_config
from .draw.glyphs import ASCII as ASCII_GLYPHS
from .draw.labels import fit_middle
from .draw.layout import layout_of
from .draw.opening import with_devices_in_view
from .fitting import fitted
from .keys import clashes, footer_keys, unbound_message
from .lanes import messages
from .lanes.canvas import LaneCanvas
from .lanes.look import glyphs
from .lanes.minimap import Minimap
from .lanes.ruler import Ruler
from .panels.panel import Panel
from .panels.problems import ledger_state
from .screens.main import MainScreen
from .screens.palette import CommandProvider
from .session import Session
from .themes import THEMES
from .viewer.asking import Asking
from .viewer.closing import Closing
from .viewer.counters import Counters
from .viewer.findings import FindingsPanel
from .viewer.following import Following
from .viewer.found import Found
from .viewer.mouse import Mouse
from .viewer.ranks import Ranks
from .viewer.watching import Watching
from .widgets.ascii_filter import AsciiFilter
from .widgets.bars import Bar

ASCII = AsciiFilter()


class TracelaneApp(Found, FindingsPanel, Closing, Following, Asking, Counters, Mouse, Ranks, Watching):
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
        super().__init__(trace, session, read_config(config_path()) if config is None else config)
        self.notes = tuple(notes)
        self._roomed_for: tuple[Size, int] | None = None  # the room that host lanes were folded for
        self.use_command_palette = True
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = self.config.theme if self.config.theme in self.available_themes else DARK_THEME
        if self.config.keys:
            self.set_keymap(dict(self.config.keys))

    # -- starting -------------------------------------------------------------------------------------------

    def get_default_screen(self) -> Screen[None]:
        """Make the screen."""
        return self.main_screen()

    def main_screen(self) -> MainScreen:
        """Make the screen; nothing is drawn until it is filled."""
        self.hold_frames()
        size = self.size
        fit = fitted(self.trace, self.session, size.width, size.height, bool(self.marks_seen))
        self.lane_lines, self._roomed_for = fit.lanes, (size, fit.lanes)
        self.set_reactive(TracelaneApp.session, fit.session)
        return MainScreen(footer_keys(self.config.keys), fit)

    @on(MainScreen.Composed)
    def _fill(self) -> None:
        """Fill what does not change."""
        self._widgets_there = True
        self.main.query_one(Panel).choose(self.session.panel)
        self.main.query_one(LaneCanvas).eighths = self.config.eighths
        complaints = [*self.config.complaints, *(clashes(self.config.keys) if self.config.keys else [])]
        notes = [*self.notes, *(note for source in self.trace.sources for note in source.notes)]
        if complaints or notes:
            self.say("; ".join((*complaints, *notes)))
        elif self.trace.has_outliers:
            left, right = self.trace.opening_span
            low, high = self.trace.span
            self.say(
                f"showing {format_ns(right - left)} of {format_ns(high - low)}: "
                "the rest lies far away; 0 shows all"
            )
        self._relaid()
        self.show_frames()
        self.search_again()
        self.look_into_trace()

    def look_into_trace(self) -> None:
        """Begin what goes on beside the timeline: looking after the files, for findings, at device clocks."""
        self.begin_watch()
        self.call_after_refresh(self.look_for_findings)
        self.call_after_refresh(self.look_at_device_clocks)
        self.call_after_refresh(self.compute_wanted_lanes)

    def trace_changed(self) -> None:
        """Show the trace anew after logs were laid over it."""
        self.search_again()
        self.watch_session(self.session, self.session)
        self._relaid()

    def _fill_header(self) -> None:
        names = [Path(source.path).name for source in files_of(self.trace.sources)]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        title = fit_middle(
            safe(names[0]), max(12, self.main.size.width // 2 - len(more)), glyphs().ellipsis
        ).rstrip()
        state, well = ledger_state(files_of(self.trace.sources))
        left, right = self.trace.span
        pieces = [
            Text(f" {title}{more}", "bold"),
            *self.verification_notes(),
            *self.change_notes(),
            *self.search_notes(),
            Text(state, "" if well else "bold yellow"),
            Text(format_ns(right - left)),
        ]
        lanes = len(self.trace.lanes)
        pieces.append(Text(f"{format_count(lanes)} lane{'s' if lanes != 1 else ''}"))
        self.main.query_one("#header", Bar).pieces = tuple(pieces)

    def found_changed(self) -> None:
        """Say in the header what was found."""
        super().found_changed()
        self._fill_header()

    def changes_seen(self) -> None:
        """Say in the header that files have changed."""
        self._fill_header()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Draw all in ASCII where the locale has nothing else."""
        filters = super().get_line_filters()
        return [*filters, ASCII] if glyphs() is ASCII_GLYPHS else filters

    # -- the one watcher ------------------------------------------------------------------------------------

    def watch_session(self, before: Session, now: Session) -> None:
        """Bring everything that is seen up to date."""
        if not self.composed:
            return
        layout = self.layout_now
        main = self.main
        if (before.search, before.filter, before.clocks) != (now.search, now.filter, now.clocks):
            self.search_again()
        main.query_one(LaneCanvas).show(self.trace, now, layout)
        main.query_one(Ruler).show(self.trace, now, layout, self.marks_seen, self.measured_from)
        if before.viewport != now.viewport or before.clocks != now.clocks:
            main.query_one(Minimap).show(self.trace, now, layout)
        if before.panel != now.panel:
            main.query_one(Panel).choose(now.panel)
        if self._room(before) != self._room(now):
            self._relaid()
        moved = (before.cursor, before.focus) != (now.cursor, now.focus)
        if _shown(before) != _shown(now) or (moved and on_log(self.trace, now)):
            self.panel_soon()

    def watch_maximised(self) -> None:
        """Share the room out anew."""
        self._relaid()
        main = self.main
        main.set_focus(main.query_one(Panel).body(self.session.panel) if self.maximised else None)
        if not self.maximised:
            main.set_focus(main.query_one(LaneCanvas))

    @on(MainScreen.Relaid)
    def _relaid(self) -> None:
        main = self.main
        if isinstance(main, MainScreen) and self.composed:
            session = self.session
            self._fill_header()
            empty = self._is_empty(session)
            main.give_room(session.panel_size, self.maximised, empty)

    @on(messages.TimeAreaResized)
    def _area_resized(self, message: messages.TimeAreaResized) -> None:
        """Keep the place in another size of the lane area."""
        if not self.composed:
            return
        session, lines = self.session, self.lane_lines
        self.lane_lines = max(1, message.lines)
        seen = focus.in_view(session, self.layout_now, lines) == session
        room = self.main.size, self.lane_lines
        if session.selection is None and session.panel == "details" and room != self._roomed_for:
            self._roomed_for = room  # an empty panel: what opens folded depends on the screen alone
            session = with_devices_in_view(self.trace, session, self.lane_lines)
        if session.viewport.width != message.cells:
            viewport = session.viewport.resized(message.cells)
            session = view.keep_cursor(replace(session, viewport=viewport))
        layout = layout_of(self.trace, session, self.layout_now)
        session = replace(session, scroll=layout.scrolled(session.scroll, self.lane_lines))
        if seen:  # what was in sight stays in sight
            session = focus.in_view(session, layout, self.lane_lines)
        if session == self.session:
            self.watch_session(session, session)
        else:
            self.session = session
        self.main.query_one(Minimap).show(self.trace, self.session, self.layout_now)

    # -- commands -------------------------------------------------------------------------------------------

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
            self.watch_session(self.session, self.session)
            self.main.query_one(Minimap).show(self.trace, self.session, self.layout_now)
            self.panel_soon()

    def _is_empty(self, session: Session) -> bool:
        """Tell whether the panel has nothing to show."""
        nothing = session.selection is None and not on_log(self.trace, session)
        return nothing and session.panel == "details"

    def _room(self, session: Session) -> tuple[object, ...]:
        """Return what the panel's height depends on."""
        return session.panel_size, session.panel, self._is_empty(session)


def _shown(session: Session) -> tuple[object, ...]:
    """Return what the panel's contents depend on."""
    what = session.range, session.baseline, session.only, session.filter, session.steps
    return session.panel, session.selection, session.clocks, *what
