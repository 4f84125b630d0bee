"""A store as one side of a comparison."""

from __future__ import annotations

import numpy as np

from ..base.arrays import sum_of
from ..base.short_names import comparable_name
from ..tables.metrics import Metric, spread_metrics
from ..tables.summary import SCHEMAS, Summary, numbered, summed
from ..tables.table import Table
from ..tables.table_rows import Values
from ..trace.collectives import medians
from .opened import CaptureStore
from .tables import kernels_of_store, steps_of_store


def summary_of_store(store: CaptureStore) -> Summary:
    """Return a store as one side of a comparison: kernels of all ranks, steps as medians over the ranks."""
    steps, kernels, skew = steps_of_store(store), kernels_of_store(store), store.skew
    metrics = [
        Metric("ranks.count", "count", len(store.ranks)),
        Metric("ranks.waited", "ns", sum_of(skew.waits) if len(skew) else None),
        Metric("step.count", "count", len(steps)),
    ]
    for key in ("wall", "cpu_busy", "device_busy", "idle", "comm", "copy"):
        metrics += spread_metrics(f"step.{key}", steps.numbers(f"{key}_ns"))[1:]
    metrics += [
        Metric("kernels.calls", "count", sum_of(kernels.numbers("count"))),
        Metric("kernels.names", "count", len(kernels)),
        Metric("kernels.time", "ns", sum_of(kernels.numbers("total_ns"))),
        Metric("ops.self_cpu", "ns", None),  # ops are not in summaries
    ]
    names = [comparable_name(name) for name in kernels.texts("name")]
    tables = {
        "kernels": summed("kernels", store.scope, {**kernels.data, "name": names}),
        **{name: Table.from_rows(SCHEMAS[name], store.scope, []) for name in ("ops", "categories")},
        "steps": _median_steps(store, steps),
    }
    return Summary(store.title, store.scope, {metric.name: metric for metric in metrics}, tables)


def _median_steps(store: CaptureStore, table: Table) -> Table:
    """Return the steps by their position in a rank, each number the median over the ranks that have it."""
    ranks = table.numbers("rank")
    changes = np.flatnonzero(np.diff(ranks, prepend=-1))
    lengths = np.diff(np.append(changes, len(ranks)))
    nth = np.arange(len(ranks), dtype=np.int64) - np.repeat(changes, lengths)
    count = int(nth.max()) + 1 if len(nth) else 0
    label, *numbers = SCHEMAS["steps"].columns
    data: dict[str, Values] = {label.key: numbered(count)}
    data |= {column.key: medians(nth, table.numbers(column.key), count)[0] for column in numbers}
    return Table.from_arrays(SCHEMAS["steps"], store.scope, data)
