"""Which lanes are drawn, in what order, and how deep they open."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tracelane.core.base.arrays import AnyArray
from tracelane.core.base.cached_per_object import cached_per_object
from tracelane.core.base.errors import UsageError
from tracelane.core.base.progress import CancelledCallback
from tracelane.core.query.views import names_rank
from tracelane.core.trace import Lane, LaneRole, Process, RowKind, Trace
from tracelane.core.trace.lane_order import devices_first, drawn_device_lanes, lanes_devices_first

from ..session import FOLD_ROWS, Session
from .line import Line, LineKind
from .ranks import by_rank, rank_heads

if TYPE_CHECKING:
    from tracelane.core.base.pattern import Pattern

PRESETS = MappingProxyType(
    {
        "everything": "all lanes, devices first",
        "devices": "device lanes alone",
        "launching": "devices, and the threads that launch to them",
        "file": "all lanes, as the file orders them",
    }
)
"""In the order in which a key goes through them, each with what it shows."""


def preset_of(session: Session) -> str:
    if session.preset in PRESETS:
        return session.preset
    return "everything" if session.devices_first else "file"


def ordered(trace: Trace, processes: Sequence[Process], session: Session) -> Sequence[Process]:
    """Return processes in the preset's order; what is measured of a process stays below it."""
    if preset_of(session) == "file":
        return processes
    return devices_first(trace, processes)


def lanes_in_order(trace: Trace, process: Process, session: Session) -> Sequence[int]:
    """Return the places of a process's lanes in the preset's order: devices, then those that launch most."""
    if preset_of(session) == "file":
        return process.lanes
    return lanes_devices_first(trace, process)


def is_left_out(trace: Trace, number: int, session: Session) -> bool:
    preset = preset_of(session)
    if preset not in ("devices", "launching") or number in drawn_device_lanes(trace):
        return False
    return preset == "devices" or number not in trace.launching_lanes


@cached_per_object(4)
def only_lanes(trace: Trace, only: str) -> frozenset[int]:
    """Return the places of the lanes whose own title, or whose process's or rank's, matches a text. Raises
    SlowPatternError.
    """
    pattern = pattern_of(only)
    matching: list[int] = []
    titles = titles_of(trace)
    hits = dict(zip(titles, pattern.matches_in(titles)))
    for rank, processes in by_rank(trace):
        whole = rank is not None and names_rank(pattern, rank.title)
        for process in processes:
            if whole or hits[process.title]:
                matching += process.lanes
            else:
                matching += [number for number in process.lanes if hits[trace.lanes[number].title]]
    return frozenset(matching)


def pattern_of(only: str) -> Pattern:
    """Return the pattern; what is no regular expression is looked for as it stands."""
    from tracelane.core.base.pattern import Pattern

    pattern = Pattern(only, ignore_case=True)
    try:
        pattern.check(only)
    except UsageError:
        return Pattern(re.escape(only), ignore_case=True)
    return pattern


def titles_of(trace: Trace) -> list[str]:
    lanes = [lane.title for lane in trace.lanes]
    processes = [process.title for process in trace.processes]
    ranks = [head.title for head in rank_heads(trace).values()]
    return list(dict.fromkeys((*lanes, *processes, *ranks)))


def ask_titles(trace: Trace, pattern: Pattern, cancelled: CancelledCallback) -> None:
    """Have a pattern that may take long answered for all titles, so that asking again takes no time. Raises
    SlowPatternError, Cancelled.
    """
    pattern.matches_in(titles_of(trace), cancelled)
    for head in rank_heads(trace).values():
        pattern.end_of_match(head.title, cancelled)


def rows_shown(lane: Lane, session: Session, rows: int) -> int:
    """Return how many of so many rows a lane opens with; one that is a row deeper shows it, uncounted."""
    most = session.device_rows if lane.role is LaneRole.DEVICE else session.host_rows or FOLD_ROWS
    return most + 1 if rows == most + 1 else most


MIN_WORK = 0.05
"""A row in which a device works less is drawn in one line."""


@cached_per_object(4096)
def rows_at_work(trace: Trace, number: int) -> Sequence[bool]:
    """Tell of each row of a device's lane whether work takes MIN_WORK of the time that opens; annotations and
    waits are none.
    """
    lane, (start, end) = trace.lanes[number], trace.opening_span
    busy = trace.row_columns(lane).busy_besides(trace.besides_work(lane.source))
    return [bool(works) for works in busy >= max(1, MIN_WORK * (end - start))]


def is_outside(lane: Lane, trace: Trace) -> bool:
    """Tell whether a lane lies wholly outside the first window: such lanes open folded."""
    offset = trace.clocks.offset(lane.source, lane.pid)
    return lane.end + offset < trace.opening_span[0] or lane.start + offset > trace.opening_span[1]


def toggle_fold(session: Session, line: Line, trace: Trace) -> Session:
    if line.kind is LineKind.QUIET:
        return session._replace(show_quiet=True)
    key = line.fold_key
    if key is None:
        return session
    if line.folded:
        return session._replace(folded=session.folded - {key}, unfolded=session.unfolded | {key})
    unfolded = session.unfolded - {key}
    lane = line.lane
    is_deep = lane is not None and len(lane.rows) > rows_shown(lane, session, len(lane.rows))
    if is_deep and key in session.unfolded:
        return session._replace(unfolded=unfolded)
    return session._replace(folded=session.folded | {key}, unfolded=unfolded)


MIN_FRAMES = 3
"""Fewer frames are drawn one by one."""
WIDE = 0.9
"""A frame that takes this share of its lane's extent is there nearly all the time."""
NEARLY_ALL = 0.99
"""A frame that takes this share may have others in its row: slices of a row are disjoint, so that they take a
hundredth at most. Rows of a capture with 18 such frames have 0.4 % beside them.
"""
LITTLE = 0.1
"""Rows of Python frames below them that fill less of the extent are folded with them."""
PYTHON = "python_function"


MIN_DEPTH = 3
"""Lanes of fewer rows show each."""
REPEATED = 0.95
"""A slice of which one child takes this share is repeated by it."""


class FoldedFrames(NamedTuple):
    """Rows of a lane that one line stands for: their depths, and the one that is drawn on it."""

    depths: range
    drawn: int


def folded_frames(trace: Trace, lane: Lane) -> tuple[FoldedFrames, ...]:
    """Return which rows of a host's lane one line each stands for, from above. Of Python frames at least
    three that span the lane one below the other, and those below such ones that fill little of it: the
    innermost is drawn. Beside a frame that takes 99 % of the extent there may be others in its row, which
    together are at most a hundredth. Then chains, rows that only repeat the one above: the first is drawn.
    """
    if lane.depth < MIN_DEPTH or lane.role is not LaneRole.HOST:
        return ()
    return _folded(trace, lane.index)


@cached_per_object(4096)
def _folded(trace: Trace, number: int) -> tuple[FoldedFrames, ...]:
    lane = trace.lanes[number]
    frames = _spanning(trace, lane) if PYTHON in trace.categories(lane.source) else []
    away = {depth for one in frames for depth in one.depths}
    repeats = trace.row_columns(lane).repeat_those_above(REPEATED)
    row = 0
    while row < len(repeats):
        end = row + 1
        while end < len(repeats) and repeats[end] and row not in away and end not in away:
            end += 1
        if end - row > 1:
            frames.append(FoldedFrames(range(row, end), row))
        row = end
    return tuple(sorted(frames, key=lambda one: one.depths.start))


def _spanning(trace: Trace, lane: Lane) -> list[FoldedFrames]:
    rows, extent = trace.row_columns(lane), max(1, lane.end - lane.start)
    wide = rows.are_slices & (rows.extents >= WIDE * extent)
    for depth in np.flatnonzero(wide).tolist():
        wide[depth] = spanning_frame(trace, lane, depth) is not None
    busy = np.where(rows.counts == 1, rows.extents, rows.busy)
    little = rows.hold_only(PYTHON) & (busy >= 0) & (busy < LITTLE * extent)
    groups: list[FoldedFrames] = []
    row = 0
    while row < len(wide):
        end = row + _leading(wide[row:])
        below = end + _leading(little[end:]) if end > row else row + 1
        if below - row >= MIN_FRAMES:
            groups.append(FoldedFrames(range(row, below), end - 1))
        row = below
    return groups


def spanning_frame(trace: Trace, lane: Lane, depth: int) -> int | None:
    """Return the place in its row of a Python frame that takes nearly all of a lane's extent: alone in its
    row 90 % of it, else 99 %; None where there is none.
    """
    row = trace.row(lane, depth)
    if row.kind is not RowKind.SLICES or not row.count:
        return None
    at = trace.slice_at(row, row.start + (row.end - row.start) // 2)  # a frame that long covers the middle
    if at is None or trace.slice_category(row, at) != PYTHON:
        return None
    start, end = trace.bounds(row, at)
    least = WIDE if row.count == 1 else NEARLY_ALL
    return at if end - start >= least * max(1, lane.end - lane.start) else None


def _leading(holds: AnyArray) -> int:
    others = np.flatnonzero(~holds)
    return int(others[0]) if len(others) else len(holds)
