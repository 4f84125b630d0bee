"""How a log's clock relates to a trace's: what the person says of it, else what fits best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..base.errors import UsageError
from .zones import host_offset, zone_offset

if TYPE_CHECKING:
    from ..telemetry.clock_fit import Proposal
    from ..telemetry.log import TelemetryLog
    from .wall import Wall


@dataclass(frozen=True)
class LogOptions:
    """What a person says of the logs; what is left out is proposed."""

    zone: str = ""  # see zone_offset
    lag_s: float | None = None  # by how much the log's clock runs ahead of the trace's
    device_of: Mapping[str, str] = field(default_factory=dict)  # pid by the log's device


def align(wall: Wall, log: TelemetryLog, options: LogOptions) -> Proposal:
    """Return the log's clock and which of its devices is which process: as given, else as it fits best.

    Raises UsageError for a trace without wall time, an unknown zone, or a device that one of both has not.
    """
    from ..telemetry.clock_fit import propose  # only here: without logs nothing of it is needed

    time = wall.time
    span = log.span
    at = span[0] if span else 0
    zone = zone_offset(options.zone, at) if options.zone else None
    proposal = propose(log, time.busy, time.window, host_offset(at), zone)
    if options.lag_s is not None:
        reason = f"{proposal.reason.partition('; ')[0]}; its lag is given"
        proposal = replace(proposal, lag_s=options.lag_s, confidence=1.0, reason=reason)
    if span and not (
        span[0] + proposal.shift_ns < time.window[1] and span[1] + proposal.shift_ns > time.window[0]
    ):
        proposal = replace(
            proposal, confidence=0.0, reason=f"{proposal.reason}; so log and trace do not overlap"
        )
    named = {
        card: _process(wall, card, pid) for card, pid in options.device_of.items() if card in log.devices
    }
    if named:
        free = {c: p for c, p in proposal.device_of.items() if c not in named and p not in named.values()}
        proposal = replace(proposal, device_of=dict(sorted({**free, **named}.items())))
    return proposal


def _process(wall: Wall, card: str, pid: str) -> str:
    if pid in wall.devices:
        return pid
    known = ", ".join(wall.devices) or "none"
    raise UsageError(f"{card}={pid}: no device of the trace has this pid; there is {known}")
