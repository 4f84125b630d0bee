"""The clocks of ranks: from their wall time, then so that the ends of the same collective fall together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np

from ..base.arrays import I64, AnyArray
from ..base.clock import Clocks
from ..base.units import format_count, format_ns
from ..index.captures import Member
from ..index.store import Index
from .collectives import AIU, DEVICE, HOST, Collectives, Matched, collectives_at, match

EPOCHS = (10**18, 4 * 10**18)
"""Lane times between these (2001 to 2096) are ns since 1970: what older profilers wrote."""
FIT_NS = 50_000
FIT_RATIO = 5
"""A kind of collective counts where its ends scatter by no more than FIT_NS or FIT_RATIO times the least."""


@dataclass(frozen=True)
class RankClock:
    """One source's clock: lane time + `offset_ns` is the time of the first rank."""

    base_ns: int  # what the files' wall times ask for
    offset_ns: int  # the same, corrected by collectives where there are any
    matched: int = 0  # collectives that it rests on
    residual_ns: int | None = None  # no end lies further from another rank's of the same collective
    median_ns: int | None = None  # of the distances from the middle of each collective's ends
    p95_ns: int | None = None

    @property
    def correction_ns(self) -> int:
        """What the collectives added."""
        return self.offset_ns - self.base_ns


@dataclass(frozen=True)
class Alignment:
    """The clocks of the sources of a trace that are ranks, and what they rest on."""

    ranks: tuple[int, ...] = ()  # sources
    rank_clocks: tuple[RankClock, ...] = ()  # of each of these
    level: int = DEVICE
    collectives: tuple[Collectives, ...] = ()
    matched: Matched | None = None

    @cached_property
    def clocks(self) -> Clocks:
        """The clocks as corrected."""
        return _clocks({source: clock.offset_ns for source, clock in zip(self.ranks, self.rank_clocks)})

    @cached_property
    def stamped(self) -> Clocks:
        """The clocks as the files' wall times have them."""
        return _clocks({source: clock.base_ns for source, clock in zip(self.ranks, self.rank_clocks)})

    @property
    def text(self) -> str:
        """A sentence on what was done, empty where there was nothing to do."""
        if not self.ranks:
            return ""
        if self.matched is None:
            return "several captures are open: ranks stand as their files' clocks have them"
        clocks = self.rank_clocks
        used = max(clock.matched for clock in clocks)
        if not used:
            return "ranks stand as their files' clocks have them: no collective is on two of them"
        most = max(abs(clock.correction_ns) for clock in clocks)
        moved = f"moved by up to {format_ns(most)}" if most else "their clocks agree"
        middle = max(clock.median_ns or 0 for clock in clocks)
        late = max(clock.p95_ns or 0 for clock in clocks)
        alone = sum(clock.matched == 0 for clock in clocks)
        rest = f"; {alone} without one stand as stamped" if alone else ""
        return (
            f"ranks aligned by {format_count(used)} collective{'s' if used != 1 else ''}: {moved}, "
            f"residual {format_ns(middle)} (median), {format_ns(late)} (p95){rest}"
        )


NONE = Alignment()


def align_ranks(indexes: Sequence[Index], members: Sequence[Member]) -> Alignment:
    """Return the clocks of the ranks among some sources; where there are not two, of none.

    Of several captures together the wall times alone count: their collectives are not the same.
    """
    ranks = tuple(source for source, member in enumerate(members) if member.rank is not None)
    if len(ranks) < 2:
        return NONE
    bases = _bases([indexes[source] for source in ranks])
    if len({members[source].rank for source in ranks}) < len(ranks):
        return Alignment(ranks, tuple(RankClock(base, base) for base in bases))
    level, found = _collectives([indexes[source] for source in ranks])
    matched = match([_moved(one, base) for one, base in zip(found, bases)])
    clocks = [RankClock(base, base) for base in bases]
    if len(matched):
        clocks = fitted_offsets(matched, bases)
    return Alignment(ranks, tuple(clocks), level, tuple(found), matched)


def as_stamped(indexes: Sequence[Index], members: Sequence[Member], first: int) -> Alignment:
    """Return the clocks of the ranks among some sources as their wall times alone have them; that of the
    source `first` stays.
    """
    ranks = tuple(source for source, member in enumerate(members) if member.rank is not None)
    place = ranks.index(first) if first in ranks else 0
    bases = _bases([indexes[source] for source in ranks], place) if ranks else []
    return Alignment(ranks, tuple(RankClock(base, base) for base in bases))


def fitted_offsets(matched: Matched, bases: Sequence[int]) -> list[RankClock]:
    """Return the clocks under which the ends of the same collectives lie closest; the first rank's stays.

    Twice: with the collectives that end at one moment by their nature, then with every kind whose ends do so
    in fact. The distance of two ranks is the median over the collectives they share.
    """
    used = matched.meeting if matched.meeting.any() else np.ones(len(matched), np.bool_)
    offsets, tied = _offsets(matched, used)
    used = _fitting(matched, offsets, tied)
    offsets, tied = _offsets(matched, used)
    found = []
    ends = np.where(matched.has & tied, matched.ends + offsets, 0)
    has = matched.has & tied & used[:, None]
    for rank, base in enumerate(bases):
        rows = np.flatnonzero(has[:, rank] & (has.sum(axis=1) > 1))
        if not tied[rank] or not len(rows):
            found.append(RankClock(base, base))
            continue
        others = np.ma.masked_array(ends[rows], ~has[rows])
        low, high = others.min(axis=1).data, others.max(axis=1).data
        own = ends[rows, rank]
        furthest = int(np.maximum(own - low, high - own).max())
        apart = np.abs(own - _middles(ends[rows], has[rows]))
        middle, late = int(np.median(apart)), int(np.percentile(apart, 95))
        found.append(RankClock(base, base + int(offsets[rank]), len(rows), furthest, middle, late))
    return found


def _offsets(matched: Matched, used: AnyArray) -> tuple[I64, AnyArray]:
    """Return what to add to each rank's ends, and which ranks are tied to the first one by collectives."""
    rows = np.flatnonzero(used)
    ends, has = matched.ends[rows], matched.has[rows]
    count = ends.shape[1]
    offsets, tied = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    first = int(np.argmax(has.any(axis=0)))
    tied[first] = True
    while True:  # ranks of other groups are reached over those that are in both
        known = np.where(has & tied, ends + offsets, 0)
        common = (has & tied).any(axis=1)
        middles = _middles(known, has & tied)
        more = [rank for rank in range(count) if not tied[rank] and (has[:, rank] & common).any()]
        for rank in more:
            shared = np.flatnonzero(has[:, rank] & common)
            offsets[rank] = _median(middles[shared] - ends[shared, rank])
        tied[more] = True
        if not more:
            break
    middles = _middles(np.where(has & tied, ends + offsets, 0), has & tied)
    for rank in np.flatnonzero(tied).tolist():
        shared = np.flatnonzero(has[:, rank] & ((has & tied).sum(axis=1) > 1))
        if len(shared):
            offsets[rank] = _median(middles[shared] - ends[shared, rank])
    offsets[tied] -= offsets[first]
    return offsets, tied


def _fitting(matched: Matched, offsets: I64, tied: AnyArray) -> AnyArray:
    """Return which collectives are of a kind whose ends lie close together under these offsets."""
    has = matched.has & tied
    ends = np.where(has, matched.ends + offsets, 0)
    apart = np.where(has, np.abs(ends - _middles(ends, has)[:, None]), 0).max(axis=1, initial=0)
    scatter = [
        float(np.median(apart[matched.family == place])) if (matched.family == place).any() else np.inf
        for place in range(len(matched.families))
    ]
    limit = max(FIT_NS, FIT_RATIO * min(scatter))
    used: AnyArray = np.array([value <= limit for value in scatter], np.bool_)[matched.family]
    return used


def _middles(values: I64, has: AnyArray) -> I64:
    """Return the median of each row's values where it has any, 0 elsewhere; exact in ns."""
    ordered = np.sort(np.where(has, values, np.iinfo(np.int64).max), axis=1)
    count = has.sum(axis=1)
    row = np.arange(len(values))
    low = ordered[row, np.maximum(0, (count - 1) // 2)]
    high = np.where(count > 0, ordered[row, np.minimum(count // 2, ordered.shape[1] - 1)], low)
    return np.where(count > 0, low + (high - low) // 2, 0)


def _median(values: I64) -> int:
    """Return the median of int64 values, exact to the ns."""
    ordered = np.sort(values)
    low, high = int(ordered[(len(ordered) - 1) // 2]), int(ordered[len(ordered) // 2])
    return low + (high - low) // 2


def _collectives(indexes: Sequence[Index]) -> tuple[int, list[Collectives]]:
    """Return the best way of showing collectives that two ranks share, and each rank's collectives."""
    for level in (DEVICE, AIU, HOST):
        found = [collectives_at(index, level) for index in indexes]
        if sum(len(one) > 0 for one in found) > 1:
            break
    return level, found


def _moved(one: Collectives, by: int) -> Collectives:
    return replace(one, starts=one.starts + by, ends=one.ends + by)


def _bases(indexes: Sequence[Index], first: int = 0) -> list[int]:
    """Return what brings each source's lane time to that of the `first`, as their wall times have it."""
    told = [_wall_base(index) for index in indexes]
    zero = told[first]
    return [0 if base is None or zero is None else base - zero for base in told]


def _wall_base(index: Index) -> int | None:
    base, start = index.manifest.get("base_time_ns"), index.manifest.get("start_ns")
    if isinstance(base, int):
        return base
    return 0 if isinstance(start, int) and EPOCHS[0] <= start < EPOCHS[1] else None


def _clocks(offsets: dict[int, int]) -> Clocks:
    return Clocks(MappingProxyType({(source, ""): ns for source, ns in offsets.items() if ns}))
