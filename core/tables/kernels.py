"""What ran on the devices: per name how often, how long, how evenly."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Literal, TypeAlias

import numpy as np

from ..base.arrays import F64, I64, AnyArray
from ..base.errors import UsageError
from ..base.pattern import Pattern
from ..base.short_names import short_names
from ..query.promoted_terms import argument_values
from ..query.scan import json_value_text, number_of
from .attribution import work_by_steps, work_in_windows
from .devices import kernel_kinds, kernel_types
from .groups import Groups, Labels, concatenated
from .instances import Order, instances
from .kinds import KERNEL_TYPES, kind_table
from .metrics import Metric, spread_metrics
from .schema import ARG, Column, TableSchema, Unit
from .scope import Scope
from .step_spans import step_spans
from .table import Table, Tables, Values
from .work import KindRule, Work, work_of

GroupBy: TypeAlias = Literal["name", "short", "stream", "type", "kind", "step"]

COLUMNS = (
    Column("name", "name", "text", is_name=True),
    Column("type", "type", "text"),
    Column("kind", "kind", "text"),
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
CHIEF = ("name", "total_ns", "share", "count")
RUNS = 1000
"""How many runs are listed unless --limit says otherwise."""
NO_TYPE = "other"
OUTSIDE = "outside the steps"
MIXED = "mixed"
TITLES = {
    "name": "Kernels",
    "short": "Kernels",
    "stream": "Streams",
    "type": "Kernel types",
    "kind": "Kernel kinds",
    "step": "Kernels by step",
}
HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
NO_VALUE = "(none)"


def analyse_kernels(
    scope: Scope,
    by: str = "name",
    group_by: str = "",
    column: Sequence[str] = (),
    runs: str = "",
    order: Order = "slowest",
    limit: int | None = None,
) -> Tables:
    """Return the device work by name (or what `by` and `group_by` say), or the runs of matching names."""
    keys = [argument_key(text) for text in column]
    if runs:
        check_pattern(runs)
        runs_table = cache(partial(instances, scope, runs, order, limit or RUNS, keys))
        tables = {"kernels": lambda: runs_table()[0], "histogram": lambda: runs_table()[1]}
    else:
        tables = {"kernels": lambda: kernels(scope, group_by or by, arguments=keys)}
    return Tables(scope.text, scope.origin, tables)


def check_pattern(text: str) -> None:
    """Raise UsageError where a text is no regular expression."""
    Pattern(text, ignore_case=True).check("--runs")


def kernels(
    scope: Scope, by: GroupBy | str = "name", rule: KindRule = kernel_types, arguments: Sequence[str] = ()
) -> Table:
    """Return the device work of a scope by name, short name, stream, type, kind, step or argument (as
    `arg:KEY`); most time first, with sum and mean of further arguments. Short names join no two names.

    A step has the work that was launched in it, by window the part of all work that lies in its time on the
    host (steps that overlap share it); what no step has stands apart.
    `stdev_ns` is the sample's (n - 1) and none for a single slice; `type` and `kind` are "mixed" where there
    are several; a kind is "unknown" where no pattern knows the name.
    """
    works = work_of(scope)
    labels = Labels()
    step_codes: list[I64] = []
    if by == "step":
        works, step_codes = _by_step(scope, works, labels)
    rows = {"name": _by_name(str), "short": _by_name(_short_forms(works)), "stream": _by_stream}
    if by.startswith(ARG):
        rows[by] = by_argument(argument_key(by))
    types = [np.minimum(work.kinds(rule), len(KERNEL_TYPES)) for work in works]
    kinds = [work.kinds(kernel_kinds) for work in works]
    type_names, kind_names = (*KERNEL_TYPES, NO_TYPE), kind_table().names
    codes = step_codes
    for work, type_codes, kind_codes in zip(works, types, kinds):
        if by == "type":
            codes.append(_by_code(type_codes, type_names, labels))
        elif by == "kind":
            codes.append(_by_code(kind_codes, kind_names, labels))
        elif by != "step":
            codes.append(rows[by](work, labels))
    groups = Groups(concatenated(codes), len(labels))
    stats = groups.statistics(concatenated([work.durations for work in works]))
    total = int(stats["total_ns"].sum())
    more, values = argument_columns(works, groups, arguments)
    data: dict[str, Values] = {
        "name": list(labels),
        "type": _names_of(groups, concatenated(types, np.uint8), type_names),
        "kind": _names_of(groups, concatenated(kinds, np.uint8), kind_names),
        "share": stats["total_ns"] / max(total, 1),
        **{column.key: stats[column.key] for column in COLUMNS if column.key in stats},
        **values,
    }
    positions = concatenated([work.positions for work in works], np.uint32)
    sources = np.repeat(
        np.array([work.device.source for work in works], np.int64), [len(work) for work in works]
    )
    return Table.from_arrays(
        TableSchema(
            "kernels", TITLES.get(by, f"Kernels by {by}"), (*COLUMNS, *more), keys=("name",), chief=CHIEF
        ),
        scope.text,
        data,
        totals={"count": len(groups.codes), "total_ns": total},
        positions=positions[stats["longest"]],
        sources=sources[stats["longest"]],
    ).sort("total_ns")


def kernel_metrics(scope: Scope) -> list[Metric]:
    """Return how much device work there is and how long it takes; `kernels.time` is without copies, fills and
    synchronisation.
    """
    works = work_of(scope)
    kernels = (KERNEL_TYPES.index("compute"), KERNEL_TYPES.index("communication"))
    time = sum(int(work.durations[np.isin(work.kinds(), kernels)].sum()) for work in works)
    calls, *rest = spread_metrics("kernels", concatenated([work.durations for work in works]))
    names = {work.index.string(n) for work in works for n in work.distinct_names[1].tolist()}
    return [
        replace(calls, name="kernels.calls"),
        Metric("kernels.names", "count", len(names)),
        Metric("kernels.time", "ns", time if works else None),
        *rest,
    ]


def argument_key(text: str) -> str:
    """Return the key that `arg:KEY` names; UsageError for anything else."""
    if not text.startswith(ARG) or len(text) == len(ARG):
        raise UsageError(f"{text!r} names no argument: arg:KEY, as arg:bytes")
    return text.removeprefix(ARG)


def by_argument(key: str) -> Callable[[Work, Labels], I64]:
    """Return the grouping of work by an argument's value, work without it in a group of its own."""

    def codes(work: Work, labels: Labels) -> I64:
        values = argument_values(work.index, key, work.positions)
        return labels.codes([NO_VALUE if value is None else json_value_text(value) for value in values])

    return codes


def argument_numbers(work: Work, key: str) -> F64:
    """Return an argument of each slice as a number, NaN where there is none; FLEX writes some as "0x1f"."""
    values = argument_values(work.index, key, work.positions)
    numbers = (
        int(value, 16) if isinstance(value, str) and HEXADECIMAL.fullmatch(value) else number_of(value)
        for value in values
    )
    result: F64 = np.array([np.nan if number is None else float(number) for number in numbers], np.float64)
    return result


def argument_columns(
    works: Sequence[Work], groups: Groups, keys: Sequence[str]
) -> tuple[tuple[Column, ...], Mapping[str, AnyArray]]:
    """Return for each argument two columns: its sum and its mean over those of a group that have it.

    Both are none where no one has. UsageError for an argument that no slice has as a number.
    """
    columns: list[Column] = []
    data: dict[str, AnyArray] = {}
    for key in keys:
        numbers = np.concatenate([np.empty(0), *(argument_numbers(work, key) for work in works)])
        has = ~np.isnan(numbers)
        if len(numbers) and not has.any():
            raise UsageError(f"no kernel has a number as its argument {key!r}")
        count = groups.counts_where(has)
        total = np.bincount(groups.codes[has], weights=numbers[has], minlength=groups.size)
        total = total.astype(np.float64)  # bincount of nothing is of whole numbers
        total[count == 0] = np.nan
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = total / count
        unit: Unit = "bytes" if key.lower() == "bytes" else "number"
        columns.append(Column(f"{ARG}{key}", key, unit))
        columns.append(Column(f"{ARG}{key}_mean", f"mean {key}", unit, statistic=True))
        data |= {columns[-2].key: total, columns[-1].key: mean}
    return tuple(columns), data


def _by_name(label: Callable[[str], str]) -> Callable[[Work, Labels], I64]:
    def codes(work: Work, labels: Labels) -> I64:
        rows, numbers = work.distinct_names
        return labels.codes([label(text) for text in work.index.strings(numbers)])[rows]

    return codes


def _short_forms(works: Sequence[Work]) -> Callable[[str], str]:
    """Return what gives the short form of each name of some work, by which no two of them are the same."""
    names = sorted({text for work in works for text in work.texts})
    return dict(zip(names, short_names(names))).__getitem__


def _names_of(groups: Groups, codes: AnyArray, names: Sequence[str]) -> list[str]:
    """Return the type or kind of each group's work, by places in `names`."""
    edges = zip(groups.least(codes).tolist(), groups.most(codes).tolist())
    return [names[low] if low == high else MIXED for low, high in edges]


def _by_stream(work: Work, labels: Labels) -> I64:
    names = [f"rank {work.rank} {work.title} stream {name}" for name in work.stream_names]
    return labels.codes(names)[work.streams]


def _by_step(scope: Scope, works: tuple[Work, ...], labels: Labels) -> tuple[tuple[Work, ...], list[I64]]:
    """Return the work, by window cut at the edges of the steps, and the group of each row: its step."""
    steps = step_spans(scope.trace, scope.clocks, scope.steps or None)
    if steps is None:
        numbers = [np.full(len(work), -1, np.int64) for work in works]
    elif scope.attribute == "window":
        windows = [work_in_windows(work, steps) for work in works]
        works, numbers = tuple(work for work, _ in windows), [held for _, held in windows]
    else:
        launched = work_by_steps(scope, steps)
        numbers = [launched.steps_at(work.device.source, work.positions) for work in works]
    names = () if steps is None else steps.titles
    codes = []
    for held in numbers:
        present, rows = np.unique(held, return_inverse=True)
        titles = [f"step {names[at]}" if at >= 0 else OUTSIDE for at in present.tolist()]
        codes.append(labels.codes(titles)[rows])
    return works, codes


def _by_code(codes: AnyArray, names: Sequence[str], labels: Labels) -> I64:
    """Return the grouping of work by codes that are places in `names`."""
    present: list[int] = np.flatnonzero(np.bincount(codes, minlength=256)).tolist()
    table = np.zeros(256, np.int64)
    table[present] = labels.codes([names[code] for code in present])
    return table[codes]
