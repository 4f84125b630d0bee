"""Brings what is seen up to date: the lanes' screen, its header, and how its lines are shared out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.text import Text
from textual.geometry import Size
from textual.widget import Widget

from tracelane.core.base.progress import CancelledCallback
from tracelane.core.tables.absent import absent
from tracelane.core.tables.analysis import Need
from tracelane.core.tables.findings.leading import stored_leading
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.registry import panels_without
from tracelane.core.trace import LaneRole, Trace

from ..actions import view
from ..actions.clocks import on_log
from ..device_facts import DeviceFacts, stored_facts
from ..device_shares import device_facts
from ..draw.header import busy_texts, elsewhere_text, header_of
from ..draw.opening import with_devices_in_view
from ..draw.ranks import RankNotes, opens_folded
from ..draw.room import Strips, room_of
from ..draw.states import DrawnStates
from ..fitting import Fitted, fit_to_screen, strips_of
from ..keys import clashes, footer_keys, state_keys
from ..lanes.canvas import LaneCanvas
from ..lanes.look import glyphs
from ..lanes.messages import TimeAreaResized
from ..lanes.strips import Minimap, PathStrip, Ruler, Verdict
from ..panels.panel import Panel
from ..screens.main import MainScreen
from ..session import Session
from ..session_store import ViewerState
from ..stage import Controller, Stage, hears
from ..steps import pair_of, step_marks
from ..widget_message import WidgetMessage
from ..widgets.bars import Bar, Footer, MessageLine
from .overview import OverviewController
from .panels import PanelController

if TYPE_CHECKING:
    from ..draw.path_line import DrawnPath


class DrawingController(Controller):
    """Draws the session anew whenever it, the trace or the screen's size changes."""

    def __init__(self, app: Stage, panels: PanelController, overviews: OverviewController) -> None:
        super().__init__(app)
        self.panels = panels
        self.overviews = overviews
        self.busy_texts: list[str] = []
        """What the header says of devices, once that is known."""
        self.path: DrawnPath | None = None
        """The critical path that is shown."""
        self._lacks: frozenset[Need] = frozenset()
        self._states: DrawnStates | None = None
        self._states_of: Trace | None = None  # the trace of whose devices it is known what they did
        self._focused_before: Widget | None = None
        self._keys_of_state: dict[tuple[object, ...], list[tuple[str, str]]] = {}
        self._shared_for = 0, Strips()  # lines of lanes and strips when the screen was shared out
        self._roomed_for: tuple[Size, int] | None = None  # the room that host lanes were folded for

    # -- the screen -----------------------------------------------------------------------------------------

    def main_screen(self) -> MainScreen:
        """Make the screen; nothing is drawn until it is filled."""
        self.app.hold_frames()
        fit = self.fit()
        self.store.dispatch(replace(self.store.now, session=fit.session, lane_lines=fit.lanes))
        config = self.app.config
        return MainScreen(footer_keys(config.keys), fit, tuple(config.queries))

    def fit(self) -> Fitted:
        """Return the session on show as the screen opens with it."""
        return self.fit_of(self.store.trace, self.store.session)

    def fit_of(self, trace: Trace, session: Session) -> Fitted:
        """Return a session of a trace as the screen opens with it."""
        size, store = self.app.size, self.store
        fit = fit_to_screen(trace, session, size.width, size.height, bool(store.marks_seen))
        self._roomed_for = size, fit.most_lanes
        store.know_layout(fit.layout)
        return fit

    def fill(self) -> None:
        """Fill what does not change, and draw the first picture."""
        if self.store.session.panel not in self.app.fillers:  # of a query that is saved no more
            self.store.show(self.store.session._replace(panel="details"))
        self.app.is_filled = True
        main, trace, config = self.app.main, self.store.trace, self.app.config
        main.query_one(Panel).choose(self.store.session.panel)
        self._lacks = frozenset()
        self._dim_tabs()
        main.query_one(LaneCanvas).eighths = config.eighths
        complaints = [*config.complaints, *(clashes(config.keys) if config.keys else [])]
        of_sources = dict.fromkeys(note for source in trace.sources for note in source.notes)
        notes = [*self.store.now.notes, *complaints, *of_sources]
        if not notes and (trace.slices_elsewhere or trace.marks_elsewhere):
            notes.append(elsewhere_text(trace))
        for text in reversed(notes):  # the first of them is to be read first
            self.app.say(text, stays=True)
        if self.store.is_ready:
            self._know_stored()
        self.share_room()
        self.fill_footer()
        self.app.show_frames()
        self.app.search_again()
        if self.store.is_ready:
            self.app.trace_ready()

    @hears(MainScreen.Composed)
    def _have_screen(self, _: MainScreen.Composed) -> None:
        self.fill()

    @hears(MainScreen.Focused)
    def _focus_moved(self, _: MainScreen.Focused) -> None:
        self.fill_footer()

    @hears(MainScreen.Relaid)
    @hears(MessageLine.Grown)
    def _room_changed(self, _: WidgetMessage) -> None:
        self.share_room()

    def _dim_tabs(self) -> None:
        """Dim the tabs of panels that would be empty, as far as that is known without counting anything."""
        trace, session = self.store.trace, self.store.session
        lacks: set[Need] = set(self._lacks)
        if not lacks and not any(lane.role is LaneRole.DEVICE for lane in trace.lanes):
            lacks.add("devices")
        if not step_marks(trace, session.clocks, session.steps):
            lacks.add("steps")
        for panel in self.app.main.query(Panel):  # gone while the App closes
            panel.dim_absent(panels_without(lacks))

    def look_for_absent(self) -> None:
        """Look in the background for what the trace lacks, and dim the tabs of panels that need it."""
        trace = self.store.own_trace

        def have(lacks: frozenset[Need]) -> None:
            if self.store.own_trace is trace and self.app.composed:
                self._lacks = lacks
                self._dim_tabs()

        self.app.jobs.ask("what is absent", lambda _: absent(trace), have)

    def share_room(self) -> None:
        main = self.app.main if self.app.composed else None
        if isinstance(main, MainScreen):
            session = self.store.session
            self.fill_header()
            layout = self.store.layout_now
            strips = self._strips(session)
            self._shared_for = layout.height, strips
            main.give_room(
                session.panel_size,
                self.app.maximised,
                self._is_empty(session),
                strips,
                layout.height + len(layout.pinned),
            )

    def know_missing(self, texts: Mapping[int, str]) -> None:
        """Say beside the lines of files that are missing how far they are, by source."""
        self.app.main.query_one(LaneCanvas).know_ranks(RankNotes(texts=texts))

    # -- the header -----------------------------------------------------------------------------------------

    def fill_header(self) -> None:
        """Show in the header what is open, and what the user should know of it."""
        for bar in self.app.main.query("#header").results(Bar):
            bar.pieces = self._pieces() if self.app.opening is None else self.app.opening.header()

    def _pieces(self) -> tuple[Text, ...]:
        pieces = header_of(
            self.store.trace,
            self.store.session,
            self.app.main.size.width,
            glyphs().ellipsis,
            self.busy_texts,
            self.app.header_notes(),
        )
        return tuple(Text(piece.text, piece.style) for piece in pieces)

    def look_at_busy_shares(self) -> None:
        """Say, after the first picture, how busy each device is, draw what it did, mark the slowest rank."""
        trace, own, clocks = self.store.trace, self.store.own_trace, self.store.own_clocks

        def look(cancelled: CancelledCallback) -> DeviceFacts:
            return device_facts(Scope(own, clocks=clocks, cancelled=cancelled))

        def have(facts: DeviceFacts) -> None:
            if self.store.trace is trace and self._has_lanes:
                self._know_facts(facts)

        self.app.main.query_one(Verdict).count()
        if self._states_of is not own or self._states is None:
            self.app.jobs.ask("busy shares", look, have)

    def _know_stored(self) -> None:
        """Draw what is stored beside the index at once: the first picture has it, too."""
        trace, clocks = self.store.own_trace, self.store.own_clocks
        if (facts := stored_facts(trace, clocks)) is not None:
            self._know_facts(facts)
        if (leading := stored_leading(trace, clocks)) is not None:
            self.app.main.query_one(Verdict).judge(next(iter(leading), None))

    def _know_facts(self, facts: DeviceFacts) -> None:
        self._know(facts.states)
        self.app.main.query_one(Verdict).know(facts.spent)
        self.busy_texts = busy_texts(facts.shares)
        self.fill_header()
        self.app.main.query_one(LaneCanvas).know_ranks(facts.notes)
        self.store.dispatch(replace(self.store.now, latest_ranks=facts.notes.latest))
        if facts.troubles:
            self.app.say("; ".join(facts.troubles), stays=True)
        self.overviews.count(facts.states)

    @property
    def _has_lanes(self) -> bool:
        """Whether the lanes are still there: an answer may come while the App closes."""
        return self.app.composed and bool(self.app.main.query(LaneCanvas))

    def _know(self, states: DrawnStates | None) -> None:
        self._states_of, self._states = self.store.own_trace, states
        self.app.main.query_one(LaneCanvas).know(states)
        self.app.main.query_one(Minimap).know(states)
        self.panels.know(states, self.path)

    def know_path(self, path: DrawnPath | None) -> None:
        self.path = path
        if self._has_lanes:
            self.panels.know(self._states, path)
            self.redraw()

    def fill_footer(self) -> None:
        """Show in the footer what the keys do at present."""
        if self.app.composed:
            main = self.app.main
            if isinstance(main, MainScreen) and main.is_asking:
                keys = [("Enter", "run"), ("Esc", "cancel"), ("↑↓", "history"), ("Tab", "complete")]
            else:
                keys = self._state_keys()
            for footer in self.app.main.query_children(Footer).results():
                footer.keys = tuple(keys)

    def _state_keys(self) -> list[tuple[str, str]]:
        if self.app.opening is not None and (keys := self.app.opening.keys()):
            return keys
        part = self.app.focused_part
        session, escape = self.store.session, self.app.escape_text()
        state = (part, escape, session.anchor is None, bool(session.search), session.aim)
        if state not in self._keys_of_state:
            self._keys_of_state[state] = state_keys(session, part, escape, self.app.config.keys)
        return self._keys_of_state[state]

    # -- changes --------------------------------------------------------------------------------------------

    def draw_trace(self) -> None:
        """Show the trace anew after logs were laid over it."""
        self.app.search_again()
        if self._states_of is not self.store.own_trace and self.app.composed:
            self._know(None)
        self.redraw()
        self.share_room()

    def redraw(self) -> None:
        if self.app.composed:
            self.draw_session(self.store.session, self.store.session)

    def draw_session(self, before: Session, now: Session) -> None:
        """Bring everything that is seen up to date."""
        layout = self.store.layout_now
        main = self.app.main
        if (before.search, before.filter, before.clocks) != (now.search, now.filter, now.clocks):
            self.app.search_again()
        if before.clocks != now.clocks and self._states and (pair := pair_of(self.store.trace)) is not None:
            self._know(self._states.moved(self.store.own_clocks, pair))
        main.query_one(LaneCanvas).show(self.store.trace, now, layout)
        main.query_one(Ruler).show(self.store.trace, now, self.store.marks_seen, self.store.measured_from)
        main.query_one(PathStrip).show(self.store.trace, now, self.path)
        if before.viewport != now.viewport or before.clocks != now.clocks:
            self.draw_minimap()
        if before.panel != now.panel:
            main.query_one(Panel).choose(now.panel)
        if before.steps != now.steps:
            self._dim_tabs()
        shared_for = layout.height, self._strips(now)
        if self._room(before) != self._room(now) or shared_for != self._shared_for:
            self.share_room()
        self.fill_footer()
        if self._panel_state(before) != self._panel_state(now):
            self.panels.panel_soon()

    def draw_minimap(self) -> None:
        self.app.main.query_one(Minimap).show(self.store.trace, self.store.session)

    def draw_theme(self) -> None:
        if self.app.composed:
            self.redraw()
            self.draw_minimap()
            self.panels.panel_soon()

    def maximise(self) -> None:
        """Divide the screen's lines as `maximised` says, and move the focus along."""
        main = self.app.main
        if self.app.maximised:
            self._focused_before = main.focused
        self.share_room()
        panel = main.query_one(Panel).body(self.store.session.panel)
        if self.app.maximised:
            main.set_focus(panel)
        else:  # where it was: in the lanes, or in the panel, which may be another one by now
            main.set_focus(self._focused_before if isinstance(self._focused_before, LaneCanvas) else panel)

    @hears(TimeAreaResized)
    def resize_time_area(self, message: TimeAreaResized) -> None:
        """Keep the place on screen when the lane area changes its size."""
        if not self.app.composed:
            return
        trace, session, lines = self.store.trace, self.store.session, max(1, message.lines)
        seen = view.in_view(session, self.store.layout_now, self.store.now.lane_lines) == session
        room = self.app.main.size, self._most_lanes(session)
        if session.selection is None and session.panel == "details" and room != self._roomed_for:
            self._roomed_for = room  # an empty panel: what opens folded depends on the screen alone
            session = with_devices_in_view(trace, session, room[1])
        if session.viewport.width != message.cells:
            viewport = session.viewport.resized(message.cells)
            session = view.keep_cursor(session._replace(viewport=viewport))
        layout = self.store.layout_for(session)
        session = session._replace(scroll=layout.scrolled(session.scroll, lines))
        if seen:  # what was in sight stays in sight
            session = view.in_view(session, layout, lines)
        if session == self.store.session:
            self.redraw()
        self.store.dispatch(replace(self.store.now, session=session, lane_lines=lines))
        self.draw_minimap()

    def fitted(self, before: ViewerState, now: ViewerState) -> ViewerState:
        """Return the state with the hosts of open ranks folded where they leave the others no room, after
        ranks were folded or unfolded.
        """
        session = now.session
        folded = before.session.folded, before.session.unfolded
        if now.trace is not before.trace or folded == (session.folded, session.unfolded):
            return now
        if not self.app.composed or not opens_folded(now.trace) or not self._is_empty(session):
            return now
        height = self._most_lanes(session)
        session = with_devices_in_view(now.trace, session, height)
        return replace(now, session=view.in_view(session, self.store.layout_for(session), height))

    def _most_lanes(self, session: Session) -> int:
        """Return how many lines lanes have beside an empty panel that takes none of those that they leave."""
        lines = self.app.main.size.height
        room = room_of(lines, session.panel_size, False, empty=True, strips=self._strips(session))
        return room.lanes(lines)

    def _strips(self, session: Session) -> Strips:
        strips = strips_of(self.store.trace, session, bool(self.store.marks_seen))
        return strips._replace(path=int(self.path is not None))

    def _is_empty(self, session: Session) -> bool:
        nothing = session.selection is None and not on_log(self.store.trace, session)
        return nothing and session.panel == "details"

    def _room(self, session: Session) -> tuple[object, ...]:
        """Return what the panel's height depends on."""
        return session.panel_size, session.panel, self._is_empty(session)

    def _panel_state(self, session: Session) -> tuple[object, ...]:
        """Return what the panel's contents depend on."""
        follows = self.app.followed.get(session.panel)
        own = None if follows is None else follows(self.store.trace, session)
        what = session.range, session.baseline, session.only, session.filter, session.steps
        return session.panel, session.selection, session.clocks, *what, own
