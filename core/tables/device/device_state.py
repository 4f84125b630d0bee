"""What each device did, moment by moment: one of `states` at a time, over the time that is looked at.

The time that is looked at, by which shares are divided, is that of the range or step asked for, else that of
all steps, else the trace without strays. Steps last until what they launched is done: on a decode step that
the host leaves after 2.4 ms the device works for 16.7 ms more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...base.arrays import (
    BY_RUNS,
    EMPTY,
    I64,
    U8,
    U32,
    AnyArray,
    Intervals,
    distinct,
    merge,
    run_starts,
    sum_of,
)
from ...base.errors import UnreadableError
from ...base.kineto import ANNOTATIONS
from ...index.flex import is_flex
from ...index.format import NONE, LaneRole
from ...index.producers import peer_waits, waits
from ...index.store import Index
from ...query.lookup import processes_of, promoted_of
from ...trace.collectives import world_size
from ...trace.cycle_stamps import flex_stamps, preparing_slices
from ...trace.devices import Device, devices
from ...trace.step_choice import DOUBTFUL, REPEATED
from ...trace.step_spans import StepSpans, step_spans
from ..frame.frame import Frame
from ..frame.frame_columns import gap_classes, work_of
from ..frame.metrics import ratio
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.table import Table
from ..peers.skew import Skew, parts_in_one_file, skew, skew_of_parts
from ..steps.attribution import work_by_steps
from .doubts import doubts
from .states import IDLE, UNKNOWN, DeviceState
from .untrusted_periods import unknown_time

OF_COLLECTIVES = 0.9
"""A lane of which this share of tasks, by number, begins during collectives shows what these are made of."""
STATES = TableSchema(
    "states",
    "What devices did",
    (
        Column("rank", "rank", "id"),
        Column("label", "device", "text"),
        Column("busy_share", "busy %", "share"),
        Column("busy_ns", "busy", "ns"),
        Column("of_ns", "of", "ns"),
        Column("compute_ns", "compute", "ns"),
        Column("collective_moving_ns", "moving", "ns"),
        Column("collective_unsplit_ns", "not split", "ns"),
        Column("copy_ns", "copy", "ns"),
        Column("prepare_ns", "prepare", "ns", detail=True),
        Column("collective_waiting_ns", "waiting", "ns"),
        Column("idle_ns", "idle", "ns"),
        Column("start_ns", "from", "ns", moment=True, detail=True),
    ),
    keys=("rank", "label"),
    chief=("label", "rank", "busy_share", "idle_ns", "compute_ns", "collective_waiting_ns", "of_ns"),
)


def state_table(scope: Scope) -> Table:
    """Return the time that each device of a scope spent in each state; they add up to `of_ns`."""
    states = device_states(scope)
    rows = []
    for one in states:
        unknown = unknown_idle(scope, one)
        ns = {**one.ns, "busy": one.busy_ns, "of": one.of_ns - unknown, "start": int(one.edges[0])}
        ns["idle"] -= unknown
        what = {"rank": one.device.rank, "label": one.device.title, "busy_share": ratio(ns["busy"], ns["of"])}
        rows.append({**what, **{f"{name}_ns": time for name, time in ns.items()}})
    jumps = [(one.device.device.source, one.longest) for one in states]
    return Table.from_rows(STATES, scope.text, rows, jumps, notes=doubts(scope, "device") if states else ())


def unknown_idle(scope: Scope, state: DeviceState) -> int:
    """Return for how many ns it is not known whether a device was idle, as its records are missing."""
    return unknown_time(scope, state.device.device).intersection(state.spent[IDLE]).length


def looked_at(scope: Scope) -> tuple[int, int]:
    """Return the time [start, end) that a scope looks at: its range, else its steps', else from the
    first recorded slice to the last; of steps until the last work that they launched is done, as devices run
    behind the host. Doubtful steps, in which little of the work is launched, count for none.
    """
    launched: Mapping[int, AnyArray] = {}
    if scope.range is not None:
        low, high = scope.range
        launched = {} if scope.work is None else scope.work.chosen
    elif (steps := step_spans(scope.trace, scope.clocks, scope.steps or None)) is not None:
        low, high = _around(scope, steps)
        if scope.attribute == "launch":
            by_source = work_by_steps(scope, steps).work
            launched = {source: one.positions[one.steps >= 0] for source, one in by_source.items()}
            everything = {source: one.positions for source, one in by_source.items()}
            if _total(scope, launched) < DOUBTFUL * _total(scope, everything):
                return scope.recorded_span
    else:
        return scope.recorded_span
    for source, positions in launched.items():
        ends = scope.starts(source, positions) + scope.trace.indexes[source].duration(positions)
        high = max(high, int(ends.max(initial=high)))
    return low, high


def _around(scope: Scope, steps: StepSpans) -> tuple[int, int]:
    """Return from when to when steps last; of steps that nobody marked and that are parts of one annotation
    (the layers of a model's only forward pass) from its start to its end.
    """
    low, high = int(steps.starts.min()), int(steps.ends.max())
    for source, (own, _) in steps.of_source.items() if steps.reason.startswith(REPEATED) else ():
        index = scope.trace.indexes[source]
        parents = distinct(index.column("slices.parent")[own.positions])
        if len(own) > 1 and len(parents) == 1 and parents[0] != NONE:
            category = int(index.column("slices.category")[parents[0]])
            if index.categories[category] in ANNOTATIONS:
                start = int(scope.starts(source, parents)[0])
                low, high = min(low, start), max(high, start + int(index.duration(parents)[0]))
    return low, high


def _total(scope: Scope, positions: Mapping[int, AnyArray]) -> int:
    """Return how long slices of each source last together, ns."""
    return sum(sum_of(scope.trace.indexes[source].duration(at)) for source, at in positions.items())


def device_states(scope: Scope) -> tuple[DeviceState, ...]:
    """Return what each device of a scope did in the time that it looks at, in display order; nothing of a
    device whose times are lost: all its work stands on another clock.
    """
    window = looked_at(scope)
    work = work_of(replace(scope, range=window, work=None))
    peers = peers_of(replace(scope, range=None, work=None)) if work.is_type("communication").any() else None
    working = {one.first_device.device: one for one in work.by("device_row")}
    states = []
    for device in devices(scope.trace):
        if device in working:
            states.append(_state_of(working[device], window, peers))
        elif scope.source in (None, device.source) and len(seen := _in_sight(scope, device)):
            idle, unknown = np.array([IDLE], np.uint8), np.array([UNKNOWN], np.uint8)
            states.append(
                DeviceState(seen.first_device, np.array(window), idle, unknown, int(seen.position[0]))
            )
    return tuple(states)


def _in_sight(scope: Scope, device: Device) -> Frame:
    """Return the work of a device in what the trace opens with."""
    lanes = [at for at in device.lanes if scope.lanes is None or at in scope.lanes]
    return work_of(replace(scope, range=scope.opening_span, lanes=lanes, where=None, work=None))


@dataclass(frozen=True, eq=False)
class Peers:
    """The collectives that ranks share, by source: what is known of each that a rank took part in."""

    waiting: Skew
    in_one_file: bool

    def of(self, source: int, index: Index) -> tuple[U32, I64, I64, I64, AnyArray]:
        """Return (positions, starts, ends of waits, ends, whether all members are there) of a source."""
        skew, who = self.waiting, self.waiting.who
        if self.in_one_file:
            own = np.arange(len(who), dtype=np.int64)
        elif source in skew.columns:
            own = who.of_rank(skew.columns[source])
        else:
            own = np.empty(0, np.int64)
        positions = skew.positions[own].astype(np.uint32)
        sizes = promoted_of(index, "collective_size", positions, world_size(index))
        collective = who.collective[own]
        is_whole = (sizes > 0) & (who.sizes[collective] >= sizes)
        return positions, skew.starts[own], skew.starts[own] + skew.waits[own], skew.ends[own], is_whole


def peers_of(scope: Scope) -> Peers | None:
    """Return what ranks know of one another; None without two on clocks that their collectives set."""
    parts = parts_in_one_file(scope)
    whole = Peers(skew_of_parts(scope, parts), True) if len(parts) > 1 else Peers(skew(scope), False)
    fitted = scope.trace.alignment.clocks
    as_fitted = all(scope.clocks.offset(*key) == fitted.offset(*key) for key in scope.trace.alignment.keys)
    return whole if as_fitted and len(whole.waiting) else None


def waited_of(work: Frame) -> I64:
    """Return for how many ns of each row of device work its device waits for a peer, as `device_states` has
    it; 0 where that is not known.
    """
    if not work.is_type("communication").any():
        return np.zeros(len(work), np.int64)
    peers = peers_of(replace(work.scope, range=None, where=None, lanes=None, work=None))
    window = int(work.start.min()), int((work.start + work.dur).max())

    def of_device(part: Frame) -> I64:
        waited, own = np.zeros(len(part), np.int64), np.flatnonzero(part.is_type("communication"))
        collectives = part[own]
        if not len(own):
            return waited
        starts, ends = collectives.start, collectives.start + collectives.dur
        recorded = _recorded_waits(part, collectives, window)
        waited[own] = recorded.before(ends) - recorded.before(starts)
        if peers is not None:
            positions, begins, lasts, _, _ = peers.of(part.source_number, part.index)
            order = np.argsort(positions)
            at = np.searchsorted(positions, collectives.position, sorter=order)
            is_there = np.append(positions[order], NONE)[at] == collectives.position
            rows, at = own[is_there], order[at[is_there]]
            of_peers = np.minimum(lasts[at], ends[is_there]) - np.maximum(begins[at], starts[is_there])
            waited[rows] = np.maximum(waited[rows], of_peers)
        return waited

    waited: I64 = work.from_parts(of_device, "device_row")
    return waited


def _state_of(work: Frame, window: tuple[int, int], peers: Peers | None) -> DeviceState:
    is_collective = work.is_type("communication")
    collectives = work[np.flatnonzero(is_collective)]
    waiting, moving, unsplit = EMPTY, EMPTY, work.union(is_collective)
    if peers is not None and len(collectives):
        waiting, moving, unsplit = _split(collectives, *peers.of(work.source_number, work.index))
    if len(recorded := _recorded_waits(work, collectives, window)):
        waiting = waiting.union(recorded)
        moving, unsplit = moving.without(recorded), unsplit.without(recorded)
    computing, copying = (work.union(work.is_type(name)) for name in ("compute", "memory"))
    layers = computing, moving, unsplit, copying, _preparing(work), waiting
    edges, states = flattened(layers, window)
    longest = int(work.position[int(np.argmax(work.dur))])
    causes = _causes(work, edges, states)
    clipped = tuple(layer.clipped(*window) for layer in layers)
    return DeviceState(work.first_device, edges, states, causes, longest, clipped)


def _recorded_waits(work: Frame, collectives: Frame, window: tuple[int, int]) -> Intervals:
    """Return when a device waits for a peer by what its own file says: by stamps, or by tasks that wait."""
    received = _receiving(collectives) if is_flex(work.index) else EMPTY
    return received.union(_waits_for_peers(work, collectives, window))


def _waits_for_peers(work: Frame, collectives: Frame, window: tuple[int, int]) -> Intervals:
    """Return when tasks of a device's collectives wait for a peer, by the names that their producer gives to
    these: those on lanes that show the tasks of its collectives alone, else those on streams that do nothing
    but collectives; while another of these tasks moves data, nothing waits. A stream that computes, too,
    waits for an event: of another stream, say.
    """
    names = peer_waits(work.index)
    if not len(names) or not len(collectives):
        return EMPTY
    trace, device = work.scope.trace, work.first_device.device
    processes = {(trace.lanes[at].source, trace.lanes[at].process.number) for at in device.lanes}
    planes = [
        lane.index
        for lane in trace.lanes
        if lane.role is LaneRole.DERIVED and (lane.source, lane.process.number) in processes
    ]
    within = collectives.union()
    for lanes in (planes, device.lanes):
        waiting, moving = EMPTY, EMPTY
        for tasks in _tasks(work, lanes, window):
            is_wait = np.isin(tasks.names, names)
            if is_wait.any() and _is_within(tasks, within):
                waiting = waiting.union(tasks.union(is_wait))
                moving = moving.union(tasks.union(~is_wait))
        if len(waiting):
            return waiting.without(moving).intersection(within)
    return EMPTY


class _Tasks(NamedTuple):
    """The slices of a lane: numbers of names, trace time in ns."""

    names: AnyArray
    starts: I64
    ends: I64

    def union(self, mask: AnyArray) -> Intervals:
        return merge(self.starts[mask], self.ends[mask])


def _tasks(work: Frame, lanes: Sequence[int], window: tuple[int, int]) -> Iterator[_Tasks]:
    """Yield the slices of each of some lanes that has any in a window."""
    scope = replace(work.scope, range=window, source=work.source_number, where=None, work=None)
    for lane in lanes:
        chunks = list(replace(scope, lanes=[lane]).chunks())
        if chunks:
            columns = (
                [one.names for one in chunks],
                [one.starts for one in chunks],
                [one.ends for one in chunks],
            )
            yield _Tasks(*map(np.concatenate, columns))


def _is_within(tasks: _Tasks, within: Intervals) -> bool:
    """Tell whether nearly all tasks of a lane begin during collectives."""
    at = np.searchsorted(within.starts, tasks.starts, "right") - 1
    inside = (at >= 0) & (tasks.starts < np.append(within.ends, 0)[at])
    return bool(np.count_nonzero(inside) >= OF_COLLECTIVES * len(tasks.starts))


def event_waits(work: Frame, window: tuple[int, int]) -> Intervals:
    """Return when tasks on the lanes of a device, which its producer calls waits, wait: for whatever."""
    names = waits(work.index)
    waiting = EMPTY
    if len(names):
        for tasks in _tasks(work, work.first_device.device.lanes, window):
            waiting = waiting.union(tasks.union(np.isin(tasks.names, names)))
    return waiting


def _preparing(work: Frame) -> Intervals:
    """Return when a device prepares work, whether one piece or several; empty where its file has gone."""
    device = work.first_device.device
    positions = np.empty(0, np.int64)
    with suppress(UnreadableError):
        positions = preparing_slices(work.index)
    positions = positions[processes_of(work.index, positions) == device.process]
    starts = work.scope.starts(device.source, positions)
    return merge(starts, starts + work.index.duration(positions))


def _receiving(collectives: Frame) -> Intervals:
    """Return when slices of a FLEX job trace wait until their peer has sent, by their own stamps."""
    stamps = None
    with suppress(UnreadableError):  # the file has gone: nothing is known of it
        stamps = flex_stamps(collectives.index) if len(collectives) else None
    if stamps is None:
        return EMPTY
    starts = collectives.scope.starts(collectives.source_number, stamps.positions)
    return stamps.waits(starts).intersection(collectives.union())


def _split(
    work: Frame, positions: U32, starts: I64, until: I64, ends: I64, is_whole: AnyArray
) -> tuple[Intervals, Intervals, Intervals]:
    """Return when collectives wait, move data, and what of them is not split: also what no other rank has,
    whatever waits beside it.

    What matched collectives say counts where slices of collectives run: FLEX has several for one.
    """
    runs = work.union()
    waiting = merge(starts, until).intersection(runs)
    moving = merge(until[is_whole], ends[is_whole]).intersection(runs)
    rest = merge(until[~is_whole], ends[~is_whole]).intersection(runs)
    is_alone = ~np.isin(work.position, positions)
    alone = runs.without(merge(starts, ends)) if is_flex(work.index) else work.union(is_alone)
    return waiting, moving, rest.union(alone)


def flattened(layers: Sequence[Intervals], window: tuple[int, int]) -> tuple[I64, U8]:
    """Return (edges, layer between two edges) over a window: of layers that overlap the first, and
    `len(layers)` where there is none; at most eight layers. An empty window has one edge pair of no length.
    """
    low, high = window
    clipped = [layer.clipped(low, high) for layer in layers]
    times = np.concatenate([[low, high], *(edges for one in clipped for edges in (one.starts, one.ends))])
    # A layer is a bit, which each of its edges turns. Of layers 0 from 2 to 4 and 1 from 0 to 3 the bits
    # 2 1 2 1 are turned at 0 2 3 4, so that 2 3 1 0 are set from there: the lowest of them says the layer.
    bits = np.repeat(np.uint8(1) << np.arange(len(layers), dtype=np.uint8), [2 * len(one) for one in clipped])
    order = np.argsort(times, kind=BY_RUNS)
    times, is_set = times[order], np.bitwise_xor.accumulate(np.append(np.zeros(2, np.uint8), bits)[order])
    begins = np.flatnonzero(times[1:] > times[:-1])
    if not len(begins):
        return times[:2].astype(np.int64), np.array([len(layers)], np.uint8)
    states = _lowest_bits(len(layers))[is_set[begins]]
    turns = run_starts(states)
    return np.append(times[begins[turns]], high), states[turns]


def _lowest_bits(count: int) -> U8:
    """Return the lowest bit that is set in each number of so many bits; `count` for 0, which has none."""
    numbers = np.arange(1 << count)
    lowest = np.full(len(numbers), count, np.uint8)
    for bit in reversed(range(count)):
        lowest[numbers >> bit & 1 == 1] = bit
    return lowest


def _causes(work: Frame, edges: I64, states: U8) -> U8:
    """Return why the device is idle in each of its states: the class of the gap that the next work ends.

    Before the first work the host is late where the launch came in the second half of that time: else it is
    the launch that waits.
    """
    causes = np.full(len(states), UNKNOWN, np.uint8)
    idle = np.flatnonzero(states == IDLE)
    by_start = np.argsort(work.start, kind="stable")
    at = np.searchsorted(work.start[by_start], edges[idle + 1])
    ended = at < len(by_start)
    rows = by_start[at[ended]]
    idle = idle[ended]
    gap = edges[idle + 1] - edges[idle]
    reach = edges[idle] + np.where(at[ended] == 0, gap // 2, 0)
    causes[idle] = gap_classes(work[rows].plus(reach=reach, gap=gap))
    return causes
