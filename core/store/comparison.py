"""A store as one side of a comparison."""

from __future__ import annotations

import numpy as np

from ..base.comparable import comparable_name
from ..tables.attendance import medians
from ..tables.metrics import Metric, spread_metrics
from ..tables.schema import Column, TableSchema
from ..tables.summary import CATEGORIES, KERNELS, LEADING, OPS, SUMMARY_STEPS, Summary
from ..tables.table import Table, Values
from .opened import CaptureStore
from .tables import kernels_of_store, steps_of_store


def summary_of_store(store: CaptureStore) -> Summary:
    """Return a store as one side of a comparison: kernels of all ranks, steps as medians over the ranks."""
    table = steps_of_store(store)
    kernels = kernels_of_store(store)
    skew = store.skew
    metrics = [
        Metric("ranks.count", "count", len(store.ranks)),
        Metric("ranks.waited", "ns", int(skew.waits.sum()) if len(skew) else None),
        Metric("step.count", "count", len(table)),
    ]
    for key in ("wall", "cpu_busy", "device_busy", "idle", "comm", "copy"):
        metrics += spread_metrics(f"step.{key}", table.numbers(f"{key}_ns"))[1:]
    metrics += [
        Metric("kernels.calls", "count", int(kernels.numbers("count").sum())),
        Metric("kernels.names", "count", len(kernels)),
        Metric("kernels.time", "ns", int(kernels.numbers("total_ns").sum())),
    ]
    metrics.append(Metric("ops.self_cpu", "ns", None))  # ops are not in summaries
    names = [comparable_name(name) for name in kernels.texts("name")]
    columns: dict[str, Values] = {
        "name": names,
        "count": kernels.numbers("count"),
        "total_ns": kernels.numbers("total_ns"),
    }
    whole = Table.from_arrays(TableSchema("summary_kernels", "Kernels", KERNELS), store.scope, columns)
    tables = {
        "kernels": whole.group("name", ["count", "total_ns"]).sort(LEADING["kernels"]),
        "ops": _nothing("ops", OPS, store.scope),
        "categories": _nothing("categories", CATEGORIES, store.scope),
        "steps": _median_steps(store, table),
    }
    return Summary(store.title, store.scope, {metric.name: metric for metric in metrics}, tables)


def _nothing(name: str, columns: tuple[Column, ...], scope: str) -> Table:
    return Table.from_rows(TableSchema(f"summary_{name}", name.capitalize(), columns), scope, [])


def _median_steps(store: CaptureStore, table: Table) -> Table:
    """Return the steps by their position in a rank, each number the median over the ranks that have it."""
    ranks = table.numbers("rank")
    changes = np.flatnonzero(np.diff(ranks, prepend=-1))
    lengths = np.diff(np.append(changes, len(ranks)))
    nth = np.arange(len(ranks), dtype=np.int64) - np.repeat(changes, lengths)
    count = int(nth.max()) + 1 if len(nth) else 0
    data: dict[str, Values] = {"place": [str(number) for number in range(1, count + 1)]}
    for column in SUMMARY_STEPS.columns[1:]:
        data[column.key] = medians(nth, table.numbers(column.key), count)[0]
    return Table.from_arrays(SUMMARY_STEPS, store.scope, data)
