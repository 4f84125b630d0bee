"""What is looked at: a trace, the session that shows it, the views before; changed nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from time import monotonic
from types import MappingProxyType

from tracelane.core.base.clock import Clocks
from tracelane.core.logs.more_sources import TraceWithMore
from tracelane.core.query.hits import Hits
from tracelane.core.trace import Trace

from .actions import ranges, select, view
from .actions.history import History
from .actions.refusal import Refusal
from .actions.table import Scene
from .draw.layout import Layout, layout_of
from .prepared import Prepared
from .session import Session
from .things import Thing, thing_by_id

FIRST_WIDTH = 80
"""Cells of a view before the screen has told its size."""
SessionListener = Callable[[Session, Session], None]


class SourceState(Enum):
    """How far what was asked for is: one file as well as many."""

    READING = "reading"  # of several files some may be on the screen already
    READY = "ready"
    FAILED = "failed"


class SessionStore:
    """Holds the trace and the session; those who draw are told of every change."""

    def __init__(self, trace: Trace, session: Session | None = None) -> None:
        """Show a trace as a session sees it, or as at first."""
        self.trace = trace
        self.history = History()
        self.computed_lanes: frozenset[str] = frozenset()
        """Kinds of lanes to be computed at the start."""
        self.lane_lines = 1
        """Lines of the lane area."""
        self.left: Hits | None = None
        """What the session's filter leaves, None while it is not known."""
        self.whole_left: Hits | None = None
        """The same once all of the trace was looked through."""
        self.has_moved = False
        """Whether the user has changed the session."""
        self.state = SourceState.READY
        """How far the trace is."""
        self._session = session or view.first_session(trace, FIRST_WIDTH)
        self._laid_out: Layout | None = None
        self._listeners: list[SessionListener] = []
        self._trace_listeners: list[Callable[[], None]] = []
        self._open_listeners: list[Callable[[], None]] = []
        self._source_listeners: list[Callable[[], None]] = []
        self._search_listeners: list[Callable[[], None]] = []

    # -- changes --------------------------------------------------------------------------------------------

    @property
    def session(self) -> Session:
        """What is being looked at."""
        return self._session

    @session.setter
    def session(self, session: Session) -> None:
        before, self._session = self._session, session
        if session != before:
            self._tell(before)

    def subscribe(self, listener: SessionListener) -> None:
        """Call a function with the session before and the new one upon every change."""
        self._listeners.append(listener)

    def subscribe_trace(self, listener: Callable[[], None]) -> None:
        """Call a function when `announce_trace` says that lanes or clocks of the trace are others."""
        self._trace_listeners.append(listener)

    def subscribe_open(self, listener: Callable[[], None]) -> None:
        """Call a function when another trace is shown."""
        self._open_listeners.append(listener)

    def subscribe_sources(self, listener: Callable[[], None]) -> None:
        """Call a function when files are shown that were not, be it of another trace."""
        self._source_listeners.append(listener)

    def announce_sources(self) -> None:
        """Have it known that files came."""
        for listener in self._source_listeners:
            listener()

    def subscribe_search(self, listener: Callable[[], None]) -> None:
        """Call a function when something else is searched for or filtered by, or in another trace."""
        self._search_listeners.append(listener)

    def search_changed(self) -> None:
        """Have it searched anew."""
        for listener in self._search_listeners:
            listener()

    def redraw(self) -> None:
        """Have the present session redrawn."""
        self._tell(self._session)

    def announce_trace(self) -> None:
        """Have the trace redrawn after logs or lanes were laid over it."""
        for listener in self._trace_listeners:
            listener()

    def _tell(self, before: Session) -> None:
        now = self._session
        for listener in self._listeners:
            listener(before, now)

    def set_session(self, session: Session) -> None:
        """Set the session without calling listeners: the caller draws everything anew."""
        self._session = session

    def open(self, prepared: Prepared, session: Session) -> None:
        """Show another trace from now on, as it was left; before its lanes are composed."""
        self.trace = prepared.trace
        self._laid_out = None
        self.set_session(session)
        self.resume(prepared)
        self.announce_sources()
        for listener in self._open_listeners:
            listener()

    @property
    def is_ready(self) -> bool:
        """Whether all of the trace is there."""
        return self.state is SourceState.READY

    def resume(self, prepared: Prepared) -> None:
        """Go on where the trace was left: with the views before, and the lanes that were computed."""
        self.history = prepared.history
        self.computed_lanes = prepared.computed

    def go(self, session: Session, together: str = "") -> None:
        """Change the session and remember the one before."""
        session = ranges.aimed(self._session, ranges.extended(self._session, session))
        if session != self._session:
            self.has_moved = True
            self.history = self.history.left(self._session, together, monotonic())
            self.session = session

    # -- what is there --------------------------------------------------------------------------------------

    @property
    def own_trace(self) -> Trace:
        """The trace without logs and computed lanes."""
        trace = self.trace
        while isinstance(trace, TraceWithMore):
            trace = trace.own
        return trace

    @property
    def own_clocks(self) -> Clocks:
        """The session's clocks without those of logs and computed lanes."""
        count = self.own_trace.source_count
        own = {key: ns for key, ns in self._session.clocks.offsets.items() if key[0] < count}
        return Clocks(MappingProxyType(own))

    @property
    def layout_now(self) -> Layout:
        """The lines of the present session."""
        self._laid_out = layout_of(self.trace, self._session, self._laid_out, self.whole_left)
        return self._laid_out

    @property
    def scene(self) -> Scene:
        """What a move begins with."""
        return Scene(self.trace, self._session, self.layout_now, self.lane_lines, self.left)

    @property
    def selected(self) -> Thing:
        """What is selected; Refusal where nothing is."""
        identity = self._session.selection
        thing = None if identity is None else thing_by_id(self.trace, self._session.clocks, identity)
        if thing is None:
            raise Refusal("nothing is selected: Enter selects what lies at the cursor")
        return thing

    def select(self, thing: Thing) -> None:
        """Select a thing, in sight."""
        session = select.unhidden(self.trace, self._session, thing)
        layout = layout_of(self.trace, session, self._laid_out, self.whole_left)
        self.go(select.select(self.trace, session, layout, self.lane_lines, thing))
