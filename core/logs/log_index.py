"""A log as a source of lanes: its series as counter lanes of an index in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.arrays import F64, I64, sum_of
from ..base.units import format_count
from ..query.busy import SeriesRange
from .header import MEASURED, ColumnKind, LogColumn
from .more_sources import SeriesIndex, SeriesLane

if TYPE_CHECKING:
    from .log import TelemetryLog
    from .series import DeviceLog, Series

FLAT = 0.5
"""A metric that stays above this share of its greatest value is not drawn from zero: it would be flat."""
WARNED = "⚠"
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
                lanes.append(SeriesLane(number, metric_title(series), start, value, times, len(series)))
        tool = log.tool or Path(log.path).name
        processes = [(f"smi:{device}", f"{tool} {device}") for device in devices]
        samples = sum(len(lane.starts) for lane in lanes)
        super().__init__(_manifest(log, samples, base_time_ns), processes, lanes)

    def series_range(self, row_number: int) -> SeriesRange:
        return SeriesRange(*(self.metrics[row_number].series.bounds or (0.0, 0.0)))


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


def default_columns(columns: Sequence[LogColumn]) -> list[LogColumn]:
    """Return the metrics shown at first: power, busy, temperature, memory traffic, the host's processor."""
    chosen: list[LogColumn] = []
    for kind in MEASURED:
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
