"""The one shape of every table, its verbs, and several tables as the answer of an analysis.

All rows of a table are columns of equal length: texts are lists, numbers numpy arrays (counts, bytes and ns
exact in int64). A verb returns another table and changes none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeAlias, overload

import numpy as np

from ..base.arrays import I64, LEAST, MOST, AnyArray
from ..base.errors import UsageError
from ..base.moments import moment_digits, origin_text
from ..base.picture import Picture
from ..base.short_names import short_names
from ..query.groups import Groups, Labels
from .schema import WHOLE, Column, TableSchema, Unit

Value: TypeAlias = str | int | float | None
Values: TypeAlias = AnyArray | list[Any]
PROMISED = (
    *("columns", "head", "name", "notes", "plot", "rows", "scope", "sort", "title", "to_arrow", "to_pandas"),
    *("to_polars", "totals", "units", "where"),
)
"""What users may rely on, beside `table["column"]`, `table[3]`, `table[:3]`, `len` and iteration."""
EXACT_FLOATS = 1 << 53
"""Whole numbers below this are exact as floats."""
ABSENT = -1
"""In place of a row number: there is no such row."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Table(TableSchema):
    """Rows of an analysis as columns; `positions` and `sources` are each row's slice to jump to, a negative
    position for none.
    """

    scope: str
    data: Mapping[str, Values]
    totals: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    positions: AnyArray | None = None
    sources: AnyArray | None = None  # of each row's position; None: all of the first source
    origin_ns: int = 0  # of trace time, from which moments count
    left_out: Mapping[str, Sequence[str]] = field(default_factory=dict)  # names of rows left out, by column

    @classmethod
    def from_rows(
        cls,
        schema: TableSchema,
        scope: str,
        rows: Sequence[Mapping[str, Any]],
        jumps: Sequence[tuple[int, int | None]] | None = None,
        *,
        totals: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
    ) -> Table:
        """Return a small table of rows by column key; None in a column of numbers is NaN. `jumps` are the
        (source, position) of each row's slice.
        """
        data = {column.key: _values(column, [row[column.key] for row in rows]) for column in schema.columns}
        positions = sources = None
        if jumps is not None:
            sources = np.array([source for source, _ in jumps], np.int64)
            positions = np.array([-1 if at is None else at for _, at in jumps], np.int64)
        return cls.from_arrays(
            schema, scope, data, totals=totals, notes=notes, positions=positions, sources=sources
        )

    @classmethod
    def from_arrays(
        cls,
        schema: TableSchema,
        scope: str,
        data: Mapping[str, Values],
        *,
        totals: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
        positions: AnyArray | None = None,
        sources: AnyArray | None = None,
    ) -> Table:
        """Return a table of columns by key, all of one length."""
        return cls(
            **vars(schema),
            scope=scope,
            data=data,
            totals=dict(totals or {}),
            notes=tuple(notes),
            positions=positions,
            sources=sources,
        )

    def __len__(self) -> int:
        return len(self.data[self.columns[0].key]) if self.columns else 0

    def __repr__(self) -> str:
        """Return name, scope, length and columns in one line; notebooks draw the rows."""
        columns = ", ".join(column.key for column in self.columns)
        rows = "row" if len(self) == 1 else "rows"
        return f"<tracelane table {self.name}, {self.scope}: {len(self):,} {rows} of {columns}>"

    def __str__(self) -> str:
        """Return the first rows with the columns that people read, as aligned text."""
        from .frames import text_table

        return text_table(self)

    def __dir__(self) -> list[str]:
        """Return the names that are promised, which shells complete; all others are internal."""
        return sorted(PROMISED)

    def column(self, key: str) -> Column:
        """Return a column by key; KeyError names those that exist."""
        for column in self.columns:
            if column.key == key:
                return column
        raise KeyError(f"no column {key!r}; there are {', '.join(c.key for c in self.columns)}")

    @overload
    def __getitem__(self, key: str) -> AnyArray: ...
    @overload
    def __getitem__(self, key: slice) -> Table: ...
    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    def __getitem__(self, key: str | slice | int) -> AnyArray | Table | dict[str, Any]:
        """Return a column as a numpy array: ns, bytes and counts as int64, texts as strings (dtype object);
        rows by a slice as a table, one by its number as a dictionary.

        KeyError names the columns that there are.
        """
        from .frames import column_array

        if isinstance(key, slice):
            return self.take(key)
        if isinstance(key, int):
            row = range(len(self))[key]
            return next(self.rows(np.array([row], np.int64)))
        return column_array(self, key)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as dictionaries, as `rows()` does."""
        return self.rows()

    @property
    def units(self) -> Mapping[str, Unit]:
        """The unit of each column: ns, count, bytes, share (of 1), text …"""
        return {column.key: column.unit for column in self.columns}

    def to_pandas(self) -> Any:
        """Return the table as a pandas DataFrame. Needs pandas."""
        from .frames import pandas_frame

        return pandas_frame(self)

    def to_arrow(self) -> Any:
        """Return the table as a pyarrow Table whose fields name their units. Needs pyarrow."""
        from .frames import arrow_table

        return arrow_table(self)

    def to_polars(self) -> Any:
        """Return the table as a polars DataFrame. Needs polars."""
        from .frames import polars_frame

        return polars_frame(self)

    def plot(self, key: str = "", limit: int = 20) -> Picture:
        """Return the first rows as bars of a column of numbers, the first one without a key, for a notebook;
        `str()` of it is the SVG text.
        """
        from .frames import bars_of

        return bars_of(self, key, limit)

    def _repr_html_(self) -> str:
        from .frames import html_table

        return html_table(self)

    def numbers(self, key: str) -> I64:
        """Return a column of whole numbers (counts, bytes, ns)."""
        return np.asarray(self.data[key], np.int64)

    def texts(self, key: str) -> list[str]:
        """Return a column of text."""
        return [str(text) for text in self.data[key]]

    @cached_property
    def short_forms(self) -> Mapping[str, Mapping[str, str]]:
        """Of each column of names the short form of each name, by which no two of them are the same, nor one
        that was left out.
        """
        forms = {}
        for column in self.columns:
            if column.is_name:
                names = sorted(
                    {text for text in (*self.texts(column.key), *self.left_out.get(column.key, ())) if text}
                )
                forms[column.key] = dict(zip(names, short_names(names)))
        return forms

    @cached_property
    def moment_digits(self) -> Mapping[str, int]:
        """Of each column of moments with how many digits no two different ones are written the same."""
        return {
            column.key: moment_digits(np.asarray(self.data[column.key]))
            for column in self.columns
            if column.moment
        }

    @property
    def drawn_notes(self) -> tuple[str, ...]:
        """The notes that people see: with what moments count from, where some are drawn."""
        if not len(self) or not any(column.moment for column in self.drawn_columns):
            return self.notes
        return (*self.notes, origin_text(self.origin_ns))

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns that identify a row."""
        return self.keys or tuple(column.key for column in self.columns if column.unit in ("text", "id"))

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
        row_numbers = numbers.tolist()
        return replace(
            self,
            data={
                key: [values[at] for at in row_numbers] if isinstance(values, list) else values[numbers]
                for key, values in self.data.items()
            },
            positions=None if self.positions is None else self.positions[numbers],
            sources=None if self.sources is None else self.sources[numbers],
        )

    def where(self, mask: AnyArray) -> Table:
        """Return the rows at which an array of booleans is true: `t.where(t["total_ns"] > 1_000_000)`."""
        chosen = np.asarray(mask)
        if chosen.dtype != np.bool_ or chosen.shape != (len(self),):
            raise UsageError(f"where takes {len(self):,} booleans, one for each row")
        return self.take(chosen)

    def head(self, limit: int) -> Table:
        """Return the first rows as a table whose notes say how many more there are."""
        if len(self) <= limit:
            return self
        left = len(self) - limit
        rows, are = ("row", "is") if left == 1 else ("rows", "are")
        more = f"{left:,} more {rows} of {len(self):,} {are} not shown"
        return replace(self.take(slice(limit)), notes=(*self.notes, more))

    def counted_from(self, origin_ns: int) -> Table:
        """Return the table with its moments, which are trace time, counted from another origin."""
        moments = [column.key for column in self.columns if column.moment]
        data = {**self.data, **{key: self.numbers(key) - origin_ns for key in moments}}
        return replace(self, data=data, origin_ns=origin_ns)

    def sort(self, key: str, descending: bool = True) -> Table:
        """Return the rows in the order of `order`."""
        return self.take(self.order(key, descending))

    def order(self, key: str, descending: bool = True) -> I64:
        """Return the row numbers sorted by a column, changes by their size; equal values keep their order
        (PyTorch's way), none comes last.
        """
        order = self._order(self.column(key), descending)
        if not self.within:
            return order
        runs = Labels().codes(self.texts(self.within))
        return order[np.argsort(runs[order], kind="stable")]

    def _order(self, column: Column, descending: bool) -> I64:
        keys = self.sort_keys(column)
        if isinstance(keys, list):
            order = sorted(range(len(keys)), key=keys.__getitem__, reverse=descending)
            return np.array(order, np.int64)
        return sorted_rows(keys, descending)

    def sort_keys(self, column: Column) -> Values:
        """Return what a column is sorted by: texts or numbers; of changes the size, of objects the length."""
        values = self.data[column.key]
        if column.unit == "object" or (isinstance(values, list) and column.unit != "text"):
            return np.array(
                [len(value) if isinstance(value, Sized) else value or 0 for value in values], np.float64
            )
        if isinstance(values, list) or column.unit == "text":
            return list(values)
        return np.abs(values) if column.change else values

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
        """Return one value as a plain Python value: none for NaN (JSON has no NaN), a whole number where a
        time, a size or a count is one, though others of its column may be missing.
        """
        unit: Unit = next((column.unit for column in self.columns if column.key == key), "number")
        return _plain(self.data[key][row], unit)

    def rows(self, order: I64 | None = None, limit: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield rows as dictionaries by column key, in the given order."""
        rows = range(len(self)) if order is None else order.tolist()
        columns = [(column.key, column.unit, self.data[column.key]) for column in self.columns]
        for row in list(rows)[:limit]:
            yield {key: _plain(values[row], unit) for key, unit, values in columns}


@dataclass(frozen=True)
class Tables:
    """The answer of an analysis: its tables by name, each made when it is asked for first.

    The first one is what --sort and --limit are for, and all that is in CSV. Moments count from `origin_ns`
    of trace time.
    """

    scope: str
    origin_ns: int
    makers: Mapping[str, Callable[[], Table]]
    notes: tuple[str, ...] = ()  # beside those of the tables
    totals_of: str = ""  # the table whose totals are those of all; else the first
    _cache: dict[str, Table] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, *tables: Table) -> Tables:
        """Return tables that are there, one or more, with the scope of the first."""
        makers = {table.name: partial(_itself, table) for table in tables}
        return cls(tables[0].scope, tables[0].origin_ns, makers)

    def __repr__(self) -> str:
        """Return the scope and the names of the tables."""
        return f"<tracelane tables, {self.scope}: {', '.join(self.names)}>"

    @property
    def names(self) -> tuple[str, ...]:
        """The tables' names, the first one first."""
        return tuple(self.makers)

    @property
    def main(self) -> Table:
        """The first table."""
        return self[self.names[0]]

    def __getitem__(self, name: str) -> Table:
        """Return a table by name; KeyError names those that exist."""
        if name not in self.makers:
            raise KeyError(f"no table {name!r}; there are {', '.join(self.names)}")
        if name not in self._cache:
            self._cache[name] = replace(self.makers[name](), name=name, origin_ns=self.origin_ns)
        return self._cache[name]

    def __iter__(self) -> Iterator[Table]:
        """Yield all tables."""
        return map(self.__getitem__, self.names)

    def led_by(self, name: str) -> Tables:
        """Return the tables with another one first; KeyError names those that exist."""
        if name not in self.makers:
            raise KeyError(f"no table {name!r}; there are {', '.join(self.names)}")
        makers = {name: self.makers[name], **self.makers}
        return replace(self, makers=makers, totals_of=self.totals_of or self.names[0])

    @property
    def totals(self) -> Mapping[str, Any]:
        """What is true of all rows together."""
        return self[self.totals_of or self.names[0]].totals


def _itself(table: Table) -> Table:
    return table


def row_of_object(columns: Sequence[Column], item: object, **others: Any) -> dict[str, Any]:
    """Return the row of an object: its attributes that are called as the columns are, `others` in place of
    those that are given.
    """
    return {
        column.key: others[column.key] if column.key in others else getattr(item, column.key)
        for column in columns
    }


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
        within=label.key,
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


def _plain(value: Any, unit: Unit) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if not math.isfinite(value):
            return None  # JSON has neither
        if unit in WHOLE or (unit == "number" and abs(value) < EXACT_FLOATS):
            return int(value) if value.is_integer() else value
    return value


def _values(column: Column, values: list[Any]) -> Values:
    is_text = column.unit == "id" and any(isinstance(value, str) for value in values)
    if is_text or column.unit in ("text", "object"):
        return list(map(str, values)) if is_text else values
    if values and all(isinstance(value, bool) for value in values):
        return np.array(values, np.bool_)
    if any(value is None or isinstance(value, float) for value in values):
        return np.array(values, np.float64)
    try:
        return np.array(values, np.int64)
    except OverflowError:  # sums of times that were clamped to 146 years
        return np.array([min(max(value, LEAST), MOST) for value in values], np.int64)


def _concatenated(tables: Sequence[Table], column: Column) -> Values:
    if column.unit in ("text", "object"):
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
