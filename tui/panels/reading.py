"""What a telemetry log says at a time, as details: value and unit, meaning, interval, the log's own line."""

from __future__ import annotations

from tracelane.core.overlay.overlay import Overlay, Reading

from ..clock import Stamps
from ..things import Thing
from .fields import Field

NO_VALUE = "none: a gap, or the card was not ready"


def reading_of(trace: Overlay, thing: Thing) -> Reading | None:
    """Return what the log says where a thing lies, None for what is no log's."""
    return trace.reading_at(thing.row, thing.index)


def reading_title(reading: Reading) -> str:
    """Return metric and value in a line."""
    column = reading.metric.column
    return f"{column.name} {_value(reading)}" if reading.value is not None else f"{column.name}: {NO_VALUE}"


def reading_fields(trace: Overlay, stamps: Stamps, thing: Thing, reading: Reading) -> list[Field]:
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


def _value(reading: Reading) -> str:
    return f"{reading.value:.15g} {reading.metric.column.unit}".rstrip()
