"""Flow ends to arrows: which slice an end belongs to, and which start an end belongs to.

Ends with one (category, id) make a group; each step and end follows the latest start or step before it, by
time and then file order. Writers whose device clock is off put ends before every start of their id: those
follow the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..base.ids import NONE
from ..ingest.columns import I64, U32, AnyArray, EventFlag, IdKind, Table
from .contents import Slices
from .gather import Gathered
from .match import sorted_groups
from .merge import Merged
from .order import grouped_by, order_by, run_starts
from .scratch import Scratch

COLUMNS = ("phase", "flags", "ordinal", "category", "id_kind", "id_value", "start")
SHARE = 1 << 19
"""So many flow events are paired at once."""
_MIX = np.uint64(0x9E37_79B9_7F4A_7C15)
"""An odd number of mixed bits (the golden ratio's): products spread over all values."""
_S, _F = ord("s"), ord("f")


class Lookup:
    """A lifted integer argument by event ordinal, gathered from all parts when first asked for."""

    def __init__(self, merged: Merged, key: str, scratch: Scratch) -> None:
        """`scratch`: where what is gathered may lie."""
        self._merged, self._key, self._scratch = merged, key, scratch

    @cached_property
    def _known(self) -> tuple[U32, I64]:
        """All ordinals, ascending, and their values."""
        merged, scratch = self._merged, self._scratch
        pieces = [
            (part.lifted[self._key], first)
            for part, first in zip(merged.parts, merged.first_ordinal)
            if self._key in part.lifted
        ]
        size = sum(len(column.ordinals) for column, _ in pieces)
        ordinals, values = scratch.array(size, "u4"), scratch.array(size, "i8")
        at = 0
        for column, first in pieces:
            order = order_by(column.ordinals)
            np.add(column.ordinals.take(order), np.uint32(first), out=ordinals[at : at + len(order)])
            values[at : at + len(order)] = column.values.take(order)
            at += len(order)
        merged.let_go_all()
        scratch.let_go()
        return ordinals, values

    def find(self, ordinals: U32) -> tuple[AnyArray, I64]:
        """Return (which of these events have the argument, its values there; elsewhere anything)."""
        known, values = self._known
        if not len(known):
            return np.zeros(len(ordinals), np.bool_), np.zeros(len(ordinals), np.int64)
        place = np.minimum(np.searchsorted(known, ordinals), len(known) - 1)
        return known[place] == ordinals, values[place]


@dataclass(frozen=True)
class LaneFlows:
    """The flow events of one lane, and the positions of the slices that they belong to, to be filled in."""

    events: Table
    bound: U32
    correlation: Lookup


@dataclass(frozen=True)
class FlowEnds:
    """All flow events, and the positions of the slices that they belong to: NONE as long as none is known."""

    events: Gathered
    bound: U32
    correlation: Lookup

    @classmethod
    def of(cls, events: Gathered, merged: Merged, scratch: Scratch) -> FlowEnds:
        """Return flow events that belong to nothing yet."""
        bound = scratch.array(events.bounds[-1], "u4", NONE)
        return cls(events, bound, Lookup(merged, "correlation", scratch))

    def in_lane(self, lane: int) -> LaneFlows | None:
        """Return those of one lane, None if there are none."""
        a, b = self.events.bounds[lane], self.events.bounds[lane + 1]
        return LaneFlows(self.events.of(lane), self.bound[a:b], self.correlation) if b > a else None

    def bound_in(self, lanes: Sequence[int]) -> dict[int, U32]:
        """Return what is filled in for each of some lanes."""
        bounds = self.events.bounds
        return {lane: self.bound[bounds[lane] : bounds[lane + 1]] for lane in lanes}

    def take(self, found: Mapping[int, U32], first: int) -> None:
        """Fill in what was found by lane, where position 0 is position `first`."""
        for lane, bound in found.items():
            a = self.events.bounds[lane]
            self.bound[a : a + len(bound)] = np.where(bound == NONE, bound, bound + np.uint32(first))


def bind(slices: Slices, parent: AnyArray, events: Mapping[str, AnyArray], correlation: Lookup) -> I64:
    """Return for each flow event of a lane the index of its slice, -1 if it lies in none.

    Starts, steps and ends with "bp": "e" belong to the deepest slice that contains the stamp, other ends to
    the next that begins at or after it. Where several begin at the very stamp, the one whose correlation is
    the flow's id comes first, then the nearest before it in the file.
    """
    n, time = len(slices.start), events["start"]
    if not n:
        return np.full(len(time), -1, np.int64)
    first = np.searchsorted(slices.start, time, side="left")
    met = slices.start.take(first, mode="clip") == time
    several = np.flatnonzero((slices.start.take(first + 1, mode="clip") == time) & (first + 1 < n))
    last = first + met
    last[several] = np.searchsorted(slices.start, time[several], side="right")
    found = last - 1
    climbing = np.flatnonzero((found >= 0) & ~met)
    while len(climbing):
        at = found[climbing]
        climbing = climbing[slices.start[at] + slices.duration[at] <= time[climbing]]
        found[climbing] = parent[found[climbing]]
        climbing = climbing[found[climbing] >= 0]
    forward = (events["phase"] == _F) & ((events["flags"] & EventFlag.BIND_ENCLOSING) == 0)
    found = np.where(forward, np.where(first < n, first, -1), found)
    if len(several):
        _choose(slices, found, several, first, last, events, correlation)
    return found


def _choose(
    slices: Slices,
    found: I64,
    several: I64,
    first: I64,
    last: I64,
    events: Mapping[str, AnyArray],
    correlation: Lookup,
) -> None:
    """Decide between slices that begin at the stamp of a flow event; writes into `found`."""
    begin, inverse = np.unique(first[several], return_inverse=True)
    size = np.zeros(len(begin), np.int64)
    size[inverse] = (last - first)[several]
    stamp = np.repeat(np.arange(len(begin)), size)
    some = np.arange(len(stamp)) + np.repeat(begin - np.cumsum(size) + size, size)
    ordinal, flow_ordinal = slices.ordinal[some], events["ordinal"][several]
    nearest, before = _nearest(stamp, ordinal, inverse, flow_ordinal)
    chosen = np.where(before, some[nearest], found[several])
    has, value = correlation.find(ordinal)
    if bool(has.any()):
        values = np.unique(value[has])
        flow_id = events["id_value"][several]
        rank = np.minimum(np.searchsorted(values, flow_id), len(values) - 1)
        known = (events["id_kind"][several] == IdKind.INTEGER) & (values[rank] == flow_id)
        key = stamp[has] * len(values) + np.searchsorted(values, value[has])
        keys, dense = np.unique(key, return_inverse=True)
        flow_key = inverse * len(values) + rank
        place = np.minimum(np.searchsorted(keys, flow_key), len(keys) - 1)
        known &= keys[place] == flow_key
        nearest, _ = _nearest(dense, ordinal[has], place, flow_ordinal)
        chosen[known] = some[np.flatnonzero(has)[nearest]][known]
    found[several] = chosen


def _nearest(group: I64, ordinal: U32, of: I64, before: U32) -> tuple[I64, AnyArray]:
    """Return for each query (group `of`, ordinal `before`) the entry of its group with the greatest smaller
    ordinal, or else the group's first; and whether it was a smaller one. Every group asked for has an
    entry.
    """
    key = (group.astype(np.int64) << 32) | ordinal
    order = np.argsort(key)
    key = key[order]
    place = np.searchsorted(key, (of.astype(np.int64) << 32) | before) - 1
    smaller = (place >= 0) & (key[np.maximum(place, 0)] >> 32 == of)
    place += ~smaller
    return order[np.minimum(place, len(order) - 1)], smaller


@dataclass(frozen=True)
class Arrows:
    """Pairs of flow events, as indices into the table that was given."""

    source: U32
    target: U32
    ledger: dict[int, dict[str, int]]  # by category


def pair(events: Mapping[str, AnyArray], pid: U32) -> Arrows:
    """Pair starts, steps and ends of one (category, id); ids local to a process also by pid."""
    sources, targets = [np.zeros(0, np.uint32)], [np.zeros(0, np.uint32)]
    ledger: dict[int, dict[str, int]] = {}
    for few in _shares(events["id_value"]):
        family = events["category"][few].astype(np.int64) * 8 + events["id_kind"][few]
        for number in np.flatnonzero(np.bincount(family)).tolist():
            category, kind = divmod(number, 8)
            some = few.compress(family == number)
            order, first = _grouped(events, pid, some, kind == IdKind.LOCAL)
            source, target, counts = _arrows(events["phase"].take(order), first)
            sources.append(order.take(source).astype(np.uint32))
            targets.append(order.take(target).astype(np.uint32))
            books = ledger.setdefault(category, dict.fromkeys(counts, 0))
            for key, count in counts.items():
                books[key] += count
    return Arrows(np.concatenate(sources), np.concatenate(targets), ledger)


def _shares(ids: I64) -> Iterator[I64]:
    """Yield the events in shares of about SHARE, those of one id together."""
    count = -(-len(ids) // SHARE)
    if count < 2:
        yield np.arange(len(ids))
        return
    share = np.empty(len(ids), np.uint8)
    for at in range(0, len(ids), SHARE):
        mixed = ids[at : at + SHARE].astype(np.uint64) * _MIX
        share[at : at + SHARE] = ((mixed >> np.uint64(40)) * np.uint64(min(count, 256))) >> np.uint64(24)
    for number in range(min(count, 256)):
        yield np.flatnonzero(share == number)


def _grouped(events: Mapping[str, AnyArray], pid: U32, some: I64, local: bool) -> tuple[I64, I64]:
    """Return these events by (id, start, ordinal), and where in that order the events of each id begin."""
    value, start, ordinal = (events[key] for key in ("id_value", "start", "ordinal"))
    if not local:
        return grouped_by(some, value, start, ordinal)
    order, group = sorted_groups((pid[some], value[some]), (start[some], ordinal[some]))
    return some[order], run_starts(group)


def _arrows(phase: AnyArray, first: I64) -> tuple[I64, I64, dict[str, int]]:
    """Return (source, target, counts) of events that stand by id and time; `first`: where each id's begin."""
    n = len(phase)
    size = np.diff(np.append(first, n))
    is_start, is_end = phase == _S, phase == _F
    latest = np.arange(n)
    latest[is_end] = -1
    np.maximum.accumulate(latest, out=latest)
    before = np.concatenate(([-1], latest[:-1]))
    starts = np.flatnonzero(is_start)
    starts_before, ends_before = (np.append(0, np.cumsum(which)) for which in (is_start, is_end))
    per_group = starts_before[first + size] - starts_before[first]
    ends_per_group = ends_before[first + size] - ends_before[first]
    first_start = np.append(starts, -1)[starts_before[first]]
    first_start[per_group == 0] = -1
    source = np.where(before >= np.repeat(first, size), before, np.repeat(first_start, size))
    target = np.flatnonzero(~is_start & (source >= 0))
    paired = int(ends_per_group[per_group > 0].sum())
    counts = {
        "starts": len(starts),
        "steps": n - len(starts) - int(ends_before[-1]),
        "ends": int(ends_before[-1]),
        "paired": paired,
        "orphan_starts": int(per_group[ends_per_group == 0].sum()),
        "orphan_ends": int(ends_before[-1]) - paired,
    }
    return source.take(target), target, counts
