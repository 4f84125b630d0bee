"""A session as it fits a screen: the width of its view, how deep host lanes open, the lines of each part."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from tracelane.core.trace import Trace

from .actions.view import keep_cursor
from .draw.layout import layout_of
from .draw.lines import title_cells
from .draw.opening import with_devices_in_view
from .draw.room import Room, room_of
from .session import Session
from .steps import step_marks


class Fitted(NamedTuple):
    """A session for a screen, and how the screen's lines are shared out."""

    session: Session
    room: Room
    ruler: int
    lanes: int
    most_lanes: int  # what the lanes would have, did the panel take no lines that they leave


def fit_to_screen(trace: Trace, session: Session, width: int, height: int, has_marks: bool) -> Fitted:
    """Return the session as a screen of so many cells and lines opens with it."""
    cells = max(1, width - title_cells(width))
    if session.viewport.width != cells:
        session = keep_cursor(replace(session, viewport=session.viewport.resized(cells)))
    is_empty = session.selection is None and session.panel == "details"
    room = room_of(height, session.panel_size, maximised=False, empty=is_empty, verdict=verdict_height(trace))
    ruler = ruler_height(trace, session, has_marks)
    most_lanes = room.lanes(height, ruler)
    if is_empty:  # what opens folded depends on the screen alone
        session = with_devices_in_view(trace, session, most_lanes)
    layout = layout_of(trace, session)
    room = room.with_spare(height, ruler, layout.height + len(layout.pinned), is_empty)
    return Fitted(session, room, ruler * room.has_ruler, room.lanes(height, ruler), most_lanes)


def ruler_height(trace: Trace, session: Session, has_marks: bool) -> int:
    """Return the lines of the ruler: two where the trace has steps or something is marked, else one."""
    if has_marks or session.range is not None or session.baseline is not None:
        return 2
    return 2 if step_marks(trace, session.clocks, session.steps) else 1


def verdict_height(trace: Trace) -> int:
    """Return the lines of the verdict: two where there are devices, else one."""
    return 2 if trace.device_lanes else 1
