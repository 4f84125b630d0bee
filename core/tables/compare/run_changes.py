"""What changed from one run to another, by kernel and by op, and when kernels ran that one of them lacks."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...base.arrays import EMPTY, I64, Intervals, merge, sum_of
from ...base.short_names import comparable_name
from ...query.groups import dense
from ..device.kernels import kernels
from ..device.untrusted import with_known_ends
from ..frame.frame_columns import timed_work
from ..frame.scope import Scope
from ..frame.table import Table
from ..host.ops import ops
from .comparable import CANNOT
from .compare import BOTH, PRESENCE, UNKNOWN, VERDICT, VERDICTS, WITHIN, Verdict, delta_key
from .diff import Difference, difference
from .summary import LEADING, Summary, summarise_work

TABLES = ("kernels", "ops")
"""The tables whose rows are compared; of the device, then of the host."""


class RowChange(NamedTuple):
    """A kernel or an op on both sides, as `diff` counts them: of a step where both runs have some, else in
    all.
    """

    table: str
    name: str
    before_ns: int
    now_ns: int
    presence: str  # in both runs, new or gone
    verdict: Verdict
    longest: tuple[int, int, int] | None  # the slice: of A (0) or B (1), source there, position

    @property
    def delta_ns(self) -> int:
        return self.now_ns - self.before_ns

    @property
    def is_noise(self) -> bool:
        return self.verdict == WITHIN


@dataclass(frozen=True, eq=False)
class RunChanges:
    """What changed from A to B. `rows` has by table the most changed first, behind them what is noise; `gone`
    is when kernels ran that only A has, `new` when those of B alone, each on the clocks of its own run.
    """

    difference: Difference
    per_step: bool
    rows: Mapping[str, tuple[RowChange, ...]]
    gone: Intervals
    new: Intervals

    @property
    def chief(self) -> RowChange | None:
        """The kernel or op that changed most beyond the noise, else of those whose noise is not known; None
        where all is noise.

        What only one run has counts for no more than all such rows of its table together: a kernel that took
        another's place (`-622 µs` of the old name, `+630 µs` of the new one) changed little.
        """
        rows = [row for table in TABLES for row in self.rows.get(table, ())]
        beyond = [row for row in rows if row.verdict not in (WITHIN, UNKNOWN, CANNOT)]
        unknown = [row for row in rows if row.verdict == UNKNOWN]
        together = {
            table: abs(sum_of(row.delta_ns for row in self.rows.get(table, ()) if row.presence != BOTH))
            for table in TABLES
        }

        def weight(row: RowChange) -> tuple[int, int]:
            size = abs(row.delta_ns)
            return (size if row.presence == BOTH else min(size, together[row.table])), size

        return max(beyond or unknown, key=weight, default=None)

    @property
    def are_noise(self) -> bool:
        """Whether kernels and ops changed, all of them within the noise."""
        rows = [row for table in TABLES for row in self.rows.get(table, ())]
        return bool(rows) and all(row.is_noise for row in rows)


def run_changes(before: Scope, now: Scope, names: tuple[str, str]) -> RunChanges:
    """Return what changed from one whole run to another, which have these names. Raises Cancelled."""
    scopes = before, now
    summaries = [summarise_work(scope, name) for scope, name in zip(scopes, names)]
    changes = difference(summaries[:1], summaries[1])
    counts = [_steps(summary) for summary in summaries]
    per_step = all(counts)
    tables = {"kernels": tuple(map(kernels, scopes)), "ops": tuple(map(ops, scopes))}
    rows = {
        name: _rows(
            name, changes.tables[name], counts if per_step else (1, 1), _longest_slices(name, tables[name])
        )
        for name in TABLES
    }
    gone, new = EMPTY, EMPTY
    if "device" not in changes.reasons:
        of_a, of_b = (set(summary.tables["kernels"].texts("name")) for summary in summaries)
        gone, new = _when(before, of_a - of_b), _when(now, of_b - of_a)
    return RunChanges(changes, per_step, rows, gone, new)


def _steps(summary: Summary) -> int:
    count = summary.metrics.get("step.count")
    return 0 if count is None else int(count.value or 0)


def _rows(
    name: str, table: Table, counts: Sequence[int], slices: Mapping[str, tuple[int, int, int]]
) -> tuple[RowChange, ...]:
    key = LEADING[name]
    values = zip(
        table.texts(table.columns[0].key),
        table.numbers(key).tolist(),
        table.numbers(delta_key(key)).tolist(),
        table.texts(PRESENCE),
        table.texts(VERDICT.key),
    )
    a, b = counts
    rows = [
        RowChange(
            name, text, round((ns - delta) / a), round(ns / b), presence, VERDICTS[verdict], slices.get(text)
        )
        for text, ns, delta, presence, verdict in values
    ]
    changed = [row for row in rows if row.delta_ns]
    return tuple(sorted(changed, key=lambda row: (row.is_noise, -abs(row.delta_ns))))


def _longest_slices(name: str, tables: Sequence[Table]) -> dict[str, tuple[int, int, int]]:
    """Return the longest slice of each row, by its name from run to run: in B, of what only A has in A."""
    slices: dict[str, tuple[int, int, int]] = {}
    for side in (1, 0):
        table = tables[side].sort(LEADING[name])
        positions = [] if table.positions is None else table.positions.tolist()
        sources = [0] * len(table) if table.sources is None else table.sources.tolist()
        own: dict[str, tuple[int, int, int]] = {}
        for text, source, position in zip(table.texts("name"), sources, positions):
            if position >= 0:
                own.setdefault(comparable_name(text), (side, source, position))
        slices = {**own, **slices}
    return slices


def _when(scope: Scope, names: Container[str]) -> Intervals:
    """Return when kernels of some names run, by their names from run to run."""
    work = timed_work(with_known_ends(scope))
    rows, numbers = dense(work.name.codes)
    is_one = np.array([comparable_name(work.name.texts[at]) in names for at in numbers.tolist()], np.bool_)
    at: I64 = np.flatnonzero(is_one[rows])
    return merge(work.start[at], work.start[at] + np.maximum(work.dur[at], 1))
