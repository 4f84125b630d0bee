"""What ran on the devices: per name how often, how long, how evenly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np

from ..base.short_names import short_name
from ..ingest.columns import F64, I64, AnyArray
from .devices import KERNEL_TYPES, kernel_types
from .kernel_arguments import argument_columns, argument_key, by_argument
from .scope import Scope
from .step_spans import StepSpans, step_spans
from .table import ARG, Column, Table
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
STATISTICS = (*(column.key for column in COLUMNS if column.unit in ("ns", "count")), "longest")
MIXED = "mixed"
BITS = 63
"""Of a sort key that holds group and duration in one int64."""


def kernels(
    scope: Scope, by: GroupBy | str = "name", rule: KindRule = kernel_types, arguments: Sequence[str] = ()
) -> Table:
    """Return the device work of a scope by name, short name, stream, type, step or argument (as `arg:KEY`);
    most time first, with sum and mean of further arguments.

    A step has the work that starts while it lasts on the host; what starts between steps stands apart.
    `stdev_ns` is the sample's (n - 1) and none for a single slice; `type` is "mixed" where there are several.
    """
    works = work_of(scope)
    labels: dict[str, int] = {}
    group = {"name": _by_name(lambda raw: raw), "short": _by_name(short_name), "stream": _by_stream}
    if by.startswith(ARG):
        group[by] = by_argument(argument_key(by))
    if by == "step":
        group["step"] = _by_step(step_spans(scope.trace, scope.clocks, scope.steps or None))
    kinds = [work.kinds(rule) for work in works]
    codes = []
    for work, kind in zip(works, kinds):
        codes.append(_by_type(kind, labels) if by == "type" else group[by](work, labels))
    code = _joined(codes, np.int64)
    duration = _joined([work.durations for work in works], np.int64)
    stats = statistics(code, duration, len(labels))
    at = stats["longest"]
    types = _types(code, np.minimum(_joined(kinds, np.uint8), len(KERNEL_TYPES)), len(labels))
    position = _joined([work.positions for work in works], np.uint32)[at]
    sources = np.repeat([work.device.source for work in works], [len(work) for work in works])
    total = int(stats["total_ns"].sum())
    data: dict[str, AnyArray | list[str]] = {
        "name": list(labels),
        "type": types,
        **{key: stats[key] for key in ("count", "total_ns")},
        "share": stats["total_ns"] / max(total, 1),
        **{key: stats[key] for key in ("mean_ns", "median_ns", "p95_ns", "min_ns", "max_ns", "stdev_ns")},
    }
    more, values = argument_columns(works, code, len(labels), arguments)
    data |= values
    order = np.argsort(-stats["total_ns"], kind="stable")
    ordered = {key: [c[i] for i in order] if isinstance(c, list) else c[order] for key, c in data.items()}
    titles = {
        "name": "Kernels",
        "short": "Kernels",
        "stream": "Streams",
        "type": "Kernel types",
        "step": "Kernels by step",
    }
    return Table(
        "kernels",
        titles.get(by, f"Kernels by {by}"),
        scope.text,
        (*COLUMNS, *more),
        ordered,
        {"count": len(code), "total_ns": total},
        positions=position[order],
        sources=sources.astype(np.int64)[at][order] if len(works) else np.empty(0, np.int64),
        keys=("name",),
    )


def statistics(group: I64, values: I64, groups: int) -> dict[str, AnyArray]:
    """Return count, sum, mean, median, p95, min, max, stdev and the first place of the longest per group.

    Sums are int64; every group 0 .. groups-1 has at least one value.
    """
    if not len(values):
        return dict.fromkeys(STATISTICS, np.empty(0, np.int64))
    ordered = _ordered(group, values, groups)
    count = np.bincount(group, minlength=groups).astype(np.int64)
    begins = np.cumsum(count) - count
    total = np.add.reduceat(ordered, begins)
    mean = total / count
    lowest, highest = ordered[begins], ordered[begins + count - 1]
    squares = ordered - np.repeat(mean, count)
    np.square(squares, out=squares)
    with np.errstate(invalid="ignore", divide="ignore"):
        stdev = np.sqrt(np.add.reduceat(squares, begins) / (count - 1))
    stdev[count == 1] = np.nan
    longest = np.zeros(groups, np.int64)
    hits = np.flatnonzero(values == highest[group])[::-1]
    longest[group[hits]] = hits  # the last one written is the first in order
    return {
        "count": count,
        "total_ns": total,
        "mean_ns": mean,
        "median_ns": _quantile(ordered, begins, count, 0.5),
        "p95_ns": _quantile(ordered, begins, count, 0.95),
        "min_ns": lowest,
        "max_ns": highest,
        "stdev_ns": stdev,
        "longest": longest,
    }


def _ordered(group: I64, values: I64, groups: int) -> I64:
    """Return the values by (group, value)."""
    low = int(values.min())
    width = (int(values.max()) - low).bit_length()
    if width + groups.bit_length() <= BITS:
        keys = (group << width) | (values - low)
        keys.sort()
        keys &= (1 << width) - 1
        keys += low
        return keys
    return values[np.lexsort((values, group))]


def _quantile(ordered: I64, begins: I64, count: I64, share: float) -> F64:
    """Return a quantile of each group, linear between its two neighbours."""
    place = (count - 1) * share
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, count - 1)
    low = ordered[begins + below]
    result: F64 = low + (ordered[begins + above] - low) * (place - below)
    return result


def _by_name(shown: Callable[[str], str]) -> Callable[[Work, dict[str, int]], I64]:
    def group(work: Work, labels: dict[str, int]) -> I64:
        places, numbers = work.distinct_names
        return _numbered([shown(raw) for raw in work.index.strings(numbers)], labels)[places]

    return group


def _types(group: I64, kinds: AnyArray, groups: int) -> list[str]:
    """Return the type of each group's work."""
    low, high = np.full(groups, len(KERNEL_TYPES)), np.zeros(groups, np.int64)
    np.minimum.at(low, group, kinds)
    np.maximum.at(high, group, kinds)
    names = (*KERNEL_TYPES, NO_TYPE)
    return [names[a] if a == b else MIXED for a, b in zip(low.tolist(), high.tolist())]


def _by_stream(work: Work, labels: dict[str, int]) -> I64:
    names = [f"rank {work.rank} {work.title} stream {name}" for name in work.stream_names]
    return _numbered(names, labels)[work.streams]


def _by_step(steps: StepSpans | None) -> Callable[[Work, dict[str, int]], I64]:
    names = [] if steps is None else [f"step {label}" for label in steps.labels]

    def group(work: Work, labels: dict[str, int]) -> I64:
        held = np.full(len(work), -1, np.int64) if steps is None else steps.holding(work.starts)
        present, places = np.unique(held, return_inverse=True)
        texts = [names[at] if at >= 0 else OUTSIDE for at in present.tolist()]
        return _numbered(texts, labels)[places]

    return group


def _by_type(kinds: AnyArray, labels: dict[str, int]) -> I64:
    present: list[int] = np.flatnonzero(np.bincount(kinds, minlength=256)).tolist()
    table = np.zeros(256, np.int64)
    names = (*KERNEL_TYPES, NO_TYPE)
    table[present] = _numbered([names[min(kind, len(KERNEL_TYPES))] for kind in present], labels)
    return table[kinds]


def _numbered(texts: Sequence[str], labels: dict[str, int]) -> I64:
    """Return the number of each text among all labels so far, new ones appended."""
    return np.array([labels.setdefault(text, len(labels)) for text in texts], np.int64)


def _joined(parts: Sequence[AnyArray], dtype: type[np.generic]) -> AnyArray:
    return np.concatenate(parts) if parts else np.empty(0, dtype)
