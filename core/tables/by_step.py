"""A table for each step, one below the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..base.errors import UsageError
from ..ingest.columns import I64
from .scope import Scope
from .step_spans import step_spans
from .table import Column, Table, concat

STEP = Column("step", "Step", "text")


def by_step(scope: Scope, make: Callable[[Scope], Table], order: Callable[[Table], I64]) -> Table:
    """Return the tables that `make` returns for each step that lies in the scope's range wholly, the rows of
    each in an order, with the step as first column: each as if asked about that step alone. UsageError where
    there are no steps.
    """
    steps = step_spans(scope.trace, scope.clocks, scope.steps or None, scope.source)
    if steps is None:
        raise UsageError("this trace has no steps, and nothing in it repeats")
    low, high = scope.range or (int(steps.starts.min()), int(steps.ends.max()))
    labels, tables = [], []
    for label, start, end in zip(steps.labels, steps.starts.tolist(), steps.ends.tolist()):
        if low <= start and end <= high:
            labels.append(label)
            table = make(replace(scope, range=(start, end), label=f"step {label}"))
            tables.append(table.take(order(table)))
    if not tables:
        raise UsageError(f"no step lies in the range wholly; there are {len(steps):,}, {steps.choice}")
    table = concat(tables, STEP, labels)
    notes = (f"steps are {steps.choice}: {steps.reason}", *table.notes)
    return replace(table, title=f"{table.title} by step", scope=scope.text, notes=notes)
