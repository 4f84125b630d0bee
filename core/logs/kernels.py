"""Energy by name of device work: sampled means of a card's power, shared out by time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..base.arrays import AnyArray, sum_of
from ..base.clock import Clocks
from ..base.intervals import merge
from ..base.short_names import short_name
from ..tables.frame_columns import work_of
from ..tables.schema import Column, TableSchema
from ..tables.scope import Scope
from ..tables.table import Table, Value
from .energy import FAR, attribute
from .more_sources import NO_CLOCKS
from .overlay import Overlay
from .series import Series
from .steps import NO_CARDS, Card, cards_of

TELEMETRY_KERNELS = TableSchema(
    "telemetry_kernels",
    "Energy by kernel",
    (
        Column("device", "device", "text"),
        Column("log", "log", "text"),
        Column("name", "name", "text"),
        Column("count", "count", "count"),
        Column("total_ns", "total", "ns"),
        Column("energy_j", "energy J"),
        Column("power_mean_w", "mean W", statistic=True),
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
    columns = {
        column.key: _column(column, [row[column.key] for row in rows]) for column in TELEMETRY_KERNELS.columns
    }
    intervals = sorted({card.interval_ns for card in cards if card.interval_ns})
    spacing = " and ".join(f"{interval / 1e6:.4g} ms" for interval in intervals)
    notes = (STATEMENT.format(interval=spacing),) if cards else (NO_CARDS,)
    # Two logs of one device tell the same energy twice: it has no sum.
    alone = len({card.device for card in cards}) == len(cards)
    totals: dict[str, Value] = {"energy_j": float(np.sum(columns["energy_j"]))} if alone else {}
    scope = Scope(overlay.own, within, clocks=clocks).text
    return Table.from_arrays(TELEMETRY_KERNELS, scope, columns, totals=totals, notes=notes)


def _column(column: Column, values: list[Value]) -> AnyArray | list[str]:
    if column.unit == "text":
        return [str(value) for value in values]
    return np.array(values, np.int64 if column.unit in ("ns", "count") else np.float64)


def _rows(overlay: Overlay, card: Card, span: tuple[int, int], clocks: Clocks) -> Iterator[dict[str, Value]]:
    power, interval = card.power, card.interval_ns
    assert isinstance(power, Series) and interval
    scope = Scope(overlay.own, span, card.device.lanes, clocks=clocks, source=card.device.source)
    work = work_of(scope)
    columns = (work.name_number.astype(np.int64), work.start, work.end)
    energy = attribute(power, *columns, span, interval)
    names, starts, ends = columns
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
