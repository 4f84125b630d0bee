"""What a telemetry log says at a time, as details: value and unit, meaning, interval, the log's own line."""

from __future__ import annotations

from tracelane.core.base.units import format_share
from tracelane.core.logs.overlay import Overlay, Reading
from tracelane.core.logs.range_values import statistics_of
from tracelane.core.trace import Trace

from ..clock import TimeWriter
from ..things import Thing
from .fields import Field

NO_VALUE = "none: a gap, or the card was not ready"


def reading_of(trace: Overlay, thing: Thing) -> Reading | None:
    """Return the reading of a log at a thing's place, None for a thing that is not part of a log."""
    return trace.reading_at(thing.row, thing.index)


def reading_title(reading: Reading) -> str:
    """Return metric and value in a line."""
    column = reading.metric.column
    return f"{column.name} {_value(reading)}" if reading.value is not None else f"{column.name}: {NO_VALUE}"


def reading_fields(trace: Overlay, stamps: TimeWriter, thing: Thing, reading: Reading) -> list[Field]:
    """Return a reading's fields."""
    column = reading.metric.column
    least, most = reading.metric.series.bounds or (0.0, 0.0)
    fields = [
        Field("value", _value(reading) if reading.value is not None else NO_VALUE),
        Field("mean over", f"{stamps.relative(thing.start)} .. {stamps.relative(thing.end)}"),
        Field("device", thing.lane.process.title),
        Field("in the log", f"{least:.15g} .. {most:.15g} {column.unit}".rstrip()),
    ]
    if column.meaning:
        fields.append(Field("meaning", column.meaning))
    if (wall := stamps.wall(thing.start)) is not None:
        fields.append(Field("wall clock", wall))
    one = trace.log_of(thing.row.source)
    if one is not None:
        fields.append(Field("clock", one.clock_text(stamps.clocks, thing.row.source)))
    if reading.line:
        fields.append(Field(f"line {reading.line:,}", reading.text.strip() or "(cannot be read again)"))
    return fields


def range_fields(trace: Trace, stamps: TimeWriter, thing: Thing, span: tuple[int, int] | None) -> list[Field]:
    """Return a summary of a lane's values in the range, nothing without a range."""
    of_range = None if span is None else statistics_of(trace, thing.row, span, stamps.clocks)
    if of_range is None:
        return []
    column, statistics = of_range
    if statistics.mean is None or statistics.least is None or statistics.greatest is None:
        return [Field("in the range", "no value")]
    unit = f" {column.unit}".rstrip()
    words = f"mean {statistics.mean:.6g}{unit}, {statistics.least:.6g} .. {statistics.greatest:.6g}{unit}"
    if statistics.joules is not None:
        words += f", {statistics.joules:.6g} J"
    if statistics.coverage < 1:
        words += f"; {format_share(statistics.coverage)} of it have values"
    return [Field("in the range", words)]


def _value(reading: Reading) -> str:
    return f"{reading.value:.15g} {reading.metric.column.unit}".rstrip()
