"""Single slices as a table: those of a scope, and those that a search or a node of a call tree means.

A slice is whole even where the range cuts it. The columns are those of the view `slices` of `tracelane sql`.
Memory is used for the requested ones only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...base.arrays import I64, AnyArray, distinct, places_in
from ...base.errors import Cancelled, UsageError
from ...base.kineto import SliceKind
from ...base.progress import CancelledCallback, never
from ...base.short_names import short_name
from ...index.store import Index
from ...query.groups import Labels, concatenated, dense
from ...query.hits import Hits
from ...query.lanes import slice_kind_codes
from ...query.lookup import rows_around, rows_of, starts_of, with_ancestors
from ...query.views import Lane, plain
from ...trace.captured_graphs import captured_stack
from ...trace.hit_search import hits_at
from ..frame.frame import Frame
from ..frame.frame_columns import work_of
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.table import Table
from ..frame.table_rows import Values
from ..frame.text_column import TextColumn, joined_texts
from ..steps.attribution import WorkBySteps, steps_of_slices
from .tree import UNKNOWN_LAUNCH, TreeRoots, name_in_tree, slices_by_lane
from .tree_nodes import ROOT

if TYPE_CHECKING:
    from ...trace import Trace


SLICE_COLUMNS = (
    Column("id", "id", "id"),
    Column("name", "name", "text", is_name=True),
    Column("short_name", "short name", "text", detail=True),
    Column("category", "category", "text"),
    Column("slice_kind", "slice kind", "text", detail=True),
    Column("start_ns", "start", "ns", moment=True),
    Column("duration_ns", "duration", "ns"),
    Column("self_ns", "self", "ns"),
    Column("depth", "depth", "count"),
    Column("lane", "lane", "text"),
    Column("process", "process", "text"),
    Column("pid", "pid", "text", detail=True),
    Column("tid", "tid", "text", detail=True),
    Column("role", "role", "text", detail=True),
    Column("step", "step", "text"),
    Column("rank", "rank", "id", detail=True),
)
NAMES = tuple(column.key for column in SLICE_COLUMNS)
TEXTS = frozenset(column.key for column in SLICE_COLUMNS if column.unit == "text")
SliceColumn: TypeAlias = "AnyArray | TextColumn"
SOURCE_BITS = 32
"""An id is the number of its source shifted by this, plus the ordinal of its event in the file."""
NO_RANK = -1


LANE_TEXTS: Mapping[str, Callable[[Lane], str]] = {
    "lane": lambda lane: lane.title,
    "process": lambda lane: lane.process.title,
    "pid": lambda lane: plain(lane.pid),
    "tid": lambda lane: plain(lane.tid),
    "role": lambda lane: lane.role.name.lower(),
}
Codes: TypeAlias = tuple[AnyArray, Callable[[I64], list[str]]]
"""Numbers of texts, and what turns the distinct ones into texts."""


def slice_ids(index: Index, source: int, positions: AnyArray | slice) -> I64:
    """Return the ids of slices at positions, as tables and SQL have them."""
    ordinals: I64 = index.column("slices.ordinal")[positions].astype(np.int64)
    ordinals += source << SOURCE_BITS
    return ordinals


@dataclass(frozen=True, eq=False)
class SliceCells:
    """The columns of slices of a source, each made when it is asked for; times are of whole slices."""

    scope: Scope
    source: int
    positions: I64
    steps: WorkBySteps | None = None

    @property
    def index(self) -> Index:
        return self.scope.trace.indexes[self.source]

    def numbers(self, key: str) -> AnyArray:
        """Return a column of numbers: times, ids, depths, ranks."""
        index, positions, rank = self.index, self.positions, self.scope.trace.rank(self.source)
        of_key: dict[str, Callable[[], AnyArray]] = {
            "id": lambda: slice_ids(index, self.source, positions),
            "start_ns": lambda: self.starts,
            "duration_ns": lambda: index.duration(positions),
            "self_ns": lambda: index.self_time(positions),
            "depth": lambda: index.rows["depth"][self.rows].astype(np.int64),
            "rank": lambda: np.full(len(positions), NO_RANK if rank is None else rank, np.int64),
        }
        return of_key[key]()

    @cached_property
    def names(self) -> AnyArray:
        numbers: AnyArray = self.index.column("slices.name")[self.positions]
        return numbers

    @property
    def categories(self) -> AnyArray:
        numbers: AnyArray = self.index.column("slices.category")[self.positions]
        return numbers

    @cached_property
    def rows(self) -> I64:
        return rows_of(self.index, self.positions)

    @cached_property
    def starts(self) -> I64:
        """The slices' starts in trace time."""
        return self.scope.starts(self.source, self.positions)

    @cached_property
    def lanes(self) -> I64:
        """Of each row of the index the place of its lane in Trace.lanes."""
        return self.index.rows["lane"].astype(np.int64) + self.scope.trace.lane_bases[self.source]

    def texts(self, key: str) -> TextColumn:
        """Return a column of texts; each distinct one is looked up once."""
        codes, meaning = self.codes(key)
        rows, numbers = dense(codes)
        return TextColumn(rows, meaning(numbers))

    def codes(self, key: str) -> Codes:
        """Return a column of texts as numbers, and what the distinct numbers mean."""
        index = self.index
        match key:
            case "name":
                return self.names, index.strings
            case "short_name":
                return self.names, lambda numbers: [short_name(text) for text in index.strings(numbers)]
            case "category":
                return self.categories, lambda numbers: [index.categories[n] for n in numbers.tolist()]
            case "slice_kind":
                codes = slice_kind_codes(index, self.categories, self.names)
                return codes, lambda numbers: [list(SliceKind)[n].value for n in numbers.tolist()]
            case "step":
                steps = self.steps
                if steps is None:
                    return np.full(len(self.positions), -1, np.int64), lambda numbers: [""] * len(numbers)
                held = steps.spans.holding(self.starts)
                rows = steps.steps_of(self.source, self.positions, held)
                labels = (*steps.spans.labels, "")  # -1 is the last
                return rows, lambda numbers: [labels[n] for n in numbers.tolist()]
            case _:
                of_lane = LANE_TEXTS[key]
                lanes = [self.scope.trace.lanes[lane] for lane in self.lanes.tolist()]
                return self.rows, lambda numbers: [of_lane(lanes[n]) for n in numbers.tolist()]


def slice_chunks(scope: Scope, columns: Sequence[str] = NAMES) -> Iterator[Mapping[str, SliceColumn]]:
    """Yield these columns of the slices of a scope, chunk by chunk in order of source and lane."""
    steps = steps_of_slices(scope) if "step" in columns else None
    for chunk in scope.chunks():
        if not len(chunk):
            continue
        part = SliceCells(scope, chunk.source, chunk.positions, steps)
        yield {key: part.texts(key) if key in TEXTS else part.numbers(key) for key in columns}


def slice_table(scope: Scope, columns: Sequence[str] = NAMES, limit: int | None = None) -> Table:
    """Return the slices of a scope in order of time, whole where the range cuts them.

    With a limit the earliest ones. Raises UsageError for a column that there is not.
    """
    unknown = [key for key in columns if key not in NAMES]
    if unknown or not columns:
        what = unknown[0] if unknown else "of no name"
        raise UsageError(f"no column {what}; there are {', '.join(NAMES)}")
    keys = tuple(dict.fromkeys(columns))
    hidden = tuple(key for key in ("start_ns", "id") if key not in keys)
    parts = list(slice_chunks(scope, (*keys, *hidden)))
    data = {key: _joined(key, [part[key] for part in parts]) for key in (*keys, *hidden)}
    starts, ids = (np.asarray(data[key]) for key in ("start_ns", "id"))
    order = np.lexsort((ids, starts))[slice(limit)]
    rows = len(starts)
    chosen = {key: data[key][order] for key in keys}
    notes = (f"the first {len(order):,} of {rows:,} slices",) if len(order) < rows else ()
    own = tuple(column for key in keys for column in SLICE_COLUMNS if column.key == key)
    table = Table.from_arrays(TableSchema("slices", "Slices", own), scope.text, chosen, notes=notes)
    return replace(table, begins_ns=scope.origin)


def _joined(key: str, parts: Sequence[SliceColumn]) -> SliceColumn:
    """Return a column of slices, whose chunks are given."""
    if key in TEXTS:
        return joined_texts([part for part in parts if isinstance(part, TextColumn)])
    return concatenated([np.asarray(part) for part in parts])


HITS = TableSchema(
    "found",
    "What was found",
    (
        Column("name", "name", "text"),
        Column("start_ns", "start", "ns", moment=True),
        Column("duration_ns", "duration", "ns"),
        Column("lane", "lane", "text"),
        Column("category", "category", "text"),
        Column("self_ns", "self", "ns"),
    ),
    jumps_to="go there",
)


def hit_table(trace: Trace, hits: Hits, cancelled: CancelledCallback = never) -> Table:
    """Return the hits in order of (start, source, position); starts count from the trace's start, ns.

    Raises Cancelled.
    """
    positions, sources, starts, durations, own = [], [], [], [], []
    texts: dict[str, list[TextColumn]] = {"name": [], "lane": [], "category": []}
    for source, index in enumerate(hits.indexes):
        if cancelled():
            raise Cancelled
        at = hits.positions[source].astype(np.int64)
        cells = SliceCells(Scope(trace), source, at)
        for key, columns in texts.items():
            columns.append(cells.texts(key))
        positions.append(at)
        sources.append(np.full(len(at), source, np.uint32))
        starts.append(starts_of(index, at, hits.offsets[source]))
        durations.append(index.duration(at))
        own.append(index.self_time(at))
    start = concatenated(starts)
    order = np.argsort(start, kind="stable")  # hits of equal start keep the order of source and position
    data: dict[str, Values] = {
        "start_ns": start[order],
        "duration_ns": concatenated(durations)[order],
        "self_ns": concatenated(own)[order],
        **{key: joined_texts(columns)[order] for key, columns in texts.items()},
    }
    table = Table.from_arrays(
        HITS,
        f"{hits.filter.text}: {hits.summed}",
        data,
        positions=concatenated(positions)[order],
        sources=concatenated(sources)[order],
    )
    return table.counted_from(trace.opening_span[0])


def slices_of_node(
    scope: Scope, path: Sequence[str], by: TreeRoots = "all", from_bottom: bool = False
) -> Hits:
    """Return the slices of the node that a path of names leads to, from its root on. Raises Cancelled."""
    parts: list[list[I64]] = [[] for _ in scope.trace.indexes]
    if by == "launch":
        chain = list(path if from_bottom else reversed(path))
        for source, index in enumerate(scope.trace.indexes):
            parts[source] += _launched(scope, source, index, chain, from_bottom)
    else:
        names = list(path[1:] if by == "thread" else path)
        chain = names if from_bottom else names[::-1]
        for source, lane, pieces in slices_by_lane(scope):
            own = scope.trace.lanes[lane]
            if by == "thread" and path[0] != f"{own.process.title} · {own.title}":
                continue
            index = scope.trace.indexes[source]
            positions = concatenated([piece.positions.astype(np.int64) for piece in pieces])
            around = rows_around(index, positions)
            codes, chain_codes = _codes(index, positions, chain)
            parts[source].append(positions[_chained(codes, around, chain_codes, from_bottom)])
    positions_of = [distinct(concatenated(part)).astype(np.uint32) for part in parts]
    return hits_at(scope.trace, positions_of, scope.clocks, " › ".join(path))


def _codes(index: Index, positions: I64, names: Sequence[str]) -> tuple[I64, list[int]]:
    """Return the number of each slice's name, and those of some names; ROOT where no slice is called so."""
    labels = Labels()
    codes = labels.of_slices(index, positions, name_in_tree)
    return codes, [labels.get(name, ROOT) for name in names]


def _chained(codes: I64, around: I64, chain_codes: Sequence[int], from_bottom: bool) -> I64:
    """Return which of the slices lie in slices of these names, their own name first; unless
    `from_bottom`, in no other ones. Of no name: those that lie in nothing.
    """
    members = np.flatnonzero(codes == chain_codes[0]) if chain_codes else np.arange(len(codes))
    cursor = around[members] if chain_codes else np.where(around < 0, ROOT, 0)
    for code in chain_codes[1:]:
        matching = (cursor >= 0) & (codes[cursor] == code)
        members, cursor = members[matching], around[cursor[matching]]
    return members if from_bottom and chain_codes else members[cursor < 0]


def _launched(scope: Scope, source: int, index: Index, chain: Sequence[str], from_bottom: bool) -> list[I64]:
    """Return device work of these names: its own, then that of its launch and what that lies in; and what
    on the host is called so itself, where the chain begins there.
    """
    rows = work_of(replace(scope, source=source))
    work, launches = rows.position.astype(np.int64), rows.launched
    is_known = launches >= 0
    if chain[0] == UNKNOWN_LAUNCH:
        return [work[~is_known]]
    own, chain_codes = _codes(index, work, chain[:1])
    fits = own == chain_codes[0]
    if UNKNOWN_LAUNCH in chain:
        return [work[fits & ~is_known]]
    if len(chain) == 1 and from_bottom:
        return [work[fits]]
    stacks = _Stacks.of(index, rows)
    chain_codes = [stacks.labels.get(name, ROOT) for name in chain]
    below = (
        _chained(stacks.codes, stacks.around, chain_codes[1:], from_bottom) if len(chain) > 1 else work[:0]
    )
    parts = [work[fits & is_known & np.isin(stacks.node, below)]]
    if from_bottom:
        return parts
    called_so = _chained(stacks.codes, stacks.around, chain_codes, False)
    is_captured = called_so >= len(stacks.host)
    return [*parts, stacks.host[called_so[~is_captured]], work[stacks.lie_in(called_so[is_captured])]]


@dataclass(frozen=True, eq=False)
class _Stacks:
    """The stacks in which device work was launched, those of a graph's below its launch, as a tree by launch
    has them: `codes` are names in `labels`, `around` the entry around each, ROOT for none.
    """

    labels: Labels
    codes: I64
    around: I64
    host: I64  # positions of the first entries; the others lie in captures
    node: I64  # the entry of each piece of work's owner, ROOT where its launch is not known

    @classmethod
    def of(cls, source: Index, rows: Frame) -> _Stacks:
        """Return the stacks of the device work of one source."""
        labels, launches = Labels(), rows.launched
        host = with_ancestors(source, distinct(launches[launches >= 0]))
        codes, around = [labels.of_slices(source, host, name_in_tree)], [rows_around(source, host)]
        node, size = places_in(host, launches), len(host)
        for book in distinct(rows.book[rows.is_by_capture]).tolist():
            own = np.flatnonzero(rows.book == book)
            index, owners = rows[own].owner_index, rows.owner[own]
            for launch in distinct(node[own]).tolist():
                here = node[own] == launch
                stack = captured_stack(index, distinct(owners[here]))
                inside = rows_around(index, stack)
                codes.append(labels.of_slices(index, stack, name_in_tree))
                around.append(np.where(inside < 0, launch, inside + size))
                node[own[here]] = np.searchsorted(stack, owners[here]) + size
                size += len(stack)
        return cls(labels, np.concatenate(codes), np.concatenate(around), host, node)

    def lie_in(self, entries: I64) -> AnyArray:
        """Tell of each piece of work whether its owner is one of these entries or lies in one; bool."""
        is_one = np.zeros(len(self.codes) + 1, np.bool_)
        is_one[entries] = True
        inside, cursor = np.zeros(len(self.node), np.bool_), self.node
        while (cursor >= 0).any():
            inside |= is_one[cursor]
            cursor = np.append(self.around, ROOT)[cursor]
        return inside
