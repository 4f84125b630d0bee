"""The one shape of every table, its verbs, and several tables as the answer of an analysis.

All rows of a table are columns of equal length: texts are lists, or a `TextColumn` where rows are many,
numbers numpy arrays (counts, bytes and ns exact in int64). A verb returns another table and changes none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np

from ...base.arrays import I64, MAX, MIN, AnyArray
from ...base.picture import Picture
from ...query.groups import Groups, Labels
from . import frames
from .schema import Column, TableSchema
from .table_rows import TableRows, Values

if TYPE_CHECKING:
    from .scope import Scope


Value: TypeAlias = str | int | float | None
PROMISED = (
    *("columns", "head", "name", "notes", "origin_ns", "plot", "rows", "scope", "sort", "title", "to_arrow"),
    *("to_pandas", "to_polars", "totals", "units", "where"),
)
"""What users may rely on, beside `table["column"]`, `table[3]`, `table[:3]`, `len` and iteration."""
ABSENT = -1
"""In place of a row number: there is no such row."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Table(TableRows):
    """Rows of an analysis, and their shapes for shells, notebooks and other libraries."""

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

    def __repr__(self) -> str:
        columns = ", ".join(column.key for column in self.columns)
        rows = "row" if len(self) == 1 else "rows"
        return f"<tracelane table {self.name}, {self.scope}: {len(self):,} {rows} of {columns}>"

    def __str__(self) -> str:
        return frames.text_table(self)

    def __dir__(self) -> list[str]:
        """Return the names that are promised, which shells complete; all others are internal."""
        return sorted(PROMISED)

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
        if isinstance(key, slice):
            return self.take(key)
        if isinstance(key, int):
            row = range(len(self))[key]
            return next(self.rows(np.array([row], np.int64)))
        return frames.column_array(self, key)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self.rows()

    def to_pandas(self) -> Any:
        """Return the table as a pandas DataFrame. Needs pandas."""
        return frames.pandas_frame(self)

    def to_arrow(self) -> Any:
        """Return the table as a pyarrow Table whose fields name their units. Needs pyarrow."""
        return frames.arrow_table(self)

    def to_polars(self) -> Any:
        """Return the table as a polars DataFrame. Needs polars."""
        return frames.polars_frame(self)

    def plot(self, key: str = "", limit: int = 20) -> Picture:
        """Return rows as bars of a column of numbers, else the first, for a notebook; `str()` is SVG."""
        return frames.bars_of(self, key, limit)

    def _repr_html_(self) -> str:
        return frames.html_table(self)

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


@dataclass(frozen=True)
class Tables:
    """The answer of an analysis: its tables by name, each made when it is asked for first.

    The first one is what --sort and --limit are for, and all that is in CSV. Their makers have trace time;
    here, and nowhere else, moments come to count from `origin_ns` of it: a table is itself what a notebook, a
    panel and other packages' forms read a value from, besides the ten that write it whole.
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
        makers = {table.name: partial(replace, table) for table in tables}
        return cls(tables[0].scope, tables[0].origin_ns, makers)

    def __repr__(self) -> str:
        return f"<tracelane tables, {self.scope}: {', '.join(self.names)}>"

    @property
    def names(self) -> tuple[str, ...]:
        """The tables' names, the first one first."""
        return tuple(self.makers)

    @property
    def main(self) -> Table:
        return self[self.names[0]]

    def __getitem__(self, name: str) -> Table:
        """Return a table by name; KeyError names those that exist."""
        if name not in self.makers:
            raise KeyError(f"no table {name!r}; there are {', '.join(self.names)}")
        if name not in self._cache:
            self._cache[name] = replace(self.makers[name]().counted_from(self.origin_ns), name=name)
        return self._cache[name]

    def __iter__(self) -> Iterator[Table]:
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


def row_of_object(columns: Sequence[Column], item: object, **others: Any) -> dict[str, Any]:
    """Return an object's attributes that are called as columns are, `others` in place of those given."""
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


def _values(column: Column, values: list[Any]) -> Values:
    is_text = column.unit == "id" and any(isinstance(value, str) for value in values)
    if is_text or column.unit in ("text", "object"):
        return list(map(str, values)) if is_text else values
    if values and all(isinstance(value, bool) for value in values):
        return np.array(values, np.bool_)
    if column.moment and None in values:
        return np.array(values, object)  # exact until `counted_from` makes them small
    if any(value is None or isinstance(value, float) for value in values):
        return np.array(values, np.float64)
    try:
        return np.array(values, np.int64)
    except OverflowError:  # sums of times that were clamped to 146 years
        return np.array([min(max(value, MIN), MAX) for value in values], np.int64)


def _concatenated(tables: Sequence[Table], column: Column) -> Values:
    has_list = any(isinstance(table.data.get(column.key), list) for table in tables)
    if has_list or column.unit in ("text", "object"):
        empty: Any = [] if column.unit == "object" else ""
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


class Answers(ABC):
    """Answers of a capture store about all ranks, or about two runs; moments are trace time."""

    @abstractmethod
    def tables(self, name: str, options: Mapping[str, Any], scope: Scope) -> Tables:
        """Return the tables of an analysis. Raises UsageError for one that needs the ranks' traces."""
