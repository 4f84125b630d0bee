"""Changes of clocks: those of ranks by their collectives, of devices by their launches, of logs; and the
reading of a log at the cursor.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from tracelane.core.base.clock import Clocks
from tracelane.core.logs.overlay import Overlay, PlacedLog
from tracelane.core.logs.stamps import SECOND
from tracelane.core.trace import Trace
from tracelane.core.trace.device_clocks import (
    AUTO,
    DeviceClock,
    device_clocks,
    estimated,
    moved_text,
    offset_of,
    set_by_hand,
)

from ..draw.layout import Layout
from ..draw.line import lane_key
from ..draw.things import Thing, nearest_thing, row_of
from ..session import LaneKey, RowKey, Session
from .scene import Refusal
from .view import in_view, keep_cursor, limits, view_of

FURTHEST_S = 1e9
NO_LOG = "no log open: {smi} FILE adds one"


def focused_log(trace: Trace, session: Session) -> tuple[PlacedLog, int]:
    """Return the log whose lane is focused, else the only one, and its source."""
    if not isinstance(trace, Overlay):
        raise Refusal(NO_LOG)
    sources = trace.log_sources
    focus = -1 if session.focus is None else session.focus.lane.source
    if focus not in sources and len(sources) > 1:
        raise Refusal("several logs are open: go to a lane of the one to move")
    source = focus if focus in sources else sources[0]
    return trace.placed[source - sources[0]], source


def nudged(trace: Trace, session: Session, direction: int) -> Session:
    """Move a log by one of its sampling intervals, later (+1) or earlier (-1)."""
    one, source = focused_log(trace, session)
    offset = session.clocks.offset(source) + direction * (one.log.interval_ns or SECOND)
    return session._replace(clocks=session.clocks.shifted((source, ""), offset))


def with_lag(trace: Trace, session: Session, text: str) -> Session:
    """Set by how many seconds a log's clock runs ahead of the trace's; empty: as proposed."""
    one, source = focused_log(trace, session)
    offset = 0
    if text:
        try:
            lag = float(text.removesuffix("s"))
        except ValueError:
            raise Refusal(f"give seconds, such as 0.25, not {text!r}") from None
        if not abs(lag) < FURTHEST_S:
            raise Refusal("no clock is wrong by that much")
        offset = round((one.proposal.lag_s - lag) * SECOND)
    return session._replace(clocks=session.clocks.shifted((source, ""), offset))


def log_clock_text(trace: Trace, session: Session) -> str:
    """Return the clock of the focused or only log in words."""
    one, source = focused_log(trace, session)
    return one.clock_text(session.clocks, source)


def focused_on(trace: Overlay, session: Session, source: int, height: int) -> Session:
    """Return the session with a log's first lane focused and in sight."""
    first = next((at for of, at, _ in trace.metrics() if of == source), None)
    if first is None:
        return session
    session = session._replace(focus=RowKey(lane_key(trace.lanes[first]), 0), selection=None)
    return in_view(session, Layout(trace, session), height)


def without_logs(trace: Overlay, session: Session) -> Session:
    """Return the session without what it says of the lanes of logs, which are the last sources of a trace."""
    first = trace.log_sources.start

    def stays(key: LaneKey | tuple[int, str]) -> bool:
        return (key.source if isinstance(key, LaneKey) else key[0]) < first

    focus, selection = session.focus, session.selection
    offsets = {key: ns for key, ns in session.clocks.offsets.items() if key[0] < first}
    return session._replace(
        focus=focus if focus is not None and stays(focus.lane) else None,
        selection=None if focus is not None and not stays(focus.lane) else selection,
        folded=frozenset(filter(stays, session.folded)),
        unfolded=frozenset(filter(stays, session.unfolded)),
        pinned=tuple(filter(stays, session.pinned)),
        hidden_lanes=frozenset(filter(stays, session.hidden_lanes)),
        hidden_processes=frozenset(filter(stays, session.hidden_processes)),
        clocks=Clocks(MappingProxyType(offsets)),
    )


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


def with_clocks(trace: Trace, session: Session, clocks: Clocks) -> Session:
    """Return the session under other clocks; a view of what is not there any more becomes one of all."""
    low, high = limits(trace, clocks)
    view = session.viewport
    if view.end <= low or view.start >= high:
        view = view_of(low, high, view.width)
    return keep_cursor(session._replace(clocks=clocks, viewport=view.kept_within((low, high))))


def switch_device_clocks(trace: Trace, session: Session) -> Session:
    """Return the session with the devices' clocks as estimated, or without the estimate where it is used."""
    devices = chosen(trace, session)
    if any(one.key in session.clocks.offsets for one in devices):
        return _as_stamped(trace, session, devices)
    troubled = [one for one in devices if one.trouble]
    if not troubled:
        raise Refusal(f"no work begins before its launch: nothing to correct of {_names(devices)}")
    return with_clocks(trace, session, estimated(trace, session.clocks, troubled))


def with_offset(trace: Trace, session: Session, text: str) -> Session:
    """Return the session with seconds added to the device's times; auto: as estimated, empty: none."""
    devices = chosen(trace, session)
    if not text:
        return _as_stamped(trace, session, devices)
    if text == AUTO:
        return with_clocks(trace, session, estimated(trace, session.clocks, devices))
    if len(devices) > 1:
        raise Refusal("there are several devices: go to a lane of the one to be moved")
    return with_clocks(trace, session, set_by_hand(trace, session.clocks, devices[0].device, offset_of(text)))


def device_clocks_text(trace: Trace, session: Session) -> str:
    """Return a sentence on the clocks of the devices."""
    moved = moved_text(trace, session.clocks)
    if not moved:
        return "Device clocks as recorded"
    devices = [one for one in chosen(trace, session) if one.key in session.clocks.offsets]
    if devices and all(session.clocks.offsets[one.key] == one.proposed_ns for one in devices):
        return "; ".join(one.proposal for one in devices)
    still = [one.trouble for one in devices if one.trouble]
    return "; ".join([moved, *still])


def chosen(trace: Trace, session: Session) -> Sequence[DeviceClock]:
    """Return the device whose lane is focused, else all."""
    clocks = device_clocks(trace, session.clocks)
    if not clocks:
        raise Refusal("the trace holds no device work")
    focus = session.focus
    focused = [one for one in clocks if focus is not None and one.key == (focus.lane.source, focus.lane.pid)]
    return focused or clocks


def _as_stamped(trace: Trace, session: Session, devices: Sequence[DeviceClock]) -> Session:
    clocks = session.clocks
    for one in devices:
        clocks = clocks.shifted(one.key, 0)
    if clocks == session.clocks:
        raise Refusal(f"{_names(devices)} already has the clock of the file")
    return with_clocks(trace, session, clocks)


def _names(devices: Sequence[DeviceClock]) -> str:
    return ", ".join(one.title for one in devices)


def is_aligned(trace: Trace, clocks: Clocks) -> bool:
    """Tell whether the clocks of the ranks have the correction by their collectives."""
    corrected = trace.alignment.clocks
    return all(clocks.offset_of(key) == corrected.offset_of(key) for key in trace.alignment.keys)


def switch_alignment(trace: Trace, session: Session) -> Session:
    """Return the session with the ranks' correction taken back, or made again; other clocks stay."""
    alignment = trace.alignment
    if not alignment.keys:
        raise Refusal("there are not two ranks to align")
    target = alignment.stamped if is_aligned(trace, session.clocks) else alignment.clocks
    clocks = session.clocks
    for key in alignment.keys:
        clocks = clocks.shifted(key, target.offset_of(key))
    if clocks == session.clocks:
        raise Refusal(f"nothing to switch: {alignment.text}")
    return session._replace(clocks=clocks)


def clocks_text(trace: Trace, session: Session) -> str:
    """Return a sentence on the clocks of the ranks."""
    if is_aligned(trace, session.clocks):
        return trace.alignment.text
    return "Rank clocks as recorded; run again to align"
