"""How lanes open: in which order and how deep, so that devices and what launches to them are seen at once."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence

from tracelane.core.trace import LaneRole, Trace
from tracelane.core.trace.lane_order import drawn_device_lanes

from ..session import FOLD_ROWS, RowKey, Session
from .layout import Layout
from .line import lane_key
from .ranks import MIN_MAP, RANK_PARTS, has_map, opens_folded
from .states import MAX_SLICES

MIN_HOST_ROWS = 3
"""Threads that launch show at least so many rows."""
MIN_DEVICE_ROWS = 1
TALL_FROM = 12
"""Lines of lanes from which on a row in which a device works may have two."""
MIN_BELOW_TALL = 5
"""Rows of host lanes that are worth more than a second line of a device's row."""
MAP_DEPTHS = ((FOLD_ROWS, FOLD_ROWS), (MIN_HOST_ROWS, FOLD_ROWS), (0, FOLD_ROWS), (0, MIN_DEVICE_ROWS))
"""Rows that host lanes and device lanes of open ranks have beside a map: the most that leave it room."""


def with_devices_in_view(trace: Trace, session: Session, height: int) -> Session:
    """Return the session as it opens with `height` lines for lanes: devices first, and a line for each part
    of a folded rank where they fit. Where not all lanes fit, host and device lanes are folded so far that all
    devices and the threads that launch to them are seen, as far as that is possible. Where the host's lanes
    take more lines than the devices', a row with work (rows_at_work) has two, as far as there is room.
    A trace without devices opens as its file orders it.
    """
    session = session._replace(
        host_rows=FOLD_ROWS,
        device_rows=FOLD_ROWS,
        device_lines=1,
        rank_lines=1,
        map_lines=0,
        devices_first=False,
    )
    drawn = drawn_device_lanes(trace)
    has_device = any(not one.aside and not drawn.isdisjoint(one.lanes) for one in trace.processes)
    if has_map(trace) and not session.only:
        return _with_map(trace, session._replace(devices_first=has_device), height)
    if not has_device or session.only:
        return session
    plain = _as_deep_as_fits(trace, session._replace(devices_first=True), height)
    return _with_tall_devices(trace, plain, height)


def _as_deep_as_fits(trace: Trace, session: Session, height: int) -> Session:
    """Return the session with host and device lanes folded so far that all devices and the threads that
    launch to them are seen, as far as that is possible; unfolded where all lanes fit.
    """
    session = session._replace(host_rows=FOLD_ROWS, device_rows=FOLD_ROWS)
    if Layout(trace, session).height <= height:
        split = session._replace(rank_lines=len(RANK_PARTS))
        slices = sum(trace.lanes[number].slices for number in drawn_device_lanes(trace))
        has_parts = opens_folded(trace) and not trace.missing and slices <= MAX_SLICES
        has_room = has_parts and Layout(trace, split).height <= height
        return split if has_room else session
    devices = _devices(trace)
    threads = sorted(trace.launching_lanes.items(), key=lambda pair: -pair[1])
    chief = [*devices, *(number for number, _ in threads[:1])]
    shallow = session._replace(host_rows=MIN_HOST_ROWS)
    if opens_folded(trace) and not _are_seen(
        trace, shallow._replace(device_rows=MIN_DEVICE_ROWS), chief, height
    ):
        shallow = session._replace(host_rows=0)  # an open rank leaves room for the others
    rows = _most(
        MIN_DEVICE_ROWS, lambda rows: _are_seen(trace, shallow._replace(device_rows=rows), chief, height)
    )
    session = shallow._replace(device_rows=rows)
    if not session.host_rows:
        return session
    every = [number for number, _ in threads]
    rows = _most(
        MIN_HOST_ROWS, lambda rows: _are_seen(trace, session._replace(host_rows=rows), every, height)
    )
    return session._replace(host_rows=rows)


def _devices(trace: Trace) -> list[int]:
    return sorted(number for number in drawn_device_lanes(trace) if trace.lanes[number].slices)


def _are_seen(trace: Trace, session: Session, numbers: Sequence[int], height: int) -> bool:
    """Tell whether the first screen has the first MIN_HOST_ROWS rows of some lanes."""
    layout = Layout(trace, session)
    says_more = layout.says_more(0, height)
    for number in numbers:
        lane = trace.lanes[number]
        last = min(MIN_HOST_ROWS, lane.depth) - 1
        top = layout.y_of(RowKey(lane_key(lane), 0))
        if top is not None and top + last >= height - says_more:
            return False
    return True


def _with_tall_devices(trace: Trace, plain: Session, height: int) -> Session:
    """Return a session in which rows of a device's work have two lines, where the host's have more lines than
    the devices, these stay as deep as they are, the host's at least MIN_BELOW_TALL rows, and all threads that
    launch are seen that were; else the session as it is.
    """
    if height < TALL_FROM or opens_folded(trace) or not _has_more_of_host(trace, plain, height):
        return plain
    tall = _as_deep_as_fits(trace, plain._replace(device_lines=2), height)
    is_deep = tall.device_rows >= plain.device_rows and tall.host_rows >= min(plain.host_rows, MIN_BELOW_TALL)
    seen = [number for number in trace.launching_lanes if _are_seen(trace, plain, [number], height)]
    return tall if is_deep and _are_seen(trace, tall, [*_devices(trace), *seen], height) else plain


def _has_more_of_host(trace: Trace, session: Session, height: int) -> bool:
    """Tell whether on the first screen more lines are rows of the host than of devices."""
    lines = Layout(trace, session).visible(0, height)
    roles = Counter(line.lane.role for line in lines if line is not None and line.lane is not None)
    return roles[LaneRole.HOST] > roles[LaneRole.DEVICE]


def _with_map(trace: Trace, session: Session, height: int) -> Session:
    """Return the session with the lines that folded ranks share: two ranks in each where all fit, else more.
    Ranks that are open are as deep as leaves the map room.
    """
    for host_rows, device_rows in MAP_DEPTHS:
        session = session._replace(host_rows=host_rows, device_rows=device_rows, map_lines=1)
        layout = Layout(trace, session)
        ranks = layout.ranks_in_map
        others = layout.height - (ranks > 0)
        wanted_lines = -(-ranks // 2)
        if others + min(wanted_lines, max(MIN_MAP, height // 3)) <= height:
            break
    return session._replace(map_lines=max(1, min(wanted_lines, max(MIN_MAP, height - others))))


def _most(least: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number of rows that fits, at least `least`; fewer always need less room."""
    if fits(FOLD_ROWS):
        return FOLD_ROWS
    rows = range(least, FOLD_ROWS)
    return rows[max(0, bisect_left(rows, True, key=lambda count: not fits(count)) - 1)]
