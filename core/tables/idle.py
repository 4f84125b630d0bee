"""Why streams were idle: every gap, whether the host was late, and the launch that ended it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..base.arrays import AnyArray, sum_of
from ..base.short_names import short_name
from ..query.chain import enclosing
from .device_state import CAUSES, IDLE, device_states
from .frame import Frame, Words
from .frame_columns import GAP_CLASSES, KERNEL_WAIT_NS, gap_classes, gap_rows, timed_work
from .gap_groups import recurring_gaps
from .metrics import Metric, ratio
from .schema import Column, TableSchema
from .scope import Scope
from .shape import Ask, Shape, first, flagged, moment, n, ratio_of, text, total
from .table import Table, Tables

GAPS = 20
"""How many of the longest gaps are listed unless --limit says otherwise."""


def _of_class(number: int, name: str) -> Mapping[str, Ask | tuple[str, Ask]]:
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
        "rank": text("rank"),
        "device": text("device"),
        "stream": text("stream_name"),
        "slices": n(),
        "gaps": n(lambda work: work.gap > 0),
        "idle_ns": total("gap"),
        **{key: ask for at, name in enumerate(GAP_CLASSES) for key, ask in _of_class(at, name).items()},
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
        "class": first(lambda gaps: Words(gaps.gap_class, GAP_CLASSES), "text"),
        "launch": flagged(first(lambda gaps: gaps.names_of("launch"), "text"), "is_name"),
        "launch_after_ns": ("launched after", first(_launched_after)),
        "rank": text("rank"),
        "device": text("device"),
        "stream": text("stream_name"),
        "before": ("before it", flagged(first(lambda gaps: gaps.names_of("before"), "text"), "is_name")),
        "host": ("what the CPU did", Ask(lambda g: list(map(_around, g.parts)), "text")),
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
    """Return the gaps by stream, the longest ones, and when no stream of a device did anything; or gaps that
    recur. `kernel_wait` is in µs.
    """
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
    work = timed_work(scope)
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
        np.add.at(causes, one.causes[is_idle], np.diff(one.edges)[is_idle])
        idle_ns = one.ns["idle"]
        rows.append(
            {
                "rank": one.device.rank,
                "device": one.device.title,
                "idle_ns": idle_ns,
                "idle_share": ratio(idle_ns, one.of_ns),
                **{f"{name}_ns": ns for name, ns in zip(GAP_CLASSES, causes.tolist())},
                "of_ns": one.of_ns,
            }
        )
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
