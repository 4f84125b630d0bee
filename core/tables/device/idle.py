"""Why streams were idle: every gap, whether the host was late, the launch that ended it; gaps that recur."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...base.arrays import U32, AnyArray, distinct, sum_of
from ...base.clock import NO_CLOCKS, Clocks
from ...base.short_names import comparable_name, short_name
from ...index.store import Index
from ...query.chain import enclosing
from ...query.groups import dense
from ...query.views import Row
from ..frame.frame import Frame, FrameGroups
from ..frame.frame_columns import KERNEL_WAIT_NS, gap_classes, gap_rows, timed_work
from ..frame.metrics import Metric, ratio
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.shape import (
    ON_STREAM,
    Aggregate,
    Shape,
    first,
    flagged,
    moment,
    n,
    ratio_of,
    share_of_all,
    statistic,
    text,
    total,
)
from ..frame.table import Table, Tables
from ..frame.table_rows import Values
from ..frame.text_column import TextColumn
from ..frame.work_device import GAP_CLASSES
from .device_state import device_states
from .gap import gap_ended_by, gaps_of
from .states import CAUSES, IDLE
from .untrusted_periods import unknown_time, with_known_gaps

if TYPE_CHECKING:
    from ...trace import Trace


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
    """Return the present string numbers whose names are the same as that of `number` from run to run."""
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
        shape = replace(
            shape,
            aggregates={key: aggregate for key, aggregate in shape.aggregates.items() if key != "steps"},
        )
    else:
        totals["steps"] = len(steps)
        which = f"of {len(steps):,}, those in which such a gap begins"
        notes = (f"steps are {steps.choice}: {steps.reason}; {which}",)
    groups = gaps.group("before_name", "after_name", within="stream")
    return shape.of(groups, jump="gap", sort="idle_ns", totals=totals, notes=notes)


def _main_class(g: FrameGroups) -> Values:
    gaps = g.frame
    classes = range(len(GAP_CLASSES))
    times = np.stack([g.sums(np.where(gaps.gap_class == at, gaps.gap, 0)) for at in classes])
    return [GAP_CLASSES[at] for at in times.argmax(axis=0).tolist()]


def _distinct_steps(g: FrameGroups) -> Values:
    """Return for each group in how many different steps its gaps begin."""
    steps = g.frame.steps
    assert steps is not None
    held = steps.holding(g.frame.reach)
    pairs = distinct(g.codes[held >= 0] * len(steps) + held[held >= 0])
    return np.bincount(pairs // len(steps), minlength=g.size).astype(np.int64)


RECURRING = Shape(
    "recurring",
    "Gaps by what surrounds them",
    {
        "before": ("before it", flagged(text("before_name"), "is_name")),
        "after": ("ended by", flagged(text("after_name"), "is_name")),
        "class": ("mostly", Aggregate(_main_class, "text")),
        "gaps": n(),
        "steps": ("in steps", Aggregate(_distinct_steps)),
        "idle_ns": total("gap"),
        "share": ("of idle", share_of_all("gap")),
        "mean_ns": flagged(statistic("mean_ns", "gap"), "statistic"),
        "median_ns": flagged(statistic("median_ns", "gap"), "statistic"),
        "max_ns": flagged(statistic("max_ns", "gap"), "statistic"),
    },
    {"keys": ("before", "after"), "chief": ("before", "after", "idle_ns", "class", "gaps")},
)


GAPS = 20
"""How many of the longest gaps are listed unless --limit says otherwise."""


def _of_class(number: int, name: str) -> Mapping[str, Aggregate | tuple[str, Aggregate]]:
    """Return the columns of one class of gaps: ns, gaps, share of the idle time."""
    ns = total(lambda work: np.where(work.gap_class == number, work.gap, 0))
    return {
        f"{name}_ns": ns,
        f"{name}_gaps": n(lambda work: (work.gap_class == number) & (work.gap > 0)),
        f"{name}_share": (f"{name.replace('_', ' ')} %", ratio_of(ns, total("gap"))),
    }


def _launched_after(gaps: Frame) -> AnyArray:
    """Return how long after its begin the launch began that ended each gap; none where it is not known."""
    after: AnyArray = gaps.call_start - gaps.reach
    return after if (gaps.launch >= 0).all() else np.where(gaps.launch < 0, np.nan, after)


STREAMS = Shape(
    "streams",
    "Idle time",
    {
        **ON_STREAM,
        "slices": n(),
        "gaps": n(lambda work: work.gap > 0),
        "idle_ns": total("gap"),
        **{
            key: aggregate
            for at, name in enumerate(GAP_CLASSES)
            for key, aggregate in _of_class(at, name).items()
        },
    },
    {"chief": ("stream", "device", "idle_ns", "host_wait_share", "kernel_wait_share", "rank")},
)
LONGEST_GAPS = Shape(
    "gaps",
    "Longest gaps",
    {
        "start_ns": ("at", moment("reach")),
        "gap_ns": first("gap"),
        "after": ("ended by", flagged(text("name"), "is_name")),
        "class": first(lambda gaps: TextColumn(gaps.gap_class, GAP_CLASSES), "text"),
        "launch": flagged(first(lambda gaps: gaps.names_of("launch"), "text"), "is_name"),
        "launch_after_ns": ("launched after", first(_launched_after)),
        **ON_STREAM,
        "before": ("before it", flagged(first(lambda gaps: gaps.names_of("before"), "text"), "is_name")),
        "host": ("what the CPU did", Aggregate(lambda g: list(map(_around, g.parts)), "text")),
    },
)

DEVICES = TableSchema(
    "devices",
    "No stream does anything",
    (
        Column("rank", "rank", "id"),
        Column("device", "device", "text"),
        Column("idle_ns", "idle", "ns"),
        Column("idle_share", "idle %", "share"),
        *(Column(f"{name}_ns", name.replace("_", " "), "ns") for name in GAP_CLASSES),
        Column("of_ns", "of", "ns"),
    ),
    keys=("rank", "device"),
    is_drawn=False,
)


def analyse_idle(
    scope: Scope, kernel_wait: float = 30.0, recurring: bool = False, limit: int | None = None
) -> Tables:
    """Return gaps by stream, the longest, and idle devices; or gaps that recur. `kernel_wait` is in µs."""
    work = idle(scope, round(kernel_wait * 1000))
    tables: dict[str, Callable[[], Table]] = {
        "streams": lambda: idle_table(work),
        "gaps": lambda: gap_table(work, limit or GAPS),
    }
    if scope.lanes is None and scope.where is None:  # of some lanes it would not be what the device did
        tables["devices"] = lambda: idle_devices(scope)
    if recurring:
        tables = {"idle": lambda: recurring_gaps(work)}
    return Tables(work.scope.text, scope.origin, tables)


def idle_metrics(scope: Scope) -> list[Metric]:
    """Return the idle time of all streams by its cause."""
    gaps = gap_rows(idle(scope))
    metrics = []
    for number, name in enumerate(GAP_CLASSES):
        lengths = gaps.gap[gaps.gap_class == number]
        metrics.append(Metric(f"idle.{name}", "ns", sum_of(lengths)))
        metrics.append(Metric(f"idle.{name}_gaps", "count", len(lengths)))
    return metrics


def idle(scope: Scope, kernel_wait_ns: int = KERNEL_WAIT_NS) -> Frame:
    """Return the work of a scope with the classes of its gaps by a limit.

    A gap runs from the latest end so far, so it is never negative and no time counts twice.
    """
    work = with_known_gaps(timed_work(scope))
    return work.plus(gap_class=gap_classes(work, kernel_wait_ns))


def idle_table(work: Frame) -> Table:
    """Return a row per stream."""
    notes = ("gaps run from the latest end so far; HTA takes the previous row's end, which may be earlier",)
    return STREAMS.of(work.group("stream"), totals={"idle_ns": sum_of(work.gap)}, notes=notes)


def idle_devices(scope: Scope) -> Table:
    """Return for how long no stream of each device did anything, and what it waited for then."""
    rows = []
    for one in device_states(scope):
        is_idle = one.states == IDLE
        causes = np.zeros(len(CAUSES), np.int64)
        unknown = unknown_time(scope, one.device.device).covered(one.edges[:-1], one.edges[1:])
        np.add.at(causes, one.causes[is_idle], (np.diff(one.edges) - unknown)[is_idle])
        left_out = sum_of(unknown[is_idle])
        ns = {"idle_ns": one.ns["idle"] - left_out, "of_ns": one.of_ns - left_out}
        ns |= {f"{name}_ns": cause for name, cause in zip(GAP_CLASSES, causes.tolist())}
        share = ratio(ns["idle_ns"], ns["of_ns"])
        rows.append({"rank": one.device.rank, "device": one.device.title, "idle_share": share, **ns})
    return Table.from_rows(DEVICES, scope.text, rows)


def gap_table(work: Frame, limit: int = GAPS) -> Table:
    """Return the longest gaps of all streams, longest first."""
    return LONGEST_GAPS.of(gap_rows(work).top("gap", limit).each(), jump="gap")


def _around(gap: Frame) -> str:
    """Return the names of the slices around the launch that ended a gap."""
    launch = int(gap.launch[0])
    around = enclosing(gap.index, launch)[:3] if launch >= 0 else []
    names = gap.index.column("slices.name")
    return " < ".join(short_name(gap.index.string(int(names[at]))) for at in around)
