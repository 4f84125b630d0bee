"""What of a source stands on another clock than the rest of it, and from when to when the rest lasts.

Distance tells nothing of what threads and devices do: a program may pause for hours. Told are

- *times since 1970 among others*, or others among these, whichever are fewer; and clamped times, which are
  known no more
- *work before its own launch* that ends before anything on the host begins. Where later work of the same
  process comes before its launches, too, its clock is only ahead, and what is seen of it stays. Of early work
  without a known launch it is told where the work that follows it has one, or where all of a process's work
  comes so early and the host has calls that start some.
- *counters and asynchronous spans far away*, which nothing launches: all of a lane lies more than a day, and
  far longer than both last, before or after all that threads and devices do; of instants and counters on
  threads each by itself
- *a time of 0*, which is none where all else comes ten minutes and far longer than it lasts afterwards
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..base.arrays import I64, U32, AnyArray, distinct
from ..base.cached_per_object import cached_per_object
from ..base.clock import EPOCHS
from ..base.units import TIME_LIMIT
from ..index.format import NONE, LaneKind, LaneRole, RowKind, SliceFlag
from ..index.producers import steps_lanes
from ..index.store import Index
from .lookup import processes_of, row_starts

if TYPE_CHECKING:
    from .launches import Launches

SPAN_CATEGORY = "Trace"
"""Category of the profiler's own whole-window spans, which set no span."""
ELSEWHERE, SINCE_1970, CLAMPED = range(3)
"""What a time counts from; a clamped one is not known."""
_OF_PIECES = (CLAMPED, ELSEWHERE, SINCE_1970, ELSEWHERE, CLAMPED)
"""The same of the pieces of a row, between the times of `_edges`."""
DAY, FAR_TIMES = 86_400 * 10**9, 100
"""Counters and asynchronous spans are far away from so many ns on, and so many times what lasts longer."""
ZERO_NS = 600 * 10**9
"""What stands at 0 has no time where all else, counted since a machine was started, begins so much later."""
SKEWED = 0.5
"""From this share of later work before its launch on, a clock is ahead."""


class OwnClock(NamedTuple):
    """What stands on the clock of most of a source."""

    span: tuple[int, int] | None  # (start, end), lane time in ns; None of an empty source
    weight: int  # how many slices, or what else there is
    others: U32  # the positions of the slices on another clock, ascending
    marks: int = 0  # how many samples and instants stand on another clock


class _Piece(NamedTuple):
    """Some of what lies in a row, one after another."""

    row: int
    kind: RowKind
    era: int
    low: int  # positions in the table of its kind
    high: int
    start: int
    end: int


@cached_per_object()
def own_clock(index: Index) -> OwnClock:
    """Return what stands on the clock of most of a source; computed once."""
    only_spans = _rows_of_spans(index)
    pieces = _as_one(_all_pieces(index))
    slices = [one for one in pieces if one.kind == RowKind.SLICES and one.row not in only_spans]
    marks = [one for one in pieces if one.kind != RowKind.SLICES]
    counts = np.zeros(3, np.int64)
    for one in slices or marks or pieces:
        counts[one.era] += one.high - one.low
    era = SINCE_1970 if counts[SINCE_1970] >= max(1, int(counts[ELSEWHERE])) else ELSEWHERE
    if not counts[era]:
        era = CLAMPED
    here = [one for one in pieces if one.era == era and one.row not in only_spans]
    near, far = _near_and_far(index, here)
    cut = set(here)
    pieces = [*(one for one in pieces if one not in cut), *near, *far]
    slices = [one for one in pieces if one.kind == RowKind.SLICES and one.row not in only_spans]
    marks = [one for one in pieces if one.kind != RowKind.SLICES]
    away = [one for one in slices if one.era != era or one in far]
    marks_away = sum(one.high - one.low for one in marks if one.era != era or one in far)
    own = [one for one in slices if one.era == era and one not in far]
    clamped = _clamped(index) if era != CLAMPED else np.empty(0, np.uint32)
    out = distinct(np.concatenate([_early(index, own), clamped]))
    others = distinct(np.concatenate([*(np.arange(one.low, one.high) for one in away), out]))
    near_marks = [one for one in marks if one.era == era and one not in far]
    within = [*_without(index, _not_derived(index, own), out), *((one.start, one.end) for one in near_marks)]
    if all(start == end == within[0][0] for start, end in within):
        within += [(one.start, one.end) for one in pieces if one.row in only_spans]
    span = (min(start for start, _ in within), max(end for _, end in within)) if within else None
    return OwnClock(span, int(counts[era]), others.astype(np.uint32), marks_away)


def span_of_clocks(sources: Iterable[tuple[OwnClock, int]]) -> tuple[int, int] | None:
    """Return from when to when several sources last under their clocks' offsets, None where all are empty:
    those whose times count from the same as most slices'.
    """
    weights, spans = [0, 0], []
    for own, offset in sources:
        if own.span is not None:
            start, end = own.span[0] + offset, own.span[1] + offset
            era = SINCE_1970 if EPOCHS[0] <= start < EPOCHS[1] else ELSEWHERE
            weights[era] += max(1, own.weight)
            spans.append((era, start, end))
    usual = SINCE_1970 if weights[SINCE_1970] >= weights[ELSEWHERE] else ELSEWHERE
    same = [(start, end) for era, start, end in spans if era == usual]
    return (min(start for start, _ in same), max(end for _, end in same)) if same else None


def end_of_lanes(index: Index, lanes: AnyArray) -> int:
    """Return the first ns, in lane time, after everything in these lanes of the lane table."""
    end = int(lanes["end"].max())
    for lane in lanes[lanes["end"] == end]:
        first = int(lane["first_row"])
        last = index.rows["end"][first : first + int(lane["rows"])] == end
        for number in (np.flatnonzero(last) + first).tolist():
            if int(index.rows[number]["count"]) and int(row_starts(index, number)[-1]) == end:
                return end + 1
    return end


def _rows_of_spans(index: Index) -> set[int]:
    """Return the rows that hold nothing but whole-window spans."""
    if SPAN_CATEGORY not in index.categories:
        return set()
    number, rows = index.categories.index(SPAN_CATEGORY), index.rows
    single = np.flatnonzero((rows["kind"] == RowKind.SLICES) & (rows["category_count"] == 1))
    kinds: AnyArray = index.column("row_categories")[rows["categories"][single].astype(np.int64)]
    return set(single[kinds == number].tolist())


def _not_derived(index: Index, pieces: Sequence[_Piece]) -> Sequence[_Piece]:
    """Return pieces without those of lanes that repeat or sum up others, all where there is nothing else;
    lanes of steps say how long the program ran.
    """
    is_derived = index.lanes["role"] == LaneRole.DERIVED
    if is_derived.any():
        is_derived[steps_lanes(index)] = False
    lanes = index.rows["lane"]
    return [one for one in pieces if not is_derived[lanes[one.row]]] or pieces


def _near_and_far(index: Index, pieces: Sequence[_Piece]) -> tuple[list[_Piece], set[_Piece]]:
    """Return pieces, cut where needed, by whether they lie near what threads and devices do: counters and
    asynchronous spans are far as a lane, marks on threads each by itself, what stands at 0 by that.
    """
    zeros, others = _at_zero(index, pieces)
    is_thread, lanes = (index.lanes["kind"] == LaneKind.THREAD).tolist(), index.rows["lane"].tolist()
    of_threads = [one for one in others if is_thread[lanes[one.row]]]
    slices = [one for one in others if one.kind == RowKind.SLICES]
    firm = [one for one in slices if is_thread[lanes[one.row]]] or slices or of_threads or others
    if not firm:
        return list(pieces), set()
    low, high = min(one.start for one in firm), max(one.end for one in firm)
    last = high - low
    near: list[_Piece] = []
    far: set[_Piece] = set()
    if zeros and max(one.end for one in zeros) < low - max(ZERO_NS, FAR_TIMES * last):
        far.update(zeros)
    else:
        near += zeros
    of_lanes: dict[int, list[_Piece]] = {}
    reach = low - max(DAY, FAR_TIMES * last), high + max(DAY, FAR_TIMES * last)
    for one in others:
        if not is_thread[lanes[one.row]]:
            of_lanes.setdefault(lanes[one.row], []).append(one)
        elif one.kind != RowKind.SLICES and (one.start < reach[0] or one.end > reach[1]):
            before, within, after = _cut(index, one, (reach[0], reach[1] + 1))
            near += within
            far.update([*before, *after])
        else:
            near.append(one)
    for own in of_lanes.values():
        start, end = min(one.start for one in own), max(one.end for one in own)
        least = max(DAY, FAR_TIMES * max(last, end - start))
        if is_thread[lanes[firm[0].row]] and (end < low - least or start > high + least):
            far.update(own)
        else:
            near += own
    return near, far


def _at_zero(index: Index, pieces: Sequence[_Piece]) -> tuple[list[_Piece], list[_Piece]]:
    """Return what of pieces stands at 0 of the file, and the rest; work of devices is judged by itself."""
    zero = -index.origin_ns
    is_device = (index.lanes["role"][index.rows["lane"]] == LaneRole.DEVICE).tolist()
    zeros: list[_Piece] = []
    others: list[_Piece] = []
    for one in pieces:
        if one.start != zero or (one.kind == RowKind.SLICES and is_device[one.row]):
            others.append(one)
            continue
        _, at_zero, rest = _cut(index, one, (zero, zero + 1))
        zeros += at_zero
        others += rest
    return zeros, others


def _cut(index: Index, piece: _Piece, times: tuple[int, int]) -> tuple[list[_Piece], ...]:
    """Return what of a piece begins before two times, from the first to before the second, and later."""
    first = int(index.rows["first"][piece.row])
    starts = row_starts(index, piece.row)[piece.low - first : piece.high - first]
    cuts = [0, *np.searchsorted(starts, times).tolist(), len(starts)]
    return tuple(
        [_part(index, piece, starts, low, high)] if low < high else [] for low, high in pairwise(cuts)
    )


def _part(index: Index, piece: _Piece, starts: I64, low: int, high: int) -> _Piece:
    """Return some of a piece, by numbers of what begins at `starts`."""
    end = int(starts[high - 1])
    if piece.kind == RowKind.SLICES:
        end += int(index.duration([piece.low + high - 1])[0])
    return piece._replace(low=piece.low + low, high=piece.low + high, start=int(starts[low]), end=end)


def _edges(index: Index) -> I64:
    """Return the times at which what times count from changes, lane time."""
    edges = [1 - TIME_LIMIT, *(edge - index.origin_ns for edge in EPOCHS), TIME_LIMIT]
    return np.array([min(max(edge, 1 - TIME_LIMIT), TIME_LIMIT) for edge in edges], np.int64)


def _all_pieces(index: Index) -> list[_Piece]:
    """Return all rows, cut where what their times count from changes."""
    edges, rows = _edges(index), index.rows
    filled = np.flatnonzero(rows["count"])
    first, last = (np.searchsorted(edges, rows[name][filled], "right") for name in ("start", "end"))
    columns = (rows[name][filled].tolist() for name in ("kind", "first", "count", "start", "end"))
    pieces = []
    for row, era, until, kind, begin, count, start, end in zip(
        filled.tolist(), first.tolist(), last.tolist(), *columns
    ):
        if era == until:
            pieces.append(_Piece(row, RowKind(kind), _OF_PIECES[era], begin, begin + count, start, end))
        else:
            pieces += _pieces(index, row, edges)
    return pieces


def _clamped(index: Index) -> U32:
    """Return the positions of the slices whose times are not known, as they were too large to keep."""
    flags = index.column("flags.value") & SliceFlag.CLAMPED > 0
    return np.asarray(index.column("flags.position")[flags], np.uint32)


def _pieces(index: Index, row: int, edges: I64) -> list[_Piece]:
    """Return a row cut where what its times count from changes."""
    table = index.rows[row]
    kind, first, count = RowKind(int(table["kind"])), int(table["first"]), int(table["count"])
    starts = row_starts(index, row)
    cuts = [0, *np.searchsorted(starts, edges).tolist(), count]
    pieces = []
    for era, low, high in zip(_OF_PIECES, cuts, cuts[1:]):
        if low < high:
            end = int(starts[high - 1])
            if kind == RowKind.SLICES:
                end += int(index.duration([first + high - 1])[0])
            pieces.append(_Piece(row, kind, era, first + low, first + high, int(starts[low]), end))
    return pieces


def _as_one(pieces: list[_Piece]) -> list[_Piece]:
    """Return pieces whose times since 1970 are as all others, where most are before 1970, as times since a
    start are not: a made trace over all of time has one clock.
    """
    before = sum(one.high - one.low for one in pieces if one.era == ELSEWHERE and one.start < 0)
    since = sum(one.high - one.low for one in pieces if one.era == SINCE_1970)
    if before <= since:
        return pieces
    return [one._replace(era=ELSEWHERE) if one.era == SINCE_1970 else one for one in pieces]


def _early(index: Index, own: Sequence[_Piece]) -> U32:
    """Return the positions of device work on another clock among what ends before anything on the host."""
    is_device = index.lanes["role"][index.rows["lane"]] == LaneRole.DEVICE
    begins = min((one.start for one in own if not is_device[one.row]), default=None)
    if begins is None:
        return np.zeros(0, np.uint32)
    parts = []
    for one in own:
        if is_device[one.row] and one.start < begins:
            at = one.low + int(np.searchsorted(index.column("slices.start")[one.low : one.high], begins))
            last = int(index.column("slices.start")[at - 1]) + int(index.duration([at - 1])[0])
            parts.append(np.arange(one.low, at - (last >= begins), dtype=np.uint32))
    if not any(map(len, parts)):
        return np.zeros(0, np.uint32)
    early = np.sort(np.concatenate(parts))
    from .launches import launches_of  # hardly any trace has such work

    work = launches_of(index)
    process = processes_of(index, early)
    groups = [early[process == number] for number in distinct(process).tolist()]
    return np.concatenate([_judged(index, group, work) for group in groups])


def _judged(index: Index, early: U32, launches: Launches) -> U32:
    """Return which slices of one process, all before the host begins, stand on another clock."""
    from .lost import starting_calls  # hardly any trace has such work

    none = np.zeros(0, np.uint32)
    own = processes_of(index, launches.kernels) == processes_of(index, early[:1])[0]
    kernels, launch = launches.kernels[own], launches.launch[own]
    starts = index.column("slices.start")[kernels].astype(np.int64)
    is_known = launch != NONE
    begun = index.column("slices.start")[np.where(is_known, launch, 0)].astype(np.int64)
    is_early, before = np.isin(kernels, early), is_known & (starts < begun)
    later = ~is_early
    if np.count_nonzero(before & later) > SKEWED * np.count_nonzero(is_known & later):
        return none
    linked = kernels[is_early & before]
    if later.any():
        rest = np.flatnonzero(later)
        if is_known[rest[np.argmin(starts[rest])]]:
            return early
        return np.asarray(linked, np.uint32)
    is_clear = len(linked) or len(starting_calls(index, launches))
    return early if is_clear else none


def _without(index: Index, pieces: Sequence[_Piece], positions: AnyArray) -> list[tuple[int, int]]:
    """Return (start, end) of what is left of pieces without some slices."""
    spans = []
    for one in pieces:
        low, high = np.searchsorted(positions, (one.low, one.high)).tolist()
        if low == high:
            spans.append((one.start, one.end))
            continue
        is_left = np.ones(one.high - one.low, np.bool_)
        is_left[positions[low:high] - one.low] = False
        left = one.low + np.flatnonzero(is_left)
        if len(left):
            last = int(left[-1])
            end = int(index.column("slices.start")[last]) + int(index.duration([last])[0])
            spans.append((int(index.column("slices.start")[left[0]]), end))
    return spans
