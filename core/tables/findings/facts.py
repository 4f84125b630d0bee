"""The facts of one source that rules use: host and device columns, computed once and shared."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np

from ...base.arrays import I64, U32, AnyArray
from ...base.ids import SliceId
from ...base.intervals import Intervals, merge
from ...base.short_names import short_name
from ...base.units import count_of
from ...index.format import NONE
from ...index.store import Index
from ..attribution import steps_of_work
from ..devices import ranks_of_processes
from ..frame import Frame
from ..frame_columns import rank_of, work_of
from ..kinds import KERNEL_TYPES, KernelType
from ..op_events import OP, RUNTIME
from ..parts import RankPart, parts_of
from ..scope import Scope
from ..skew import Skew, skew, skew_of_parts
from ..slices import nearest_around
from ..step_choice import Steps, find_steps
from .baseline import Baseline
from .finding import Evidence, NotJudged
from .host_columns import (
    ANY_COPY,
    BLOCKING_COPIES,
    COPY_OPS,
    MOVES_DATA,
    PROFILER,
    WAITS,
    HostSlices,
    host_of,
)
from .rule import Need

NOT_BUSY = re.compile(r"^(event_wait|stream_?wait.*|wait.*event|.*synchronize)$", re.IGNORECASE)
"""Slices on a device's lanes during which the device waits for something else."""


NO_HOST = NotJudged("the trace holds no host slices")
NO_LAUNCHES = NotJudged("the trace does not say which call launched the device work")


class CaptureFacts:
    """The facts of all sources of a scope together, computed once."""

    def __init__(self, scope: Scope, baseline: Baseline | None = None) -> None:
        self._scope = scope
        self.baseline = baseline
        self._steps: dict[int, Steps | None] = {}

    @cached_property
    def skew(self) -> Skew:
        """How far apart the ranks arrive at their collectives."""
        parts = self.parts(0) if len(self._scope.trace.indexes) == 1 else ()
        return skew_of_parts(self._scope, parts) if len(parts) > 1 else skew(self._scope)

    def steps(self, source: int) -> Steps | None:
        """Return the steps of a source, None where there are none."""
        if source not in self._steps:
            scope = self._scope
            self._steps[source] = find_steps(scope.trace, source, scope.clocks, scope.steps or None)
        return self._steps[source]

    def parts(self, source: int) -> tuple[RankPart, ...]:
        """Return the ranks of a source, each to be judged by itself."""
        scope = replace(self._scope, source=source)
        return parts_of(scope, self.steps(source), ranks_of_processes(scope.trace))


class SourceFacts:
    """One source of a scope, or one rank of several in it, as the rules see it; everything is computed when
    first used.
    """

    def __init__(self, part: RankPart, stray: int = 0, capture: CaptureFacts | None = None) -> None:
        self.part = part
        self.scope = part.scope
        self.source = part.scope.source or 0
        self._capture = capture or CaptureFacts(part.scope)
        self.stray = stray  # pieces of device work whose times cannot be right
        self.index: Index = part.scope.trace.indexes[self.source]

    # -- other ranks --------------------------------------------------------------------------------------

    @property
    def skew(self) -> Skew:
        """How far apart the ranks of the whole capture arrive at their collectives."""
        return self._capture.skew

    @property
    def baseline(self) -> Baseline | None:
        """The trace that this one is compared with, if one is."""
        return self._capture.baseline

    @property
    def column(self) -> int | None:
        """The column of this rank in `skew`; None where it has none."""
        in_one_file = self.part.process is not None and len(self.scope.trace.indexes) == 1
        source = self.part.process if in_one_file else self.source
        return None if source is None else self.skew.columns.get(source)

    @cached_property
    def rank(self) -> int | None:
        """The rank of the source, by its name or by what it says, None where neither tells."""
        rank = self.scope.trace.rank(self.source)
        said = rank_of(self.index, -1) if rank is None else rank
        return None if said < 0 else said

    @property
    def is_numbered(self) -> bool:
        """Whether the rank is only the number of the file, because no file says its rank."""
        members = self.scope.trace.members
        return self.source < len(members) and members[self.source].numbered

    @property
    def rank_title(self) -> str:
        """The name of the source, or of the rank in it, in sentences about several of them."""
        file = Path(self.index.path).name
        if self.part.title:
            return self.part.title.capitalize()
        if self.rank is None:
            return file
        return f"Rank {self.rank}" + (f" ({file})" if self.is_numbered else "")

    def title_of_column(self, column: int) -> str:
        """Return the name of one of the ranks of `skew`, for sentences."""
        source = self.skew.sources[column]
        if self.part.process is not None and len(self.scope.trace.indexes) == 1:
            return next(part.title for part in self._capture.parts(0) if part.process == source)
        rank = self.scope.trace.rank(source)
        return Path(self.scope.trace.indexes[source].path).name if rank is None else f"rank {rank}"

    # -- host ---------------------------------------------------------------------------------------------

    @cached_property
    def host(self) -> HostSlices:
        """The host's slices."""
        return host_of(self.scope)

    @cached_property
    def waits(self) -> I64:
        """Rows of the host's calls that wait for the device."""
        return self.host.matching(WAITS, RUNTIME)

    @cached_property
    def profiler(self) -> I64:
        """Rows of the profiler's own slices."""
        return self.host.matching(PROFILER, RUNTIME)

    @cached_property
    def profiling(self) -> Intervals:
        """The time in which the profiler itself was at work."""
        return self.host.union(self.profiler)

    @cached_property
    def transfers(self) -> I64:
        """Rows of the host's copies to and from a device that it waits for: calls that last until their
        copy is done, and operators that copy in which such a call, a synchronisation or a launch of DMA lies.
        """
        host = self.host
        calls = np.union1d(host.matching(BLOCKING_COPIES, RUNTIME), self._calls_until_copied())
        ops = host.matching(COPY_OPS, OP)
        blocks = np.union1d(np.union1d(calls, self.waits), host.matching(MOVES_DATA, RUNTIME))
        members = np.sort(host.positions[ops])
        around = nearest_around(self.index, host.positions[blocks], members)
        holds = np.isin(host.positions[ops], self._with_ancestors(around[around != NONE], members))
        return np.union1d(calls, ops[holds])

    def _calls_until_copied(self) -> I64:
        """Return the rows of calls that end after the copy that they started: from pageable memory, say."""
        copies = self.work[self.work.is_type("memory") & (self.work.launch >= 0)]
        calls = copies.launch[copies.end <= copies.call_start + copies.call_ns]
        return np.flatnonzero(np.isin(self.host.positions, calls))

    def _with_ancestors(self, positions: I64, members: I64) -> I64:
        """Return positions and all members (ascending) around them."""
        everything = [np.unique(positions)]
        while len(everything[-1]):
            above = np.unique(nearest_around(self.index, everything[-1], members))
            everything.append(above[above != NONE])
        return np.unique(np.concatenate(everything))

    @cached_property
    def transferring(self) -> Intervals:
        """The time in which the host waits for copies while no kernel runs; calls within an operator that do
        something else (set up the device, allocate) aside.
        """
        host = self.host
        calls = np.flatnonzero(host.kinds == RUNTIME)
        copies = np.concatenate([self.transfers, self.waits, host.matching(ANY_COPY, RUNTIME)])
        others = np.setdiff1d(calls, copies)
        members = np.sort(host.positions[self.transfers])
        within = others[nearest_around(self.index, host.positions[others], members) != NONE]
        kernels = self.types["compute"].union(self.types["communication"])
        return host.union(self.transfers).without(host.union(within)).without(kernels)

    @cached_property
    def active(self) -> AnyArray:
        """Which of the host's slices are operators and calls, the profiler's own aside."""
        active: AnyArray = (self.host.kinds == OP) | (self.host.kinds == RUNTIME)
        active[self.profiler] = False
        return active

    @cached_property
    def host_busy(self) -> Intervals:
        """The time in which some thread runs an operator or call and does not wait for the device."""
        return self._busy_without(self.waits)

    @cached_property
    def host_working(self) -> Intervals:
        """The time in which some thread runs an operator or call that neither waits for the device nor for a
        copy, and that the profiler does not hold up.
        """
        held = self._held_by_profiler()
        busy = self._busy_without(np.union1d(np.union1d(self.waits, self.transfers), held))
        return busy.union(self.host.union(held).without(self.profiling))

    def _busy_without(self, idle: I64) -> Intervals:
        """Return the time in which some thread has an active slice, and none of these slices."""
        host = self.host
        waiting = np.zeros(len(host), np.bool_)
        waiting[idle] = True
        lanes = np.unique(host.lanes[waiting])
        busy = host.union(np.flatnonzero(self.active & ~np.isin(host.lanes, lanes)))
        for lane in lanes.tolist():
            here = host.lanes == lane
            own = host.union(np.flatnonzero(self.active & here))
            busy = busy.union(own.without(host.union(np.flatnonzero(waiting & here))))
        return busy

    def _held_by_profiler(self) -> I64:
        """Return the rows of calls that last until the profiler is done: a launch waits for its buffer."""
        host = self.host
        calls = np.flatnonzero(self.active & (host.kinds == RUNTIME))
        ends = np.sort(host.ends[self.profiler])
        last = np.searchsorted(ends, host.ends[calls], "right")
        return calls[last > np.searchsorted(ends, host.starts[calls], "right")]

    @cached_property
    def host_window(self) -> tuple[int, int]:
        """From the first start to the last end of the host's operators and calls, waits and the profiler's
        own aside: the time in which it gives the device work. (0, 0) without any.
        """
        issuing = self.active.copy()
        issuing[self.waits] = False
        if not issuing.any():
            return 0, 0
        return int(self.host.starts[issuing].min()), int(self.host.ends[issuing].max())

    # -- devices ------------------------------------------------------------------------------------------

    @cached_property
    def work(self) -> Frame:
        """The work of the source's devices."""
        work = work_of(self.scope)
        return work.separate(~(work.named(NOT_BUSY) | bool(self.stray)))

    def lacking(self, need: Need) -> NotJudged | None:
        """Return what the source lacks for a rule that needs device or host slices, None for nothing."""
        if need == "device":
            return None if len(self.work) else self.no_device
        return None if len(self.host) else NO_HOST

    @property
    def no_device(self) -> NotJudged:
        """Why nothing can be said about the devices."""
        if self.stray:
            return NotJudged(f"device work ({count_of(self.stray, 'piece')}) has times far from all others")
        return NotJudged("the trace holds no device work")

    @cached_property
    def busy(self) -> Intervals:
        """The time during which at least one device works."""
        return self.work.union()

    @cached_property
    def types(self) -> dict[KernelType, Intervals]:
        """The time in which work of each type runs."""
        return {name: self.work.union(self.work.is_type(name)) for name in KERNEL_TYPES}

    @cached_property
    def window(self) -> tuple[int, int]:
        """From the first start to the last end of device work; (0, 0) without any."""
        return (int(self.busy.starts[0]), int(self.busy.ends[-1])) if len(self.busy) else (0, 0)

    @property
    def window_ns(self) -> int:
        """Length of the window."""
        return self.window[1] - self.window[0]

    @cached_property
    def idle(self) -> Intervals:
        """The time of the window in which no device works and the profiler is not to blame."""
        return self.busy.gaps(*self.window).without(self.profiling)

    @cached_property
    def all_idle(self) -> Intervals:
        """The time of the span in which no device works and the profiler is not to blame."""
        return self.busy.gaps(*self.span).without(self.profiling)

    def work_after(self, gaps: Intervals) -> U32:
        """Return the position of the work that ends each of these gaps; the last may have none."""
        order = np.argsort(self.work.start, kind="stable")
        at = np.searchsorted(self.work.start[order], gaps.ends)
        return np.asarray(self.work.position[order[at[at < len(order)]]])

    def steps_of(self, positions: AnyArray) -> I64:
        """Return the row of the step that launched each of these pieces of work, ascending; -1 for none."""
        if self.steps is None:
            return np.full(len(positions), -1, np.int64)
        return steps_of_work(self.scope, self.steps, positions).steps

    @property
    def device_is(self) -> str:
        """The beginning of a sentence about the source's devices."""
        titles = {one.first_device.title for one in self.work.by("device_row")}
        if len(titles) > 1:
            return f"At least one of {len(titles)} devices is"
        (title,) = titles
        return "The device is" if title.startswith("device") else f"{title} is"

    # -- time ---------------------------------------------------------------------------------------------

    @cached_property
    def span(self) -> tuple[int, int]:
        """From the first start to the last end of host and device slices: the time that is looked at."""
        edges = [(int(self.host.starts.min()), int(self.host.ends.max()))] if len(self.host) else []
        if len(self.work):
            edges.append((int(self.work.start.min()), int(self.work.end.max())))
        return (min(low for low, _ in edges), max(high for _, high in edges)) if edges else (0, 0)

    @property
    def span_ns(self) -> int:
        """Length of the span."""
        return self.span[1] - self.span[0]

    @cached_property
    def steps(self) -> Steps | None:
        """The steps that lie wholly in the scope, None where there are none."""
        self.scope.check()
        steps = self._capture.steps(self.source)
        if steps is not None and self.part.process in steps.processes:
            steps = steps.take(np.flatnonzero(steps.processes == self.part.process))
        if steps is None or self.scope.range is None:
            return steps
        low, high = self.scope.range
        inside = np.flatnonzero((steps.starts >= low) & (steps.ends <= high))
        return steps.take(inside) if len(inside) else None

    @cached_property
    def judged(self) -> Intervals:
        """The time of the steps; the span where there are no steps."""
        if self.steps is not None:
            return merge(self.steps.starts, self.steps.ends)
        low, high = (np.array([edge], np.int64) for edge in self.span)
        return merge(low, high)

    # -- evidence -----------------------------------------------------------------------------------------

    def name(self, position: int) -> str:
        """Return the short name of a slice."""
        return short_name(self.index.string(int(self.index.column("slices.name")[position])))

    def starts_of(self, positions: I64) -> I64:
        """Return the starts of slices in trace time."""
        return self.scope.starts(self.source, positions)

    def slice(self, label: str, position: int, start: int, end: int) -> Evidence:
        """Return a slice as evidence."""
        ordinal = int(self.index.column("slices.ordinal")[position])
        return Evidence(label, start, end, SliceId(self.source, ordinal))

    def on_host(self, label: str, row: int) -> Evidence:
        """Return a slice of the host as evidence."""
        host = self.host
        return self.slice(label, int(host.positions[row]), int(host.starts[row]), int(host.ends[row]))

    def longest_on_host(self, label: str, rows: I64) -> Evidence:
        """Return the longest of these slices of the host as evidence, the label with its name."""
        host = self.host
        longest = int(rows[np.argmax((host.ends - host.starts)[rows])])
        return self.on_host(f"{label}: {host.label(int(host.name[longest]))}", longest)

    def on_device(self, label: str, work: Frame) -> Evidence:
        """Return the first piece of some device work as evidence."""
        return self.slice(label, int(work.position[0]), int(work.start[0]), int(work.end[0]))

    def longest_windows(self, label: str, times: Intervals, count: int = 3) -> tuple[Evidence, ...]:
        """Return the longest stretches of a set of time as evidence, longest first."""
        order = np.argsort(times.starts - times.ends, kind="stable")[:count]
        return tuple(Evidence(label, int(times.starts[at]), int(times.ends[at])) for at in order.tolist())


def share(part: int, whole: int) -> float:
    """Return a part of a whole as a share of 1; 0 where the whole is 0."""
    return part / whole if whole else 0.0
