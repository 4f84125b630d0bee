"""Moves of the clocks of telemetry logs, and what a log says at the cursor."""

from __future__ import annotations

from dataclasses import replace

from tracelane.core.logs.overlay import Overlay, PlacedLog
from tracelane.core.logs.zones import SECOND
from tracelane.core.trace import Trace

from ..draw.layout import Layout, lane_key
from ..session import RowKey, Session
from ..things import Thing, nearest_thing, row_of
from .focus import in_view
from .refusal import Refusal

FURTHEST_S = 1e9
NO_LOG = "no log lies over this trace: :smi FILE opens one"


def with_first_metrics(trace: object, session: Session) -> Session:
    """Return the session with the less telling metrics of the logs hidden; H lists them."""
    if not isinstance(trace, Overlay):
        return session
    hidden = {lane_key(trace.lanes[at]) for _, at, metric in trace.metrics() if not metric.is_default}
    return replace(session, hidden_lanes=session.hidden_lanes | hidden)


def focused_log(trace: Trace, session: Session) -> tuple[PlacedLog, int]:
    """Return the log whose lane is focused, else the only one, and its source."""
    if not isinstance(trace, Overlay):
        raise Refusal(NO_LOG)
    sources = trace.log_sources
    focus = -1 if session.focus is None else session.focus.lane.source
    if focus not in sources and len(sources) > 1:
        raise Refusal("several logs lie over this trace: go to a lane of the one to be moved")
    source = focus if focus in sources else sources[0]
    return trace.placed[source - sources[0]], source


def nudged(trace: Trace, session: Session, direction: int) -> Session:
    """Move a log by one of its sampling intervals, later (+1) or earlier (-1)."""
    one, source = focused_log(trace, session)
    offset = session.clocks.offset(source) + direction * (one.log.interval_ns or SECOND)
    return replace(session, clocks=session.clocks.shifted((source, ""), offset))


def with_lag(trace: Trace, session: Session, text: str) -> Session:
    """Set by how many seconds a log's clock runs ahead of the trace's; empty: as proposed."""
    one, source = focused_log(trace, session)
    offset = 0
    if text:
        try:
            lag = float(text.removesuffix("s"))
        except ValueError:
            raise Refusal(f"seconds are wanted, such as 0.25, not {text!r}") from None
        if not abs(lag) < FURTHEST_S:
            raise Refusal("that is further than any clock is wrong")
        offset = round((one.proposal.lag_s - lag) * SECOND)
    return replace(session, clocks=session.clocks.shifted((source, ""), offset))


def log_clock_text(trace: Trace, session: Session) -> str:
    """Return the clock of the focused or only log in words."""
    one, source = focused_log(trace, session)
    return one.clock_text(session.clocks, source)


def focused_on(trace: Overlay, session: Session, source: int, height: int) -> Session:
    """Return the session with a log's first lane focused and in sight."""
    first = next((at for of, at, _ in trace.metrics() if of == source), None)
    if first is None:
        return session
    session = replace(session, focus=RowKey(lane_key(trace.lanes[first]), 0), selection=None)
    return in_view(session, Layout(trace, session), height)


def on_log(trace: Trace, session: Session) -> bool:
    """Tell whether the focused row is a log's."""
    focus = session.focus
    return isinstance(trace, Overlay) and focus is not None and focus.lane.source in trace.log_sources


def read_out(trace: Trace, session: Session, layout: Layout) -> Thing | None:
    """Return the sample at the cursor on the focused row of a log; None on other rows."""
    if session.focus is None or not on_log(trace, session):
        return None
    row = row_of(layout, session.focus)
    return None if row is None else nearest_thing(trace, session.clocks, row, session.cursor)
