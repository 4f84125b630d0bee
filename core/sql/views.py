"""The views that queries see, and the arrays that they are made of. Each view is a SELECT over one table of
plain columns per source; a column of texts is one of numbers, beside a small table that says what those mean.
Only columns that a query names are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any, TypeAlias

import numpy as np

from ..base.arrays import I64, AnyArray, places_in
from ..base.kineto import MODULE, OPS
from ..base.progress import CancelledCallback, never
from ..index.blocks import read_blocks
from ..index.format import NONE, RowKind
from ..index.store import Index
from ..query.args import MAX_BLOCK, arguments_in, elements_of, json_value_text
from ..query.groups import concatenated
from ..query.launches import VIA
from ..query.lookup import rows_around
from ..query.scan import key_needle
from ..query.views import plain
from ..read.promoted import PROMOTED, Kind
from ..tables.device.device_state import device_states
from ..tables.device.states import CAUSES, PRECEDENCE
from ..tables.device.untrusted_periods import untrusted
from ..tables.frame.frame import Frame
from ..tables.frame.frame_columns import work_of
from ..tables.frame.kinds import KERNEL_TYPES
from ..tables.frame.scope import Scope
from ..tables.frame.text_column import TextColumn
from ..tables.host.op_sums import LinkedWork, work_in
from ..tables.host.slice_table import SLICE_COLUMNS, SOURCE_BITS, Codes, SliceCells, slice_ids
from ..tables.steps.attribution import WorkBySteps, steps_of_slices
from ..trace import Trace
from ..trace.devices import device_title
from ..trace.step_spans import step_spans
from .tokens import ARGUMENT_TABLE, VALUE_TABLE, QueryWords, quoted_name

LIMIT = 1 << 63


def scanned_argument(index: Index, key: str, cancelled: CancelledCallback = never) -> tuple[I64, AnyArray]:
    """Return (event ordinals, values) of all events that have an argument of this key; the end of a pair of
    events (E, e) counts for its begin. Values are whole numbers if all are, else numbers if all are, else
    texts: strings as they are, all else as JSON. Raises UnreadableError when the source has gone or changed,
    Cancelled.
    """
    begins = dict(
        zip(
            index.column("ends.ordinal").tolist(),
            index.column("slices.ordinal")[index.column("ends.position")].tolist(),
        )
    )
    firsts, counts = index.column("blocks.ordinal").tolist(), index.column("blocks.count").tolist()
    lengths = index.column("blocks.length")
    needle = key_needle(key)
    ordinals: list[int] = []
    values: list[Any] = []
    blocks = [at for at, count in enumerate(counts) if count and int(lengths[at]) <= MAX_BLOCK]
    for block, data in read_blocks(index, blocks, cancelled):
        if not needle.may_hold(data):
            continue
        for at, event in enumerate(elements_of(data, bool(index.column("blocks.repaired")[block]))):
            if isinstance(event, dict) and event.get("ph") != "M":
                value = arguments_in(event).get(key)
                if value is not None:
                    ordinal = firsts[block] + at
                    ordinals.append(begins.get(ordinal, ordinal))
                    values.append(value)
    return np.array(ordinals, np.int64), _column(values)


def _column(values: list[Any]) -> AnyArray:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    if numbers and all(isinstance(value, int) and -LIMIT <= value < LIMIT for value in values):
        return np.array(values, np.int64)
    if numbers:
        return np.array(values, np.float64)
    column = np.empty(len(values), object)
    column[:] = [json_value_text(value) for value in values]
    return column


ALIASES: Mapping[str, str] = {"start_ns": "ts", "duration_ns": "dur", "self_ns": "self"}
"""The names that times have in every other form -> those of before, which queries may go on using."""
SLICES = tuple(ALIASES.get(column.key, column.key) for column in SLICE_COLUMNS)
SLICE_VIEW = (*SLICES, *ALIASES)
OP_VIEW = ("device_self_ns", "device_total_ns", "device_busy_ns")
START, LENGTH = "start_ns", ("start_ns", "duration_ns")
VIEWS: Mapping[str, tuple[str, ...]] = {
    "slices": SLICE_VIEW,
    "ops": (*SLICE_VIEW, *OP_VIEW),
    "kernels": (*SLICE_VIEW, "device", "stream", "type", "op_id", "op", "module", "annotation"),
    "launches": (*SLICE_VIEW, "kernel", "delay", "via"),
    "flows": ("category", "source", "target"),
    "counters": ("id", "name", "series", "ts", "value", "process", "pid", "rank", START),
    "steps": ("number", "step", "ts", "dur", *LENGTH),
    "device_states": ("rank", "device", "state", "cause", "ts", "dur", *LENGTH),
    "untrusted": ("rank", "device", "trouble", "ts", "dur", "count", *LENGTH),
}
"""The views and their columns; besides there is args('key') with the columns `id` and `value`, and
arg(id, 'key')."""
KEYS = ("number of text", "arg id")
"""Columns by which tables are looked up."""
_NO_NUMBER = "nullif(b.{0}, -1)"
EXPRESSIONS = {
    **dict.fromkeys(("rank", "op_id", "source", "target"), _NO_NUMBER),
    # JSON has no NaN and neither does SQLite: a value that is none is NULL in both.
    "value": "CASE WHEN abs(b.{0}) <= 1.7976931348623157e308 THEN b.{0} END",
}
"""Column of numbers -> its expression, where it may be NULL."""
ArrayTable: TypeAlias = Mapping[str, AnyArray]
"""Columns of equal length by name: numbers, or texts as an array of objects."""
Columns: TypeAlias = "Mapping[str, AnyArray | Codes | Callable[[], AnyArray | Codes]]"
"""Each column of a view, or what makes it: numbers, or numbers (-1: none) and what turns them into texts."""


@dataclass(frozen=True, eq=False)
class QueryTables:
    """What an engine needs for one query: tables of arrays, and the views over them as SQL."""

    trace: Trace
    words: QueryWords
    step_name: str | None = None
    cancelled: CancelledCallback = never
    tables: dict[str, ArrayTable] = field(default_factory=dict)
    views: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        trace: Trace,
        words: QueryWords,
        step_name: str | None = None,
        cancelled: CancelledCallback = never,
    ) -> QueryTables:
        """Return the tables and views that a query names. Raises Cancelled, UnreadableError."""
        query_tables = cls(trace, words, step_name, cancelled)
        for view in VIEWS:
            if view in words.names:
                parts: Sequence[Columns] = getattr(query_tables, f"_{view}")()
                selects = [query_tables._select(view, at, columns) for at, columns in enumerate(parts)]
                query_tables.views[view] = " UNION ALL ".join(selects)
        for table, of_keys, make_table in (
            (ARGUMENT_TABLE, words.arguments, query_tables._arguments),
            (VALUE_TABLE, words.values, query_tables._values),
        ):
            for key in of_keys:
                query_tables.views[table.format(key)] = ""
                query_tables.tables[table.format(key)] = make_table(key)
        return query_tables

    def _select(self, view: str, number: int, columns: Columns) -> str:
        """Return the SELECT of the needed columns of a view over a table of its own, which is made."""
        self._scope.check()
        base = f"{view}_{number}"
        arrays: dict[str, AnyArray] = {}
        needed = self._needed(view)
        expressions: dict[str, str] = {}
        joins: list[str] = []
        for key in dict.fromkeys(ALIASES.get(key, key) for key in needed):
            values, name = columns[key], quoted_name(key)
            values = values() if callable(values) else values
            if isinstance(values, tuple):
                codes, meaning = values
                column = next((known for known, array in arrays.items() if array is codes), key)
                table = f"{base}_{key}"
                self.tables[table] = _meanings(codes, meaning)
                joins.append(f'LEFT JOIN {table} {name} ON {name}."{KEYS[0]}" = b.{quoted_name(column)}')
                arrays[column], expressions[key] = codes, f"{name}.text"
            else:
                arrays[key], expressions[key] = values, EXPRESSIONS.get(key, "b.{0}").format(name)
        self.tables[base] = arrays
        chosen = (f"{expressions[ALIASES.get(key, key)]} AS {quoted_name(key)}" for key in needed)
        return f"SELECT {', '.join(chosen)} FROM {base} b {' '.join(joins)}"

    def _needed(self, view: str) -> tuple[str, ...]:
        """Return the columns of a view that the query may name; at least one."""
        columns = VIEWS[view]
        if self.words.all_columns:
            return columns
        return tuple(key for key in columns if key in self.words.names) or columns[:1]

    @cached_property
    def _scope(self) -> Scope:
        return Scope(
            self.trace, clocks=self.trace.clocks, steps=self.step_name or "", cancelled=self.cancelled
        )

    @cached_property
    def _step_labels(self) -> WorkBySteps | None:
        return steps_of_slices(self._scope) if self.words.all_columns or "step" in self.words.names else None

    # -- the views: the columns of each source --------------------------------------------------------------

    def _of_slices(self, source: int, positions: I64) -> Columns:
        part = SliceCells(self._scope, source, positions, self._step_labels)
        return {
            ALIASES.get(column.key, column.key): partial(
                part.codes if column.unit == "text" else part.numbers, column.key
            )
            for column in SLICE_COLUMNS
        }

    def _slices(self) -> list[Columns]:
        counts = [index.length("slices.start") for index in self.trace.indexes]
        return [self._of_slices(source, np.arange(count)) for source, count in enumerate(counts)]

    def _ops(self) -> list[Columns]:
        views: list[Columns] = []
        for source, index in enumerate(self.trace.indexes):
            is_op = np.array([category in OPS for category in index.categories], np.bool_)
            ops = np.flatnonzero(is_op[index.column("slices.category")])
            views.append({**self._of_slices(source, ops), **_op_times(self._scope, source, ops)})
        return views

    def _kernels(self) -> list[Columns]:
        work = work_of(self._scope)
        parts = [part[np.argsort(part.position, kind="stable")] for part in work.by("source")]
        views: list[Columns] = [
            {
                **self._of_slices(rows.source_number, rows.position.astype(np.int64)),
                "device": partial(_coded, rows.device_row, work.device.texts),
                "stream": partial(_coded, rows.stream, work.streams),
                "type": partial(_coded, rows.type, KERNEL_TYPES),
                "op_id": partial(_op_ids, rows),
                **{key: partial(_launching, rows, key) for key in ("op", "module", "annotation")},
            }
            for rows in parts
        ]
        nothing = {key: partial(_coded, np.empty(0, np.int64), ()) for key in VIEWS["kernels"]}
        return views or [{**nothing, **self._of_slices(0, np.empty(0, np.int64))}]

    def _launches(self) -> list[Columns]:
        views: list[Columns] = []
        for source, index in enumerate(self.trace.indexes):
            launches = self.trace.launches(source)
            pairs = launches.by_launch
            calls, kernels = launches.launch[pairs].astype(np.int64), launches.kernels[pairs].astype(np.int64)
            starts = [SliceCells(self._scope, source, one).starts for one in (kernels, calls)]
            delays = starts[0] - starts[1] - index.duration(calls)
            own: Columns = {
                "kernel": slice_ids(index, source, kernels),
                "delay": delays,
                "via": _coded(launches.via[pairs], VIA),
            }
            views.append({**self._of_slices(source, calls), **own})
        return views

    def _flows(self) -> list[Columns]:
        views: list[Columns] = []
        for source, index in enumerate(self.trace.indexes):
            ids = np.append(slice_ids(index, source, slice(None)), -1)  # the last: an end in no slice
            ends = {end: index.column(f"flows.{end}").astype(np.int64) for end in ("source", "target")}
            own = {end: ids[np.where(positions == NONE, -1, positions)] for end, positions in ends.items()}
            views.append({**own, "category": _coded(index.column("flows.category"), index.categories)})
        return views

    def _counters(self) -> list[Columns]:
        views: list[Columns] = []
        for source, index in enumerate(self.trace.indexes):
            rows = index.rows
            numbers = np.flatnonzero((rows["kind"] == RowKind.SAMPLES) & (rows["count"] > 0))
            counts = rows["count"][numbers].astype(np.int64)
            row = np.repeat(numbers, counts)
            first = rows["first"][numbers].astype(np.int64) - np.cumsum(counts) + counts
            at = np.arange(len(row)) + np.repeat(first, counts)
            part = SliceCells(self._scope, source, at)
            lanes = [self.trace.lanes[lane] for lane in part.lanes.tolist()]
            ordinals = index.column("samples.ordinal")[at].astype(np.int64)
            own: Columns = {
                "id": ordinals + (source << SOURCE_BITS),
                "ts": index.column("samples.start")[at] + self._scope.lane_offsets(source)[rows["lane"][row]],
                "value": index.column("samples.value")[at],
                "rank": part.numbers("rank"),
                "name": _coded(row, [lane.title for lane in lanes]),
                "series": (row, partial(_series, index)),
                "process": _coded(row, [lane.process.title for lane in lanes]),
                "pid": _coded(row, [plain(lane.pid) for lane in lanes]),
            }
            views.append(own)
        return views

    def _steps(self) -> list[Columns]:
        spans = step_spans(self.trace, self.trace.clocks, self.step_name)
        labels = () if spans is None else spans.labels
        starts, ends = (np.empty(0, np.int64),) * 2 if spans is None else (spans.starts, spans.ends)
        numbers = np.arange(len(labels))
        return [{"number": numbers, "step": _coded(numbers, labels), "ts": starts, "dur": ends - starts}]

    def _device_states(self) -> list[Columns]:
        states = device_states(self._scope)
        device = np.repeat(np.arange(len(states)), [len(one.states) for one in states])
        causes = concatenated([one.causes for one in states]).astype(np.int64)
        own: Columns = {
            "rank": np.array([one.device.rank for one in states], np.int64)[device],
            "device": _coded(device, [one.device.title for one in states]),
            "state": _coded(concatenated([one.states for one in states]), PRECEDENCE),
            "cause": _coded(np.where(causes == len(CAUSES) - 1, -1, causes), CAUSES),  # the last is none
            "ts": concatenated([one.edges[:-1] for one in states]),
            "dur": concatenated([np.diff(one.edges) for one in states]),
        }
        return [own]

    def _untrusted(self) -> list[Columns]:
        periods = untrusted(self._scope)
        devices = [one.device for one in periods]
        titles = ["" if device is None else device_title(self.trace, device) for device in devices]
        ranks = [self.trace.rank(one.source) for one in periods]
        numbers = np.arange(len(periods))
        own: Columns = {
            "rank": np.array([-1 if rank is None else rank for rank in ranks], np.int64),
            "device": _coded(np.where([device is None for device in devices], -1, numbers), titles),
            "trouble": _coded(numbers, [one.trouble for one in periods]),
            "ts": np.array([one.start for one in periods], np.int64),
            "dur": np.array([one.end - one.start for one in periods], np.int64),
            "count": np.array([one.count for one in periods], np.int64),
        }
        return [own]

    # -- arguments ------------------------------------------------------------------------------------------

    def _arguments(self, key: str) -> ArrayTable:
        """Return the values of an argument: of promoted ones from their column, else read from the source."""
        ids: list[I64] = []
        values: list[AnyArray] = []
        promoted = next((entry for entry in PROMOTED if key in entry.args), None)
        for source, index in enumerate(self.trace.indexes):
            if promoted is None:
                ordinals, own = scanned_argument(index, key, self.cancelled)
            else:
                ordinals, own = promoted_values_of(index, promoted.key, promoted.kind)
            ids.append(ordinals + (source << SOURCE_BITS))
            values.append(own)
        return {"id": concatenated(ids), "value": _one_kind(values)}

    def _values(self, key: str) -> ArrayTable:
        """Return the value of an argument by event; the last where begin and end of a pair both have one."""
        table = self.tables.get(ARGUMENT_TABLE.format(key)) or self._arguments(key)
        ids, rows = np.unique(table["id"][::-1], return_index=True)
        return {KEYS[1]: ids, "arg value": table["value"][::-1][rows]}


def _op_times(scope: Scope, source: int, ops: I64) -> Columns:
    """Return ns of the device work that each op launched: alone, with its children, when any of it ran."""

    @cache
    def linked() -> LinkedWork:
        work, around = work_in(scope, source, ops)
        return LinkedWork(work, places_in(ops, around), rows_around(scope.trace.indexes[source], ops))

    return {
        "device_self_ns": lambda: linked().own_ns,
        "device_total_ns": lambda: linked().total_ns,
        "device_busy_ns": lambda: linked().busy_ns(np.arange(len(ops)), len(ops)),
    }


def _coded(codes: AnyArray, texts: Sequence[str]) -> Codes:
    return codes, lambda some: [texts[number] for number in some.tolist()]


def _meanings(codes: AnyArray, meaning: Callable[[I64], list[str]]) -> ArrayTable:
    """Return what the numbers that there are mean; -1 stands for none."""
    used = np.zeros(int(codes.max()) + 2 if len(codes) else 1, np.bool_)
    used[codes] = True  # -1 is the last
    numbers = np.flatnonzero(used[:-1])
    return {KEYS[0]: numbers, "text": _objects(meaning(numbers))}


def _series(index: Index, rows: I64) -> list[str]:
    return index.strings(index.rows["series"][rows])


def _op_ids(rows: Frame) -> I64:
    """Return the event of the op that launched each row, -1 for none and for one of a capture."""
    own = np.where(rows.is_by_capture, -1, rows.op_at)
    ids: I64 = np.append(slice_ids(rows.index, rows.source_number, slice(None)), -1)[own]
    return ids


def _launching(rows: Frame, key: str) -> Codes:
    """Return the op, module or annotation that launched each row."""
    words: TextColumn = rows.names_of(f"{key}_at", lambda text: text.removeprefix(MODULE))
    return _coded(np.where(getattr(rows, f"{key}_at") < 0, -1, words.codes), words.texts)


def promoted_values_of(index: Index, column: str, kind: Kind) -> tuple[I64, AnyArray]:
    """Return (event ordinals, values) of a promoted argument of slices and instants."""
    ordinals, values = [], []
    for table, at, value in (("slices", "position", "value"), ("instants", "instant", "instant_value")):
        positions = index.column(f"promoted.{column}.{at}")
        own = index.column(f"promoted.{column}.{value}")
        if len(positions):
            ordinals.append(index.column(f"{table}.ordinal")[positions].astype(np.int64))
            values.append(_objects(index.strings(own)) if kind is Kind.TEXT else own)
    if not ordinals:
        return np.empty(0, np.int64), np.empty(0, object if kind is Kind.TEXT else np.int64)
    return np.concatenate(ordinals), np.concatenate(values)


def _one_kind(parts: Sequence[AnyArray]) -> AnyArray:
    """Return the values of all sources as one array: texts where one of them has texts."""
    used = [part for part in parts if len(part)] or [np.empty(0, np.int64)]
    kinds = {part.dtype.kind for part in used}
    if "O" in kinds:
        used = [part if part.dtype == object else _objects(map(str, part.tolist())) for part in used]
        return np.concatenate(used)
    dtype = np.float64 if "f" in kinds else np.int64
    return np.concatenate([part.astype(dtype) for part in used])


def _objects(texts: Any) -> AnyArray:
    values = list(texts)
    array = np.empty(len(values), object)
    array[:] = values
    return array
