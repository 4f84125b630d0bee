"""Lanes computed from the trace, and those of logs: finding them, showing and hiding them."""

from __future__ import annotations

from dataclasses import replace

from tracelane.core.logs.counters import MEMORY, QUEUE, WithCounters
from tracelane.core.trace import Trace

from ..draw.line import lane_key
from ..session import LaneKey, Session

NO_LANES = {
    MEMORY: "Nothing to add: no [memory] records (profile_memory=True), or the file's counters have them",
    QUEUE: "The trace links no device work to a launch",
}


def computed_lanes(trace: Trace, kind: str) -> list[LaneKey]:
    base = trace.below_logs
    if not isinstance(base, WithCounters):
        return []
    return [
        lane_key(lane)
        for process in trace.processes
        if process.source == base.counter_source
        for lane in trace.lanes[process.lanes.start : process.lanes.stop]
        if base.computed.counters[lane.number].kind == kind
    ]


def toggle_computed_lanes(trace: Trace, session: Session, kind: str) -> Session:
    """Hide the computed lanes of a kind, or show them where they are hidden."""
    lanes = frozenset(computed_lanes(trace, kind))
    hidden = session.hidden_lanes
    processes = {(lane.source, lane.pid) for lane in lanes}
    if lanes <= hidden or processes & session.hidden_processes:
        left = session.hidden_processes - processes
        return replace(session, hidden_lanes=hidden - lanes, hidden_processes=left)
    return replace(session, hidden_lanes=hidden | lanes)
