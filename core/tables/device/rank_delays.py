"""Which rank the others wait for, and when: counted from the collectives that ranks share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...base.arrays import EMPTY, Intervals, merge
from ...base.kineto import OPS
from ...query.lookup import category_mask
from ..frame.scope import Scope
from ..peers.skew import Skew
from .rank_activity import HostActivity
from .states import DeviceState


def delays(sources: Sequence[int], skew: Skew) -> Mapping[int, Intervals]:
    """Return by source when the others wait for a rank: from the first arrival at a collective to its own,
    where it comes last.
    """
    result = dict.fromkeys(sources, EMPTY)
    for column, source in enumerate(skew.sources):
        own = skew.awaiting(column)
        result[source] = merge(skew.first_start[own], skew.last_start[own])
    return result


def host_activity(
    scope: Scope, sources: Sequence[int], skew: Skew, states: Sequence[DeviceState]
) -> Mapping[int, HostActivity]:
    """Return what the hosts of ranks without devices do, by source: they wait in collectives for one that has
    yet to come, and compute while operators run outside of collectives. Raises Cancelled.
    """
    with_devices = {one.device.device.source for one in states}
    result = {}
    for source in sources:
        if source in with_devices:
            continue
        column = skew.columns.get(source)
        own = np.empty(0, np.int64) if column is None else skew.who.of_rank(column)
        meets = merge(skew.starts[own], skew.ends[own])
        waits = EMPTY if column is None else skew.waiting(column)
        result[source] = HostActivity(_operators(replace(scope, source=source)).without(meets), waits)
    return result


def _operators(scope: Scope) -> Intervals:
    """Return when operators run on any thread of a source."""
    running = EMPTY
    for chunk in scope.chunks():
        chosen = category_mask(chunk.index, OPS)[chunk.categories]
        running = running.union(merge(chunk.starts[chosen], chunk.ends[chosen]))
    return running
