"""Recurring gaps: gaps between the same two names as one group, and how often a single gap recurs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import U32, AnyArray, sum_of
from ..base.clock import NO_CLOCKS, Clocks
from ..base.short_names import comparable_name
from ..index.store import Index
from ..query.groups import dense
from ..query.views import Row
from .frame import Frame, FrameGroups
from .frame_columns import GAP_CLASSES, gap_rows
from .gap import gap_ended_by, gaps_of
from .shape import Ask, Shape, flagged, n, share_of_all, statistic, text, total
from .table import Table
from .table_rows import Values

if TYPE_CHECKING:
    from ..trace import Trace

FEW = 4096
"""Up to so many names a table of all pairs of names is cheaper than sorting millions of gaps."""


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
    gap, gaps = gap_ended_by(trace, row, at, clocks), gaps_of(trace, row, clocks)
    begins = lengths = np.empty(0, np.int64)
    if gap is not None and gaps is not None:
        sides = ((gaps.before, gap.before), (gaps.after, gap.after))
        befores, afters = (np.isin(names[of], _alike(index, names[of], int(names[at]))) for of, at in sides)
        same = befores & afters
        begins, lengths = gaps.starts[same], (gaps.ends - gaps.starts)[same]
    edges = np.array(steps, np.int64).reshape(-1, 2)
    low, high = (np.searchsorted(begins, edges[:, side]) for side in (0, 1))
    median = float(np.median(lengths)) if len(lengths) else 0.0
    return Recurrence(len(lengths), median, int(np.count_nonzero(high > low)), len(edges))


def _alike(index: Index, present: AnyArray, number: int) -> U32:
    """Return which of the present string numbers have the same name as `number`, by the names that stay the
    same from run to run.
    """
    _, numbers = dense(present)
    if len(numbers) > FEW:
        return np.array([number], np.uint32)
    label = comparable_name(index.string(number))
    return np.array([n for n in numbers.tolist() if comparable_name(index.string(n)) == label], np.uint32)


def recurring_gaps(work: Frame) -> Table:
    """Return a row per pair of names before and after a gap, over all streams, most idle time first.

    `class` is the class with the most time in the group. With steps, a column counts in how many of them a
    gap of the group begins. The jump leads to the slice that ended the longest gap of the group.
    """
    gaps, steps = gap_rows(work), work.steps
    around = {"before_name": gaps.names_of("before", comparable_name)}
    gaps = gaps.plus(**around, after_name=gaps.names_at(lambda part: part.name_number, comparable_name))
    totals = {"gaps": len(gaps), "idle_ns": sum_of(gaps.gap)}
    notes: tuple[str, ...] = ()
    shape = RECURRING
    if steps is None:
        shape = replace(shape, asks={key: ask for key, ask in shape.asks.items() if key != "steps"})
    else:
        totals["steps"] = len(steps)
        which = f"of {len(steps):,}, those in which such a gap begins"
        notes = (f"steps are {steps.choice}: {steps.reason}; {which}",)
    groups = gaps.group("before_name", "after_name", within="stream")
    return shape.of(groups, jump="gap", sort="idle_ns", totals=totals, notes=notes)


def _main_class(g: FrameGroups) -> Values:
    """Return the class with the most time in each group."""
    gaps = g.frame
    classes = range(len(GAP_CLASSES))
    times = np.stack([g.sums(np.where(gaps.gap_class == at, gaps.gap, 0)) for at in classes])
    return [GAP_CLASSES[at] for at in times.argmax(axis=0).tolist()]


def _distinct_steps(g: FrameGroups) -> Values:
    """Return for each group in how many different steps its gaps begin."""
    steps = g.frame.steps
    assert steps is not None
    held = steps.holding(g.frame.reach)
    pairs = np.unique(g.codes[held >= 0] * len(steps) + held[held >= 0])
    return np.bincount(pairs // len(steps), minlength=g.size).astype(np.int64)


RECURRING = Shape(
    "recurring",
    "Gaps by what surrounds them",
    {
        "before": ("before it", flagged(text("before_name"), "is_name")),
        "after": ("ended by", flagged(text("after_name"), "is_name")),
        "class": ("mostly", Ask(_main_class, "text")),
        "gaps": n(),
        "steps": ("in steps", Ask(_distinct_steps)),
        "idle_ns": total("gap"),
        "share": ("of idle", share_of_all("gap")),
        "mean_ns": flagged(statistic("mean_ns", "gap"), "statistic"),
        "median_ns": flagged(statistic("median_ns", "gap"), "statistic"),
        "max_ns": flagged(statistic("max_ns", "gap"), "statistic"),
    },
    {"keys": ("before", "after"), "chief": ("before", "after", "idle_ns", "class", "gaps")},
)
