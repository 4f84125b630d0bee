"""A metric of one device over time, as numpy columns, its statistics for ranges of time, energy as the
integral of power; and the series of a log as counter lanes of an index in memory.

Each sample is the mean over its interval, so the integral over a range is the sum of value x overlap.
Energy is summed in whole nanojoules (W x ns) in 64 bits: exact but for half a nanojoule per sample, and
good for 75 W over three years. Ranges and series are in the same time; shift the series first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.arrays import F64, I64, Bools, add_at, sum_of
from ..base.errors import UsageError
from ..base.units import format_count
from ..query.samples import SeriesRange
from .header import ColumnKind, LogColumn
from .more_sources import SeriesIndex, SeriesLane
from .stamps import SECOND

if TYPE_CHECKING:
    from .log import TelemetryLog


@dataclass(frozen=True, eq=False)
class Series:
    """The samples of one metric of one device, by time; each is the mean over its interval [start, end).
    Times are ns in the log's own time (its local stamps read as if they were UTC) unless `shifted`; intervals
    do not overlap. `value` is NaN where `missing`. `line` is the line of the log that a sample was read from,
    from 1.
    """

    device: str
    column: LogColumn
    start_ns: I64
    end_ns: I64
    value: F64
    missing: Bools
    line: I64

    def __len__(self) -> int:
        return len(self.value)

    def shifted(self, offset_ns: int) -> Series:
        """Return the series with `offset_ns` added to its times."""
        return replace(self, start_ns=self.start_ns + offset_ns, end_ns=self.end_ns + offset_ns)

    def at(self, time_ns: int) -> int | None:
        """Return which sample's interval holds a time, or None where there is no sample."""
        position = int(np.searchsorted(self.end_ns, time_ns, side="right"))
        if position == len(self) or self.start_ns[position] > time_ns:
            return None
        return position

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Return the least and the greatest value, or None where all are missing."""
        present = self.value[~self.missing]
        return (float(present.min()), float(present.max())) if len(present) else None


@dataclass(frozen=True, eq=False)
class DeviceLog:
    """Everything a log says of one device: the shared times of its rows and a value column per metric."""

    device: str
    start_ns: I64
    end_ns: I64
    line: I64
    values: Mapping[LogColumn, F64]
    file: str = ""
    """The metric file that the log names for it (its last part is the card's bus id), or empty."""

    def series(self, column: LogColumn) -> Series:
        """Return one metric; raises KeyError where the device has no such column."""
        value = self.values[column]
        return Series(self.device, column, self.start_ns, self.end_ns, value, np.isnan(value), self.line)


FAR = 10
"""Energy is attributed to a name only where its slices last this many sampling intervals in all."""


@dataclass(frozen=True)
class Statistics:
    """A metric over one range. The values are None where no sample covers any of it."""

    mean: float | None  # weighted by time
    least: float | None
    greatest: float | None
    samples: int
    covered_ns: int
    range_ns: int
    joules: float | None  # of power only, and only of what is covered

    @property
    def coverage(self) -> float:
        """Return the share of the range that samples cover, from 0 to 1."""
        return self.covered_ns / self.range_ns if self.range_ns > 0 else 0.0


@dataclass(frozen=True)
class NameEnergy:
    """The energy attributed to the slices of one name."""

    name: int
    joules: float
    watts: float
    covered_ns: int
    duration_ns: int
    slices: int


@dataclass(frozen=True)
class Attribution:
    """Energy by name: sampled means of power shared out by time, not a measurement of single slices. Where
    several slices run at once they share the power evenly, so that nothing is counted twice.
    """

    names: tuple[NameEnergy, ...]  # greatest first; only where duration_ns >= FAR sampling intervals
    too_short: tuple[int, ...]  # names that ran too shortly for the sampling
    too_short_joules: float
    none_joules: float  # while none of the slices ran
    total_joules: float


def statistics(series: Series, start_ns: int, end_ns: int) -> Statistics:
    """Return mean, least and greatest value, coverage and (of power) energy for one range."""
    first = int(np.searchsorted(series.end_ns, start_ns, side="right"))
    last = int(np.searchsorted(series.start_ns, end_ns, side="left"))
    here = slice(first, max(first, last))
    keep = ~series.missing[here]
    value = series.value[here][keep]
    overlap = (np.minimum(series.end_ns[here], end_ns) - np.maximum(series.start_ns[here], start_ns))[keep]
    covered = sum_of(overlap)
    length = max(0, end_ns - start_ns)
    watts = series.column.watts
    if covered <= 0:
        return Statistics(None, None, None, 0, 0, length, None)
    mean = float(np.sum(value * overlap)) / covered
    joules = None if watts is None else sum_of(np.rint(value * watts * overlap).astype(np.int64)) / SECOND
    return Statistics(mean, float(value.min()), float(value.max()), len(value), covered, length, joules)


def energy(series: Series, times_ns: I64) -> tuple[I64, I64]:
    """Return the energy (nJ) of a power, and the ns that samples cover, before each of some times. Raises
    UsageError for other metrics.
    """
    watts = series.column.watts
    if watts is None:
        raise UsageError(f"{series.column.label} is not a power: it has no energy")
    times = np.asarray(times_ns, np.int64)
    if not len(series):
        return np.zeros_like(times), np.zeros_like(times)
    power = np.where(series.missing, 0.0, series.value * watts)
    length = series.end_ns - series.start_ns
    whole = np.concatenate([[0], np.cumsum(np.rint(power * length).astype(np.int64))])
    covered = np.concatenate([[0], np.cumsum(length * ~series.missing)])
    at = np.searchsorted(series.end_ns, times, side="right")
    inside = np.minimum(at, len(power) - 1)
    part = np.where(at < len(power), np.maximum(times - series.start_ns[inside], 0), 0)
    partial = np.rint(power[inside] * part).astype(np.int64)
    return whole[at] + partial, covered[at] + part * ~series.missing[inside]


def attribute(
    series: Series, names: I64, starts_ns: I64, ends_ns: I64, span: tuple[int, int], interval_ns: int
) -> Attribution:
    """Share the energy of a span among the names of the slices that ran in it. `names` are numbers beside the
    slices' starts and ends. Slices are cut to the span.
    """
    begin, end = span
    starts = np.clip(np.asarray(starts_ns, np.int64), begin, end)
    ends = np.clip(np.asarray(ends_ns, np.int64), begin, end)
    keep = ends > starts
    names, starts, ends = np.asarray(names, np.int64)[keep], starts[keep], ends[keep]
    edges = np.unique(np.concatenate([np.array([begin, end], np.int64), starts, ends]))
    nanojoules, covered_ns = map(np.diff, energy(series, edges))
    opened = np.bincount(np.searchsorted(edges, starts), minlength=len(edges))
    closed = np.bincount(np.searchsorted(edges, ends), minlength=len(edges))
    running = np.cumsum(opened - closed)[:-1]
    shared = np.where(running > 0, nanojoules / np.maximum(running, 1), 0.0)
    before = np.concatenate([[0.0], np.cumsum(shared)])
    covered_before = np.concatenate([[0], np.cumsum(covered_ns)])
    first, last = np.searchsorted(edges, starts), np.searchsorted(edges, ends)
    of_slice = before[last] - before[first]
    covered = covered_before[last] - covered_before[first]
    distinct, code = np.unique(names, return_inverse=True)
    joules = np.bincount(code, weights=of_slice, minlength=len(distinct)) / SECOND
    durations, covers = np.zeros(len(distinct), np.int64), np.zeros(len(distinct), np.int64)
    add_at(durations, code, ends - starts)
    add_at(covers, code, covered)
    counts = np.bincount(code, minlength=len(distinct))
    far = durations >= FAR * interval_ns
    listed = [
        NameEnergy(
            int(distinct[i]),
            float(joules[i]),
            float(joules[i]) * SECOND / int(covers[i]) if covers[i] else 0.0,
            int(covers[i]),
            int(durations[i]),
            int(counts[i]),
        )
        for i in np.flatnonzero(far)
    ]
    return Attribution(
        tuple(sorted(listed, key=lambda entry: (-entry.joules, entry.name))),
        tuple(distinct[~far].tolist()),
        math.fsum(joules[~far].tolist()),
        sum_of(nanojoules[running == 0]) / SECOND,
        sum_of(nanojoules) / SECOND,
    )


FLAT = 0.5
"""A metric that stays above this share of its greatest value is not drawn from zero: it would be flat."""
WARNED = "⚠"
_DEFAULT_KINDS = (ColumnKind.POWER, ColumnKind.BUSY, ColumnKind.TEMPERATURE)
_DEFAULT_NAMES = ("rdmem", "wrmem", "hostcpu")


@dataclass(frozen=True, eq=False)
class LogLane:
    """A lane of a log: one metric of one of its devices."""

    series: Series  # in trace time, before the user moves the log's clock
    title: str
    is_default: bool  # shown at first
    sample_of: I64  # per entry of the row: the sample, -1 in a gap

    @property
    def column(self) -> LogColumn:
        return self.series.column


class LogIndex(SeriesIndex):
    """One log's lanes, a process per device, a lane per metric that has values. A sample holds over the
    interval that ends at its stamp; entries without a value stand in the gaps, so that the rows answer as
    those of counters do.
    """

    def __init__(self, log: TelemetryLog, devices: Sequence[str], shift_ns: int, base_time_ns: int) -> None:
        """Lay out the series of some devices with `shift_ns` added to the log's times."""
        self.log = log
        self.metrics: list[LogLane] = []
        lanes: list[SeriesLane] = []
        for number, device in enumerate(devices):
            for series, is_default in _series_of(log.devices[device], has_host=number == 0):
                series = series.shifted(shift_ns)
                start, value, sample = entries_of(series)
                self.metrics.append(LogLane(series, metric_title(series), is_default, sample))
                times = int(series.start_ns[0]), int(series.end_ns[-1])
                lanes.append(SeriesLane(number, metric_title(series), start, value, *times, len(series)))
        tool = log.tool or Path(log.path).name
        processes = [(f"smi:{device}", f"{tool} {device}") for device in devices]
        samples = sum(len(lane.starts) for lane in lanes)
        super().__init__(_manifest(log, samples, base_time_ns), processes, lanes)

    def series_range(self, row_number: int) -> SeriesRange:
        """Return the values of a row, on a scale of its own: temperatures are never near zero."""
        least, most = self.metrics[row_number].series.bounds or (0.0, 0.0)
        return SeriesRange(least, most, *drawn_range(least, most))


def _series_of(log: DeviceLog, has_host: bool) -> Iterator[tuple[Series, bool]]:
    """Yield (series with values, whether it is shown at first) of a device, those shown at first before the
    others; series of the host only where `has_host`.
    """
    columns = [column for column in log.values if has_host or column.kind is not ColumnKind.HOST]
    default = default_columns(columns)
    for column in [*default, *(column for column in columns if column not in default)]:
        series = log.series(column)
        if series.bounds is not None:
            yield series, column in default


def drawn_range(least: float, most: float) -> tuple[float, float]:
    """Return the range that values are drawn in: from zero, unless that leaves them flat."""
    if least > 0 and least >= FLAT * most:
        margin = (most - least) / 7 or most
        return max(0.0, least - margin), most
    return (min(least, 0.0), max(most, 0.0)) if least or most else (0.0, 1.0)


def default_columns(columns: Sequence[LogColumn]) -> list[LogColumn]:
    """Return the metrics shown at first: power, busy, temperature, memory traffic, the host's processor."""
    chosen: list[LogColumn] = []
    for kind in _DEFAULT_KINDS:
        chosen += [column for column in columns if column.kind is kind][:1]
    for name in _DEFAULT_NAMES:
        chosen += [column for column in columns if column.name.lower() == name and column not in chosen][:1]
    return chosen or list(columns[:6])


def metric_title(series: Series) -> str:
    """Return name, unit and range of a metric, with a mark where the column is known to be unreliable."""
    least, most = series.bounds or (0.0, 0.0)
    mark = f" {WARNED}" if series.column.warning else ""
    return f"{series.column.label} {_short(least)}..{_short(most)}{mark}"


def _short(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def entries_of(series: Series) -> tuple[I64, F64, I64]:
    """Return a series as (start, value, sample number) of entries that hold until the next: gaps are NaN, -1.
    Intervals of no length are left out: a later sample has their time.
    """
    samples = np.flatnonzero(series.end_ns > series.start_ns)
    starts, ends, values = series.start_ns[samples], series.end_ns[samples], series.value[samples]
    if not len(samples):
        return np.array(series.start_ns[:1]), np.array([np.nan]), np.array([-1], np.int64)
    open_after = np.append(starts[1:] > ends[:-1], True)
    each = 1 + open_after.astype(np.int64)
    at = np.cumsum(each) - each
    start = np.empty(sum_of(each), np.int64)
    value, sample = np.full(len(start), np.nan), np.full(len(start), -1, np.int64)
    start[at], value[at], sample[at] = starts, values, samples
    gaps = at[open_after] + 1
    start[gaps] = ends[open_after]
    return start, value, sample


def _manifest(log: TelemetryLog, samples: int, base_time_ns: int) -> dict[str, Any]:
    problems = []
    if log.unparsed:
        first = log.unparsed_lines[0]
        message = f"lines that could not be read, the first is line {first.line}: {first.why}"
        problems.append({"kind": "unreadable", "count": log.unparsed, "offset": None, "message": message})
    if log.missing:
        message = f"rows without a value for the card, of {format_count(log.rows + log.missing)}"
        problems.append({"kind": "missing", "count": log.missing, "offset": None, "message": message})
    return {
        "path": log.path,
        "form": f"{log.tool or 'telemetry'} {log.format}",
        "base_time_ns": base_time_ns,
        "columns": {},
        "problems": problems,
        "read_report": {"counter_samples": samples},
    }
