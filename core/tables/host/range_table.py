"""What happens in a range: a row per name and category with count, total and self time; a row per lane with
its busy time.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from ...base.arrays import I64, AnyArray, distinct, means_of, merge, run_starts, sum_of
from ...base.safe_text import safe
from ...index.format import NONE
from ...query.groups import Groups, Labels, concatenated, dense
from ...query.lookup import category_mask
from ...query.own_clock import SPAN_CATEGORY
from ..frame.metrics import Metric
from ..frame.schema import Column, TableSchema
from ..frame.scope import Chunk, Scope
from ..frame.table import Table, Tables

MAX_ROWS = 200_000
"""The most names that a table lists: those with the most time. A note counts the others."""

RANGE = TableSchema(
    "range",
    "Slices by name",
    (
        Column("name", "name", "text", is_name=True),
        Column("category", "category", "text"),
        Column("count", "count", "count"),
        Column("total_ns", "total", "ns"),
        Column("self_ns", "self", "ns"),
        Column("share", "share", "share"),
        Column("mean_ns", "mean", "ns", statistic=True),
        Column("min_ns", "min", "ns", statistic=True),
        Column("max_ns", "max", "ns", statistic=True),
    ),
    keys=("name", "category"),
)
LANES = TableSchema(
    "lanes",
    "Lanes",
    (
        Column("lane", "lane", "text"),
        Column("process", "process", "text"),
        Column("count", "count", "count"),
        Column("busy_ns", "busy", "ns"),
        Column("share", "busy share", "share"),
    ),
    keys=("lane", "process"),
)
CATEGORIES = (
    Column("category", "category", "text"),
    Column("names", "names", "count"),
    Column("count", "count", "count"),
    Column("self_ns", "self", "ns"),
    Column("share", "share", "share"),
    Column("max_ns", "max", "ns", statistic=True),
)
SUMS = ("source", "name", "category", "count", "total_ns", "self_ns", "min_ns", "max_ns", "longest")
"""What is summed up: numbers of source, name and category; ns; the position of the longest slice."""


def analyse_range(scope: Scope, by: str = "name") -> Tables:
    """Return what happens in a scope by name and category, by lane, or by category."""
    make = {"name": range_table, "lane": lane_table, "category": category_table}[by]
    sort = "busy_ns" if by == "lane" else "self_ns"
    return Tables(scope.text, scope.origin, {"range": lambda: make(scope).sort(sort)})


def range_metrics(scope: Scope) -> list[Metric]:
    """Return how long a scope is, without what stands on another clock, and how many slices it holds."""
    is_split = scope.trace.slices_elsewhere > 0
    whole = scope.trace.opening_span if is_split else scope.trace.span_at(scope.clocks)
    low, high = scope.range or whole
    count = sum_of(range_table(scope).numbers("count"))
    return [Metric("trace.span", "ns", high - low), Metric("trace.slices", "count", count)]


def range_table(scope: Scope) -> Table:
    """Return per name and category: count, total, self, mean, min, max (ns inside the range), self share.

    `positions` and `sources` tell the longest slice of each.
    """
    parts = [_sums(chunk) for chunk in scope.chunks() if len(chunk)]
    columns = {key: concatenated([part[key] for part in parts]) for key in SUMS}
    if len(parts) > 1:
        names, _ = dense(columns["source"] << 32 | columns["name"])
        codes, pairs = dense(names * (int(columns["category"].max()) + 1) + columns["category"])
        columns = _joined(columns, Groups(codes, len(pairs)))
    return _as_table(scope, columns)


def category_table(scope: Scope) -> Table:
    """Return names, count, self and max ns, share of self per category; a row leads to its longest slice."""
    names = range_table(scope)
    labels = Labels()
    groups = Groups(labels.codes(names.texts("category")), len(labels))
    longest = groups.longest(names.numbers("max_ns"))  # the row with the longest slice
    own = groups.sums(names.numbers("self_ns"))
    return replace(
        names,
        title="Slices by category",
        columns=CATEGORIES,
        data={
            "category": [category or "(none)" for category in labels],
            "names": groups.counts,
            "count": groups.sums(names.numbers("count")),
            "self_ns": own,
            "share": own / max(1, sum_of(own)),
            "max_ns": names.numbers("max_ns")[longest],
        },
        positions=None if names.positions is None else names.positions[longest],
        sources=None if names.sources is None else names.sources[longest],
        keys=("category",),
    )


def lane_table(scope: Scope) -> Table:
    """Return per lane with slices in the scope: count, ns in which any of them runs, share of the scope."""
    counts: dict[int, int] = {}
    busy: dict[int, int] = {}
    pieces: dict[int, list[tuple[I64, I64]]] = {}
    for chunk in scope.chunks():
        for lane, begin, end in _runs(chunk.lanes):
            counts[lane] = counts.get(lane, 0) + end - begin
        keep = ~chunk.is_device_annotation if scope.where is not None else _outermost_work(chunk)
        lanes, rows, starts, ends = (a[keep] for a in (chunk.lanes, chunk.rows, chunk.starts, chunk.ends))
        for lane, begin, end in _runs(lanes):
            same_row = bool(rows[begin] == rows[end - 1])
            alone = same_row and scope.trace.lanes[lane].overlapping == 0 and scope.where is None
            if alone:  # one row: disjoint already
                busy[lane] = busy.get(lane, 0) + sum_of(ends[begin:end] - starts[begin:end])
            else:
                merged = merge(starts[begin:end], ends[begin:end])
                pieces.setdefault(lane, []).append((merged.starts, merged.ends))
    for lane, parts in pieces.items():
        both = merge(np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts]))
        busy[lane] = busy.get(lane, 0) + both.length
    low, high = scope.range or scope.trace.span_at(scope.clocks)
    lane_numbers = sorted(counts)
    length = max(1, high - low)
    lanes_of = [scope.trace.lanes[at] for at in lane_numbers]
    time = np.array([busy.get(at, 0) for at in lane_numbers], np.int64)
    return Table.from_arrays(
        LANES,
        scope.text,
        {
            "lane": [safe(lane.title) for lane in lanes_of],
            "process": [safe(lane.process.title) for lane in lanes_of],
            "count": np.array([counts[at] for at in lane_numbers], np.int64),
            "busy_ns": time,
            "share": time / length,
        },
        totals={"range_ns": high - low},
    )


def _sums(chunk: Chunk) -> dict[str, AnyArray]:
    """Return the columns SUMS of a chunk by name and category, in the order of their numbers."""
    width, durations = len(chunk.index.categories), chunk.durations
    names, numbers = dense(chunk.names)
    codes, pairs = dense(names * width + chunk.categories)
    groups = Groups(codes, len(pairs))
    most, source = groups.most(durations, -1), np.full(len(pairs), chunk.source)
    own = {"source": source, "name": numbers[pairs // width], "category": pairs % width}
    own |= {"count": groups.counts, "total_ns": groups.sums(durations), "min_ns": groups.least(durations)}
    own |= {"self_ns": groups.sums(chunk.self_times), "max_ns": most}
    return {**own, "longest": chunk.positions[groups.longest(durations, most)]}


def _joined(columns: dict[str, AnyArray], groups: Groups) -> dict[str, AnyArray]:
    """Return the columns SUMS of the rows of each group together; the longest slice says where it is."""
    longest = groups.longest(columns["max_ns"])
    return {
        **{key: columns[key][longest] for key in ("source", "name", "category", "longest")},
        **{key: groups.sums(columns[key]) for key in ("count", "total_ns", "self_ns")},
        "min_ns": groups.least(columns["min_ns"]),
        "max_ns": groups.most(columns["max_ns"], -1),
    }


def _as_table(scope: Scope, columns: dict[str, AnyArray]) -> Table:
    """Return the table of the sums per source; what has one name and category in several is one row."""
    notes = []
    spans = _whole_spans(scope, columns)
    if spans.any() and not spans.all():
        notes.append(
            f"left out: {sum_of(columns['count'][spans]):,} slices of the profiler's own for the whole "
            f"recording (category {SPAN_CATEGORY})"
        )
        columns = {key: values[~spans] for key, values in columns.items()}
    spent = sum_of(columns["self_ns"])
    slices = sum_of(columns["count"])
    order = np.argsort(-columns["self_ns"], kind="stable")
    if len(order) > MAX_ROWS:
        rest = order[MAX_ROWS:]
        notes.append(
            f"{len(rest):,} more names with {sum_of(columns['count'][rest]):,} slices are not listed: "
            "they took the least time"
        )
    columns = {key: values[order[:MAX_ROWS]] for key, values in columns.items()}
    facts = zip(*(columns[key].tolist() for key in ("source", "name", "category")))
    indexes = scope.trace.indexes
    texts = [(indexes[at].string(name), safe(indexes[at].categories[kind])) for at, name, kind in facts]
    if len(set(columns["source"].tolist())) > 1:
        codes: dict[tuple[str, str], int] = {}
        rows = np.array([codes.setdefault(text, len(codes)) for text in texts], np.int64)
        columns, texts = _joined(columns, Groups(rows, len(codes))), list(codes)
    return Table.from_arrays(
        RANGE,
        scope.text,
        {
            **{key: columns[key] for key in ("count", "total_ns", "self_ns", "min_ns", "max_ns")},
            "name": [name for name, _ in texts],
            "category": [category for _, category in texts],
            "share": columns["self_ns"] / max(1, spent),
            "mean_ns": means_of(columns["total_ns"], columns["count"]),
        },
        totals={"slices": slices, "names": len(texts), "self_ns": spent, "cut": scope.cut},
        notes=tuple(notes),
        positions=columns["longest"],
        sources=columns["source"],
    )


def _whole_spans(scope: Scope, columns: dict[str, AnyArray]) -> AnyArray:
    """Tell which rows are the profiler's own spans over its whole window."""
    whole = np.zeros(len(columns["source"]), np.bool_)
    for source in scope.sources:
        spans = np.flatnonzero(category_mask(scope.trace.indexes[source], (SPAN_CATEGORY,)))
        whole |= (columns["source"] == source) & np.isin(columns["category"], spans)
    return whole


def _outermost_work(chunk: Chunk) -> AnyArray:
    """Tell which slices to look at for a lane's busy time: those in no other, as their union is that of all.
    On lanes with a device's annotations, which are no work, all others.
    """
    outer: AnyArray = chunk.index.column("slices.parent")[chunk.positions] == NONE
    annotations = chunk.is_device_annotation
    if annotations.any():
        annotated = np.isin(chunk.lanes, distinct(chunk.lanes[annotations]))
        outer = np.where(annotated, ~annotations, outer)
    return outer


def _runs(values: I64) -> list[tuple[int, int, int]]:
    """Return (value, begin, end) of each stretch of equal values."""
    edges = [*run_starts(values).tolist(), len(values)]
    return [(int(values[begin]), begin, end) for begin, end in pairwise(edges)]
