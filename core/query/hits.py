"""The slices that a filter matches: from columns at once, by arguments while the source is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..base.arrays import I64, U32, AnyArray, sum_of
from ..base.kineto import ANNOTATIONS, DEVICE_ANNOTATION, KERNEL_CATEGORIES
from ..base.units import count_of, format_ns
from ..index.format import RowKind
from ..index.store import Index
from .cells import clipped_edges
from .filter import Filter
from .lookup import category_mask, starts_of
from .search import CHUNK
from .views import Lane


class Hit(NamedTuple):
    """One slice that matches, and its number among all of them in time order, from 1."""

    source: int
    position: int
    rank: int


@dataclass(frozen=True, eq=False)
class Hits:
    """The slices that match a filter: positions by source, ascending, and their total duration in ns."""

    filter: Filter
    indexes: tuple[Index, ...]
    positions: tuple[U32, ...]
    offsets: tuple[I64, ...]  # per source and lane number: lane time + offset = trace time
    count: int
    total_ns: int
    of: int  # slices of the trace
    remark: str = ""  # what could not be searched, and why

    def within(self, other: Hits) -> Hits:
        """Return the hits that another search of the same trace has too."""
        pairs = zip(self.positions, other.positions, strict=True)
        both = tuple(np.intersect1d(own, theirs, assume_unique=True) for own, theirs in pairs)
        total = sum_of(sum_of(index.duration(own)) for index, own in zip(self.indexes, both))
        return replace(self, positions=both, count=sum(map(len, both)), total_ns=total)

    @cached_property
    def summed(self) -> str:
        """How many there are and how long they take. Annotations are counted only: where they stand over work
        that matches too, its time would count twice.
        """
        kernels = annotations = ns = 0
        for index, own in zip(self.indexes, self.positions):
            categories = index.column("slices.category")[own]
            around = category_mask(index, ANNOTATIONS)[categories]
            around |= category_mask(index, {DEVICE_ANNOTATION})[categories]
            kernels += int(category_mask(index, KERNEL_CATEGORIES)[categories].sum())
            annotations += int(around.sum())
            ns += sum_of(index.duration(own[~around]))
        others = self.count - annotations
        if annotations and not others:
            return f"{count_of(annotations, 'annotation')}, {format_ns(self.total_ns)}"
        said = f"{count_of(others, 'kernel' if others and others == kernels else 'slice')}, {format_ns(ns)}"
        return f"{said}; {count_of(annotations, 'annotation')}" if annotations else said

    def covers(self, source: int) -> bool:
        """Tell whether a source was searched: what was laid over the trace afterwards has no slices."""
        return source < len(self.indexes)

    def in_row(self, source: int, row_number: int) -> I64:
        """Return the indices within a row of the slices that match, ascending."""
        row, positions = self.indexes[source].rows[row_number], self.positions[source]
        first, count = int(row["first"]), int(row["count"])
        if int(row["kind"]) != RowKind.SLICES or not len(positions):
            return np.empty(0, np.int64)
        low, high = np.searchsorted(positions, np.array([first, first + count], np.uint32))
        return positions[low:high].astype(np.int64) - first

    def depths(self, lane: Lane) -> list[int]:
        """Return the depths of a lane's rows that hold a hit, or no slices at all."""
        rows = self.indexes[lane.source].rows[lane.rows.start : lane.rows.stop]
        positions, first = self.positions[lane.source], rows["first"].astype(np.int64)
        edges = np.stack((first, first + rows["count"])).astype(positions.dtype)
        low, high = np.searchsorted(positions, edges)
        depths: list[int] = np.flatnonzero((high > low) | (rows["kind"] != RowKind.SLICES)).tolist()
        return depths

    def neighbour(self, source: int, row_number: int, index_in_row: int, direction: int) -> int | None:
        """Return the index within a row of the first hit after an index in it (direction +1), or of the last
        before it (-1); None where there is none.
        """
        indices = self.in_row(source, row_number)
        at = int(np.searchsorted(indices, index_in_row, "right" if direction > 0 else "left"))
        at -= int(direction < 0)
        return int(indices[at]) if 0 <= at < len(indices) else None

    def nearest(self, source: int, row_number: int, time: int) -> int | None:
        """Return the index within a row of the hit that covers a trace time or is nearest to it."""
        indices = self.in_row(source, row_number)
        if not len(indices):
            return None
        index = self.indexes[source]
        positions = int(index.rows[row_number]["first"]) + indices
        starts = index.column("slices.start")[positions]
        time -= int(self.offsets[source][index.rows[row_number]["lane"]])
        at = int(np.searchsorted(starts, time, "right"))
        near = range(max(0, at - 1), min(len(indices), at + 1))
        away = {i: max(int(starts[i]) - time, time - index.end(int(positions[i]))) for i in near}
        return int(indices[min(near, key=away.__getitem__)])

    def where(self, index: Index, positions: I64) -> AnyArray:
        """Tell which of an index's positions match, as booleans."""
        own = self.positions[self.indexes.index(index)]
        if not len(own):
            return np.zeros(len(positions), bool)
        at = np.searchsorted(own, np.asarray(positions).astype(np.uint32))
        at[at == len(own)] = 0
        matching: AnyArray = own[at] == positions
        return matching

    def next(self, time: int, source: int = -1, position: int = -1) -> Hit | None:
        """Return the first hit after a slice in the order of (start in trace time, source, position).

        Without source and position: the first that starts at the time or later.
        """
        return self._nearest(time, source, position, 1)

    def previous(self, time: int, source: int = -1, position: int = -1) -> Hit | None:
        """Return the last hit before a slice in the order of (start in trace time, source, position)."""
        return self._nearest(time, source, position, -1)

    def _nearest(self, time: int, source: int, position: int, direction: int) -> Hit | None:
        # From (time 50, file 1, slice 7) on: what starts at 50 in file 0 stands before it, in file 2 behind
        # it, and in file 1 that depends on the slice. So each hit has one neighbour on either side, and going
        # on from it never comes back, however many start together. All that stand before are counted on the
        # way: they give the hit its number.
        best: tuple[int, int, int] | None = None
        before = 0
        for number in range(len(self.indexes)):
            for positions, starts in self.starts(number):
                earlier, same = starts < time, starts == time
                if number == source:
                    earlier |= same & (positions < position)
                    same &= positions == position
                elif number < source:
                    earlier |= same
                    same = np.zeros_like(same)
                else:
                    same = np.zeros_like(same)
                later = ~earlier & ~same
                before += int(np.count_nonzero(earlier))
                side = np.flatnonzero(later if direction > 0 else earlier)
                if not len(side):
                    continue
                times = starts[side]
                edge = times.min() if direction > 0 else times.max()
                ties = side[times == edge]
                at = ties[0] if direction > 0 else ties[-1]
                key = int(edge), number, int(positions[at])
                if best is None or (key < best if direction > 0 else key > best):
                    best = key
        if best is None:
            return None
        here = 0
        if direction > 0 and source >= 0:
            here = int(np.count_nonzero(self.positions[source] == np.uint32(max(0, position))))
        return Hit(best[1], best[2], before + here + 1 if direction > 0 else before)

    def starts(self, source: int) -> list[tuple[I64, I64]]:
        """Return (positions, starts in trace time) of a source's hits in chunks."""
        index, own = self.indexes[source], self.positions[source]
        chunks = []
        for low in range(0, len(own), CHUNK):
            part = own[low : low + CHUNK].astype(np.int64)
            chunks.append((part, starts_of(index, part, self.offsets[source])))
        return chunks

    def cells(self, edges: Sequence[int] | I64) -> I64:
        """Return how many hits touch each cell between trace-time edges."""
        bounds = clipped_edges(edges)
        width = len(bounds) - 1
        change = np.zeros(width + 1, np.int64)
        for source, index in enumerate(self.indexes):
            for positions, starts in self.starts(source):
                ends = np.maximum(starts, starts + index.duration(positions) - 1)
                inside = (ends >= bounds[0]) & (starts < bounds[-1])
                low = np.searchsorted(bounds, starts[inside], "right") - 1
                high = np.searchsorted(bounds, ends[inside], "right")
                change += np.bincount(np.maximum(low, 0), minlength=width + 1)[: width + 1]
                change -= np.bincount(np.minimum(high, width), minlength=width + 1)[: width + 1]
        return np.cumsum(change)[:width]
