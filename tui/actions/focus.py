"""Where the focused row stands in the lane area, and how it is kept in view."""

from __future__ import annotations

from dataclasses import replace

from ..draw.layout import Layout
from ..draw.line import Line, LineKind, lane_key
from ..session import RowKey, Session


def focus_line(layout: Layout, session: Session) -> int | None:
    """Return the line of the focused row, None if there is none to be seen."""
    return None if session.focus is None else layout.y_of(session.focus)


def focusable(line: Line, layout: Layout) -> RowKey | None:
    """Return the row that keys act on when this line has the focus, None for a line that cannot have it.

    A folded process and a line of quiet threads stand for their first lane.
    """
    if line.row_key is not None:
        return line.row_key
    if line.kind is LineKind.QUIET or (line.kind is LineKind.PROCESS and line.folded):
        members = line.members
        return RowKey(lane_key(layout.trace.lanes[members[0]]), 0) if members else None
    return None


def in_view(session: Session, layout: Layout, height: int) -> Session:
    """Return the session scrolled by as few lines as possible so that the focused row is in view."""
    y = focus_line(layout, session)
    if y is None or height <= 0:
        return session
    room = max(1, height - layout.pinned_height(height))
    # A process's title stands on the line above its first lane: show it along where there is room.
    top = y - 1 if y > 0 and (above := layout.line(y - 1)) and above.kind is LineKind.PROCESS else y
    top = top if room > 1 else y
    scroll = session.scroll
    if top < scroll:
        scroll = top
    elif y >= scroll + room - layout.says_more(scroll, height):
        scroll = y - room + 1
        scroll += layout.says_more(scroll, height)
    if y == scroll and layout.title_above(scroll, height) is not None:
        scroll -= 1  # the title of its process would stand in its place
    scroll = layout.scrolled(scroll, height)
    return session if scroll == session.scroll else replace(session, scroll=scroll)


def scrolled(session: Session, layout: Layout, height: int, lines: int) -> Session:
    """Return the session scrolled by lines, as far as there are any."""
    scroll = layout.scrolled(session.scroll + lines, height)
    return session if scroll == session.scroll else replace(session, scroll=scroll)
