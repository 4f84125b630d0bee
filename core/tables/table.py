"""The one shape of every table, its verbs, and several tables as the answer of an analysis.

All rows of a table are columns of equal length: texts are lists, numbers numpy arrays (counts, bytes and ns
exact in int64). A verb returns another table and changes none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from ..ingest.columns import I64, AnyArray
from .groups import Groups, Labels

Unit: TypeAlias = Literal["text", "ns", "count", "share", "bytes", "bytes/s", "number", "list"]
Value: TypeAlias = str | int | float | None
Values: TypeAlias = AnyArray | list[Any]
ARG = "arg:"
"""Keys of columns that hold an argument of slices begin with this."""
ABSENT = -1
"""In place of a row number: there is no such row."""


@dataclass(frozen=True)
class Column:
    """One column: its key (in JSON and for sorting), its heading, and what its values are.

    A statistic (a mean, an extreme) of nothing is none, every other number of nothing is zero. A change is
    drawn with its sign and sorted by its size. A moment is a time on the trace's axis, not a length. A name
    is drawn short and exported in full. A detail is exported only. A list is drawn as its length.
    """

    key: str
    title: str
    unit: Unit = "number"
    statistic: bool = False
    change: bool = False
    moment: bool = False
    is_name: bool = False
    detail: bool = False

    @property
    def heading(self) -> str:
        """The title with a capital at its start, as it stands over the column; the key of an argument, p95
        and the like stay as they are.
        """
        title = self.title
        return title if self.key.startswith(ARG) or title[1:2].isdigit() else title[:1].upper() + title[1:]


@dataclass(frozen=True)
class Table:
    """Rows of an analysis as columns; `positions` and `sources` are each row's slice to jump to, a negative
    position for none.

    `name` is the table's name in JSON and Python. `keys` are the columns that identify a row and match it
    with a row of another table of this name; without them the columns of text.
    """

    name: str
    title: str
    scope: str
    columns: tuple[Column, ...]
    data: Mapping[str, Values]
    totals: Mapping[str, Value] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    positions: AnyArray | None = None
    sources: AnyArray | None = None  # of each row's position; None: all of the first source
    keys: tuple[str, ...] = ()
    jumps_to: str = "the longest"  # what a row's position is to the row

    @classmethod
    def from_rows(
        cls,
        name: str,
        title: str,
        scope: str,
        columns: tuple[Column, ...],
        rows: Sequence[Mapping[str, Any]],
        jumps: Sequence[tuple[int, int | None]] | None = None,
        *,
        totals: Mapping[str, Value] | None = None,
        notes: Sequence[str] = (),
        keys: tuple[str, ...] = (),
        jumps_to: str = "the longest",
    ) -> Table:
        """Return a small table of rows by column key; None in a column of numbers is NaN. `jumps` are the
        (source, position) of each row's slice.
        """
        data = {column.key: _values(column, [row[column.key] for row in rows]) for column in columns}
        positions = sources = None
        if jumps is not None:
            sources = np.array([source for source, _ in jumps], np.int64)
            positions = np.array([-1 if at is None else at for _, at in jumps], np.int64)
        return cls(
            name,
            title,
            scope,
            columns,
            data,
            dict(totals or {}),
            tuple(notes),
            positions,
            sources,
            keys,
            jumps_to,
        )

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.data[self.columns[0].key]) if self.columns else 0

    def column(self, key: str) -> Column:
        """Return a column by key; KeyError names those that exist."""
        for column in self.columns:
            if column.key == key:
                return column
        raise KeyError(f"no column {key!r}; there are {', '.join(c.key for c in self.columns)}")

    def numbers(self, key: str) -> I64:
        """Return a column of whole numbers (counts, bytes, ns)."""
        return np.asarray(self.data[key], np.int64)

    def texts(self, key: str) -> list[str]:
        """Return a column of text."""
        return [str(text) for text in self.data[key]]

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns that identify a row."""
        return self.keys or tuple(column.key for column in self.columns if column.unit == "text")

    @property
    def drawn_columns(self) -> tuple[Column, ...]:
        """The columns that people see; the others are in exports only."""
        return tuple(column for column in self.columns if not column.detail)

    def jump(self, row: int) -> tuple[int, int] | None:
        """Return (source, position) of the slice that a row leads to, None where it leads to none."""
        if self.positions is None or self.positions[row] < 0:
            return None
        return 0 if self.sources is None else int(self.sources[row]), int(self.positions[row])

    def take(self, rows: AnyArray | slice) -> Table:
        """Return these rows, by number, by a mask, or by a slice; totals stay those of all."""
        numbers = np.arange(len(self))[rows]
        places = numbers.tolist()
        return replace(
            self,
            data={
                key: [values[at] for at in places] if isinstance(values, list) else values[numbers]
                for key, values in self.data.items()
            },
            positions=None if self.positions is None else self.positions[numbers],
            sources=None if self.sources is None else self.sources[numbers],
        )

    def head(self, limit: int) -> Table:
        """Return the first rows as a table whose notes say how many more there are."""
        if len(self) <= limit:
            return self
        more = f"{len(self) - limit:,} more rows of {len(self):,} are not shown"
        return replace(self.take(slice(limit)), notes=(*self.notes, more))

    def sort(self, key: str, descending: bool = True) -> Table:
        """Return the rows in the order of `order`."""
        return self.take(self.order(key, descending))

    def order(self, key: str, descending: bool = True) -> I64:
        """Return the row numbers sorted by a column, changes by their size; equal values keep their order
        (PyTorch's way), none comes last.
        """
        column = self.column(key)
        values = self.data[key]
        if column.unit == "list":
            values = np.array([len(value) for value in values], np.int64)
        if column.unit == "text":
            index = sorted(range(len(values)), key=values.__getitem__, reverse=descending)
            return np.array(index, np.int64)
        array = np.asarray(values)
        return sorted_rows(np.abs(array) if column.change else array, descending)

    def group(self, by: str, sums: Sequence[str]) -> Table:
        """Return a row for each text of a column, in order of appearance, with the sums of other columns."""
        labels = Labels()
        groups = Groups(labels.codes(self.texts(by)), len(labels))
        data: dict[str, Values] = {by: list(labels)}
        data |= {key: groups.sums(self.numbers(key)) for key in sums}
        columns = tuple(self.column(key) for key in (by, *sums))
        return replace(self, columns=columns, data=data, positions=None, sources=None, keys=(by,))

    def join(self, other: Table) -> tuple[I64, I64]:
        """Return for each row of both tables together its row here and in the other one, ABSENT for none.

        Rows are matched by `key_columns`, of equal ones the first with the first. Rows here keep their
        order, those that only the other has follow.
        """
        rows = {key: at for at, key in enumerate(_row_keys(other, self.key_columns))}
        there = [rows.pop(key, ABSENT) for key in _row_keys(self, self.key_columns)]
        left = sorted(rows.values())
        here = [*range(len(there)), *[ABSENT] * len(left)]
        return np.array(here, np.int64), np.array([*there, *left], np.int64)

    def value(self, row: int, key: str) -> Any:
        """Return one value as a plain Python value; NaN is None (JSON has no NaN)."""
        value: Any = self.data[key][row]
        if isinstance(value, np.generic):
            value = value.item()
        return None if isinstance(value, float) and value != value else value

    def rows(self, order: I64 | None = None, limit: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield rows as dictionaries by column key, in the given order."""
        places = range(len(self)) if order is None else order.tolist()
        for row in list(places)[:limit]:
            yield {column.key: self.value(row, column.key) for column in self.columns}


@dataclass(frozen=True)
class Tables:
    """The answer of an analysis: its tables by name, the first one first. Times that are moments count from
    `origin_ns` of trace time.
    """

    scope: str
    origin_ns: int
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()  # beside those of the tables

    @property
    def main(self) -> Table:
        """The first table: what --sort and --limit are for, and all that is in CSV."""
        return self.tables[0]

    def __getitem__(self, name: str) -> Table:
        """Return a table by name; KeyError names those that exist."""
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(f"no table {name!r}; there are {', '.join(table.name for table in self.tables)}")

    def led_by(self, name: str) -> Tables:
        """Return the tables with another one first."""
        first = self[name]
        return replace(self, tables=(first, *(table for table in self.tables if table is not first)))

    @property
    def all_notes(self) -> tuple[str, ...]:
        """The notes of all tables, each once."""
        return tuple(dict.fromkeys((*self.notes, *(note for table in self.tables for note in table.notes))))


def concat(tables: Sequence[Table], label: Column, labels: Sequence[str]) -> Table:
    """Return the rows of tables of one kind below each other, and of which table each is as first column.

    A table that lacks a column of another has empty text in it, none for a statistic, else zero.
    """
    first = tables[0]
    columns = list({column.key: column for table in tables for column in table.columns}.values())
    data: dict[str, Values] = {
        label.key: [text for text, table in zip(labels, tables) for _ in range(len(table))]
    }
    data |= {column.key: _concatenated(tables, column) for column in columns}
    jumps = all(table.positions is not None for table in tables)
    return replace(
        first,
        columns=(label, *columns),
        data=data,
        totals={},
        notes=tuple(dict.fromkeys(note for table in tables for note in table.notes)),
        positions=np.concatenate([np.asarray(table.positions) for table in tables]) if jumps else None,
        sources=np.concatenate([_sources(table) for table in tables]) if jumps else None,
        keys=(label.key, *first.key_columns),
    )


def sorted_rows(values: AnyArray, descending: bool = False) -> I64:
    """Return the places of the values in their order, equal ones as they stand; NaN comes last either way."""
    if not descending:
        return np.argsort(values, kind="stable").astype(np.int64)
    # Reversed stable ascending order of the reversed rows is a stable descending order.
    order = (len(values) - 1 - np.argsort(values[::-1], kind="stable")[::-1]).astype(np.int64)
    if values.dtype.kind == "f":
        none = np.isnan(values[order])
        order = np.concatenate([order[~none], order[none]])
    return order


def _values(column: Column, values: list[Any]) -> Values:
    if column.unit in ("text", "list"):
        return values
    if any(value is None or isinstance(value, float) for value in values):
        return np.array(values, np.float64)
    return np.array(values, np.int64)


def _concatenated(tables: Sequence[Table], column: Column) -> Values:
    if column.unit in ("text", "list"):
        empty: Any = "" if column.unit == "text" else []
        return [value for table in tables for value in table.data.get(column.key, [empty] * len(table))]
    nothing = np.nan if column.statistic else 0
    return np.concatenate(
        [np.asarray(table.data.get(column.key, np.full(len(table), nothing))) for table in tables]
    )


def _sources(table: Table) -> AnyArray:
    return np.zeros(len(table), np.int64) if table.sources is None else np.asarray(table.sources)


def _row_keys(table: Table, keys: tuple[str, ...]) -> list[tuple[object, ...]]:
    """Return the values of each row's key columns, and how many equal rows stand above it."""
    columns = [[""] * len(table) if key not in table.data else list(table.data[key]) for key in keys]
    counts: dict[tuple[object, ...], int] = {}
    result = []
    for key in zip(*columns) if columns else [()] * len(table):
        counts[key] = count = counts.get(key, -1) + 1
        result.append((*key, count))
    return result
