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
from ..base.short_names import short_name
from ..base.slice_kinds import SliceKind
from ..query.row_facts import slice_kind_codes
from ..query.titles import plain
from .attribution import WorkBySteps, steps_of_slices
from .schema import TableSchema, columns_from
from .scope import Chunk, Scope
from .table import Table, Values

SLICE_COLUMNS = columns_from("""
    id: id, name: text (is_name), short_name: text (detail), category: text, slice_kind: text (detail),
    start_ns (moment), duration_ns, self_ns, depth, lane: text, process: text, pid: text (detail),
    tid: text (detail), role: text (detail), step: text, rank: id (detail)
""")
NAMES = tuple(column.key for column in SLICE_COLUMNS)
SOURCE_BITS = 32
"""An id is the number of its source shifted by this, plus the ordinal of its event in the file."""
NO_RANK = -1


Codes: TypeAlias = tuple[AnyArray, Callable[[I64], list[str]]]
"""Numbers of texts, and what turns the distinct ones into texts."""


@dataclass(frozen=True)
class ChunkColumns:
    """The columns of one chunk of a scope, each made when it is asked for."""

    scope: Scope
    chunk: Chunk
    steps: WorkBySteps | None

    def numbers(self, key: str) -> AnyArray:
        """Return a column of numbers: times, ids, depths, ranks."""
        chunk, index = self.chunk, self.chunk.index
        match key:
            case "id":
                ordinals: AnyArray = index.column("slices.ordinal")[chunk.positions].astype(np.int64)
                return ordinals + (chunk.source << SOURCE_BITS)
            case "start_ns":
                return self.starts
            case "duration_ns":
                return index.duration(chunk.positions)
            case "self_ns":
                return index.self_time(chunk.positions)
            case "depth":
                return index.rows["depth"][chunk.rows].astype(np.int64)
            case _:
                rank = self.scope.trace.rank(chunk.source)
                return np.full(len(chunk), NO_RANK if rank is None else rank, np.int64)

    @cached_property
    def starts(self) -> I64:
        """The whole slices' starts in trace time."""
        starts = self.chunk.starts
        if not len(self.chunk.cut):
            return starts
        starts = starts.copy()
        trace, cut = self.scope.trace, self.chunk.cut
        for at in cut.tolist():
            lane = trace.lanes[int(self.chunk.lanes[at])]
            offset = self.scope.clocks.offset(self.chunk.source, lane.pid)
            starts[at] = self.chunk.index.start(int(self.chunk.positions[at])) + offset
        return starts

    def codes(self, key: str) -> Codes:
        """Return a column of texts as numbers, and what the distinct numbers mean."""
        chunk, index, lanes = self.chunk, self.chunk.index, self.scope.trace.lanes
        match key:
            case "name":
                return chunk.names, index.strings
            case "short_name":
                return chunk.names, lambda numbers: [short_name(text) for text in index.strings(numbers)]
            case "category":
                return chunk.categories, lambda numbers: [index.categories[n] for n in numbers.tolist()]
            case "slice_kind":
                codes = slice_kind_codes(index, chunk.categories, chunk.names)
                return codes, lambda numbers: [list(SliceKind)[n].value for n in numbers.tolist()]
            case "role":
                return chunk.lanes, lambda numbers: [lanes[n].role.name.lower() for n in numbers.tolist()]
            case "lane":
                return chunk.lanes, lambda numbers: [lanes[n].title for n in numbers.tolist()]
            case "process":
                return chunk.lanes, lambda numbers: [lanes[n].process.title for n in numbers.tolist()]
            case "pid":
                return chunk.lanes, lambda numbers: [plain(lanes[n].pid) for n in numbers.tolist()]
            case "tid":
                return chunk.lanes, lambda numbers: [plain(lanes[n].tid) for n in numbers.tolist()]
            case _:
                steps = self.steps
                if steps is None:
                    return np.full(len(chunk), -1, np.int64), lambda numbers: [""] * len(numbers)
                held = steps.spans.holding(self.starts)
                rows = steps.steps_of(chunk.source, chunk.positions, held)
                labels = (*steps.spans.labels, "")  # -1 is the last
                return rows, lambda numbers: [labels[n] for n in numbers.tolist()]


def slice_chunks(scope: Scope, columns: Sequence[str] = NAMES) -> Iterator[Mapping[str, Values]]:
    """Yield these columns of the slices of a scope, chunk by chunk in order of source and lane."""
    steps = steps_of_slices(scope) if "step" in columns else None
    texts = {column.key for column in SLICE_COLUMNS if column.unit == "text"}
    for chunk in scope.chunks():
        if not len(chunk):
            continue
        part = ChunkColumns(scope, chunk, steps)
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
    return replace(table, origin_ns=scope.origin)


def _texts(codes: AnyArray, meaning: Callable[[I64], list[str]]) -> AnyArray:
    """Return a text per number; each distinct one is looked up once."""
    distinct, which = np.unique(codes, return_inverse=True)
    words = np.empty(len(distinct), object)
    words[:] = meaning(distinct.astype(np.int64))
    return words[which]


def _nothing(key: str) -> AnyArray:
    is_text = next(column.unit for column in SLICE_COLUMNS if column.key == key) == "text"
    return np.empty(0, object if is_text else np.int64)
