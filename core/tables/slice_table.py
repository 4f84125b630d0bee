"""Single slices as a table: times, name, lane, step. A slice is whole even where the range cuts it.

The columns are those of the view `slices` of `tracelane sql`. Memory is used for the requested ones only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from ..base.arrays import I64, AnyArray
from ..base.errors import UsageError
from ..base.kineto import SliceKind
from ..base.short_names import short_name
from ..index.store import Index
from ..query.lanes import slice_kind_codes
from ..query.lookup import rows_of
from ..query.views import Lane, plain
from .attribution import WorkBySteps, steps_of_slices
from .schema import TableSchema, columns_from
from .scope import Scope
from .table import Table
from .table_rows import Values

SLICE_COLUMNS = columns_from("""
    id: id, name: text (is_name), short_name: text (detail), category: text, slice_kind: text (detail),
    start_ns (moment), duration_ns, self_ns, depth, lane: text, process: text, pid: text (detail),
    tid: text (detail), role: text (detail), step: text, rank: id (detail)
""")
NAMES = tuple(column.key for column in SLICE_COLUMNS)
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
    return ordinals + (source << SOURCE_BITS)


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


def slice_chunks(scope: Scope, columns: Sequence[str] = NAMES) -> Iterator[Mapping[str, Values]]:
    """Yield these columns of the slices of a scope, chunk by chunk in order of source and lane."""
    steps = steps_of_slices(scope) if "step" in columns else None
    texts = {column.key for column in SLICE_COLUMNS if column.unit == "text"}
    for chunk in scope.chunks():
        if not len(chunk):
            continue
        part = SliceCells(scope, chunk.source, chunk.positions, steps)
        yield {key: _texts(*part.codes(key)) if key in texts else part.numbers(key) for key in columns}


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
    data = {key: np.concatenate([part[key] for part in parts] or [_nothing(key)]) for key in (*keys, *hidden)}
    order = np.lexsort((data["id"], data["start_ns"]))[slice(limit)]
    rows = len(data["start_ns"])
    data = {key: data[key][order] for key in keys}
    notes = (f"the first {len(order):,} of {rows:,} slices",) if len(order) < rows else ()
    chosen = tuple(column for key in keys for column in SLICE_COLUMNS if column.key == key)
    table = Table.from_arrays(TableSchema("slices", "Slices", chosen), scope.text, data, notes=notes)
    return replace(table, begins_ns=scope.origin)


def _texts(codes: AnyArray, meaning: Callable[[I64], list[str]]) -> AnyArray:
    """Return a text per number; each distinct one is looked up once."""
    distinct, which = np.unique(codes, return_inverse=True)
    words = np.empty(len(distinct), object)
    words[:] = meaning(distinct.astype(np.int64))
    return words[which]


def _nothing(key: str) -> AnyArray:
    is_text = next(column.unit for column in SLICE_COLUMNS if column.key == key) == "text"
    return np.empty(0, object if is_text else np.int64)
