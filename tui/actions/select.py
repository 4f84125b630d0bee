"""Moves of the selection: along the row, up and down the nesting, from lane to lane."""

from __future__ import annotations

from dataclasses import replace

from tracelane.core.index.format import RowKind
from tracelane.core.query.hits import Hits
from tracelane.core.trace import Trace

from ..draw.layout import Layout
from ..draw.line import LineKind, alike, holders, lane_key
from ..draw.things import (
    Thing,
    child_near,
    nearest_thing,
    parent,
    row_of,
    thing_before,
    thing_by_id,
    thing_in,
)
from ..session import RowKey, Session
from . import view
from .focus import focus_line, focusable, in_view
from .refusal import Refusal


def selected(trace: Trace, session: Session, thing: Thing) -> Session:
    """Return the session with a thing selected and its row focused, in sight."""
    session = replace(session, selection=thing.id, focus=thing.key)
    return view.in_sight(trace, session, thing.start, thing.end)


def select(trace: Trace, session: Session, layout: Layout, height: int, thing: Thing) -> Session:
    """Select a thing and scroll its row into view."""
    return in_view(selected(trace, session, thing), layout, height)


def unhidden(trace: Trace, session: Session, thing: Thing) -> Session:
    """Return the session with whatever hides a thing's lane, or its row, taken back."""
    key, owners = lane_key(thing.lane), holders(trace, thing.lane.process)
    session = replace(
        session,
        hidden_lanes=session.hidden_lanes - {key},
        hidden_processes=session.hidden_processes - owners,
        hidden_alike=tuple(name for name in session.hidden_alike if name != alike(thing.lane.title)),
        folded=session.folded - {key, *owners},
    )
    layout = Layout(trace, session)
    y = layout.y_of(thing.key)
    if y is None and session.only:
        session = replace(session, only="")
        layout = Layout(trace, session)
        y = layout.y_of(thing.key)
    line = None if y is None else layout.line(y)
    if line is None:
        session = replace(session, show_quiet=True)
    elif line.kind is LineKind.PROCESS:
        session = replace(session, unfolded=session.unfolded | owners)
    elif line.kind is LineKind.QUIET:
        session = replace(session, show_quiet=True)
    elif line.kind is LineKind.MORE:
        session = replace(session, unfolded=session.unfolded | {key})
    return session


def along(
    trace: Trace,
    session: Session,
    layout: Layout,
    height: int,
    direction: int,
    left: Hits | None = None,
) -> Session:
    """Select the next (+1) or previous (-1) thing on the row; with nothing selected, move the cursor.

    Of slices only those that a filter has `left`.
    """
    if session.selection is None:
        return cursor_moved(trace, session, direction)
    thing = thing_by_id(trace, session.clocks, session.selection)
    if thing is None:
        raise Refusal("the selection is not in this trace")
    step = 0 if thing.is_gap and direction > 0 else direction  # the slice that ends a gap has its index
    if thing.is_gap and direction < 0 and left is None:
        other = thing_before(trace, session.clocks, thing)
        if other is not None:
            return select(trace, replace(session, cursor=other.start), layout, height, other)
    at: int | None = thing.index + step
    if left is not None and thing.row.kind is RowKind.SLICES:
        at = left.neighbour(thing.row.source, thing.row.number, thing.index + step - direction, direction)
    other = thing_in(trace, session.clocks, thing.row, at)
    if other is None:
        raise Refusal("the last one on this row" if direction > 0 else "the first one on this row")
    # The cursor goes to the thing's start, so that what lies under it is its first child.
    session = replace(session, cursor=other.start)
    return select(trace, session, layout, height, other)


def cursor_moved(trace: Trace, session: Session, cells: int) -> Session:
    """Move the cursor by cells; at the edge the view goes along."""
    low, high = view.limits(trace, session.clocks)
    at = session.viewport
    cell = at.cell(session.cursor) + cells
    time = at.edge(cell)
    if not low <= time < high:
        raise Refusal("the trace starts here" if cells < 0 else "the trace ends here")
    if not at.start <= time < at.end:
        at = replace(at, start=at.start + (time - session.cursor)).kept_within((low, high))
    return view.keep_cursor(replace(session, viewport=at, cursor=time))


def at_cursor(
    trace: Trace, session: Session, layout: Layout, height: int, left: Hits | None = None
) -> Session:
    """Select what lies at the cursor on the focused row, else what lies nearest, in view if anything is.

    Of slices only those that a filter has `left`.
    """
    row = session.focus
    if row is None:
        row = first_row(layout, session, height)
    if row is None:
        raise Refusal("there are no lanes")
    line = layout.y_of(row)
    if line is None or (focused := layout.line(line)) is None or focused.kind is not LineKind.ROW:
        raise Refusal("this line is several rows: {fold} opens it")
    whole = row_of(layout, row)
    if left is not None and whole is not None and whole.kind is RowKind.SLICES:
        thing = thing_in(
            trace, session.clocks, whole, left.nearest(whole.source, whole.number, session.cursor)
        )
    else:
        thing = _nearest_visible(trace, session, layout, row) or _nearest(trace, session, layout, row)
    if thing is None:
        raise Refusal("this row is empty")
    return select(trace, session, layout, height, thing)


def up(trace: Trace, session: Session, layout: Layout, height: int, left: Hits | None = None) -> Session:
    """Select the enclosing slice that a filter has `left`; from the outermost go to the lane above."""
    if session.selection is not None:
        above = thing_by_id(trace, session.clocks, session.selection)
        while above is not None:
            above = parent(trace, session.clocks, above)
            if above is not None and _is_left(above, left):
                return select(trace, session, layout, height, above)
    return row_moved(trace, session, layout, height, -1, left)


def down(trace: Trace, session: Session, layout: Layout, height: int, left: Hits | None = None) -> Session:
    """Select the child at the cursor or the one nearest to it, with a filter the slice below that it has
    `left`; from the innermost go to the lane below.
    """
    if session.selection is not None:
        thing = thing_by_id(trace, session.clocks, session.selection)
        below = None
        if thing is not None:
            nested = child_near(trace, session.clocks, thing, session.cursor)
            below = nested if left is None else _left_below(trace, session, thing, left)
        if below is not None:
            return select(trace, session, layout, height, below)
        return lane_moved(trace, session, layout, height, 1, left)
    return row_moved(trace, session, layout, height, 1, left)


def row_moved(
    trace: Trace, session: Session, layout: Layout, height: int, direction: int, left: Hits | None = None
) -> Session:
    """Focus the next row above or below; a selection goes along, past rows that a filter empties."""
    y = focus_line(layout, session)
    if y is None:
        return _focused(trace, session, layout, height, first_row(layout, session, height), left)
    y += direction
    while (line := layout.line(y)) is not None:
        key = focusable(line, layout)
        if key is not None and key != session.focus and not _emptied(session, layout, key, left):
            return _focused(trace, session, layout, height, key, left)
        y += direction
    raise Refusal("the last lane" if direction > 0 else "the first lane")


def lane_moved(
    trace: Trace, session: Session, layout: Layout, height: int, direction: int, left: Hits | None = None
) -> Session:
    """Focus the lane above or below, at its first row; a selection goes along, past rows that a filter
    empties.
    """
    y = focus_line(layout, session)
    if y is None or session.focus is None:
        return _focused(trace, session, layout, height, first_row(layout, session, height), left)
    own = session.focus.lane
    y += direction
    target: RowKey | None = None
    while (line := layout.line(y)) is not None:
        key = focusable(line, layout)
        if target is not None and key is not None and key.lane != target.lane:
            break
        if (
            key is not None
            and key.lane != own
            and line.kind is not LineKind.MORE
            and not _emptied(session, layout, key, left)
        ):
            target = key
            if direction > 0 or key.depth == 0:
                break
        y += direction
    if target is None:
        raise Refusal("the last lane" if direction > 0 else "the first lane")
    return _focused(trace, session, layout, height, target, left)


def first_row(layout: Layout, session: Session, height: int) -> RowKey | None:
    """Return the first row in view that keys can act on."""
    seen = layout.lines(session.scroll, max(1, height))
    keys = [(line.kind, key) for line in seen if (key := focusable(line, layout)) is not None]
    return next((key for kind, key in keys if kind is LineKind.ROW), keys[0][1] if keys else None)


def without_selection(session: Session) -> Session:
    """Drop the selection, keep the place."""
    return replace(session, selection=None)


def _focused(
    trace: Trace, session: Session, layout: Layout, height: int, key: RowKey | None, left: Hits | None
) -> Session:
    if key is None:
        raise Refusal("there are no lanes")
    moved = replace(session, focus=key)
    if session.selection is not None:
        thing = _nearest_visible(trace, moved, layout, key, left)
        moved = replace(moved, selection=None if thing is None else thing.id)
    return in_view(moved, layout, height)


def _is_left(thing: Thing, left: Hits | None) -> bool:
    if left is None or thing.row.kind is not RowKind.SLICES:
        return True
    source, number = thing.row.source, thing.row.number
    return left.neighbour(source, number, thing.index - 1, 1) == thing.index


def _left_below(trace: Trace, session: Session, thing: Thing, left: Hits) -> Thing | None:
    """Return the slice that a filter has left inside a slice, on the first row below that has one: that at
    the cursor, else the nearest to it.
    """
    time = min(max(session.cursor, thing.start), max(thing.start, thing.end - 1))
    for depth in range(thing.row.depth + 1, len(thing.lane.rows)):
        row = trace.row(thing.lane.index, depth)
        if row.kind is RowKind.SLICES:
            below = thing_in(trace, session.clocks, row, left.nearest(row.source, row.number, time))
            if below is not None and thing.start <= below.start and below.end <= thing.end:
                return below
    return None


def _emptied(session: Session, layout: Layout, key: RowKey, left: Hits | None) -> bool:
    """Tell whether a filter hides everything on a row, so that a moving selection passes it by."""
    row = row_of(layout, key) if left is not None and session.selection is not None else None
    if left is None or row is None or row.kind is not RowKind.SLICES:
        return False
    return not len(left.in_row(row.source, row.number))


def _nearest(trace: Trace, session: Session, layout: Layout, key: RowKey) -> Thing | None:
    row = row_of(layout, key)
    return None if row is None else nearest_thing(trace, session.clocks, row, session.cursor)


def _nearest_visible(
    trace: Trace, session: Session, layout: Layout, key: RowKey, left: Hits | None = None
) -> Thing | None:
    """Return what lies at the cursor on a row, else the nearest thing that reaches into the view; of slices
    only those that a filter has `left`.
    """
    row = row_of(layout, key)
    if row is None:
        return None
    filtered = left if row.kind is RowKind.SLICES else None
    if filtered is None:
        thing = nearest_thing(trace, session.clocks, row, session.cursor)
    else:
        at = filtered.nearest(row.source, row.number, session.cursor)
        thing = thing_in(trace, session.clocks, row, at)
    if thing is None or _is_visible(thing, session):
        return thing
    # The cursor lies in a gap and nearer to its end out of view: what ends the gap in view comes next to it.
    towards = 1 if thing.end <= session.cursor else -1
    neighbour: int | None = thing.index + towards
    if filtered is not None:
        neighbour = filtered.neighbour(row.source, row.number, thing.index, towards)
    other = thing_in(trace, session.clocks, row, neighbour)
    return other if other is not None and _is_visible(other, session) else None


def _is_visible(thing: Thing, session: Session) -> bool:
    return thing.end >= session.viewport.start and thing.start < session.viewport.end
