"""What ran on the devices: per name how often, how long, how evenly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np

from ..base.short_names import short_name
from ..ingest.columns import I64, AnyArray
from .devices import KERNEL_TYPES, kernel_types
from .groups import Groups, Labels, joined
from .kernel_arguments import argument_columns, argument_key, by_argument
from .scope import Scope
from .step_spans import StepSpans, step_spans
from .table import ARG, Column, Table, Values
from .work import KindRule, Work, work_of

GroupBy: TypeAlias = Literal["name", "short", "stream", "type", "step"]

COLUMNS = (
    Column("name", "name", "text"),
    Column("type", "type", "text"),
    Column("count", "count", "count"),
    Column("total_ns", "total", "ns"),
    Column("share", "share", "share"),
    Column("mean_ns", "mean", "ns", statistic=True),
    Column("median_ns", "median", "ns", statistic=True),
    Column("p95_ns", "p95", "ns", statistic=True),
    Column("min_ns", "min", "ns", statistic=True),
    Column("max_ns", "max", "ns", statistic=True),
    Column("stdev_ns", "stdev", "ns", statistic=True),
)
NO_TYPE = "other"
OUTSIDE = "outside the steps"
MIXED = "mixed"
TITLES = {
    "name": "Kernels",
    "short": "Kernels",
    "stream": "Streams",
    "type": "Kernel types",
    "step": "Kernels by step",
}


def kernels(
    scope: Scope, by: GroupBy | str = "name", rule: KindRule = kernel_types, arguments: Sequence[str] = ()
) -> Table:
    """Return the device work of a scope by name, short name, stream, type, step or argument (as `arg:KEY`);
    most time first, with sum and mean of further arguments.

    A step has the work that starts while it lasts on the host; what starts between steps stands apart.
    `stdev_ns` is the sample's (n - 1) and none for a single slice; `type` is "mixed" where there are several.
    """
    works = work_of(scope)
    labels = Labels()
    rows = {"name": _by_name(str), "short": _by_name(short_name), "stream": _by_stream}
    if by.startswith(ARG):
        rows[by] = by_argument(argument_key(by))
    if by == "step":
        rows["step"] = _by_step(step_spans(scope.trace, scope.clocks, scope.steps or None))
    kinds = [work.kinds(rule) for work in works]
    codes = [
        _by_type(kind, labels) if by == "type" else rows[by](work, labels) for work, kind in zip(works, kinds)
    ]
    groups = Groups(joined(codes), len(labels))
    stats = groups.statistics(joined([work.durations for work in works]))
    total = int(stats["total_ns"].sum())
    more, values = argument_columns(works, groups, arguments)
    data: dict[str, Values] = {
        "name": list(labels),
        "type": _types(groups, np.minimum(joined(kinds, np.uint8), len(KERNEL_TYPES))),
        "share": stats["total_ns"] / max(total, 1),
        **{column.key: stats[column.key] for column in COLUMNS if column.key in stats},
        **values,
    }
    positions = joined([work.positions for work in works], np.uint32)
    sources = np.repeat(
        np.array([work.device.source for work in works], np.int64), [len(work) for work in works]
    )
    return Table(
        "kernels",
        TITLES.get(by, f"Kernels by {by}"),
        scope.text,
        (*COLUMNS, *more),
        data,
        {"count": len(groups.codes), "total_ns": total},
        positions=positions[stats["longest"]],
        sources=sources[stats["longest"]],
        keys=("name",),
    ).sort("total_ns")


def _by_name(label: Callable[[str], str]) -> Callable[[Work, Labels], I64]:
    def codes(work: Work, labels: Labels) -> I64:
        places, numbers = work.distinct_names
        return labels.codes([label(text) for text in work.index.strings(numbers)])[places]

    return codes


def _types(groups: Groups, kinds: AnyArray) -> list[str]:
    """Return the type of each group's work."""
    names = (*KERNEL_TYPES, NO_TYPE)
    edges = zip(groups.least(kinds).tolist(), groups.most(kinds).tolist())
    return [names[low] if low == high else MIXED for low, high in edges]


def _by_stream(work: Work, labels: Labels) -> I64:
    names = [f"rank {work.rank} {work.title} stream {name}" for name in work.stream_names]
    return labels.codes(names)[work.streams]


def _by_step(steps: StepSpans | None) -> Callable[[Work, Labels], I64]:
    names = [] if steps is None else [f"step {label}" for label in steps.labels]

    def codes(work: Work, labels: Labels) -> I64:
        held = np.full(len(work), -1, np.int64) if steps is None else steps.holding(work.starts)
        present, places = np.unique(held, return_inverse=True)
        return labels.codes([names[at] if at >= 0 else OUTSIDE for at in present.tolist()])[places]

    return codes


def _by_type(kinds: AnyArray, labels: Labels) -> I64:
    present: list[int] = np.flatnonzero(np.bincount(kinds, minlength=256)).tolist()
    table = np.zeros(256, np.int64)
    names = (*KERNEL_TYPES, NO_TYPE)
    table[present] = labels.codes([names[min(kind, len(KERNEL_TYPES))] for kind in present])
    return table[kinds]
