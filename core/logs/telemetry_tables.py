"""The tables of telemetry: what logs are, each step or range, energy by name of device work, and the counters
that the trace itself holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import merge, sum_of
from ..base.clock import NO_CLOCKS, Clocks
from ..base.short_names import short_name
from ..index.format import LaneKind, RowKind
from ..query.views import Row, rank_titles
from ..tables.frame.frame_columns import work_of
from ..tables.frame.schema import Column, TableSchema
from ..tables.frame.scope import Scope
from ..tables.frame.table import Table, Value
from ..trace import Trace
from ..trace.devices import Device
from ..trace.step_choice import find_steps
from .clock_fit import Proposal
from .header import MEASURED, UNIT_WORDS, WATTS, ColumnKind, name_and_unit
from .log import TelemetryLog
from .overlay import Overlay, counter_series
from .series import FAR, Series, Statistics, attribute, statistics
from .stamps import SECOND


class MetricColumn(NamedTuple):
    """A column of the table by step: what a metric of a kind says of a range of time."""

    column: Column
    kind: ColumnKind
    of: Callable[[Statistics], float | None]
    in_watts: bool = False  # whether the log's unit of power is turned into watts


METRIC_COLUMNS = (
    MetricColumn(Column("power_mean_w", "mean W", "number"), ColumnKind.POWER, lambda one: one.mean, True),
    MetricColumn(Column("power_max_w", "max W", "number"), ColumnKind.POWER, lambda one: one.greatest, True),
    MetricColumn(Column("energy_j", "energy J", "number"), ColumnKind.POWER, lambda one: one.joules),
    MetricColumn(Column("busy_mean", "mean busy %", "number"), ColumnKind.BUSY, lambda one: one.mean),
    MetricColumn(
        Column("temperature_max_c", "max °C", "number"), ColumnKind.TEMPERATURE, lambda one: one.greatest
    ),
)
TELEMETRY_STEPS = TableSchema(
    "telemetry_steps",
    "Telemetry by step",
    (
        Column("step", "step", "text"),
        Column("device", "device", "text"),
        Column("log", "log", "text"),
        Column("start_ns", "start", "ns", moment=True),
        Column("duration_ns", "duration", "ns"),
        *(metric.column for metric in METRIC_COLUMNS),
        Column("coverage", "covered", "share"),
    ),
)
NOTHING = Statistics(None, None, None, 0, 0, 0, None)
NO_STEPS = "there are no steps, so there is no table by step"
NO_CARDS = "no device of the trace is in a log"
SAMPLED = "a value is the mean over a sampling interval of {interval}: what is shorter shares one"


class NamedRange(NamedTuple):
    """A range of trace time (ns) with a label; `source` has the devices that count, None: all have."""

    label: str
    start: int
    end: int
    source: int | None = None


class Card(NamedTuple):
    """A device of the trace and what a log says of it, in trace time."""

    device: Device
    log: str  # its file's name
    series: dict[ColumnKind, Series]
    interval_ns: int | None

    def statistics(self, kind: ColumnKind, named_range: NamedRange) -> Statistics | None:
        series = self.series.get(kind)
        return None if series is None else statistics(series, named_range.start, named_range.end)

    @property
    def power(self) -> Series | None:
        return self.series.get(ColumnKind.POWER)

    @property
    def watts(self) -> float:
        """What to multiply a value of power by to get watts."""
        power = self.power
        return (power.column.watts if power is not None else None) or 1.0


def steps_table(
    overlay: Overlay,
    within: tuple[int, int] | None = None,
    clocks: Clocks = NO_CLOCKS,
    name: str | None = None,
) -> Table:
    """Return a row per step (that reaches into `within`) and device of its source, in time order; `name` as
    in find_steps.
    """
    ranges = [
        NamedRange(label, start, end, source)
        for source in range(len(overlay.own.indexes))
        if (steps := find_steps(overlay.own, source, clocks, name)) is not None
        for label, start, end in zip(steps.labels, steps.starts.tolist(), steps.ends.tolist())
        if within is None or (start < within[1] and end > within[0])
    ]
    ranges.sort(key=lambda named_range: (named_range.start, named_range.end))
    table = ranges_table(overlay, ranges, clocks)
    return table if ranges else replace(table, notes=(NO_STEPS,))


def ranges_table(overlay: Overlay, ranges: Sequence[NamedRange], clocks: Clocks = NO_CLOCKS) -> Table:
    """Return a row per range and device: means weighted by time, energies of what samples cover."""
    cards = list(cards_of(overlay, clocks))
    known = {named_range.source for named_range in ranges}
    rows = [
        {"device": overlay.device_name(card.device), **_row(card, named_range)}
        for named_range in ranges
        for card in cards
        # Devices of a file without steps get the ranges of the other files.
        if named_range.source in (None, card.device.source) or card.device.source not in known
    ]
    notes = [] if cards else [NO_CARDS]
    intervals = [one.log.interval_ns for one in overlay.placed if one.log.interval_ns]
    shortest = min((named_range.end - named_range.start for named_range in ranges), default=0)
    if intervals and ranges and shortest < max(intervals):
        notes.append(SAMPLED.format(interval=f"{max(intervals) / 1e6:.4g} ms"))
    totals = {"covered_rows": sum(row["coverage"] >= 1.0 for row in rows)}
    return Table.from_rows(TELEMETRY_STEPS, "whole trace", rows, totals=totals, notes=notes)


def _row(card: Card, named_range: NamedRange) -> dict[str, Any]:
    said = {kind: card.statistics(kind, named_range) for kind in MEASURED}
    row = {
        "step": named_range.label,
        "log": card.log,
        "start_ns": named_range.start,
        "duration_ns": named_range.end - named_range.start,
        "coverage": next((one.coverage for one in said.values() if one is not None), 0.0),
    }
    for metric in METRIC_COLUMNS:
        value = metric.of(said[metric.kind] or NOTHING)
        factor = card.watts if metric.in_watts else 1.0
        row[metric.column.key] = None if value is None else value * factor
    return row


def cards_of(overlay: Overlay, clocks: Clocks) -> Iterator[Card]:
    """Yield the devices of the trace that a log speaks of, once for each such log."""
    for source, one in zip(overlay.log_sources, overlay.placed):
        offset = one.proposal.shift_ns - overlay.base_ns + clocks.offset(source)
        for name, key in one.proposal.device_of.items():
            device = overlay.device_keys.get(key)
            if device is not None and name in one.log.devices:
                series = ((kind, one.log.first_of(name, kind)) for kind in MEASURED)
                shifted = {kind: own.shifted(offset) for kind, own in series if own is not None}
                yield Card(device, one.name, shifted, one.log.interval_ns)


TELEMETRY_KERNELS = TableSchema(
    "telemetry_kernels",
    "Energy by kernel",
    (
        Column("device", "device", "text"),
        Column("log", "log", "text"),
        Column("name", "name", "text"),
        Column("count", "count", "count"),
        Column("total_ns", "total", "ns"),
        Column("energy_j", "energy J", "number"),
        Column("power_mean_w", "mean W", "number", statistic=True),
        Column("share", "of the energy", "share"),
    ),
)
TOO_SHORT, IDLE = "(ran too shortly to tell)", "(while none ran)"
STATEMENT = (
    "an estimate, not a measurement of single kernels: mean power over {interval} is shared out by "
    f"time, and only names that ran for {FAR} such intervals or more in all are listed"
)


def kernels_table(
    overlay: Overlay, within: tuple[int, int] | None = None, clocks: Clocks = NO_CLOCKS
) -> Table:
    """Return a row per device and name that ran for long, greatest energy first; then the rest of its energy.
    Work that runs at once shares the power evenly: the energies of a device add up to that of the time.
    """
    span = within or overlay.own.opening_span
    cards = [card for card in cards_of(overlay, clocks) if card.power is not None and card.interval_ns]
    rows = [row for card in cards for row in _rows(overlay, card, span, clocks)]
    intervals = sorted({card.interval_ns for card in cards if card.interval_ns})
    spacing = " and ".join(f"{interval / 1e6:.4g} ms" for interval in intervals)
    notes = (STATEMENT.format(interval=spacing),) if cards else (NO_CARDS,)
    # Two logs of one device tell the same energy twice: it has no sum.
    alone = len({card.device for card in cards}) == len(cards)
    totals: dict[str, Value] = (
        {"energy_j": float(np.sum(np.array([row["energy_j"] for row in rows])))} if alone else {}
    )
    scope = Scope(overlay.own, within, clocks=clocks).text
    return Table.from_rows(TELEMETRY_KERNELS, scope, rows, totals=totals, notes=notes)


def _rows(overlay: Overlay, card: Card, span: tuple[int, int], clocks: Clocks) -> Iterator[dict[str, Value]]:
    power, interval = card.power, card.interval_ns
    assert isinstance(power, Series) and interval
    scope = Scope(overlay.own, span, card.device.lanes, clocks=clocks, source=card.device.source)
    work = work_of(scope)
    names, starts, ends = work.name_number.astype(np.int64), work.start, work.end
    energy = attribute(power, names, starts, ends, span, interval)
    listed = [
        (short_name(work.index.string(one.name)), one.slices, one.duration_ns, one.joules, one.watts)
        for one in energy.names
    ]
    short = np.isin(names, np.array(energy.too_short, np.int64))
    if short.any():
        total = sum_of((ends - starts)[short])
        listed.append((TOO_SHORT, int(np.count_nonzero(short)), total, energy.too_short_joules, np.nan))
    idle = span[1] - span[0] - merge(starts, ends).length
    if idle > 0:
        listed.append((IDLE, 0, idle, energy.none_joules, np.nan))
    device, whole = overlay.device_name(card.device), energy.total_joules
    for name, count, total, joules, watts in listed:
        values = (device, card.log, name, count, total, joules, watts, joules / whole if whole else np.nan)
        yield dict(zip((column.key for column in TELEMETRY_KERNELS.columns), values))


COUNTERS = TableSchema(
    "counters",
    "Counters in the trace",
    (
        Column("process", "Process", "text"),
        Column("counter", "Counter", "text"),
        Column("series", "Series", "text"),
        Column("unit", "Unit", "text"),
        Column("samples", "Samples", "count"),
        Column("min", "Min", "number", statistic=True),
        Column("mean", "Mean", "number", statistic=True),
        Column("max", "Max", "number", statistic=True),
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
    """Return a row per series of each counter, in the order of the lanes. Only series with values in
    `within`, [start, end) of trace time in ns, have a row; without it all have.
    """
    span = within or trace.span_at(trace.clocks)
    rows: list[Mapping[str, Value]] = []
    for lane in trace.lanes:
        if lane.kind is not LaneKind.COUNTER:
            continue
        for row in trace.rows(lane):
            if row.kind is RowKind.SAMPLES and (entry := _counter_row(trace, row, span)):
                rows.append({**entry, "process": _process(trace, lane.source, lane.process.title)})
    scope = Scope(trace, within, clocks=trace.clocks).text
    return Table.from_rows(COUNTERS, scope, rows, notes=(HOLDS,) if rows else ())


def _counter_row(trace: Trace, row: Row, span: tuple[int, int]) -> dict[str, Value] | None:
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


LOGS = TableSchema(
    "logs",
    "Logs",
    (
        Column("path", "log", "text"),
        Column("tool", "tool", "text"),
        Column("format", "format", "text"),
        Column("devices", "devices", "object"),
        Column("rows", "rows", "count"),
        Column("missing", "without values", "count"),
        Column("unparsed", "lines not understood", "count"),
        Column("interval_s", "interval s", "number"),
        Column("utc_offset_s", "offset from UTC s", "number"),
        Column("lag_s", "lag s", "number"),
        Column("verdict", "of this run", "text"),
        Column("confidence", "confidence", "share"),
        Column("reason", "how the clock is known", "text"),
    ),
)
"""The keys of a description that are columns of the table of logs."""


def logs_table(descriptions: Sequence[Mapping[str, Any]], scope: str) -> Table:
    nothing = {column.key: "" if column.unit == "text" else None for column in LOGS.columns}
    rows = [
        {key: none if one[key] is None else one[key] for key, none in nothing.items()} for one in descriptions
    ]
    return Table.from_rows(LOGS, scope, rows)


def describe(log: TelemetryLog, proposal: Proposal | None = None) -> dict[str, Any]:
    """Return format, columns, devices, the account of lines, and the proposed clock (None if not asked)."""
    return {
        "path": log.path,
        "format": log.format,
        "tool": log.tool or None,
        "columns": [
            {
                "name": column.name,
                "unit": column.unit,
                "warning": column.warning or None,
                "meaning": column.meaning or None,
                "numeric": column.numeric,
            }
            for column in log.columns
        ],
        "devices": list(log.devices),
        "rows": log.rows,
        "missing": log.missing,
        "unparsed": log.unparsed,
        "messages": log.messages,
        "unparsed_lines": [{"line": u.line, "why": u.why, "text": u.text} for u in log.unparsed_lines],
        "notes": list(log.notes),
        "interval_s": None if log.interval_ns is None else round(log.interval_ns / SECOND, 3),
        "stamps": str(log.stamps),
        "utc_offset_s": None if proposal is None else proposal.utc_offset_s,
        "lag_s": None if proposal is None else round(proposal.lag_s, 6),
        "verdict": None if proposal is None else str(proposal.verdict),
        "confidence": None if proposal is None else proposal.confidence,
        "reason": None if proposal is None else proposal.reason,
        "device_of": {} if proposal is None else dict(proposal.device_of),
    }
