"""Reading logs and laying them over a trace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..base.errors import UsageError
from ..telemetry.log import TelemetryLog, open_log
from ..trace import Trace
from .align import LogOptions, align
from .overlay import Overlay, PlacedLog
from .wall import Wall


def lay_over(trace: Trace, paths: Sequence[str | Path], options: LogOptions) -> Overlay:
    """Read logs and lay them over a trace by the clock given or proposed.

    Of each log the devices that the trace has are shown, all where it has none of them. Raises
    UnreadableError for what is no log, UsageError for a trace without wall time or a device that no log has.
    """
    wall = Wall(trace)
    if wall.base is None:
        raise UsageError(wall.missing)
    logs = [open_log(path) for path in paths]
    check_cards(logs, options)
    placed = []
    for log in logs:
        proposal = align(wall, log, options)
        known = tuple(card for card in log.devices if card in proposal.device_of)
        placed.append(PlacedLog(log, proposal, known or tuple(log.devices)))
    return Overlay(trace, placed)


def with_log(trace: Trace, path: str | Path, options: LogOptions) -> Overlay:
    """Return a trace with one more log over it, below those that lie there already; raises as `lay_over`."""
    if not isinstance(trace, Overlay):
        return lay_over(trace, [path], options)
    more = lay_over(trace.own, [path], options)
    return Overlay(trace.own, (*trace.placed, *more.placed))


def check_cards(logs: Sequence[TelemetryLog], options: LogOptions) -> None:
    """Raise UsageError where a device is given that no log has."""
    cards = list(dict.fromkeys(card for log in logs for card in log.devices))
    for card in options.device_of:
        if card not in cards:
            raise UsageError(f"no log has a device {card}; there is {', '.join(cards) or 'none'}")
