"""What is asked of groups of rows, and the shape of a table: its columns and how each is computed, in one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...base.arrays import MAX, AnyArray, sum_of
from .frame import FrameGroups, Of
from .schema import Column, Property, SchemaFields, TableSchema, Unit, unit_by_end, words_of
from .table import Table
from .table_rows import Values
from .text_column import TextColumn

MIXED = "mixed"


@dataclass(frozen=True)
class Aggregate:
    """What is computed of the rows of each group, and what kind of column that is."""

    of: Callable[[FrameGroups], Values]
    unit: Unit | None = None
    properties: frozenset[Property] = frozenset()


def n(mask: Of | None = None) -> Aggregate:
    """Count the rows, or those in a mask."""
    return Aggregate(lambda g: g.counts if mask is None else g.counts_where(g.column(mask)), "count")


def total(of: Of, unit: Unit | None = None) -> Aggregate:
    """Add up, exact."""
    return Aggregate(lambda g: g.sums(g.column(of)), unit)


def statistic(name: str, of: Of) -> Aggregate:
    """Take one of the statistics of `groups.STATISTICS`."""
    return Aggregate(lambda g: g.statistics_of(of)[name])


def ratio_of(part: Aggregate, whole: Aggregate) -> Aggregate:
    """Divide one by another; none of nothing, nor of a sum that stays at the limit."""

    def of(g: FrameGroups) -> Values:
        pairs = zip(np.asarray(part.of(g)).tolist(), np.asarray(whole.of(g)).tolist())
        return np.array([a / b if b and a < MAX else np.nan for a, b in pairs], np.float64)

    return Aggregate(of)


def share_of_all(of: Of) -> Aggregate:
    """Take the part of the sum over all groups."""

    def answers(g: FrameGroups) -> Values:
        sums = g.sums(g.column(of))
        return np.asarray(sums / max(sum_of(sums), 1))

    return Aggregate(answers)


def first(of: Of, unit: Unit | None = None) -> Aggregate:
    """Take the value of the first row; of texts the text."""

    def answers(g: FrameGroups) -> Values:
        values: AnyArray | TextColumn = g.column(of)[g.first()]
        return values.tolist() if isinstance(values, TextColumn) else values

    return Aggregate(answers, unit)


def text(key: str) -> Aggregate:
    """Take the text of the first row."""
    return first(key, "text")


def same(key: str) -> Aggregate:
    """Take the text that all rows have, "mixed" where they have several."""

    def answers(g: FrameGroups) -> Values:
        words: Any = g.column(key)
        edges = zip(g.least(words.codes).tolist(), g.most(words.codes).tolist())
        return [words.texts[low] if low == high else MIXED for low, high in edges]

    return Aggregate(answers, "text")


def given(values: Values, unit: Unit) -> Aggregate:
    """Take the answers as they are."""
    return Aggregate(lambda _: values, unit)


def moment(key: str) -> Aggregate:
    """Take the time of the first row."""
    return flagged(first(key), "moment")


def flagged(aggregate: Aggregate, *properties: Property) -> Aggregate:
    """Return an aggregate whose column has these properties of `schema.Column`."""
    return replace(aggregate, properties=frozenset(properties))


ON_DEVICE: Mapping[str, Aggregate] = {"rank": text("rank"), "device": text("device")}
ON_STREAM: Mapping[str, Aggregate] = {**ON_DEVICE, "stream": text("stream_name")}
"""Where work ran, as most tables of it say."""


@dataclass(frozen=True)
class Shape:
    """A table by its columns: for each key what is asked, with a heading where it is not the key in words.

    `more` are the other fields of the schema.
    """

    name: str
    title: str
    aggregates: Mapping[str, Aggregate | tuple[str, Aggregate]]
    more: SchemaFields = field(default_factory=SchemaFields)

    @cached_property
    def schema(self) -> TableSchema:
        return TableSchema(
            self.name, self.title, tuple(map(_column, *zip(*self.aggregates.items()))), **self.more
        )

    def of(self, groups: FrameGroups, *, jump: Of | None = None, sort: str = "", **given: Any) -> Table:
        """Return a row per group that leads to its greatest `jump`; `given` are totals and notes."""
        data = {
            key: (aggregate[1] if isinstance(aggregate, tuple) else aggregate).of(groups)
            for key, aggregate in self.aggregates.items()
        }
        if jump is not None:
            rows = groups.statistics_of(jump)["longest"]
            given |= {"positions": groups.frame.position[rows], "sources": groups.frame.source[rows]}
        table = Table.from_arrays(self.schema, groups.frame.scope.text, data, **given)
        return table.sort(sort) if sort else table


def _column(key: str, aggregate: Aggregate | tuple[str, Aggregate]) -> Column:
    heading, aggregate = aggregate if isinstance(aggregate, tuple) else (words_of(key), aggregate)
    return Column(
        key, heading, aggregate.unit or unit_by_end(key), **dict.fromkeys(aggregate.properties, True)
    )
