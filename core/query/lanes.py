"""Lanes, rows, processes and sources made from an index's tables, when they are asked for; what rows and
lanes hold, from their stored sums: no slice is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import overload

import numpy as np

from ..base.arrays import I64, U8, AnyArray, distinct
from ..base.kineto import SliceKind, may_communicate, slice_kind, work_of_categories
from ..base.numbers import whole_number
from ..base.safe_text import safe
from ..index.format import NO_SUMS, LaneKind, LaneRole, RowKind
from ..index.pids import stands_aside
from ..index.store import Index
from .cells import categories_of, ragged
from .lookup import totals_of_rows
from .views import Lane, Process, Row, SourceInfo, lane_title, process_title

OVERFLOW = 100
"""The lanes of a device's copies have thread numbers from here on, and from multiples of it: a range of
numbers for each kind of copy.
"""


SAMPLE, MAX_ROWS = 1024, 256
"""How many slices of a row, evenly spread, and rows of a lane are compared with those above them."""


class LaneList(Sequence[Lane]):
    """All non-empty lanes in display order; each lane is created when it is first asked for."""

    def __init__(self, count: int, make: Callable[[int], Lane]) -> None:
        self._count, self._make = count, make
        self._lanes: dict[int, Lane] = {}

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> Lane: ...
    @overload
    def __getitem__(self, at: slice) -> list[Lane]: ...
    def __getitem__(self, at: int | slice) -> Lane | list[Lane]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(self._count))]
        if at < 0:
            at += self._count
        if not 0 <= at < self._count:
            raise IndexError(at)
        lane = self._lanes.get(at)
        if lane is None:
            lane = self._lanes[at] = self._make(at)
        return lane

    def __iter__(self) -> Iterator[Lane]:
        return (self[at] for at in range(self._count))


def make_source(index: Index, number: int) -> SourceInfo:
    manifest = index.manifest
    form, base = str(manifest.get("form", "object")), manifest.get("base_time_ns")
    report, problems = index.read_report, tuple(index.problems)
    return SourceInfo(number, index.path, form, report, problems, base, manifest, index.notes, index.events)


def make_processes(index: Index, source: int, base: int) -> list[Process]:
    """Return the processes of a source; `base` is the index of its first lane in `Trace.lanes`."""
    processes = []
    rows = [
        ((index.string(pid), index.string(name), index.string(labels)), first, lanes, empty)
        for pid, name, labels, _, first, lanes, empty in index.processes.tolist()
    ]
    aside = [stands_aside(pid, name) for (pid, name, _), *_ in rows]
    if any(aside):
        slices = np.bincount(index.lanes["process"], index.lanes["slices"], len(rows))
        if not slices[~np.array(aside)].any():  # all that there is
            aside = [False] * len(rows)
    titles = [process_title(*texts) for texts, *_ in rows]
    alike = Counter(titles)
    for number, (texts, first, lanes, empty) in enumerate(rows):
        own_lanes, title = range(base + first, base + first + lanes), titles[number]
        if alike[title] > 1 and texts[0].startswith('"'):  # as of 1 and "1"
            title += f" ({safe(texts[0])})"
        processes.append(Process(source, number, *texts, title, own_lanes, empty, aside[number]))
    return processes


def make_lane(index: Index, process: Process, at: int, number: int) -> Lane:
    """Return the lane with a number in the source's table; `at` is its index in `Trace.lanes`."""
    entry = index.lanes[number]
    kind, tid = LaneKind(int(entry["kind"])), index.string(int(entry["tid"]))
    name, first = index.string(int(entry["name"])), int(entry["first_row"])
    return Lane(
        source=process.source,
        process=process,
        index=at,
        number=number,
        kind=kind,
        role=LaneRole(int(entry["role"])),
        pid=process.pid,
        tid=tid,
        name=name,
        title=_overflow_title(index, entry, tid, name) or lane_title(kind, tid, name, int(entry["ids"])),
        rows=range(first, first + int(entry["rows"])),
        depth=int(entry["depth"]),
        slices=int(entry["slices"]),
        unclosed=int(entry["unclosed"]),
        instants=int(entry["instants"]),
        samples=int(entry["samples"]),
        overlapping=int(entry["overlapping"]),
        start=int(entry["start"]),
        end=int(entry["end"]),
    )


def _overflow_title(index: Index, entry: AnyArray, tid: str, name: str) -> str:
    """Return the title of a lane without one that takes what overlaps on another; "" for all other lanes.

    AIU profilers number the lanes of copies by kind: 100, 200, …, and 401 is called " " and holds what runs
    beside the work of 400.
    """
    if (
        not name
        or name.strip()
        or not tid.isdecimal()
        or whole_number(tid) < OVERFLOW
        or not whole_number(tid) % OVERFLOW
    ):
        return ""
    first = str(whole_number(tid) // OVERFLOW * OVERFLOW)
    for number in np.flatnonzero(index.lanes["process"] == entry["process"]).tolist():
        other = index.lanes[number]
        if index.string(int(other["tid"])) == first:
            title = lane_title(LaneKind(int(other["kind"])), first, index.string(int(other["name"])))
            return f"{title.rstrip(':')} +{whole_number(tid) - whole_number(first)}"
    return ""


def make_row(index: Index, lane: Lane, number: int) -> Row:
    entry = index.rows[number]
    kind = RowKind(int(entry["kind"]))
    return Row(
        source=lane.source,
        number=number,
        lane=lane.index,
        depth=number - lane.rows.start,
        kind=kind,
        count=int(entry["count"]),
        start=int(entry["start"]),
        end=int(entry["end"]),
        series=index.string(int(entry["series"])) if kind is RowKind.SAMPLES else "",
        pid=lane.pid,
    )


MAX_INSTANTS = 1 << 20
"""Instants that are asked for their category: a legend must not cost more than a frame or two."""


class RowColumns:
    """The rows of a lane, topmost first: arrays with a value for each row."""

    def __init__(self, index: Index, numbers: range) -> None:
        self._index = index
        self._rows = index.rows[numbers.start : numbers.stop]

    @property
    def are_slices(self) -> AnyArray:
        holds: AnyArray = self._rows["kind"] == RowKind.SLICES
        return holds

    @property
    def counts(self) -> I64:
        """How many slices, instants or samples a row holds."""
        return self._rows["count"].astype(np.int64)

    @property
    def extents(self) -> I64:
        """The time from a row's first start to its last end, ns."""
        extents: I64 = self._rows["end"] - self._rows["start"]
        return extents

    @property
    def busy(self) -> I64:
        """The time that a row's slices take, ns; -1 where the index has no sum of it."""
        busy = np.full(len(self._rows), -1, np.int64)
        stored = np.flatnonzero((self._rows["sums"] != NO_SUMS) & (self._rows["category_count"] > 0))
        if len(stored):
            totals = totals_of_rows(self._rows[stored])
            positions, begins = ragged(totals, totals + self._rows["category_count"][stored].astype(np.int64))
            busy[stored] = np.add.reduceat(self._index.column("category_sums")[positions], begins)
        return busy

    def busy_besides(self, categories: Collection[int]) -> I64:
        """The time that a row's slices of other categories than some take, by their numbers, ns; of a row of
        which the index has no sums the time of all of them, 0 where it has none of others.
        """
        ns = np.zeros(len(self._rows), np.int64)
        for number, row in enumerate(self._rows):
            own = categories_of(self._index, row).tolist()
            others = [at for at, category in enumerate(own) if category not in categories]
            if others and row["sums"] == NO_SUMS:
                ns[number] = self.extents[number]
            elif others:
                first = int(totals_of_rows(self._rows[number : number + 1])[0])
                ns[number] = self._index.column("category_sums")[first : first + len(own)][others].sum()
        return ns

    def repeat_those_above(self, share: float) -> AnyArray:
        """Tell of each row whether its slices repeat those of the row above: of their time, such a share is
        in slices of which one child of their category takes such a share. Of a long row an even sample is
        looked at, of a deep lane the first rows.
        """
        repeat = np.zeros(len(self._rows), np.bool_)
        busy, counts = self.busy, self.counts
        is_alike = (busy[1:] < 0) | (busy[1:] >= share * share * busy[:-1])  # no sum: a row of few slices
        is_alike &= self.are_slices[:-1] & self.are_slices[1:] & (counts[1:] > 0)
        for above in np.flatnonzero(is_alike[:MAX_ROWS]).tolist():
            parents = np.linspace(0, counts[above] - 1, min(counts[above], SAMPLE)).astype(np.int64)
            parents += int(self._rows["first"][above])
            first = int(self._rows["first"][above + 1])
            starts, categories = self._index.column("slices.start"), self._index.column("slices.category")
            durations = self._index.duration(parents)
            # A child that takes more than half of a slice covers its middle.
            middles = starts[parents] + durations // 2
            children = np.searchsorted(starts[first : first + counts[above + 1]], middles, "right") - 1
            positions = first + np.maximum(children, 0)
            is_one = (children >= 0) & (categories[positions] == categories[parents])
            is_one &= self._index.duration(positions) >= share * durations
            is_one &= starts[positions] >= starts[parents]
            repeat[above + 1] = durations[is_one].sum() >= share * max(1, durations.sum())
        return repeat

    def hold_only(self, category: str) -> AnyArray:
        """Tell of each row whether it has slices, all of one category."""
        rows = self._rows
        holds: AnyArray = self.are_slices & (rows["count"] > 0) & (rows["category_count"] == 1)
        some = np.flatnonzero(holds)
        numbers = self._index.column("row_categories")[rows["categories"][some].astype(np.int64)]
        categories = self._index.categories
        holds[some] = numbers == (categories.index(category) if category in categories else -1)
        return holds


def ns_by_lane(index: Index, categories: Collection[int]) -> dict[int, int]:
    """Return by lane number how long slices of some categories take, of lanes that have any."""
    rows = index.rows
    stored = rows["sums"] != NO_SUMS
    some = np.flatnonzero((rows["kind"] == RowKind.SLICES) & stored & (rows["category_count"] > 0))
    if not categories or not len(some):
        return {}
    kinds = rows["category_count"][some].astype(np.int64)
    first = rows["categories"][some].astype(np.int64)
    positions, begins = ragged(first, first + kinds)
    of_row = np.repeat(np.arange(len(some)), kinds)
    is_one = np.isin(index.column("row_categories")[positions], list(categories))
    local = np.arange(len(positions)) - begins[of_row]
    ns = index.column("category_sums")[(totals_of_rows(rows[some])[of_row] + local)[is_one]]
    times: dict[int, int] = {}
    for lane, value in zip(rows["lane"][some][of_row[is_one]].tolist(), ns.tolist()):
        times[lane] = times.get(lane, 0) + value
    return times


def categories_besides_work(index: Index) -> frozenset[int]:
    """Return the numbers of the categories that are no work: annotations, and on devices' lanes waits."""
    rows = index.rows[index.rows["kind"] == RowKind.SLICES]
    rows = rows[index.lanes["role"][rows["lane"]] == LaneRole.DEVICE]
    first = rows["categories"].astype(np.int64)
    positions, _ = ragged(first, first + rows["category_count"])
    present = np.flatnonzero(np.bincount(index.column("row_categories")[positions])).tolist()
    work = work_of_categories(index.categories[number] for number in present)
    return frozenset(
        number
        for number, category in enumerate(index.categories)
        if (category not in work if number in present else slice_kind(category) is SliceKind.ANNOTATION)
    )


def slice_kind_codes(index: Index, categories: AnyArray, names: AnyArray) -> U8:
    """Return the kind of each of some slices as its place in SliceKind, from the numbers of their categories
    and names; each name in a category is looked at once.
    """
    code_of = {kind: code for code, kind in enumerate(SliceKind)}
    by_category = np.array([code_of[slice_kind(category)] for category in index.categories], np.uint8)
    codes: U8 = by_category[categories]
    for number, category in enumerate(index.categories):
        if may_communicate(category):
            here = np.flatnonzero(categories == number)
            numbers, which = np.unique(names[here], return_inverse=True)
            kinds = [code_of[slice_kind(category, text)] for text in index.strings(numbers)]
            codes[here] = np.array(kinds, np.uint8)[which]
    return codes


def drawn_categories(index: Index) -> list[int]:
    """Return the numbers of the categories of slices and instants; flows have categories too."""
    numbers = set(distinct(index.column("row_categories")).tolist())
    return sorted(numbers.union(distinct(index.column("instants.category")[:MAX_INSTANTS]).tolist()))
