"""The slice at a time, before or after it, and around or beneath another, by binary searches in one row;
lists of slices.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

import numpy as np

from ..base.arrays import I64, U32, AnyArray, distinct, places_in
from ..base.cached_per_object import cached_per_object
from ..base.clock import Clocks
from ..index.format import BLOCK, NONE, LaneKind, RowKind
from ..index.pyramid import blocks_of
from ..index.store import Index
from .views import SliceId

MAX_SEARCH_DEPTH = 64
"""The most rows in which a child is looked for that an overlap has moved to a deeper row."""
CHILD_CHUNK = 1 << 20
MANY = 16
"""Where one in so many positions is asked for, a table of all in between is faster than a search for each."""

_STARTS = {kind: f"{kind.name.lower()}.start" for kind in RowKind}


def row_starts(index: Index, row_number: int) -> AnyArray:
    """Return the starts of what lies in a row of any kind, ascending, lane time in ns."""
    row = index.rows[row_number]
    begin, count = int(row["first"]), int(row["count"])
    return index.column(_STARTS[RowKind(int(row["kind"]))])[begin : begin + count]


@cached_per_object(4)
def names_with_prefix(index: Index, prefix: str) -> U32:
    """Return the numbers of the names that begin so, ascending. Steps, modules and autograd's are known by
    that, and several analyses ask for each.
    """
    return np.array(index.string_numbers(prefix, prefix=True), np.uint32)


def totals_of_rows(rows: AnyArray) -> I64:
    """Return where in `category_sums` the totals of rows of slices begin, one for each category of the row;
    only of rows that have sums (`sums` is not NO_SUMS).
    """
    blocks = blocks_of(rows["count"].astype(np.int64), BLOCK)
    totals: I64 = rows["sums"].astype(np.int64) + blocks * rows["category_count"].astype(np.int64)
    return totals


def started_by(index: Index, row_number: int, time: int) -> int:
    """Return how many things of the row start at or before a time."""
    limit = (1 << 63) - 1
    return int(
        np.searchsorted(row_starts(index, row_number), np.int64(max(-limit, min(limit, time))), "right")
    )


def slice_at(index: Index, row_number: int, time: int) -> int | None:
    """Return the index within the row of the slice that covers a lane time, or stands right at it."""
    at = started_by(index, row_number, time) - 1
    if at < 0:
        return None
    position = int(index.rows[row_number]["first"]) + at
    start = index.start(position)
    if start == time or start + int(index.duration([position])[0]) > time:
        return at
    return None


def next_after(index: Index, row_number: int, time: int) -> int | None:
    """Return the index within the row of the first thing that starts after a lane time."""
    at = started_by(index, row_number, time)
    return at if at < int(index.rows[row_number]["count"]) else None


def previous_before(index: Index, row_number: int, time: int) -> int | None:
    """Return the index within the row of the last thing that starts before a lane time."""
    at = started_by(index, row_number, time - 1) - 1
    return at if at >= 0 else None


def nearest(index: Index, row_number: int, time: int) -> int | None:
    """Return the index within the row of what covers a lane time or else lies closest to it."""
    count = int(index.rows[row_number]["count"])
    if not count:
        return None
    after = started_by(index, row_number, time)
    if after == 0:
        return 0
    begin = int(index.rows[row_number]["first"])
    starts = row_starts(index, row_number)
    end = int(starts[after - 1])
    if int(index.rows[row_number]["kind"]) == RowKind.SLICES:
        end += int(index.duration([begin + after - 1])[0])
    if after == count or end >= time or time - end <= int(starts[after]) - time:
        return after - 1
    return after


def positions_within(index: Index, row: int, low: int, high: int) -> tuple[int, int]:
    """Return the positions [begin, end) of what lies in a row in [low, high), lane time, or reaches into it.

    A slice of no length counts where it stands; one that ends where the range begins does not.
    """
    entry, starts = index.rows[row], row_starts(index, row)
    first = int(entry["first"])
    bounds = np.clip(np.array([low, max(low, high)], object), -(2**63), 2**63 - 1).astype(np.int64)
    begin, end = (first + int(at) for at in np.searchsorted(starts, bounds))
    is_before = begin > first and high > low and int(entry["kind"]) == RowKind.SLICES
    if is_before and index.end(begin - 1) > low:
        begin -= 1
    return begin, end


def locate_slice(index: Index, position: int) -> tuple[int, int]:
    """Return (row number, index within the row) of the slice at a position."""
    row_number = index.row_of(position)
    return row_number, position - int(index.rows[row_number]["first"])


def rows_of(index: Index, positions: AnyArray, kind: RowKind = RowKind.SLICES) -> I64:
    """Return the row of each slice (instant, sample) by position."""
    return _by_row(index, positions, kind, _rows_in_order(index, kind)[0])


def _by_row(index: Index, positions: AnyArray, kind: RowKind, values: I64) -> I64:
    """Return for each slice (instant, sample) the value of its row, of those of `_rows_in_order`."""
    firsts = _rows_in_order(index, kind)[1]
    if bool((positions[1:] >= positions[:-1]).all()):
        # Many in order: where each row begins among them, instead of a search for each.
        return np.repeat(values, np.diff(np.searchsorted(positions, firsts), append=len(positions)))
    return np.asarray(values[np.searchsorted(firsts, positions, "right") - 1])


@cached_per_object(3)
def _rows_in_order(index: Index, kind: RowKind) -> tuple[I64, I64]:
    """Return the rows of a kind that hold something, and the first position of each, ascending."""
    rows = np.flatnonzero((index.rows["kind"] == kind) & (index.rows["count"] > 0))
    rows = rows[np.argsort(index.rows["first"][rows], kind="stable")]
    return rows, index.rows["first"][rows].astype(np.int64)


def lanes_of(index: Index, positions: AnyArray, kind: RowKind = RowKind.SLICES) -> I64:
    """Return the number of the lane of each slice (instant, sample) by position."""
    rows = _rows_in_order(index, kind)[0]
    return _by_row(index, positions, kind, index.rows["lane"][rows].astype(np.int64))


def depths_of_slices(index: Index, positions: AnyArray) -> I64:
    """Return the depth in its lane of the row of each slice; what lies around a slice lies in a row above."""
    rows = _rows_in_order(index, RowKind.SLICES)[0]
    return _by_row(index, positions, RowKind.SLICES, index.rows["depth"][rows].astype(np.int64))


def processes_of(index: Index, positions: AnyArray) -> I64:
    return np.asarray(index.lanes["process"][lanes_of(index, positions)], np.int64)


def lane_offsets(index: Index, source: int, clocks: Clocks) -> I64:
    """Return the offset of each lane of a source, in ns: lane time + offset = trace time."""
    if not clocks.offsets:
        return np.zeros(len(index.lanes), np.int64)
    pids = index.strings(index.processes["pid"])
    of_process = np.array([clocks.offset(source, pid) for pid in pids], np.int64)
    of_lane: I64 = of_process[index.lanes["process"]]
    return of_lane


def starts_of(index: Index, positions: AnyArray, offsets: I64) -> I64:
    """Return the starts of slices in trace time, given the offset of each lane."""
    starts: I64 = index.column("slices.start")[positions].astype(np.int64)
    return starts + offsets[lanes_of(index, positions)] if offsets.any() else starts


def category_of_slice(index: Index, position: int) -> str:
    return index.categories[int(index.column("slices.category")[position])]


def category_mask(index: Index, categories: Container[str]) -> AnyArray:
    """Return for each category number whether its name is one of these."""
    return np.array([category in categories for category in index.categories], np.bool_)


def promoted_of(
    index: Index, key: str, positions: AnyArray, missing: float = 0, of: str = "position"
) -> AnyArray:
    """Return a promoted number (or string number) of each slice, `missing` where it has none; with `of`
    "instant" that of instants.
    """
    holders = index.column(f"promoted.{key}.{of}")
    values = index.column(f"promoted.{key}.{'value' if of == 'position' else of + '_value'}")
    dtype = np.result_type(values.dtype, np.int64, type(missing))
    if not len(holders) or not len(positions):
        return np.full(len(positions), missing, dtype)
    keys = positions.astype(holders.dtype, copy=False)
    low = int(np.searchsorted(holders, keys[0]))
    if np.array_equal(holders[low : low + len(keys)], keys):
        return values[low : low + len(keys)].astype(dtype)
    first, last = keys.min(), keys.max()
    size = int(last) - int(first) + 1
    if len(keys) <= size // MANY:
        at = places_in(holders, keys)
        numbers: AnyArray = np.full(len(keys), missing, dtype)
        numbers[at >= 0] = values[at[at >= 0]]
        return numbers
    # Of each position from the first to the last the number of its holder, from 1 on; 0 has none.
    low, high = np.searchsorted(holders, first), np.searchsorted(holders, last, "right")
    table = np.zeros(size, np.uint32)
    table[holders[low:high] - first] = np.arange(1, high - low + 1, dtype=np.uint32)
    of_holders = np.full(high - low + 1, missing, dtype)
    of_holders[1:] = values[low:high]
    numbers = of_holders[table[keys - first]]
    return numbers


def op_names(index: Index, positions: AnyArray, names: AnyArray) -> AnyArray:
    """Return the string numbers of what slices of these names are called as operators: of nodes of a model
    the type that an argument says, of all others the name.
    """
    if not index.length("promoted.op_name.position"):
        return names
    types = promoted_of(index, "op_name", positions, -1)
    return np.where(types >= 0, types, names).astype(names.dtype)


def ancestors(index: Index, position: int, limit: int = 1 << 17) -> list[int]:
    """Return the positions of the slices around one, innermost first."""
    positions: list[int] = []
    parent = index.parent(position)
    while parent is not None and len(positions) < limit:
        positions.append(parent)
        parent = index.parent(parent)
    return positions


def nearest_around(index: Index, positions: AnyArray, members: I64, *, itself: bool = False) -> I64:
    """Return for each position its nearest ancestor among the members, -1 where there is none.

    With `itself` a position that is a member is its own.
    """
    above = index.column("slices.parent")
    if not len(members) or not len(positions):
        return np.full(len(positions), -1, np.int64)
    none = len(above)
    is_end = np.zeros(none + 1, np.bool_)  # only the memory that is looked at is used
    is_end[members] = is_end[none] = True
    around = np.minimum(positions if itself else above[positions], none).astype(np.int64)
    todo = np.flatnonzero(~is_end[around])
    current = around[todo]
    while len(todo):
        current = np.minimum(above[current], none)
        ended = is_end[current]
        around[todo[ended]] = current[ended]
        todo, current = todo[~ended], current[~ended]
    return np.where(around == none, -1, around)


def rows_around(index: Index, positions: AnyArray) -> I64:
    """Return for each of some slices the row of the nearest of them around it, -1 for none."""
    begin, end = (int(positions[0]), int(positions[-1]) + 1) if len(positions) else (0, 0)
    if end - begin == len(positions) and bool((positions[1:] > positions[:-1]).all()):
        # All slices of a range: what is around one of them stands before it, in the range or ahead of it.
        above = index.column("slices.parent")[begin:end].astype(np.int64)
        above[above == NONE] = -1
        return np.maximum(above - begin, -1)
    return rows_at(index, positions, nearest_around(index, positions, positions.astype(np.int64)))


def rows_at(index: Index, positions: AnyArray, others: AnyArray) -> I64:
    """Return for each of some positions (or -1) its row among the first ones, -1 for what is not there."""
    numbers = np.zeros(index.length("slices.parent") + 1, np.uint32)  # from 1; 0 for what is not there
    numbers[positions] = np.arange(1, len(positions) + 1, dtype=np.uint32)
    return numbers[others].astype(np.int64) - 1


def with_ancestors(index: Index, positions: I64) -> I64:
    """Return positions with those of all slices around them, ascending."""
    parents = index.column("slices.parent")
    members = [positions]
    current = positions
    while len(current):
        above = parents[current].astype(np.int64)
        current = distinct(above[above != NONE])
        members.append(current)
    return distinct(np.concatenate(members))


def rows_of_children(index: Index, row_number: int) -> range:
    """Return the rows in which children of this row's slices lie: one, unless slices of the lane overlap."""
    lane = index.lanes[int(index.rows[row_number]["lane"])]
    last = int(lane["first_row"]) + int(lane["rows"])
    if int(lane["overlapping"]) == 0 and int(lane["kind"]) == LaneKind.THREAD:
        last = min(last, row_number + 2)
    return range(row_number + 1, last)


def rows_beneath(index: Index, row_number: int) -> range:
    """Return the rows in which children of this row's slices are looked for, MAX_SEARCH_DEPTH at most."""
    last = min(rows_of_children(index, row_number).stop, row_number + 1 + MAX_SEARCH_DEPTH)
    while last > row_number + 1 and int(index.rows[last - 1]["kind"]) != RowKind.SLICES:
        last -= 1
    return range(row_number + 1, last)


def child_at(index: Index, position: int, time: int) -> int | None:
    """Return the position of the direct child that covers a lane time, else of the child nearest to it."""
    row_number = index.row_of(position)
    best: tuple[int, int] | None = None
    low, high = index.start(position), index.end(position)
    for beneath in rows_beneath(index, row_number):
        begin = int(index.rows[beneath]["first"])
        around = nearest(index, beneath, max(low, min(high, time)))
        if around is None:
            continue
        last = int(index.rows[beneath]["count"]) - 1
        for at in (around, max(0, around - 1), min(last, around + 1)):
            if index.parent(begin + at) != position:
                continue
            start, end = index.start(begin + at), index.end(begin + at)
            away = 0 if start <= time < end else min(abs(start - time), abs(end - time))
            if best is None or away < best[0]:
                best = (away, begin + at)
        if best is not None and best[0] == 0:
            break
    if best is None:
        first = children(index, position, limit=1)
        return first[0] if first else None
    return best[1]


def children(index: Index, position: int, limit: int | None = None) -> list[int]:
    """Return the positions of the direct children in time order, at most `limit`."""
    positions: list[int] = []
    for some in _children(index, position):
        positions += some.tolist()
        if limit is not None and len(positions) >= limit:
            return positions[:limit]
    return sorted(positions, key=index.start)


def count_children(index: Index, position: int) -> int:
    """Return how many slices have this one as their parent."""
    return sum(map(len, _children(index, position)))


def _children(index: Index, position: int) -> Iterator[I64]:
    """Yield the positions of the direct children, some at a time."""
    for begin, end in _child_ranges(index, position):
        for low in range(begin, end, CHILD_CHUNK):
            parents = index.column("slices.parent")[low : min(end, low + CHILD_CHUNK)]
            yield low + np.flatnonzero(parents == np.uint32(position))


def _child_ranges(index: Index, position: int) -> list[tuple[int, int]]:
    """Return the position ranges, one per row beneath, inside which all children lie."""
    start, end = index.start(position), index.end(position)
    ranges = []
    for beneath in rows_beneath(index, index.row_of(position)):
        row = index.rows[beneath]
        if not int(row["count"]) or int(row["end"]) < start or int(row["start"]) > end:
            continue
        starts = row_starts(index, beneath)
        low, high = np.searchsorted(starts, np.array([start, end + 1], np.int64))
        if high > low:
            ranges.append((int(row["first"]) + int(low), int(row["first"]) + int(high)))
    return ranges


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
