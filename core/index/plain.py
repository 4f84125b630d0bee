"""The loops of building in plain Python: written to be read; the same result as C, byte for byte."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np

from ..base.arrays import I64, U8, U16, U32, U64, AnyArray, distinct
from ..read.batch import EventFlag, IdKind, Table
from .format import FLOW_COUNTS, LONG, NONE
from .loops import (
    BEGINS,
    ENDS,
    INSTANT,
    MAX_OPEN_SEARCHED,
    SLICE,
    THREAD_END,
    CancelFlag,
    Correlations,
    Interned,
    LaneFlows,
    LaneRows,
)


class PlainLoops:
    """The loops for one thread, as their definitions say; raises Cancelled soon after that was asked for."""

    def __init__(self, cancel: CancelFlag) -> None:
        """`cancel` is looked at once per lane."""
        self._cancel = cancel

    def order(
        self, bounds: U64, start: I64, duration: I64 | None, ordinal: U32, kind: U8 | None = None
    ) -> tuple[U32 | None, U64]:
        """Return the entries of each lane by (kind, start, -duration, ordinal), None if they stand so; and
        per lane how many are of kind SLICE (any, without kinds) and of kind INSTANT.
        """
        self._cancel.check()
        n, lanes = len(start), len(bounds) - 1
        lane = np.repeat(np.arange(lanes), np.array(bounds[1:] - bounds[:-1], np.int64))
        kinds = np.zeros(n, np.uint8) if kind is None else kind
        shorter = np.zeros(n, np.int64) if duration is None else -duration
        order = np.lexsort((ordinal, shorter, start, kinds, lane)).astype(np.uint32)
        sizes = np.empty((lanes, 2), np.uint64)
        for number in (SLICE, INSTANT):
            sizes[:, number] = np.bincount(lane[kinds == number], minlength=lanes)
        return (None if bool((order == np.arange(n)).all()) else order), sizes

    def reorder(self, values: AnyArray, order: U32) -> None:
        """Put values in an order, where they lie."""
        values[:] = values[order]

    def take(self, values: AnyArray, index: U32) -> AnyArray:
        """Return values[index]."""
        return values[index]

    def put(self, values: AnyArray, index: U32, out: AnyArray) -> None:
        """Do out[index] = values."""
        out[index] = values

    def slots(self, track: U32, following: U64) -> U32:
        """Return the slot of each event: the next one of its track; `following`, per track, moves on."""
        self._cancel.check()
        slots = np.empty(len(track), np.uint32)
        for number in distinct(track).tolist():
            own = np.flatnonzero(track == number)
            slots[own] = int(following[number]) + np.arange(len(own))
            following[number] += np.uint64(len(own))
        return slots

    def intern(self, interned: Interned, table: U16, string: U32) -> U32:
        """Return the numbers of strings, given by table and number there; texts that are new get new ones."""
        self._cancel.check()
        interned.grow(len(string))
        numbers = np.empty(len(string), np.uint32)
        for entry, (of, number) in enumerate(zip(table.tolist(), string.tolist())):
            text = interned.tables[of].bytes_of(number)
            known = numbers[entry] = interned.by_text.setdefault(text, interned.count)
            if known == interned.count:
                interned.owner_table[known], interned.owner_string[known] = of, number
                interned.count += 1
        return numbers

    def texts(self, interned: Interned, table: U16, string: U32, room: int) -> tuple[U8, I64]:
        """Return the texts of strings, one after the other, and where each ends: as many as fit into so many
        bytes, but at least one.
        """
        self._cancel.check()
        texts: list[bytes] = []
        for of, number in zip(table.tolist(), string.tolist()):
            text = interned.tables[of].bytes_of(number)
            room -= len(text)
            if room < 0 and texts:
                break
            texts.append(text)
        return np.frombuffer(b"".join(texts), np.uint8), np.cumsum([len(text) for text in texts])

    def match(self, bounds: U64, phase: U8, name: U32) -> U32:
        """Return the end that closes each begin and the begin that each end closes; NONE. An end closes the
        innermost begin of its stack that is open; an asynchronous one the innermost of its name, if both have
        one, of the innermost MAX_OPEN_SEARCHED. Events stand by time and ordinal; `bounds` tells stacks
        apart.
        """
        partner = np.full(len(phase), NONE, np.uint32)
        phases, names = phase.tolist(), name.tolist()
        for begin, end in pairwise(bounds.tolist()):
            self._cancel.check()
            open_: list[int] = []
            for entry in range(begin, end):
                if phases[entry] in BEGINS:
                    open_.append(entry)
                elif phases[entry] in ENDS:
                    own = 0 if phases[entry] == THREAD_END else names[entry]
                    for at in range(len(open_) - 1, max(-1, len(open_) - 1 - MAX_OPEN_SEARCHED), -1):
                        if not own or names[open_[at]] in (0, own):
                            opener = open_.pop(at)
                            partner[opener], partner[entry] = entry, opener
                            break
        return partner

    def rows(self, bounds: U64, count: U64, start: I64, duration: I64, least: U32 | None = None) -> LaneRows:
        """Return where slices stand: a lane has the first `count` entries of its own, by (start, -duration).
        A slice stands in the lowest free row below its parent's, not above the row of its own in `least`.
        `start + duration` must fit int64.
        """
        n, lanes = len(start), len(count)
        parent, row = np.full(n, NONE, np.uint32), np.zeros(n, np.int64)
        self_time, overlap = np.zeros(n, np.int64), np.zeros(n, np.uint8)
        position, order = np.zeros(n, np.uint32), np.zeros(int(count.sum()), np.uint32)
        row_sizes: list[int] = []
        lane_rows, lane_depth = np.zeros(lanes, np.uint32), np.zeros(lanes, np.uint32)
        lane_overlaps, lane_end = np.zeros(lanes, np.uint64), np.full(lanes, np.iinfo(np.int64).min)
        placed = 0
        for lane, (first, size) in enumerate(zip(bounds.tolist(), count.tolist())):
            self._cancel.check()
            own = slice(first, first + size)
            tops = np.zeros(size, np.uint32) if least is None else least[own]
            lane_depth[lane] = _walk(
                first, (start[own], duration[own], tops), parent, row, self_time, overlap
            )
            if size:
                by_row = np.argsort(row[own], kind="stable")
                order[placed : placed + size] = first + by_row
                position[first + by_row] = np.arange(placed, placed + size)
                sizes = np.bincount(row[own]).tolist()
                row_sizes += sizes
                lane_rows[lane] = len(sizes)
                lane_overlaps[lane] = overlap[own].sum()
                lane_end[lane] = (start[own] + duration[own]).max()
            placed += size
        sizes_of_rows = np.array(row_sizes, np.uint32)
        return LaneRows(
            parent, self_time, overlap, position, order, sizes_of_rows, lane_rows, lane_depth, lane_overlaps,
            lane_end,
        )  # fmt: skip

    def slices(self, rows: LaneRows, span: range, first: int, events: Table, slot_of: U32) -> Table:
        """Return the columns of the slices of a span of places; place 0 has position `first`. The position of
        each event's slice is written to `slot_of`.
        """
        self._cancel.check()
        order = rows.order[span.start : span.stop]
        parent = rows.parent[order]
        inside = parent != NONE
        parent[inside] = rows.position[parent[inside]] + np.uint32(first)
        slot_of[events["ordinal"][order]] = np.arange(first + span.start, first + span.stop)
        return {
            "start": events["start"][order],
            "duration": np.minimum(events["duration"][order], LONG).astype(np.uint32),
            "self": np.minimum(rows.self_time[order], LONG).astype(np.uint32),
            "ordinal": events["ordinal"][order],
            "parent": parent,
        }

    def bind(
        self, rows: LaneRows, bounds: U64, count: U64, first: int, slices: Table, flows: LaneFlows
    ) -> None:
        """Fill in the position of the slice that each flow event of each lane belongs to; NONE.

        Starts, steps and ends with "bp": "e" belong to the deepest slice that contains the stamp, other ends
        to the next that begins at or after it. Where several begin at the very stamp, those whose correlation
        is the flow's id come first, then the nearest before it in the file.
        """
        for lane, (begin, size) in enumerate(zip(bounds.tolist(), count.tolist())):
            self._cancel.check()
            own = slice(begin, begin + size)
            lane_slices = _LaneSlices(
                slices["start"][own].tolist(),
                (slices["start"][own] + slices["duration"][own]).tolist(),
                np.where(rows.parent[own] == NONE, -1, rows.parent[own].astype(np.int64) - begin).tolist(),
                slices["ordinal"][own].tolist(),
                flows.correlations,
            )
            own_flows = range(int(flows.bounds[lane]), int(flows.bounds[lane + 1]))
            for flow in sorted(own_flows, key=flows.columns["start"].__getitem__):
                entry = lane_slices.of({name: values[flow].item() for name, values in flows.columns.items()})
                flows.bound[flow] = NONE if entry < 0 else first + int(rows.position[begin + entry])

    def pair(self, flows: Table, pid: U32, categories: int) -> tuple[U32, U32, I64]:
        """Return arrows as (sources, targets), entries both, and FLOW_COUNTS per category.

        Events of one category and id (and pid, where the id is local to it) make a group, by time and
        ordinal; each step and end follows the latest start or step before it. Writers whose device clock is
        off put ends before every start of their id: those follow the first.
        """
        self._cancel.check()
        groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
        keys = zip(
            flows["category"].tolist(),
            flows["id_kind"].tolist(),
            flows["id_value"].tolist(),
            np.where(flows["id_kind"] == IdKind.LOCAL, pid, 0).tolist(),
        )
        for entry, key in enumerate(keys):
            groups[key].append(entry)
        phase, start, ordinal = (flows[name].tolist() for name in ("phase", "start", "ordinal"))
        sources: list[int] = []
        targets: list[int] = []
        counts = np.zeros((categories, len(FLOW_COUNTS)), np.int64)
        for (category, *_), group in groups.items():
            group.sort(key=lambda entry: (start[entry], ordinal[entry]))
            starts = [entry for entry in group if phase[entry] == ord("s")]
            ends = [entry for entry in group if phase[entry] == ord("f")]
            source = starts[0] if starts else None
            for entry in group:
                if phase[entry] != ord("s") and source is not None:
                    sources.append(source)
                    targets.append(entry)
                if phase[entry] != ord("f"):
                    source = entry
            at_step = bool(starts) and not ends and len(group) > len(starts)  # it ends at its last step
            ended = len(ends) + at_step
            counts[category] += (
                len(starts),
                len(group) - len(starts) - ended,
                ended,
                ended if starts else 0,
                0 if ended else len(starts),
                0 if starts else ended,
            )
        return np.array(sources, np.uint32), np.array(targets, np.uint32), counts

    def promote(
        self, ordinal: U32, values: AnyArray, slot_of: U32, dense: AnyArray, present: U64
    ) -> tuple[int, int] | None:
        """Put values at the slots of their events, a later one in place of an earlier one. Return the least
        and greatest integer that has a slot, None without one or of other values.
        """
        self._cancel.check()
        slots = slot_of[ordinal]
        some = np.flatnonzero(slots != NONE)
        slots, values = slots[some], values[some]
        dense[slots] = values
        np.bitwise_or.at(present, slots // 64, np.left_shift(np.uint64(1), (slots % 64).astype(np.uint64)))
        if not len(values) or values.dtype != np.int64:
            return None
        return int(values.min()), int(values.max())

    def compact(self, dense: AnyArray, present: U64, begin: int, end: int, base: int) -> tuple[U32, AnyArray]:
        """Return (slots, values) of begin..end where there is one; slots count from `base`."""
        self._cancel.check()
        slots = np.arange(begin, end)
        bits = np.right_shift(present[slots // 64], (slots % 64).astype(np.uint64)) & np.uint64(1)
        slots = slots[bits == 1]
        return (slots - base).astype(np.uint32), dense[slots]


def _walk(
    first: int, columns: tuple[I64, I64, U32], parent: U32, row: I64, self_time: I64, overlap: U8
) -> int:
    """Place the slices of a lane that begins at entry `first`, of which `columns` are start, duration and
    topmost row; return the greatest number open at once.
    """
    open_: list[list[int]] = []  # (end, up to where children cover it, entry, row), ends falling
    busy: list[tuple[int, int]] = []  # heap of (end, row)
    busy_rows = 0  # a bit per row
    depth = 0
    for entry, (begin, length, least) in enumerate(zip(*(column.tolist() for column in columns)), first):
        end = begin + length
        while busy and busy[0][0] <= begin:
            busy_rows &= ~(1 << heappop(busy)[1])
        overlap[entry] = bool(busy) and busy[0][0] < end
        depth = max(depth, len(busy) + 1)
        # What ends before this one holds neither it nor, as this one is open longer, any later slice; a slice
        # of length zero lies only in what is still open after it.
        while open_ and open_[-1][0] < end + (length == 0):
            open_.pop()
        self_time[entry] = length
        if open_:
            around = open_[-1]
            _, reach, parent[entry], above = around
            self_time[around[2]] -= max(0, end - max(begin, reach))
            around[1] = max(reach, end)
            least = max(least, above + 1)
        further = busy_rows >> least
        row[entry] = own = least + (~further & (further + 1)).bit_length() - 1  # the lowest free one
        if length:
            busy_rows |= 1 << own
            heappush(busy, (end, own))
            open_.append([end, begin, entry, own])
    return depth


class _LaneSlices:
    """The slices of a lane, to be asked to which of them a flow event belongs, by rising time."""

    def __init__(
        self,
        starts: list[int],
        ends: list[int],
        parents: list[int],
        ordinals: list[int],
        correlations: Correlations,
    ) -> None:
        self._starts, self._ends, self._parents = starts, ends, parents
        self._ordinals, self._correlations = ordinals, correlations
        self._inner = self._last = -1
        self._stamps: dict[int, tuple[list[tuple[int, int]], dict[int | None, list[tuple[int, int]]]]] = {}

    def of(self, flow: dict[str, int]) -> int:
        time = flow["start"]
        first = bisect_left(self._starts, time)
        last = bisect_left(self._starts, time + 1)
        if last - 1 > self._last:
            self._inner = self._last = last - 1
        while first == last and self._inner >= 0 and self._ends[self._inner] <= time:
            self._inner = self._parents[self._inner]  # what has ended holds no later stamp either
        entry = self._inner
        if flow["phase"] == ord("f") and not flow["flags"] & EventFlag.BIND_ENCLOSING:
            entry = first if first < len(self._starts) else -1
        return self._choose(range(first, last), flow, entry) if last - first > 1 else entry

    def _choose(self, stamp: range, flow: dict[str, int], otherwise: int) -> int:
        if stamp.start not in self._stamps:
            by_ordinal = sorted((self._ordinals[entry], entry) for entry in stamp)
            by_value: dict[int | None, list[tuple[int, int]]] = defaultdict(list)
            for ordinal, entry in by_ordinal:
                by_value[self._correlation(ordinal)].append((ordinal, entry))
            self._stamps[stamp.start] = by_ordinal, dict(by_value)
        by_ordinal, known = self._stamps[stamp.start]
        same = known.get(flow["id_value"], []) if flow["id_kind"] == IdKind.INTEGER else []
        before = bisect_left(same or by_ordinal, (flow["ordinal"], -1))
        if before:
            return (same or by_ordinal)[before - 1][1]
        return same[0][1] if same else otherwise

    def _correlation(self, ordinal: int) -> int | None:
        known = self._correlations
        entry = int(np.searchsorted(known.ordinal, np.uint32(ordinal)))
        has_one = entry < len(known.ordinal) and int(known.ordinal[entry]) == ordinal
        return int(known.value[entry]) if has_one else None
