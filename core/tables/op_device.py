"""Which op each piece of device work belongs to, and how much device time that makes of each op."""

from __future__ import annotations

import numpy as np

from ..base.arrays import I64, AnyArray
from ..index.format import NONE
from ..index.store import Index
from ..query.launches import Launches
from .devices import WORK
from .flex import flex_work, is_flex
from .groups import category_mask
from .op_events import ANNOTATION, I32, OpEvents, climbed, joined, promoted_of


def work_positions(index: Index) -> I64:
    """Return the positions of all kernels, copies and memsets."""
    if is_flex(index):
        return np.flatnonzero(np.isin(index.column("slices.name"), flex_work(index))).astype(np.int64)
    return np.flatnonzero(category_mask(index, WORK)[index.column("slices.category")]).astype(np.int64)


def op_device_times(events: OpEvents, launches: Launches, work: I64) -> tuple[I64, I64]:
    """Return (device total, self device) in ns per event: of what it and its children launched.

    Work belongs to the op of its External id, else to the innermost op or annotation around its launch.
    """
    alive, parent = events.merged
    own, total = np.zeros(len(events), np.int64), np.zeros(len(events), np.int64)
    target = ops_of(events, launches, work)
    known = np.flatnonzero(target >= 0)
    at, ns = target[known], events.index.duration(work[known])
    lost = ~alive[at]
    at[lost] = parent[at[lost]]
    np.add.at(own, at, ns)
    at = np.flatnonzero(own)
    ns = own[at]
    while len(at):
        np.add.at(total, at, ns)
        at = parent[at].astype(np.int64)
        at, ns = at[at >= 0], ns[at >= 0]
    return total, own


def ops_of(events: OpEvents, launches: Launches, work: I64) -> I64:
    """Return the event number of the op that each piece of device work belongs to, -1 where none is told."""
    index = events.index
    ops, ids = events.ids
    correlation = promoted_of(index, "correlation", work)
    external = events.external_ids(work)
    # Some writers repeat the correlation under this key: then it names no op.
    result = joined(ids, ops, np.where(external == correlation, 0, external))
    rest = np.flatnonzero(result < 0)
    if not len(rest):
        return result
    calls = launches.calls_of(work[rest])
    rest, calls = rest[calls >= 0], calls[calls >= 0]
    own = events.external_ids(calls)
    by_id = joined(ids, ops, np.where(own == promoted_of(index, "correlation", calls), 0, own))
    result[rest] = np.where(by_id >= 0, by_id, _around(events, calls))
    return result


def _around(events: OpEvents, positions: I64) -> I64:
    """Return the innermost op or annotation around each slice, -1 where there is none."""
    if not len(positions):
        return np.empty(0, np.int64)
    above = events.index.column("slices.parent")
    event = events.where[positions].astype(np.int64)
    current: AnyArray = positions.astype(np.uint32)
    todo = np.flatnonzero(event < 0)
    while len(todo):  # calls that are no events themselves
        current[todo] = above[current[todo]]
        todo = todo[current[todo] != NONE]
        event[todo] = events.where[current[todo]]
        todo = todo[event[todo] < 0]
    outer: I32 = climbed(events.parent, events.kind > ANNOTATION)
    known = event >= 0
    inner = np.flatnonzero(known)
    no_op = inner[events.kind[event[inner]] > ANNOTATION]
    event[no_op] = outer[event[no_op]]
    return event
