"""What opens folded, and what folding a line does to a session."""

from __future__ import annotations

from dataclasses import replace

from tracelane.core.trace import Lane, LaneRole, Trace

from ..session import FOLD_ROWS, Session
from .line import Line, LineKind


def rows_shown(lane: Lane, session: Session, rows: int) -> int:
    """Return how many of so many rows a lane opens with; one that is a row deeper shows it, uncounted."""
    most = session.device_rows if lane.role is LaneRole.DEVICE else session.host_rows or FOLD_ROWS
    return most + 1 if rows == most + 1 else most


def is_outside(lane: Lane, trace: Trace) -> bool:
    """Tell whether a lane lies wholly outside the first window: such lanes open folded."""
    offset = trace.clocks.offset(lane.source, lane.pid)
    return lane.end + offset < trace.opening_span[0] or lane.start + offset > trace.opening_span[1]


def toggle_fold(session: Session, line: Line, trace: Trace) -> Session:
    if line.kind is LineKind.QUIET:
        return replace(session, show_quiet=True)
    key = line.fold_key
    if key is None:
        return session
    if line.folded:
        return replace(session, folded=session.folded - {key}, unfolded=session.unfolded | {key})
    unfolded = session.unfolded - {key}
    if line.lane is not None and key in session.unfolded and _is_deep(line.lane, session):
        return replace(session, unfolded=unfolded)
    return replace(session, folded=session.folded | {key}, unfolded=unfolded)


def _is_deep(lane: Lane, session: Session) -> bool:
    return len(lane.rows) > rows_shown(lane, session, len(lane.rows))
