"""Numbers of a trace under names that last, for checks and comparisons, such as `step.wall.median`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.errors import UsageError
from ..ingest.columns import I64
from .scope import Scope
from .table import Table, Unit

Number = int | float
SPREAD = ("count", "total", "mean", "median", "p95", "min", "max")
"""Of a set of times; the median and p95 are values that occur."""


@dataclass(frozen=True)
class Metric:
    """One number: its name, its unit (ns for times); None where the trace has nothing of the kind."""

    name: str
    unit: Unit
    value: Number | None


def metrics(scope: Scope, groups: Iterable[str] | None = None) -> dict[str, Metric]:
    """Return the metrics of a scope by name: of these groups (what stands before the first dot), or all."""
    found = (metric for group in (GROUPS if groups is None else groups) for metric in GROUPS[group](scope))
    return {metric.name: metric for metric in found}


def group_of(name: str) -> str:
    """Return the group that a metric's name begins with; UsageError names those that exist."""
    group = name.partition(".")[0]
    if group not in GROUPS:
        raise UsageError(f"no metric {name!r}: they begin with {', '.join(f'{key}.' for key in GROUPS)}")
    return group


def _trace(scope: Scope) -> list[Metric]:
    from .range_table import range_table

    low, high = scope.range or scope.trace.span_at(scope.clocks)
    count = int(np.asarray(range_table(scope).data["count"]).sum())
    return [Metric("trace.span", "ns", high - low), Metric("trace.slices", "count", count)]


def _step(scope: Scope) -> list[Metric]:
    from .steps import steps

    table = steps(scope).steps
    found = [Metric("step.count", "count", len(table))]
    for key in ("wall", "cpu_busy", "device_busy", "idle", "comm", "copy"):
        found += _spread(f"step.{key}", np.asarray(table.data[f"{key}_ns"], np.int64))[1:]
    return found


def _ops(scope: Scope) -> list[Metric]:
    from .ops import ops

    table = ops(scope)
    host = np.asarray(table.data["on_device"]) == 0
    return [
        Metric("ops.calls", "count", int(np.asarray(table.data["calls"])[host].sum())),
        Metric("ops.names", "count", int(host.sum())),
        Metric("ops.self_cpu", "ns", _total(table, "self_cpu_total_ns")),
        Metric("ops.self_device", "ns", _total(table, "self_device_total_ns")),
    ]


def _kernels(scope: Scope) -> list[Metric]:
    from .work import work_of

    works = work_of(scope)
    times = np.concatenate([work.durations for work in works]) if works else np.empty(0, np.int64)
    calls, *rest = _spread("kernels", times)
    names = {work.index.string(n) for work in works for n in work.distinct_names[1].tolist()}
    calls = Metric("kernels.calls", "count", calls.value)
    return [calls, Metric("kernels.names", "count", len(names)), *rest]


def _device(scope: Scope) -> list[Metric]:
    from .breakdown import breakdown

    devices = breakdown(scope).devices
    sums = {
        key: sum(getattr(device, f"{field}_ns") for device in devices)
        for key, field in (
            ("kernel_time", "kernel_time"),
            ("busy", "busy"),
            ("idle", "idle"),
            ("compute", "compute"),
            ("comm", "comm"),
            ("memory", "memory"),
            ("overlap", "comm_compute_overlap"),
        )
    }
    return [
        Metric("device.count", "count", len(devices)),
        *(Metric(f"device.{key}", "ns", ns) for key, ns in sums.items()),
        Metric("device.busy_share", "share", _ratio(sums["busy"], sums["kernel_time"])),
        Metric("device.overlap_share", "share", _ratio(sums["overlap"], sums["comm"])),
    ]


def _launches(scope: Scope) -> list[Metric]:
    from .launches import launches, totals

    told = totals(launches(scope))
    found = [Metric("launches.calls", "count", told["count"])]
    for key in ("call", "delay"):
        values: Mapping[str, Any] = told[key] or {}
        found += [
            Metric(f"launches.{key}.{stat}", "ns", values.get(f"{stat}_ns"))
            for stat in ("median", "p95", "max")
        ]
    return found


def _idle(scope: Scope) -> list[Metric]:
    from .idle import CLASSES, idle

    streams = idle(scope).streams
    found = []
    for number, name in enumerate(CLASSES):
        of_class = [stream.of_class(number) for stream in streams]
        found.append(Metric(f"idle.{name}", "ns", sum(ns for ns, _ in of_class)))
        found.append(Metric(f"idle.{name}_gaps", "count", sum(gaps for _, gaps in of_class)))
    return found


def _memory(scope: Scope) -> list[Metric]:
    from .memory import memory

    found = memory(scope)
    peaks = [use.peak_bytes for use in found.uses if use.peak_bytes is not None]
    copied = int(np.asarray(found.copies.data["bytes"], np.int64).sum()) if len(found.copies) else 0
    return [
        Metric("memory.peak", "bytes", max(peaks, default=None)),
        Metric("memory.copied", "bytes", copied),
    ]


def _compile(scope: Scope) -> list[Metric]:
    from .compile import compiled

    found = compiled(scope)
    runs = np.asarray(found.regions.data["count"], np.int64)
    depth = np.asarray(found.regions.data["depth"], np.int64)
    return [
        Metric("compile.regions", "count", int(runs[depth == 0].sum())),
        Metric("compile.regions_nested", "count", int(runs[depth > 0].sum())),
        Metric("compile.recompiled_frames", "count", len(found.recompiled)),
        Metric("compile.graphs", "count", len(found.graphs)),
        Metric("compile.compilations", "count", len(found.compilations)),
    ]


GROUPS: Mapping[str, Callable[[Scope], list[Metric]]] = {
    "trace": _trace,
    "step": _step,
    "ops": _ops,
    "kernels": _kernels,
    "device": _device,
    "launches": _launches,
    "idle": _idle,
    "memory": _memory,
    "compile": _compile,
}
"""What a metric's name begins with -> how those of the group are found."""


def _spread(name: str, values: I64) -> list[Metric]:
    """Return count, total, mean, median, p95, least and most of times in ns."""
    from .steps import percentile

    if not len(values):
        return [
            Metric(f"{name}.{stat}", "count" if stat == "count" else "ns", 0 if stat == "count" else None)
            for stat in SPREAD
        ]
    total = int(values.sum())
    told = (
        len(values),
        total,
        round(total / len(values)),
        percentile(values, 50),
        percentile(values, 95),
        int(values.min()),
        int(values.max()),
    )
    return [
        Metric(f"{name}.{stat}", "count" if stat == "count" else "ns", value)
        for stat, value in zip(SPREAD, told)
    ]


def _total(table: Table, key: str) -> int:
    value = table.totals.get(key)
    return int(value) if isinstance(value, int | float) else 0


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
