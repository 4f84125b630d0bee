"""The one shape of every table: typed columns of equal length, what they speak of, where to jump."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from ..ingest.columns import I64, AnyArray

Unit: TypeAlias = Literal["text", "ns", "count", "share", "bytes", "bytes/s", "number"]
Value: TypeAlias = str | int | float | None
ARG = "arg:"
"""Keys of columns that hold an argument of slices begin with this."""


@dataclass(frozen=True)
class Column:
    """One column: its key (in JSON and for sorting), its heading, and what its values are.

    A statistic (a mean, an extreme) of nothing is none, every other number of nothing is zero. A change is
    shown with its sign and sorted by its size. A moment tells where in time something lies, not how much.
    """

    key: str
    title: str
    unit: Unit = "number"
    statistic: bool = False
    change: bool = False
    moment: bool = False

    @property
    def heading(self) -> str:
        """The title with a capital at its start, as it stands over the column; what the trace itself calls an
        argument, p95 and the like stay as they are.
        """
        title = self.title
        return title if self.key.startswith(ARG) or title[1:2].isdigit() else title[:1].upper() + title[1:]


@dataclass(frozen=True)
class Table:
    """Rows of an analysis as columns; `positions` (with source or sources) is each row's slice to jump to,
    negative for none.

    `keys` are the columns that tell rows apart and find them again in another table of the schema; without
    them the columns of text.
    """

    schema: str
    title: str
    scope: str
    columns: tuple[Column, ...]
    data: Mapping[str, AnyArray | list[str]]
    totals: Mapping[str, Value] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    positions: AnyArray | None = None
    source: int = 0
    sources: AnyArray | None = None  # of each row's position, where they differ
    keys: tuple[str, ...] = ()
    jumps_to: str = "the longest"  # what a row's position is to the row

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.data[self.columns[0].key]) if self.columns else 0

    def column(self, key: str) -> Column:
        """Return a column by key; KeyError names those that exist."""
        for column in self.columns:
            if column.key == key:
                return column
        raise KeyError(f"no column {key!r}; there are {', '.join(c.key for c in self.columns)}")

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns that tell rows apart."""
        return self.keys or tuple(column.key for column in self.columns if column.unit == "text")

    def head(self, limit: int) -> Table:
        """Return the first rows as a table whose notes say how many more there are."""
        if len(self) <= limit:
            return self
        more = f"{len(self) - limit:,} more rows of {len(self):,} are not shown"
        return replace(
            self,
            data={key: values[:limit] for key, values in self.data.items()},
            notes=(*self.notes, more),
            positions=None if self.positions is None else self.positions[:limit],
            sources=None if self.sources is None else self.sources[:limit],
        )

    def order(self, key: str, descending: bool = True) -> I64:
        """Return the row numbers sorted by a column, changes by their size; equal values keep their order
        (PyTorch's way), none comes last.
        """
        column = self.column(key)
        values = self.data[key]
        if column.unit == "text":
            index = sorted(range(len(values)), key=values.__getitem__, reverse=descending)
            return np.array(index, np.int64)
        array = np.asarray(values)
        return sorted_rows(np.abs(array) if column.change else array, descending)

    def value(self, row: int, key: str) -> Value:
        """Return one value as a plain Python value; NaN is None (JSON has no NaN)."""
        value: Any = self.data[key][row]
        if isinstance(value, np.generic):
            value = value.item()
        return None if isinstance(value, float) and value != value else value

    def rows(self, order: I64 | None = None, limit: int | None = None) -> Iterator[dict[str, Value]]:
        """Yield rows as dictionaries by column key, in the given order."""
        numbers = range(len(self)) if order is None else order.tolist()
        for row in list(numbers)[:limit]:
            yield {column.key: self.value(row, column.key) for column in self.columns}


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
