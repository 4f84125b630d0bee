"""Recurring gaps: gaps between the same two names as one group, and how often a single gap recurs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import I64, U32, AnyArray
from ..base.clock import Clocks
from ..base.short_names import comparable_name
from ..index.store import Index
from ..query.gaps import gaps_of
from ..query.views import Row
from .gap import gap_ended_by
from .groups import Groups, Labels, concatenated, dense
from .idle import CLASSES, Idle, StreamGaps
from .schema import Column, TableSchema
from .step_spans import StepSpans
from .table import Table, Value, Values

if TYPE_CHECKING:
    from ..trace import Trace

COLUMNS = (
    Column("before", "before it", "text", is_name=True),
    Column("after", "ended by", "text", is_name=True),
    Column("class", "mostly", "text"),
    Column("gaps", "gaps", "count"),
    Column("idle_ns", "idle", "ns"),
    Column("share", "of idle", "share"),
    Column("mean_ns", "mean", "ns", statistic=True),
    Column("median_ns", "median", "ns", statistic=True),
    Column("max_ns", "max", "ns", statistic=True),
)
STEPS = Column("steps", "in steps", "count")
CHIEF = ("before", "after", "idle_ns", "class", "gaps")

FEW = 4096
"""Up to so many names a table of all pairs of names is cheaper than sorting millions of gaps."""
NO_CLOCKS = Clocks()


@dataclass(frozen=True)
class Recurrence:
    """How often a gap between two names is met on its row, and in how many of the steps."""

    count: int
    median_ns: float
    steps: int
    of: int  # steps in all


def recurrence(
    trace: Trace, row: Row, at: int, steps: Sequence[tuple[int, int]] = (), clocks: Clocks = NO_CLOCKS
) -> Recurrence:
    """Return how often the gap that the slice at an index within its row ends comes back on its lane (of the
    host: on its row): between slices of the same names, beginning in which of the steps.

    Steps are (start, end) in trace time. Zero times where the slice ends no gap.
    """
    index, names = trace.indexes[row.source], trace.indexes[row.source].column("slices.name")
    gap = gap_ended_by(trace, row, at, clocks)
    of_work = trace.work_gaps(trace.lanes[row.lane], clocks)
    parts = [(np.empty(0, np.int64), np.empty(0, np.int64))]
    if gap is not None and of_work is not None:
        sides = (of_work.before, of_work.after)
        alike = [
            _alike(index, names[side], int(names[at])) for side, at in zip(sides, (gap.before, gap.after))
        ]
        same = np.isin(names[of_work.before], alike[0]) & np.isin(names[of_work.after], alike[1])
        parts.append((of_work.starts[same], (of_work.ends - of_work.starts)[same]))
    elif gap is not None:
        first, offset = int(index.rows[row.number]["first"]), clocks.offset(row.source, row.pid)
        present = names[first : first + row.count]
        befores, afters = (_alike(index, present, int(names[at])) for at in (gap.before, gap.after))
        for ends_it, starts, ends in gaps_of(index, row.number):
            same = np.isin(names[first + ends_it - 1], befores) & np.isin(names[first + ends_it], afters)
            parts.append((starts[same] + offset, (ends - starts)[same]))
    begins, lengths = (np.concatenate(columns) for columns in zip(*parts))
    edges = np.array(steps, np.int64).reshape(-1, 2)
    low, high = (np.searchsorted(begins, edges[:, side]) for side in (0, 1))
    median = float(np.median(lengths)) if len(lengths) else 0.0
    return Recurrence(len(lengths), median, int((high > low).sum()), len(edges))


def _alike(index: Index, present: AnyArray, number: int) -> U32:
    """Return which of the present string numbers have the same name as `number`, by the names that stay the
    same from run to run.
    """
    _, numbers = dense(present)
    if len(numbers) > FEW:
        return np.array([number], np.uint32)
    label = comparable_name(index.string(number))
    return np.array([n for n in numbers.tolist() if comparable_name(index.string(n)) == label], np.uint32)


def recurring_gaps(idle: Idle, steps: StepSpans | None = None) -> Table:
    """Return a row per pair of names before and after a gap, over all streams, most idle time first.

    `class` is the class with the most time in the group. With steps, a column counts in how many of them a
    gap of the group begins. The jump leads to the slice that ended the longest gap of the group.
    """
    streams = idle.streams
    before, after, groups = _by_neighbours(streams)
    length = concatenated([stream.ends - stream.starts for stream in streams])
    kinds = concatenated([stream.kinds.astype(np.int64) for stream in streams])
    stats = groups.statistics(length)
    by_class = np.stack([groups.sums(np.where(kinds == kind, length, 0)) for kind in range(len(CLASSES))])
    total = int(length.sum())
    data: dict[str, Values] = {
        "before": before,
        "after": after,
        "class": [CLASSES[kind] for kind in by_class.argmax(axis=0).tolist()],
        "gaps": stats["count"],
        "idle_ns": stats["total_ns"],
        "share": stats["total_ns"] / max(1, total),
        **{key: stats[key] for key in ("mean_ns", "median_ns", "max_ns")},
    }
    columns: tuple[Column, ...] = COLUMNS
    totals: dict[str, Value] = {"gaps": len(length), "idle_ns": total}
    notes: tuple[str, ...] = ()
    if steps is not None:
        held = steps.holding(concatenated([stream.starts for stream in streams]))
        columns = (*COLUMNS[:4], STEPS, *COLUMNS[4:])
        data[STEPS.key] = _distinct_steps(groups, held, len(steps))
        totals["steps"] = len(steps)
        which = f"of {len(steps):,}, those in which such a gap begins"
        notes = (f"steps are {steps.choice}: {steps.reason}; {which}",)
    ended = concatenated([stream.after for stream in streams], np.uint32)
    sources = np.repeat(
        np.array([stream.work.device.source for stream in streams], np.int64),
        [len(stream.after) for stream in streams],
    )
    return Table.from_arrays(
        TableSchema(
            "recurring", "Gaps by what lies around them", columns, keys=("before", "after"), chief=CHIEF
        ),
        idle.scope,
        data,
        totals=totals,
        notes=notes,
        positions=ended[stats["longest"]],
        sources=sources[stats["longest"]],
    ).sort("idle_ns")


def _by_neighbours(streams: Sequence[StreamGaps]) -> tuple[list[str], list[str], Groups]:
    """Group gaps by the names around them; return their two names, and the groups."""
    labels = Labels()
    before, after = (
        concatenated(
            [labels.of_slices(one.work.index, getattr(one, side), comparable_name) for one in streams]
        )
        for side in ("before", "after")
    )
    names = list(labels)
    both = before * max(1, len(names)) + after  # a pair of names as one number
    if len(names) <= FEW:
        codes, pairs = dense(both)
    else:
        pairs, codes = np.unique(both, return_inverse=True)
    first, second = (part.tolist() for part in np.divmod(pairs, max(1, len(names))))
    return [names[at] for at in first], [names[at] for at in second], Groups(codes, len(pairs))


def _distinct_steps(groups: Groups, held: I64, steps: int) -> I64:
    """Return for each group in how many different steps its members lie; a step of -1 is none."""
    inside = held >= 0
    pairs = np.unique(groups.codes[inside] * steps + held[inside])
    return np.bincount(pairs // steps, minlength=groups.size).astype(np.int64)
