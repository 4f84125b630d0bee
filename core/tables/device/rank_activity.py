"""When each of many ranks works, waits for others and keeps others waiting: what a map of ranks shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np

from ...base.arrays import EMPTY, I64, Intervals
from .states import BUSY, WAITING, DeviceState

MAX_SPAN = int(np.iinfo(np.int64).max)
"""What the time of all ranks together has to fit, ns: 292 years."""


@dataclass(frozen=True, eq=False)
class RankIntervals:
    """The stretches of time of N ranks, each rank's own disjoint and ascending; trace time in ns."""

    of_ranks: tuple[Intervals, ...]

    def in_cells(self, edges: I64) -> I64:
        """Return the ns of each rank between each two of W + 1 ascending times: N x W.

        All ranks are looked up at once: their stretches stand one behind the other, each rank's moved past
        those before it. Of stretches [0, 9) and [2, 3) the second rank's stands at [12, 13), as all end by 9,
        and its edges 0 and 9 at 10 and 19.
        """
        count, cells = len(self.of_ranks), len(edges) - 1
        low, high = self._extent
        if high - low >= MAX_SPAN // (count + 1):
            rows = [one.covered(edges[:-1], edges[1:]) for one in self.of_ranks]
            return np.array(rows, np.int64).reshape(count, cells)
        times = np.clip(edges, low, high) - low + self._moved[:, np.newaxis]
        before = self._joined.before(times.ravel()).reshape(count, cells + 1)
        return np.asarray(before[:, 1:] - before[:, :-1])

    @cached_property
    def _extent(self) -> tuple[int, int]:
        ends = [(int(one.starts[0]), int(one.ends[-1])) for one in self.of_ranks if len(one)]
        return (min(start for start, _ in ends), max(end for _, end in ends)) if ends else (0, 0)

    @cached_property
    def _moved(self) -> I64:
        low, high = self._extent
        return np.arange(len(self.of_ranks), dtype=np.int64) * (high - low + 1)

    @cached_property
    def _joined(self) -> Intervals:
        """The stretches of all ranks one behind the other, a ns apart."""
        low, _ = self._extent
        moved = [(by - low, one) for by, one in zip(self._moved.tolist(), self.of_ranks)]
        nothing = np.empty(0, np.int64)
        starts = np.concatenate([nothing, *(one.starts + by for by, one in moved)])
        return Intervals(starts, np.concatenate([nothing, *(one.ends + by for by, one in moved)]))


class HostActivity(NamedTuple):
    """When the host of a rank without devices computes, and waits in collectives."""

    works: Intervals
    waits: Intervals


class RankCells(NamedTuple):
    """What N ranks do in each of W cells of time, ns: N x W each."""

    works: I64
    waits: I64
    delays: I64


@dataclass(frozen=True, eq=False)
class RankActivity:
    """When each of N ranks works, waits in collectives for one that has yet to come, and is that one itself,
    by their sources.
    """

    sources: tuple[int, ...]
    works: RankIntervals
    waits: RankIntervals
    delays: RankIntervals

    @classmethod
    def of(
        cls,
        delays: Mapping[int, Intervals],
        hosts: Mapping[int, HostActivity],
        states: Iterable[DeviceState],
    ) -> RankActivity:
        """Return what ranks do, by source: of ranks with devices what these do, of the others what their
        hosts do.
        """
        of_source: dict[int, list[DeviceState]] = {}
        for one in states:
            of_source.setdefault(one.device.device.source, []).append(one)
        works, waits = [], []
        for source in delays:
            own = of_source.get(source, [])
            host = hosts.get(source, HostActivity(EMPTY, EMPTY))
            busy = reduce(Intervals.union, (one.spent[state] for one in own for state in BUSY), host.works)
            waits.append(reduce(Intervals.union, (one.spent[WAITING] for one in own), host.waits))
            works.append(busy)
        columns = (tuple(works), tuple(waits), tuple(delays.values()))
        return cls(tuple(delays), *map(RankIntervals, columns))

    def in_cells(self, edges: I64) -> RankCells:
        """Return what the ranks do between each two of W + 1 ascending times of the trace."""
        return RankCells(*(one.in_cells(edges) for one in (self.works, self.waits, self.delays)))

    @cached_property
    def row_of(self) -> Mapping[int, int]:
        """The row of each source."""
        return {source: row for row, source in enumerate(self.sources)}
