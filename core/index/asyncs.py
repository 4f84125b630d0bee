"""Async events to lanes: one per process, category and id; many ids share lanes, packed by time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from ..ingest.columns import I64, AnyArray, IdKind
from .contents import Instants, Slices, paired, reaching
from .match import match, sorted_groups
from .merge import Merged
from .order import run_starts

MOST_LANES = 1000
"""A process's category with more ids than this shares lanes among them."""
COLUMNS = ("phase", "flags", "ordinal", "track", "category", "name", "id_kind", "id_value", "start")
_OPENS = np.array([ord(c) for c in "bS"], np.uint8)
_CLOSES = np.array([ord(c) for c in "eF"], np.uint8)
_EVERYWHERE = 0xFFFF_FFFF


@dataclass(frozen=True)
class AsyncLane:
    """One async lane and the groups (ids) in it."""

    pid: int  # pid number
    category: int
    id_kind: int  # of its only id; NONE where several share the lane
    id_value: int
    pack: int  # which of the shared lanes; 0 for a lane of its own
    groups: I64

    @property
    def ids(self) -> int:
        """How many ids lie in it."""
        return len(self.groups)


class Asyncs:
    """All async events of a trace, matched."""

    def __init__(self, merged: Merged) -> None:
        """Group and match; memory is that of the async events."""
        events = merged.all("asyncs", COLUMNS)
        pid = merged.track_pid[events["track"]] if len(events["track"]) else events["track"]
        shared = (events["id_kind"] == IdKind.GLOBAL) | (events["id_kind"] == IdKind.SCOPED)
        order, group = sorted_groups(
            (events["category"], events["id_kind"], np.where(shared, _EVERYWHERE, pid), events["id_value"]),
            (events["start"], events["ordinal"]),
        )
        self._events: Mapping[str, AnyArray] = {name: values[order] for name, values in events.items()}
        self._pid = pid[order]
        self._first = run_starts(group)
        last = np.append(self._first[1:], len(group))[: len(self._first)] - 1
        phase, start = self._events["phase"], self._events["start"]
        opens = np.isin(phase, _OPENS)
        stacked = np.flatnonzero(opens | np.isin(phase, _CLOSES))
        found = match(opens[stacked], group[stacked])
        unclosed = stacked[found.unclosed]
        begin, end = stacked[found.begin], stacked[found.end]
        self.spans = len(begin)
        self.unmatched_begin, self.unmatched_end = len(unclosed), len(found.unmatched)
        slices = Slices.joined(
            paired(self._events, begin, end),
            reaching(self._events, unclosed, start[last[group[unclosed]]]),
        )
        of = np.concatenate((group[begin], group[unclosed]))
        by_group = np.argsort(of, kind="stable")
        self._slices = slices.take(by_group)
        groups = np.arange(len(self._first) + 1)
        self._slice_bounds = np.searchsorted(of[by_group], groups)
        marks = np.ones(len(phase), np.bool_)
        marks[begin] = marks[end] = marks[unclosed] = False
        self._marks = np.flatnonzero(marks)
        self._mark_bounds = np.searchsorted(group[self._marks], groups)
        self._starts, self._ends = start[self._first], start[last]

    def lanes(self) -> Iterator[AsyncLane]:
        """Yield the lanes, unordered; every group lies in one of them."""
        pid, category = self._pid[self._first], self._events["category"][self._first]
        kind, value = self._events["id_kind"][self._first], self._events["id_value"][self._first]
        order, family = sorted_groups((pid, category), ())
        bounds = (
            np.searchsorted(family, np.arange(int(family[-1]) + 2)) if len(family) else np.zeros(1, np.int64)
        )
        for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist()):
            groups = order[a:b]
            p, c = int(pid[groups[0]]), int(category[groups[0]])
            if b - a <= MOST_LANES:
                for group in groups.tolist():
                    yield AsyncLane(p, c, int(kind[group]), int(value[group]), 0, np.array([group]))
            else:
                for pack, members in enumerate(self._packed(groups)):
                    yield AsyncLane(p, c, IdKind.NONE, 0, pack, members)

    def _packed(self, groups: I64) -> list[I64]:
        """Divide groups into lanes in which no two share an instant; each goes to the lowest free lane."""
        begin, end = self._starts[groups], self._ends[groups]
        ordinal = self._events["ordinal"][self._first[groups]]
        order = np.lexsort((ordinal, -end, begin))
        busy: list[tuple[int, int]] = []
        free: list[int] = []
        lanes: list[list[int]] = []
        for group, start, stop in zip(groups[order].tolist(), begin[order].tolist(), end[order].tolist()):
            while busy and busy[0][0] < start:
                heappush(free, heappop(busy)[1])
            lane = heappop(free) if free else len(lanes)
            if lane == len(lanes):
                lanes.append([])
            lanes[lane].append(group)
            heappush(busy, (stop, lane))
        return [np.array(lane) for lane in lanes]

    def contents(self, lane: AsyncLane) -> tuple[Slices, Instants]:
        """Return a lane's slices and instants, ordered."""
        slices = _ranges(self._slice_bounds, lane.groups)
        marks = self._marks[_ranges(self._mark_bounds, lane.groups)]
        marks = marks[np.argsort(self._events["ordinal"][marks], kind="stable")]
        return self._slices.take(slices).sorted(), Instants.of(self._events, marks)


def _ranges(bounds: I64, groups: I64) -> I64:
    if len(groups) == 1:
        return np.arange(bounds[groups[0]], bounds[groups[0] + 1])
    return np.concatenate([np.arange(bounds[g], bounds[g + 1]) for g in groups.tolist()])
