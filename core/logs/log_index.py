"""A log as a source of lanes: its series as the counter rows of an index that lies in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.arrays import F64, I64, AnyArray
from ..base.units import format_count
from ..index.format import LANE, PROCESS, ROW, LaneKind, RowKind
from ..index.pyramid import extremes, pyramid_sizes
from ..index.store import Index
from .columns import ColumnKind, LogColumn

if TYPE_CHECKING:
    from .log import TelemetryLog
    from .series import Series

FLAT = 0.5
"""A metric that stays above this share of its greatest value is not drawn from zero: it would be flat."""
WARNED = "⚠"
_CHOSEN = (ColumnKind.POWER, ColumnKind.BUSY, ColumnKind.TEMPERATURE)
_CHOSEN_NAMES = ("rdmem", "wrmem", "hostcpu")


@dataclass(frozen=True)
class LogLane:
    """A lane of a log: one metric of one of its devices, and where its row begins in the sample table."""

    series: Series  # in trace time, the nudging of its clock aside
    title: str
    chosen: bool  # shown at first
    first: int
    sample_of: I64  # per entry of the row: the sample, -1 in a gap

    @property
    def column(self) -> LogColumn:
        """What it measures."""
        return self.series.column


class LogIndex(Index):
    """One log's lanes, a process per device, a lane per metric that has values.

    A sample holds over the interval that ends at its stamp; entries without a value stand in the gaps, so
    that the rows answer as those of counters do. Ordinals number the entries.
    """

    def __init__(self, log: TelemetryLog, devices: Sequence[str], shift_ns: int, base_time_ns: int) -> None:
        """Lay out some devices' series with `shift_ns` added to the log's times."""
        self.log = log
        self._texts = ["", "null"]
        self._memory: dict[str, AnyArray] = {}
        self.metrics: list[LogLane] = []
        processes = np.zeros(len(devices), PROCESS)
        for number, device in enumerate(devices):
            first = len(self.metrics)
            self._add(device, shift_ns, number == 0)
            pid, name = (
                self._text(f'"smi:{device}"'),
                self._text(f"{log.tool or Path(log.path).name} {device}"),
            )
            processes[number] = (pid, name, 0, number, first, len(self.metrics) - first, 0)
        rows = self._rows()
        lanes = self._lanes(rows, processes)
        samples = len(self._memory["samples.start"])
        super().__init__(
            Path(log.path),
            _manifest(log, samples, base_time_ns),
            {"lanes": lanes, "processes": processes, "rows": rows},
        )

    def _text(self, text: str) -> int:
        self._texts.append(text)
        return len(self._texts) - 1

    def _add(self, device: str, shift_ns: int, host: bool) -> None:
        """Take a device's metrics, those shown at first before the others; the host's of one device only."""
        entry = self.log.devices[device]
        columns = [c for c in entry.values if host or c.kind is not ColumnKind.HOST]
        chosen = chosen_columns(columns)
        for column in [*chosen, *(c for c in columns if c not in chosen)]:
            series = entry.series(column).shifted(shift_ns)
            if series.bounds is not None:
                self.metrics.append(
                    LogLane(series, metric_title(series), column in chosen, 0, np.empty(0, np.int64))
                )

    def _rows(self) -> AnyArray:
        starts, values = [np.empty(0, np.int64)], [np.empty(0)]
        first = 0
        lanes = []
        for metric in self.metrics:
            start, value, sample = entries_of(metric.series)
            lanes.append(LogLane(metric.series, metric.title, metric.chosen, first, sample))
            starts.append(start)
            values.append(value)
            first += len(start)
        self.metrics = lanes
        count = np.array([len(metric.sample_of) for metric in lanes], np.int64)
        value = np.concatenate(values)
        low, high = extremes(count, value)
        self._memory = {
            "samples.start": np.concatenate(starts),
            "samples.value": value,
            "samples.ordinal": np.arange(first, dtype=np.uint32),
            "pyramid.low": low,
            "pyramid.high": high,
        }
        rows = np.zeros(len(lanes), ROW)
        rows["lane"] = np.arange(len(lanes))
        rows["kind"] = RowKind.SAMPLES
        rows["first"] = [metric.first for metric in lanes]
        rows["count"] = count
        rows["start"] = [int(metric.series.start_ns[0]) for metric in lanes]
        rows["end"] = [int(metric.series.end_ns[-1]) for metric in lanes]
        sizes = pyramid_sizes(count)
        rows["pyramid"] = np.cumsum(sizes) - sizes
        return rows

    def _lanes(self, rows: AnyArray, processes: AnyArray) -> AnyArray:
        lanes = np.zeros(len(self.metrics), LANE)
        lanes["kind"] = LaneKind.COUNTER
        lanes["process"] = np.repeat(np.arange(len(processes)), processes["lanes"])
        lanes["tid"] = 1
        lanes["name"] = [self._text(metric.title) for metric in self.metrics]
        lanes["first_row"] = np.arange(len(lanes))
        lanes["rows"] = 1
        lanes["samples"] = [len(metric.series) for metric in self.metrics]
        lanes["start"], lanes["end"] = rows["start"], rows["end"]
        return lanes

    def _map(self, name: str) -> AnyArray:
        column = self._memory.get(name)
        return super()._map(name) if column is None else column

    def _read_string(self, number: int) -> str:
        return self._texts[number]

    def scale(self, row_number: int) -> tuple[float, float]:
        """Return the least and greatest value that a row's drawing has room for."""
        least, most = self.metrics[row_number].series.bounds or (0.0, 0.0)
        return drawn_range(least, most)

    def close(self) -> None:
        """Nothing is mapped: what is in memory stays."""


def drawn_range(least: float, most: float) -> tuple[float, float]:
    """Return the range that values are drawn in: from zero, unless that leaves them flat."""
    if least > 0 and least >= FLAT * most:
        margin = (most - least) / 7 or most
        return max(0.0, least - margin), most
    return (min(least, 0.0), max(most, 0.0)) if least or most else (0.0, 1.0)


def chosen_columns(columns: Sequence[LogColumn]) -> list[LogColumn]:
    """Return the metrics shown at first: power, busy, temperature, memory traffic, the host's processor."""
    chosen: list[LogColumn] = []
    for kind in _CHOSEN:
        chosen += [column for column in columns if column.kind is kind][:1]
    for name in _CHOSEN_NAMES:
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
    start = np.empty(int(each.sum()), np.int64)
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
