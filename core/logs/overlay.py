"""A trace with telemetry logs: it answers as a Trace does, with the logs as further sources. Logs are read
here, their clocks aligned with the trace, and excerpts cut from them. The clock of a log is what the user
says it is, else what fits best.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..base.arrays import F64, I64
from ..base.clock import NO_CLOCKS, Clocks
from ..base.errors import UnreadableError, UsageError
from ..base.private import open_regular, reason_of
from ..index.format import RowKind
from ..query.args import Arguments
from ..query.busy import SeriesRange
from ..query.views import Lane, Process, Row
from ..trace import Trace
from .header import WATTS, ColumnKind, LogColumn
from .log import TelemetryLog, open_log
from .log_index import LogIndex, LogLane
from .more_sources import TraceWithMore
from .series import Series, Statistics, statistics
from .stamps import SECOND, Wall, offset_at, offset_text, zone_offset

if TYPE_CHECKING:
    from ..trace.devices import Device
    from .clock_fit import Proposal


@dataclass(frozen=True)
class LogOptions:
    """What the user says about the logs; whatever is missing is proposed."""

    zone: str = ""  # see zone_offset
    lag_s: float | None = None  # by how much the log's clock runs ahead of the trace's
    device_of: Mapping[str, str] = field(default_factory=dict)  # pid by the log's device


class PlacedLog(NamedTuple):
    """A log, its clock, which of its devices are drawn, and what the user says about it."""

    log: TelemetryLog
    proposal: Proposal
    devices: tuple[str, ...]
    options: LogOptions = LogOptions()

    @property
    def name(self) -> str:
        return Path(self.log.path).name

    @property
    def matches(self) -> bool:
        """Whether the log is of the trace's run, as far as one can tell, or its lag is given."""
        return self.proposal.is_of_this_run

    @property
    def refusal(self) -> str:
        """Return why the log is not used, and what lays it over the trace all the same."""
        seems = f" ({self.proposal.lag_s:.6g}s as it seems)" if self.proposal.lag_s else ""
        ahead = f"by how much its clock runs ahead{seems}"
        return (
            f"{self.log.path}: {self.proposal.refusal}. To use it all the same, say {ahead}: "
            "--smi-offset TIME, in a view :smi FILE SECONDS"
        )

    def lag_s(self, clocks: Clocks, source: int) -> float:
        """Return by how much its clock runs ahead of the trace's, as nudged."""
        return self.proposal.lag_s - clocks.offset(source) / SECOND

    def clock_text(self, clocks: Clocks, source: int) -> str:
        """Return its clock in words: zone, lag, and how sure that is or that it was set."""
        lag = f"{offset_text(self.proposal.utc_offset_s)}, lag {self.lag_s(clocks, source):+.3g} s"
        if not self.log.span:
            return "it has no rows"
        if clocks.offset(source):
            return f"{lag} (set by hand, proposed {self.proposal.lag_s:+.3g} s)"
        return f"{lag} (confidence {self.proposal.confidence:.0%})"


class Reading(NamedTuple):
    """What a log says at a time: the metric, its value (None where there is none), the line of the log."""

    metric: LogLane
    device: str
    value: float | None
    start: int  # of the interval, trace time
    end: int
    line: int  # 0: none
    text: str


class Overlay(TraceWithMore):
    """A trace and its logs. The clock of a log is (its source's number, ""): 0 is what was proposed."""

    def __init__(self, trace: Trace, placed: Sequence[PlacedLog]) -> None:
        """Add logs to a trace; UsageError for a trace without wall time."""
        wall = Wall(trace)
        if wall.base is None:
            raise UsageError(wall.missing)
        self.placed = tuple(placed)
        self.device_keys = dict(wall.devices)
        self.base_ns = wall.base
        self._first_log = len(trace.indexes)
        base = self.base_ns
        logs = [LogIndex(one.log, one.devices, one.proposal.shift_ns - base, base) for one in self.placed]
        super().__init__(trace, logs)
        for index, one, source in zip(logs, self.placed, self.log_sources):
            index.notes = (f"{one.name}: {one.clock_text(NO_CLOCKS, source)}", *self._remarks(one))

    @property
    def below_logs(self) -> Trace:
        return self.own

    def with_below_logs(self, below: Trace) -> Overlay:
        return Overlay(below, self.placed)

    @cached_property
    def _processes(self) -> tuple[Process, ...]:
        return tuple(self._titled(process) for process in super()._processes)

    def _titled(self, process: Process) -> Process:
        one = self.log_of(process.source)
        if one is None:
            return process
        device, tool = self._device_of(process), one.log.tool or Path(one.log.path).name
        name = f"{tool} {one.devices[process.number]}"
        return process._replace(
            title=f"{device.label} · {name}" if device else f"{name} (no device of the trace)"
        )

    def _device_of(self, process: Process) -> Device | None:
        one = self.log_of(process.source)
        if one is None:
            return None
        return self.device_keys.get(one.proposal.device_of.get(one.devices[process.number], ""))

    def owner_of(self, process: Process) -> tuple[int, int] | None:
        """Return the process of the device that the telemetry of a card is of."""
        device = self._device_of(process)
        return None if device is None else (device.source, device.process)

    def log_of(self, source: int) -> PlacedLog | None:
        return self.placed[source - self._first_log] if source >= self._first_log else None

    def _remarks(self, one: PlacedLog) -> Iterator[str]:
        """Yield notes about cards that are not drawn, and about a log outside the time of the trace."""
        absent = [card for card in one.log.devices if card not in one.devices]
        if absent:
            yield f"{one.name}: not in the trace, so not drawn: device {', '.join(absent)}"
        span, shift = one.log.span, one.proposal.shift_ns - self.base_ns
        if span and not (span[0] + shift < self.span[1] and span[1] + shift > self.span[0]):
            yield f"{one.name}: is outside the trace's time, so nothing of it is drawn"

    def device_name(self, device: Device) -> str:
        """Return a device's label, with its file's name where the trace has several."""
        if len(self.own.sources) == 1:
            return device.label
        return f"{device.label} of {Path(self.own.sources[device.source].path).name}"

    @property
    def log_sources(self) -> range:
        return range(self._first_log, len(self.indexes))

    def metric(self, source: int, row: int) -> LogLane | None:
        index = self.indexes[source]
        return index.metrics[row] if isinstance(index, LogIndex) else None

    def series_range(self, row: Row) -> SeriesRange:
        """Return which values a series has and what it is drawn in: a log's has a scale of its own."""
        index = self.indexes[row.source]
        return index.series_range(row.number) if isinstance(index, LogIndex) else super().series_range(row)

    @property
    def minor_lanes(self) -> Sequence[Lane]:
        return [self.lanes[at] for _, at, metric in self.metrics() if not metric.is_default]

    def metrics(self) -> Iterator[tuple[int, int, LogLane]]:
        """Yield (source, index of the lane in `lanes`, metric) of all telemetry lanes."""
        for source in self.log_sources:
            index = self.indexes[source]
            if isinstance(index, LogIndex):
                for number, metric in enumerate(index.metrics):
                    yield source, self.lane_bases[source] + number, metric

    def series(self, source: int, row: int, clocks: Clocks = NO_CLOCKS) -> Series | None:
        """Return the series behind a row of a log, in trace time."""
        metric = self.metric(source, row)
        return None if metric is None else metric.series.shifted(clocks.offset(source))

    def reading(self, row: Row, time: int, clocks: Clocks = NO_CLOCKS) -> Reading | None:
        """Return what a log says at a trace time, None for other rows."""
        at = self.nearest(row, time, clocks) if self.metric(row.source, row.number) is not None else None
        return None if at is None else self.reading_at(row, at, clocks)

    def reading_at(self, row: Row, at: int, clocks: Clocks = NO_CLOCKS) -> Reading | None:
        """Return what an entry of a log's row says, None for other rows."""
        one, metric = self.log_of(row.source), self.metric(row.source, row.number)
        if one is None or metric is None:
            return None
        series, sample = metric.series, int(metric.sample_of[at])
        line = int(series.line[sample]) if sample >= 0 else 0
        value = None if sample < 0 or series.missing[sample] else float(series.value[sample])
        times = self.bounds(row, at, clocks)
        return Reading(metric, series.device, value, *times, line, one.log.line_text(line) if line else "")

    def device_readings(self, process: Process, time: int, clocks: Clocks = NO_CLOCKS) -> list[Reading]:
        """Return what the logs say of a process's device at a trace time, in the metrics shown at first."""
        own = (process.source, process.number)
        lanes = (at for _, at, metric in self.metrics() if metric.is_default)
        lanes = (at for at in lanes if self.owner_of(self.lanes[at].process) == own)
        readings = (self.reading(self.row(at, 0), time, clocks) for at in lanes)
        there = (one for one in readings if one is not None and one.start <= time < one.end)
        return [one for one in there if one.value is not None]

    # -- a sample holds over its interval -------------------------------------------------------------------

    def bounds(self, row: Row, at: int, clocks: Clocks = NO_CLOCKS) -> tuple[int, int]:
        """Return (start, end) in trace time; for a sample of a log its interval."""
        start, end = super().bounds(row, at, clocks)
        if self.metric(row.source, row.number) is not None:
            end = super().bounds(row, at + 1, clocks)[0] if at + 1 < row.count else start
        return start, end

    def nearest(self, row: Row, time: int, clocks: Clocks = NO_CLOCKS) -> int | None:
        """Return what lies at a time or nearest to it; in a log the sample whose interval holds it."""
        metric = self.metric(row.source, row.number)
        if metric is None:
            return super().nearest(row, time, clocks)
        after = super().next_after(row, time, clocks)
        return max(0, (row.count if after is None else after) - 1)

    def event_arguments(self, source: int, ordinal: int) -> Arguments:
        """Return the arguments of an event; for a sample of a log its line."""
        sample = self.find_instant(source, ordinal)
        reading = None if sample is None else self.reading_at(*sample)
        if reading is None:
            return self.own.event_arguments(source, ordinal)
        return Arguments({f"line {reading.line:,} of the log": reading.text} if reading.line else {})


_POWER = re.compile(r"power|pwr|watts?", re.IGNORECASE)


def statistics_of(
    trace: Trace, row: Row, span: tuple[int, int], clocks: Clocks
) -> tuple[LogColumn, Statistics] | None:
    """Return (column, statistics) of a row of values over [start, end) of trace time; None for other rows. A
    sample of a log is the mean over its interval. A counter's value holds until its next sample, the last one
    until the trace ends.
    """
    if row.kind is not RowKind.SAMPLES:
        return None
    series = trace.series(row.source, row.number, clocks) if isinstance(trace, Overlay) else None
    if series is None:
        series = counter_series(trace, row, span, clocks)
    return series.column, statistics(series, *span)


def counter_column(name: str, series: str) -> LogColumn:
    """Return the column of a counter by its name and series; a series named as a unit of power is power."""
    power = series in WATTS and _POWER.search(f"{name} {series}") is not None
    return LogColumn(name, series, ColumnKind.POWER if power else ColumnKind.OTHER)


def counter_series(trace: Trace, row: Row, span: tuple[int, int], clocks: Clocks) -> Series:
    """Return the samples of a counter whose values hold at some time in [start, end) of trace time."""
    index = trace.indexes[row.source]
    entry = index.rows[row.number]
    first, last = int(entry["first"]), int(entry["first"]) + int(entry["count"])
    offset = clocks.offset(row.source, row.pid)
    stamps = index.column("samples.start")[first:last]
    begin = max(0, int(np.searchsorted(stamps, span[0] - offset, side="right")) - 1)
    end = int(np.searchsorted(stamps, span[1] - offset, side="left"))
    starts: I64 = stamps[begin:end].astype(np.int64) + offset
    after = int(stamps[end]) + offset if end < len(stamps) else trace.span_at(clocks)[1]
    ends: I64 = np.append(starts[1:], max(after, int(starts[-1]))) if len(starts) else starts
    value: F64 = index.column("samples.value")[first:last][begin:end].astype(np.float64)
    column = counter_column(trace.lanes[row.lane].name, row.series)
    nothing = np.zeros(len(starts), np.int64)
    return Series("", column, starts, ends, value, np.isnan(value), nothing)


def align(wall: Wall, log: TelemetryLog, options: LogOptions) -> Proposal:
    """Return the log's clock and the process of each of its devices: as given, else as it fits best. Raises
    UsageError for a trace without wall time, an unknown zone, or a device that one of both has not.
    """
    from .clock_fit import propose  # only here: without logs nothing of it is needed

    busy, window = wall.busy
    span = log.span
    at = span[0] if span else 0
    zone = zone_offset(options.zone, at) if options.zone else None
    proposal = propose(log, busy, window, offset_at(at), zone, options.lag_s)
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
    middle = wall.local_middle(options.zone)
    logs = [open_log(path, middle) for path in paths]
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


MAX_HEADING = 1 << 16
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
            heading = file.read(min(int(offsets[0]), MAX_HEADING))
            file.seek(int(offsets[first]))
            body = file.read(int(offsets[last]) - int(offsets[first])) + file.readline()
    except OSError as error:
        raise UnreadableError(f"{log.path}: {reason_of(error)}") from error
    return heading + body
