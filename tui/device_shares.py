"""How busy each device is, and which rank the others wait for: what the header and the lanes say of them."""

from __future__ import annotations

from dataclasses import replace

from tracelane.core.query.titles import rank_titles
from tracelane.core.tables.scope import Scope

from .draw.header import DeviceShare


def device_shares(scope: Scope) -> list[DeviceShare]:
    """Return the share of its time that each device works; where something lies absurdly far from the rest,
    of what is shown at first. A device that works only far off has no share that means anything.
    """
    from tracelane.core.tables.breakdown import breakdown  # nothing of it is needed at the start

    trace = scope.trace
    devices = breakdown(scope).devices
    shares = {(one.source, one.device): one.busy_share for one in devices}
    if trace.has_outliers:
        near = breakdown(replace(scope, range=trace.opening_span)).devices
        shares = {(one.source, one.device): one.busy_share for one in near}
    has_ranks = bool(rank_titles(trace.members))
    return [
        DeviceShare(
            f"{one.label} {one.device}" if one.label == "device" else one.label,
            one.rank if has_ranks else None,
            shares.get((one.source, one.device)),
        )
        for one in devices
    ]


def slowest_rank(scope: Scope) -> int | None:
    """Return the source of the rank that the others wait for most in collectives, None where none does."""
    if not rank_titles(scope.trace.members):
        return None
    from tracelane.core.tables.ranks import ranks

    worst = ranks(scope).worst_first
    return worst[0].source if worst and worst[0].kept_waiting_ns else None
