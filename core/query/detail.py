"""What the index knows about one slice, instant or counter sample, and about slices at some positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..base.arrays import I64, AnyArray
from ..base.short_names import short_name
from ..index.format import SliceFlag
from ..index.store import Index
from ..read.promoted import PROMOTED, Kind
from .lookup import category_of_slice, count_children, locate_slice
from .views import SliceId


@dataclass(frozen=True)
class SliceDetail:
    """One slice in full; times are lane time in ns, positions those of the index."""

    id: SliceId
    position: int
    row: int  # row number in the source
    index: int  # within the row
    lane: int  # lane number in the source
    depth: int
    name: str
    short_name: str
    category: str
    start: int
    duration: int
    self_time: int
    parent: int | None
    children: int
    overlap: bool
    unclosed: bool
    clamped: bool
    end_ordinal: int | None
    promoted: tuple[tuple[str, int | float | str], ...]

    @property
    def end(self) -> int:
        """First ns after the slice, lane time."""
        return self.start + self.duration


@dataclass(frozen=True)
class InstantDetail:
    """One instant (any phase drawn as such); lane time in ns."""

    source: int
    ordinal: int
    row: int
    index: int
    lane: int
    name: str
    short_name: str
    category: str
    phase: str
    start: int


@dataclass(frozen=True)
class SampleDetail:
    """One sample of a counter series; lane time in ns."""

    source: int
    ordinal: int
    row: int
    index: int
    lane: int
    series: str
    value: float
    start: int


def slice_detail(index: Index, source: int, position: int) -> SliceDetail:
    """Return everything the index knows about the slice at a position."""
    row_number, at = locate_slice(index, position)
    row = index.rows[row_number]
    flags = index.flag(position)
    name = index.string(int(index.column("slices.name")[position]))
    return SliceDetail(
        id=SliceId(source, int(index.column("slices.ordinal")[position])),
        position=position,
        row=row_number,
        index=at,
        lane=int(row["lane"]),
        depth=int(row["depth"]),
        name=name,
        short_name=short_name(name),
        category=category_of_slice(index, position),
        start=index.start(position),
        duration=int(index.duration([position])[0]),
        self_time=int(index.self_time([position])[0]),
        parent=index.parent(position),
        children=count_children(index, position),
        overlap=bool(flags & SliceFlag.OVERLAP),
        unclosed=bool(flags & SliceFlag.UNCLOSED),
        clamped=bool(flags & SliceFlag.CLAMPED),
        end_ordinal=index.end_ordinal(position),
        promoted=promoted_arguments(index, position),
    )


def promoted_arguments(index: Index, position: int) -> tuple[tuple[str, int | float | str], ...]:
    """Return (key, value) of the promoted arguments that a slice has."""
    kinds = {entry.key: entry.kind for entry in PROMOTED}
    values: list[tuple[str, int | float | str]] = []
    for key in index.promoted_keys():
        value = index.promoted(key, position)
        if value is not None:
            values.append((key, index.string(int(value)) if kinds.get(key) is Kind.TEXT else value))
    return tuple(values)


def instant_detail(index: Index, source: int, row_number: int, at: int) -> InstantDetail:
    """Return everything the index knows about the instant at an index within its row."""
    row = index.rows[row_number]
    position = int(row["first"]) + at
    name = index.string(int(index.column("instants.name")[position]))
    return InstantDetail(
        source,
        int(index.column("instants.ordinal")[position]),
        row_number,
        at,
        int(row["lane"]),
        name,
        short_name(name),
        index.categories[int(index.column("instants.category")[position])],
        chr(int(index.column("instants.phase")[position])),
        int(index.column("instants.start")[position]),
    )


def sample_detail(index: Index, source: int, row_number: int, at: int) -> SampleDetail:
    """Return everything the index knows about the counter sample at an index within its row."""
    row = index.rows[row_number]
    position = int(row["first"]) + at
    return SampleDetail(
        source,
        int(index.column("samples.ordinal")[position]),
        row_number,
        at,
        int(row["lane"]),
        index.string(int(row["series"])),
        float(index.column("samples.value")[position]),
        int(index.column("samples.start")[position]),
    )


class SliceList:
    """Slices of one source in a given order: lists and arrays with a value for each, read when asked for."""

    def __init__(self, index: Index, source: int, positions: Sequence[int] | AnyArray) -> None:
        self.source, self.positions = source, np.asarray(positions, np.int64)
        self._index = index

    @property
    def ids(self) -> list[SliceId]:
        ordinals = self._index.column("slices.ordinal")[self.positions].tolist()
        return [SliceId(self.source, ordinal) for ordinal in ordinals]

    @property
    def names(self) -> list[str]:
        """Their names as they stand in the file."""
        return self._index.strings(self._index.column("slices.name")[self.positions].tolist())

    @property
    def categories(self) -> list[str]:
        numbers = self._index.column("slices.category")[self.positions].tolist()
        return [self._index.categories[number] for number in numbers]

    @property
    def starts(self) -> I64:
        """When they start, lane time in ns."""
        starts: I64 = self._index.column("slices.start")[self.positions].astype(np.int64)
        return starts

    @property
    def durations(self) -> I64:
        """How long they take, ns."""
        return self._index.duration(self.positions)

    @property
    def self_times(self) -> I64:
        """How long they take without the slices in them, ns."""
        return self._index.self_time(self.positions)
