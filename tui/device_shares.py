"""How busy each device is, and which rank the others wait for: what the header and the lanes say of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tracelane.core.query.titles import rank_titles
from tracelane.core.tables.scope import Scope

from .draw.header import DeviceShare

if TYPE_CHECKING:
    from tracelane.core.tables.devices import Device

MOST_SLICES = 3_000_000
"""Of more slices it would take seconds of processor time to count exactly what a device does."""
MOST_OF_SPAN = 0.98
"""Of a device that works in less of the time it is said what its share is a share of."""
ESTIMATE_CELLS = 4096
"""In so many parts of the time the work of a device's lanes is added up instead."""


def device_shares(scope: Scope, most_slices: int = MOST_SLICES) -> list[DeviceShare]:
    """Return the share of its time that each device works, from its first work to its last; where something
    lies absurdly far from the rest, of what is shown at first. Of a device that works only far off, as where
    all its work stands at 0, no share is known: only what its work takes, added up.

    Where devices have more slices than `most_slices`, shares are estimates from the index's prefix sums.
    """
    from tracelane.core.tables.devices import devices as devices_of  # nothing of it is needed at the start
    from tracelane.core.tables.frame_columns import work_of

    trace = scope.trace
    all_devices = devices_of(trace)
    if sum(trace.lanes[lane].slices for one in all_devices for lane in one.lanes) > most_slices:
        return [_estimated(scope, one) for one in all_devices]
    work = work_of(scope)
    near = work_of(replace(scope, range=trace.opening_span)) if trace.has_outliers else work
    near_work = {part.first_device.device: part for part in near.by("device_row")}
    has_ranks = bool(rank_titles(trace.members))
    start, end = trace.opening_span
    shares = []
    for part in work.by("device_row"):
        one, here = part.first_device, near_work.get(part.first_device.device)
        rank = one.rank if has_ranks else None
        span = 0 if here is None else int(here.end.max() - here.start.min())
        if here is not None and span:
            of_ns = span if span < MOST_OF_SPAN * (end - start) else None
            shares.append(DeviceShare(one.title, rank, here.union().length / span, of_ns=of_ns))
        else:
            shares.append(DeviceShare(one.title, rank, None, work_ns=int(part.dur.sum())))
    return shares


def _estimated(scope: Scope, device: Device) -> DeviceShare:
    """Return how busy a device is from its first work to its last, as far as some thousand parts of the time
    say: in each part the work of its lanes adds up, at most to all of it.
    """
    trace = scope.trace
    start, end = trace.opening_span
    edges = np.linspace(start, end, ESTIMATE_CELLS + 1).astype(np.int64)
    busy = np.zeros(ESTIMATE_CELLS, np.int64)
    for number in device.lanes:
        scope.check()
        lane = trace.lanes[number]
        busy += trace.work_cells(lane, edges, scope.clocks).busy
    works = np.flatnonzero(busy)
    share, of_ns = None, None
    if len(works):
        span = int(edges[int(works[-1]) + 1] - edges[int(works[0])])
        share = float(np.minimum(busy, np.diff(edges)).sum() / span)
        of_ns = span if span < MOST_OF_SPAN * (end - start) else None
    rank = trace.rank(device.source) if rank_titles(trace.members) else None
    name = f"{device.label} {device.pid}" if device.label == "device" else device.label
    return DeviceShare(name, rank, share, is_estimate=True, of_ns=of_ns)


def slowest_rank(scope: Scope) -> int | None:
    """Return the source of the rank that the others wait for most in collectives, None where none does, or
    where it would take long to know.
    """
    trace = scope.trace
    if not rank_titles(trace.members) or sum(lane.slices for lane in trace.lanes) > MOST_SLICES:
        return None
    from tracelane.core.tables.ranks import ranks

    worst = ranks(scope).worst_first
    return worst[0].source if worst and worst[0].kept_waiting_ns else None
