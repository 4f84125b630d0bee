"""What happens in a range: a row per name and category with count, total and self time; a row per lane with
its busy time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ..base.arrays import I64, AnyArray, add_at, means_of, sum_of
from ..base.intervals import merge
from ..base.safe_text import safe
from ..index.format import NONE
from ..index.store import Index
from ..query.window import SPAN_CATEGORY
from .groups import Groups, Labels, concatenated
from .metrics import Metric
from .schema import Column, TableSchema
from .scope import Chunk, Scope
from .table import Table, Tables

MOST_ROWS = 200_000
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
CATEGORY_COLUMNS = (
    Column("category", "category", "text"),
    Column("names", "names", "count"),
    Column("count", "count", "count"),
    Column("self_ns", "self", "ns"),
    Column("share", "share", "share"),
    Column("max_ns", "max", "ns", statistic=True),
)
UNKNOWN = np.int64(-1)
FAR = np.iinfo(np.int64).max


def analyse_range(scope: Scope, by: str = "name") -> Tables:
    """Return what happens in a scope by name and category, by lane, or by category."""

    def table() -> Table:
        if by == "lane":
            return lane_table(scope).sort("busy_ns")
        return (category_table(scope) if by == "category" else range_table(scope)).sort("self_ns")

    return Tables(scope.text, scope.origin, {"range": table})


def range_metrics(scope: Scope) -> list[Metric]:
    """Return how long a scope is, without what lies absurdly far off, and how many slices it holds."""
    whole = scope.trace.opening_span if scope.trace.has_outliers else scope.trace.span_at(scope.clocks)
    low, high = scope.range or whole
    count = sum_of(range_table(scope).numbers("count"))
    return [Metric("trace.span", "ns", high - low), Metric("trace.slices", "count", count)]


def range_table(scope: Scope) -> Table:
    """Return per name and category: count, total, self, mean, min, max (ns inside the range), self share.

    `positions` and `sources` tell the longest slice of each.
    """
    groups: dict[int, _Groups] = {}
    for chunk in scope.chunks():
        group = groups.get(chunk.source)
        if group is None:
            group = groups[chunk.source] = _Groups(chunk.index)
        group.add(chunk)
    return _as_table(scope, groups)


def category_table(scope: Scope) -> Table:
    """Return per category: names, count, self (ns inside the range), its share, max; each row's slice is the
    longest.
    """
    names = range_table(scope)
    labels = Labels()
    groups = Groups(labels.codes(names.texts("category")), len(labels))
    longest = groups.longest(names.numbers("max_ns"))  # the row with the longest slice
    own = groups.sums(names.numbers("self_ns"))
    return replace(
        names,
        title="Slices by category",
        columns=CATEGORY_COLUMNS,
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


@dataclass(eq=False)
class _Groups:
    """Sums per (name, category) of one source. Slots are given to pairs as they are met.

    Nearly every name has one category, so a table by name finds the slot; other pairs stand in `others`.
    """

    index: Index
    slot_of: I64 = field(init=False)  # by string number; -1: not met
    category: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    name: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    count: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    total: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    own: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    least: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    most: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    longest: I64 = field(default_factory=lambda: np.empty(0, np.int64))  # position
    others: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.slot_of = np.full(max(0, len(self.index.column("strings.offset")) - 1), UNKNOWN)

    def add(self, chunk: Chunk) -> None:
        """Add a chunk's slices."""
        if not len(chunk):
            return
        durations = chunk.durations
        slots = self._slots(chunk)
        size = len(self.name)
        self.count += np.bincount(slots, minlength=size)
        add_at(self.total, slots, durations)
        add_at(self.own, slots, chunk.self_times)
        np.minimum.at(self.least, slots, durations)
        before = self.most.copy()
        np.maximum.at(self.most, slots, durations)
        at = np.flatnonzero((durations == self.most[slots]) & (before[slots] < durations))[::-1]
        self.longest[slots[at]] = chunk.positions[at]  # backwards: the first of equals is written last

    def _slots(self, chunk: Chunk) -> I64:
        names, categories = chunk.names, chunk.categories
        slots: I64 = self.slot_of[names]
        new = np.flatnonzero(slots == UNKNOWN)
        if len(new):
            category_of = np.full(len(self.slot_of), UNKNOWN)
            category_of[names[new[::-1]]] = categories[
                new[::-1]
            ]  # backwards: the first one met is written last
            fresh = np.flatnonzero(category_of != UNKNOWN)
            self._grow(fresh, category_of[fresh])
            self.slot_of[fresh] = np.arange(len(self.name) - len(fresh), len(self.name))
            slots[new] = self.slot_of[names[new]]
        wrong = np.flatnonzero(self.category[slots] != categories)
        if len(wrong):
            kinds = len(self.index.categories)
            pairs, which = np.unique(
                names[wrong].astype(np.int64) * kinds + categories[wrong], return_inverse=True
            )
            missing = np.array([pair for pair in pairs.tolist() if pair not in self.others], np.int64)
            self.others.update(zip(missing.tolist(), range(len(self.name), len(self.name) + len(missing))))
            self._grow(missing // kinds, missing % kinds)
            slots[wrong] = np.array([self.others[pair] for pair in pairs.tolist()], np.int64)[which]
        return slots

    def _grow(self, names: I64, categories: I64) -> None:
        zero = np.zeros(len(names), np.int64)
        self.name = np.concatenate([self.name, names])
        self.category = np.concatenate([self.category, categories])
        for key, value in (("count", 0), ("total", 0), ("own", 0), ("least", FAR), ("most", -1)):
            setattr(self, key, np.concatenate([getattr(self, key), zero + value]))
        self.longest = np.concatenate([self.longest, zero])


def _as_table(scope: Scope, groups: dict[int, _Groups]) -> Table:
    """Return the table of the sums per source; what has one name and category in several is one row."""
    columns = _together(groups)
    notes = []
    spans = _whole_spans(groups, columns)
    if spans.any() and not spans.all():
        notes.append(
            f"left out: {sum_of(columns['count'][spans]):,} slices of the profiler's own for the whole "
            f"recording (category {SPAN_CATEGORY})"
        )
        columns = {key: values[~spans] for key, values in columns.items()}
    spent = sum_of(columns["own"])
    slices = sum_of(columns["count"])
    order = np.argsort(-columns["own"], kind="stable")
    if len(order) > MOST_ROWS:
        rest = order[MOST_ROWS:]
        notes.append(
            f"{len(rest):,} more names with {sum_of(columns['count'][rest]):,} slices are not listed: "
            "they took the least time"
        )
    columns = {key: values[order[:MOST_ROWS]] for key, values in columns.items()}
    indexes = [scope.trace.indexes[source] for source in columns["source"].tolist()]
    names = [index.string(number) for index, number in zip(indexes, columns["name"].tolist())]
    kinds = [index.categories[number] for index, number in zip(indexes, columns["category"].tolist())]
    if len(groups) > 1:
        columns, names, kinds = _joined(columns, names, kinds)
    count = columns["count"]
    return Table.from_arrays(
        RANGE,
        scope.text,
        {
            "name": names,
            "category": [safe(kind) for kind in kinds],
            "count": count,
            "total_ns": columns["total"],
            "self_ns": columns["own"],
            "share": columns["own"] / max(1, spent),
            "mean_ns": means_of(columns["total"], count),
            "min_ns": columns["least"],
            "max_ns": columns["most"],
        },
        totals={"slices": slices, "names": len(names), "self_ns": spent, "cut": scope.cut},
        notes=tuple(notes),
        positions=columns["longest"],
        sources=columns["source"],
    )


def _together(groups: dict[int, _Groups]) -> dict[str, I64]:
    """Return the sums of all sources as columns, one source after the other, and the source of each row."""
    columns = {
        key: concatenated([getattr(group, key) for group in groups.values()])
        for key in ("name", "category", "count", "total", "own", "least", "most", "longest")
    }
    sizes = np.array([len(group.name) for group in groups.values()], np.int64)
    return columns | {"source": np.repeat(np.array(list(groups), np.int64), sizes)}


def _whole_spans(groups: dict[int, _Groups], columns: dict[str, I64]) -> AnyArray:
    """Tell which rows are the profiler's own spans over its whole window."""
    whole = np.zeros(len(columns["source"]), np.bool_)
    for source, group in groups.items():
        if SPAN_CATEGORY in group.index.categories:
            number = group.index.categories.index(SPAN_CATEGORY)
            whole |= (columns["source"] == source) & (columns["category"] == number)
    return whole


def _joined(
    columns: dict[str, I64], names: list[str], kinds: list[str]
) -> tuple[dict[str, I64], list[str], list[str]]:
    """Join the rows of several sources that have one name and category; the first one stays in place."""
    codes: dict[tuple[str, str], int] = {}
    slots = np.array([codes.setdefault(key, len(codes)) for key in zip(names, kinds)], np.int64)
    rows = Groups(slots, len(codes))
    joined = {key: rows.sums(columns[key]) for key in ("count", "total", "own")}
    longest = rows.longest(columns["most"])
    joined |= {"least": rows.least(columns["least"]), "most": rows.most(columns["most"], -1)}
    joined |= {key: columns[key][longest] for key in ("longest", "source")}
    return joined, [name for name, _ in codes], [kind for _, kind in codes]


def _outermost_work(chunk: Chunk) -> AnyArray:
    """Tell which slices to look at for a lane's busy time: those in no other, as their union is that of all.
    On lanes with a device's annotations, which are no work, all others.
    """
    outer: AnyArray = chunk.index.column("slices.parent")[chunk.positions] == NONE
    annotations = chunk.is_device_annotation
    if annotations.any():
        annotated = np.isin(chunk.lanes, np.unique(chunk.lanes[annotations]))
        outer = np.where(annotated, ~annotations, outer)
    return outer


def _runs(values: I64) -> list[tuple[int, int, int]]:
    """Return (value, begin, end) of each stretch of equal values."""
    if not len(values):
        return []
    edges = np.flatnonzero(values[1:] != values[:-1]) + 1
    begins, ends = [0, *edges.tolist()], [*edges.tolist(), len(values)]
    return [(int(values[begin]), begin, end) for begin, end in zip(begins, ends)]
