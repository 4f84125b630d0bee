"""Lanes that are no threads: async events by id, counter samples by counter and id."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from ..base.arrays import F64, I64, U32, concatenated_ranges, run_starts, sorted_groups
from ..read.batch import ASYNCS, COUNTERS, IdKind, Table
from .batches import NumberedBatches

MAX_LANES = 1000
"""A process's category with more ids than this shares lanes among them."""
_EVERYWHERE = 0xFFFF_FFFF


@dataclass(frozen=True, eq=False)
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
        return len(self.groups)


class AsyncEvents:
    """All async events of a trace, by id; memory is that of the async events."""

    def __init__(self, batches: NumberedBatches) -> None:
        events = batches.all("asyncs", tuple(ASYNCS))
        pid = batches.track_pid[events["track"]] if len(events["track"]) else events["track"]
        is_shared = (events["id_kind"] == IdKind.GLOBAL) | (events["id_kind"] == IdKind.SCOPED)
        order, group = sorted_groups(
            (
                events["category"],
                events["id_kind"],
                np.where(is_shared, _EVERYWHERE, pid),
                events["id_value"],
            ),
            (events["start"], events["ordinal"]),
        )
        self.events: Table = {name: values[order] for name, values in events.items()}
        """By group, start and ordinal."""
        self._pid = pid[order]
        self._first = run_starts(group)
        self._size = np.diff(np.append(self._first, len(group)))

    def size(self, lane: AsyncLane) -> int:
        return int(self._size[lane.groups].sum())

    def entries(self, groups: I64) -> tuple[I64, I64]:
        """Return where the events of groups lie, one group after the other, and how many each has."""
        size = self._size[groups]
        return concatenated_ranges(self._first[groups], size), size

    def lanes(self) -> Iterator[AsyncLane]:
        """Yield the lanes, unordered; every group lies in one of them."""
        pid, category = self._pid[self._first], self.events["category"][self._first]
        kind, value = self.events["id_kind"][self._first], self.events["id_value"][self._first]
        order, family = sorted_groups((pid, category), ())
        for groups in np.split(order, run_starts(family)[1:]) if len(order) else ():
            p, c = int(pid[groups[0]]), int(category[groups[0]])
            if len(groups) <= MAX_LANES:
                for group in groups.tolist():
                    yield AsyncLane(p, c, int(kind[group]), int(value[group]), 0, np.array([group]))
            else:
                for pack, members in enumerate(self._packed(groups)):
                    yield AsyncLane(p, c, IdKind.NONE, 0, pack, members)

    def _packed(self, groups: I64) -> list[I64]:
        """Divide groups into lanes in which no two share an instant; each goes to the lowest free lane."""
        begin = self.events["start"][self._first[groups]]
        end = self.events["start"][self._first[groups] + self._size[groups] - 1]
        ordinal = self.events["ordinal"][self._first[groups]]
        order = np.lexsort((ordinal, -end, begin))
        # Groups of 0 to 10, 2 to 5, 6 to 9 and 11 to 12 go to the lanes 0, 1, 1 and 0: at 6 the second lane
        # is free again, at 11 both are. Lanes that are taken lie in a heap by when they are free, the others
        # in one by number, so that ten thousand groups cost ten thousand steps and not their square.
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


@dataclass(frozen=True, eq=False)
class SampleSeries:
    """The samples of one series by (start, ordinal)."""

    series: int  # string number
    start: I64
    value: F64
    ordinal: U32


class CounterLane(NamedTuple):
    """One counter: bounds of its samples in the order of `CounterSamples`."""

    pid: int  # pid number
    name: int  # string number
    id_kind: int
    id_value: int
    first: int
    last: int


class CounterSamples:
    def __init__(self, batches: NumberedBatches) -> None:
        events = batches.all("counters", tuple(COUNTERS))
        pid = batches.track_pid[events["track"]] if len(events["track"]) else events["track"]
        keys = (pid, events["name"], events["id_kind"], events["id_value"])
        order, self._group = sorted_groups(keys, (events["series"], events["start"], events["ordinal"]))
        self._events = {name: values[order] for name, values in events.items()}
        self._pid = pid[order]
        self._strings = batches.strings

    def lanes(self) -> Iterator[CounterLane]:
        events, n = self._events, len(self._group)
        first = run_starts(self._group)
        for a, b in zip(first.tolist(), [*first[1:].tolist(), n]):
            yield CounterLane(
                int(self._pid[a]), int(events["name"][a]), int(events["id_kind"][a]),
                int(events["id_value"][a]), a, b,
            )  # fmt: skip

    def contents(self, lane: CounterLane) -> list[SampleSeries]:
        """Return a lane's series in the order in which the file names them, those of one event by text."""
        part = {key: values[lane.first : lane.last] for key, values in self._events.items()}
        cuts = np.flatnonzero(np.diff(part["series"])) + 1
        series = []
        for index in np.split(np.arange(lane.last - lane.first), cuts):
            number = int(part["series"][index[0]])
            samples = SampleSeries(number, part["start"][index], part["value"][index], part["ordinal"][index])
            series.append((int(samples.ordinal.min()), self._strings.text(number), samples))
        series.sort(key=lambda entry: entry[:2])
        return [samples for _, _, samples in series]
