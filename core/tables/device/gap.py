"""The gaps of a lane, and one gap in full: its class, the launch that ended it, what the CPU did meanwhile.

On a device's lane a gap is one in the lane's *work*, exactly as `idle` counts it: per stream, from the latest
end so far, without annotations. On any other lane it is the time between two slices of one row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...base.arrays import I64, AnyArray
from ...base.cached_per_object import cached_per_object
from ...base.clock import NO_CLOCKS, Clocks
from ...index.flex import is_flex
from ...index.format import LaneKind, LaneRole, RowKind
from ...query.lookup import lanes_of
from ...query.views import Lane, Link, Row, SliceId
from ...trace import Trace
from ...trace.devices import devices
from ..frame.frame_columns import gap_rows, timed_work
from ..frame.scope import Scope
from ..frame.work_device import GAP_CLASSES
from .untrusted_periods import with_known_gaps

LANES_WITH_GAPS = 64
"""Lanes whose gaps are held in memory, those asked for last."""
THREADS = 8
"""The most threads that are listed: the launching one first, then those that one slice kept busy."""
WAITING_FRAMES = re.compile(
    r"(^|/)threading\.py\(\d+\): (wait|join|acquire|_wait_for_tstate_lock)$"
    r"|(^|/)(queue|queues|selectors|socket|connection|subproc_pool)\.py\(\d+\): "
    r"(get|select|accept|poll|_?recv\w*)$"
    r"|^<built-in (method|function) (acquire|__enter__|sleep|select|poll|recv\w*)\b"
    r"|^<method '(acquire|poll|recv\w*)' of "
)
"""Python functions in which a thread waits for another one, or for a time."""
HALF = 0.5
"""What covers a larger part of a time is what a thread did in it."""
LANES_LOOKED_AT = 256
"""The most lanes that are looked at for what the CPU did: nobody reads a longer list."""


@dataclass(frozen=True, eq=False)
class Gaps:
    """The gaps of the streams that have work on one lane of a device, or those of a row of another lane, by
    start; columns of equal length.

    Times are trace time in ns; `before`, `after` and `launches` (-1: not known) are positions in the index,
    `kinds` places in GAP_CLASSES. The last two are empty where the lane is no device's.
    """

    source: int
    starts: I64
    ends: I64
    before: AnyArray
    after: AnyArray
    kinds: AnyArray
    launches: I64

    def __len__(self) -> int:
        return len(self.starts)

    def ended_by(self, position: int) -> int | None:
        """Return which of the gaps a slice ends, None for a slice that ends none."""
        return _first(np.flatnonzero(self.after == position))

    def holding(self, time: int) -> int | None:
        return _first(np.flatnonzero((self.starts <= time) & (time < self.ends)))

    def first_after(self, time: int, position: int | None, least: int) -> int | None:
        """Return the first gap of `least` ns that begins at a time or later; with a position the one that
        follows the gap which that slice ends.
        """
        at = None if position is None else self.ended_by(position)
        low = int(np.searchsorted(self.starts, time)) if at is None else at + 1
        long = _first(np.flatnonzero((self.ends - self.starts)[low:] >= max(1, least)))
        return None if long is None else low + long

    def begin_of(self, time: int) -> int | None:
        """Return where the gap begins that a time lies in; None where there is work."""
        at = int(np.searchsorted(self.ends, time, "right"))
        return int(self.starts[at]) if at < len(self.ends) and self.starts[at] <= time else None

    def longest(self, within: tuple[int, int] | None) -> int | None:
        """Return the longest gap, of a range the longest wholly in it, else with most in it; the first."""
        lengths = self.ends - self.starts
        if within is not None:
            inside = (self.starts >= within[0]) & (self.ends <= within[1])
            cut = np.minimum(self.ends, within[1]) - np.maximum(self.starts, within[0])
            lengths = np.where(inside, lengths, 0) if inside.any() else np.maximum(cut, 0)
        return int(lengths.argmax()) if len(lengths) and lengths.max() > 0 else None

    def bounds(self, at: int | None) -> GapBounds | None:
        """Return one of the gaps by number, None for None."""
        if at is None:
            return None
        columns = (self.starts, self.ends, self.before, self.after)
        return GapBounds(self.source, *(int(column[at]) for column in columns))


def _first(rows: I64) -> int | None:
    return int(rows[0]) if len(rows) else None


class GapBounds(NamedTuple):
    """Where a gap lies in trace time, and the positions of the slices around it."""

    source: int
    start: int
    end: int
    before: int
    after: int


class Doing(NamedTuple):
    """What a CPU thread did: the deepest slice that covers more than half of the gap, or None."""

    lane: Lane
    slice: SliceId | None
    label: str
    covered: int  # ns of the gap

    @property
    def is_waiting(self) -> bool:
        """Whether it does nothing but wait for another thread or process."""
        return WAITING_FRAMES.search(self.label) is not None


class Gap(NamedTuple):
    """A gap of a lane; times are trace time in ns."""

    start: int
    end: int
    before: SliceId
    after: SliceId
    launch: Link | None  # of the slice after it
    kind: str | None  # one of GAP_CLASSES; None where the lane is no device's
    threads: tuple[Doing, ...]
    more_threads: int  # active in it but not listed

    @property
    def length(self) -> int:
        return self.end - self.start


@cached_per_object(LANES_WITH_GAPS)
def work_gaps(trace: Trace, number: int, clocks: Clocks = NO_CLOCKS) -> Gaps | None:
    """Return the gaps in the work of a lane's streams, as `idle` counts; None where it is no device's."""
    device = next((device for device in devices(trace) if number in device.lanes), None)
    if device is None:
        return None
    scope = Scope(trace, lanes=device.lanes, clocks=clocks, source=device.source)
    work = with_known_gaps(timed_work(scope))
    on_lane = lanes_of(trace.indexes[device.source], work.position) == trace.lanes[number].number
    gaps = gap_rows(work[np.isin(work.stream, work.stream[on_lane])])
    gaps = gaps[np.lexsort((gaps.start, gaps.reach))]
    columns = (gaps.reach, gaps.start, gaps.before, gaps.position, gaps.gap_class, gaps.launch)
    return Gaps(device.source, *columns)


def gaps_of(trace: Trace, row: Row, clocks: Clocks = NO_CLOCKS) -> Gaps | None:
    """Return the gaps in a device lane's work, else those of the row; None for a row without slices."""
    if row.kind is not RowKind.SLICES:
        return None
    gaps = work_gaps(trace, row.lane, clocks)
    return _row_gaps(trace, row, clocks) if gaps is None else gaps


@cached_per_object(LANES_WITH_GAPS)
def _row_gaps(trace: Trace, row: Row, clocks: Clocks) -> Gaps:
    """Return the times between two slices of a row that follow each other."""
    index, offset = trace.indexes[row.source], clocks.offset(row.source, row.pid)
    first = int(index.rows[row.number]["first"])
    starts = index.column("slices.start")[first : first + row.count].astype(np.int64) + offset
    ends = starts + index.durations_between(first, first + row.count)
    at = np.flatnonzero(starts[1:] > ends[:-1])
    nothing = np.empty(0, np.int64)
    return Gaps(row.source, ends[at], starts[at + 1], first + at, first + at + 1, nothing, nothing)


def gap_ended_by(trace: Trace, row: Row, at: int, clocks: Clocks = NO_CLOCKS) -> GapBounds | None:
    """Return the gap that the slice at an index within its row ends, None where it ends none."""
    gaps = gaps_of(trace, row, clocks)
    if gaps is None:
        return None
    return gaps.bounds(gaps.ended_by(int(trace.indexes[row.source].rows[row.number]["first"]) + at))


def gap_holding(trace: Trace, row: Row, time: int, clocks: Clocks = NO_CLOCKS) -> GapBounds | None:
    """Return the gap in which a trace time lies: of the work on the row's lane, else of the row."""
    gaps = gaps_of(trace, row, clocks)
    return None if gaps is None else gaps.bounds(gaps.holding(time))


def gap_of(trace: Trace, row: Row, at: int, clocks: Clocks = NO_CLOCKS) -> Gap | None:
    """Return the gap that the slice at an index within its row ends, None where it ends none."""
    bounds = gap_ended_by(trace, row, at, clocks)
    if bounds is None:
        return None
    before, after = (trace.slice_id_of(row.source, position) for position in (bounds.before, bounds.after))
    of_work = work_gaps(trace, row.lane, clocks)
    chain = trace.chain(after, clocks)
    if of_work is None or (number := of_work.ended_by(bounds.after)) is None:
        kind = None
        launch = next((link for link in chain if link.role == "launch" and link.via), None)
    else:
        kind = GAP_CLASSES[int(of_work.kinds[number])]
        position = int(of_work.launches[number])
        caller = None if position < 0 else trace.slice_id_of(row.source, position)
        launch = next((link for link in chain if link.id == caller), None)
    around = None if launch is None else trace.find(launch.id)
    lane = None if around is None else around[0].lane
    doings, looked_at = _doings(trace, row.source, (bounds.start, bounds.end), clocks, lane, row.lane)
    more = max(0, len(doings) - THREADS) + max(0, looked_at - LANES_LOOKED_AT)
    return Gap(bounds.start, bounds.end, before, after, launch, kind, doings[:THREADS], more)


def threads_in(
    trace: Trace,
    source: int,
    span: tuple[int, int],
    clocks: Clocks,
    caller: int | None,
    part: float = HALF,
) -> tuple[Doing, ...]:
    """Return what a source's threads did in more than some part of a time, the calling lane's first, then the
    busiest.
    """
    return _doings(trace, source, span, clocks, caller, None, part)[0]


def busiest_in(trace: Trace, source: int, span: tuple[int, int], clocks: Clocks) -> str:
    """Return what the busiest of a source's threads did in some time, "" where none did one thing long."""
    threads = at_work(threads_in(trace, source, span, clocks, None))
    return next((one.label for one in threads if one.slice is not None), "")


def at_work(threads: Sequence[Doing]) -> tuple[Doing, ...]:
    """Return the threads that do more than wait, of which monitors and workers of pools are full; all where
    every one waits.
    """
    return tuple(one for one in threads if not one.is_waiting) or tuple(threads)


def _doings(
    trace: Trace,
    source: int,
    span: tuple[int, int],
    clocks: Clocks,
    caller: int | None,
    except_lane: int | None,
    part: float = HALF,
) -> tuple[tuple[Doing, ...], int]:
    """Return what threads did, those of a lane aside, and how many threads there are."""
    start, end = span
    device_lanes = {at for device in devices(trace) for at in device.lanes}
    # Of FLEX a rank's calls have the pid of its device; elsewhere that process is the device.
    of_device = set() if is_flex(trace.indexes[source]) else {(one.source, one.pid) for one in devices(trace)}
    doings: list[Doing] = []
    looked_at = 0
    for process in trace.processes:
        if process.source != source or process.aside or (process.source, process.pid) in of_device:
            continue
        for at in process.lanes:
            lane = trace.lanes[at]
            offset = clocks.offset(lane.source, lane.pid)
            outside = lane.start + offset >= end or lane.end + offset <= start
            if lane.kind is not LaneKind.THREAD or lane.role is not LaneRole.HOST:
                continue
            if at in device_lanes or outside or at == except_lane:
                continue
            looked_at += 1
            if looked_at <= LANES_LOOKED_AT:
                doings.append(_doing(trace, lane, start, end, clocks, part))
    doings = [doing for doing in doings if doing.slice is not None or doing.lane.index == caller]
    doings.sort(key=lambda doing: (doing.lane.index != caller, doing.is_waiting, -doing.covered))
    return tuple(doings), looked_at


def _doing(trace: Trace, lane: Lane, start: int, end: int, clocks: Clocks, part: float) -> Doing:
    """Return what a thread did in a gap: the deepest slice that covers more than a part of it, at least half.
    Such a slice covers the middle of the gap too, so only the slices at the middle are looked at.
    """
    best = Doing(lane, None, "", 0)
    for row in trace.rows(lane):
        at = trace.slice_at(row, (start + end) // 2, clocks)
        if at is None:
            continue
        left, right = trace.bounds(row, at, clocks)
        covered = min(right, end) - max(left, start)
        if covered > part * (end - start):
            best = Doing(lane, trace.slice_id(row, at), trace.label(row, at), covered)
    return best
