"""Which slices a filter matches: names on the string table first, then masks over columns in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.clock import Clocks
from ..base.errors import Cancelled
from ..base.progress import CancelledCallback, never
from ..index.format import RowKind
from ..index.store import Index
from ..ingest.columns import I64, U32, AnyArray
from ..ingest.lifted import LIFTED, Kind
from .cells import clipped_edges
from .filter import Argument, Category, Filter, LaneTitle, Name, Number, Text, Time
from .scan import holds, scan_argument

if TYPE_CHECKING:
    from ..trace import Trace

CHUNK = 1 << 20
"""Slices looked at together: bounds the temporaries."""
STRINGS = 4096
"""Strings looked at together: of most, one search in their joined text tells that none fits."""
NO_CLOCKS = Clocks()


@dataclass(frozen=True)
class Hit:
    """One slice that matches, and its place among all of them in time order, from 1."""

    source: int
    position: int
    rank: int


@dataclass(frozen=True, eq=False)
class Hits:
    """The slices that match a filter: per source their positions, ascending; what they take together."""

    filter: Filter
    indexes: tuple[Index, ...]
    positions: tuple[U32, ...]
    offsets: tuple[I64, ...]  # per source and row number: lane time + offset = trace time
    count: int
    total_ns: int
    of: int  # slices that were looked at

    def within(self, other: Hits) -> Hits:
        """Return those of these hits that another search of the same trace has too."""
        pairs = zip(self.positions, other.positions, strict=True)
        both = tuple(np.intersect1d(own, theirs, assume_unique=True) for own, theirs in pairs)
        total = sum(int(index.duration(own).sum()) for index, own in zip(self.indexes, both))
        return replace(self, positions=both, count=sum(map(len, both)), total_ns=total)

    def in_row(self, source: int, row_number: int) -> I64:
        """Return the indices within a row of the slices that match, ascending."""
        row, positions = self.indexes[source].rows[row_number], self.positions[source]
        first, count = int(row["first"]), int(row["count"])
        if int(row["kind"]) != RowKind.SLICES or not len(positions):
            return np.empty(0, np.int64)
        low, high = np.searchsorted(positions, np.array([first, first + count], np.uint32))
        return positions[low:high].astype(np.int64) - first

    def where(self, index: Index, positions: I64) -> AnyArray:
        """Tell which of an index's positions match, as booleans."""
        own = self.positions[self.indexes.index(index)]
        if not len(own):
            return np.zeros(len(positions), bool)
        places = np.searchsorted(own, np.asarray(positions).astype(np.uint32))
        places[places == len(own)] = 0
        found: AnyArray = own[places] == positions
        return found

    def next(self, time: int, source: int = -1, position: int = -1) -> Hit | None:
        """Return the first hit after a place in the order of (start in trace time, source, position).

        Without source and position: the first that starts at the time or later.
        """
        return self._nearest(time, source, position, 1)

    def previous(self, time: int, source: int = -1, position: int = -1) -> Hit | None:
        """Return the last hit before a place in the order of (start in trace time, source, position)."""
        return self._nearest(time, source, position, -1)

    def _nearest(self, time: int, source: int, position: int, direction: int) -> Hit | None:
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
        here = 0 if direction < 0 or source < 0 else int(self._is_hit(source, position))
        return Hit(best[1], best[2], before + here + 1 if direction > 0 else before)

    def _is_hit(self, source: int, position: int) -> bool:
        own = self.positions[source]
        at = int(np.searchsorted(own, np.uint32(max(0, position))))
        return at < len(own) and int(own[at]) == position

    def starts(self, source: int) -> list[tuple[I64, I64]]:
        """Return (positions, starts in trace time) of a source's hits in chunks."""
        index, own = self.indexes[source], self.positions[source]
        found = []
        for low in range(0, len(own), CHUNK):
            part = own[low : low + CHUNK].astype(np.int64)
            starts = index.column("slices.start")[part].astype(np.int64)
            found.append((part, starts + self.offsets[source][Rows(index).of(part)]))
        return found

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


class Rows:
    """The rows of slices of an index in order of position."""

    def __init__(self, index: Index) -> None:
        rows = index.rows
        numbers = np.flatnonzero((rows["kind"] == RowKind.SLICES) & (rows["count"] > 0))
        order = np.argsort(rows["first"][numbers], kind="stable")
        self.numbers = numbers[order]
        self.firsts = rows["first"][self.numbers].astype(np.int64)

    def of(self, positions: I64) -> I64:
        """Return the row numbers in which positions lie."""
        found: I64 = self.numbers[np.searchsorted(self.firsts, positions, "right") - 1]
        return found


def matches(
    trace: Trace, filter: Filter, clocks: Clocks = NO_CLOCKS, cancelled: CancelledCallback = never
) -> Hits:
    """Return the slices of a trace that a filter matches. Raises Cancelled, UnreadableError (arguments)."""
    positions: list[U32] = []
    offsets: list[I64] = []
    total = of = 0
    titles = [[""] * len(index.lanes) for index in trace.indexes]
    shifts = [[0] * len(index.lanes) for index in trace.indexes]
    for lane in trace.lanes:
        titles[lane.source][lane.number] = lane.title
        shifts[lane.source][lane.number] = clocks.offset(lane.source, lane.pid)
    for source, index in enumerate(trace.indexes):
        found = _Search(index, titles[source], cancelled).run(filter)
        for low in range(0, len(found), CHUNK):
            total += int(index.duration(found[low : low + CHUNK]).sum())
        positions.append(found)
        shift = np.array(shifts[source] or [0], np.int64)
        offsets.append(shift[index.rows["lane"].astype(np.int64)])
        of += len(index.column("slices.start"))
    counted = sum(map(len, positions))
    return Hits(filter, trace.indexes, tuple(positions), tuple(offsets), counted, total, of)


class _Search:
    """The search of one index; every table (names, categories, lanes, lifted) is tested once."""

    def __init__(self, index: Index, titles: list[str], cancelled: CancelledCallback) -> None:
        self.index, self.titles, self.cancelled = index, titles, cancelled
        self.count = len(index.column("slices.start"))

    def run(self, filter: Filter) -> U32:
        """Return the positions that match, ascending."""
        if not self.count:
            return np.empty(0, np.uint32)
        tables: list[tuple[str, AnyArray]] = []
        sparse: list[tuple[U32, bool]] = []
        scanned: list[Argument] = []
        rows: AnyArray | None = None
        for term in filter.terms:
            if isinstance(term, Name):
                tables.append(("slices.name", self._names(term.text) != term.negated))
            elif isinstance(term, Category):
                fits = [_category_fits(term.text, name) != term.negated for name in self.index.categories]
                tables.append(("slices.category", np.array(fits, bool)))
            elif isinstance(term, LaneTitle):
                lanes = np.array([term.text(title) != term.negated for title in self.titles], bool)
                these: AnyArray = lanes[self.index.rows["lane"].astype(np.int64)]
                rows = these if rows is None else rows & these
            elif isinstance(term, Argument):
                lifted = lifted_key(term.key)
                if lifted is None:
                    scanned.append(term)
                else:
                    sparse.append((self._lifted(term, lifted), term.negated))
        times = [term for term in filter.terms if isinstance(term, Time)]
        parts = []
        for begin in range(0, self.count, CHUNK):
            if self.cancelled():
                raise Cancelled
            end = min(self.count, begin + CHUNK)
            mask = self._chunk(begin, end, tables, rows, sparse, times)
            parts.append((np.flatnonzero(mask) + begin).astype(np.uint32))
        found: U32 = np.concatenate(parts)
        for term in scanned:
            if len(found):
                has = scan_argument(self.index, term, found.astype(np.int64), self.cancelled)
                found = found[has != term.negated]
        return found

    def _chunk(
        self,
        begin: int,
        end: int,
        tables: list[tuple[str, AnyArray]],
        rows: AnyArray | None,
        sparse: list[tuple[U32, bool]],
        times: list[Time],
    ) -> AnyArray:
        index = self.index
        mask = np.ones(end - begin, bool)
        for column, wanted in tables:
            mask &= wanted[index.column(column)[begin:end]]
        if rows is not None:
            mask &= rows[Rows(index).of(np.arange(begin, end))]
        for positions, negated in sparse:
            low, high = np.searchsorted(positions, np.array([begin, end], np.uint32))
            has = np.zeros(end - begin, bool)
            has[positions[low:high].astype(np.int64) - begin] = True
            mask &= has != negated
        for term in times:
            if term.what == "dur":
                ns = index.durations_between(begin, end)
            else:
                ns = index.self_time(np.arange(begin, end))
            mask &= compared(ns, term.number) != term.negated
        return mask

    def _names(self, text: Text) -> AnyArray:
        """Return per string number whether it is a slice's name that fits."""
        index = self.index
        offsets, blob = index.column("strings.offset"), index.column("strings.blob")
        used = np.zeros(max(1, len(offsets) - 1), bool)
        names = index.column("slices.name")
        for begin in range(0, len(names), CHUNK):
            used[names[begin : begin + CHUNK]] = True
        fits = np.zeros(len(used), bool)
        needle = text.text.lower().encode() if text.how == "in" and text.text.isascii() else None
        regex = text.pattern if text.how == "regex" else None
        for begin in range(0, len(used), STRINGS):
            if self.cancelled():
                raise Cancelled
            numbers = begin + np.flatnonzero(used[begin : begin + STRINGS])
            if not len(numbers):
                continue
            bounds = offsets[begin : begin + STRINGS + 1].tolist()
            joined = blob[bounds[0] : bounds[-1]].tobytes()
            if needle is not None:
                joined = joined.lower()
                if needle not in joined:
                    continue
            for number in numbers.tolist():
                low, high = bounds[number - begin] - bounds[0], bounds[number - begin + 1] - bounds[0]
                raw = joined[low:high]
                if needle is not None:
                    fits[number] = needle in raw
                else:
                    name = raw.decode("utf-8", "replace")
                    fits[number] = text(name) if regex is None else regex.search(name) is not None
        return fits

    def _lifted(self, term: Argument, key: str) -> U32:
        """Return the positions whose lifted argument fits, ascending."""
        index = self.index
        positions: U32 = index.column(f"lifted.{key}.position")
        if not len(positions) or (term.number is None and term.text is None):
            return positions
        values = index.column(f"lifted.{key}.value")
        texts = next(lifted.kind for lifted in LIFTED if lifted.key == key) is Kind.TEXT
        if term.number is not None and not texts:
            found: U32 = positions[compared(values, term.number)]
            return found
        known, which = np.unique(values, return_inverse=True)
        fits = [holds(term, index.string(value) if texts else value) for value in known.tolist()]
        fitting: U32 = positions[np.array(fits, bool)[which]]
        return fitting


def lifted_key(key: str) -> str | None:
    """Return the lifted argument that a key means, by its own name or the file's; None for others."""
    for lifted in LIFTED:
        if lifted.args != ("",) and (key == lifted.key or key in lifted.args):
            return lifted.key
    return None


def compared(values: AnyArray, number: Number) -> AnyArray:
    """Return which numbers of an array fit, exactly."""
    wanted = number.value
    if values.dtype.kind == "f":
        return _ordered(values, number.op, float(wanted))
    low, high = floor(wanted), ceil(wanted)
    limits = np.iinfo(values.dtype)
    if number.op == "=" and (low != high or not limits.min <= low <= limits.max):
        return np.zeros(len(values), bool)
    bound = low if number.op in (">", "<=", "=") else high
    if bound > limits.max or bound < limits.min:
        return np.full(len(values), (bound < limits.min) == (number.op in (">", ">=")))
    return _ordered(values, number.op, values.dtype.type(bound))


def _ordered(values: AnyArray, op: str, bound: Any) -> AnyArray:
    compare: Any = {
        ">": np.greater,
        ">=": np.greater_equal,
        "<": np.less,
        "<=": np.less_equal,
        "=": np.equal,
    }[op]
    found: AnyArray = compare(values, bound)
    return found


def _category_fits(text: Text, name: str) -> bool:
    return text(name) or (text.how == "is" and "," in name and any(map(text, name.split(","))))
