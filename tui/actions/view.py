"""Moves of the visible time and lines: zoom, pan, ends, steps, a given time or slice; what stays in sight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from tracelane.core.base.clock import Clocks
from tracelane.core.base.units import format_ns
from tracelane.core.logs.counters import WithCounters

from ..draw.layout import Layout
from ..draw.line import Half, Line, LineKind, lane_key
from ..draw.overview import has_step_cells
from ..session import MIN_CELL_NS, PAN_STEP, ZOOM_LEAP, ZOOM_STEP, RowKey, Session, Viewport
from ..steps import StepMark, pair_of, step_marks
from .scene import Refusal

if TYPE_CHECKING:
    from tracelane.core.trace import Trace


SLICE_SHARE = 0.8
"""How much of the view a slice takes when it is focused."""
APPROACH = 0.25
"""Share of the width, from the left, at which a thing is placed that was out of sight."""


Move: TypeAlias = "Callable[[Trace, Session], Session]"


def first_session(trace: Trace, width: int) -> Session:
    """Return the first session: the opening span over `width` cells, of many steps the median one, of two
    runs the step that changed most; the cursor where the first step in view begins, without steps in the
    middle.
    """
    view, steps = view_of(*trace.opening_span, width), step_marks(trace, trace.clocks)
    low, high = view.start, view.end
    seen = [step for step in steps if low <= step.start < high]
    cursor = seen[0].start if seen else view.edge(view.width // 2)
    session = without_minor_lanes(trace, Session(view, cursor, clocks=trace.clocks))
    if (pair := pair_of(trace)) is not None:
        paired = pair.common_steps()
        most = int(paired.most_changed[0])
        start = int(paired.a[most, 0])
        session = step_over_step(trace, session._replace(cursor=start))
        return zoomed_to(trace, session, start, start + max(1, int(paired.lengths[most].max())))
    if not has_step_cells(trace, session):
        return session
    median = sorted(steps, key=lambda step: step.end - step.start)[len(steps) // 2]
    return zoomed_to(trace, session, median.start, median.end)


def step_over_step(trace: Trace, session: Session) -> Session:
    """Return the session of two runs with the second moved so that the step at the cursor begins together."""
    pair = pair_of(trace)
    if pair is None:
        return session
    clocks = pair.clocks_at(session.cursor, session.clocks, session.steps)
    base = trace.below_logs
    return session._replace(clocks=base.with_computed(clocks) if isinstance(base, WithCounters) else clocks)


def without_minor_lanes(trace: Trace, session: Session) -> Session:
    """Return the session with the less important metrics of logs hidden; H lists what is hidden."""
    hidden = map(lane_key, trace.minor_lanes)
    return session._replace(hidden_lanes=session.hidden_lanes.union(hidden))


def limits(trace: Trace, clocks: Clocks) -> tuple[int, int]:
    """Return how far the view may go: the whole trace, never empty, so that zooming always has room."""
    start, end = trace.span_at(clocks)
    return start, max(end, start + 1)


def view_of(start: int, end: int, width: int) -> Viewport:
    """Return the view from start to end, widened where it would be below 1 ns a cell."""
    width = max(1, width)
    return Viewport(start, max(end - start, width * MIN_CELL_NS), width)


def keep_cursor(session: Session) -> Session:
    """Return the session with its cursor moved, if need be, to the nearest visible time."""
    view = session.viewport
    if view.start <= session.cursor < view.end:
        return session
    cursor = min(max(session.cursor, view.start), view.edge(view.width - 1))
    return session._replace(cursor=cursor)


def zoomed(trace: Trace, session: Session, factor: float, about: int) -> Session:
    """Zoom by a factor about a time that stays in its cell."""
    view = session.viewport.zoomed(factor, about, limits(trace, session.clocks))
    if view == session.viewport:
        raise Refusal("1 ns per cell: no closer" if factor > 1 else "this is the whole trace")
    return keep_cursor(session._replace(viewport=view))


def panned(trace: Trace, session: Session, share: float) -> Session:
    """Move the view by a share of its span; the cursor stays where it is until it would leave the view."""
    view = session.viewport.panned(share, limits(trace, session.clocks))
    if view == session.viewport:
        raise Refusal("the trace starts here" if share < 0 else "the trace ends here")
    return keep_cursor(session._replace(viewport=view))


def _zoom(factor: float) -> Move:
    return lambda trace, session: zoomed(trace, session, factor, keep_cursor(session).cursor)


def _pan(share: float) -> Move:
    """Return the move that pans by a share of the view, towards the start where it is negative."""
    return lambda trace, session: panned(trace, session, share)


zoom_in, zoom_out = _zoom(ZOOM_STEP), _zoom(1 / ZOOM_STEP)
zoom_in_far, zoom_out_far = _zoom(ZOOM_LEAP), _zoom(1 / ZOOM_LEAP)
pan_left, pan_right = _pan(-PAN_STEP), _pan(PAN_STEP)
page_left, page_right = _pan(-1.0), _pan(1.0)


def trace_start(trace: Trace, session: Session) -> Session:
    """Move to the start of the trace, zoom kept; from there on, to the start of far outliers."""
    low = trace.opening_span[0]
    if session.viewport.start <= low:
        low = limits(trace, session.clocks)[0]
    view = session.viewport._replace(start=low).kept_within(limits(trace, session.clocks))
    return session._replace(viewport=view, cursor=max(low, view.start))


def trace_end(trace: Trace, session: Session) -> Session:
    """Move to the end of the trace, zoom kept; from there on, to the end of far outliers."""
    high = trace.opening_span[1]
    if session.viewport.end >= high:
        high = limits(trace, session.clocks)[1]
    view = session.viewport
    view = view._replace(start=high - view.span).kept_within(limits(trace, session.clocks))
    return keep_cursor(session._replace(viewport=view, cursor=high))


def reset(trace: Trace, session: Session) -> Session:
    """Show the opening span; from there, everything, far outliers included."""
    width = session.viewport.width
    opening = view_of(*trace.opening_span, width)
    everything = view_of(*trace.span, width)
    view = everything if session.viewport == opening else opening
    changed = keep_cursor(session._replace(viewport=view, scroll=0))
    if changed == session:
        raise Refusal("this is the whole trace")
    return changed


def go_to(trace: Trace, session: Session, time: int) -> Session:
    """Put the cursor on a time and the view around it, zoom kept."""
    low, high = limits(trace, session.clocks)
    if not low <= time <= high:
        side = f"{format_ns(low - time)} before" if time < low else f"{format_ns(time - high)} after"
        raise Refusal(f"that is {side} the trace")
    view = session.viewport
    view = view._replace(start=time - view.span // 2).kept_within((low, high))
    return keep_cursor(session._replace(viewport=view, cursor=time))


def in_sight(trace: Trace, session: Session, start: int, end: int) -> Session:
    """Put the cursor on what lies from start to end; move the view only if none of it is visible."""
    view = session.viewport
    if end < view.start or start >= view.end:
        view = view._replace(start=start - round(view.span * APPROACH)).kept_within(
            limits(trace, session.clocks)
        )
    cursor = min(max(session.cursor, start), max(start, end - 1))
    cursor = cursor if view.start <= cursor < view.end else max(start, view.start)
    return keep_cursor(session._replace(viewport=view, cursor=cursor))


def zoomed_to(trace: Trace, session: Session, start: int, end: int) -> Session:
    """Zoom so that what lies from start to end takes most of the view; if it already does, show all."""
    width = session.viewport.width
    span = max(round((end - start) / SLICE_SHARE), width * MIN_CELL_NS)
    view = Viewport(start - (span - (end - start)) // 2, span, max(1, width))
    low, high = limits(trace, session.clocks)
    if span >= high - low:
        view = view_of(low, high, width)
    if session.viewport == view:
        return fit_all(trace, session)
    return keep_cursor(session._replace(viewport=view, cursor=start))


def fit_all(trace: Trace, session: Session) -> Session:
    """Show the opening span, zoom only."""
    view = view_of(*trace.opening_span, session.viewport.width)
    return keep_cursor(session._replace(viewport=view))


def stepped(trace: Trace, session: Session, steps: Sequence[StepMark], direction: int) -> Session:
    """Go to the start of the next (+1) or previous (-1) step as seen from the cursor, zoom kept."""
    if not steps:
        raise Refusal("this trace has no steps")
    if direction > 0:
        start = next((step.start for step in steps if step.start > session.cursor), None)
    else:
        start = next((step.start for step in reversed(steps) if step.start < session.cursor), None)
    if start is None:
        raise Refusal("no step after this one" if direction > 0 else "no step before this one")
    view = session.viewport
    # The step takes the place in the view that the cursor had: flipping through steps lets one compare.
    offset = min(max(session.cursor - view.start, 0), view.span - 1)
    view = view._replace(start=start - offset).kept_within(limits(trace, session.clocks))
    return keep_cursor(session._replace(viewport=view, cursor=start))


def focus_line(layout: Layout, session: Session) -> int | None:
    """Return the line of the focused row, None if there is none to be seen."""
    return None if session.focus is None else layout.y_of(session.focus)


def focusable(line: Line, layout: Layout) -> RowKey | None:
    """Return the row that keys act on when this line has the focus, None for a line that cannot have it.

    A folded process and a line of quiet threads stand for their first lane.
    """
    if line.row_key is not None:
        return line.row_key
    if line.kind in (LineKind.QUIET, LineKind.RANKS) or (line.kind is LineKind.PROCESS and line.folded):
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
    own = layout.line(y)
    last = y + (room > 1 and own is not None and own.half is Half.UPPER)
    scroll = session.scroll
    if top < scroll:
        scroll = top
    elif last >= scroll + room - layout.says_more(scroll, height):
        scroll = last - room + 1
        scroll += layout.says_more(scroll, height)
    if y == scroll and layout.title_above(scroll, height) is not None:
        scroll -= 1  # the title of its process would stand in its place
    scroll = layout.scrolled(scroll, height)
    return session if scroll == session.scroll else session._replace(scroll=scroll)


def scrolled(session: Session, layout: Layout, height: int, lines: int) -> Session:
    """Return the session scrolled by lines, as far as there are any."""
    scroll = layout.scrolled(session.scroll + lines, height)
    return session if scroll == session.scroll else session._replace(scroll=scroll)
