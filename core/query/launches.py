"""Which launch each piece of device work comes from, for a whole source at once, and what lies under a slice.

`launch_of` in chain.py answers for one kernel; this is the same rule over columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..base.intervals import merge
from ..index.format import NONE, RowKind
from ..index.store import Index
from ..ingest.columns import I64, U32, AnyArray
from .chain import ANNOTATIONS, DEVICE, LAUNCH_FLOWS, NOT_LAUNCHED, OPS, RUNTIME
from .lookup import row_starts

VIA = ("", "flow", "correlation", "external id")


@dataclass(frozen=True)
class Launches:
    """All device work of a source, ascending by position, and the slice that launched each."""

    kernels: U32  # positions
    launch: U32  # positions; NONE where the trace does not say
    via: AnyArray  # u1, index in VIA

    @cached_property
    def by_launch(self) -> I64:
        """Indices in `kernels` whose launch is known, by (launch, kernel)."""
        known = np.flatnonzero(self.launch != NONE)
        ordered: I64 = known[np.argsort(self.launch[known], kind="stable")]
        return ordered

    def launch_of(self, position: int) -> tuple[int | None, str]:
        """Return the slice that launched this one and how that is known; (None, "") where nothing is."""
        at = int(np.searchsorted(self.kernels, np.uint32(position)))
        if at == len(self.kernels) or int(self.kernels[at]) != position or int(self.launch[at]) == NONE:
            return None, ""
        return int(self.launch[at]), VIA[int(self.via[at])]

    def between(self, low: int, high: int) -> I64:
        """Return the indices in `kernels` of what the slices at positions [low, high) launched."""
        launches = self.launch[self.by_launch]
        a, b = np.searchsorted(launches, np.array([low, high], np.uint32))
        return self.by_launch[a:b]


@dataclass(frozen=True)
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


def launches_of(index: Index) -> Launches:
    """Return the launches of all device work: by flow, else by correlation, else by External id."""
    category = index.column("slices.category")
    is_device = _mask(index, DEVICE - NOT_LAUNCHED)
    is_runtime = _mask(index, RUNTIME)
    is_host = is_runtime | _mask(index, OPS | ANNOTATIONS)
    device = is_device[category]

    number, flow_kernel, flow_launch = _flow_pairs(index)
    hosted = is_host[category[flow_kernel]] if len(flow_kernel) else np.zeros(0, np.bool_)
    # Launch flows tell device work apart where the category does not, but never make one of a host slice.
    number, flow_kernel, flow_launch = number[~hosted], flow_kernel[~hosted], flow_launch[~hosted]
    mask = device.copy()
    mask[flow_kernel] = True
    mask &= ~_mask(index, NOT_LAUNCHED)[category]
    kernels = np.flatnonzero(mask).astype(np.uint32)
    launch = np.full(len(kernels), NONE, np.uint32)
    via = np.zeros(len(kernels), np.uint8)

    if len(number):
        of = np.searchsorted(kernels, flow_kernel)
        inside = (of < len(kernels)) & (kernels[np.minimum(of, max(0, len(kernels) - 1))] == flow_kernel)
        of, flow_launch = of[inside], flow_launch[inside]
        first = _of_same_correlation(index, kernels, of, flow_launch)
        launch[of[first]], via[of[first]] = flow_launch[first], 1

    _join(index, "correlation", is_runtime, kernels, launch, via, 2)
    _join(index, "external_id", _mask(index, OPS | ANNOTATIONS), kernels, launch, via, 3)
    return Launches(kernels, launch, via)


def kernels_under(index: Index, launches: Launches, position: int) -> Launched:
    """Return all device work whose launch begins within a slice's time on its lane (or is the slice)."""
    row = index.rows[index.row_of(position)]
    lane = index.lanes[int(row["lane"])]
    start, end = index.start(position), index.end(position)
    found = [launches.between(position, position + 1)]
    for number in range(int(lane["first_row"]), int(lane["first_row"]) + int(lane["rows"])):
        beneath = index.rows[number]
        if int(beneath["kind"]) == RowKind.SLICES and int(beneath["count"]):
            low, high = np.searchsorted(row_starts(index, number), np.array([start, end], np.int64))
            found.append(
                launches.between(int(beneath["first"]) + int(low), int(beneath["first"]) + int(high))
            )
    at = np.unique(np.concatenate(found))
    from_launch = launches.launch[at].astype(np.int64)
    around = np.isin(from_launch, _outside(index, position, np.unique(from_launch), start, end))
    at, from_launch = at[~around], from_launch[~around]
    return _summed(index, launches.kernels[at], len(np.unique(from_launch)))


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
        int(durations.sum()),
        busy.length,
        int(starts[0]),
        int((starts + durations).max()),
        int(np.count_nonzero(idle)),
        int(idle.max()) if len(idle) else 0,
    )


def _flow_pairs(index: Index) -> tuple[I64, U32, U32]:
    """Return (place in target order, target, source) of all launch flows whose ends lie in slices."""
    order = index.column("flows.by_target")
    target, source = index.column("flows.target")[order], index.column("flows.source")[order]
    usable = _mask(index, LAUNCH_FLOWS)[index.column("flows.category")[order]]
    usable &= (target != NONE) & (source != NONE) & (target != source)
    number = np.flatnonzero(usable)
    return number, target[number], source[number]


def _of_same_correlation(index: Index, kernels: U32, of: I64, sources: U32) -> I64:
    """Return which flow of each kernel counts: the first whose source has its correlation, else the first.

    `of` are indices in `kernels`, ascending, flows of one kernel in their order.
    """
    first = _firsts(of)
    if len(first) == len(of):
        return first
    several = np.flatnonzero(np.isin(of, of[1:][of[1:] == of[:-1]]))
    mine, has_mine = _values(index, "correlation", kernels[of[several]])
    theirs, has_theirs = _values(index, "correlation", sources[several])
    same = np.zeros(len(of), np.bool_)
    same[several] = has_mine & has_theirs & (mine == theirs) & (theirs != 0)
    order = np.lexsort((~same, of))
    return order[_firsts(of[order])]


def _join(
    index: Index, key: str, wanted: AnyArray, kernels: U32, launch: U32, via: AnyArray, code: int
) -> None:
    """Give kernels that have no launch yet the first slice of the wanted categories with their id."""
    positions = index.column(f"lifted.{key}.position")
    open_ = np.flatnonzero(launch == NONE)
    if not len(positions) or not len(open_):
        return
    values, has = _values(index, key, kernels[open_])
    open_, values = open_[has & (values != 0)], values[has & (values != 0)]
    if not len(open_):
        return
    hosts = np.flatnonzero(wanted[index.column("slices.category")[positions]])
    if not len(hosts):
        return
    ids = index.column(f"lifted.{key}.value")[hosts].astype(np.int64)
    order = np.argsort(ids, kind="stable")  # positions ascend: the first of an id is the lowest
    ids, hosts = ids[order], hosts[order]
    place = np.minimum(np.searchsorted(ids, values), len(ids) - 1)
    take = ids[place] == values
    launch[open_[take]], via[open_[take]] = positions[hosts[place[take]]], code


def _values(index: Index, key: str, positions: U32) -> tuple[I64, AnyArray]:
    """Return (the lifted integer of each slice, whether it has one)."""
    known = index.column(f"lifted.{key}.position")
    if not len(known) or not len(positions):
        return np.zeros(len(positions), np.int64), np.zeros(len(positions), np.bool_)
    place = np.minimum(np.searchsorted(known, positions), len(known) - 1)
    return index.column(f"lifted.{key}.value")[place].astype(np.int64), known[place] == positions


def _mask(index: Index, names: frozenset[str]) -> AnyArray:
    return np.array([category in names for category in index.categories], np.bool_)


def _firsts(groups: I64) -> I64:
    """Return where each run of equal values begins."""
    if not len(groups):
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.concatenate(([True], groups[1:] != groups[:-1])))
