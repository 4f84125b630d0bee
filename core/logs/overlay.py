"""A trace with telemetry logs: it answers as a Trace does, with the logs as further sources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import F64, I64
from ..base.clock import NO_CLOCKS, Clocks
from ..base.errors import UsageError
from ..index.format import RowKind
from ..query.args import Arguments
from ..query.samples import SeriesRange
from ..query.views import Lane, Process, Row
from ..trace import Trace
from .header import WATTS, ColumnKind, LogColumn
from .log_index import LogIndex, LogLane
from .more_sources import TraceWithMore
from .series import Series, Statistics, statistics
from .wall import SECOND, Wall, offset_text

if TYPE_CHECKING:
    from ..trace.devices import Device
    from .clock_fit import Proposal
    from .log import TelemetryLog


@dataclass(frozen=True)
class LogOptions:
    """What the user says about the logs; whatever is missing is proposed."""

    zone: str = ""  # see zone_offset
    lag_s: float | None = None  # by how much the log's clock runs ahead of the trace's
    device_of: Mapping[str, str] = field(default_factory=dict)  # pid by the log's device


@dataclass(frozen=True)
class PlacedLog:
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
        ahead = f"by how much its clock runs ahead ({self.proposal.lag_s:.6g}s as it seems)"
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


@dataclass(frozen=True)
class Reading:
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
        """The trace without its logs."""
        return self.own

    def with_below_logs(self, below: Trace) -> Overlay:
        """Return another trace under these logs."""
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
        return replace(
            process, title=f"{device.label} · {name}" if device else f"{name} (no device of the trace)"
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
        """The lanes of the less important metrics."""
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
        start, end = self.bounds(row, at, clocks)
        if sample < 0:
            return Reading(metric, series.device, None, start, end, 0, "")
        line = int(series.line[sample])
        value = None if series.missing[sample] else float(series.value[sample])
        return Reading(metric, series.device, value, start, end, line, one.log.line_text(line))

    def device_readings(self, process: Process, time: int, clocks: Clocks = NO_CLOCKS) -> list[Reading]:
        """Return what the logs say of a process's device at a trace time, in the metrics shown at first."""
        readings = []
        for _, lane_index, metric in self.metrics():
            lane = self.lanes[lane_index]
            owner = self.owner_of(lane.process) if metric.is_default else None
            if owner != (process.source, process.number):
                continue
            reading = self.reading(self.row(lane_index, 0), time, clocks)
            if reading is not None and reading.value is not None and reading.start <= time < reading.end:
                readings.append(reading)
        return readings

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
