"""Which part of a trace an analysis counts: all of it or a range, all lanes or some; read chunk by chunk.

Slices of one source are columns; chunks of a scope (`Chunk`) and the host's slices (`HostSlices`) have
further ones. What is few enough to be held at once is a frame: device work, the host's calls of some names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from ...base.arrays import I64, U32, AnyArray, merge, places_in
from ...base.clock import Clocks
from ...base.errors import Cancelled
from ...base.kineto import DEVICE_ANNOTATION
from ...base.progress import CancelledCallback, ProgressCallback, never, no_progress
from ...base.units import format_moment, moment_digits
from ...index.format import LaneRole, RowKind
from ...index.store import Index
from ...query.cells import ragged
from ...query.lookup import (
    category_mask,
    lane_offsets,
    positions_within,
    rows_of_children,
    starts_of,
)

if TYPE_CHECKING:
    from ...trace import Trace


@dataclass(frozen=True, eq=False)
class Slices:
    """Slices as columns of equal length: positions in the index of the source, trace times (ns), names
    and categories as the index numbers them.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = ("positions", "starts", "ends", "names", "categories")
    """The columns that `take` selects from."""

    source: int
    index: Index
    positions: AnyArray
    starts: I64
    ends: I64
    names: AnyArray
    categories: AnyArray

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def durations(self) -> I64:
        return self.ends - self.starts

    def take(self, rows: AnyArray | slice) -> Self:
        """Return some of the slices, by index, by mask, or in a row."""
        if not isinstance(rows, slice) and rows.dtype == np.bool_ and rows.all():
            return self
        return replace(self, **{column: getattr(self, column)[rows] for column in self.COLUMNS})


CHUNK = 1 << 18
"""The most slices of one chunk: bounds the temporary arrays of every analysis."""

Where: TypeAlias = Callable[[Index, I64], AnyArray]
"""A filter: (index, positions) -> which of them to keep, as booleans."""


Attribute: TypeAlias = Literal["launch", "window"]
"""How device work is assigned to a step: by the call that launched it, or by the step's window on the host.
"""


@dataclass(frozen=True, eq=False)
class StepWork:
    """The device work of one step, by source: it counts whole, whenever it ran; other device work does not.

    A device runs behind the host: what a step launched may run when the step is long over.
    """

    chosen: Mapping[int, U32]  # positions, ascending
    all: Mapping[int, U32]  # of the device work of all steps and of none, ascending


NO_WORK = np.empty(0, np.uint32)


class RowPart(NamedTuple):
    """The positions [begin, end) of one row that lie in the scope."""

    source: int
    lane: int  # index into Trace.lanes
    row: int  # row number of the source
    offset: int  # lane time + offset = trace time
    begin: int
    end: int


@dataclass(frozen=True, eq=False)
class Chunk(Slices):
    """Slices of a scope: times are cut to its range."""

    COLUMNS: ClassVar = (*Slices.COLUMNS, "lanes", "rows")

    lanes: I64  # indexes into Trace.lanes
    rows: I64  # row numbers
    cut: I64  # which of these slices reach beyond the range
    low: I64  # the range in lane time, for each of the cut ones
    high: I64

    def take(self, rows: AnyArray | slice) -> Chunk:
        """Return some of the slices, by index, by mask, or in a row."""
        part = super().take(rows)
        if part is self or not len(self.cut):
            return part
        numbers = np.full(len(self), -1, np.int64)
        numbers[self.cut] = np.arange(len(self.cut))
        cut = np.flatnonzero(numbers[rows] >= 0)
        of = numbers[rows][cut]
        return replace(part, cut=cut, low=self.low[of], high=self.high[of])

    @cached_property
    def self_times(self) -> I64:
        """The ns of each slice in the range that no child covers; 0 for annotations on a device."""
        times = self.index.self_time(self.positions)
        for at, low, high in zip(self.cut.tolist(), self.low.tolist(), self.high.tolist()):
            times[at] = self.ends[at] - self.starts[at] - self._covered(at, low, high)
        times[self.is_device_annotation] = 0
        return times

    @cached_property
    def is_device_annotation(self) -> AnyArray:
        annotations: AnyArray = category_mask(self.index, {DEVICE_ANNOTATION})[self.categories]
        return annotations

    def _covered(self, at: int, low: int, high: int) -> int:
        """Return how many ns of a cut slice its children cover inside the range."""
        index, position = self.index, int(self.positions[at])
        low, high = max(low, index.start(position)), min(high, index.end(position))
        starts, ends = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for number in rows_of_children(index, int(self.rows[at])):
            begin, end = positions_within(index, number, low, high)
            children = begin + np.flatnonzero(index.column("slices.parent")[begin:end] == position)
            starts.append(index.column("slices.start")[children].astype(np.int64))
            ends.append(starts[-1] + index.duration(children))
        return merge(np.concatenate(starts), np.concatenate(ends)).clipped(low, high).length


@dataclass(frozen=True, eq=False)
class WithoutOpenEnded:
    """A filter that leaves out slices whose ends are not known, by source ascending, and what `more` does."""

    positions: Mapping[Index, AnyArray]
    more: Where | None = None

    def __call__(self, index: Index, positions: I64) -> AnyArray:
        known = places_in(self.positions.get(index, positions[:0]), positions) < 0
        return known if self.more is None else known & self.more(index, positions)


@dataclass(frozen=True)
class Scope:
    """Which slices count. `range` is trace time, and a slice counts with its part inside it; `lanes` are
    indexes into Trace.lanes.

    What reads a scope raises Cancelled soon after `cancelled` returns True.
    """

    trace: Trace
    range: tuple[int, int] | None = None
    lanes: Collection[int] | None = None
    where: Where | None = None
    clocks: Clocks = field(default_factory=Clocks)
    source: int | None = None
    label: str = ""  # what the range is, as "step 7"
    against: str = ""  # what its numbers are compared with
    steps: str = ""  # name of the slices that are the steps; empty: found by their usual names
    attribute: Attribute = "launch"
    allocations: bool = False  # whether an AIU's allocations, on its device's lanes, count as device work
    work: StepWork | None = None  # of a step by launch: `range` is its window, and counts for the host
    untimed: int = 0  # pieces of device work that are left out, as they have no usable times
    cancelled: CancelledCallback = field(default=never, compare=False)
    progress: ProgressCallback = field(default=no_progress, compare=False)  # of what reads a file again

    def check(self) -> None:
        """Raise Cancelled where the answer is no longer needed."""
        if self.cancelled():
            raise Cancelled

    @property
    def sources(self) -> Sequence[int]:
        return range(len(self.trace.indexes)) if self.source is None else (self.source,)

    def of_source(self, source: int) -> Scope:
        """Return what the scope has of one of its sources: itself where it has no other."""
        return self if tuple(self.sources) == (source,) else replace(self, source=source)

    def has_lanes(self, source: int, lanes: I64) -> AnyArray:
        """Return which of these lanes of a source count, as booleans."""
        if self.lanes is None:
            return np.ones(len(lanes), np.bool_)
        return np.isin(lanes + self.trace.lane_bases[source], np.array(sorted(self.lanes), np.int64))

    def lane_offsets(self, source: int) -> I64:
        """Return the offset of each lane of a source, in ns: lane time + offset = trace time."""
        return lane_offsets(self.trace.indexes[source], source, self.clocks)

    def starts(self, source: int, positions: AnyArray) -> I64:
        """Return the starts of slices of a source in trace time."""
        return starts_of(self.trace.indexes[source], positions, self.lane_offsets(source))

    @cached_property
    def parts(self) -> tuple[RowPart, ...]:
        """What the scope holds of each row of slices."""
        return self.rows_inside(RowKind.SLICES)

    def parts_of(self, source: int) -> tuple[RowPart, ...]:
        """Return what the scope holds of each row of slices of a source."""
        return self._parts_by_source.get(source, ())

    @cached_property
    def _parts_by_source(self) -> dict[int, tuple[RowPart, ...]]:
        return {source: tuple(parts) for source, parts in groupby(self.parts, attrgetter("source"))}

    @property
    def most(self) -> int:
        """At least as many slices as the scope has, before its filter."""
        chosen = () if self.work is None else self.work.chosen.values()
        return sum(part.end - part.begin for part in self.parts) + sum(map(len, chosen))

    def rows_inside(self, kind: RowKind) -> tuple[RowPart, ...]:
        """Return what the scope holds of each row of a kind, unfiltered, by position, no empty ones."""
        parts = []
        for source in self.sources:
            index, offsets = self.trace.indexes[source], self.lane_offsets(source).tolist()
            base, lanes = self.trace.lane_bases[source], index.rows["lane"].astype(np.int64)
            counted = (index.rows["kind"] == kind) & self.has_lanes(source, lanes)
            for number in np.flatnonzero(counted).tolist():
                entry, lane = index.rows[number], int(lanes[number])
                begin, end = int(entry["first"]), int(entry["first"]) + int(entry["count"])
                if self.range is not None:
                    low, high = (edge - offsets[lane] for edge in self.range)
                    begin, end = positions_within(index, number, low, high)
                if begin < end:
                    parts.append(RowPart(source, base + lane, number, offsets[lane], begin, end))
        return tuple(sorted(parts, key=lambda part: (part.source, part.begin)))

    def chunks(self) -> Iterator[Chunk]:
        """Yield the slices in order of source and position, at most CHUNK at once. Raises Cancelled."""
        if self.work is not None:
            yield from self._chunks_of_step(self.work)
            return
        for source, parts in self._parts_by_source.items():
            batch: list[RowPart] = []
            size = 0
            for part in parts:
                while part.begin < part.end:
                    piece = part._replace(end=min(part.end, part.begin + CHUNK - size))
                    batch.append(piece)
                    size += piece.end - piece.begin
                    part = part._replace(begin=piece.end)
                    if size == CHUNK:
                        yield self._chunk(source, batch)
                        batch, size = [], 0
            if batch:
                yield self._chunk(source, batch)

    def _chunks_of_step(self, work: StepWork) -> Iterator[Chunk]:
        """Yield the slices of the host's window without device work, and the step's device work whole."""
        in_window: dict[int, list[I64]] = {}
        for part in self.parts:
            in_window.setdefault(part.source, []).append(np.arange(part.begin, part.end, dtype=np.int64))
        for source, rows in self._rows.items():
            begins = np.array([row.begin for row in rows], np.int64)
            inside = np.concatenate([np.empty(0, np.int64), *in_window.get(source, [])])
            positions = self.by_launch(source, inside)
            for low in range(0, len(positions), CHUNK):
                some: I64 = positions[low : low + CHUNK]
                row = np.searchsorted(begins, some, "right") - 1
                yield self._columns(source, some, rows, row, self.is_whole(source, some))

    @cached_property
    def _rows(self) -> dict[int, list[RowPart]]:
        """All rows of the scope's lanes by source, without regard to the range."""
        whole = replace(self, range=None, work=None).parts
        return {source: list(parts) for source, parts in groupby(whole, attrgetter("source"))}

    def by_launch(self, source: int, positions: I64) -> I64:
        """Return the positions of a step's window, ascending, with the device work that the step launched in
        place of what ran in the window; unchanged where the scope is not a step by launch.
        """
        if self.work is None:
            return positions
        rows = self._rows.get(source, [])
        chosen = self.work.chosen.get(source, NO_WORK).astype(np.int64)
        begins, ends = (np.array([row[at] for row in rows], np.int64) for at in (4, 5))
        row = np.searchsorted(begins, chosen, "right") - 1
        inside = (row >= 0) & (chosen < np.append(ends, 0)[row])  # in lanes of the scope
        host = positions[~_among(positions, self.work.all.get(source, NO_WORK))]
        return np.sort(np.concatenate([host, chosen[inside]]))

    def is_whole(self, source: int, positions: I64) -> AnyArray:
        """Return which slices count whole though the range may cut them: a step's device work."""
        return _among(positions, NO_WORK if self.work is None else self.work.chosen.get(source, NO_WORK))

    def _chunk(self, source: int, parts: list[RowPart]) -> Chunk:
        begins = np.array([part.begin for part in parts], np.int64)
        ends = np.array([part.end for part in parts], np.int64)
        positions, _ = ragged(begins, ends)
        at = np.repeat(np.arange(len(parts)), ends - begins)
        # Rows that follow each other are read in one piece.
        whole = bool((begins[1:] == ends[:-1]).all())
        return self._columns(source, positions, parts, at, None, whole)

    def _columns(
        self,
        source: int,
        positions: I64,
        parts: list[RowPart],
        part_of: I64,
        uncut: AnyArray | None,
        in_one_piece: bool = False,
    ) -> Chunk:
        """Return slices as a chunk; `part_of` is each one's part, `uncut` which count whole."""
        self.check()
        index = self.trace.indexes[source]
        if self.where is not None:
            keep = self.where(index, positions)
            positions, part_of = positions[keep], part_of[keep]
            uncut = None if uncut is None else uncut[keep]
        of_parts = zip(*((part.lane, part.row, part.offset) for part in parts))
        of_lane, of_row, offset = (np.array(column, np.int64) for column in of_parts)
        piece = in_one_piece and self.where is None and len(positions) > 0
        at: slice | I64 = slice(int(positions[0]), int(positions[-1]) + 1) if piece else positions
        starts: I64 = index.column("slices.start")[at].astype(np.int64)
        if offset.any():
            starts += offset[part_of]
        stops: I64 = starts + (
            index.durations_between(at.start, at.stop) if isinstance(at, slice) else index.duration(positions)
        )
        cut = low = high = np.empty(0, np.int64)
        if self.range is not None:
            first, last = self.range
            beyond = (starts < first) | (stops > last)
            if uncut is not None:
                beyond &= ~uncut
            cut = np.flatnonzero(beyond).astype(np.int64)
            low, high = (edge - offset[part_of[cut]] for edge in self.range)
            if len(cut):
                starts[cut] = np.maximum(starts[cut], first)
                stops[cut] = np.minimum(stops[cut], last)
        names, categories = index.column("slices.name")[at], index.column("slices.category")[at]
        where = of_lane[part_of], of_row[part_of]
        return Chunk(source, index, positions, starts, stops, names, categories, *where, cut, low, high)

    @cached_property
    def cut(self) -> int:
        """How many slices reach beyond the range (filter aside)."""
        if self.range is None:
            return 0
        if self.work is not None:
            return sum(len(chunk.cut) for chunk in replace(self, where=None).chunks())
        count = 0
        for part in self.parts:
            index, edges = self.trace.indexes[part.source], [part.begin, part.end - 1]
            starts = index.column("slices.start")[edges].astype(np.int64) + part.offset
            beyond = (starts < self.range[0]) | (starts + index.duration(edges) > self.range[1])
            count += int(np.count_nonzero(beyond[: 1 if part.end - part.begin == 1 else 2]))
        return count

    @cached_property
    def text(self) -> str:
        """The scope in words, as it stands above every table."""
        from ...trace.device_clocks import moved_text  # the first picture has no words for a scope

        words = self.when + (f" against {self.against}" if self.against else "")
        if self.cut:
            what = "slice" if self.cut == 1 else "slices"
            words += f" ({self.cut} {what} cut at its edges, counted in part)"
        if self.lanes is not None:
            words += f", {len(self.lanes)} of {len(self.trace.lanes)} lanes"
        if self.source is not None and len(self.trace.indexes) > 1:
            words += f", source {self.source}"
        if clocks_text := moved_text(self.trace, self.clocks):
            words += f", {clocks_text}"
        if self.untimed:
            what = "kernel or copy" if self.untimed == 1 else "kernels and copies"
            words += f", without {self.untimed:,} {what} whose times are lost"
        where = self.where
        if isinstance(where, WithoutOpenEnded):
            count = sum(map(len, where.positions.values()))
            words += f", without {count:,} slices whose ends are not known"
            where = where.more
        return words + (", filtered" if where is not None else "")

    @property
    def opening_span(self) -> tuple[int, int]:
        """What the first window of the trace shows, under the scope's clocks."""
        return self.trace.opening_span_at(self.clocks)

    @property
    def recorded_span(self) -> tuple[int, int]:
        """From when to when slices of hosts and devices last, of what the first window shows: a profiler also
        notes when it began and ended, up to half of the time before and after them.
        """
        low, high = self.opening_span
        lanes = [
            (lane.start + offset, lane.end + offset)
            for source in self.sources
            for lane in self.trace.lanes_of(source)
            if lane.role in (LaneRole.HOST, LaneRole.DEVICE) and lane.slices
            for offset in (self.clocks.offset(source, lane.pid),)
        ]
        starts, ends = zip(*lanes) if lanes else ((low,), (high,))
        return max(low, min(starts)), min(high, max(ends))

    @property
    def origin(self) -> int:
        """The start of the trace (ns) without what stands on another clock: relative times count from it."""
        return self.trace.opening_span[0]

    @property
    def when(self) -> str:
        """The range in words, without lanes and filter."""
        if self.range is None:
            return "whole trace"
        low, high = (edge - self.origin for edge in self.range)
        # As many digits as tell a tenth of it: 5 ms after a quarter of an hour end at another time.
        digits = moment_digits(np.array([low, low + max(1, (high - low) // 10), high]))
        words = f"{self.label or 'range'} {format_moment(low, digits)} .. {format_moment(high, digits)}"
        return words if self.work is None else f"{words} and the device work that it launched"


def _among(positions: I64, ascending: AnyArray) -> AnyArray:
    return places_in(ascending, positions) >= 0
