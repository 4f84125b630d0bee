"""Moves of the clocks of devices: as estimated from their launches, by hand, back again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tracelane.core.base.clock import Clocks
from tracelane.core.tables.device_clocks import (
    AUTO,
    DeviceClock,
    device_clocks,
    estimated,
    moved_text,
    offset_of,
    set_by_hand,
)
from tracelane.core.trace import Trace

from ..session import Session
from .refusal import Refusal
from .view import keep_cursor, limits, view_of


def with_clocks(trace: Trace, session: Session, clocks: Clocks) -> Session:
    """Return the session under other clocks; a view of what is not there any more becomes one of all."""
    low, high = limits(trace, clocks)
    view = session.viewport
    if view.end <= low or view.start >= high:
        view = view_of(low, high, view.width)
    return keep_cursor(replace(session, clocks=clocks, viewport=view.kept_within((low, high))))


def switch_device_clocks(trace: Trace, session: Session) -> Session:
    """Return the session with the devices' clocks as estimated; where they are set, taken back."""
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
    """Return in words how the devices' clocks stand."""
    moved = moved_text(trace, session.clocks)
    if not moved:
        return "devices stand as the file's clocks have them"
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
        raise Refusal(f"{_names(devices)} stands as the file's clocks have it")
    return with_clocks(trace, session, clocks)


def _names(devices: Sequence[DeviceClock]) -> str:
    return ", ".join(one.title for one in devices)
