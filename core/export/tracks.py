"""Slices as tracks for other viewers, on which they follow each other or nest; and speedscope's format, which
has a profile for each track.

A lane in which slices overlap without nesting becomes several tracks. Times are those of whole slices, even
where a window cuts them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..base.arrays import I64, AnyArray, distinct
from ..base.safe_text import json_text, safe
from ..index.format import SliceFlag
from ..index.store import Index
from ..query.lookup import nearest_around, rows_of
from ..query.views import Lane
from ..tables.frame.scope import Scope
from ..tables.host.tree import slices_by_lane

MAIN = -1


@dataclass(frozen=True, eq=False)
class Track:
    """Slices of one lane that nest properly, in the order in which they begin, outer ones first."""

    lane: Lane
    number: int  # 0 for the lane's first track
    positions: I64
    starts: I64  # trace time, ns
    ends: I64

    @property
    def title(self) -> str:
        return self.lane.title if not self.number else f"{self.lane.title} ({self.number + 1})"


def tracks_of(scope: Scope) -> Iterator[Track]:
    """Yield the tracks of a scope lane by lane. Raises Cancelled."""
    for source, lane_number, pieces in slices_by_lane(scope, everything=True):
        index, lane = scope.trace.indexes[source], scope.trace.lanes[lane_number]
        positions = np.concatenate([piece.positions.astype(np.int64) for piece in pieces])
        starts = index.column("slices.start")[positions] + scope.clocks.offset(source, lane.pid)
        ends = starts + index.duration(positions)
        keys = _tracks(index, positions)
        overlaps = bool((index.column("flags.value") & SliceFlag.OVERLAP).any())
        number = 0
        for key in distinct(keys).tolist():
            rest = np.flatnonzero(keys == key)
            while len(rest):
                order = rest[np.lexsort((positions[rest], -ends[rest], starts[rest]))]
                fits = _nesting(starts[order], ends[order]) if overlaps else np.ones(len(order), np.bool_)
                some = order[fits]
                yield Track(lane, number, positions[some], starts[some], ends[some])
                number += 1
                rest = order[~fits]


def _tracks(index: Index, positions: I64) -> I64:
    """Return the number of each slice's track: MAIN, or the row of the overlapping slice that holds it (or is
    it).
    """
    flagged = index.column("flags.position")
    overlapping = flagged[(index.column("flags.value") & SliceFlag.OVERLAP) != 0].astype(np.int64)
    keys = np.full(len(positions), MAIN, np.int64)
    if not len(overlapping):
        return keys
    nearest = nearest_around(index, positions, overlapping, itself=True)
    inside = nearest >= 0
    keys[inside] = rows_of(index, nearest[inside])
    return keys


def _nesting(starts: I64, ends: I64) -> AnyArray:
    """Return which of these slices, outer ones first, nest in those before them; the others need a track of
    their own.
    """
    fits = np.ones(len(starts), np.bool_)
    open_: list[int] = []
    for at, (start, end) in enumerate(zip(starts.tolist(), ends.tolist())):
        while open_ and (open_[-1] < start or (open_[-1] == start and end > start)):
            open_.pop()
        if open_ and end > open_[-1]:
            fits[at] = False
        else:
            open_.append(end)
    return fits


def begin_and_end(track: Track) -> tuple[I64, AnyArray, I64]:
    """Return the begins and ends of a track's slices: (trace times in ns, whether one begins, its number in
    the track). A slice begins after all that began before it and the ends of those of them that are over:
    what follows a slice at its end is over it, unless it has no duration. Its end comes after all that lie in
    it: the slice that began last ends first.
    """
    starts, ends = track.starts, track.ends
    count = len(starts)
    numbers = np.arange(count)
    empty = starts == ends
    after = np.searchsorted(starts, ends)  # the first slice that does not lie in each
    first = np.minimum(after, count - 1)
    touches = empty | (empty[first] & (starts[first] == ends))
    after = np.where(touches, np.searchsorted(starts, ends, "right"), after)
    ended = np.cumsum(np.bincount(after, minlength=count + 1))[:count]  # slices over where one begins
    begin_at = numbers + ended
    end_at = begin_at + 2 * (after - numbers) - 1
    order = np.empty(2 * count, np.int64)
    order[begin_at], order[end_at] = numbers, numbers
    begins = np.zeros(2 * count, np.bool_)
    begins[begin_at] = True
    times = np.empty(2 * count, np.int64)
    times[begin_at], times[end_at] = starts, ends
    return times, begins, order


SCHEMA = "https://www.speedscope.app/file-format-schema.json"
PIECE = 1000
"""Events written together."""


def speedscope_pieces(scope: Scope, name: str) -> Iterator[str]:
    """Yield the JSON of a scope's slices for speedscope; times are ns since the scope's first slice."""
    tracks = list(tracks_of(scope))
    zero = min((int(track.starts[0]) for track in tracks), default=0)
    frames: dict[str, int] = {}
    yield f'{{"$schema":{json_text(SCHEMA)},"exporter":"tracelane",'
    yield f'"name":{json_text(safe(name))},"profiles":['
    for number, track in enumerate(tracks):
        scope.check()
        title = f"{track.lane.process.title} · {track.title}"
        last = int(track.ends.max()) - zero
        yield "," if number else ""
        yield f'{{"type":"evented","name":{json_text(title)},"unit":"nanoseconds",'
        yield f'"startValue":{int(track.starts[0]) - zero},"endValue":{last},"events":['
        yield from _events(scope, track, frames, zero)
        yield "]}"
    names = ",".join(f'{{"name":{json_text(safe(frame))}}}' for frame in frames)
    yield f'],"shared":{{"frames":[{names}]}}}}\n'


def _events(scope: Scope, track: Track, frames: dict[str, int], zero: int) -> Iterator[str]:
    index = scope.trace.indexes[track.lane.source]
    texts = index.strings(index.column("slices.name")[track.positions])
    numbers = [frames.setdefault(text, len(frames)) for text in texts]
    piece: list[str] = []
    separator = ""
    for time, begins, at in zip(*(one.tolist() for one in begin_and_end(track))):
        piece.append(f'{{"type":"{"O" if begins else "C"}","frame":{numbers[at]},"at":{time - zero}}}')
        if len(piece) == PIECE:
            yield separator + ",".join(piece)
            piece, separator = [], ","
    if piece:
        yield separator + ",".join(piece)
