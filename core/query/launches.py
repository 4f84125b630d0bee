"""Which launch each piece of device work comes from, for a whole source at once, and what lies under a slice.

The launch of a device slice is, by the first of these rules that applies:

1. *flow*: the slice in which its launch arrow starts, of several the one with its own correlation id; not
   where calls of several processes have this id, as arrows of merged ranks are joined by the same numbers;
2. *correlation*: the runtime call with its correlation id, in the process that launches to its device, that
   starts last before it; of several one whose name says that it starts work;
3. *external id*: the op or annotation with its External id, chosen alike.

Correlation ids come again: counters wrap around, and files of several ranks are merged into one, each of
which counts from 1. Hence the last call *before* the work, and hence `launching_process`, for a device or,
where ranks had the same number for theirs, for each stream. Where a stream too holds work of several
processes, as many calls as pieces of work with an id are joined in turn. What stays doubtful (no call begins
before the work; two begin together; the process is a guess) is marked in `ambiguous`.

`launch_of` answers for one kernel by the same rules, without a look at all others.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..base.arrays import I64, U32, AnyArray, distinct, distinct_rows, merge, places_in, run_starts, sum_of
from ..base.cached_per_object import cached_per_object
from ..base.kineto import (
    ANNOTATIONS,
    DEVICE,
    GENERAL_FLOWS,
    LAUNCH_FLOWS,
    NOT_LAUNCHED,
    OPS,
    OWNER_FLOWS,
    RUNTIME,
    started_work,
)
from ..index.format import NONE, LaneRole, RowKind
from ..index.store import Index
from .flows import flows_in
from .lookup import category_mask, lanes_of, processes_of, promoted_of, row_starts
from .nearest import Candidates, in_turn, latest_before, launching_process, serves_several

VIA = ("", "flow", "correlation", "external id")
_CALLS = (VIA.index("flow"), VIA.index("correlation"))
"""The values of `via` with which a launch is a call: by an External id one knows the operator."""


@dataclass(frozen=True, eq=False)
class Launches:
    """All device work of a source, ascending by position, and the slice that launched each."""

    kernels: U32  # positions
    launch: U32  # positions; NONE where the trace does not say
    via: AnyArray  # u1, index in VIA
    ambiguous: AnyArray  # bool: another launch is as likely, or the launch begins after its work

    @cached_property
    def is_called(self) -> AnyArray:
        """Tell of each piece of work whether the call that launched it is known; bool."""
        called: AnyArray = (self.launch != NONE) & np.isin(self.via, _CALLS)
        return called

    @cached_property
    def by_launch(self) -> I64:
        """Indices in `kernels` whose launch is known, by (launch, kernel)."""
        known = np.flatnonzero(self.launch != NONE)
        ordered: I64 = known[np.argsort(self.launch[known], kind="stable")]
        return ordered

    @cached_property
    def starters(self) -> tuple[U32, I64]:
        """The slices that launched device work, ascending, and how many pieces of it each."""
        return np.unique(self.launch[self.by_launch], return_counts=True)

    def launch_of(self, position: int) -> tuple[int | None, str]:
        """Return the slice that launched this one and how that is known; (None, "") where nothing is."""
        at = int(np.searchsorted(self.kernels, np.uint32(position)))
        if at == len(self.kernels) or int(self.kernels[at]) != position or int(self.launch[at]) == NONE:
            return None, ""
        return int(self.launch[at]), VIA[int(self.via[at])]

    def calls_of(self, positions: AnyArray) -> I64:
        """Return the call that launched each of these slices, -1 where none is known."""
        at = self.rows_of(positions)
        known = np.flatnonzero((at >= 0) & np.append(self.is_called, False)[at])
        result = np.full(len(positions), -1, np.int64)
        result[known] = self.launch[at[known]]
        return result

    def launches_at(self, positions: AnyArray) -> U32:
        """Return the slice that launched each of these slices, NONE where that is not known."""
        return np.append(self.launch, np.uint32(NONE))[self.rows_of(positions)]

    def rows_of(self, positions: AnyArray) -> I64:
        """Return where each slice stands in `kernels`, -1 for what is no device work."""
        return places_in(self.kernels, positions)

    def between(self, low: int, high: int) -> I64:
        """Return the indices in `kernels` of what the slices at positions [low, high) launched."""
        launches = self.launch[self.by_launch]
        a, b = np.searchsorted(launches, np.array([low, high], np.uint32))
        return self.by_launch[a:b]


@dataclass(frozen=True, eq=False)
class Launched:
    """The device work launched under one slice. `kernels` by start; times are lane time in ns.

    `busy` is the time during which at least one of them runs, `gaps` the idle stretches between them.
    """

    kernels: U32  # positions
    launches: int  # from so many launches
    total: int  # sum of durations
    busy: int
    start: int
    end: int
    gaps: int
    longest_gap: int

    @property
    def idle(self) -> int:
        """The idle time between the first start and the last end."""
        return self.end - self.start - self.busy


@cached_per_object()
def launches_of(index: Index) -> Launches:
    """Return the launches of all device work of a source, by the rules at the top of this file; made once."""
    category = index.column("slices.category")
    is_runtime = category_mask(index, RUNTIME)
    is_host = is_runtime | category_mask(index, OPS | ANNOTATIONS)
    device = category_mask(index, DEVICE - NOT_LAUNCHED)[category]

    target, source = _launch_flows(index)
    # Launch flows tell device work apart where the category does not, but never make one of a host slice.
    on_device = ~is_host[category[target]]
    target, source = target[on_device], source[on_device]
    device[target] = True
    device &= ~category_mask(index, NOT_LAUNCHED)[category]
    kernels = np.flatnonzero(device).astype(np.uint32)
    launches = Launches(
        kernels,
        np.full(len(kernels), NONE, np.uint32),
        np.zeros(len(kernels), np.uint8),
        np.zeros(len(kernels), np.bool_),
    )
    if len(target):
        of = places_in(kernels, target)
        of, source = of[of >= 0], source[of >= 0]
        certain = ~np.isin(promoted_of(index, "correlation", kernels[of]), _shared_correlations(index))
        of, source = of[certain], source[certain]
        first = _of_same_correlation(index, kernels, of, source)
        launches.launch[of[first]], launches.via[of[first]] = source[first], VIA.index("flow")
    _join(index, launches, "correlation", is_runtime)
    _join(index, launches, "external id", category_mask(index, OPS | ANNOTATIONS))
    return launches


def launch_of(index: Index, kernel: int) -> tuple[int | None, str]:
    """Return the slice that launched a kernel and which of VIA tells so; (None, "") where nothing does."""
    correlation = index.promoted("correlation", kernel)
    if correlation:
        holders = index.promoted_positions("correlation", int(correlation))
        calls = holders[category_mask(index, RUNTIME)[index.column("slices.category")[holders]]]
        if len(distinct(processes_of(index, calls))) > 1:  # calls of several processes have this id
            return launches_of(index).launch_of(kernel)
    sources = launch_flows_into(index, kernel)
    if sources:
        same = [p for p in sources if correlation and index.promoted("correlation", p) == correlation]
        return (same or sources)[0], "flow"
    hosts: tuple[tuple[str, Container[str]], ...]
    hosts = (("correlation", RUNTIME), ("external id", OPS | ANNOTATIONS))
    for via, on_host in hosts:
        key = via.replace(" ", "_")
        number = index.promoted(key, kernel)
        if not number:  # 0 is what devices write for "none"
            continue
        holders = index.promoted_positions(key, int(number))
        may_call = category_mask(index, on_host)[index.column("slices.category")[holders]]
        calls = holders[may_call & (holders != kernel)]
        if via == "correlation":
            of_number: I64 = np.full(len(calls), int(number), np.int64)
            calls = calls[_may_start(index, calls, of_number, of_number)]
        if len(calls) and len(set(processes_of(index, calls).tolist())) > 1:
            # Which process launches to this device is told by all of its work.
            return launches_of(index).launch_of(kernel)
        if len(calls):
            starts = index.column("slices.start")[calls]
            before = np.flatnonzero(starts <= index.start(kernel))
            chosen = before[starts[before] == starts[before].max()] if len(before) else [starts.argmin()]
            return int(calls[chosen[0]]), via
    return None, ""


def launch_flows_into(index: Index, position: int) -> list[int]:
    """Return the slices in which the launch arrows that end in a slice start."""
    return [
        flow.source_position
        for flow in flows_in(index, position, limit=16)
        if flow.source_position is not None
        and flow.source_position != position
        and (
            flow.category in LAUNCH_FLOWS
            or (flow.category in GENERAL_FLOWS and _to_device(index, flow.source_position, position))
        )
    ]


def _to_device(index: Index, source: int, target: int) -> bool:
    """Tell whether an arrow leads from a lane that is no device's to one that is."""
    ends = np.array([source, target], np.uint32)
    from_device, to_device = (index.lanes["role"][lanes_of(index, ends)] == LaneRole.DEVICE).tolist()
    return bool(to_device and not from_device)


def kernels_under(index: Index, launches: Launches, position: int) -> Launched:
    """Return all device work whose launch begins within a slice's time on its lane (or is the slice)."""
    if not len(launches.kernels):  # or every slice of a deep lane would be looked for in all of its rows
        return _summed(index, launches.kernels, 0)
    row = index.rows[index.row_of(position)]
    lane = index.lanes[int(row["lane"])]
    start, end = index.start(position), index.end(position)
    kernels = [launches.between(position, position + 1)]
    for number in range(int(lane["first_row"]), int(lane["first_row"]) + int(lane["rows"])):
        beneath = index.rows[number]
        if int(beneath["kind"]) == RowKind.SLICES and int(beneath["count"]):
            low, high = np.searchsorted(row_starts(index, number), np.array([start, end], np.int64))
            kernels.append(
                launches.between(int(beneath["first"]) + int(low), int(beneath["first"]) + int(high))
            )
    at = distinct(np.concatenate(kernels))
    from_launch = launches.launch[at].astype(np.int64)
    around = np.isin(from_launch, _outside(index, position, distinct(from_launch), start, end))
    at, from_launch = at[~around], from_launch[~around]
    return _summed(index, launches.kernels[at], len(distinct(from_launch)))


def _outside(index: Index, position: int, launches: I64, start: int, end: int) -> I64:
    """Return those of the launches that begin with the slice but reach beyond it: they lie around it."""
    begins = index.column("slices.start")[launches] == start
    longer = index.column("slices.start")[launches] + index.duration(launches) > end
    outside: I64 = launches[begins & longer & (launches != position)]
    return outside


def _summed(index: Index, kernels: U32, launches: int) -> Launched:
    starts: I64 = index.column("slices.start")[kernels].astype(np.int64)
    order = np.lexsort((kernels, starts))
    kernels, starts = kernels[order], starts[order]
    durations = index.duration(kernels)
    if not len(kernels):
        return Launched(kernels, 0, 0, 0, 0, 0, 0, 0)
    busy = merge(starts, starts + durations)
    idle = busy.starts[1:] - busy.ends[:-1]
    return Launched(
        kernels,
        launches,
        sum_of(durations),
        busy.length,
        int(starts[0]),
        int((starts + durations).max()),
        int(np.count_nonzero(idle)),
        int(idle.max()) if len(idle) else 0,
    )


def _launch_flows(index: Index) -> tuple[U32, U32]:
    """Return (target, source) of all launch flows whose ends lie in two slices, in order of target."""
    order = index.column("flows.by_target")
    target, source = index.column("flows.target")[order], index.column("flows.source")[order]
    category = index.column("flows.category")[order]
    usable = category_mask(index, LAUNCH_FLOWS)[category]
    sound = (target != NONE) & (source != NONE) & (target != source)
    general = np.flatnonzero(category_mask(index, GENERAL_FLOWS)[category] & sound)
    if len(general):
        roles = index.lanes["role"]
        from_device, to_device = (
            roles[lanes_of(index, ends[general])] == LaneRole.DEVICE for ends in (source, target)
        )
        usable[general] = to_device & ~from_device
    usable &= sound
    return target[usable], source[usable]


def operators_by_arrow(index: Index, work: AnyArray) -> I64:
    """Return the operator from which an arrow says that a piece of device work is done for it (OWNER_FLOWS),
    by position; -1 where none does. `work` are positions, ascending.
    """
    result = np.full(len(work), -1, np.int64)
    mask = category_mask(index, OWNER_FLOWS)
    if not mask.any():
        return result
    order = index.column("flows.by_target")
    target, source = index.column("flows.target")[order], index.column("flows.source")[order]
    usable = mask[index.column("flows.category")[order]] & (target != NONE) & (source != NONE)
    of, source = places_in(work, target[usable]), source[usable].astype(np.int64)
    result[of[of >= 0]] = source[of >= 0]
    return result


def _of_same_correlation(index: Index, kernels: U32, of: I64, sources: U32) -> I64:
    """Return which flow of each kernel counts: the first whose source has its correlation, else the first.

    `of` are indices in `kernels`, ascending, flows of one kernel in their order.
    """
    first = run_starts(of)
    if len(first) == len(of):
        return first
    several = np.flatnonzero(np.isin(of, of[1:][of[1:] == of[:-1]]))
    mine, theirs = (promoted_of(index, "correlation", at) for at in (kernels[of[several]], sources[several]))
    same = np.zeros(len(of), np.bool_)
    same[several] = (mine == theirs) & (theirs != 0)
    order = np.lexsort((~same, of))
    return order[run_starts(of[order])]


def _join(index: Index, launches: Launches, via: str, on_host: AnyArray) -> None:
    """Give work that has no launch yet the nearest host slice before it with the same id; see `Launches`.

    `on_host` says which categories (by number) a launch may have. The id is the promoted argument that
    `via` names; 0 is what devices write for "none".
    """
    key = via.replace(" ", "_")
    holders = index.column(f"promoted.{key}.position")
    open_ = np.flatnonzero(launches.launch == NONE)
    if not len(holders) or not len(open_):
        return
    ids = promoted_of(index, key, launches.kernels[open_])
    open_, ids = open_[ids != 0], ids[ids != 0]
    calls = np.flatnonzero(on_host[index.column("slices.category")[holders]])
    if not len(open_) or not len(calls):
        return
    if via == "correlation":
        values = index.column(f"promoted.{key}.value")[calls].astype(np.int64)
        calls = calls[_may_start(index, holders[calls], values, ids)]
    positions = holders[calls]
    starts = index.column("slices.start")
    candidates = Candidates(
        index.column(f"promoted.{key}.value")[calls].astype(np.int64),
        starts[positions].astype(np.int64),
        processes_of(index, positions),
    )
    kernels = launches.kernels[open_]
    times: I64 = starts[kernels].astype(np.int64)
    processes = _host_processes(index, launches, candidates, positions, kernels, ids, times)
    nearest, ambiguous = latest_before(candidates, ids, times, processes)
    if processes is not None and (processes < 0).any():
        unknown = np.flatnonzero((processes < 0) & ambiguous)
        turn = in_turn(candidates, ids[unknown], times[unknown])
        nearest[unknown] = np.where(turn >= 0, turn, nearest[unknown])
    hit = nearest >= 0
    launches.launch[open_[hit]] = positions[nearest[hit]]
    launches.via[open_[hit]] = VIA.index(via)
    launches.ambiguous[open_[hit]] = ambiguous[hit]


def _may_start(index: Index, calls: AnyArray, values: I64, ids: I64) -> AnyArray:
    """Return which calls may have started work of these ids: of several with the same id (`values`) those
    whose name says that they start some, `hipMemsetAsync` rather than `hipArray3DCreate` of the same moment.
    """
    names = index.column("slices.name")[calls]
    starts_work = np.zeros(int(names.max(initial=0)) + 1, np.bool_)
    numbers = np.flatnonzero(np.bincount(names))
    starts_work[numbers] = [started_work(text) is not None for text in index.strings(numbers)]
    starts = starts_work[names]
    others = np.flatnonzero(~starts)
    others = others[np.isin(values[others], ids)]
    keep = np.ones(len(calls), np.bool_)
    keep[others[np.isin(values[others], values[starts])]] = False
    return keep


def _host_processes(
    index: Index,
    launches: Launches,
    candidates: Candidates,
    positions: U32,
    kernels: U32,
    ids: I64,
    times: I64,
) -> I64 | None:
    """Return which process launches to the device of each kernel (-1: not known); None where ids do not come
    again in several processes, so that nothing hangs on it.
    """
    if not candidates.shared_between_processes:
        return None
    device = processes_of(index, kernels)
    linked = np.flatnonzero(launches.via == VIA.index("flow"))
    by_flow: Mapping[int, I64] = {}
    if len(linked):
        targets = processes_of(index, launches.kernels[linked])
        sources = processes_of(index, launches.launch[linked])
        by_flow = {int(d): sources[targets == d] for d in distinct(targets)}
    ordinals = index.column("slices.ordinal")
    result = np.full(len(kernels), -1, np.int64)

    def process_of(mine: I64, arrows: I64 | None = None) -> tuple[int, bool]:
        work = ids[mine], times[mine], ordinals[kernels[mine]]
        process = launching_process(candidates, ordinals[positions], *work, arrows)
        guesses = distinct(candidates.processes).tolist() if process < 0 else [process]
        return process, all(serves_several(candidates, guess, ids[mine]) for guess in guesses)

    for one in distinct(device).tolist():
        mine = np.flatnonzero(device == one)
        result[mine], several = process_of(mine, by_flow.get(one))
        if several:  # each stream may still be of one process
            lanes = lanes_of(index, kernels[mine])
            for lane in distinct(lanes).tolist():
                on_lane = mine[lanes == lane]
                process, several = process_of(on_lane)
                result[on_lane] = -1 if several else process
    return result


def _shared_correlations(index: Index) -> I64:
    """Return the correlation ids that runtime calls of several processes have, ascending."""
    none = np.empty(0, np.int64)
    if len(_processes_with(index, RUNTIME)) < 2:
        return none
    holders = index.column("promoted.correlation.position")
    calls = np.flatnonzero(category_mask(index, RUNTIME)[index.column("slices.category")[holders]])
    ids = index.column("promoted.correlation.value")[calls].astype(np.int64)
    ids, _ = distinct_rows(ids, processes_of(index, holders[calls]))
    repeated = ids[1:] == ids[:-1]
    return distinct(ids[1:][repeated & (ids[1:] != 0)])


def _processes_with(index: Index, categories: Container[str]) -> set[int]:
    numbers = np.flatnonzero(category_mask(index, categories))
    kinds = index.column("row_categories")
    processes = set()
    for row in index.rows[index.rows["kind"] == RowKind.SLICES]:
        first = int(row["categories"])
        if np.isin(kinds[first : first + int(row["category_count"])], numbers).any():
            processes.add(int(index.lanes[int(row["lane"])]["process"]))
    return processes
