"""The rows of a table as columns, what selects and orders them, and their text and units."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np

from ...base.arrays import I64, AnyArray, pieces
from ...base.errors import UsageError
from ...base.short_names import short_names
from ...base.units import moment_digits, origin_text
from ...query.groups import Labels
from .schema import WHOLE, Column, TableSchema, Unit
from .text_column import TextColumn

Values: TypeAlias = "AnyArray | list[Any] | TextColumn"
ORIGIN = Column("origin_ns", "times count from", "ns", detail=True)
"""What stands beside moments where a form has columns alone: with it added they are trace time."""
PIECE_ROWS = 1 << 12
"""So many rows become Python values at once."""
EXACT_FLOATS = 1 << 53
"""Whole numbers below this are exact as floats."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TableRows(TableSchema):
    """Rows of an analysis as columns; `positions` and `sources` say where a row jumps, -1 for nowhere."""

    scope: str
    data: Mapping[str, Values]
    totals: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    positions: AnyArray | None = None
    sources: AnyArray | None = None  # of each row's position; None: all of the first source
    origin_ns: int = 0  # of trace time, from which moments count; 0 as analyses make them
    begins_ns: int | None = None  # from which people count them, where programs get others
    left_out: Mapping[str, Sequence[str]] = field(default_factory=dict)  # names of rows left out, by column

    def __len__(self) -> int:
        return len(self.data[self.columns[0].key]) if self.columns else 0

    def column(self, key: str) -> Column:
        """Return a column by key; KeyError names those that exist."""
        for column in self.columns:
            if column.key == key:
                return column
        raise KeyError(f"no column {key!r}; there are {', '.join(c.key for c in self.columns)}")

    @property
    def units(self) -> Mapping[str, Unit]:
        """The unit of each column: ns, count, bytes, share (of 1), text …"""
        return {column.key: column.unit for column in self.columns}

    def numbers(self, key: str) -> I64:
        """Return a column of whole numbers (counts, bytes, ns)."""
        return np.asarray(self.data[key], np.int64)

    def texts(self, key: str) -> list[str]:
        return [str(text) for text in self.data[key]]

    @cached_property
    def short_forms(self) -> Mapping[str, Mapping[str, str]]:
        """By column of names: each name's short form, unlike any other's, also of rows left out."""
        forms = {}
        for column in self.columns:
            if column.is_name:
                values = self.data[column.key]
                own = values.distinct if isinstance(values, TextColumn) else self.texts(column.key)
                names = sorted({text for text in (*own, *self.left_out.get(column.key, ())) if text})
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

    def take(self, rows: AnyArray | slice) -> Self:
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

    def where(self, mask: AnyArray) -> Self:
        """Return the rows at which an array of booleans is true: `t.where(t["total_ns"] > 1_000_000)`."""
        chosen = np.asarray(mask)
        if chosen.dtype != np.bool_ or chosen.shape != (len(self),):
            raise UsageError(f"where takes {len(self):,} booleans, one for each row")
        return self.take(chosen)

    def head(self, limit: int) -> Self:
        """Return the first rows as a table whose notes say how many more there are."""
        if len(self) <= limit:
            return self
        left = len(self) - limit
        rows, are = ("row", "is") if left == 1 else ("rows", "are")
        more = f"{left:,} more {rows} of {len(self):,} {are} not shown"
        return replace(self.take(slice(limit)), notes=(*self.notes, more))

    def counted_from(self, origin_ns: int) -> Self:
        """Return the table with its moments counted from another origin of trace time."""
        by = origin_ns - self.origin_ns
        moments = [column.key for column in self.columns if column.moment]
        data = {**self.data, **{key: _earlier(np.asarray(self.data[key]), by) for key in moments}}
        return replace(self, data=data, origin_ns=origin_ns)

    @property
    def as_read(self) -> Self:
        """The table with its moments counted from where people count them."""
        return self if self.begins_ns is None else self.counted_from(self.begins_ns)

    @property
    def with_origin(self) -> Self:
        """The table for forms that have columns alone: with ORIGIN, where moments do not count from 0."""
        if not self.origin_ns or not any(column.moment for column in self.columns):
            return self
        data = {**self.data, ORIGIN.key: np.full(len(self), self.origin_ns, np.int64)}
        return replace(self, columns=(*self.columns, ORIGIN), data=data)

    def sort(self, key: str, descending: bool = True) -> Self:
        """Return the rows in the order of `order`."""
        return self.take(self.order(key, descending))

    def order(self, key: str, descending: bool = True) -> I64:
        """Return the row numbers sorted by a column, changes by their size; equal values keep their order
        (PyTorch's way), none comes last.
        """
        order = sorted_rows(self.sort_keys(self.column(key)), descending)
        if not self.within:
            return order
        runs = Labels().codes(self.texts(self.within))
        return order[np.argsort(runs[order], kind="stable")]

    def sort_keys(self, column: Column) -> AnyArray:
        """Return the numbers that a column is sorted by: of texts the place in the alphabet, of changes the
        size, of objects the length.
        """
        values = self.data[column.key]
        if isinstance(values, list) and column.unit == "id" and any(isinstance(one, str) for one in values):
            texts = ["" if value is None else str(value) for value in values]
            return _numbered([(len(text), text) for text in texts])  # 9 before 10
        if column.unit == "text":
            return _numbered(values)
        if isinstance(values, list):
            return np.array(
                [len(value) if isinstance(value, Sized) else value or 0 for value in values], np.float64
            )
        numbers = np.asarray(values)
        if numbers.dtype == object:  # large moments, and none
            return _earlier(numbers, min((time for time in numbers.tolist() if time == time), default=0))
        return np.abs(numbers) if column.change else numbers

    def value(self, row: int, key: str) -> Any:
        """Return one value as a plain Python value: none for NaN (JSON has no NaN), a whole number where a
        time, a size or a count is one, though others of its column may be missing.
        """
        unit: Unit = next((column.unit for column in self.columns if column.key == key), "number")
        return _plain(self.data[key][row], unit)

    def rows(self, order: I64 | None = None, limit: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield rows as dictionaries by column key, in the given order."""
        numbers = np.arange(len(self))[:limit] if order is None else order[:limit]
        keys = [column.key for column in self.columns]
        for piece in pieces(len(numbers), PIECE_ROWS):
            columns = [_plain_values(self.data[one.key], numbers[piece], one.unit) for one in self.columns]
            for row in zip(*columns):
                yield dict(zip(keys, row))


def _earlier(times: AnyArray, by: int) -> AnyArray:
    """Return times so many ns earlier; NaN for none, among whole numbers where floats would not be exact."""
    if times.dtype != object:
        return times - by
    earlier = [np.nan if time is None or time != time else time - by for time in times.tolist()]
    return np.array(earlier, object if any(abs(time) >= EXACT_FLOATS for time in earlier) else np.float64)


def _numbered(texts: Values) -> I64:
    """Return for each text (or pair) its number among those that differ, in order: of many few differ."""
    if isinstance(texts, TextColumn):
        return texts.sort_keys
    numbers = {text: number for number, text in enumerate(sorted(set(texts)))}
    return np.fromiter(map(numbers.__getitem__, texts), np.int64, len(texts))


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


def _plain_values(values: Values, rows: I64, unit: Unit) -> Iterable[Any]:
    """Return a column's values at some rows as `TableRows.value` has them."""
    if isinstance(values, TextColumn):
        return values[rows]
    if isinstance(values, list):
        return [_plain(values[row], unit) for row in rows.tolist()]
    listed: list[Any] = values[rows].tolist()
    return listed if values.dtype.kind in "iub" else [_plain(value, unit) for value in listed]


def _plain(value: Any, unit: Unit) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if not math.isfinite(value):
            return None  # JSON has neither
        if unit in WHOLE or (unit == "number" and abs(value) < EXACT_FLOATS):
            return int(value) if value.is_integer() else value
    return value
