"""Slices as a frame: rows with named columns, each made once when it is first named, and their groups.

A row is a piece of device work, whose columns stand in `frame_columns`, or a call of the host, whose columns
stand in `host.call_columns`. A gap is a row too: that of the work which ends it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np

from ...base.arrays import I64, AnyArray, Intervals, merge
from ...base.pattern import Pattern
from ...index.store import Index
from ...query.groups import Groups, Labels, concatenated, dense, groups_alike
from ...query.lookup import op_names
from ...trace.step_spans import StepSpans, step_spans
from .kinds import KERNEL_TYPES, kind_table
from .scope import Scope
from .text_column import TextColumn
from .work_device import WorkDevice

Of: TypeAlias = "str | Callable[[Frame], Any]"
"""What is asked of rows: a column by name, or a function of the frame."""


@dataclass(frozen=True)
class ColumnMakers:
    """How columns are made; those `of_order` are of all rows, others may be made for chosen rows alone. The
    positions of those `of_owners` lie in the index of each row's owner, all others in that of its source.
    """

    make: Mapping[str, Callable[[Any], Any]]
    of_order: Container[str]
    of_owners: Container[str] = ()


@dataclass(frozen=True, eq=False)
class Frame:
    """Slices of a scope, those of a source together; times are trace time (ns). Device work is by device and
    position, cut to the scope's range, and has `devices` and `streams`.
    """

    scope: Scope
    makers: ColumnMakers
    given: Mapping[str, AnyArray | TextColumn] = field(repr=False)
    whole: Frame | None = None  # of which `rows` are these rows
    rows: AnyArray | slice | None = None
    devices: Sequence[WorkDevice] = ()
    streams: Sequence[str] = ()

    def __getattr__(self, name: str) -> Any:
        """Return a column: given, else that of the whole where it has one, else made."""
        if name in self.given:
            values = self.given[name]
        elif self.whole is not None and (name in self.makers.of_order or self.whole.has(name)):
            values = getattr(self.whole, name)[self.rows]
        elif name in self.makers.make:
            self.scope.check()
            values = self.makers.make[name](self)
        else:
            raise AttributeError(f"these rows have no column {name!r}")
        self.__dict__[name] = values
        return values

    def has(self, name: str) -> bool:
        there = name in self.__dict__ or name in self.given
        return there or (self.whole is not None and self.whole.has(name))

    def __len__(self) -> int:
        return len(self.position)

    # -- rows ---------------------------------------------------------------------------------------------

    def __getitem__(self, rows: AnyArray | slice) -> Frame:
        """Return some rows, by mask, by number or by slice, with their columns as they are here."""
        return self._of({}, self, rows)

    def plus(self, **columns: AnyArray | TextColumn) -> Frame:
        """Return the rows with more columns, or others in place of those of these names."""
        return self._of(columns, self, slice(None))

    def separate(self, rows: AnyArray, **columns: AnyArray) -> Frame:
        """Return some rows as a frame of their own order, with these columns in place of given ones."""
        root = self
        while root.whole is not None:
            root = root.whole
        given = {key: getattr(self, key)[rows] for key in root.given}
        return self._of({**given, **columns})

    def _of(
        self,
        given: Mapping[str, AnyArray | TextColumn],
        whole: Frame | None = None,
        rows: AnyArray | slice | None = None,
    ) -> Frame:
        return Frame(self.scope, self.makers, given, whole, rows, self.devices, self.streams)

    def top(self, key: str, count: int | None = 1) -> Frame:
        """Return the rows with the greatest values of a column, of equal ones the first."""
        return self[np.argsort(-getattr(self, key), kind="stable")[:count]]

    def by(self, key: str) -> Iterator[Frame]:
        """Yield the rows of each value of a column of numbers, ascending; in a part they keep their order."""
        values = getattr(self, key)
        if len(values) and (values[0] == values).all():
            yield self
            return
        order = np.argsort(values, kind="stable")
        bounds = np.flatnonzero(np.diff(values[order], prepend=-1, append=-1))
        in_order = bool((order[1:] > order[:-1]).all())
        for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist()):
            yield self[slice(low, high) if in_order else order[low:high]]

    @cached_property
    def by_stream(self) -> list[I64]:
        """The rows of each stream, by start."""
        order = np.arange(len(self)) if len(self.streams) == 1 else np.argsort(self.stream, kind="stable")
        edges = np.cumsum(np.bincount(self.stream, minlength=len(self.streams)))
        # Each of a stream's rows in the index is sorted by itself: a stable sort only merges them.
        parts = (rows for rows in np.split(order, edges[:-1]) if len(rows))
        return [rows[np.argsort(self.start[rows], kind="stable")] for rows in parts]

    def in_order(self) -> Frame:
        return self[concatenated(self.by_stream)]

    def group(self, *keys: str, within: str = "device_row") -> FrameGroups:
        """Return the rows by one or several columns: groups in the order of the numbers, those of texts in
        the order of appearance within the parts that another column makes. Rows of equal text are a group.
        """
        labels = Labels()
        columns = (getattr(self, key) for key in keys)
        groups = groups_alike(
            (self._codes_of(one, labels, within) if isinstance(one, TextColumn) else one for one in columns),
            len(self),
        )
        return FrameGroups(groups.codes, groups.size, self)

    def _codes_of(self, words: TextColumn, labels: Labels, within: str) -> I64:
        numbers = np.zeros(len(words.texts), np.int64)
        for part in self.plus(_codes=words.codes).by(within):
            present = np.flatnonzero(np.bincount(part._codes, minlength=len(numbers)))
            numbers[present] = labels.codes([words.texts[code] for code in present.tolist()])
        return numbers[words.codes]

    def each(self) -> FrameGroups:
        """Return each row as a group of its own."""
        return FrameGroups(np.arange(len(self)), len(self), self)

    def together(self) -> FrameGroups:
        """Return all rows as one group, even where there are none."""
        return FrameGroups(np.zeros(len(self), np.int64), 1, self)

    # -- what columns are made of -------------------------------------------------------------------------

    @property
    def first_device(self) -> WorkDevice:
        return self.devices[int(self.device_row[0])]

    @property
    def source_number(self) -> int:
        """The source of the first row, where these are all of one."""
        return int(self.source[0])

    @property
    def index(self) -> Index:
        return self.scope.trace.indexes[self.source_number]

    @property
    def owner_index(self) -> Index:
        """The index in which the owners of the rows lie, where these are all of one `owner_row`."""
        return self.scope.trace.owners(self.source_number).indexes[int(self.book[0])]

    @cached_property
    def steps(self) -> StepSpans | None:
        """The steps of the scope's trace, None where there are none."""
        if self.whole is not None:
            return self.whole.steps
        return step_spans(self.scope.trace, self.scope.clocks, self.scope.steps or None)

    def from_parts(self, make: Callable[[Frame], AnyArray], by: str = "source") -> Any:
        """Return a column that is made of the rows of each source alone."""
        parts = list(self.by(by))
        values = [make(part) for part in parts]
        if len(parts) == 1:
            return values[0]
        column = np.zeros(len(self), values[0].dtype if values else np.int64)
        for part, own in zip(parts, values):
            column[part.rows] = own
        return column

    def names_at(
        self,
        numbers_of: Callable[[Frame], AnyArray],
        label: Callable[[str], str] = str,
        index_of: Callable[[Frame], Index] = attrgetter("index"),
        by: str = "source",
    ) -> TextColumn:
        """Return the texts of numbers of the index, each distinct one of a source read and labelled once."""
        texts: list[str] = []

        def codes(part: Frame) -> I64:
            rows, numbers = dense(numbers_of(part))
            texts.extend(label(text) for text in index_of(part).strings(numbers))
            return rows + (len(texts) - len(numbers))

        return TextColumn(self.from_parts(codes, by), texts)

    def names_of(self, key: str, label: Callable[[str], str] = str, *, by_type: bool = False) -> TextColumn:
        """Return the names of the slices at positions that a column holds, `by_type` those of operators; ""
        for a negative one.
        """
        of_owners = key in self.makers.of_owners
        index_of = attrgetter("owner_index" if of_owners else "index")
        by = "owner_row" if of_owners else "source"

        def numbers_of(part: Frame) -> AnyArray:
            positions = getattr(part, key)
            names = index_of(part).column("slices.name")[positions]
            return op_names(index_of(part), np.maximum(positions, 0), names) if by_type else names

        words = self.names_at(numbers_of, label, index_of, by)
        return TextColumn(np.where(getattr(self, key) < 0, len(words.texts), words.codes), [*words.texts, ""])

    def named(self, pattern: re.Pattern[str] | Pattern, label: Callable[[str], str] = str) -> AnyArray:
        """Return which rows have a matching name, or a matching label of it; each name is tested once."""
        names = [*self.name.texts, *map(label, self.name.texts)]
        if isinstance(pattern, Pattern):  # of a user, which may take long
            hits = pattern.matches_in(names, self.scope.cancelled)
        else:
            hits = [pattern.search(name) is not None for name in names]
        fits = np.asarray(np.array(hits, np.bool_).reshape(2, -1).any(0))
        return np.asarray(fits[self.name.codes])

    def is_type(self, *names: str) -> AnyArray:
        return np.isin(self.type, [KERNEL_TYPES.index(name) for name in names])

    def is_kind(self, name: str) -> AnyArray:
        return np.asarray(self.kind == kind_table().names.index(name))

    def union(self, rows: AnyArray | slice = slice(None)) -> Intervals:
        return merge(self.start[rows], self.end[rows])

    def queue(self, until: I64) -> tuple[I64, I64]:
        """Return (times, launches called but not yet at `until`), by change."""
        times = np.concatenate([self.call_start, until])
        changes = np.repeat(np.array([1, -1], np.int64), len(self))
        order = np.argsort(times, kind="stable")  # a launch before a start at the same ns
        return times[order], np.cumsum(changes[order])


@dataclass(frozen=True, eq=False)
class FrameGroups(Groups):
    """The rows of a frame in groups; what is asked of them stands in `shape`."""

    frame: Frame

    def column(self, of: Of) -> Any:
        return getattr(self.frame, of) if isinstance(of, str) else of(self.frame)

    def statistics_of(self, of: Of) -> dict[str, AnyArray]:
        values: dict[str, AnyArray] = self.once(of, lambda groups: groups.statistics(groups.column(of)))
        return values

    def once(self, key: Any, make: Callable[[FrameGroups], Any]) -> Any:
        """Return what is asked of the groups, computed the first time."""
        answers = self.__dict__.setdefault("_answers", {})
        if key not in answers:
            answers[key] = make(self)
        return answers[key]

    @cached_property
    def parts(self) -> list[Frame]:
        return list(self.frame.plus(_group=self.codes).by("_group"))

    def one_row(self, *keys: str) -> Frame:
        """Return the first row of each group by these columns, the first of equal ones."""
        order = np.lexsort((*(getattr(self.frame, key) for key in reversed(keys)), self.codes))
        return self.frame[order[np.cumsum(self.counts) - self.counts]]
