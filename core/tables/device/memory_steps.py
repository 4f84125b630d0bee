"""What each step allocates, and what of it is never released: a leak has as much of it in every step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ...base.arrays import add_at
from ...trace.step_choice import Steps, find_steps
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.table import Table
from ..host.allocations import NO_RECORD, Allocator

MEMORY_STEPS = TableSchema(
    "memory_steps",
    "Memory by step",
    (
        Column("rank", "rank", "text"),
        Column("allocator", "allocator", "text"),
        Column("name", "step", "text"),
        Column("allocations", "allocations", "count"),
        Column("allocated_bytes", "allocated", "bytes"),
        Column("kept", "never released", "count"),
        Column("kept_bytes", "never released bytes", "bytes"),
        Column("start_ns", "begins", "ns", statistic=True, moment=True),
    ),
    keys=("rank", "allocator", "name"),
    jumps_to="the step",
    chief=("name", "kept_bytes", "kept", "allocated_bytes"),
)
COUNTED = ("allocations", "allocated_bytes", "kept", "kept_bytes")


def memory_step_table(scope: Scope, allocators: Iterable[Allocator]) -> Table:
    """Return a row per allocator and step in the scope's range that allocates something."""
    rows: list[dict[str, Any]] = []
    jumps: list[tuple[int, int | None]] = []
    steps: dict[int, Steps | None] = {}
    for one in allocators:
        if one.source not in steps:
            steps[one.source] = find_steps(scope.trace, one.source, scope.clocks, scope.steps or None)
        own = steps[one.source]
        if own is not None:
            for row, position in _rows(scope, one, own):
                rows.append(row)
                jumps.append((one.source, position))
    return Table.from_rows(MEMORY_STEPS, scope.text, rows, jumps)


def _rows(scope: Scope, one: Allocator, steps: Steps) -> Iterator[tuple[dict[str, Any], int]]:
    allocations = one.allocations
    begun = np.flatnonzero(allocations.begins != NO_RECORD)
    step = steps.holding(one.times[allocations.begins[begun]])
    begun, step = begun[step >= 0], step[step >= 0]
    is_kept = allocations.ends[begun] >= len(one)
    columns = []
    for own in (np.ones(len(begun), np.bool_), is_kept):
        sizes = np.zeros(len(steps), np.int64)
        add_at(sizes, step[own], allocations.bytes[begun[own]])
        columns += [np.bincount(step[own], minlength=len(steps)), sizes]
    for number in steps.within(scope.range).tolist():
        values = {key: int(column[number]) for key, column in zip(COUNTED, columns)}
        if values["allocations"]:
            of = {"rank": str(one.rank), "allocator": one.title, "name": steps.labels[number]}
            yield {**of, **values, "start_ns": int(steps.starts[number])}, int(steps.positions[number])
