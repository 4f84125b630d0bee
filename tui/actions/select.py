"""Moves of the selection: along the row, up and down the nesting, from lane to lane; from a kernel back to
its launch and on from a launch: flows first, then what the ids tell.
"""

from __future__ import annotations

from dataclasses import dataclass

from tracelane.core.base.kineto import ANNOTATIONS, OPS
from tracelane.core.index.format import RowKind
from tracelane.core.query.hits import Hits
from tracelane.core.query.views import SliceId
from tracelane.core.trace import LaneRole, Row, Trace
from tracelane.core.trace.arrows import device_work_of_id

from ..draw.layout import Layout
from ..draw.line import LineKind, alike, holders, lane_key
from ..draw.things import (
    Thing,
    child_near,
    gap_thing_at,
    nearest_thing,
    parent,
    row_of,
    thing_before,
    thing_in,
)
from ..session import RowKey, Session
from . import view
from .scene import Refusal, Scene
from .view import focus_line, focusable, in_view


def select(scene: Scene, thing: Thing) -> Session:
    """Select a thing and scroll its row into view."""
    session = scene.session._replace(selection=thing.id, focus=thing.key)
    session = view.in_sight(scene.trace, session, thing.start, thing.end)
    return in_view(session, scene.layout, scene.height)


def unhidden(trace: Trace, session: Session, thing: Thing) -> Session:
    """Return the session with whatever hides a thing's lane, or its row, taken back."""
    key, owners = lane_key(thing.lane), holders(trace, thing.lane.process)
    session = session._replace(
        hidden_lanes=session.hidden_lanes - {key},
        hidden_processes=session.hidden_processes - owners,
        hidden_alike=tuple(name for name in session.hidden_alike if name != alike(thing.lane.title)),
        folded=session.folded - {key, *owners},
    )
    layout = Layout(trace, session)
    y = layout.y_of(thing.key)
    if y is None and session.only:
        session = session._replace(only="")
        layout = Layout(trace, session)
        y = layout.y_of(thing.key)
    line = None if y is None else layout.line(y)
    if line is None:
        session = session._replace(show_quiet=True)
    elif line.kind in (LineKind.PROCESS, LineKind.RANKS):
        session = session._replace(unfolded=session.unfolded | owners)
    elif line.kind is LineKind.QUIET:
        session = session._replace(show_quiet=True)
    elif line.kind is LineKind.MORE:
        session = session._replace(unfolded=session.unfolded | {key})
    return session


def along(scene: Scene, direction: int) -> Session:
    """Select the next (+1) or previous (-1) thing on the row; with nothing selected, move the cursor."""
    trace, session, left = scene.trace, scene.session, scene.left
    if session.selection is None:
        return cursor_moved(trace, session, direction)
    thing = scene.selected
    if thing is None:
        raise Refusal("the selection is not in this trace")
    other = None
    if thing.is_gap and direction < 0 and left is None:
        other = thing_before(trace, session.clocks, thing)
    if other is None:
        step = 0 if thing.is_gap and direction > 0 else direction  # the slice that ends a gap has its index
        at: int | None = thing.index + step
        if left is not None and thing.row.kind is RowKind.SLICES:
            before = thing.index + step - direction
            at = left.neighbour(thing.row.source, thing.row.number, before, direction)
        other = thing_in(trace, session.clocks, thing.row, at)
    if other is None:
        raise Refusal("the last one on this row" if direction > 0 else "the first one on this row")
    # The cursor goes to the thing's start, so that what lies under it is its first child.
    return select(scene.at(session._replace(cursor=other.start)), other)


def cursor_moved(trace: Trace, session: Session, cells: int) -> Session:
    """Move the cursor by cells; at the edge the view goes along."""
    low, high = view.limits(trace, session.clocks)
    at = session.viewport
    cell = at.cell(session.cursor) + cells
    time = at.edge(cell)
    if not low <= time < high:
        raise Refusal("the trace starts here" if cells < 0 else "the trace ends here")
    if not at.start <= time < at.end:
        at = at._replace(start=at.start + (time - session.cursor)).kept_within((low, high))
    return view.keep_cursor(session._replace(viewport=at, cursor=time))


def at_cursor(scene: Scene) -> Session:
    """Select what lies at the cursor on the focused row, on a device's lane a gap too that fills its cell;
    else what lies nearest, in view if anything is.
    """
    trace, session, layout, left = scene.trace, scene.session, scene.layout, scene.left
    row = session.focus or first_row(scene)
    if row is None:
        raise Refusal("there are no lanes")
    line = layout.y_of(row)
    if line is None or (focused := layout.line(line)) is None or focused.kind is not LineKind.ROW:
        raise Refusal("this line is several rows: {fold} opens it")
    whole = row_of(layout, row)
    if left is not None and whole is not None and whole.kind is RowKind.SLICES:
        at = left.nearest(whole.source, whole.number, session.cursor)
        thing = thing_in(trace, session.clocks, whole, at)
    else:
        gap = None if whole is None else _gap_in_cell(scene, whole)
        thing = gap or _nearest_visible(scene._replace(left=None), row)
        if thing is None and whole is not None:
            thing = nearest_thing(trace, session.clocks, whole, session.cursor)
    if thing is None:
        raise Refusal("this row is empty")
    return select(scene, thing)


def _gap_in_cell(scene: Scene, row: Row) -> Thing | None:
    """Return the gap in a device's work that fills the cell at the cursor, as a click there selects it."""
    trace, session = scene.trace, scene.session
    if trace.lanes[row.lane].role is not LaneRole.DEVICE or row.kind is not RowKind.SLICES:
        return None
    cell = session.viewport.cell(session.cursor)
    gap = gap_thing_at(trace, session.clocks, row, session.cursor)
    left, right = (session.viewport.edge(one) for one in (cell, cell + 1))
    return gap if gap is not None and gap.start <= left and right <= gap.end else None


def up(scene: Scene) -> Session:
    """Select the enclosing slice that a filter has left; from the outermost go to the lane above."""
    above = scene.selected
    while above is not None:
        above = parent(scene.trace, scene.session.clocks, above)
        if above is not None and _is_left(above, scene.left):
            return select(scene, above)
    return row_moved(scene, -1)


def down(scene: Scene) -> Session:
    """Select the child at the cursor or the one nearest to it, with a filter the slice below that it has
    left; from the innermost go to the lane below.
    """
    if scene.session.selection is None:
        return row_moved(scene, 1)
    thing, below = scene.selected, None
    if thing is not None and scene.left is None:
        below = child_near(scene.trace, scene.session.clocks, thing, scene.session.cursor)
    elif thing is not None and scene.left is not None:
        below = _left_below(scene, thing, scene.left)
    return lane_moved(scene, 1) if below is None else select(scene, below)


def row_moved(scene: Scene, direction: int) -> Session:
    """Focus the next row above or below; a selection goes along, past rows that a filter empties."""
    y = focus_line(scene.layout, scene.session)
    if y is None:
        return _focused(scene, first_row(scene))
    y += direction
    while (line := scene.layout.line(y)) is not None:
        key = focusable(line, scene.layout)
        if key is not None and key != scene.session.focus and not _emptied(scene, key):
            return _focused(scene, key)
        y += direction
    raise Refusal("the last lane" if direction > 0 else "the first lane")


def lane_moved(scene: Scene, direction: int) -> Session:
    """Focus the lane above or below, at its first row; a selection goes along, past rows that a filter
    empties.
    """
    y, focus = focus_line(scene.layout, scene.session), scene.session.focus
    if y is None or focus is None:
        return _focused(scene, first_row(scene))
    y += direction
    target: RowKey | None = None
    while (line := scene.layout.line(y)) is not None:
        key = focusable(line, scene.layout)
        if target is not None and key is not None and key.lane != target.lane:
            break
        is_other = key is not None and key.lane != focus.lane and line.kind is not LineKind.MORE
        if key is not None and is_other and not _emptied(scene, key):
            target = key
            if direction > 0 or key.depth == 0:
                break
        y += direction
    if target is None:
        raise Refusal("the last lane" if direction > 0 else "the first lane")
    return _focused(scene, target)


def first_row(scene: Scene) -> RowKey | None:
    """Return the first row in view that keys can act on."""
    seen = scene.layout.lines(scene.session.scroll, max(1, scene.height))
    keys = [(line.kind, key) for line in seen if (key := focusable(line, scene.layout)) is not None]
    return next((key for kind, key in keys if kind is LineKind.ROW), keys[0][1] if keys else None)


def _focused(scene: Scene, key: RowKey | None) -> Session:
    if key is None:
        raise Refusal("there are no lanes")
    moved = scene.session._replace(focus=key)
    if moved.selection is not None:
        thing = _nearest_visible(scene, key)
        moved = moved._replace(selection=None if thing is None else thing.id)
    return in_view(moved, scene.layout, scene.height)


def _is_left(thing: Thing, left: Hits | None) -> bool:
    if left is None or thing.row.kind is not RowKind.SLICES:
        return True
    source, number = thing.row.source, thing.row.number
    return left.neighbour(source, number, thing.index - 1, 1) == thing.index


def _left_below(scene: Scene, thing: Thing, left: Hits) -> Thing | None:
    """Return the slice that a filter has left inside a slice, on the first row below that has one: that at
    the cursor, else the nearest to it.
    """
    time = min(max(scene.session.cursor, thing.start), max(thing.start, thing.end - 1))
    for depth in range(thing.row.depth + 1, len(thing.lane.rows)):
        row = scene.trace.row(thing.lane.index, depth)
        if row.kind is RowKind.SLICES:
            at = left.nearest(row.source, row.number, time)
            below = thing_in(scene.trace, scene.session.clocks, row, at)
            if below is not None and thing.start <= below.start and below.end <= thing.end:
                return below
    return None


def _emptied(scene: Scene, key: RowKey) -> bool:
    """Tell whether a filter hides everything on a row, so that a moving selection passes it by."""
    left = scene.left
    row = row_of(scene.layout, key) if left is not None and scene.session.selection is not None else None
    if left is None or row is None or row.kind is not RowKind.SLICES:
        return False
    return not len(left.in_row(row.source, row.number))


def _nearest_visible(scene: Scene, key: RowKey) -> Thing | None:
    """Return what lies at the cursor on a row, else the nearest thing that reaches into the view."""
    row = row_of(scene.layout, key)
    if row is None:
        return None
    trace, session = scene.trace, scene.session
    filtered = scene.left if row.kind is RowKind.SLICES else None
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


MAX = 1000
"""The most targets that are looked up; the list says when there are more."""
MAX_INSIDE = 16
"""So many of the slices directly inside an operator are asked for its forward one."""


@dataclass(frozen=True)
class Target:
    """A slice that can be gone to, and how it is known: a flow's category, "correlation", "external id",
    "sequence number", or "launch" for one made within the slice.
    """

    id: SliceId
    via: str


def back_from(trace: Trace, identity: SliceId) -> list[Target]:
    """Return what launched a slice, or what its flows come from; of an operator of a backward pass the
    forward one. Refusal where nothing is known.
    """
    targets = _flow_sources(trace, identity)
    if not targets:
        links = trace.chain(identity)
        if len(links) > 1 and links[0].role == "kernel" and links[1].via != "enclosing":
            targets = [Target(links[1].id, links[1].via)]
        elif links and links[0].role == "op":
            targets = _forward_ops(trace, identity)
    if not targets:
        raise Refusal("the trace does not say what launched this")
    return _distinct(targets)


def _flow_sources(trace: Trace, identity: SliceId) -> list[Target]:
    return [
        Target(arrow.source, arrow.category)
        for arrow in trace.flows_in(identity, MAX)
        if arrow.source is not None and arrow.source != identity
    ]


def _forward_ops(trace: Trace, identity: SliceId) -> list[Target]:
    """Return the operators that a backward one belongs to: where the arrows into those directly inside it
    come from (autograd's node of an operator has none of its own), else by its sequence number, or theirs.
    """
    inside = trace.children(identity, MAX_INSIDE)
    arrows = [target for child in inside for target in _flow_sources(trace, child)]
    if arrows:
        return arrows
    numbered = (trace.forward_ops(one) for one in (identity, *inside))
    return [Target(forward, "sequence number") for forward in next(filter(None, numbered), ())]


def on_from(trace: Trace, identity: SliceId) -> list[Target]:
    """Return what a slice launched, itself or by launches within it, and what its flows lead to; Refusal
    where nothing is known.
    """
    targets = [
        Target(arrow.target, arrow.category)
        for arrow in trace.flows_out(identity, MAX)
        if arrow.target is not None and arrow.target != identity
    ]
    detail = trace.detail(identity)
    if detail is not None and detail.category in OPS | ANNOTATIONS | frozenset(
        {"python_function"}
    ):  # through others
        launched = trace.kernels_under(identity)
        positions = [] if launched is None else launched.kernels[:MAX].tolist()
        targets += [Target(trace.slice_id_of(identity.source, position), "launch") for position in positions]
    if not targets:
        targets = [Target(*work) for work in device_work_of_id(trace, identity, MAX)]
    if not targets:
        raise Refusal("the trace does not say that this launched anything")
    return _distinct(targets)


def _distinct(targets: list[Target]) -> list[Target]:
    return list({target.id: target for target in reversed(targets)}.values())[::-1]
