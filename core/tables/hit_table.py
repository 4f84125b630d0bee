"""The hits of a search as a table in order of time; slices of one name share its text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import I64, AnyArray
from ..base.errors import Cancelled
from ..base.progress import CancelledCallback, never
from ..base.units import format_count, format_ns
from ..query.groups import concatenated
from ..query.hits import Hits
from ..query.lookup import lanes_of, starts_of
from .schema import TableSchema, columns_from
from .table import Table

if TYPE_CHECKING:
    from ..trace import Trace

HITS = TableSchema(
    "found",
    "What was found",
    columns_from("""
        name: text, start_ns (moment), duration_ns, lane: text, category: text, self_ns
    """),
    jumps_to="go there",
)


@dataclass(frozen=True, eq=False)
class HitTable:
    """A table of hits; `ranks` are, per column of text, the place of each row's text in the alphabet."""

    table: Table
    ranks: Mapping[str, I64]


def hit_table(trace: Trace, hits: Hits, cancelled: CancelledCallback = never) -> HitTable:
    """Return the hits in order of (start, source, position); starts count from the trace's start, ns.

    Raises Cancelled.
    """
    positions, sources, starts, durations, own, codes = [], [], [], [], [], []
    texts: dict[str, list[str]] = {"name": [], "lane": [], "category": []}
    for source, index in enumerate(hits.indexes):
        if cancelled():
            raise Cancelled
        at = hits.positions[source].astype(np.int64)
        lane_of = {lane.number: lane.title for lane in trace.lanes if lane.source == source}
        columns = {
            "name": _distinct(index.column("slices.name")[at], index.string, texts["name"]),
            "lane": _distinct(lanes_of(index, at), lane_of.__getitem__, texts["lane"]),
            "category": _distinct(
                index.column("slices.category")[at], index.categories.__getitem__, texts["category"]
            ),
        }
        codes.append(columns)
        positions.append(at)
        sources.append(np.full(len(at), source, np.uint32))
        starts.append(starts_of(index, at, hits.offsets[source]))
        durations.append(index.duration(at))
        own.append(index.self_time(at))
    start = concatenated(starts)
    order = np.argsort(start, kind="stable")  # hits of equal start keep the order of source and position
    data: dict[str, AnyArray | list[str]] = {
        "start_ns": start[order],
        "duration_ns": concatenated(durations)[order],
        "self_ns": concatenated(own)[order],
    }
    ranks = {}
    for key, known in texts.items():
        code = concatenated([columns[key] for columns in codes])[order]
        distinct, number = np.unique(np.array(known, object), return_inverse=True)
        ranks[key] = number.astype(np.int64)[code] if len(known) else code
        data[key] = distinct[ranks[key]] if len(known) else np.empty(0, object)
    total = f"{format_count(hits.count)} slices, {format_ns(hits.total_ns)} together"
    table = Table.from_arrays(
        HITS,
        f"{hits.filter.text}: {total}",
        data,
        positions=concatenated(positions)[order],
        sources=concatenated(sources)[order],
    )
    return HitTable(table.counted_from(trace.opening_span[0]), ranks)


def _distinct(numbers: AnyArray, text: Callable[[int], str], known: list[str]) -> I64:
    """Return for each number the place of its text in `known`, to which those of this source are added."""
    distinct, which = np.unique(numbers, return_inverse=True)
    first = len(known)
    known.extend(text(number) for number in distinct.tolist())
    rows: I64 = which.astype(np.int64) + first
    return rows
