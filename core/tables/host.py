"""The host's side of device work: the call that launched each piece of it, and when that call began."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.arrays import I64, U32, AnyArray
from ..index.format import NONE
from ..query.launches import CALLS
from ..query.lookup import lanes_of
from .scope import Scope
from .slices import Slices


@dataclass(frozen=True, eq=False)
class LaunchSide:
    """The launch of each of some slices: position (NONE: not known) and start in trace time (0 then)."""

    launches: U32
    starts: I64
    ambiguous: AnyArray  # bool: the launch is doubtful, see query.launches


def launch_sides(scope: Scope, work: Slices) -> LaunchSide:
    """Return the launch call of each of these slices of device work, by flow, else by correlation."""
    pairs = scope.trace.launches(work.source)
    launches = np.full(len(work), NONE, np.uint32)
    starts = np.zeros(len(work), np.int64)
    ambiguous = np.zeros(len(work), np.bool_)
    at = pairs.rows_of(work.positions)
    known = np.flatnonzero(at >= 0)
    known = known[np.isin(pairs.via[at[known]], CALLS)]
    launches[known] = pairs.launch[at[known]]
    starts[known] = trace_starts(scope, work.source, launches[known])
    ambiguous[known] = pairs.ambiguous[at[known]]
    return LaunchSide(launches, starts, ambiguous)


def trace_starts(scope: Scope, source: int, positions: AnyArray) -> I64:
    """Return the starts of slices of a source in trace time, under the scope's clocks."""
    index = scope.trace.indexes[source]
    starts: I64 = index.column("slices.start")[positions].astype(np.int64)
    if scope.clocks.offsets:
        starts += scope.lane_offsets(source)[lanes_of(index, positions)]
    return starts
