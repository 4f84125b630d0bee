"""Statistics of a lane of values over a range of time: a log's metric, or a counter of the trace itself."""

from __future__ import annotations

import re

import numpy as np

from ..base.arrays import F64, I64
from ..base.clock import Clocks
from ..index.format import RowKind
from ..query.views import Row
from ..trace import Trace
from .columns import WATTS, ColumnKind, LogColumn
from .energy import Statistics, statistics
from .overlay import Overlay
from .series import Series

_POWER = re.compile(r"power|pwr|watts?", re.IGNORECASE)


def statistics_of(
    trace: Trace, row: Row, span: tuple[int, int], clocks: Clocks
) -> tuple[LogColumn, Statistics] | None:
    """Return (column, statistics) of a row of values over [start, end) of trace time; None for other rows.

    A sample of a log is the mean over its interval. A counter's value holds until its next sample, the last
    one until the trace ends.
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
