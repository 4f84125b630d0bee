"""Replays of one graph: launches that started the same kernels in the same order, compared by position."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.arrays import I64, U32
from ..index.store import Index
from .launches import Launches

MOST = 1000
"""Replays that are compared; of more, those nearest in the source's order of launches."""


@dataclass(frozen=True)
class Replays:
    """`kernels` and `durations` (ns) have a line per replay and a column per position in the graph.

    Positions count lane by lane, by start within a lane.
    """

    launches: U32  # positions of the launches, by start
    kernels: U32  # positions, replays x kernels
    durations: I64  # likewise
    this: int  # which line was asked for

    @property
    def spread(self) -> I64:
        """Greatest minus least duration of each position."""
        return np.asarray(self.durations.max(axis=0) - self.durations.min(axis=0), np.int64)


def replays_of(index: Index, launches: Launches, launch: int) -> Replays | None:
    """Return the replays of the graph that a launch replayed, itself among them; None if it started fewer
    than two kernels.
    """
    names = index.column("slices.name")
    known = launches.launch[launches.by_launch]
    positions, counts = np.unique(known, return_counts=True)
    at = int(np.searchsorted(positions, np.uint32(launch)))
    if at == len(positions) or int(positions[at]) != launch or int(counts[at]) < 2:
        return None
    alike = np.flatnonzero((names[positions] == names[launch]) & (counts == counts[at]))
    here = int(np.searchsorted(alike, at))
    low = max(0, min(here - MOST // 2, len(alike) - MOST))
    own = _in_order(index, launches, launch)
    siblings = []
    for other in positions[alike[low : low + MOST]].tolist():
        kernels = own if other == launch else _in_order(index, launches, other)
        if np.array_equal(names[kernels], names[own]):
            siblings.append((index.start(other), other, kernels))
    siblings.sort(key=lambda entry: entry[:2])
    matrix = np.stack([kernels for _, _, kernels in siblings])
    durations = index.duration(matrix.ravel()).reshape(matrix.shape)
    order = [other for _, other, _ in siblings]
    return Replays(np.array(order, np.uint32), matrix, durations, order.index(launch))


def _in_order(index: Index, launches: Launches, launch: int) -> U32:
    """Return a launch's kernels lane by lane, by start within a lane."""
    kernels: U32 = launches.kernels[launches.between(launch, launch + 1)]
    lanes = np.array([index.rows[index.row_of(position)]["lane"] for position in kernels.tolist()])
    order = np.lexsort((kernels, index.column("slices.start")[kernels], lanes))
    ordered: U32 = kernels[order]
    return ordered
