"""Read telemetry logs, align their clocks with a trace, add them to it as lanes, cut excerpts from them. The
clock of a log is what the user says it is, else what fits best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..base.clock import NO_CLOCKS, Clocks
from ..base.errors import UnreadableError, UsageError
from ..base.private import open_regular, reason_of
from ..trace import Trace
from .log import TelemetryLog, open_log
from .overlay import LogOptions, Overlay, PlacedLog
from .wall import Wall, host_offset, zone_offset

if TYPE_CHECKING:
    from .clock_fit import Proposal
    from .log import TelemetryLog
    from .wall import Wall


def align(wall: Wall, log: TelemetryLog, options: LogOptions) -> Proposal:
    """Return the log's clock and the process of each of its devices: as given, else as it fits best. Raises
    UsageError for a trace without wall time, an unknown zone, or a device that one of both has not.
    """
    from .clock_fit import FitVerdict, propose  # only here: without logs nothing of it is needed

    time = wall.time
    span = log.span
    at = span[0] if span else 0
    zone = zone_offset(options.zone, at) if options.zone else None
    proposal = propose(log, time.busy, time.window, host_offset(at), zone)
    if options.lag_s is not None:
        reason = f"{proposal.reason.partition('; ')[0]}; its lag is given"
        proposal = replace(
            proposal, lag_s=options.lag_s, confidence=1.0, reason=reason, verdict=FitVerdict.MATCHES
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
    raise UsageError(f"{card}={pid}: no device of the trace has this pid; the pids are {known}")


def place_logs(wall: Wall, paths: Sequence[str | Path], options: LogOptions) -> list[PlacedLog]:
    """Read logs and return each with its clock, given or proposed, and its verdict. Each log shows the
    devices that the trace has, or all of them where the trace has none. Raises UnreadableError for what is no
    log, UsageError for a trace without wall time or a device that no log has.
    """
    if wall.base is None:
        raise UsageError(wall.missing)
    logs = [open_log(path) for path in paths]
    check_cards(logs, options)
    placed = []
    for log in logs:
        proposal = align(wall, log, options)
        known = tuple(card for card in log.devices if card in proposal.device_of)
        placed.append(PlacedLog(log, proposal, known or tuple(log.devices), options))
    return placed


def read_logs(
    trace: Trace, paths: Sequence[str | Path], options: LogOptions, all_match: bool
) -> tuple[list[PlacedLog], Overlay | None]:
    """Return logs as `place_logs` does, and the trace with those of its run, None where none is. Raises as it
    does; UsageError where `all_match` and one may be of another run.
    """
    placed = place_logs(Wall(trace), paths, options)
    foreign = [one for one in placed if not one.matches]
    if foreign and all_match:
        raise UsageError(foreign[0].refusal)
    matching = [one for one in placed if one.matches]
    return placed, Overlay(trace, matching) if matching else None


def open_overlay(trace: Trace, paths: Sequence[str | Path], options: LogOptions) -> Overlay:
    """Return a trace with logs as lanes; raises as `read_logs` does."""
    return Overlay(trace, read_logs(trace, paths, options, all_match=True)[0])


def with_log(trace: Trace, path: str | Path, options: LogOptions) -> Overlay:
    """Return a trace with one more log below those that it has; raises as `open_overlay` does."""
    if not isinstance(trace, Overlay):
        return open_overlay(trace, [path], options)
    more = open_overlay(trace.own, [path], options)
    return Overlay(trace.own, (*trace.placed, *more.placed))


def check_cards(logs: Sequence[TelemetryLog], options: LogOptions) -> None:
    """Raise UsageError where a device is given that no log has."""
    cards = list(dict.fromkeys(card for log in logs for card in log.devices))
    for card in options.device_of:
        if card not in cards:
            raise UsageError(f"no log has a device {card}; the devices are {', '.join(cards) or 'none'}")


MOST_HEADING = 1 << 16
"""The most bytes before the first row that count as the heading."""


def excerpt(overlay: Overlay, placed: PlacedLog, start: int, end: int, clocks: Clocks = NO_CLOCKS) -> bytes:
    """Return heading and rows of a log whose intervals overlap [start, end), trace time, as they stand in it.
    The rows are one piece of the file: what lies between two of them (messages, a repeated heading) comes
    along. Empty where no row does. Raises UnreadableError where the log has gone.
    """
    log = placed.log
    lines: set[int] = set()
    for source, _, metric in overlay.metrics():
        if overlay.log_of(source) is placed:
            series = metric.series.shifted(clocks.offset(source))
            lines.update(series.line[(series.end_ns > start) & (series.start_ns < end)].tolist())
    if not lines:
        return b""
    offsets = log.line_offsets
    first, last = np.searchsorted(log.row_lines, [min(lines), max(lines)]).tolist()
    try:
        with open(open_regular(log.path), "rb") as file:
            heading = file.read(min(int(offsets[0]), MOST_HEADING))
            file.seek(int(offsets[first]))
            body = file.read(int(offsets[last]) - int(offsets[first])) + file.readline()
    except OSError as error:
        raise UnreadableError(f"{log.path}: {reason_of(error)}") from error
    return heading + body
