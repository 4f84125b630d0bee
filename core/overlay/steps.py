"""What the logs say of each of the profiler's steps: means, greatest values, energy, how much they cover."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..analysis.devices import Device
from ..analysis.table import Column, Table
from ..base.clock import Clocks
from ..ingest.columns import AnyArray
from ..query.views import Step
from ..telemetry.columns import ColumnKind
from ..telemetry.energy import Statistics, statistics
from ..telemetry.log import TelemetryLog
from .overlay import NO_CLOCKS, Overlay

COLUMNS = (
    Column("step", "step", "text"),
    Column("device", "device", "text"),
    Column("start_ns", "start", "ns"),
    Column("duration_ns", "duration", "ns"),
    Column("power_mean_w", "mean W"),
    Column("power_max_w", "max W"),
    Column("energy_j", "energy J"),
    Column("busy_mean", "mean busy %"),
    Column("temperature_max_c", "max °C"),
    Column("coverage", "covered", "share"),
)
_POWER, _BUSY, _HEAT = ColumnKind.POWER, ColumnKind.BUSY, ColumnKind.TEMPERATURE
NOTHING = Statistics(None, None, None, 0, 0, 0, None)
NO_STEPS = "the trace has no steps (ProfilerStep#N), so there is nothing to tell by step"
SAMPLED = "a value is the mean over a sampling interval of {interval}: steps shorter than that share one"


@dataclass(frozen=True)
class _Card:
    """A device of the trace and what a log says of it; its times moved into the trace's."""

    log: TelemetryLog
    name: str
    device: Device
    offset_ns: int

    def over(self, kind: ColumnKind, step: Step) -> Statistics | None:
        series = self.log.first_of(self.name, kind)
        if series is None:
            return None
        return statistics(series, step.start - self.offset_ns, step.end - self.offset_ns)

    @property
    def watts(self) -> float:
        series = self.log.first_of(self.name, ColumnKind.POWER)
        return (series.column.watts if series is not None else None) or 1.0


def steps_table(overlay: Overlay, clocks: Clocks = NO_CLOCKS) -> Table:
    """Return a row per step and device of its source, in time order; energies are of what samples cover."""
    cards = list(_cards(overlay, clocks))
    steps = overlay.steps_at(clocks)
    data: dict[str, list[float]] = {column.key: [] for column in COLUMNS[2:]}
    labels: list[str] = []
    names: list[str] = []
    with_steps = {step.id.source for step in steps}
    for step in steps:
        for card in cards:
            if card.device.source != step.id.source and card.device.source in with_steps:
                continue
            labels.append(step.label)
            names.append(overlay.device_name(card.device))
            for key, value in _row(card, step).items():
                data[key].append(math.nan if value is None else value)
    notes = [] if steps else [NO_STEPS]
    if steps and not cards:
        notes.append("no device of the trace is in a log")
    intervals = [one.log.interval_ns for one in overlay.placed if one.log.interval_ns]
    shortest = min((step.end - step.start for step in steps), default=0)
    if intervals and steps and shortest < max(intervals):
        notes.append(SAMPLED.format(interval=f"{max(intervals) / 1e6:.4g} ms"))
    columns: dict[str, AnyArray] = {
        key: np.array(values, np.int64 if key.endswith("_ns") else np.float64) for key, values in data.items()
    }
    table: dict[str, AnyArray | list[str]] = {"step": labels, "device": names, **columns}
    full = int((columns["coverage"] >= 1.0).sum())
    totals = {"steps": len(steps), "covered_rows": full}
    return Table("telemetry_steps", "Telemetry by step", "whole trace", COLUMNS, table, totals, tuple(notes))


def _row(card: _Card, step: Step) -> dict[str, float | None]:
    found = {kind: card.over(kind, step) for kind in (_POWER, _BUSY, _HEAT)}
    power, busy, heat = (found[kind] or NOTHING for kind in (_POWER, _BUSY, _HEAT))
    covers = [one.coverage for one in found.values() if one is not None]
    return {
        "start_ns": step.start,
        "duration_ns": step.end - step.start,
        "power_mean_w": _times(power.mean, card.watts),
        "power_max_w": _times(power.greatest, card.watts),
        "energy_j": power.joules,
        "busy_mean": busy.mean,
        "temperature_max_c": heat.greatest,
        "coverage": covers[0] if covers else 0.0,
    }


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _cards(overlay: Overlay, clocks: Clocks) -> Iterator[_Card]:
    base = overlay.base_ns
    for source, one in zip(overlay.log_sources, overlay.placed):
        for name, key in one.proposal.device_of.items():
            device = overlay.device_keys.get(key)
            if device is not None:
                yield _Card(one.log, name, device, one.proposal.shift_ns - base + clocks.offset(source))
