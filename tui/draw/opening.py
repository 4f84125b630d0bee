"""How deep host lanes open: as deep as they can while an accelerator's lanes are on the first screen too."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace

from tracelane.core.overlay.overlay import Overlay
from tracelane.core.trace import Process, Trace

from ..session import FOLD_ROWS, RowKey, Session
from .layout import Layout, lane_key
from .quiet import is_device

LEAST_HOST_ROWS = 3
"""Host lanes show at least so many rows; where even that is too much, their process is one line."""
DEVICE_LINES = 6
"""Lines of the first device process that are to be seen; fewer if it has fewer."""


def with_devices_in_view(trace: Trace, session: Session, height: int) -> Session:
    """Return the session with host lanes folded so far that the first device's lanes lie within `height`
    lines.
    """
    session = replace(session, host_rows=FOLD_ROWS)
    device = next((process for process in trace.processes if _has_devices(trace, process)), None)
    if device is None or session.only:
        return session

    measured = _measured(trace, device)

    def fits(host_rows: int) -> bool:
        layout = Layout(trace, replace(session, host_rows=host_rows))
        first = layout.y_of_process(device)
        if first is None:
            return True
        last = layout.y_of(RowKey(lane_key(trace.lanes[device.lanes[-1]]), FOLD_ROWS))
        below = [layout.y_of(RowKey(lane_key(trace.lanes[place]), 0)) for place in measured]
        wanted = min(first + DEVICE_LINES, first if last is None else last)
        return max([wanted, *(y for y in below if y is not None)]) < height

    if fits(FOLD_ROWS):
        return session
    # Fewer rows always need less room: the first of these that does not fit bounds those that do.
    depths = range(LEAST_HOST_ROWS, FOLD_ROWS)
    found = bisect_left(depths, True, key=lambda depth: not fits(depth))
    return replace(session, host_rows=depths[found - 1] if found else 0)


def _measured(trace: Trace, device: Process) -> list[int]:
    """Return the lanes of the logs that stand right below a device: who lays a log over wants to see it."""
    if not isinstance(trace, Overlay):
        return []
    place = trace.processes.index(device) + 1
    found: list[int] = []
    for process in trace.processes[place:]:
        if trace.log_of(process.source) is None:
            break
        found.extend(process.lanes)
    return found


def _has_devices(trace: Trace, process: Process) -> bool:
    return not process.aside and any(is_device(trace.lanes[number]) for number in process.lanes)
