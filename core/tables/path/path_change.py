"""How long a window would be if some slices took another time: all its points again, in order of time.

Each point comes as long after what released it as it did, and not before anything else that it waits for:

- device work waits for the work before it on its stream, for its event and its graph, and for its launch,
  after the least delay of any launch that released work in the window
- the end of a call that waits, for all work that it waits for, also what did not hold it up
- the end of a pause of a thread, for the thread with which it takes turns
- the end of a collective, for the last rank

Of the host the time in slices of the name changes, with all that they call; what they launch still runs. A
call that takes no time waits for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ...base.arrays import F64, I64, Intervals, merge, run_starts, sum_of
from ...base.errors import UsageError
from ...base.short_names import short_names
from ..frame.frame_columns import NEVER
from .path_graph import PathGraph
from .path_points import LAUNCH, SYNC
from .path_walk import CHECKED, PathEnd

END, CALL_END, MARK, PAUSE_END, LAUNCHED, START = range(6)
"""What happens at the same ns happens in this order; a mark only notes the time of a thread."""

SCALE = re.compile(r"(.+)=(\d+(?:\.\d+)?)", re.DOTALL)

MAX_TIMES = 1_000_000
"""No slice is asked about that takes more times as long."""


def scale_of(text: str) -> tuple[str, float]:
    """Return the name and the factor of NAME=0.5. Raises UsageError."""
    match = SCALE.fullmatch(text)
    if match is None:
        raise UsageError(f"--scale {text!r} is no NAME=FACTOR, as aten::mm=0.5")
    if (factor := float(match[2])) > MAX_TIMES:
        raise UsageError(f"--scale {match[1]}: the factor is {MAX_TIMES:,} at most")
    return match[1], factor


@dataclass(frozen=True, eq=False)
class TimeChange:
    """Other times of slices in a window: a factor for each piece of device work, and by thread the time in
    which slices of the name run.
    """

    factor: float
    work: F64
    host: Mapping[int, Intervals]

    @classmethod
    def of(cls, graph: PathGraph, name: str, factor: float) -> TimeChange:
        """Return the change of all slices of a name, short ones too; UsageError where there are none."""
        texts = graph.work.name.texts
        names = sorted(set(texts))
        short = dict(zip(names, short_names(names)))
        is_chosen = np.array([name in (text, short[text]) for text in texts], np.bool_)
        chosen = is_chosen[graph.work.name.codes] if len(graph.work) else np.zeros(0, np.bool_)
        host = {}
        for number, thread in enumerate(graph.threads):
            numbers = np.array(thread.index.string_numbers(name), np.uint32)
            rows = np.isin(thread.index.column("slices.name")[thread.positions], numbers)
            if rows.any():
                host[number] = merge(thread.starts[rows], thread.ends[rows])
        if not host and not chosen.any():
            raise UsageError(f"no slice in the window is called {name!r}")
        return cls(factor, np.where(chosen, factor, 1.0), host)

    def length(self, graph: PathGraph) -> int:
        """Return the time of all that is changed, ns."""
        durations = (graph.work.end - graph.work.start)[self.work != 1]
        return sum_of(durations) + sum(times.length for times in self.host.values())

    def host_times(self, thread: int, times: I64) -> I64:
        """Return the times of a thread without what is saved before each."""
        if thread not in self.host:
            return times
        saved = self.host[thread].covered(np.full(len(times), NEVER), times) * (1.0 - self.factor)
        return np.asarray(times - np.rint(saved).astype(np.int64))


def new_length(graph: PathGraph, change: TimeChange, end: PathEnd) -> int:
    """Return how long the window of a path with this end would be, in ns. Raises Cancelled."""
    again = _Again(graph, change, end)
    again.run()
    old = [int(graph.work.end[end.rows].max(initial=NEVER))]
    new = [max((again.end[row] for row in end.rows.tolist()), default=NEVER)]
    if end.host >= 0:
        old.append(end.host_time)
        new.append(again.noted[end.host, end.host_time])
    return end.time - graph.window[0] + max(new) - max(old)


class _Again:
    """The points of a window with a change, as far as they have come; times in ns."""

    def __init__(self, graph: PathGraph, change: TimeChange, end: PathEnd) -> None:
        self.graph, self.change = graph, change
        work, waits = graph.work, graph.waits
        self.factor = change.work.tolist()
        self.old_start, self.old_end = work.start.tolist(), work.end.tolist()
        self.start, self.end, self.launch = list(self.old_start), list(self.old_end), graph.launched.tolist()
        self.old_launch = list(self.launch)
        columns = (graph.via, graph.by, graph.at, graph.until, graph.group)
        self.via, self.by, self.at, self.until, self.group = (column.tolist() for column in columns)
        self.thread = graph.thread.tolist()
        self.before = _by_first(*graph.before)
        self.awaited = _by_first(waits.calls, waits.rows)
        self.members = _by_first(graph.group, np.arange(len(work)))
        self.gone = self._gone() if change.factor == 0 else set()
        self.call_start, self.call_end, self.call_at = (
            column.tolist() for column in (waits.starts, waits.ends, waits.at)
        )
        of_launch = work.start[graph.via == LAUNCH] - graph.at[graph.via == LAUNCH]
        self.least_delay = int(of_launch.min(initial=np.iinfo(np.int64).max)) if len(of_launch) else 0
        self.now, self.seen = [graph.window[0]] * len(graph.threads), [graph.window[0]] * len(graph.threads)
        self.noted: dict[tuple[int, int], int] = {}  # (thread, time) -> its new time
        self.events = self._events(end)

    def _gone(self) -> set[int]:
        """Return the calls that wait for as long as what is left out runs around them."""
        waits, calls = self.graph.waits, []
        for number, times in self.change.host.items():
            own = np.flatnonzero(waits.threads == number)
            begins, ends = waits.starts[own], waits.ends[own]
            calls += own[times.covered(begins, ends) == ends - begins].tolist()
        return set(calls)

    def _events(self, end: PathEnd) -> list[tuple[int, int, int, int, int, int]]:
        """Return (time, order, item, thread, time less savings, when what a pause awaits ended)."""
        graph, (low, high) = self.graph, self.graph.window
        rows = np.arange(len(graph.work))
        none = np.full(len(rows), -1, np.int64)
        parts = [
            (graph.work.end, END, rows, none, none, none),
            # Of what begins together that comes first which takes no time.
            (graph.work.start, START, rows, none, none, (graph.work.end > graph.work.start).astype(np.int64)),
        ]
        pauses = [(one.by[one.via != SYNC], one.at[one.via != SYNC]) for one in graph.points]
        queried = _by_first(*(np.concatenate(column) for column in zip(*pauses))) if pauses else {}
        for number, (thread, points) in enumerate(zip(graph.threads, graph.points)):
            mine = np.flatnonzero((graph.thread == number) & (graph.launched >= low))
            calls = np.flatnonzero((graph.waits.threads == number) & (graph.waits.ends > low))
            turns = np.flatnonzero(points.via != SYNC)
            active = thread.activity
            begins = active.ends[np.maximum(np.searchsorted(active.starts, points.times[turns]) - 1, 0)]
            last = np.array([end.host_time] if number == end.host else [], np.int64)
            of_others = np.array(queried.get(number, ()), np.int64)
            marks = np.concatenate([begins, of_others, graph.waits.starts[calls], last])
            for times, order, items, more in (
                (graph.launched[mine], LAUNCHED, mine, mine),
                (graph.waits.ends[calls], CALL_END, calls, calls),
                (points.times[turns], PAUSE_END, points.by[turns], points.at[turns]),
                (marks, MARK, marks, marks),
            ):
                own = np.full(len(times), number, np.int64)
                parts.append((times, order, items, own, self.change.host_times(number, times), more))
        columns = [np.concatenate(
            [np.full(len(part[0]), part[1], np.int64) if key == 1 else part[key] for part in parts]
        ) for key in range(6)]  # fmt: skip
        ordered = np.lexsort((columns[5], columns[1], columns[0]))
        ordered = ordered[columns[0][ordered] <= high]
        return list(zip(*(column[ordered].tolist() for column in columns)))

    def run(self) -> None:
        for number, (time, order, item, thread, host_time, more) in enumerate(self.events):
            if number % CHECKED == 0:
                self.graph.scope.check()
            if order == START:
                self._begin(item)
            elif order == END:
                self._finish(item)
            else:
                passed = host_time - self.seen[thread]
                if order == CALL_END:
                    self._return(item, thread, passed)
                elif order == PAUSE_END:
                    other = self.noted.get((item, more), more)
                    self.now[thread] = max(self.now[thread], other + time - more)
                else:
                    self.now[thread] += passed
                self.seen[thread] = host_time
                if order == LAUNCHED:
                    self.launch[item] = self.now[thread]
                elif order == MARK:
                    self.noted[thread, time] = self.now[thread]

    def _begin(self, row: int) -> None:
        low = self.graph.window[0]
        if self.old_start[row] <= low or not self.via[row]:
            begin = self.old_start[row]
        else:
            base = self.launch[row] if self.via[row] == LAUNCH else self.end[self.by[row]]
            begin = base + self.old_start[row] - self.at[row]
        for other in self.before.get(row, ()):
            begin = max(begin, self.end[other])
        if self.via[row] != LAUNCH and self.thread[row] >= 0:
            delay = min(self.least_delay, self.old_start[row] - self.old_launch[row])
            begin = max(begin, self.launch[row] + delay)
        self.start[row] = begin
        if self.old_end[row] == self.old_start[row]:
            self.end[row] = begin

    def _finish(self, row: int) -> None:
        """Let a piece of work end; a collective begins to move data when its last rank has come."""
        if self.group[row] >= 0:
            members = self.members[self.group[row]]
            moved = max(self.start[at] for at in members) - max(self.old_start[at] for at in members)
            moving = (self.old_end[row] - self.until[row]) * self.factor[row]
            self.end[row] = self.until[row] + moved + round(moving)
        else:
            self.end[row] = self.start[row] + round(
                (self.old_end[row] - self.old_start[row]) * self.factor[row]
            )

    def _return(self, call: int, thread: int, passed: int) -> None:
        begin, end, at = self.call_start[call], self.call_end[call], self.call_at[call]
        arrived = self.noted.get((thread, begin), begin)
        if call in self.gone:
            self.now[thread] = arrived
            return
        until = end if at == NEVER else at
        # What ended after the call was not waited for as long as it took: it may still end that much later.
        ends = [self.end[row] + min(0, until - self.old_end[row]) for row in self.awaited.get(call, ())]
        arrived = self.now[thread] + passed if at == NEVER else arrived
        self.now[thread] = max([arrived, *ends]) + end - until


def _by_first(keys: I64, values: I64) -> dict[int, list[int]]:
    order = np.argsort(keys, kind="stable")
    begins, ordered = run_starts(keys[order]), values[order].tolist()
    bounds = pairwise([*begins.tolist(), len(ordered)])
    return {key: ordered[low:high] for key, (low, high) in zip(keys[order[begins]].tolist(), bounds)}
