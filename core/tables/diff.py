"""What changed from one trace, or part of one, to another: numbers, steps, categories, ops, kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ..base.arrays import I64, AnyArray
from .delta import delta, delta_key
from .metrics import Metric
from .noise import Comparison, Verdict
from .row_noise import JUDGED, OTHERS, UNKNOWN, judged_by, noise_of_runs, noise_of_steps, with_verdicts
from .schema import Column
from .summary import LEADING, SPREAD_COLUMNS, Summary
from .table import ABSENT, Table

CONTRIBUTION = Column("contribution", "of all change", "share", statistic=True)
WITH_DEVICE = ("ops", "modules")
"""Tables whose rows are ranked by their time on the host and on the device, added up."""
OF_COUNTS: Mapping[Verdict, Verdict] = {"slower": "higher", "faster": "lower"}
"""What is said of numbers that are no times."""


@dataclass(frozen=True)
class MetricChange:
    """A metric on both sides; `relative` is the change as a share of `before`, None where it has none.

    `noise` compares what repeats: the value of several earlier runs, else the same thing of each step; None
    where nothing does.
    """

    metric: Metric
    before: int | float | None
    noise: Comparison | None = None
    runs: int = 0  # earlier runs that the noise is of; 0: it is of the steps

    @property
    def change(self) -> int | float | None:
        """Now less before."""
        now = self.metric.value
        return None if now is None or self.before is None else now - self.before

    @property
    def relative(self) -> float | None:
        """The change as a share of what was before."""
        return None if self.change is None or not self.before else self.change / self.before

    @property
    def verdict(self) -> Verdict:
        """What the noise says of the change; "noise unknown" for what does not repeat."""
        if self.noise is None:
            return UNKNOWN
        verdict = self.noise.verdict
        return verdict if self.metric.unit == "ns" else OF_COUNTS.get(verdict, verdict)

    def exceeds(self, share: float, least_ns: int = 0) -> bool:
        """Tell whether it rose by more than a share of what was before; a time by `least_ns` at least, and
        beyond its noise where that is known.
        """
        change, time = self.change, self.metric.unit == "ns"
        if change is None or change <= 0 or (time and change < least_ns):
            return False
        if self.verdict in ("within the noise", "faster", "lower"):
            return False
        return self.relative is None or self.relative > share


@dataclass(frozen=True)
class Difference:
    """Two summaries held against each other; `tables` by name, the worst first (steps in order)."""

    before: Summary
    now: Summary
    metrics: Mapping[str, MetricChange]
    tables: Mapping[str, Table]


def difference(before: Summary, now: Summary, least_ns: int = 0) -> Difference:
    """Return what changed; rows of which no time changed by `least_ns` or more are left out of the tables.

    A name that a shortened summary may have left out is not called new: it counts among the others.
    """
    tables = {}
    for name in LEADING:
        if name not in now.tables or name not in before.tables:
            continue  # a summary made before there was such a table
        mine, other = _alike(name, now, before)
        table = delta(mine, other, "B against A")
        if name in JUDGED:
            table = with_verdicts(name, table, before, now)
        keys = ("self_cpu_ns", "self_device_ns") if name in WITH_DEVICE else (judged_by(name, mine),)
        tables[name] = _ranked(name, table, keys, least_ns)
    names = [*now.metrics, *(name for name in before.metrics if name not in now.metrics)]
    changes = {}
    for name in names:
        metric = now.metrics.get(name) or replace(before.metrics[name], value=None)
        past = before.metrics.get(name)
        noise = noise_of_runs(name, before, now)
        runs = 0 if noise is None else noise.before.count
        noise = noise or noise_of_steps(name, before, now)
        changes[name] = MetricChange(metric, None if past is None else past.value, noise, runs)
    return Difference(before, now, changes, tables)


def _alike(name: str, now: Summary, before: Summary) -> tuple[Table, Table]:
    """Return both sides' tables, each with a row of others where one of them was shortened."""
    mine, other = (_without_scatter(side.tables[name]) for side in (now, before))
    if name == "steps" or not (name in now.left_out or name in before.left_out):
        return mine, other
    here, there = mine.join(other)
    lonely = here[there == ABSENT], there[here == ABSENT]
    return (
        _pooled(name, mine, lonely[0], now, before),
        _pooled(name, other, lonely[1], before, now),
    )


def _without_scatter(table: Table) -> Table:
    scatter = {column.key for column in SPREAD_COLUMNS}
    return replace(table, columns=tuple(column for column in table.columns if column.key not in scatter))


def _pooled(name: str, table: Table, lonely: I64, own: Summary, other: Summary) -> Table:
    """Add up what the other side may have left out, and what this side has."""
    most = other.left_out[name].most if name in other.left_out else -1
    small = lonely[np.asarray(table.data[LEADING[name]])[lonely] <= most]
    rest = own.left_out.get(name)
    rows = np.setdiff1d(np.arange(len(table)), small)
    data: dict[str, AnyArray | list[str]] = {}
    for column in table.columns:
        values = table.data[column.key]
        if isinstance(values, list):
            data[column.key] = [*(values[at] for at in rows.tolist()), OTHERS]
        else:
            pooled = int(np.asarray(values)[small].sum()) + (rest.sums.get(column.key, 0) if rest else 0)
            data[column.key] = np.append(np.asarray(values)[rows], pooled)
    return replace(table, data=data)


def _ranked(name: str, table: Table, keys: tuple[str, ...], least_ns: int) -> Table:
    """Return the rows that changed, the worst first: by how much more there is of some columns together, with
    their share of all change of them. Steps stay in order.
    """
    changes = [np.asarray(table.data[delta_key(key)], np.int64) for key in keys]
    change: I64 = np.sum(changes, axis=0, dtype=np.int64)
    times = [np.abs(np.asarray(table.data[c.key])) for c in table.columns if c.change and c.unit == "ns"]
    counts = [np.asarray(table.data[c.key]) != 0 for c in table.columns if c.change and c.unit == "count"]
    moved = np.any([time >= max(1, least_ns) for time in times], axis=0)
    if not least_ns and counts:
        moved |= np.any(counts, axis=0)
    order = np.arange(len(change)) if name == "steps" else np.argsort(-change, kind="stable")
    order = order[moved[order]] if name != "steps" else order
    everything = int(np.abs(change).sum())
    share = change / everything if everything else np.full(len(change), np.nan)
    data: dict[str, AnyArray | list[str]] = {
        key: [values[at] for at in order.tolist()] if isinstance(values, list) else np.asarray(values)[order]
        for key, values in table.data.items()
    }
    data[CONTRIBUTION.key] = share[order]
    names = {column.key: table.texts(column.key) for column in table.columns if column.is_name}
    return replace(table, columns=(*table.columns, CONTRIBUTION), data=data, left_out=names)
