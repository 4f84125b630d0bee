"""The clocks of ranks: from their wall time, then so that the ends of the same collective fall together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ..base.arrays import I64, AnyArray, distinct
from ..base.clock import ClockKey, Clocks, wall_base_of
from ..base.units import TIME_LIMIT, format_count, format_ns
from ..index.member import Member
from ..index.store import Index
from ..query.groups import Groups
from ..query.lookup import lanes_of
from .collectives import AIU, DEVICE, HOST, Attendance, Collectives, Matched, collectives_at, match, medians
from .devices import ranks_of_processes
from .lanes import TraceLanes

FIT_NS = 50_000
FIT_RATIO = 5
"""Clocks are fitted to those kinds of collectives whose ends scatter by at most FIT_NS, or by at most
FIT_RATIO times as much as those of the kind that scatters least.
"""


class RankClock(NamedTuple):
    """One source's clock: lane time + `offset_ns` is the time of the first rank."""

    base_ns: int  # what the files' wall times ask for
    offset_ns: int  # the same, corrected by collectives where there are any
    matched: int = 0  # collectives that it rests on
    residual_ns: int | None = None  # no end lies further from another rank's of the same collective
    median_ns: int | None = None  # of the distances from the middle of each collective's ends
    p95_ns: int | None = None

    @property
    def correction_ns(self) -> int:
        """The part of the offset (ns) that comes from the collectives, on top of the wall times."""
        return self.offset_ns - self.base_ns


@dataclass(frozen=True)
class Alignment:
    """The clocks of the sources of a trace that are ranks, else of the processes of its only source, and what
    they rest on.
    """

    ranks: tuple[int, ...] = ()  # sources
    rank_clocks: tuple[RankClock, ...] = ()  # of each of these
    level: int = DEVICE
    collectives: tuple[Collectives, ...] = ()
    matched: Matched | None = None
    pids: tuple[str, ...] = ()  # of the processes that are ranks of one file; then there are no sources

    @property
    def keys(self) -> tuple[ClockKey, ...]:
        """The key of each clock: the number of a source with an empty pid, or 0 with the pid of a process."""
        return tuple((source, "") for source in self.ranks) or tuple((0, pid) for pid in self.pids)

    @cached_property
    def clocks(self) -> Clocks:
        """The clocks with the correction that the collectives give."""
        return _clocks({key: clock.offset_ns for key, clock in zip(self.keys, self.rank_clocks)})

    @cached_property
    def stamped(self) -> Clocks:
        """The clocks by the files' wall times alone."""
        return _clocks({key: clock.base_ns for key, clock in zip(self.keys, self.rank_clocks)})

    @property
    def text(self) -> str:
        """How the clocks were set, in a sentence; empty where there was nothing to set."""
        if not self.keys:
            return ""
        if self.matched is None:
            return "several captures are open: ranks have their files' own clocks"
        clocks = self.rank_clocks
        used = max(clock.matched for clock in clocks)
        if not used:
            return "ranks have their files' own clocks: no collective is on two of them"
        most = max(abs(clock.correction_ns) for clock in clocks)
        moved = f"moved by up to {format_ns(most)}" if most else "their clocks agree"
        middle = max(clock.median_ns or 0 for clock in clocks)
        late = max(clock.p95_ns or 0 for clock in clocks)
        alone = sum(clock.matched == 0 for clock in clocks)
        rest = f"; {alone} without one keep their stamps" if alone else ""
        return (
            f"ranks aligned by {format_count(used)} collective{'s' if used != 1 else ''}: {moved}, "
            f"residual {format_ns(middle)} (median), {format_ns(late)} (p95){rest}"
        )


NONE = Alignment()


def align_ranks(
    indexes: Sequence[Index], members: Sequence[Member], missing: Collection[int] = ()
) -> Alignment:
    """Return the clocks of those sources that are ranks; without any clock where fewer than two are.

    Only the wall times count where several captures are open together, which have no collective in common,
    and while sources are missing, with which the others have some.
    """
    ranks = tuple(source for source in ranks_among(members) if source not in missing)
    if len(ranks) < 2:
        return NONE
    sources = [indexes[source] for source in ranks]
    bases = _bases(sources)
    if missing or len({members[source].rank for source in ranks} - {None}) not in (0, len(ranks)):
        return Alignment(ranks, tuple(RankClock(base, base) for base in bases))
    fitted = aligned(ranks, bases, lambda level: [collectives_at(index, level) for index in sources])
    clocks = [
        clock if _fits(index, clock.offset_ns) else RankClock(clock.base_ns, clock.base_ns)
        for index, clock in zip(sources, fitted.rank_clocks)
    ]
    return replace(fitted, rank_clocks=tuple(clocks))


def aligned(
    ranks: tuple[int, ...], bases: Sequence[int], collectives: Callable[[int], Sequence[Collectives]]
) -> Alignment:
    """Return the clocks of ranks whose wall times are `bases` (ns) apart, corrected by their collectives:
    those of the best level (DEVICE, AIU or HOST) at which two ranks or more have some.
    """
    for level in (DEVICE, AIU, HOST):
        of_ranks = collectives(level)
        if sum(len(one) > 0 for one in of_ranks) > 1:
            break
    matched = match([one.moved(by) for one, by in zip(of_ranks, bases)])
    clocks = fitted_offsets(matched, bases) if len(matched) else [RankClock(base, base) for base in bases]
    return Alignment(ranks, tuple(clocks), level, tuple(of_ranks), matched)


def align_processes(trace: TraceLanes) -> Alignment:
    """Return the clocks of the ranks of one FLEX job trace, whose processes have clocks of their own."""
    processes = list(ranks_of_processes(trace))
    if len(processes) < 2:
        return NONE
    index = trace.indexes[0]
    of_ranks = [collectives_at(index, DEVICE, partial(_of_process, index, process)) for process in processes]
    matched = match(of_ranks)
    clocks = (
        fitted_offsets(matched, [0] * len(processes)) if len(matched) else [RankClock(0, 0)] * len(processes)
    )
    pids = tuple(index.string(int(index.processes["pid"][process])) for process in processes)
    return Alignment((), tuple(clocks), DEVICE, tuple(of_ranks), matched, pids)


def _of_process(index: Index, process: int, positions: I64) -> AnyArray:
    own: AnyArray = index.lanes["process"][lanes_of(index, positions)] == process
    return own


def ranks_among(members: Sequence[Member]) -> tuple[int, ...]:
    """Return the sources that are ranks: those that have a number; where none has, the workers of one run,
    whose files are named by host and process.
    """
    numbered = tuple(source for source, member in enumerate(members) if member.rank is not None)
    workers = {(member.host, member.pid) for member in members if member.pid is not None}
    return tuple(range(len(members))) if not numbered and len(workers) == len(members) else numbered


def fitted_offsets(matched: Matched, bases: Sequence[int]) -> list[RankClock]:
    """Return the clocks under which the ends of the same collectives lie closest; the first rank's stays.

    Twice: with the collectives that end at one moment by their nature, then with every kind whose ends do so
    in fact. The distance of two ranks is the median over the collectives they share.
    """
    used = matched.meeting if matched.meeting.any() else np.ones(len(matched), np.bool_)
    offsets, tied = _offsets(matched, used)
    used = _fitting(matched, offsets, tied)
    offsets, tied = _offsets(matched, used)
    who, left = matched.who.take(used[matched.who.collective] & tied[matched.who.rank])
    ends = matched.ends[left] + offsets[who.rank]
    middles, _ = medians(who.collective, ends, who.collectives)
    furthest = np.maximum(ends - who.least(ends)[who.collective], who.most(ends)[who.collective] - ends)
    distance = np.abs(ends - middles[who.collective])
    clocks = [RankClock(base, base) for base in bases]
    present, of = np.unique(who.rank, return_inverse=True)
    groups = Groups(of.astype(np.int64), len(present))
    middle, late = groups.quantiles(distance, 0.5, 0.95)
    columns = (groups.counts, groups.most(furthest), middle.astype(np.int64), late.astype(np.int64))
    for rank, *numbers in zip(present.tolist(), *(column.tolist() for column in columns)):
        clocks[rank] = RankClock(bases[rank], bases[rank] + int(offsets[rank]), *numbers)
    return clocks


def _offsets(matched: Matched, used: AnyArray) -> tuple[I64, AnyArray]:
    """Return what to add to the ends of each rank, and which ranks are tied to the first one by collectives.

    A rank that shares no collective with the first one is reached through ranks that share one with both.
    Each collective is looked at once, when the first of its ranks is tied: after that all of its ranks are.
    So the whole costs no more than reading the table once.
    """
    who, ends = matched.who, matched.ends
    offsets, tied = np.zeros(who.ranks, np.int64), np.zeros(who.ranks, np.bool_)
    left = np.asarray(used, np.bool_).copy()  # collectives that were not looked at yet
    taking_part = distinct(who.rank[left[who.collective]])
    first = int(taking_part[0]) if len(taking_part) else 0
    tied[first] = True
    newly = np.array([first], np.int64)
    while len(newly):
        reached = distinct(who.collective[who.of_ranks(newly)])
        reached = reached[left[reached]]
        left[reached] = False
        entries = who.of_collectives(reached)
        known = tied[who.rank[entries]]
        at = np.searchsorted(reached, who.collective[entries])  # among those reached
        moved = (ends[entries] + offsets[who.rank[entries]])[known]
        middles, _ = medians(at[known], moved, len(reached))
        others = entries[~known]
        distance = middles[at[~known]] - ends[others]
        newly, at = np.unique(who.rank[others], return_inverse=True)
        offsets[newly] = medians(at.astype(np.int64), distance, len(newly))[0]
        tied[newly] = True
    shared, entries = who.take(np.asarray(used)[who.collective] & tied[who.rank])
    middles = _middles_of(who, entries, ends, offsets)
    distance = middles[who.collective[entries]] - ends[entries]
    refined, counts = medians(shared.rank, distance, who.ranks)
    offsets = np.where(counts > 0, refined, offsets)
    offsets[tied] -= offsets[first]
    return offsets, tied


def _middles_of(who: Attendance, entries: I64, ends: I64, offsets: I64) -> I64:
    """Return for each collective the middle of the ends of some entries under these offsets; 0 where none of
    the entries is in it.
    """
    return medians(who.collective[entries], ends[entries] + offsets[who.rank[entries]], who.collectives)[0]


def _fitting(matched: Matched, offsets: I64, tied: AnyArray) -> AnyArray:
    """Return which collectives are of a kind whose ends lie close together under these offsets."""
    who = matched.who
    entries = np.flatnonzero(tied[who.rank]).astype(np.int64)
    middles = _middles_of(who, entries, matched.ends, offsets)
    distance = np.zeros(len(who), np.int64)
    collective = who.collective[entries]
    distance[entries] = np.abs(matched.ends[entries] + offsets[who.rank[entries]] - middles[collective])
    scatter, counts = medians(matched.family, who.most(distance), len(matched.families))
    limit = max(FIT_NS, FIT_RATIO * int(scatter[counts > 0].min()))
    used: AnyArray = (scatter <= limit)[matched.family]
    return used


def _bases(indexes: Sequence[Index]) -> list[int]:
    """Return for each source what to add to its lane times to get those of the first one, by their wall
    times; nothing where these would carry its times beyond the limit.
    """
    bases = wall_distances([wall_base(index) for index in indexes])
    return [base if _fits(index, base) else 0 for index, base in zip(indexes, bases)]


def wall_distances(walls: Sequence[int | None]) -> list[int]:
    """Return how much later than the first each wall time is; 0 where one is not known."""
    zero = walls[0]
    return [0 if base is None or zero is None else base - zero for base in walls]


def _fits(index: Index, offset: int) -> bool:
    """Tell whether an offset leaves all times of a source within the limit."""
    lanes = index.lanes
    if not len(lanes):
        return True
    low, high = int(lanes["start"].min()) + offset, int(lanes["end"].max()) + offset
    return low >= -TIME_LIMIT and high <= TIME_LIMIT


def wall_base(index: Index) -> int | None:
    """Return what to add to the lane times of a source to get ns since 1970; None where the file does not
    say.
    """
    base, start = index.manifest.get("base_time_ns"), index.manifest.get("start_ns")
    if isinstance(base, int):
        return base + index.origin_ns
    return wall_base_of(start, index.origin_ns) if isinstance(start, int) else None


def _clocks(offsets: dict[ClockKey, int]) -> Clocks:
    return Clocks(MappingProxyType({key: ns for key, ns in offsets.items() if ns}))
