"""Raw slices one after another: those of a scope, in order of time, as plain rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.arrays import I64, distinct
from ..base.output import write_new_file
from ..base.safe_text import csv_line
from ..index.format import SliceFlag
from ..query.groups import concatenated
from ..query.views import id_value
from ..tables.frame.schema import Column, TableSchema, Unit
from ..tables.frame.table import Table
from ..tables.frame.table_rows import sorted_rows
from ..tables.host.slice_table import SliceCells
from .formats import JsonTable, json_pieces

if TYPE_CHECKING:
    from ..tables.frame.scope import Scope

CHUNK = 1 << 14
"""The number of slices whose rows are made together: output begins at once and memory stays bounded."""
UNITS: Mapping[str, Unit] = {
    "name": "text",
    "category": "text",
    "pid": "id",
    "tid": "id",
    "start_ns": "ns",
    "duration_ns": "ns",
    "self_ns": "ns",
    "ordinal": "id",
    "lane": "text",
    "unclosed": "number",  # 1: a begin without an end, whose time is not known
    "source": "text",
}
COLUMNS = tuple(UNITS)[:-1]
TIMES = ("start", "duration", "self")
"""The columns of times that rows can be sorted by."""

USED = (
    *(f"slices.{name}" for name in ("name", "category", "start", "duration", "self", "ordinal")),
    *("flags.position", "flags.value"),
)
"""Columns that rows are made of, checked before the first row is printed."""


class SliceRows:
    """The slices of a scope, whole where its range cuts them, in order of (start, source, lane). A row has
    COLUMNS, and `source` where the trace has several; start_ns is lane time, as in the file.
    """

    def __init__(self, scope: Scope) -> None:
        """Take the slices of a scope. Raises Cancelled."""
        self.scope, self.trace = scope, scope.trace
        for index in self.trace.indexes:
            index.check(*USED)
        starts, sources, positions = [], [], []
        for chunk in scope.chunks():
            starts.append(scope.starts(chunk.source, chunk.positions) if len(chunk.cut) else chunk.starts)
            positions.append(chunk.positions.astype(np.uint32))
            sources.append(np.full(len(chunk), chunk.source, np.uint32))
        self._positions, self._sources = concatenated(positions), concatenated(sources)
        # Stable: slices of equal start keep the order of source and position.
        self._order = np.argsort(concatenated(starts), kind="stable")

    def __len__(self) -> int:
        return len(self._order)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*COLUMNS, "source") if len(self.trace.indexes) > 1 else COLUMNS

    def sort(self, key: str, descending: bool = True) -> None:
        """Order the slices by a time instead; equal ones stay in order of start. KeyError names the times."""
        key = {"ts": "start", "dur": "duration"}.get(key.lower().removesuffix("_ns"), key.lower())
        if key.removesuffix("_ns") not in TIMES:
            raise KeyError(
                f"no column {key!r} to sort by; there are {', '.join(f'{one}_ns' for one in TIMES)}"
            )
        if key.startswith("start"):
            self._order = self._order[::-1] if descending else self._order
            return
        values = np.empty(len(self._positions), np.int64)
        for source, index in enumerate(self.trace.indexes):
            at = np.flatnonzero(self._sources == source)
            measure = index.duration if key.startswith("dur") else index.self_time
            values[at] = measure(self._positions[at].astype(np.int64))
        self._order = self._order[sorted_rows(values[self._order], descending)]

    def positions(self, source: int) -> I64:
        return np.sort(self._positions[self._sources == source].astype(np.int64))

    def rows(self, limit: int | None = None) -> Iterator[tuple[Any, ...]]:
        """Yield rows as tuples in the order of `columns`."""
        order = self._order[:limit]
        for begin in range(0, len(order), CHUNK):
            part = order[begin : begin + CHUNK]
            rows: dict[int, tuple[Any, ...]] = {}
            for source in distinct(self._sources[part]).tolist():
                at = np.flatnonzero(self._sources[part] == source)
                rows |= zip(at.tolist(), self._built(source, self._positions[part[at]].astype(np.int64)))
            yield from (rows[number] for number in range(len(part)))

    def _built(self, source: int, positions: I64) -> list[tuple[Any, ...]]:
        index, cells = self.trace.indexes[source], SliceCells(self.scope, source, positions)
        lanes = cells.lanes[cells.rows].tolist()
        known = {number: self.trace.lanes[number] for number in set(lanes)}
        ids = {number: (id_value(lane.pid), id_value(lane.tid)) for number, lane in known.items()}
        flags = index.column("flags.value")
        unclosed = index.column("flags.position")[(flags & SliceFlag.UNCLOSED) != 0]
        columns: list[Any] = [
            index.strings(cells.names),
            [index.categories[number] for number in cells.categories.tolist()],
            [ids[number][0] for number in lanes],
            [ids[number][1] for number in lanes],
            index.column("slices.start")[positions].tolist(),
            index.duration(positions).tolist(),
            index.self_time(positions).tolist(),
            index.column("slices.ordinal")[positions].tolist(),
            [known[number].title for number in lanes],
            np.isin(positions, unclosed).astype(np.int64).tolist(),
        ]
        if len(self.trace.indexes) > 1:
            columns.append([index.path] * len(lanes))
        return list(zip(*columns))


def slices_table(slices: SliceRows, limit: int) -> Table:
    """Return the first slices as a table; times are those of the file."""
    columns = tuple(
        Column(name, name.removesuffix("_ns"), UNITS[name], moment=name == "start_ns")
        for name in slices.columns
    )
    rows = [dict(zip(slices.columns, row)) for row in slices.rows(limit)]
    left = len(slices) - len(rows)
    notes = (f"{left:,} more of {len(slices):,}",) if left > 0 else ()
    table = Table.from_rows(TableSchema("slices", "Slices", columns), slices.scope.text, rows, notes=notes)
    return replace(table, begins_ns=slices.scope.origin)


def csv_pieces(rows: SliceRows, limit: int | None = None) -> Iterator[str]:
    """Yield the slices as CSV, line by line, the names of the columns first."""
    yield csv_line(rows.columns)
    for row in rows.rows(limit):
        yield csv_line(row)


def slices_json(slices: SliceRows, limit: int | None = None) -> Iterator[str]:
    """Yield the slices as the JSON of a command, entry by entry; times are those of the file."""
    columns = [{"name": name, "unit": UNITS[name]} for name in slices.columns]
    rows = (dict(zip(slices.columns, row)) for row in slices.rows(limit))
    return json_pieces("slices", slices.scope.text, 0, {"slices": JsonTable(columns, rows)})


def write_rows(rows: SliceRows, path: Path) -> None:
    """Write all slices to a new file, as JSON where it is called so, else as CSV; nothing of it is left where
    that fails. Raises OSError, Cancelled.
    """
    is_json = path.suffix.lower() == ".json"
    write_new_file(path, slices_json(rows) if is_json else csv_pieces(rows), rows.scope.cancelled)
