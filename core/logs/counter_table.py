"""Statistics of the counters in a trace: power, bandwidth, memory and whatever else was recorded beside the
slices.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..index.format import LaneKind, RowKind
from ..query.titles import rank_titles
from ..query.views import Row
from ..tables.schema import Column, TableSchema
from ..tables.scope import Scope
from ..tables.table import Table, Value
from ..trace import Trace
from .columns import WATTS
from .energy import statistics
from .header import UNIT_WORDS, name_and_unit
from .range_values import counter_series

COUNTERS = TableSchema(
    "counters",
    "Counters in the trace",
    (
        Column("process", "Process", "text"),
        Column("counter", "Counter", "text"),
        Column("series", "Series", "text"),
        Column("unit", "Unit", "text"),
        Column("samples", "Samples", "count"),
        Column("min", "Min", statistic=True),
        Column("mean", "Mean", statistic=True),
        Column("max", "Max", statistic=True),
    ),
)
HOLDS = "a value holds until the next sample, and the last one until the trace ends: means are over time"
SERIES_UNITS = {
    **{word: word for word in WATTS},
    **dict.fromkeys(("w", "Watts", "watts"), "W"),
    **dict.fromkeys(("Percent", "percent"), "%"),
    "GBps": "GB/s",
}
"""Name of a series that is called after its unit (as aiu-trace-analyzer's are) -> how the unit is written."""


def counters_table(trace: Trace, within: tuple[int, int] | None = None) -> Table:
    """Return a row per series of each counter, in the order of the lanes.

    Only series with values in `within`, [start, end) of trace time in ns, have a row; without it all have.
    """
    span = within or trace.span_at(trace.clocks)
    rows: list[Mapping[str, Value]] = []
    for lane in trace.lanes:
        if lane.kind is not LaneKind.COUNTER:
            continue
        for row in trace.rows(lane):
            if row.kind is RowKind.SAMPLES and (entry := _row(trace, row, span)):
                rows.append({**entry, "process": _process(trace, lane.source, lane.process.title)})
    data = {
        column.key: (
            [str(row[column.key]) for row in rows]
            if column.unit == "text"
            else np.array(
                [row[column.key] for row in rows], np.int64 if column.unit == "count" else np.float64
            )
        )
        for column in COUNTERS.columns
    }
    scope = Scope(trace, within, clocks=trace.clocks).text
    notes = (HOLDS,) if rows else ()
    return Table.from_arrays(COUNTERS, scope, data, notes=notes)


def _row(trace: Trace, row: Row, span: tuple[int, int]) -> dict[str, Value] | None:
    """Return what a series says of [start, end), None where it has no value there."""
    series = counter_series(trace, row, span, trace.clocks)
    values = series.value[~series.missing]
    if not len(values):
        return None
    mean = statistics(series, *span).mean
    lane = trace.lanes[row.lane]
    return {
        "counter": lane.title,
        "series": row.series,
        "unit": unit_of(lane.name, row.series),
        "samples": len(values),
        "min": float(values.min()),
        # Samples that hold for no time, as a single one at the very end, have a plain mean.
        "mean": float(values.mean()) if mean is None else mean,
        "max": float(values.max()),
    }


def unit_of(name: str, series: str) -> str:
    """Return the unit that a counter's series or name tells, "" where none is known."""
    if series in SERIES_UNITS:
        return SERIES_UNITS[series]
    if series in UNIT_WORDS:
        return series
    return name_and_unit(series)[1] or name_and_unit(name)[1]


def _process(trace: Trace, source: int, title: str) -> str:
    """Return a process's title with its rank, or its file's name, where there are several."""
    if len(trace.indexes) < 2:
        return title
    return f"{rank_titles(trace.members).get(source) or Path(trace.sources[source].path).name} · {title}"
