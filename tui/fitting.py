"""A session as it fits a screen: the width of its view, how deep host lanes open, the lines of each part."""

from __future__ import annotations

from typing import NamedTuple

from tracelane.core.trace import Trace

from .actions.view import keep_cursor
from .draw.layout import Layout, layout_of
from .draw.line_context import title_cells
from .draw.opening import with_devices_in_view
from .draw.overview import has_step_cells
from .draw.room import Room, Strips, room_of
from .session import Session
from .steps import step_marks


class Fitted(NamedTuple):
    """A session for a screen, and how the screen's lines are shared out."""

    session: Session
    room: Room
    lanes: int
    most_lanes: int  # what the lanes would have, did the panel take no lines that they leave
    layout: Layout  # of the session


def fit_to_screen(trace: Trace, session: Session, width: int, height: int, has_marks: bool) -> Fitted:
    """Return the session as a screen of so many cells and lines opens with it."""
    cells = max(1, width - title_cells(width))
    if session.viewport.width != cells:
        session = keep_cursor(session._replace(viewport=session.viewport.resized(cells)))
    is_empty = session.selection is None and session.panel == "details"
    strips = strips_of(trace, session, has_marks)
    room = room_of(height, session.panel_size, maximised=False, empty=is_empty, strips=strips)
    most_lanes = room.lanes(height)
    if is_empty:  # what opens folded depends on the screen alone
        session = with_devices_in_view(trace, session, most_lanes)
    layout = layout_of(trace, session)
    room = room.with_spare(height, layout.height + len(layout.pinned))
    return Fitted(session, room, room.lanes(height), most_lanes, layout)


def strips_of(trace: Trace, session: Session, has_marks: bool) -> Strips:
    """Return the lines that strips ask for: two of the verdict and of a minimap of steps where there are
    devices, two of the ruler where the trace has steps or something is marked; else one.
    """
    if trace.missing and not trace.lanes:
        return Strips(0, 0, 0)  # no file is there
    has_devices = bool(trace.device_lanes)
    is_marked = has_marks or session.range is not None or session.baseline is not None
    has_steps = is_marked or bool(step_marks(trace, session.clocks, session.steps))
    return Strips(1 + has_devices, 1 + (has_devices and has_step_cells(trace, session)), 1 + has_steps)
