"""Flow ends to arrows: which slice an end belongs to, and which start an end belongs to.

Ends with one (category, id) make a group; each step and end follows the latest start or step before it, by
time and then file order. Writers whose device clock is off put ends before every start of their id: those
follow the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..base.ids import NONE
from ..ingest.columns import I64, U32, AnyArray, EventFlag, IdKind
from .contents import Slices
from .match import sorted_groups
from .merge import Merged
from .order import group_numbers, order_by, run_starts
from .scratch import Scratch

COLUMNS = ("phase", "flags", "ordinal", "category", "id_kind", "id_value", "start")
SHARE = 1 << 19
"""So many flow events are paired at once."""
_MIX = np.uint64(0x9E37_79B9_7F4A_7C15)
"""An odd number of mixed bits (the golden ratio's): products spread over all values."""
_S, _T, _F = ord("s"), ord("t"), ord("f")


@dataclass(frozen=True)
class Lookup:
    """A lifted integer argument by event ordinal."""

    ordinals: U32  # ascending
    values: I64

    @classmethod
    def of(cls, merged: Merged, key: str, scratch: Scratch) -> Lookup:
        """Gather a lifted integer argument from all parts."""
        pieces = [
            (part.lifted[key], first)
            for part, first in zip(merged.parts, merged.first_ordinal)
            if key in part.lifted
        ]
        size = sum(len(column.ordinals) for column, _ in pieces)
        ordinals, values = scratch.array(size, "u4"), scratch.array(size, "i8")
        at = 0
        for column, first in pieces:
            order = np.argsort(column.ordinals, kind="stable")
            ordinals[at : at + len(order)] = column.ordinals[order] + np.uint32(first)
            values[at : at + len(order)] = column.values[order]
            at += len(order)
        for part in range(len(merged.parts)):
            merged.let_go(part)
        scratch.let_go()
        return cls(ordinals, values)

    def find(self, ordinals: U32) -> tuple[AnyArray, I64]:
        """Return (which of these events have the argument, its values there; elsewhere anything)."""
        if not len(self.ordinals):
            return np.zeros(len(ordinals), np.bool_), np.zeros(len(ordinals), np.int64)
        place = np.minimum(np.searchsorted(self.ordinals, ordinals), len(self.ordinals) - 1)
        return self.ordinals[place] == ordinals, self.values[place]


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
    last = np.searchsorted(slices.start, time, side="right")
    found = last - 1
    climbing = np.flatnonzero((found >= 0) & (first == last))
    while len(climbing):
        at = found[climbing]
        climbing = climbing[slices.start[at] + slices.duration[at] <= time[climbing]]
        found[climbing] = parent[found[climbing]]
        climbing = climbing[found[climbing] >= 0]
    forward = (events["phase"] == _F) & ((events["flags"] & EventFlag.BIND_ENCLOSING) == 0)
    found = np.where(forward, np.where(first < n, first, -1), found)
    several = np.flatnonzero(last - first > 1)
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
        for number in np.unique(family).tolist():
            category, kind = divmod(number, 8)
            some = few[family == number]
            order, group = _grouped(events, pid, some, kind == IdKind.LOCAL)
            source, target, counts = _arrows(events["phase"][order], group)
            sources.append(order[source].astype(np.uint32))
            targets.append(order[target].astype(np.uint32))
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
        share[at : at + SHARE] = (mixed >> np.uint64(40)) % np.uint64(min(count, 256))
    for number in range(min(count, 256)):
        yield np.flatnonzero(share == number)


def _grouped(events: Mapping[str, AnyArray], pid: U32, some: I64, local: bool) -> tuple[I64, I64]:
    """Return these events by (id, start, ordinal), and per event of that order the number of its id."""
    value, start, ordinal = (events[key][some] for key in ("id_value", "start", "ordinal"))
    if local:
        order, group = sorted_groups((pid[some], value), (start, ordinal))
        return some[order], group
    order = order_by(value, start, ordinal)
    return some[order], group_numbers(value[order])


def _arrows(phase: AnyArray, group: I64) -> tuple[I64, I64, dict[str, int]]:
    """Return (source, target, counts) of events that stand by group and time."""
    n = len(phase)
    index = np.arange(n)
    first = run_starts(group)
    begin = first[group]
    is_start, is_end = phase == _S, phase == _F
    latest = np.maximum.accumulate(np.where(phase != _F, index, -1))
    before = np.concatenate(([-1], latest[:-1]))
    starts = np.flatnonzero(is_start)
    per_group = np.bincount(group[starts], minlength=len(first))
    ends_per_group = np.bincount(group[is_end], minlength=len(first))
    first_start = np.append(starts, -1)[np.minimum(np.searchsorted(starts, first), len(starts))]
    first_start[per_group == 0] = -1
    source = np.where(before >= begin, before, first_start[group])
    target = np.flatnonzero(~is_start & (source >= 0))
    paired = int((per_group[group[is_end]] > 0).sum())
    counts = {
        "starts": len(starts),
        "steps": int((phase == _T).sum()),
        "ends": int(is_end.sum()),
        "paired": paired,
        "orphan_starts": int(per_group[ends_per_group == 0].sum()),
        "orphan_ends": int(is_end.sum()) - paired,
    }
    return source[target], target, counts


def bound_column(size: int, scratch: Scratch) -> U32:
    """Return room for the positions that flow events are bound to, none yet."""
    return scratch.array(size, "u4", NONE)
