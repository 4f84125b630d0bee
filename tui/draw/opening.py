"""How lanes open: in which order and how deep, so that devices and what launches to them are seen at once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace

from tracelane.core.trace import Trace
from tracelane.core.trace.lane_order import drawn_device_lanes

from ..session import FOLD_ROWS, RowKey, Session
from .layout import Layout
from .line import lane_key
from .ranks import MIN_MAP, RANK_PARTS, has_map, opens_folded
from .states import MAX_SLICES

MIN_HOST_ROWS = 3
"""Threads that launch show at least so many rows."""
MIN_DEVICE_ROWS = 1
MAP_DEPTHS = ((FOLD_ROWS, FOLD_ROWS), (MIN_HOST_ROWS, FOLD_ROWS), (0, FOLD_ROWS), (0, MIN_DEVICE_ROWS))
"""Rows that host lanes and device lanes of open ranks have beside a map: the most that leave it room."""


def with_devices_in_view(trace: Trace, session: Session, height: int) -> Session:
    """Return the session as it opens with `height` lines for lanes: devices first, and a line for each part
    of a folded rank where they fit. Where not all lanes fit, host and device lanes are folded so far that all
    devices and the threads that launch to them are seen, as far as that is possible.
    A trace without devices opens as its file orders it.
    """
    session = replace(
        session, host_rows=FOLD_ROWS, device_rows=FOLD_ROWS, rank_lines=1, map_lines=0, devices_first=False
    )
    drawn = drawn_device_lanes(trace)
    has_device = any(not one.aside and not drawn.isdisjoint(one.lanes) for one in trace.processes)
    if has_map(trace) and not session.only:
        return _with_map(trace, replace(session, devices_first=has_device), height)
    if not has_device or session.only:
        return session
    session = replace(session, devices_first=True)
    if Layout(trace, session).height <= height:
        split = replace(session, rank_lines=len(RANK_PARTS))
        slices = sum(trace.lanes[number].slices for number in drawn_device_lanes(trace))
        has_parts = opens_folded(trace) and not trace.missing and slices <= MAX_SLICES
        has_room = has_parts and Layout(trace, split).height <= height
        return split if has_room else session
    devices = sorted(number for number in drawn_device_lanes(trace) if trace.lanes[number].slices)
    threads = sorted(trace.launching_lanes.items(), key=lambda pair: -pair[1])
    first = [number for number, _ in threads[:1]]

    def seen(session: Session, numbers: Sequence[int]) -> bool:
        layout = Layout(trace, session)
        says_more = layout.says_more(0, height)
        for number in numbers:
            lane = trace.lanes[number]
            top = layout.y_of(RowKey(lane_key(lane), 0))
            if top is not None and top + min(MIN_HOST_ROWS, lane.depth) > height - says_more:
                return False
        return True

    shallow, chief = replace(session, host_rows=MIN_HOST_ROWS), [*devices, *first]
    if opens_folded(trace) and not seen(replace(shallow, device_rows=MIN_DEVICE_ROWS), chief):
        shallow = replace(session, host_rows=0)  # an open rank leaves room for the others
    rows = _most(MIN_DEVICE_ROWS, lambda rows: seen(replace(shallow, device_rows=rows), chief))
    session = replace(shallow, device_rows=rows)
    if not session.host_rows:
        return session
    every = [number for number, _ in threads]
    rows = _most(MIN_HOST_ROWS, lambda rows: seen(replace(session, host_rows=rows), every))
    return replace(session, host_rows=rows)


def _with_map(trace: Trace, session: Session, height: int) -> Session:
    """Return the session with the lines that folded ranks share: two ranks in each where all fit, else more.
    Ranks that are open are as deep as leaves the map room.
    """
    for host_rows, device_rows in MAP_DEPTHS:
        session = replace(session, host_rows=host_rows, device_rows=device_rows, map_lines=1)
        layout = Layout(trace, session)
        ranks = layout.ranks_in_map
        others = layout.height - (ranks > 0)
        wanted_lines = -(-ranks // 2)
        if others + min(wanted_lines, max(MIN_MAP, height // 3)) <= height:
            break
    return replace(session, map_lines=max(1, min(wanted_lines, max(MIN_MAP, height - others))))


def _most(least: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number of rows that fits, at least `least`; fewer always need less room."""
    if fits(FOLD_ROWS):
        return FOLD_ROWS
    rows = range(least, FOLD_ROWS)
    return rows[max(0, bisect_left(rows, True, key=lambda count: not fits(count)) - 1)]
