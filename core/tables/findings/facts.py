"""The facts of one source that rules use: host and device columns, computed once and shared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from weakref import ref

import numpy as np

from ...base.arrays import EMPTY, I64, AnyArray, Bools, Intervals, add_at, distinct, merge
from ...base.errors import UnreadableError
from ...base.kineto import BLOCKING_COPIES, ON_THE_HOST, STEP, WAITS
from ...base.safe_text import safe
from ...base.short_names import short_name
from ...base.units import count_of
from ...index.flex import is_flex, round_trips
from ...index.format import LaneRole
from ...index.store import Index
from ...query.groups import concatenated
from ...query.lookup import nearest_around
from ...query.views import SliceId
from ...trace.device_clocks import DeviceClock, device_clocks
from ...trace.devices import rank_of, ranks_of_processes
from ...trace.step_choice import Steps, find_steps
from ..compile.compile_phases import timed
from ..device.device_state import device_states, event_waits, looked_at
from ..device.efficiency import ModelledCalls, modelled_calls
from ..device.gap import at_work, threads_in
from ..device.states import BUSY, WAITING, DeviceState
from ..device.untrusted import OF_RECORDS, Untrusted
from ..device.untrusted_periods import untrusted, untrusted_time
from ..frame.frame import Frame
from ..frame.frame_columns import KERNEL_WAIT_NS, work_of
from ..frame.kinds import KERNEL_TYPES, KernelType
from ..frame.scope import Scope
from ..host.host_columns import (
    ALLOCATES,
    ANY_COPY,
    COPY_OPS,
    LOADER,
    MOVES_DATA,
    POLLS,
    PROFILER,
    READ_OPS,
    TRAINS,
    HostSlices,
    host_of,
)
from ..host.op_events import OP, PYTHON, RUNTIME
from ..peers.skew import RankPart, Skew, parts_of, skew, skew_of_parts
from ..steps.attribution import steps_of_work
from .finding import Baseline, Evidence, NotJudged, Outcome
from .meanwhile import Activity, Meanwhile, first_launches, meanwhile

STEP_MARK = re.compile(f"^{STEP}")
DOING_SHARE = 0.8
"""What a slice covers so much of a time is what a thread did for most of it."""
LONGEST = 10
"""Of so many stretches of time it is looked up what the host does meanwhile: ten of 10 ms each tell more than
the one of 11 ms.
"""
NOT_BUSY = re.compile(r"^(event_wait|stream_?wait.*|wait.*event|.*synchronize)$", re.IGNORECASE)
"""Slices on a device's lanes during which the device waits for something else."""
UNRECORDED_NS, COPY_TIMES = 1_000_000, 10
"""From so many ns on a wait for a device that does nothing tells of work that was not recorded; where it is a
copy's, from so many times the copy's own time on.
"""
MAX_READ = 4096
"""Calls whose inputs are read from the file's text: a sixth of a second."""
MIN_TRUSTED = 0.1
"""Where less of the time than this can be trusted, nothing is said about the devices."""
PAUSE_TIMES, PAUSES_ALIKE, PAUSES_DIFFER = 5, 20, 1.3
"""A pause between steps is far longer than usual from so many times the usual one on, and not far shorter
than the longest; those of a program without marks differ by such a factor, or they are its own.
"""
NO_LAUNCHES = NotJudged("the trace does not say which call launched the device work")


class CaptureFacts:
    """The facts of all sources of a scope together, computed once."""

    def __init__(self, scope: Scope, baseline: Baseline | None = None) -> None:
        self.scope = scope
        self.baseline = baseline
        self._steps: dict[int, Steps | None] = {}
        self._sources: list[ref[SourceFacts]] = []  # these hold it: without a cycle their columns go at once

    @property
    def everyone(self) -> list[SourceFacts]:
        """The facts of each source or rank that is judged with these."""
        return [facts for source in self._sources if (facts := source()) is not None]

    def add(self, facts: SourceFacts) -> None:
        """Take in one of the sources."""
        self._sources.append(ref(facts))

    @cached_property
    def skew(self) -> Skew:
        parts = self.parts(0) if len(self.scope.trace.indexes) == 1 else ()
        return skew_of_parts(self.scope, parts) if len(parts) > 1 else skew(self.scope)

    @cached_property
    def states(self) -> tuple[DeviceState, ...]:
        return device_states(self.scope)

    @cached_property
    def window(self) -> tuple[int, int]:
        """The time that is looked at, of which shares are: that of `device_states`."""
        if self.states:
            return int(self.states[0].edges[0]), int(self.states[0].edges[-1])
        return looked_at(self.scope)

    @cached_property
    def untrusted(self) -> tuple[Untrusted, ...]:
        """The time for which the trace's records of devices cannot be right."""
        return untrusted(self.scope)

    def steps(self, source: int) -> Steps | None:
        """Return the steps of a source, None where there are none."""
        if source not in self._steps:
            scope = self.scope
            self._steps[source] = find_steps(scope.trace, source, scope.clocks, scope.steps or None)
        return self._steps[source]

    def parts(self, source: int) -> tuple[RankPart, ...]:
        """Return the ranks of a source, each to be judged by itself."""
        scope = replace(self.scope, source=source)
        return parts_of(scope, self.steps(source), ranks_of_processes(scope.trace))


class SourceFacts:
    """One source of a scope, or one rank of several in it, as the rules see it; everything is computed when
    first used.
    """

    def __init__(self, part: RankPart, stray: int = 0, capture: CaptureFacts | None = None) -> None:
        self.part = part
        self.scope = part.scope
        self.source = part.scope.source or 0
        self.capture = capture or CaptureFacts(part.scope)
        self.stray = stray  # pieces of device work whose times cannot be right
        self.outcomes: dict[str, tuple[object, Outcome]] = {}  # what rules said of it, by id
        self.index: Index = part.scope.trace.indexes[self.source]
        self.capture.add(self)

    # -- other ranks --------------------------------------------------------------------------------------

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

    # -- host ---------------------------------------------------------------------------------------------

    @cached_property
    def whole_host(self) -> HostSlices:
        """The host's slices in the scope, whether in the time that is looked at or not."""
        return host_of(self.scope)

    @cached_property
    def host(self) -> HostSlices:
        """The host's slices in the time that is looked at."""
        whole = self.whole_host
        if self.scope.range is not None:
            return whole
        low, high = self.span
        host = whole.take((whole.starts < high) & (whole.ends > low))
        if host.starts.min(initial=low) >= low and host.ends.max(initial=high) <= high:
            return host  # most traces: their columns are not held twice
        starts, ends = np.maximum(host.starts, low), np.minimum(host.ends, high)
        return replace(host, starts=starts, ends=ends, self_ns=np.minimum(host.self_ns, ends - starts))

    @cached_property
    def waits(self) -> Bools:
        """Which of the host's slices are calls that wait for the device."""
        return self.host.matching(WAITS, RUNTIME)

    @cached_property
    def profiler(self) -> Bools:
        return self.host.matching(PROFILER, RUNTIME)

    @cached_property
    def profiling(self) -> Intervals:
        """The time in which the profiler itself was at work."""
        return self.host.union(self.profiler)

    @cached_property
    def profiled(self) -> Mapping[int, tuple[Intervals, I64]]:
        """The time in which the profiler was at work on a lane of its own within an operator or call, by the
        lane of the latter: (the time, the row of the innermost slice that holds each stretch whole). What it
        did it did there, and held it up; where several threads are at work, those that launch device work.
        """
        host = self.host
        time = host.union(self.profiler & ~host.on_lanes_of(self.active))
        if not len(time):
            return {}
        lanes = distinct(host.lanes[self.active])
        holders = {lane: self._holding(lane, time) for lane in lanes.tolist()}
        launching = set(distinct(host.lanes[host.at(self.work.launch)]).tolist())
        known = np.zeros(len(time), np.bool_)
        for lane in launching & holders.keys():
            known |= holders[lane] >= 0
        within = {
            lane: (rows >= 0) & (~known if lane not in launching else True) for lane, rows in holders.items()
        }
        return {
            lane: (Intervals(time.starts[which], time.ends[which]), holders[lane][which])
            for lane, which in within.items()
            if which.any()
        }

    def _holding(self, lane: int, time: Intervals) -> I64:
        """Return the row of the innermost operator or call of a lane around each stretch of time, -1 for
        none.
        """
        host = self.host
        rows = np.flatnonzero(self.active & (host.lanes == lane))
        rows = rows[np.lexsort((-host.ends[rows], host.starts[rows]))]
        at = np.searchsorted(host.starts[rows], time.starts, "right") - 1
        row = np.where(at >= 0, rows[np.maximum(at, 0)], -1)
        is_active, ends = np.append(self.active, True), np.append(host.ends, np.iinfo(np.int64).max)
        while (too_small := ~is_active[row] | (ends[row] < time.ends)).any():
            row[too_small] = host.parents[row[too_small]]
        return np.asarray(row, np.int64)

    @cached_property
    def own_ns(self) -> I64:
        """The self time of each of the host's slices, ns, without that of the profiler within it."""
        own = self.host.self_ns.copy()
        for time, rows in self.profiled.values():
            add_at(own, rows, time.starts - time.ends)
        return np.maximum(own, 0)

    @cached_property
    def transfers(self) -> Bools:
        """Which of the host's slices are copies to and from a device that it waits for: calls that last until
        their copy is done, and operators that copy in which such a call, a synchronisation or a launch of DMA
        lies.
        """
        host = self.host
        copies = self.work[self.work.is_type("memory") & (self.work.launch >= 0)]
        until_copied = copies.launch[copies.end <= copies.call_end]  # from pageable memory, say
        calls = host.matching(BLOCKING_COPIES, RUNTIME) | host.at(until_copied)
        blocks = calls | self.waits | host.matching(MOVES_DATA, RUNTIME)
        return calls | host.around_any(blocks, host.matching(COPY_OPS, OP))

    @cached_property
    def transferring(self) -> Intervals:
        """The time in which the host waits for copies while no kernel runs; calls within an operator that do
        something else (set up the device, allocate) aside, and copies that wait for earlier work; of calls
        that wait, where copies are recorded, the time in which one runs.
        """
        host = self.host
        copies = self.transfers | self.waits | host.matching(ANY_COPY, RUNTIME)
        within = host.inside((host.kinds == RUNTIME) & ~copies, self.transfers)
        kernels = self.types["compute"].union(self.types["communication"])
        readers = host.matching(READ_OPS, OP)
        memory = self.work[self.work.is_type("memory")]
        copied = memory[memory.launch >= 0]
        inside = nearest_around(self.index, copied.launch, host.positions[readers]) >= 0
        reading = host.union(readers).without(copied.union(inside))  # a wait, not a copy
        until = np.clip(copied.reach, copied.call_start, copied.call_end)
        queued = merge(copied.call_start, until).without(copied.union())
        others = host.union(self.waits & ~host.matching(BLOCKING_COPIES, RUNTIME)).without(memory.union())
        rest = host.union(self.transfers).without(host.union(within)).without(kernels)
        return rest.without(reading).without(queued).without(others if len(memory) else EMPTY)

    @cached_property
    def active(self) -> Bools:
        """Which of the host's slices are operators and calls, the profiler's own aside."""
        return self.of_programs & ~self.profiler

    @cached_property
    def outermost(self) -> Bools:
        """Which of the active slices lie directly in no other of them: the time of all is theirs."""
        return self.active & ~self.host.within(self.active)

    @cached_property
    def of_programs(self) -> Bools:
        """Which of the host's slices are operators and calls, the profiler's own among them. The marks of
        steps are none: some writers give them the category of operators.
        """
        of_programs: Bools = (self.host.kinds == OP) | (self.host.kinds == RUNTIME)
        return of_programs & ~self.host.matching(STEP_MARK, OP)

    @cached_property
    def running(self) -> Intervals:
        """The time in which some thread runs an operator or call, waits among them."""
        return self.host.union(self.outermost)

    @cached_property
    def loading(self) -> Intervals:
        """The time in which a data loader works, or a program gets its next input."""
        return self.host.union(self.host.matching(LOADER))

    @cached_property
    def host_busy(self) -> Intervals:
        """The time in which some thread runs an operator or call and does not wait for the device."""
        return self.host.time_of_threads(self.outermost, self.waits)

    @cached_property
    def compiler(self) -> Frame:
        """The calls of the compiler's phases."""
        return timed(self.scope.of_source(self.source))

    @cached_property
    def compiling(self) -> Intervals:
        """The time of the compiler: of the phases that it records, and what precedes first launches."""
        return self.compiler.union().union(self.first_launches).clipped(*self.span)

    @cached_property
    def first_launches(self) -> Intervals:
        """The time before the first launches of compiled kernels in which nothing is recorded of the host."""
        if not self.has_devices:
            return EMPTY
        doing = self.running.union(self.profiling, self.loading, self.host_collectives)
        return first_launches(*self.launched, self.at_rest, doing)

    @cached_property
    def meanwhile(self) -> Meanwhile:
        """What the host does, moment by moment, in the time that is looked at."""
        host = self.host
        layers: dict[Activity, Intervals] = {
            "unrecorded": self.untrusted,
            "profiler": self.profiling,
            "compile": self.compiling,
            "loader": self.loading,
            "allocation": host.union(host.matching(ALLOCATES, RUNTIME)),
            "runtime": host.union((host.kinds == RUNTIME) & self.active & ~self.waits),
            "operator": self.host_busy,
            "wait": host.union(self.waits),
        }
        return meanwhile(layers, self.span)

    # -- devices ------------------------------------------------------------------------------------------

    @cached_property
    def work(self) -> Frame:
        """The work of the source's devices in the time that is looked at."""
        work = work_of(replace(self.scope, range=self.capture.window, work=None))
        begun = np.searchsorted(self.untrusted.starts, work.start, "right") - 1
        is_lost = (begun >= 0) & (work.start < np.append(self.untrusted.ends, 0)[begun])
        return work.separate(~(work.named(NOT_BUSY) | is_lost | bool(self.stray)))

    @cached_property
    def launched(self) -> tuple[Frame, Bools]:
        """(the work whose call is known, in the order of the calls; which of it is the first of its name)."""
        work = self.work[self.work.launch >= 0]
        work = work[np.argsort(work.call_start, kind="stable")]
        is_first = np.zeros(len(work), np.bool_)
        is_first[work.group("name_number").first()] = True
        return work, is_first

    @cached_property
    def modelled(self) -> ModelledCalls:
        """The calls of operators of which it is known how many FLOPs and bytes they need."""
        scope = replace(self.scope, range=self.capture.window, work=None)
        try:
            return modelled_calls(scope, self.source, MAX_READ)
        except UnreadableError:  # the file has gone: inputs that stand in its text alone are not known
            return modelled_calls(scope, self.source, 0)

    @cached_property
    def has_devices(self) -> bool:
        """Whether the source has device work that can be judged: of most of the time."""
        whole = self.span[1] - self.span[0]
        return bool(self.work.dur.any()) and whole - self._untrusted_ns > MIN_TRUSTED * whole

    @property
    def _untrusted_ns(self) -> int:
        return self.untrusted.clipped(*self.span).length

    @cached_property
    def states(self) -> tuple[DeviceState, ...]:
        if self.stray:
            return ()
        own = {one.first_device.device for one in self.work.by("device_row")}
        states = self.capture.states if self.part.scope.where is None else device_states(self.part.scope)
        return tuple(one for one in states if one.device.device in own)

    def in_states(self, *states: int, of: DeviceState | None = None) -> Intervals:
        """Return the time in which at least one device, or a certain one, is in one of these states."""
        devices = self.states if of is None else (of,)
        parts = [one.spent[state] for one in devices for state in states]
        time = merge(concatenated([one.starts for one in parts]), concatenated([one.ends for one in parts]))
        return time.without(self.untrusted)

    @cached_property
    def untrusted_periods(self) -> tuple[Untrusted, ...]:
        """The time in which the trace's records of a device of the source cannot be right, by period, in the
        time that is looked at or not.
        """
        low, high = self.scope.range or self.scope.trace.span
        lanes = None if self.scope.lanes is None else set(self.scope.lanes)
        return tuple(
            one
            for one in self.capture.untrusted
            if one.source == self.source
            and one.trouble in OF_RECORDS
            and one.start < high
            and one.end > low
            and (one.device is None or lanes is None or not lanes.isdisjoint(one.device.lanes))
        )

    @cached_property
    def untrusted(self) -> Intervals:
        """The time for which the trace's records of a device cannot be right: no rule speaks of it."""
        return untrusted_time(self.untrusted_periods)

    @property
    def no_host(self) -> NotJudged:
        """Why there are no slices of the host that rules know."""
        if len(self.whole_host):
            return NotJudged("no operators run on the host in the time that is looked at")
        roles = {LaneRole.HOST, LaneRole.DEVICE}
        lanes = [one for one in self.scope.trace.lanes if one.source == self.source and one.slices]
        if any(lane.role not in roles or lane.role is LaneRole.HOST for lane in lanes):
            return NotJudged("the host's slices are no operators, calls or annotations that the rules know")
        return NotJudged("the trace holds no host slices")

    @property
    def no_device(self) -> NotJudged:
        if self.stray:
            return NotJudged(f"device work ({count_of(self.stray, 'piece')}) is on another clock")
        if len(self.work):
            return NotJudged("the records of the device cannot be trusted")
        if len(work_of(replace(self.scope, range=None, work=None))):
            return NotJudged("the device did nothing in the time that is looked at")
        return NotJudged("the trace holds no device work")

    @cached_property
    def busy(self) -> Intervals:
        """The time during which at least one device works and does not wait for a peer."""
        return self.in_states(*BUSY)

    @cached_property
    def waiting(self) -> Intervals:
        """The time during which devices do nothing but wait for a peer, and would have work without it."""
        return self.in_states(WAITING).without(self.busy).without(self.launching_late)

    @cached_property
    def launching_late(self) -> Intervals:
        """The time during which devices wait for a peer, too, while the host, which does not wait for them,
        has yet to launch what they compute next in the same step.
        """
        waits = self.in_states(WAITING).without(self.busy)
        ended, work = self.work_after(waits, self.work[self.work.is_type("compute")])
        work, ended = work[work.launch >= 0], ended[work.launch >= 0]
        starts, launched = waits.starts[ended], np.minimum(waits.ends[ended], work.call_end)
        late = launched > starts
        if self.steps is not None:
            step, later = (
                np.searchsorted(self.steps.starts, times, "right") for times in (starts, work.call_start)
            )
            late &= step == later
        return merge(starts[late], launched[late]).without(self.host.union(self.waits))

    @cached_property
    def types(self) -> dict[KernelType, Intervals]:
        return {
            name: self.work.union(self.work.is_type(name)).without(self.untrusted) for name in KERNEL_TYPES
        }

    @cached_property
    def at_rest(self) -> Intervals:
        """The time in which no device works or waits for a peer, as far as their records can be trusted."""
        return self.busy.union(self.waiting, self.untrusted).gaps(*self.span)

    @cached_property
    def idle(self) -> Intervals:
        """The same without the time for which the profiler is to blame, or a server that has no requests."""
        return self.at_rest.without(self.profiling).without(self.awaiting)

    @cached_property
    def is_apart(self) -> bool:
        """Whether all work of a device is further from the host's time than both last: on another clock."""
        return any(clock.apart_ns for clock in self.device_clocks)

    @cached_property
    def device_clocks(self) -> tuple[DeviceClock, ...]:
        """The clocks of the source's devices held against the host's."""
        return device_clocks(self.scope.trace, self.scope.clocks, self.source)

    @cached_property
    def event_waits(self) -> Intervals:
        """The idle time in which a stream waits for an event, by what its producer calls its task."""
        waits = EMPTY
        for device in self.work.by("device_row"):
            waits = waits.union(event_waits(device, self.capture.window))
        return waits.intersection(self.idle)

    @cached_property
    def held_up(self) -> Intervals:
        """The idle time in which devices wait for the host: until the call that launched what ends it is done
        and the hardware has had time to start it; all of it where that is not known or nothing ends it. The
        host's own collectives aside.
        """
        idle = self.at_rest
        ends = idle.ends.copy()
        ended, work = self.work_after(idle)
        since, call_end = idle.starts[ended], np.where(work.launch < 0, ends[ended], work.call_end)
        ends[ended] = np.where(call_end > since, np.minimum(ends[ended], call_end + KERNEL_WAIT_NS), since)
        late = Intervals(idle.starts[ends > idle.starts], ends[ends > idle.starts])
        return late.without(self.host_collectives).without(self.profiling).without(self.awaiting)

    def reach_of(self, claim: Intervals, least_share: float) -> Intervals:
        """Return the time that a cause explains by holding devices up so often, by its share of such time."""
        return self.held_up if claim.length >= least_share * self.held_up.length else EMPTY

    @cached_property
    def host_collectives(self) -> Intervals:
        return self.host.union(self.host.matching(ON_THE_HOST))

    @cached_property
    def awaiting(self) -> Intervals:
        """The time in which a server has no requests: the threads that launch work poll for some, or a
        program that does not train does nothing on the host, between two steps or bursts of calls, now and
        then for far longer than is usual there.
        """
        host, steps = self.host, self.steps
        waits = EMPTY
        if (polls := host.matching(POLLS, PYTHON)).any():
            waits = host.union(polls & host.on_lanes_of(host.at(self.work.launch)))
        if host.matching(TRAINS).any():
            return waits
        doing = self.running.union(self.loading)
        if steps is not None and not np.isin(steps.positions, host.positions).all():
            steps = None  # Python functions, say, of which a step may have many
        if steps is None:
            between = doing.gaps(*self.span)
        else:
            between = Intervals(np.maximum.accumulate(steps.ends)[:-1], steps.starts[1:])
        is_compiling = self.first_launches.covered(between.starts, between.ends) > 0
        between = Intervals(between.starts[~is_compiling], between.ends[~is_compiling])
        length = between.ends - between.starts
        if not len(length):
            return waits
        if steps is None:  # the pauses within a burst of calls, below the widest step up
            ordered = np.maximum(np.sort(length), self.span_ns // 100)
            usual = float(ordered[np.argmax(ordered[1:] / ordered[:-1])]) if len(ordered) > 1 else np.inf
        else:
            usual = max(np.quantile(length, 0.25), np.median(steps.ends - steps.starts) / 10)
        long = length >= max(PAUSE_TIMES * usual, length.max() / PAUSES_ALIKE)
        few = np.count_nonzero(long) < 2  # one may be anything
        if few or (steps is None and length[long].max() < PAUSES_DIFFER * length[long].min()):
            return waits
        return waits.union(merge(between.starts[long], between.ends[long]).without(doing))

    @property
    def working_span(self) -> tuple[int, int]:
        """From the first start to the last end of device work in the time that is looked at."""
        return int(self.work.start.min()), int(self.work.end.max())

    def work_after(self, gaps: Intervals, work: Frame | None = None) -> tuple[I64, Frame]:
        """Return which of these gaps are followed by work (or some of it), and what follows each of those."""
        work = self.work if work is None else work
        order = np.argsort(work.start, kind="stable")
        at = np.searchsorted(work.start[order], gaps.ends)
        ended = np.flatnonzero(at < len(order))
        return ended, work[order[at[ended]]]

    def doing_in(self, start: int, end: int, launch: int = -1) -> str:
        """Return what a thread of the host did for most of some time, "" where no slice of use says it; with
        the position of a launch call the thread that makes it.
        """
        lane = next(iter(self.host.lanes[self.host.positions == launch].tolist()), None)
        threads = threads_in(
            self.scope.trace, self.source, (start, end), self.scope.clocks, lane, DOING_SHARE
        )
        threads = at_work([one for one in threads if lane in (None, one.lane.index)])
        names = (safe(short_name(one.label)) for one in threads if one.slice is not None)
        return next((name for name in names if name not in self.marks), "")

    @cached_property
    def marks(self) -> frozenset[str]:
        """Names of slices that say nothing of what is done in them: the steps, a whole job."""
        positions = EMPTY.starts if self.steps is None else self.steps.positions
        names = distinct(self.index.column("slices.name")[positions])
        marks = set(map(short_name, self.index.strings(names)))
        if is_flex(self.index):
            marks.update(self.index.strings(round_trips(self.index)))
        return frozenset(marks)

    def doing_at_longest(self, times: Intervals) -> str:
        """Return what a thread of the host did in the longest of some stretches of time, as `doing_in`: of
        several that are about as long, in most of their time. Of several threads it is the one that launches
        the next work.
        """
        if not len(times):
            return ""
        length = times.ends - times.starts
        ended, work = self.work_after(times)
        launches = dict(zip(ended.tolist(), work.launch.tolist()))
        longest = np.argsort(-length, kind="stable")[:LONGEST]
        total: dict[str, int] = {}
        for at in longest[2 * length[longest] >= length[longest[0]]].tolist():
            start, end = int(times.starts[at]), int(times.ends[at])
            name = self.doing_in(start, end, launches.get(at, -1)) or self.doing_in(start, end)
            total[name] = total.get(name, 0) + int(length[at])
        return max(total, key=total.__getitem__)

    def steps_of(self, positions: AnyArray) -> I64:
        """Return the row of the step that launched each of these pieces of work, ascending; -1 for none."""
        if self.steps is None:
            return np.full(len(positions), -1, np.int64)
        return steps_of_work(self.scope, self.steps, positions).steps

    def waited_for(self, doing: str, gaps: Intervals) -> str:
        """Return what is to be added to what the host does in the longest of some gaps where that is a wait
        for a device that does nothing: on an idle device waits end at once, so that it does what nobody
        recorded. Copies that block take longer than their work, by what the host has to copy before.
        """
        if not len(gaps) or not WAITS.search(doing):
            return ""
        longest = int(np.argmax(gaps.ends - gaps.starts))
        gap = Intervals(gaps.starts[longest : longest + 1], gaps.ends[longest : longest + 1])
        _, work = self.work_after(gap)
        is_copy = BLOCKING_COPIES.search(doing) and len(work) and COPY_TIMES * int(work.dur[0]) > gap.length
        return (
            "" if is_copy or gap.length < UNRECORDED_NS else ", which waits for work that is not in the trace"
        )

    @property
    def device_title(self) -> str:
        """The source's device, or all of them, within a sentence; with the rank where there are several."""
        titles = {one.first_device.title for one in self.work.by("device_row")}
        title = titles.pop() if len(titles) == 1 else f"each of {len(titles)} devices" if titles else "device"
        title = "the device" if title.startswith("device") else title
        if len(self.scope.trace.indexes) > 1 and self.rank is not None and not self.is_numbered:
            title += f" of rank {self.rank}"
        return title

    # -- time ---------------------------------------------------------------------------------------------

    @property
    def span(self) -> tuple[int, int]:
        """From the first to the last moment that is looked at."""
        return self.capture.window

    @property
    def span_ns(self) -> int:
        """The time that is looked at, as far as the trace can be trusted."""
        whole = self.span[1] - self.span[0]
        return whole - self._untrusted_ns if self.has_devices else whole

    @cached_property
    def steps(self) -> Steps | None:
        """The steps that lie wholly in the scope, None where there are none."""
        self.scope.check()
        steps = self.capture.steps(self.source)
        if steps is not None and self.part.process in steps.processes:
            steps = steps.take(np.flatnonzero(steps.processes == self.part.process))
        if steps is None or self.scope.range is None:
            return steps
        inside = steps.within(self.scope.range)
        return steps.take(inside) if len(inside) else None

    # -- evidence -----------------------------------------------------------------------------------------

    def name(self, position: int) -> str:
        return short_name(self.index.string(int(self.index.column("slices.name")[position])))

    def slice(self, label: str, position: int, span: tuple[int, int] | None = None) -> Evidence:
        """Return a slice as evidence: whole, or a part of it."""
        if span is None:
            start = int(self.scope.starts(self.source, np.array([position], np.int64))[0])
            span = start, start + int(self.index.duration([position])[0])
        ordinal = int(self.index.column("slices.ordinal")[position])
        return Evidence(label, *span, SliceId(self.source, ordinal))

    def step(self, label: str, steps: Steps, row: int) -> Evidence:
        """Return one of the steps as evidence."""
        span = int(steps.starts[row]), int(steps.ends[row])
        return self.slice(label, int(steps.positions[row]), span)

    def on_host(self, label: str, row: int) -> Evidence:
        """Return a slice of the host as evidence, whole."""
        return self.slice(label, int(self.host.positions[row]))

    def longest_on_host(self, label: str, mask: Bools) -> Evidence:
        """Return the longest of these slices of the host as evidence, the label with its name."""
        host = self.host
        longest = host.longest(mask)
        return self.on_host(f"{label}: {host.label(int(host.name[longest]))}", longest)

    def most_of(self, label: str, mask: Bools, claim: Intervals) -> Evidence:
        """Return that of these slices of the host which holds most of a claim, of equals the shortest."""
        host, rows = self.host, np.flatnonzero(mask)
        starts, ends = host.starts[rows], host.ends[rows]
        most = int(rows[np.lexsort((ends - starts, -claim.covered(starts, ends)))[0]])
        return self.on_host(f"{label}: {host.label(int(host.name[most]))}", most)

    def on_device(self, label: str, work: Frame) -> Evidence:
        """Return the first piece of some device work as evidence."""
        return self.slice(label, int(work.position[0]), (int(work.start[0]), int(work.end[0])))

    def longest_windows(self, label: str, times: Intervals, count: int = 3) -> tuple[Evidence, ...]:
        """Return the longest stretches of a set of time as evidence, longest first."""
        order = np.argsort(times.starts - times.ends, kind="stable")[:count]
        return tuple(Evidence(label, int(times.starts[at]), int(times.ends[at])) for at in order.tolist())


def share(part: int, whole: int) -> float:
    """Return a part of a whole as a share of 1; 0 where the whole is 0."""
    return part / whole if whole else 0.0
