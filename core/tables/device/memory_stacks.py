"""By which stacks memory was allocated: what was live at the peak, by the slices around each allocation. As
folded lines it is a flame graph whose widths are bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.arrays import I64, add_at
from ...base.safe_text import safe
from ...index.producers import named_events
from ...index.store import Index
from ...query.lookup import row_starts
from ..frame.schema import Column, TableSchema
from ..frame.table import Table, Tables
from ..host.allocations import NO_RECORD, Allocator, slice_rows

STACKS = TableSchema(
    "memory_stacks",
    "Stacks at the peak",
    (
        Column("rank", "rank", "text"),
        Column("allocator", "allocator", "text"),
        Column("name", "allocated in", "text", is_name=True),
        Column("bytes", "size", "bytes"),
        Column("allocations", "allocations", "count"),
        Column("stack", "stack", "text"),
    ),
    keys=("rank", "allocator", "stack"),
    chief=("bytes", "allocations", "name"),
)
UNKNOWN = "not known"
BEGIN = 0
"""The node of no slice at all."""


@dataclass
class StackNodes:
    """Stacks of names as a tree, for each node its parent and its name; node 0 is no slice."""

    parents: list[int]
    names: list[int]

    def path(self, node: int) -> list[int]:
        """Return the numbers of the names from the outermost to that of a node."""
        path = []
        while node != BEGIN:
            path.append(self.names[node])
            node = self.parents[node]
        return path[::-1]


def nodes_around(index: Index, lanes: I64, times: I64) -> tuple[I64, StackNodes]:
    """Return for each moment (lane, lane time) the node of the lane's slices around it, and the nodes."""
    nodes = StackNodes([BEGIN], [-1])
    result = np.full(len(lanes), BEGIN, np.int64)
    records = named_events(index)
    known: dict[tuple[int, int], int] = {}
    for lane in sorted(set(lanes.tolist())):
        own = np.flatnonzero(lanes == lane)
        for row in slice_rows(index, lane):
            inside, positions = _slices_at(index, row, times[own])
            if len(records):
                is_frame = ~np.isin(index.column("slices.name")[positions], records)
                inside, positions = inside[is_frame], positions[is_frame]
            here = own[inside]
            keys = np.stack([result[here], index.column("slices.name")[positions].astype(np.int64)], axis=1)
            pairs, which = np.unique(keys, axis=0, return_inverse=True)
            below = []
            for parent, name in pairs.tolist():
                node = known.setdefault((parent, name), len(nodes.parents))
                if node == len(nodes.parents):
                    nodes.parents.append(parent)
                    nodes.names.append(name)
                below.append(node)
            result[here] = np.array(below, np.int64)[which.reshape(-1)]
    return result, nodes


def _slices_at(index: Index, row: int, times: I64) -> tuple[I64, I64]:
    """Return which of some times a slice of a row covers, and its position."""
    starts = row_starts(index, row)
    at = np.searchsorted(starts, times, "right") - 1
    inside = np.flatnonzero(at >= 0)
    positions = int(index.rows[row]["first"]) + at[inside]
    begins = starts[at[inside]].astype(np.int64)
    covers = (begins == times[inside]) | (begins + index.duration(positions) > times[inside])
    return inside[covers], positions[covers]


def stacks_of(one: Allocator, numbers: I64) -> list[tuple[list[str], int, int]]:
    """Return (names, the outermost first, bytes, count) of the stacks of allocations, most bytes first."""
    sizes = one.allocations.bytes[numbers]
    lanes, times = one.moments(numbers)
    own = lanes != NO_RECORD
    node_of = np.full(len(numbers), -1, np.int64)
    node_of[own], nodes = nodes_around(one.index, lanes[own], times[own])
    totals = np.zeros(len(nodes.parents) + 1, np.int64)  # the last for allocations of which nothing is known
    add_at(totals, node_of, sizes)
    counts = np.bincount(node_of % len(totals), minlength=len(totals))
    rows = []
    for node in np.argsort(-totals, kind="stable").tolist():
        if not counts[node]:
            continue
        is_known = node != len(nodes.parents)
        names = one.index.strings(np.array(nodes.path(node), np.int64)) if is_known and node else []
        rows.append((list(names) or [UNKNOWN], int(totals[node]), int(counts[node])))
    return rows


def holders_of(one: Allocator, numbers: I64) -> list[tuple[str, int, int]]:
    """Return (name, bytes, count) of the innermost frames of some allocations, most bytes first; those of
    which no stack is known have none.
    """
    sizes: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for names, size, count in stacks_of(one, numbers):
        if names != [UNKNOWN]:
            name = safe(names[-1]).strip()
            sizes[name] += size
            counts[name] += count
    return [(name, size, counts[name]) for name, size in sizes.most_common() if name]


def stack_table(scope: str, lists: Sequence[tuple[Allocator, I64]], limit: int | None) -> Table:
    """Return a row per allocator and stack of some allocations, most bytes first."""
    rows: list[dict[str, Any]] = []
    for one, numbers in lists:
        for names, size, count in stacks_of(one, numbers)[:limit]:
            frames = [safe(name).replace(";", ":").strip() or "(no name)" for name in names]
            values = {"name": names[-1], "bytes": size, "allocations": count, "stack": ";".join(frames)}
            rows.append({"rank": str(one.rank), "allocator": one.title, **values})
    return Table.from_rows(STACKS, scope, rows)


def folded_bytes(tables: Tables) -> Iterator[str]:
    """Yield the stacks at the peak as folded lines: the allocator, the frames, the bytes."""
    table = tables["stacks"]
    sizes = table.numbers("bytes").tolist()
    for allocator, stack, size in zip(table.texts("allocator"), table.texts("stack"), sizes):
        yield f"{allocator};{stack} {size}\n"
