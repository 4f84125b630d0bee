"""Which time of which device or lane cannot be trusted, decided once: `doctor` says it, `findings` leave it
out, tables say it below their rows (`doubts.py`), and runs that differ in it are not compared (`comparable`).

- *lost*: calls started work that is not in the file. From the first of such calls in a row, and not before
  the work that was launched earlier is done, to the start of what was launched next, else to the end.
- *zero*: the work is there, its times are lost (`untimed_work`); the same periods.
- *collapsed*: a piece of work lasts many times as long as others of its name, and nearly nothing launched
  while it runs is in the file: its end is wrong.
- *merged*: the time between two captures that stand in one file: nothing was recorded.
- *truncated*: the file is cut off or damaged; from the end of the device's last work to the end.
- *cut*: the file is cut out of a longer one, as no process has a name, and for most of a long gap of the
  device the host waits for it, or what it launched stands in a queue before the first record: what the
  device did then is not in the file.
- *other-clock*: work stands on another clock (`own_clock`): from it to the rest, or the reverse.
- *open-ended*: all slices of one name in a lane, more than 3 with different starts, last until the same ns,
  in which the lane ends, and are most of those that do: what should have ended them was not recorded. The
  lane's other slices can be trusted, and so can the calls in which a profiler is stopped: their names differ.

A few lost calls (`LostCalls.are_few`) make no period: a profiler that is stopped loses what still runs. Nor
do fills of memory that are never recorded (`unrecorded.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from ...base.arrays import I64, AnyArray, distinct, distinct_rows, merge
from ...base.kineto import RUNTIME, WAITS
from ...index.format import LaneRole, RowKind, SliceFlag
from ...index.store import Index
from ...query.groups import dense
from ...query.lookup import category_mask, lanes_of, processes_of, started_by
from ...query.lost import StartingCalls, starting_calls, untimed_work
from ...query.views import Lane
from ...read.problem import NO_EVENTS, NOT_READ, OTHER_DATA, OTHER_TEXT, REPEATED_KEY, UNVERIFIED
from ...trace.devices import Device, devices
from ..frame.frame_columns import NEVER
from ..frame.scope import Scope, WithoutOpenEnded
from .unrecorded import are_fills, steps_alike

Trouble: TypeAlias = Literal[
    "lost", "zero", "collapsed", "merged", "truncated", "cut", "other-clock", "open-ended"
]
Severity: TypeAlias = Literal["error", "warning"]
PIECES = ("piece of work", "pieces of work")


class TroubleKind(NamedTuple):
    """What one trouble is, and its sentences: `text` of a device or lane, with how many `words` and how much
    time; `cause` as the reason for what is missing; `lack` of a file.
    """

    severity: Severity
    of_records: bool  # of a device, for all of the time
    text: str
    cause: str
    lack: tuple[str, str]  # of one, of several
    words: tuple[str, str] = ("", "")


TROUBLES: Final[Mapping[Trouble, TroubleKind]] = {
    "lost": TroubleKind(
        "error",
        True,
        "the work of {count} is missing, for {ns}",
        "the work of {count} is missing",
        ("launch has no device work", "launches have no device work"),
        ("launch call", "launch calls"),
    ),
    "zero": TroubleKind(
        "error",
        True,
        "no usable times of {count}, for {ns}",
        "no usable times of {count}",
        ("kernel or copy has no usable times", "kernels and copies have no usable times"),
        PIECES,
    ),
    "collapsed": TroubleKind(
        "error",
        True,
        "no known end of {count}, for {ns}",
        "no known end of {count}",
        ("kernel or copy has no known end", "kernels and copies have no known end"),
        PIECES,
    ),
    "merged": TroubleKind(
        "warning",
        True,
        "nothing was recorded between captures, for {ns}",
        "the time between two recordings in one file",
        ("has time that was not recorded", "have time that was not recorded"),
    ),
    "truncated": TroubleKind(
        "error",
        True,
        "the file is cut off before the device's work ends, for {ns}",
        "the file is cut off",
        ("is cut off or damaged", "are cut off or damaged"),
    ),
    "cut": TroubleKind(
        "warning",
        True,
        "the file is cut out of a longer one and lacks the device's records, for {ns}",
        "the file is cut out of a longer one, without what the device did in that time",
        ("is cut out of a longer recording", "are cut out of longer recordings"),
    ),
    "other-clock": TroubleKind(
        "warning",
        False,
        "{count} on another clock, {ns} from all others",
        "{count} on another clock",
        ("kernel or copy is on another clock", "kernels and copies are on another clock"),
        PIECES,
    ),
    "open-ended": TroubleKind(
        "warning",
        False,
        "{count} of one name end with the lane, in the same ns: their ends are not known",
        "the ends of {count} are not known",
        ("slice has no known end", "slices have no known end"),
        ("slice", "slices"),
    ),
}
"""All that can be wrong with time, told in these words wherever it is told."""
OF_RECORDS: Final[frozenset[Trouble]] = frozenset(
    trouble for trouble, kind in TROUBLES.items() if kind.of_records
)
"""Troubles of the records of a device, for all of their time."""
OF_DEVICES: Final[frozenset[Trouble]] = OF_RECORDS.union(["other-clock"])
"""Troubles for the time of which it is not known what a device did."""
CUT_SHARE = 0.2
"""Of a file without names of processes a gap of the device of so much of its time is long."""
MANY_OPEN = 3
"""So many slices of one name may end with their lane."""
FEW_CALLS, FEW_SHARE = 5, 0.05
"""Up to so many lost calls, or this share of all and of those of each name, are few."""
COLLAPSED_TIMES, COLLAPSED_SHARE = 10, 0.9
"""Work is collapsed that lasts so many times as long as the median of its name, or of all where there is but
one of it, while this share of the calls made meanwhile is lost.
"""
LATE = np.iinfo(np.int64).max
CAPTURE_END = "Record Window End"
OTHER_PROBLEMS = frozenset(
    {
        *("unreadable", "repaired", "oversized", "clamped time", "broken envelope", REPEATED_KEY),
        *(NO_EVENTS, NOT_READ, OTHER_DATA, OTHER_TEXT, UNVERIFIED),
    }
)
"""Problems of a file that is not cut off for them."""


@dataclass(frozen=True)
class Untrusted:
    """A period [start, end) of a device's time, of all of a source where no device is known; trace ns."""

    source: int
    device: Device | None
    trouble: Trouble
    start: int
    end: int
    count: int  # calls without work, pieces of work without usable times; 0 where nothing is counted
    called: tuple[int, int] | None  # when the first and the last of these calls began
    position: int | None  # the slice to look at first
    lane: int | None = None  # place in Trace.lanes of one lane that it is about
    fills: int = 0  # how many of the calls only fill memory


def damage(index: Index) -> tuple[str, ...]:
    """Return the kinds of problems that say that a file is cut off or its compression damaged."""
    return tuple(sorted({str(problem["kind"]) for problem in index.problems} - OTHER_PROBLEMS))


TIMED = ("slices", "unmatched_begin", "instant_events", "counter_events", "flow_events", "async_events")
"""Terms of the read report that count what has a time."""


def holds_events(index: Index) -> bool:
    """Tell whether anything in a file has a time: names and labels alone have none."""
    return any(int(index.read_report[term]) for term in TIMED)


def capture_ends(index: Index) -> I64:
    """Return where captures end in a file, by the profiler's own marks, ascending, ns in the file."""
    numbers = index.string_numbers(CAPTURE_END)
    marked = np.isin(index.column("instants.name"), numbers) if numbers else np.empty(0, np.bool_)
    ends: I64 = np.sort(index.column("instants.start")[np.flatnonzero(marked)].astype(np.int64))
    return ends


class LostCalls:
    """The calls of one source that start work, which of them lost it, and what time that spoils."""

    def __init__(self, scope: Scope, source: int) -> None:
        self.scope, self.source = scope, source
        self.index = scope.trace.indexes[source]
        self.launches = scope.trace.launches(source)

    @cached_property
    def devices(self) -> list[Device]:
        return [one for one in devices(self.scope.trace) if one.source == self.source]

    @cached_property
    def calls(self) -> StartingCalls:
        return starting_calls(self.index, self.launches)

    @cached_property
    def lost(self) -> I64:
        """The positions of those without work, by start."""
        return self.calls.positions[self.calls.is_lost]

    @cached_property
    def untimed(self) -> AnyArray:
        """The positions of the work without usable times, ascending."""
        return untimed_work(self.index, self.launches)

    @cached_property
    def by_name(self) -> Mapping[str, tuple[int, int]]:
        """Name of a call -> (lost ones, all of them), most lost first."""
        names = self.index.column("slices.name")
        every, lost = (Counter(names[at].tolist()) for at in (self.calls.positions, self.lost))
        texts = self.index.strings(list(lost))
        counts = {text: (lost[number], every[number]) for text, number in zip(texts, lost)}
        return dict(sorted(counts.items(), key=lambda item: -item[1][0]))

    @cached_property
    def steps_alike(self) -> int:
        """In how many steps the same fills of memory lack their work, which then is not lost; 0: it is."""
        return steps_alike(self.scope, self.source, self.calls)

    def are_few(self, calls: int = FEW_CALLS, share: float = FEW_SHARE) -> bool:
        """Tell whether few calls are lost: in a row that others follow, of a name, and of all; or none, as
        they are fills that are never recorded.
        """
        if self.steps_alike:
            return True
        is_lost, process = self.calls.is_lost, processes_of(self.index, self.calls.positions)
        longest = 0
        for number in distinct(process[is_lost]).tolist():
            lost = np.concatenate([[False], is_lost[process == number], [False]])
            edges = np.flatnonzero(np.diff(lost.astype(np.int8))).reshape(-1, 2)
            longest = max(longest, *(end - begin for begin, end in edges.tolist() if end < len(lost) - 2), 0)
        few_of_name = all(lost <= max(calls, share * total) for lost, total in self.by_name.values())
        few_of_all = len(self.lost) <= max(calls, share * len(is_lost))
        return longest <= calls and few_of_name and few_of_all and not self.are_all

    @property
    def are_all(self) -> bool:
        """Whether there are calls, and none of them has its work."""
        return len(self.lost) == len(self.calls) > 0

    @cached_property
    def work(self) -> tuple[AnyArray, I64, I64]:
        """(positions, starts, ends) of all device work, trace time, usable or not."""
        positions = self.launches.kernels
        starts = self.scope.starts(self.source, positions)
        return positions, starts, starts + self.index.duration(positions)

    @cached_property
    def collapsed(self) -> AnyArray:
        """The rows of `work` that last far too long while what is launched meanwhile is lost."""
        positions, starts, ends = self.work
        begun = self.scope.starts(self.source, self.calls.positions)
        low, high = np.searchsorted(begun, starts, "right"), np.searchsorted(begun, ends)
        lost = np.concatenate([[0], np.cumsum(self.calls.is_lost)])
        meanwhile = high - low
        rows = np.flatnonzero(
            (meanwhile > FEW_CALLS)
            & (lost[high] - lost[np.minimum(low, high)] >= COLLAPSED_SHARE * meanwhile)
            & ~np.isin(positions, self.untimed)
        )
        names, durations = self.index.column("slices.name")[positions], ends - starts
        usual = {number: self._usual(names == number, durations) for number in set(names[rows].tolist())}
        least = [COLLAPSED_TIMES * usual[number] for number in names[rows].tolist()]
        return rows[durations[rows] >= np.array(least)]

    @staticmethod
    def _usual(alike: AnyArray, durations: I64) -> float:
        """Return the lower median of some durations; of all where there is but one."""
        some = durations[alike] if np.count_nonzero(alike) > 1 else durations
        return float(np.quantile(some, 0.5, method="lower"))

    @cached_property
    def span(self) -> tuple[int, int]:
        """From when to when the source tells of host and devices, trace time without strays."""
        return replace(self.scope, source=self.source).recorded_span

    def periods(self) -> Iterator[Untrusted]:
        """Yield what cannot be trusted of the source, device by device."""
        own = self.devices
        by_process = {one.process: one for one in own}
        is_cut = bool(damage(self.index))
        runs = list(self._runs(by_process))
        for at in self.collapsed.tolist():
            position, start, end = (int(column[at]) for column in self.work)
            process = int(processes_of(self.index, np.array([position]))[0])
            yield Untrusted(self.source, by_process.get(process), "collapsed", start, end, 1, None, position)
        for run in runs:
            yield replace(run, trouble="truncated") if is_cut and run.end == self.span[1] else run
        for device in own if is_cut else ():
            if all(run.end < self.span[1] for run in runs if run.device in (None, device)):
                yield from self._after_all(device)
        for start, end in _capture_gaps(self.scope, self.source):
            for one in own:
                yield Untrusted(self.source, one, "merged", start, end, 0, None, None)
        yield from self.cut_out()
        yield from self._elsewhere(by_process)
        yield from self.open_ended()

    def cut_out(self) -> Iterator[Untrusted]:
        """Yield the time of which a file that is cut out of a longer one lacks the device's records: for most
        of a long gap the host waits for the device, which does nothing, or what it has launched stands in a
        queue before the first record.
        """
        own = self.devices
        positions, starts, ends = self.work
        is_named = any(name or labels for _, name, labels, *_ in self.index.processes.tolist())
        if is_named or not len(positions) or len(own) != 1:
            return
        first = int(starts.min())
        gaps = merge(starts, ends).gaps(self.span[0], int(ends.max()))
        calls = np.flatnonzero(category_mask(self.index, RUNTIME)[self.index.column("slices.category")])
        which, names = dense(self.index.column("slices.name")[calls])
        texts = self.index.strings(names)
        is_wait = np.array([WAITS.search(text) is not None for text in texts], np.bool_)
        waits = calls[is_wait[which]]
        begun = self.scope.starts(self.source, waits)
        launched = self.launches.launch[self.launches.is_called]
        queued = int(self.scope.starts(self.source, launched).min(initial=first))
        queue = merge(np.array([queued]), np.array([first]))
        waiting = merge(begun, begun + self.index.duration(waits)).union(queue)
        waited = waiting.covered(gaps.starts, gaps.ends)
        length = gaps.ends - gaps.starts
        least = CUT_SHARE * (self.span[1] - self.span[0])
        for at in np.flatnonzero((length >= least) & (waited >= COLLAPSED_SHARE * length)).tolist():
            yield Untrusted(
                self.source, own[0], "cut", int(gaps.starts[at]), int(gaps.ends[at]), 0, None, None
            )

    def _elsewhere(self, by_process: Mapping[int, Device]) -> Iterator[Untrusted]:
        """Yield the time between work on another clock and the rest, device by device."""
        trace = self.scope.trace
        low, high = self.scope.opening_span
        positions, starts, ends = self.work
        out = np.isin(positions, trace.on_other_clock(self.source)) & ~np.isin(positions, self.untimed)
        if not out.any():
            return
        process = processes_of(self.index, positions)
        for is_before, beyond in ((True, ends < low), (False, starts > high)):
            for number in distinct(process[out & beyond]).tolist():
                rows = np.flatnonzero(out & beyond & (process == number))
                times = (int(ends[rows].max()), low) if is_before else (high, int(starts[rows].min()))
                position = int(positions[rows[0]])
                device = by_process.get(number)
                yield Untrusted(self.source, device, "other-clock", *times, len(rows), None, position)

    def open_ended(self) -> Iterator[Untrusted]:
        """Yield the time in which slices are open that were never ended, by lane and name."""
        for lane, positions in open_slices(self.scope, self.source):
            offset = self.scope.clocks.offset(self.source, lane.pid)
            start, end = self.index.start(int(positions[0])) + offset, int(lane.end) + offset
            count, first = len(positions), int(positions[0])
            yield Untrusted(self.source, None, "open-ended", start, end, count, None, first, lane.index)

    def _after_all(self, device: Device) -> Iterator[Untrusted]:
        positions, _, ends = self.work
        here = (processes_of(self.index, positions) == device.process) & ~np.isin(positions, self.untimed)
        last = int(ends[here].max(initial=self.span[0]))
        if last < self.span[1]:
            yield Untrusted(self.source, device, "truncated", last, self.span[1], 0, None, None)

    def _runs(self, by_process: Mapping[int, Device]) -> Iterator[Untrusted]:
        """Yield a period for each run of calls for one device whose work is lost or has no times."""
        table = self._call_table(by_process)
        for number in distinct(table.device[table.is_bad]).tolist():
            rows = np.flatnonzero(table.device == number)
            bad = np.concatenate([[False], table.is_bad[rows], [False]]).astype(np.int8)
            edges = np.flatnonzero(np.diff(bad)).reshape(-1, 2)
            around = {lane: table.around(rows, lane) for lane in distinct(table.lane[rows]).tolist()}
            for low, high in edges.tolist():
                run = rows[low:high]
                called = int(table.called[run[0]]), int(table.called[run[-1]])
                reach, until = around[int(table.lane[run[0]])]
                end = min(int(until[high]), self.span[1])
                start = max(called[0], int(reach[low]))
                if start < end:
                    trouble: Trouble = "lost" if table.is_lost[run].any() else "zero"
                    count = int(np.maximum(1, table.pieces[run]).sum())
                    position = int(table.positions[run[0]])
                    device = by_process.get(number)
                    fills = int(np.count_nonzero(table.is_fill[run]))
                    yield Untrusted(
                        self.source, device, trouble, start, end, count, called, position, fills=fills
                    )

    def _call_table(self, by_process: Mapping[int, Device]) -> _CallTable:
        positions, count = self.calls.positions, len(self.calls)
        works, starts, ends = self.work
        order = np.argsort(positions)
        joined = np.flatnonzero(self.launches.is_called & np.isin(self.launches.launch, positions))
        of = order[np.searchsorted(positions[order], self.launches.launch[joined])]
        is_timed = ~np.isin(works[joined], self.untimed)
        ends = ends.copy()
        ends[self.collapsed] = starts[self.collapsed]
        first, last = np.full(count, LATE), np.full(count, NEVER)
        np.minimum.at(first, of[is_timed], starts[joined[is_timed]])
        np.maximum.at(last, of[is_timed], ends[joined[is_timed]])
        device = np.full(count, -1, np.int64)
        device[of] = processes_of(self.index, works[joined])
        if len(by_process) == 1:
            device[:] = next(iter(by_process))
        device = _spread(device, lanes_of(self.index, positions))
        lane = np.full(count, -1, np.int64)
        lane[of] = lanes_of(self.index, works[joined])
        is_lost = self.calls.is_lost & (not self.are_few())
        called, pieces = self.scope.starts(self.source, positions), np.bincount(of, minlength=count)
        lane = _usual_lanes(lane, device, self.index.column("slices.name")[positions])
        is_bad = is_lost | ((first == LATE) & ~self.calls.is_lost)
        is_fill = are_fills(self.index, positions)
        return _CallTable(positions, called, device, lane, pieces, first, last, is_lost, is_bad, is_fill)


@dataclass(frozen=True, eq=False)
class _CallTable:
    """The calls of a source that start work, by start."""

    positions: I64
    called: I64  # their starts
    device: I64  # process numbers; -1 where nothing tells
    lane: I64  # of their work; of lost work that of most work of such calls, -1 where there is none
    pieces: I64  # of work that they started
    first: I64  # start and end of the work with usable times; LATE and NEVER without any
    last: I64
    is_lost: AnyArray
    is_bad: AnyArray  # lost, or without work that has usable times
    is_fill: AnyArray  # whether the call only fills memory

    def around(self, rows: I64, lane: int) -> tuple[I64, I64]:
        """Return when work on a lane (-1: any) of earlier calls ends, and when that of later ones begins."""
        here = (self.lane[rows] == lane) | (lane < 0)
        last = np.where(here, self.last[rows], NEVER)
        first = np.where(here, self.first[rows], LATE)
        reach = np.maximum.accumulate(np.append(NEVER, last))
        return reach, np.append(np.minimum.accumulate(first[::-1])[::-1], LATE)


def _spread(device: I64, lanes: I64) -> I64:
    """Return the devices of calls, unknown ones (-1) as the call before on the lane, else after."""
    result = device.copy()
    for lane in distinct(lanes[device < 0]).tolist():
        rows = np.flatnonzero(lanes == lane)
        known = rows[device[rows] >= 0]
        if len(known):
            at = np.searchsorted(known, rows, "right") - 1
            result[rows] = device[known[np.maximum(at, 0)]]
    return result


def _usual_lanes(lane: I64, device: I64, name: AnyArray) -> I64:
    """Return the lanes of calls' work; unknown ones (-1) as of most calls of the name for the device."""
    result = lane.copy()
    for number, at in zip(*distinct_rows(name[lane < 0], device[lane < 0])):
        alike = (name == number) & (device == at)
        known = lane[alike & (lane >= 0)]
        result[alike & (lane < 0)] = np.bincount(known).argmax() if len(known) else -1
    return result


def open_slices(scope: Scope, source: int) -> Iterator[tuple[Lane, I64]]:
    """Yield the slices of a source that were never ended, by lane and name, by start."""
    for lane in scope.trace.lanes_of(source):
        if len(lane.rows) > MANY_OPEN:
            for positions in _open_in_lane(scope.trace.indexes[source], lane):
                yield lane, positions


def with_known_ends(scope: Scope) -> Scope:
    """Return a scope without the slices that were never ended: how long they last is not known, nor what lies
    in them.
    """
    positions: dict[Index, AnyArray] = {}
    for source in scope.sources:
        own = [slices for _, slices in open_slices(scope, source)]
        if own:
            positions[scope.trace.indexes[source]] = np.sort(np.concatenate(own))
    return replace(scope, where=WithoutOpenEnded(positions, scope.where)) if positions else scope


def _open_in_lane(index: Index, lane: Lane) -> Iterator[I64]:
    """Yield the slices of each name of which too many end with the lane, by start."""
    rows = index.rows[lane.rows.start : lane.rows.stop]
    rows = rows[(rows["kind"] == RowKind.SLICES) & (rows["count"] > 0) & (rows["end"] == lane.end)]
    last = (rows["first"] + rows["count"]).astype(np.int64) - 1  # slices of a row do not overlap
    closed = index.column("flags.position")[index.column("flags.value") & SliceFlag.UNCLOSED > 0]
    last = last[~np.isin(last, closed)]  # those are told of as begins without an end
    starts, names = index.column("slices.start")[last].astype(np.int64), index.column("slices.name")[last]
    for name in distinct(names).tolist():
        own = np.flatnonzero(names == name)
        if (
            len(distinct(starts[own])) > MANY_OPEN
            and 2 * len(own) > len(last)
            and len(own) == _count_of_name(index, lane, name)
        ):
            yield last[own[np.argsort(starts[own], kind="stable")]]


def _count_of_name(index: Index, lane: Lane, name: int) -> int:
    """Return how many slices of a lane have a name."""
    names, rows = index.column("slices.name"), index.rows[lane.rows.start : lane.rows.stop]
    rows = rows[rows["kind"] == RowKind.SLICES]
    spans = zip(rows["first"].astype(np.int64).tolist(), rows["count"].astype(np.int64).tolist())
    return sum(int(np.count_nonzero(names[first : first + count] == name)) for first, count in spans)


def _capture_gaps(scope: Scope, source: int) -> Iterator[tuple[int, int]]:
    """Yield the times between two captures of a file in which nothing runs on host and devices."""
    index, offset = scope.trace.indexes[source], scope.clocks.offset(source)
    roles = index.lanes["role"][index.rows["lane"]]
    own = (index.rows["kind"] == RowKind.SLICES) & np.isin(roles, (LaneRole.HOST, LaneRole.DEVICE))
    for mark in capture_ends(index)[:-1].tolist():
        following: list[int] = []
        for row in np.flatnonzero(own).tolist():
            first, count = int(index.rows[row]["first"]), int(index.rows[row]["count"])
            at = first + started_by(index, row, mark)
            following += [mark] if at > first and index.end(at - 1) > mark else []
            following += [index.start(at)] if at < first + count else []
        if following and min(following) > mark:
            yield mark + offset, min(following) + offset
