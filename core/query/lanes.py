"""Lanes, rows, processes and sources made from an index's tables, when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

import numpy as np

from ..base.arrays import AnyArray
from ..index.format import LaneKind, LaneRole, RowKind
from ..index.store import Index
from .titles import lane_title, process_title
from .views import Lane, Process, Row, SourceInfo

OVERFLOW = 100
"""The lanes of a device's copies have thread numbers from here on, and from multiples of it: a range of
numbers for each kind of copy.
"""


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
    """Return what is known of the file behind an index."""
    manifest = index.manifest
    form, base = str(manifest.get("form", "object")), manifest.get("base_time_ns")
    report, problems = index.read_report, tuple(index.problems)
    return SourceInfo(number, index.path, form, report, problems, base, manifest, index.notes, index.events)


def make_processes(index: Index, source: int, base: int) -> list[Process]:
    """Return the processes of a source; `base` is the index of its first lane in `Trace.lanes`."""
    processes = []
    for number, (pid, name, labels, _, first, lanes, empty) in enumerate(index.processes.tolist()):
        texts = index.string(pid), index.string(name), index.string(labels)
        own_lanes = range(base + first, base + first + lanes)
        processes.append(Process(source, number, *texts, process_title(*texts), own_lanes, empty))
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
    if not name or name.strip() or not tid.isdecimal() or int(tid) < OVERFLOW or not int(tid) % OVERFLOW:
        return ""
    first = str(int(tid) // OVERFLOW * OVERFLOW)
    for number in np.flatnonzero(index.lanes["process"] == entry["process"]).tolist():
        other = index.lanes[number]
        if index.string(int(other["tid"])) == first:
            title = lane_title(LaneKind(int(other["kind"])), first, index.string(int(other["name"])))
            return f"{title.rstrip(':')} +{int(tid) - int(first)}"
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
