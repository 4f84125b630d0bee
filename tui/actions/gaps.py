"""Moves from gap to gap: on a device's lane in its work, as `idle` counts it, else on the focused row."""

from __future__ import annotations

from tracelane.core.base.units import format_ns
from tracelane.core.index.format import RowKind
from tracelane.core.tables.device.gap import GapBounds, gaps_of, work_gaps
from tracelane.core.trace import Lane, Row
from tracelane.core.trace.devices import devices

from ..draw.line import lane_key
from ..draw.things import gap_thing, row_of
from ..session import RowKey, Session
from .scene import Refusal, Scene
from .select import first_row, select
from .view import zoomed_to

MIN_CELLS = 3
"""A gap of fewer cells is zoomed to: nothing would be seen in it."""
MARGIN = 8
"""It takes one part in so many of the view then."""


def next_one(scene: Scene) -> Session:
    """Select the next gap that is at least a cell wide."""
    session, row = scene.session, _row(scene)
    thing = scene.selected
    gaps = gaps_of(scene.trace, row, session.clocks)
    on_device = work_gaps(scene.trace, row.lane, session.clocks) is not None
    time, after = session.cursor, None
    least = max(1, session.viewport.span // max(1, session.viewport.width))
    if session.aim == "step":  # why the device waits there: the gap that the step begins in
        begin = gaps.begin_of(time) if gaps is not None and on_device else None
        time, least = (time, least) if begin is None else (begin, 1)
    elif thing is not None and (thing.row.lane == row.lane if on_device else thing.row.number == row.number):
        time = thing.end
        if thing.is_gap:
            after = scene.trace.position(thing.row, thing.index)
    gap = None if gaps is None else gaps.bounds(gaps.first_after(time, after, least))
    if gap is None:
        raise Refusal(f"no gap of a cell ({format_ns(least)}) or more from here on: zoom in for shorter ones")
    return _selected(scene, gap)


def select_longest_gap(scene: Scene) -> Session:
    """Select the longest gap, of the range if there is one."""
    session, row = scene.session, _row(scene)
    gaps = gaps_of(scene.trace, row, session.clocks)
    gap = None if gaps is None else gaps.bounds(gaps.longest(session.range))
    if gap is None:
        raise Refusal("no gap in the work of this lane" + (", in the range" if session.range else ""))
    return _selected(scene, gap)


def _row(scene: Scene) -> Row:
    key = scene.session.focus or _device_row(scene)
    key = key or first_row(scene)
    row = None if key is None else row_of(scene.layout, key)
    if row is None or row.kind is not RowKind.SLICES:
        raise Refusal("gaps are between slices: {up} {down} choose a row that has some")
    return row


def _device_row(scene: Scene) -> RowKey | None:
    """Return the first row of the lane on which devices work most, of those to be seen; None without one."""
    trace, clocks = scene.trace, scene.session.clocks
    keys: dict[int, RowKey] = {}
    for device in devices(trace):
        for number in device.lanes:
            key = RowKey(lane_key(trace.lanes[number]), 0)
            if scene.layout.y_of(key) is not None:
                keys[number] = key

    def work_ns(lane: Lane) -> int:  # from prefix sums
        return int(trace.work_cells(lane, trace.opening_span, clocks).busy[0])

    for number in sorted(keys, key=lambda number: -work_ns(trace.lanes[number])):
        gaps = work_gaps(trace, number, clocks)
        if gaps is not None and len(gaps.starts):
            return keys[number]
    return None


def _selected(scene: Scene, gap: GapBounds) -> Session:
    thing = gap_thing(scene.trace, gap)
    if thing is None:
        raise Refusal("there is no gap")
    # A gap begins where the cursor goes, so that the next one is looked for from there.
    session = scene.session._replace(cursor=thing.start)
    length, view = max(1, thing.end - thing.start), session.viewport
    if length * view.width < MIN_CELLS * view.span:
        margin = length * (MARGIN - 1) // 2
        session = zoomed_to(scene.trace, session, thing.start - margin, thing.end + margin)
        session = session._replace(cursor=thing.start)
    return select(scene.at(session), thing)
