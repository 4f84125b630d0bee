"""The op trees of two traces held against each other: paths of annotations, modules and ops, what the host
spends in their ops, and the device work launched in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ...base.arrays import I64, AnyArray, added_upwards, places_in
from ...base.kineto import ANNOTATIONS, GROUPS, MODULE, OPS
from ...base.short_names import comparable_name
from ...base.units import about_ns, count_of
from ...query.groups import Groups
from ...query.lookup import (
    category_mask,
    depths_of_slices,
    names_with_prefix,
    nearest_around,
    rows_around,
)
from ...trace.step_spans import step_spans
from ..frame.frame import Frame
from ..frame.frame_columns import NOT_IN_FILE, OUTSIDE_ANY, module_label, work_of
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.table import Table
from ..host.op_events import positions_of
from ..host.tree import indented, own_times
from ..host.tree_nodes import ROOT, TreeBuilder, paths_of
from .comparable import CANNOT, reasons_of, side_of
from .compare import BOTH, GONE, NEW

TREE_CHANGES = TableSchema(
    "tree",
    "Op trees, the worst first",
    (
        Column("name", "name", "text"),
        Column("presence", "in", "text"),
        Column("calls_a", "calls of A", "number"),
        Column("calls_b", "of B", "number"),
        Column("host_a_ns", "host A", "ns"),
        Column("host_b_ns", "host B", "ns"),
        Column("host_change_ns", "Δ host", "ns", change=True),
        Column("device_a_ns", "kernels A", "ns"),
        Column("device_b_ns", "kernels B", "ns"),
        Column("device_change_ns", "Δ kernels", "ns", change=True),
        Column("depth", "depth", "count", detail=True),
        Column("node", "node", "id", detail=True),
        Column("parent", "parent", "id", detail=True),
    ),
    keys=("node",),
)
Copies: TypeAlias = Mapping[str, tuple[int, int]]
"""Kind of copy -> (how many, ns)."""


@dataclass(frozen=True, eq=False)
class _Side:
    """One trace: by node, its own calls, ns of the host and ns of device work; copies by name."""

    steps: int  # 0 where there are none
    nodes: I64
    columns: tuple[I64, I64, I64]
    copies: Copies

    def totals(self, parents: I64) -> list[list[int]]:
        """Return the columns by node, with what lies below."""
        groups = Groups(self.nodes, len(parents))
        calls, *own = (groups.sums(column) for column in self.columns)
        return [calls.tolist(), *(added_upwards(column, parents).tolist() for column in own)]


def diff_trees(before: Scope, now: Scope, titles: tuple[str, str]) -> Table:
    """Return the nodes that changed, depth first and of siblings the one with most more time first; of what
    only one side has the topmost node. Numbers are per step where both have steps. The note says what
    changed, or why the two cannot be compared. Raises Cancelled.
    """
    builder = TreeBuilder()
    a, b = _side(builder, before), _side(builder, now)
    keys = np.array(list(builder.nodes), np.int64).reshape(-1, 2)
    parents, texts = keys[:, 0], list(builder.labels)
    names = [texts[name] for name in keys[:, 1].tolist()]
    per_step = bool(a.steps and b.steps)
    counts = (a.steps, b.steps) if per_step else (1, 1)
    sides = [
        [[value / count for value in column] for column in side.totals(parents)]
        for side, count in zip((a, b), counts)
    ]
    rows = _rows(names, parents.tolist(), sides)
    reasons = dict.fromkeys(reasons_of([side_of(before, titles[0])], side_of(now, titles[1])).values())
    said = _sentence(parents, sides, (a.copies, b.copies), counts, titles[1], per_step)
    if reasons:
        said = f"{CANNOT}: {'; '.join(reasons)}"
    return Table.from_rows(
        TREE_CHANGES,
        f"{titles[1]} against {titles[0]}",
        rows,
        totals={"steps_a": a.steps, "steps_b": b.steps, "per": "step" if per_step else "trace"},
        notes=(said,),
    )


def _rows(
    names: Sequence[str], parents: Sequence[int], sides: Sequence[list[list[float]]]
) -> list[dict[str, object]]:
    (calls_a, host_a, device_a), (calls_b, host_b, device_b) = sides
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(parents):
        children.setdefault(parent, []).append(node)
    change = [b + d - a - c for a, b, c, d in zip(host_a, host_b, device_a, device_b)]
    depth = {ROOT: -1}
    rows: list[dict[str, object]] = []
    todo = sorted(children.get(ROOT, ()), key=lambda node: change[node])
    while todo:
        node = todo.pop()
        depth[node] = depth[parents[node]] + 1
        is_a, is_b = (any(column[node] for column in side) for side in sides)
        values = (host_b[node] - host_a[node], device_b[node] - device_a[node])
        if not any(values):
            continue
        row: dict[str, object] = {"name": names[node], "calls_a": calls_a[node], "calls_b": calls_b[node]}
        row["presence"] = BOTH if is_a and is_b else NEW if is_b else GONE
        pairs = {"host": (host_a, host_b), "device": (device_a, device_b)}
        for (key, both), change_ns in zip(pairs.items(), values):
            a_ns, b_ns = (round(column[node]) for column in both)
            row |= {f"{key}_a_ns": a_ns, f"{key}_b_ns": b_ns, f"{key}_change_ns": round(change_ns)}
        rows.append({**row, "depth": depth[node], "node": node, "parent": parents[node]})
        if is_a and is_b:
            todo += sorted(children.get(node, ()), key=lambda node: change[node])
    return rows


def largest_changes(table: Table, count: int) -> Table:
    """Return the rows that changed most, with all that is above them, names moved right by their depth."""
    changes = np.abs(table.numbers("host_change_ns")) + np.abs(table.numbers("device_change_ns"))
    chosen = set(np.argsort(-changes, kind="stable")[:count].tolist())
    at = {node: row for row, node in enumerate(table.numbers("node").tolist())}
    parents = table.numbers("parent").tolist()
    for row in list(chosen):
        while (above := at.get(parents[row])) is not None:
            chosen.add(row := above)
    return indented(table.take(np.array(sorted(chosen), np.int64)))


def _side(builder: TreeBuilder, scope: Scope) -> _Side:
    parts: list[tuple[I64, ...]] = [(np.empty(0, np.int64),) * 4]
    works = {work.source_number: work for work in work_of(scope).by("source")}
    for source in scope.sources:
        index = scope.trace.indexes[source]
        members, is_op = _members(scope, source)
        around, depths = rows_around(index, members), depths_of_slices(index, members)
        nodes = paths_of(
            builder, builder.labels.of_slices(index, members, module_label), around, depths, ROOT
        )
        starts = scope.starts(source, members)
        own = own_times(starts, starts + index.duration(members), around, depths)
        parts.append((nodes, np.ones_like(own), np.where(is_op, own, 0), np.zeros_like(own)))
        if source in works:
            work = works[source]
            zero = np.zeros(len(work), np.int64)
            parts.append((_launching_nodes(builder, work, members, nodes), zero, zero, work.dur))
    node, calls, host, device = (np.concatenate(column) for column in zip(*parts))
    return _Side(_steps(scope), node, (calls, host, device), _copies(works.values()))


def _launching_nodes(builder: TreeBuilder, work: Frame, members: I64, nodes: I64) -> I64:
    """Return the node that launched each piece of work; else one that says that none did, or is known."""
    texts = (OUTSIDE_ANY.format("op"), NOT_IN_FILE)
    outside, unknown = (builder.node(ROOT, code) for code in builder.labels.codes(texts).tolist())
    known = np.flatnonzero(work.launched >= 0)
    result = np.full(len(work), unknown, np.int64)
    around = places_in(members, nearest_around(work.index, work.launched[known], members, itself=True))
    result[known] = np.where(around < 0, outside, np.append(nodes, ROOT)[around])
    return result


def _copies(works: Iterable[Frame]) -> Copies:
    copies: dict[str, tuple[int, int]] = {}
    for work in works:
        moving = work[np.flatnonzero(work.is_type("memory"))]
        for name, ns in zip(map(comparable_name, moving.name.tolist()), moving.dur.tolist()):
            count, spent = copies.get(name, (0, 0))
            copies[name] = count + 1, spent + ns
    return copies


def _steps(scope: Scope) -> int:
    """Return how many steps a scope holds: all of a trace, one, or none of a range."""
    if scope.range is not None:
        return int(scope.work is not None)
    return len(step_spans(scope.trace, scope.clocks, scope.steps or None) or ())


def _members(scope: Scope, source: int) -> tuple[I64, AnyArray]:
    """Return the annotations, modules and ops of a scope, ascending, and which of them are ops."""
    index = scope.trace.indexes[source]
    is_op = category_mask(index, OPS)
    members = positions_of(scope, source, is_op | category_mask(index, ANNOTATIONS | GROUPS["python"]))
    frames = category_mask(index, GROUPS["python"])[index.column("slices.category")[members]]
    modules = names_with_prefix(index, MODULE)
    members = members[~frames | np.isin(index.column("slices.name")[members], modules)]
    return members, is_op[index.column("slices.category")[members]]


def _sentence(
    parents: I64,
    sides: Sequence[list[list[float]]],
    copies: tuple[Copies, Copies],
    counts: tuple[int, int],
    title: str,
    per_step: bool,
) -> str:
    tops = np.flatnonzero(parents == ROOT).tolist()
    (host_a, device_a), (host_b, device_b) = (
        (sum(column[node] for node in tops) for column in side[1:]) for side in sides
    )
    unit = " a step" if per_step else ""
    parts = [
        f"host {about_ns(round(host_a))} → {about_ns(round(host_b))}{unit}",
        f"kernels {about_ns(round(device_a))} → {about_ns(round(device_b))}",
    ]
    for now, word in ((1, "new"), (0, "fewer")):
        count, ns = _more(copies[1 - now], counts[1 - now], copies[now], counts[now])
        if count >= 1:
            parts.append(f"{count_of(count, f'{word} copy', f'{word} copies')} of {about_ns(ns)}")
    return f"{title}: {', '.join(parts)}"


def _more(old: Copies, old_steps: int, new: Copies, new_steps: int) -> tuple[int, int]:
    """Return (number, ns) of the copies that there are more of in a step, of the kinds that gained some."""
    count = spent = 0.0
    for name, (number, ns) in new.items():
        known, known_ns = old.get(name, (0, 0))
        if number / new_steps > known / old_steps:
            count += number / new_steps - known / old_steps
            spent += ns / new_steps - known_ns / old_steps
    return round(count), max(0, round(spent))
