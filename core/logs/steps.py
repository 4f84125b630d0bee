"""Telemetry of each step: mean and greatest values, energy, and the share of the step that samples cover."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..base.arrays import AnyArray
from ..base.clock import Clocks
from ..tables.devices import Device
from ..tables.schema import Column, TableSchema
from ..tables.step_choice import find_steps
from ..tables.table import Table
from .columns import ColumnKind
from .energy import Statistics, statistics
from .more_sources import NO_CLOCKS
from .overlay import Overlay
from .series import Series

TELEMETRY_STEPS = TableSchema(
    "telemetry_steps",
    "Telemetry by step",
    (
        Column("step", "step", "text"),
        Column("device", "device", "text"),
        Column("log", "log", "text"),
        Column("start_ns", "start", "ns", moment=True),
        Column("duration_ns", "duration", "ns"),
        Column("power_mean_w", "mean W"),
        Column("power_max_w", "max W"),
        Column("energy_j", "energy J"),
        Column("busy_mean", "mean busy %"),
        Column("temperature_max_c", "max °C"),
        Column("coverage", "covered", "share"),
    ),
)
KINDS = (ColumnKind.POWER, ColumnKind.BUSY, ColumnKind.TEMPERATURE)
"""The kinds of metrics that the table has columns for; `_row` computes them."""
NOTHING = Statistics(None, None, None, 0, 0, 0, None)
NO_STEPS = "there are no steps, so there is no table by step"
NO_CARDS = "no device of the trace is in a log"
SAMPLED = "a value is the mean over a sampling interval of {interval}: what is shorter shares one"


@dataclass(frozen=True)
class NamedRange:
    """A range of trace time (ns) with a label; `source` has the devices that count, None: all have."""

    label: str
    start: int
    end: int
    source: int | None = None


@dataclass(frozen=True)
class Card:
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
    data: dict[str, list[float]] = {column.key: [] for column in TELEMETRY_STEPS.columns[3:]}
    labels: list[str] = []
    names: list[str] = []
    logs: list[str] = []
    known = {named_range.source for named_range in ranges}
    for named_range in ranges:
        for card in cards:
            source = card.device.source
            # Devices of a file without steps get the ranges of the other files.
            if named_range.source not in (None, source) and source in known:
                continue
            labels.append(named_range.label)
            names.append(overlay.device_name(card.device))
            logs.append(card.log)
            for key, value in _row(card, named_range).items():
                data[key].append(math.nan if value is None else value)
    columns: dict[str, AnyArray] = {
        key: np.array(values, np.int64 if key.endswith("_ns") else np.float64) for key, values in data.items()
    }
    notes = [] if cards else [NO_CARDS]
    intervals = [one.log.interval_ns for one in overlay.placed if one.log.interval_ns]
    shortest = min((named_range.end - named_range.start for named_range in ranges), default=0)
    if intervals and ranges and shortest < max(intervals):
        notes.append(SAMPLED.format(interval=f"{max(intervals) / 1e6:.4g} ms"))
    table: dict[str, AnyArray | list[str]] = {"step": labels, "device": names, "log": logs, **columns}
    totals = {"covered_rows": int(np.count_nonzero(columns["coverage"] >= 1.0))}
    return Table.from_arrays(TELEMETRY_STEPS, "whole trace", table, totals=totals, notes=tuple(notes))


def _row(card: Card, named_range: NamedRange) -> dict[str, float | None]:
    statistics = [card.statistics(kind, named_range) for kind in KINDS]
    power, busy, heat = (one or NOTHING for one in statistics)
    covers = [one.coverage for one in statistics if one is not None]
    return {
        "start_ns": named_range.start,
        "duration_ns": named_range.end - named_range.start,
        "power_mean_w": _times(power.mean, card.watts),
        "power_max_w": _times(power.greatest, card.watts),
        "energy_j": power.joules,
        "busy_mean": busy.mean,
        "temperature_max_c": heat.greatest,
        "coverage": covers[0] if covers else 0.0,
    }


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def cards_of(overlay: Overlay, clocks: Clocks) -> Iterator[Card]:
    """Yield the devices of the trace that a log speaks of, once for each such log."""
    for source, one in zip(overlay.log_sources, overlay.placed):
        offset = one.proposal.shift_ns - overlay.base_ns + clocks.offset(source)
        for name, key in one.proposal.device_of.items():
            device = overlay.device_keys.get(key)
            if device is not None and name in one.log.devices:
                series = {kind: one.log.first_of(name, kind) for kind in KINDS}
                yield Card(
                    device,
                    one.name,
                    {k: s.shifted(offset) for k, s in series.items() if s is not None},
                    one.log.interval_ns,
                )
