"""What is looked at: a trace, the session that shows it, the views before; changed nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from time import monotonic
from typing import NamedTuple

from tracelane.core.base.clock import Clocks
from tracelane.core.export.marks import Mark, moved, nearest_mark
from tracelane.core.logs.more_sources import own_clocks, own_trace
from tracelane.core.query.hits import Hits
from tracelane.core.trace import Trace

from .actions import ranges, select, view
from .actions.scene import History, Refusal, Scene
from .draw.layout import Layout, layout_of
from .draw.things import Thing
from .session import Session
from .times import TimeFrame, time_frame
from .view_state import Prepared

FIRST_WIDTH = 80
"""Cells of a view before the screen has told its size."""


class SourceState(Enum):
    """How far what was asked for is: one file as well as many."""

    READING = "reading"  # of several files some may be on the screen already
    READY = "ready"
    FAILED = "failed"


class SearchState(NamedTuple):
    """What is known of the slices that the session's search and filter match."""

    hits: Hits | None = None  # of the search, None while it is not known
    left: Hits | None = None  # what the filter leaves, None while it is not known
    whole_left: Hits | None = None  # the same once all of the trace was looked through
    looked_through: float | None = None  # share of the trace while a search goes on
    stopped_at: float | None = None  # that share when it was stopped


@dataclass(frozen=True)
class ViewerState:
    """All that the viewer shows and remembers; a change makes a new one."""

    trace: Trace
    session: Session
    source: SourceState = SourceState.READY
    history: History = field(default_factory=History)
    has_moved: bool = False  # whether the user has changed the session
    lane_lines: int = 1  # lines of the lane area
    computed_lanes: frozenset[str] = frozenset()  # kinds of lanes to be computed at the start
    notes: tuple[str, ...] = ()  # what is said when the lanes are drawn first
    latest_ranks: tuple[int, ...] = ()  # sources, first those that the others wait for most; empty: unknown
    search: SearchState = field(default_factory=SearchState)
    marks: tuple[Mark, ...] = ()  # as they are kept: with no clock moved
    marked_last: Mark | None = None

    @property
    def own_trace(self) -> Trace:
        return own_trace(self.trace)


def _opened(state: ViewerState, prepared: Prepared) -> ViewerState:
    """Return the state with the views before, the lanes to be computed and the notes of what was opened."""
    history, computed, notes = prepared.history, prepared.computed, prepared.messages
    return replace(state, history=history, computed_lanes=computed, notes=notes)


StateListener = Callable[[ViewerState, ViewerState], object]
StateFitter = Callable[[ViewerState, ViewerState], ViewerState]


class SessionStore:
    """Holds the viewer's state and replaces it; who draws is told of the one before and the new one."""

    def __init__(self, prepared: Prepared, source: SourceState = SourceState.READY) -> None:
        """Show a trace as it was left, or as at first."""
        session = prepared.session or view.first_session(prepared.trace, FIRST_WIDTH)
        self.now = _opened(ViewerState(prepared.trace, session, source), prepared)
        """Everything, as it is now."""
        self._laid_out: Layout | None = None
        self._tell: StateListener = lambda before, now: None
        self._fit: StateFitter = lambda before, now: now

    # -- changes --------------------------------------------------------------------------------------------

    def follow(self, listener: StateListener, fit: StateFitter) -> None:
        """Let `fit` say, from now on, from the state before a change and the new one, what the screen
        has room for; then call `listener` with the state before and that one.
        """
        self._tell, self._fit = listener, fit

    def dispatch(self, state: ViewerState) -> None:
        """Put another state in the place of the present one."""
        before, self.now = self.now, state
        self.now = self._fit(before, state)
        self._tell(before, self.now)

    def show(self, session: Session) -> None:
        """Change what is looked at, without a place in the history."""
        self.dispatch(replace(self.now, session=session))

    def show_trace(self, trace: Trace, session: Session) -> None:
        self.dispatch(replace(self.now, trace=trace, session=session))

    def open(self, prepared: Prepared, session: Session) -> None:
        """Show another trace from now on, as it was left."""
        self.dispatch(_opened(replace(self.now, trace=prepared.trace, session=session), prepared))

    def source_is(self, source: SourceState) -> None:
        self.dispatch(replace(self.now, source=source))

    def go(self, session: Session, together: str = "", before: Session | None = None) -> None:
        """Change the session and remember the one before, which is the present one unless given."""
        before = before or self.session
        session = ranges.aimed(before, ranges.extended(before, session))
        if session.cursor != before.cursor:
            session = view.step_over_step(self.trace, session)
        if session != before:
            history = self.now.history.left(before, together, monotonic())
            self.dispatch(replace(self.now, session=session, history=history, has_moved=True))

    # -- what is there --------------------------------------------------------------------------------------

    @property
    def session(self) -> Session:
        return self.now.session

    @property
    def trace(self) -> Trace:
        return self.now.trace

    @property
    def own_trace(self) -> Trace:
        return self.now.own_trace

    @property
    def is_ready(self) -> bool:
        """Whether all of the trace is there."""
        return self.now.source is SourceState.READY

    @property
    def own_clocks(self) -> Clocks:
        """The session's clocks without those of logs and computed lanes."""
        return own_clocks(self.own_trace, self.session.clocks)

    @property
    def marks_seen(self) -> tuple[Mark, ...]:
        """The marks in trace time under the session's clocks."""
        return moved(self.now.marks, self.session.clocks.offset(0))

    @property
    def measured_from(self) -> Mark | None:
        """The mark from which the cursor's distance is counted, in trace time: the one set last, else the
        nearest.
        """
        marks = self.marks_seen
        if self.now.marked_last in self.now.marks:
            return marks[self.now.marks.index(self.now.marked_last)]
        return nearest_mark(marks, self.session.cursor)

    @property
    def time_frame(self) -> TimeFrame:
        """What typed times refer to."""
        session = self.session
        return time_frame(self.trace, session.clocks, session.zone, self.marks_seen, session.steps)

    @property
    def layout_now(self) -> Layout:
        self._laid_out = layout_of(self.trace, self.session, self._laid_out, self.now.search.whole_left)
        return self._laid_out

    def know_layout(self, layout: Layout) -> None:
        """Take a layout that was made of what is shown next: it is not made once more."""
        self._laid_out = layout

    def layout_for(self, session: Session, trace: Trace | None = None) -> Layout:
        """Return the lines of another session, of another trace where one is given."""
        return layout_of(trace or self.trace, session, self._laid_out, self.now.search.whole_left)

    @property
    def scene(self) -> Scene:
        """What a move begins with."""
        now = self.now
        return Scene(
            self.trace, self.session, self.layout_now, now.lane_lines, now.search.left, now.latest_ranks
        )

    @property
    def selected(self) -> Thing:
        """What is selected; Refusal where nothing is."""
        thing = self.scene.selected
        if thing is None:
            raise Refusal("nothing is selected: {details} selects what is at the cursor")
        return thing

    def select(self, thing: Thing) -> None:
        """Select a thing, in sight."""
        session = select.unhidden(self.trace, self.session, thing)
        scene = Scene(self.trace, session, self.layout_for(session), self.now.lane_lines)
        self.go(select.select(scene, thing))
