"""What a trace is about, counted from tables that exist: work, idle time, ranks, compilation, memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ...base.arrays import AnyArray, distinct, sum_of
from ...base.errors import UsageError
from ...index.format import LaneKind, LaneRole, SliceFlag
from ...index.producers import is_of_memory
from ...index.store import Index
from ...trace.step_choice import find_steps
from ..absent import absent
from ..compile.compile_phases import phase_table, timed
from ..device.device_state import looked_at
from ..device.gap import busiest_in
from ..device.kernels import kernels
from ..device.memory import allocator_uses
from ..device.memory_stacks import holders_of
from ..device.states import CAUSES, IDLE, UNKNOWN, DeviceState
from ..findings.finding import Evidence
from ..frame.metrics import percentile
from ..frame.scope import Scope, WithoutOpenEnded
from ..frame.table import Table
from ..host.ops import ops
from ..host.range_table import range_table
from ..ranks.ranks import Ranks, ranks
from ..steps.step_length import step_lengths
from .rows import Groups, OverviewRow, store_overview, stored_overview

MAX_ROWS = 32
"""The most rows of a group: those with the most time."""
MAX_SLICES = 3_000_000
"""Ranks of more slices are not held against each other: that takes seconds."""


def saved_overview(scope: Scope, states: Sequence[DeviceState]) -> Groups:
    """Return the overview of a scope, whose devices did what `states` say; that of a whole trace is computed
    once and stored. Raises Cancelled.
    """
    stored = stored_overview(scope)
    if stored is None:
        stored = overview(scope, states)
        store_overview(scope, stored)
    return stored


def overview(scope: Scope, states: Sequence[DeviceState]) -> Groups:
    """Return the rows of each group that has some, most time first. Raises Cancelled."""
    lacks = absent(scope.trace)
    groups = {
        "work": () if "devices" in lacks else _work(scope),
        "idle": tuple(_idle(scope, states)),
        "ranks": () if "ranks" in lacks else tuple(_ranks(scope)),
        "steps": tuple(_steps(scope)),
        "compile": () if "compile" in lacks else tuple(_compile(scope)),
        "memory": () if "memory" in lacks else tuple(_memory(scope)),
        "ops": _rows(scope, ops(scope), "self_cpu_ns", "calls"),
    }
    if not groups["work"] and not groups["ops"]:  # which are what most slices do
        are_of_memory = all(is_of_memory(scope.trace.indexes[source]) for source in scope.sources)
        groups["held"] = tuple(_held(scope)) if groups["memory"] and are_of_memory else ()
        groups["slices"] = () if groups["held"] else _slices(_of_threads(scope))
    return {name: rows for name, rows in groups.items() if rows}


def _of_threads(scope: Scope) -> Scope:
    """Return a scope without lanes that repeat or sum up others, without the profiler's own and, where
    threads do anything, without asynchronous spans, which may stand for waiting.
    """
    lanes = [lane for lane in scope.trace.lanes if scope.lanes is None or lane.index in scope.lanes]
    own = [lane for lane in lanes if lane.role not in (LaneRole.DERIVED, LaneRole.PROFILER)]
    threads = [lane for lane in own if lane.kind is LaneKind.THREAD and lane.slices]
    numbers = [lane.index for lane in threads or own]
    return replace(scope, lanes=numbers) if 0 < len(numbers) < len(lanes) else scope


def _slices(scope: Scope) -> tuple[OverviewRow, ...]:
    """Return what takes most time by itself; without what was never ended, which lasts as long as its lane,
    where there is anything else.
    """
    rows = _rows(scope, range_table(_ended(scope)), "self_ns", "count")
    rows = rows or _rows(scope, range_table(scope), "self_ns", "count")
    marks = _marks(scope)
    rows = tuple(row for row in rows if row.name not in marks) or rows
    by_name: dict[str, OverviewRow] = {}
    for row in rows:  # a name may be of several categories; the longest slice is that of the first
        first = by_name.setdefault(row.name, row)
        if first is not row:
            sums = first.amount + row.amount, first.share + row.share, first.calls + row.calls
            by_name[row.name] = first._replace(amount=sums[0], share=sums[1], calls=sums[2])
    return tuple(sorted(by_name.values(), key=lambda row: -row.amount))


def _marks(scope: Scope) -> set[str]:
    """Return the names of the marks of steps, whose own time is what nothing recorded says more of."""
    names: set[str] = set()
    for source in scope.sources:
        steps = find_steps(scope.trace, source, scope.clocks, scope.steps or None)
        if steps is not None:
            index = scope.trace.indexes[source]
            names.update(index.strings(distinct(index.column("slices.name")[steps.positions])))
    return names


def _ended(scope: Scope) -> Scope:
    """Return a scope without the slices that were never ended."""
    open_ones: dict[Index, AnyArray] = {}
    for source in scope.sources:
        index = scope.trace.indexes[source]
        unclosed = index.column("flags.value") & SliceFlag.UNCLOSED > 0
        if unclosed.any():
            open_ones[index] = np.sort(index.column("flags.position")[unclosed])
    return replace(scope, where=WithoutOpenEnded(open_ones, scope.where)) if open_ones else scope


def _rows(scope: Scope, table: Table, amount: str, count: str) -> tuple[OverviewRow, ...]:
    """Return the rows of a table with the most of an amount, each with the slice that it leads to."""
    total = max(1, sum_of(table.numbers(amount))) if len(table) else 1
    order = table.order(amount)[:MAX_ROWS]
    rows = []
    for at, row in zip(order.tolist(), table.rows(order)):
        if row[amount]:
            name, waited = str(row["name"]), int(row.get("waited_ns") or 0)
            evidence, kind = _longest(scope, table, at, name), str(row.get("type") or "")
            share = row[amount] / total
            rows.append(OverviewRow(name, row[amount], share, row[count], waited, kind, evidence=evidence))
    return tuple(rows)


def _longest(scope: Scope, table: Table, row: int, name: str) -> Evidence | None:
    """Return the slice that a row of a table leads to."""
    if table.positions is None or int(table.positions[row]) < 0:
        return None
    source = 0 if table.sources is None else int(table.sources[row])
    return _slice(scope, source, int(table.positions[row]), f"longest {name}")


def _slice(scope: Scope, source: int, position: int, label: str) -> Evidence | None:
    slice_id = scope.trace.slice_id_of(source, position)
    row_and_index = scope.trace.find(slice_id)
    if row_and_index is None:
        return None
    return Evidence(label, *scope.trace.bounds(*row_and_index, scope.clocks), slice_id)


def _work(scope: Scope) -> tuple[OverviewRow, ...]:
    return _rows(scope, kernels(scope), "total_ns", "count")


def _idle(scope: Scope, states: Sequence[DeviceState]) -> Iterator[OverviewRow]:
    """Yield why devices are idle, most time first, with the longest time of each and what the host did."""
    low, high = looked_at(scope)
    within = [one.within(low, high) for one in states]
    total = max(1, sum_of(one.of_ns for one in within))
    rows = []
    for cause in range(UNKNOWN + 1):
        spent, count, longest = 0, 0, (0, 0, 0, 0)
        for number, one in enumerate(within):
            here = np.flatnonzero((one.states == IDLE) & (one.causes == cause))
            lengths = np.diff(one.edges)[here]
            spent, count = spent + sum_of(lengths), count + len(here)
            if len(here) and int(lengths.max()) > longest[0]:
                at = int(here[lengths.argmax()])
                longest = int(lengths.max()), number, int(one.edges[at]), int(one.edges[at + 1])
        if spent:
            _, number, start, end = longest
            source = states[number].device.device.source
            doing = busiest_in(scope.trace, source, (start, end), scope.clocks)
            evidence = Evidence("longest", start, end)
            rows.append(
                OverviewRow(CAUSES[cause], spent, spent / total, count, text=doing, evidence=evidence)
            )
    yield from sorted(rows, key=lambda row: -row.amount)


def _ranks(scope: Scope) -> Iterator[OverviewRow]:
    """Yield the ranks by lateness: those that the others wait for most, then those that wait least."""
    if sum(lane.slices for lane in scope.trace.lanes) > MAX_SLICES:
        return
    try:
        result = ranks(scope)
    except UsageError:  # of one rank
        return
    if len(result.ranks) < 2 or not len(result.skew):
        return
    total = max(1, sum_of(one.kept_waiting_ns for one in result.ranks))
    for one in sorted(result.ranks, key=lambda one: (-one.kept_waiting_ns, one.waited_ns))[:MAX_ROWS]:
        text = f"last in {one.last} of {one.collectives}" if one.last else "never last"
        share, evidence = one.kept_waiting_ns / total, _lateness(scope, result, one.source)
        if evidence is None and one.longest_wait >= 0:
            evidence = _slice(scope, result.file_of(one.source), one.longest_wait, "waits longest")
        name = f"rank {one.rank}"
        yield OverviewRow(name, one.kept_waiting_ns, share, one.last, one.waited_ns, "", text, evidence)


def _lateness(scope: Scope, result: Ranks, source: int) -> Evidence | None:
    """Return the time from the first to the last arrival at the collective at which the others wait longest
    for a rank, None where it is never last.
    """
    skew = result.skew
    column = skew.columns.get(source)
    if column is None:
        return None
    own = skew.awaiting(column)
    if not len(own):
        return None
    at = int(own[0])
    label = f"rank {result.number(source)} is last"
    return Evidence(label, int(skew.first_start[at]), int(skew.last_start[at]))


def _steps(scope: Scope) -> Iterator[OverviewRow]:
    """Yield how long the median step takes its device where a host runs ahead of it: its own marks are what
    it needs to enqueue one.
    """
    steps = [find_steps(scope.trace, source, scope.clocks, scope.steps or None) for source in scope.sources]
    each = [step_lengths(scope, one) for one in steps if one is not None]
    if any(one.ahead.any() for one in each):
        length = np.concatenate([one.length for one in each])
        yield OverviewRow("ahead", percentile(length, 50), calls=len(length))


def _compile(scope: Scope) -> Iterator[OverviewRow]:
    """Yield the phases of torch.compile, most time first, each with its longest call."""
    table = phase_table(timed(scope))
    phases = table.texts("phase")
    total = max(1, sum_of(table.numbers("self_ns"))) if len(table) else 1
    rows = []
    for phase in dict.fromkeys(phases):
        at = [row for row, own in enumerate(phases) if own == phase]
        spent, calls = (sum_of(table.numbers(key)[at]) for key in ("self_ns", "count"))
        longest = max(at, key=lambda row: int(table.numbers("max_ns")[row]))
        evidence = _longest(scope, table, longest, table.texts("name")[longest])
        rows.append(OverviewRow(phase or "other", spent, spent / total, calls, evidence=evidence))
    yield from sorted(rows, key=lambda row: -row.amount)


def _held(scope: Scope) -> Iterator[OverviewRow]:
    """Yield what holds most memory at an allocator's peak: the innermost frame where it was allocated."""
    for use in allocator_uses(scope):
        moment = Evidence("the peak", use.peak_at, use.peak_at + 1)
        for name, size, count in holders_of(use.allocator, use.at_peak)[:MAX_ROWS]:
            part = size / max(1, use.peak_bytes or 0)
            yield OverviewRow(name, size, part, count, text=use.allocator.title, evidence=moment)


def _memory(scope: Scope) -> Iterator[OverviewRow]:
    for use in allocator_uses(scope):
        if use.peak_bytes is not None:
            yield OverviewRow(f"peak of {use.allocator.title}", use.peak_bytes)
