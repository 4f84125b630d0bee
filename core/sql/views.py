"""The views that queries see, and the arrays that they are made of.

Each view is a SELECT over tables of plain columns: large ones as the index holds them (numbers of names, of
rows, starts as lane time), small ones that say what those numbers mean. So an engine reads the index's own
arrays, and nothing is computed for columns that a query does not name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from ..base.arrays import I64, AnyArray, places_in
from ..base.kineto import OPS
from ..base.progress import CancelledCallback, never
from ..base.short_names import short_name
from ..base.slice_kinds import SliceKind
from ..index.format import NONE, RowKind
from ..index.store import Index
from ..query.launches import VIA
from ..query.row_facts import slice_kind_codes
from ..query.titles import plain
from ..query.views import Lane
from ..read.promoted import PROMOTED, Kind
from ..tables.attribution import WorkBySteps, steps_of_slices
from ..tables.device_state import CAUSES, PRECEDENCE, device_states
from ..tables.devices import device_title
from ..tables.frame import Frame
from ..tables.frame_columns import MODULE, work_of
from ..tables.groups import concatenated
from ..tables.kinds import KERNEL_TYPES
from ..tables.op_sums import LinkedWork, work_in
from ..tables.scope import Scope
from ..tables.slice_table import SOURCE_BITS
from ..tables.slices import rows_around
from ..tables.step_spans import StepSpans, step_spans
from ..tables.untrusted import untrusted
from ..trace import Trace
from .arguments import scanned_argument
from .schema import ALIASED, ALIASES, JOINS, KERNEL_VIEW, LAUNCH_VIEW, OP_VIEW, SLICE_VIEW, USES, VIEWS
from .tokens import QueryWords, argument_table, quoted_name, value_table

ArrayTable: TypeAlias = Mapping[str, AnyArray]
"""Columns of equal length by name: numbers, or texts as an array of objects."""


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
        makers: Mapping[str, Callable[[], str]] = {
            "slices": lambda: query_tables._slice_view("slices"),
            "ops": query_tables._ops,
            "kernels": query_tables._kernels,
            "launches": query_tables._launches,
            "flows": query_tables._flows,
            "counters": query_tables._counters,
            "steps": query_tables._steps,
            "device_states": query_tables._device_states,
            "untrusted": query_tables._untrusted,
        }
        for name, make in makers.items():
            if name in words.names:
                query_tables.views[name] = _with_aliases(name, make())
        for key in words.arguments:
            query_tables.views[argument_table(key)] = ""
            query_tables.tables[argument_table(key)] = query_tables._arguments(key)
        for key in words.values:
            query_tables.views[value_table(key)] = ""
            query_tables.tables[value_table(key)] = query_tables._values(key)
        return query_tables

    # -- columns that a query needs -----------------------------------------------------------------------

    def _needed(self, view: str) -> tuple[str, ...]:
        """Return the columns of a view that the query may name; at least one."""
        columns = VIEWS[view]
        if self.words.all_columns:
            return columns
        return tuple(key for key in columns if key in self.words.names) or columns[:1]

    @cached_property
    def _lanes(self) -> list[dict[int, Lane]]:
        lanes: list[dict[int, Lane]] = [{} for _ in self.trace.indexes]
        for lane in self.trace.lanes:
            lanes[lane.source][lane.number] = lane
        return lanes

    @cached_property
    def _scope(self) -> Scope:
        return Scope(
            self.trace, clocks=self.trace.clocks, steps=self.step_name or "", cancelled=self.cancelled
        )

    @cached_property
    def _spans(self) -> StepSpans | None:
        return step_spans(self.trace, self.trace.clocks, self.step_name)

    @cached_property
    def _step_labels(self) -> WorkBySteps | None:
        return steps_of_slices(self._scope)

    # -- slices -------------------------------------------------------------------------------------------

    def _slice_view(self, view: str, texts: Mapping[str, str] | None = None) -> str:
        """Return the SELECT of a view of slices over a base table per source, all slices without `texts`.

        `texts` are the expressions of columns beyond those of `slices`; then the base tables are there.
        """
        selects = []
        columns = self._needed(view)
        for source, index in enumerate(self.trace.indexes):
            base = f"{view}_{source}"
            if texts is None:
                self.tables[base] = self._slice_arrays(source, columns, None)
            if base not in self.tables:
                continue
            joins: dict[str, None] = {}
            expressions = []
            for key in columns:
                if key in SLICE_VIEW:
                    expression, tables = SLICE_VIEW[key]
                    joins |= dict.fromkeys(tables)
                else:
                    expression = (texts or {})[key]
                expressions.append(f"{self._filled(expression, source)} AS {quoted_name(key)}")
            for join in joins:
                self._lookup(join, source, index)
            clauses = [JOINS[join].format(source=source) for join in joins]
            if texts is not None:
                clauses += [join.format(source=source) for join in self._more_joins(view, columns)]
            selects.append(f"SELECT {', '.join(expressions)} FROM {base} b {' '.join(clauses)}")
        return " UNION ALL ".join(selects) if selects else self._nothing(view, columns)

    def _filled(self, expression: str, source: int) -> str:
        rank = self.trace.rank(source)
        number = "CAST(NULL AS BIGINT)" if rank is None else f"CAST({rank} AS BIGINT)"
        return expression.format(base=source << SOURCE_BITS, rank=number)

    def _nothing(self, view: str, columns: Sequence[str]) -> str:
        numbers = {"id", "ts", "dur", "self", *ALIASES, "depth", "rank", "op_id", "kernel", "delay", *OP_VIEW}
        kinds = [
            f"CAST(NULL AS {'BIGINT' if key in numbers else 'VARCHAR'}) AS {quoted_name(key)}"
            for key in columns
        ]
        return f"SELECT {', '.join(kinds)} WHERE 1 = 0"

    def _slice_arrays(self, source: int, columns: Sequence[str], positions: I64 | None) -> ArrayTable:
        index = self.trace.indexes[source]
        arrays = dict.fromkeys(array for key in columns if key in USES for array in USES[key]) or {
            "ordinal": None
        }
        return {array: self._slice_array(index, source, array, positions) for array in arrays}

    def _slice_array(self, index: Index, source: int, name: str, positions: I64 | None) -> AnyArray:
        at: slice | I64 = slice(None) if positions is None else positions
        match name:
            case "duration" | "self":
                column = index.column(f"slices.{name}")
                if not len(index.column("long.position")):
                    values: AnyArray = column[at]
                    return values
                chosen = np.arange(len(column), dtype=np.int64) if positions is None else positions
                return index.duration(chosen) if name == "duration" else index.self_time(chosen)
            case "row":
                return _row_numbers(index)[at]
            case "step":
                return self._step_places(index, source, positions)
            case "slice_kind":
                columns = (index.column(f"slices.{key}")[at] for key in ("category", "name"))
                return slice_kind_codes(index, *columns)
            case _:
                values = index.column(f"slices.{name}")[at]
                return values

    def _step_places(self, index: Index, source: int, positions: I64 | None) -> AnyArray:
        count = len(index.column("slices.start")) if positions is None else len(positions)
        codes = np.full(count, -1, np.int32)
        if self._step_labels is None:
            return codes
        clocks = self._row_clocks(source)
        rows = _row_numbers(index)
        for low in range(0, count, CHUNK):
            self._scope.check()
            some = np.arange(low, min(low + CHUNK, count), dtype=np.int64)
            some = some if positions is None else positions[low : low + CHUNK]
            starts = index.column("slices.start")[some] + clocks[rows[some]]
            held = self._step_labels.spans.holding(starts)
            codes[low : low + CHUNK] = self._step_labels.steps_of(source, some, held)
        return codes

    def _row_clocks(self, source: int) -> I64:
        """Return by row number what is added to lane time."""
        trace, index = self.trace, self.trace.indexes[source]
        lanes = self._lanes[source]
        clocks = {number: trace.clocks.offset(source, lane.pid) for number, lane in lanes.items()}
        return np.array([clocks.get(int(lane), 0) for lane in index.rows["lane"]], np.int64)

    # -- what numbers mean --------------------------------------------------------------------------------

    def _lookup(self, name: str, source: int, index: Index) -> None:
        """Make a table that says what the numbers of a column mean, if it is not there."""
        table = "step_labels" if name == "steps" else f"{name}_{source}"
        if table in self.tables:
            return
        match name:
            case "names":
                used = np.zeros(max(1, len(index.column("strings.offset"))), np.bool_)
                used[index.column("slices.name")] = True
                numbers = np.flatnonzero(used)
                texts = index.strings(numbers)
                columns: dict[str, AnyArray] = {"number": numbers, "text": _objects(texts)}
                if self.words.all_columns or "short_name" in self.words.names:
                    columns["short"] = _objects([short_name(text) for text in texts])
                else:
                    columns["short"] = columns["text"]
            case "categories":
                columns = _numbered(index.categories)
            case "slice_kinds":
                columns = _numbered(list(SliceKind))
            case "rows":
                columns = self._rows(source, index)
            case _:
                labels = [] if self._step_labels is None else list(self._step_labels.spans.labels)
                columns = _numbered(labels, "label")
        self.tables[table] = columns

    def _rows(self, source: int, index: Index) -> dict[str, AnyArray]:
        lanes = self._lanes[source]
        of_row = [lanes[int(number)] for number in index.rows["lane"]]
        return {
            "number": np.arange(len(of_row), dtype=np.int64),
            "clock": self._row_clocks(source),
            "depth": index.rows["depth"].astype(np.int64),
            "lane": _objects([lane.title for lane in of_row]),
            "process": _objects([lane.process.title for lane in of_row]),
            "pid": _objects([plain(lane.pid) for lane in of_row]),
            "tid": _objects([plain(lane.tid) for lane in of_row]),
            "role": _objects([lane.role.name.lower() for lane in of_row]),
        }

    # -- the other views ----------------------------------------------------------------------------------

    def _ops(self) -> str:
        columns = self._needed("ops")
        for source, index in enumerate(self.trace.indexes):
            is_op = np.array([category in OPS for category in index.categories], np.bool_)
            positions = np.flatnonzero(is_op[index.column("slices.category")])
            if len(positions):
                arrays = self._slice_arrays(source, columns, positions)
                self.tables[f"ops_{source}"] = {**arrays, **self._device_times(source, columns, positions)}
        return self._slice_view("ops", OP_VIEW)

    def _device_times(self, source: int, columns: Sequence[str], ops: I64) -> ArrayTable:
        """Return the ns of device work that each op launched alone and with its children, and their union."""
        if not set(columns) & set(OP_VIEW):
            return {}
        work, around = work_in(self._scope, source, ops)
        parent = rows_around(self.trace.indexes[source], ops)
        linked = LinkedWork(work, places_in(ops, around), parent)
        busy = linked.busy_ns(np.arange(len(ops)), len(ops)) if "device_busy_ns" in columns else linked.own_ns
        return dict(zip(OP_VIEW, (linked.own_ns, linked.total_ns, busy)))

    def _kernels(self) -> str:
        columns = self._needed("kernels")
        work = work_of(self._scope)
        for part in work.by("source"):
            rows = part[np.argsort(part.position, kind="stable")]
            self.tables[f"kernels_{rows.source_number}"] = {
                **self._slice_arrays(rows.source_number, columns, rows.position.astype(np.int64)),
                "device": rows.device_row,
                "stream": rows.stream,
                "type": rows.type.astype(np.int64),
                **self._launching(rows, columns),
            }
        self.tables["devices"] = _numbered(work.device.texts)
        self.tables["streams"] = _numbered(work.streams)
        self.tables["types"] = _numbered(KERNEL_TYPES)
        return self._slice_view("kernels", KERNEL_VIEW)

    def _launching(self, rows: Frame, columns: Sequence[str]) -> ArrayTable:
        """Return what launched each row: the event of the op, and numbers of names; -1 for none."""
        arrays: dict[str, AnyArray] = {}
        source, index = rows.source_number, rows.index
        if "op_id" in columns:
            ordinals = np.append(index.column("slices.ordinal").astype(np.int64), -1)
            arrays["op"] = ordinals[rows.op_at]
        for key in ("op", "module", "annotation"):
            if key in columns:
                words = rows.names_of(f"{key}_at", lambda text: text.removeprefix(MODULE))
                arrays[f"{key}_name"] = np.where(getattr(rows, f"{key}_at") < 0, -1, words.codes)
                self.tables[f"{key}_names_{source}"] = _numbered(words.texts)
        return arrays

    def _launches(self) -> str:
        columns = self._needed("launches")
        for source, index in enumerate(self.trace.indexes):
            launches = self.trace.launches(source)
            pairs = launches.by_launch
            if not len(pairs):
                continue
            calls, kernels = launches.launch[pairs].astype(np.int64), launches.kernels[pairs].astype(np.int64)
            clocks, rows = self._row_clocks(source), _row_numbers(index)
            starts = index.column("slices.start")
            begin = starts[kernels] + clocks[rows[kernels]]
            end = starts[calls] + index.duration(calls) + clocks[rows[calls]]
            self.tables[f"launches_{source}"] = {
                **self._slice_arrays(source, columns, calls),
                "kernel": index.column("slices.ordinal")[kernels],
                "delay": begin - end,
                "via": launches.via[pairs].astype(np.int64),
            }
        self.tables["vias"] = _numbered(VIA)
        return self._slice_view("launches", LAUNCH_VIEW)

    def _more_joins(self, view: str, columns: Sequence[str]) -> Iterator[str]:
        joins = {
            "device": "LEFT JOIN devices d ON d.number = b.device",
            "stream": "LEFT JOIN streams t ON t.number = b.stream",
            "type": "LEFT JOIN types k ON k.number = b.type",
            "op": "LEFT JOIN op_names_{source} po ON po.number = b.op_name",
            "module": "LEFT JOIN module_names_{source} pm ON pm.number = b.module_name",
            "annotation": "LEFT JOIN annotation_names_{source} pa ON pa.number = b.annotation_name",
            "via": "LEFT JOIN vias v ON v.number = b.via",
        }
        return (join for key, join in joins.items() if key in columns and key in VIEWS[view])

    def _flows(self) -> str:
        selects = []
        for source, index in enumerate(self.trace.indexes):
            ordinals = index.column("slices.ordinal")
            ends: dict[str, AnyArray] = {"category": index.column("flows.category")}
            for end in ("source", "target"):
                positions = index.column(f"flows.{end}").astype(np.int64)
                ids = np.full(len(positions), -1, np.int64)
                bound = positions != NONE
                ids[bound] = ordinals[positions[bound]].astype(np.int64) + (source << SOURCE_BITS)
                ends[end] = ids
            self.tables[f"flows_{source}"] = ends
            self._lookup("categories", source, index)
            selects.append(
                "SELECT c.text AS category, nullif(b.source, -1) AS source, nullif(b.target, -1) AS target "
                f"FROM flows_{source} b {JOINS['categories'].format(source=source)}"
            )
        return " UNION ALL ".join(selects)

    def _counters(self) -> str:
        parts: list[dict[str, AnyArray]] = []
        series: list[tuple[str, ...]] = []
        for source, index in enumerate(self.trace.indexes):
            clocks = self._row_clocks(source)
            lanes = self._lanes[source]
            for number in np.flatnonzero(index.rows["kind"] == RowKind.SAMPLES).tolist():
                row = index.rows[number]
                first, last = int(row["first"]), int(row["first"]) + int(row["count"])
                lane, rank = lanes[int(row["lane"])], self.trace.rank(source)
                parts.append(
                    {
                        "id": index.column("samples.ordinal")[first:last].astype(np.int64)
                        + (source << SOURCE_BITS),
                        "ts": index.column("samples.start")[first:last] + clocks[number],
                        "value": index.column("samples.value")[first:last],
                        "series": np.full(last - first, len(series), np.int64),
                        "rank": np.full(last - first, -1 if rank is None else rank, np.int64),
                    }
                )
                texts = (lane.title, index.string(int(row["series"])), lane.process.title, plain(lane.pid))
                series.append(texts)
        none = {"value": np.float64}
        keys = ("id", "ts", "value", "series", "rank")
        empty = {key: np.empty(0, none.get(key, np.int64)) for key in keys}
        parts = parts or [empty]
        self.tables["samples"] = {key: np.concatenate([part[key] for part in parts]) for key in keys}
        columns = {key: _objects([texts[at] for texts in series]) for at, key in enumerate(SERIES)}
        self.tables["series"] = {"number": np.arange(len(series), dtype=np.int64), **columns}
        # JSON has no NaN and neither does SQLite: a value that is none is NULL in both.
        return (
            "SELECT b.id AS id, s.name AS name, s.series AS series, b.ts AS ts, "
            "CASE WHEN abs(b.value) <= 1.7976931348623157e308 THEN b.value END AS value, "
            "s.process AS process, s.pid AS pid, nullif(b.rank, -1) AS rank "
            "FROM samples b LEFT JOIN series s ON s.number = b.series"
        )

    def _steps(self) -> str:
        spans = self._spans
        count = 0 if spans is None else len(spans)
        none = np.empty(0, np.int64)
        self.tables["step_spans"] = {
            "number": np.arange(count, dtype=np.int64),
            "step": _objects([] if spans is None else list(spans.labels)),
            "ts": none if spans is None else spans.starts,
            "dur": none if spans is None else spans.ends - spans.starts,
        }
        return "SELECT number, step, ts, dur FROM step_spans"

    def _device_states(self) -> str:
        states = device_states(self._scope)
        sizes = [len(one.states) for one in states]
        starts = [one.edges[:-1] for one in states]
        lengths = [np.diff(one.edges) for one in states]
        none = [np.empty(0, np.int64)]
        self.tables["states"] = {
            "device": np.repeat(np.arange(len(states)), sizes),
            "state": np.concatenate([*none, *(one.states for one in states)]).astype(np.int64),
            "cause": np.concatenate([*none, *(one.causes for one in states)]).astype(np.int64),
            "ts": np.concatenate([*none, *starts]),
            "dur": np.concatenate([*none, *lengths]),
        }
        self.tables["devices_of_states"] = {
            **_numbered([one.device.title for one in states]),
            "rank": np.array([one.device.rank for one in states], np.int64),
        }
        self.tables["names_of_states"] = _numbered(PRECEDENCE)
        self.tables["causes"] = _numbered(CAUSES[:-1])
        return (
            "SELECT d.rank AS rank, d.text AS device, n.text AS state, c.text AS cause, b.ts AS ts, "
            "b.dur AS dur FROM states b LEFT JOIN devices_of_states d ON d.number = b.device "
            "LEFT JOIN names_of_states n ON n.number = b.state LEFT JOIN causes c ON c.number = b.cause"
        )

    def _untrusted(self) -> str:
        periods = untrusted(self._scope)
        titles = ["" if one.device is None else device_title(self.trace, one.device) for one in periods]
        ranks = [-1 if (rank := self.trace.rank(one.source)) is None else rank for one in periods]
        values = {
            "rank": ranks,
            "ts": [one.start for one in periods],
            "dur": [one.end - one.start for one in periods],
            "count": [one.count for one in periods],
            "number": list(range(len(periods))),
        }
        self.tables["periods"] = {key: np.array(numbers, np.int64) for key, numbers in values.items()}
        self.tables["devices_of_periods"] = _numbered(titles)
        self.tables["troubles"] = _numbered([one.trouble for one in periods])
        return (
            "SELECT nullif(b.rank, -1) AS rank, nullif(d.text, '') AS device, t.text AS trouble, b.ts AS ts, "
            'b.dur AS dur, b."count" AS "count" FROM periods b '
            "LEFT JOIN devices_of_periods d ON d.number = b.number "
            "LEFT JOIN troubles t ON t.number = b.number"
        )

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
        table = self.tables.get(argument_table(key)) or self._arguments(key)
        ids, rows = np.unique(table["id"][::-1], return_index=True)
        return {"arg id": ids, "arg value": table["value"][::-1][rows]}


SERIES = ("name", "series", "process", "pid")
CHUNK = 1 << 20


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


def _with_aliases(view: str, sql: str) -> str:
    """Return a view in which times have both of their names; views of slices have them already."""
    if view not in ALIASED:
        return sql
    return (
        f"SELECT v.*, {', '.join(f'v.{ALIASES[alias]} AS {alias}' for alias in ALIASED[view])} FROM ({sql}) v"
    )


def _one_kind(parts: Sequence[AnyArray]) -> AnyArray:
    """Return the values of all sources as one array: texts where one of them has texts."""
    used = [part for part in parts if len(part)] or [np.empty(0, np.int64)]
    if any(part.dtype == object for part in used):
        return np.concatenate(
            [part if part.dtype == object else _objects(map(str, part.tolist())) for part in used]
        )
    if any(part.dtype.kind == "f" for part in used):
        return np.concatenate([part.astype(np.float64) for part in used])
    return np.concatenate([part.astype(np.int64) for part in used])


def _row_numbers(index: Index) -> AnyArray:
    rows = index.rows
    numbers = np.flatnonzero((rows["kind"] == RowKind.SLICES) & (rows["count"] > 0))
    numbers = numbers[np.argsort(rows["first"][numbers], kind="stable")]
    return np.repeat(numbers.astype(np.uint32), rows["count"][numbers].astype(np.int64))


def _objects(texts: Any) -> AnyArray:
    values = list(texts)
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _numbered(texts: Sequence[str], name: str = "text") -> dict[str, AnyArray]:
    return {"number": np.arange(len(texts), dtype=np.int64), name: _objects(texts)}
