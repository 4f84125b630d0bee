"""A table for each step, one below the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..base.errors import UsageError
from .attribution import scope_of_step, work_by_steps
from .scope import Scope
from .step_spans import step_spans
from .table import Column, Table, concat

STEP = Column("step", "Step", "text")


def by_step(scope: Scope, make: Callable[[Scope], Table]) -> Table:
    """Return the tables of all steps that lie in the scope's range wholly, one below the other, with the step
    as first column: each as `make` returns it for that step alone. UsageError where there are no steps.
    """
    steps = step_spans(scope.trace, scope.clocks, scope.steps or None, scope.source)
    if steps is None:
        raise UsageError("this trace has no steps, and nothing in it repeats")
    low, high = scope.range or (int(steps.starts.min()), int(steps.ends.max()))
    labels, tables = [], []
    work = work_by_steps(scope, steps) if scope.attribute == "launch" else None
    for at, label in enumerate(steps.titles):
        if low <= int(steps.starts[at]) and int(steps.ends[at]) <= high:
            labels.append(label)
            tables.append(make(scope_of_step(scope, steps, at, work)))
    if not tables:
        raise UsageError(f"no step lies in the range wholly; there are {len(steps):,}, {steps.choice}")
    table = concat(tables, STEP, labels)
    notes = (f"steps are {steps.choice}: {steps.reason}", *table.notes)
    return replace(table, title=f"{table.title} by step", scope=scope.text, notes=notes)
