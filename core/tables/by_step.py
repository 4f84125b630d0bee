"""A table for each step, one below the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ..base.errors import UsageError
from ..ingest.columns import I64, AnyArray
from .scope import Scope
from .step_spans import step_spans
from .table import Column, Table

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
            tables.append(_in_order(table, order(table)))
    if not tables:
        raise UsageError(f"no step lies in the range wholly; there are {len(steps):,}, {steps.choice}")
    first = tables[0]
    columns = list({column.key: column for table in tables for column in table.columns}.values())
    data: dict[str, AnyArray | list[str]] = {
        STEP.key: [label for label, table in zip(labels, tables) for _ in range(len(table))]
    }
    for column in columns:
        data[column.key] = _joined(tables, column)
    jumps = all(table.positions is not None for table in tables)
    return Table(
        first.schema,
        f"{first.title} by step",
        scope.text,
        (STEP, *columns),
        data,
        notes=(
            f"steps are {steps.choice}: {steps.reason}",
            *dict.fromkeys(n for t in tables for n in t.notes),
        ),
        positions=np.concatenate([np.asarray(table.positions) for table in tables]) if jumps else None,
        sources=np.concatenate([_sources(table) for table in tables]) if jumps else None,
        keys=(STEP.key, *first.key_columns),
    )


def _in_order(table: Table, order: I64) -> Table:
    data = {
        key: [column[at] for at in order.tolist()] if isinstance(column, list) else column[order]
        for key, column in table.data.items()
    }
    positions = None if table.positions is None else np.asarray(table.positions)[order]
    return replace(table, data=data, positions=positions, sources=_sources(table)[order])


def _joined(tables: Sequence[Table], column: Column) -> AnyArray | list[str]:
    """Return a column of all tables; one that lacks it has empty text, none for a statistic, else zero."""
    if column.unit == "text":
        return [str(text) for table in tables for text in table.data.get(column.key, [""] * len(table))]
    nothing = np.nan if column.statistic else 0
    return np.concatenate(
        [np.asarray(table.data.get(column.key, np.full(len(table), nothing))) for table in tables]
    )


def _sources(table: Table) -> AnyArray:
    return np.full(len(table), table.source) if table.sources is None else np.asarray(table.sources)
