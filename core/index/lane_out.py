"""One lane after the other to the columns: positions, rows, flags, and the lane's and rows' table entries."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..base.ids import NONE
from ..ingest.columns import I64, U32, AnyArray
from .columns_out import Columns, smallest_unsigned
from .contents import Instants, Slices
from .counters import Series
from .flows import LaneFlows, bind
from .format import COLUMNS, LANE, LONG, ROW, LaneKind, RowKind, SliceFlag
from .lanes import LaneEntry
from .rows import Rows, assign

# Arithmetic with the enum's members takes longer than the numpy call it is for.
_OVERLAP, _UNCLOSED, _CLAMPED = int(SliceFlag.OVERLAP), int(SliceFlag.UNCLOSED), int(SliceFlag.CLAMPED)
_PAIR = int(SliceFlag.PAIR)
_UNUSUAL = _UNCLOSED | _CLAMPED
PIECE = 1 << 16
"""Slices that are written at once."""
TAKEN = 1 << 18
"""Values that are taken over at once from another's columns."""
_POSITIONS = frozenset({"slices.parent", "long.position", "flags.position", "ends.position"})
"""Columns that hold positions of slices."""


class Bounds:
    """First and last time of what was seen so far."""

    def __init__(self) -> None:
        """Nothing was seen."""
        self.low: int | None = None
        self.high: int | None = None

    def take(self, low: int, high: int) -> None:
        """Widen to hold [low, high]."""
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)

    def take_other(self, other: Bounds) -> None:
        """Widen to hold what another has seen."""
        if other.low is not None and other.high is not None:
            self.take(other.low, other.high)

    def take_all(self, starts: I64, ends: I64) -> None:
        """Widen to hold all these, if any."""
        if len(starts):
            self.take(int(starts.min()), int(ends.max()))


@dataclass
class Written:
    """What lanes that have been written come to."""

    lanes: list[AnyArray] = field(default_factory=list)  # their entries of the lane table
    rows: list[AnyArray] = field(default_factory=list)  # pieces of the row table
    row_count: int = 0
    slices: int = 0
    instants: int = 0
    samples: int = 0
    unmatched_end: int = 0  # ends of threads' slices without a begin
    bounds: Bounds = field(default_factory=Bounds)  # over everything
    closed: Bounds = field(default_factory=Bounds)  # over slices but unclosed, async and clamped ones
    clamped: Bounds = field(default_factory=Bounds)  # over those whose time was clamped, as clamped

    def tables(self) -> tuple[AnyArray, AnyArray]:
        """Return the lane and row tables."""
        return _joined(self.lanes, LANE), _joined(self.rows, ROW)

    def take(self, other: Written) -> None:
        """Put what others come to behind."""
        for lane in other.lanes:
            lane["first_row"] += self.row_count
        before = {
            RowKind.SLICES: self.slices,
            RowKind.INSTANTS: self.instants,
            RowKind.SAMPLES: self.samples,
        }
        for rows in other.rows:
            rows["lane"] += len(self.lanes)
            rows["first"] += before[RowKind(int(rows["kind"][0]))]
        self.lanes += other.lanes
        self.rows += other.rows
        self.row_count += other.row_count
        self.slices += other.slices
        self.instants += other.instants
        self.samples += other.samples
        self.unmatched_end += other.unmatched_end
        for bounds, seen in zip(
            (self.bounds, self.closed, self.clamped), (other.bounds, other.closed, other.clamped)
        ):
            bounds.take_other(seen)


class LaneWriter:
    """Writes lanes in display order to columns, and keeps the books."""

    def __init__(self, columns: Columns, categories: int) -> None:
        """`categories`: how many there are."""
        self.written = Written()
        self.categories = categories
        self._columns = columns
        self._category = smallest_unsigned(categories - 1)

    def take(self, written: Written, columns: Columns) -> None:
        """Put lanes behind that another writer has written to columns of its own."""
        for name in columns.entries:
            values = columns.read(name)
            for at in range(0, len(values), TAKEN):
                some = values[at : at + TAKEN]
                if name in _POSITIONS:
                    some = np.where(some == NONE, some, some + np.uint32(self.written.slices))
                self._append(name, some)
        self.written.take(written)

    def _append(self, name: str, values: AnyArray) -> None:
        dtype = COLUMNS[name]
        self._columns.writer(name, self._category if "|" in dtype else dtype).append(values)

    def lane(
        self,
        entry: LaneEntry,
        process: int,
        tid: int,
        name: int,
        slices: Slices,
        instants: Instants,
        flows: LaneFlows | None = None,
    ) -> None:
        """Write a thread's or async lane; bind the flow events of its track."""
        lane = self._new_lane(entry, process, tid, name)
        if len(slices.start):
            rows = assign(slices.start, slices.duration)
            rank = _rank(rows.order, self.written.slices)
            if flows is not None:
                self._bind(slices, rows, rank, flows)
            self._slices(lane, slices, rows, rank, entry.kind)
        if len(instants.start):
            self._instants(lane, instants)
        self._keep(lane)

    def _bind(self, slices: Slices, rows: Rows, rank: U32, flows: LaneFlows) -> None:
        """Fill in the positions of the slices that flow events belong to."""
        for at in range(0, len(flows.bound), PIECE):
            few = slice(at, at + PIECE)
            events = {name: values[few] for name, values in flows.events.items()}
            flows.bound[few] = rank.take(bind(slices, rows.parent, events, flows.correlation), mode="wrap")

    def counter(self, entry: LaneEntry, process: int, tid: int, name: int, series: list[Series]) -> None:
        """Write a counter's lane, a row per series."""
        lane = self._new_lane(entry, process, tid, name)
        for depth, one in enumerate(series):
            self._append("samples.start", one.start)
            self._append("samples.value", one.value)
            self._append("samples.ordinal", one.ordinal)
            row = self._new_rows(lane, RowKind.SAMPLES, self.written.samples, 1)
            n = len(one.start)
            row["series"], row["count"], row["depth"] = one.series, n, depth
            row["start"], row["end"] = one.start[0], one.start[-1]
            self._cover(lane, int(one.start.min()), int(one.start.max()))
            lane["samples"] += n
            self.written.samples += n
        self._keep(lane)

    def _new_lane(self, entry: LaneEntry, process: int, tid: int, name: int) -> AnyArray:
        lane = np.zeros(1, LANE)
        lane["kind"], lane["process"], lane["tid"], lane["name"] = entry.kind, process, tid, name
        lane["ids"], lane["sort"], lane["first_row"] = entry.ids, entry.sort, self.written.row_count
        lane["start"], lane["end"] = np.iinfo(np.int64).max, np.iinfo(np.int64).min
        return lane

    def _new_rows(self, lane: AnyArray, kind: RowKind, first: int, number: int) -> AnyArray:
        rows = np.zeros(number, ROW)
        rows["lane"], rows["kind"], rows["first"] = len(self.written.lanes), kind, first
        self.written.rows.append(rows)
        self.written.row_count += number
        return rows

    def _keep(self, lane: AnyArray) -> None:
        lane["rows"] = self.written.row_count - lane["first_row"]
        self.written.lanes.append(lane)

    def _cover(self, lane: AnyArray, low: int, high: int) -> None:
        lane["start"] = min(int(lane["start"][0]), low)
        lane["end"] = max(int(lane["end"][0]), high)
        self.written.bounds.take(low, high)

    def _slices(self, lane: AnyArray, slices: Slices, rows: Rows, rank: U32, kind: LaneKind) -> None:
        order, first = rows.order, self.written.slices
        n = len(order)
        pieces = range(0, n, PIECE)
        ends = (slices.start[at : at + PIECE] + slices.duration[at : at + PIECE] for at in pieces)
        low, high = int(slices.start[0]), max(int(end.max()) for end in ends)
        self._cover(lane, low, high)
        self._count(lane, slices, rows, low, high, kind)
        for at in pieces:
            self._piece(slices, rows, order[at : at + PIECE], rank, first + at)
        if bool(slices.flags.any()) or bool(rows.overlap.any()):
            self._unusual(slices, rows, order, first)

        counts = np.bincount(rows.row)
        firsts = np.cumsum(counts) - counts
        table = self._new_rows(lane, RowKind.SLICES, first, len(counts))
        table["depth"] = np.arange(len(counts))
        table["first"] += firsts.astype(np.uint64)
        table["count"] = counts
        lasts = order[firsts + counts - 1]
        table["start"] = slices.start[order[firsts]]
        table["end"] = slices.start[lasts] + slices.duration[lasts]
        self.written.slices += n

    def _piece(self, slices: Slices, rows: Rows, order: AnyArray, rank: U32, first: int) -> None:
        """Write some slices of a lane, in the order of positions, from position `first` on."""
        order = order.astype(np.intp)
        duration, self_time = slices.duration.take(order), rows.self_time.take(order)
        self._append("slices.start", slices.start.take(order))
        self._append("slices.name", slices.name.take(order))
        self._append("slices.category", slices.category.take(order))
        self._append("slices.ordinal", slices.ordinal.take(order))
        self._append("slices.parent", rank.take(rows.parent.take(order), mode="wrap"))
        long = np.flatnonzero(duration >= LONG)  # self time is never longer
        if len(long):
            self._append("long.position", long + first)
            self._append("long.duration", duration[long])
            self._append("long.self", self_time[long])
            duration, self_time = np.minimum(duration, LONG), np.minimum(self_time, LONG)
        self._append("slices.duration", duration)
        self._append("slices.self", self_time)

    def _unusual(self, slices: Slices, rows: Rows, order: AnyArray, first: int) -> None:
        """Write what few slices of a lane have."""
        flags = slices.flags[order] | np.where(rows.overlap[order], _OVERLAP, 0).astype(np.uint8)
        some = np.flatnonzero(flags)
        self._append("flags.position", some + first)
        self._append("flags.value", flags[some])
        some = np.flatnonzero((flags & _PAIR) != 0)
        if len(some):
            self._append("ends.position", some + first)
            self._append("ends.ordinal", slices.end_ordinal[order[some]])

    def _count(self, lane: AnyArray, slices: Slices, rows: Rows, low: int, high: int, kind: LaneKind) -> None:
        """Count a lane's slices; unclosed ones neither count nor make others overlap."""
        closed = np.flatnonzero((slices.flags & _UNCLOSED) == 0)
        unclosed = len(slices.start) - len(closed)
        depth, overlapping = rows.depth, int(rows.overlap.sum())
        if unclosed and len(closed):
            without = assign(slices.start[closed], slices.duration[closed])
            depth, overlapping = without.depth, int(without.overlap.sum())
        elif unclosed:
            overlapping = 0
        lane["depth"], lane["overlapping"] = depth, overlapping
        lane["slices"], lane["unclosed"] = len(closed), unclosed
        if kind is LaneKind.THREAD and not slices.flags.any():
            self.written.closed.take(low, high)
        elif kind is LaneKind.THREAD:
            end = slices.start + slices.duration
            exact = (slices.flags & (_UNUSUAL)) == 0
            wide = (slices.flags & _CLAMPED) != 0
            self.written.closed.take_all(slices.start[exact], end[exact])
            self.written.clamped.take_all(slices.start[wide], end[wide])

    def _instants(self, lane: AnyArray, instants: Instants) -> None:
        n = len(instants.start)
        for name in ("start", "name", "category", "ordinal", "phase"):
            self._append(f"instants.{name}", getattr(instants, name))
        row = self._new_rows(lane, RowKind.INSTANTS, self.written.instants, 1)
        row["depth"], row["count"] = self.written.row_count - 1 - lane["first_row"], n
        row["start"], row["end"] = instants.start[0], instants.start[-1]
        lane["instants"] = n
        self._cover(lane, int(instants.start[0]), int(instants.start[-1]))
        self.written.instants += n


def _rank(order: AnyArray, first: int) -> U32:
    """Return the position of each slice of a lane from position `first` on; NONE at the end, for index -1."""
    n = len(order)
    rank = np.empty(n + 1, np.uint32)
    rank[order] = np.arange(first, first + n, dtype=np.uint32)
    rank[n] = NONE
    return rank


def _joined(pieces: list[AnyArray], dtype: np.dtype[np.void]) -> AnyArray:
    """Return table pieces as one; numpy would take longer to find that their dtypes agree."""
    return np.frombuffer(bytearray(b"".join([piece.tobytes() for piece in pieces])), dtype)
