"""Which lanes and processes there are, what metadata calls them, and in which order they stand."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ..base.arrays import distinct
from ..base.digest import blake2b
from ..base.numbers import whole_number
from ..read.batch import Metadata
from .format import LaneKind
from .pids import stands_aside

if TYPE_CHECKING:
    from .id_lanes import AsyncLane, CounterLane

MAX_SORT = (1 << 62) - 1
_LABEL_EVENTS = ("process_labels", "process_label")
"""The second is what aiu-trace-analyzer writes."""

_THREAD_EVENTS = ("thread_name", "thread_sort_index")
_SAID = {"name": 1, "labels": 2, "sort": 4}
"""The bit of each kind of metadata of processes."""
_STATEMENTS = 64
"""Statements about a process that are kept, of those that differ."""

SortKey = tuple[Any, ...]


@dataclass(slots=True)
class OwnNames:
    """What metadata say of one process or thread; of several the last holds."""

    name: str = ""
    sort: int = 0
    labels: str = ""  # of a process
    before: tuple[OwnNames, ...] = ()  # of a process: what was said of it earlier, and is another
    said: int = 0  # of a process: the kinds of metadata that have come since


class Names:
    """Metadata by JSON texts of pid and tid."""

    def __init__(self, lanes: Container[tuple[str, str]] | None = None) -> None:
        """`lanes`: the threads in which something lies, where that is known; others are only counted then."""
        self.processes: dict[str, OwnNames] = {}
        self.threads: dict[tuple[str, str], OwnNames] = {}
        self._lanes = lanes
        self._empty: dict[str, bytearray] = {}  # by pid, digests of threads: may be millions

    @classmethod
    def of(
        cls, metadata: Iterable[Iterable[Metadata]], lanes: Container[tuple[str, str]] | None = None
    ) -> Names:
        """Read the metadata of all parts, in file order."""
        names = cls(lanes)
        for part in metadata:
            for event in sorted(part, key=lambda m: m.ordinal):
                names._take(event)
        return names

    def empty(self) -> dict[str, int]:
        return {pid: len(distinct(np.frombuffer(raw, np.uint64))) for pid, raw in self._empty.items()}

    def _take(self, event: Metadata) -> None:
        if not event.name.startswith(("process_", "thread_")):
            return
        lanes = self._lanes
        if lanes is not None and event.name in _THREAD_EVENTS and (event.pid, event.tid) not in lanes:
            if event.args.startswith("{"):
                digest = blake2b(event.tid.encode("utf-8", "replace"), digest_size=8).digest()
                self._empty.setdefault(event.pid, bytearray()).extend(digest)
            return
        try:
            args = json.loads(event.args)
        except (ValueError, RecursionError):
            return
        if not isinstance(args, dict):
            return
        if event.name == "process_name":
            self._tell(event.pid, "name", _text(args, "name"))
        elif event.name in _LABEL_EVENTS:
            self._tell(event.pid, "labels", _text(args, "labels", "label", "name"))
        elif event.name == "process_sort_index":
            self._tell(event.pid, "sort", _number(args))
        elif event.name == "thread_name":
            self._thread(event).name = _text(args, "name")
        elif event.name == "thread_sort_index":
            self._thread(event).sort = _number(args)

    def _tell(self, pid: str, kind: Literal["name", "labels", "sort"], value: str | int) -> None:
        """Take what metadata say of a process. A kind that comes again with another value begins the next
        statement: two may share the pid (core/index/shared_pids.py).
        """
        own = self.processes.setdefault(pid, OwnNames())
        if getattr(own, kind) == value:
            return
        if own.said & _SAID[kind]:
            own.before = (*own.before, OwnNames(own.name, own.sort, own.labels))[-_STATEMENTS:]
            own.said = 0
        own.said |= _SAID[kind]
        setattr(own, kind, value)

    def _thread(self, event: Metadata) -> OwnNames:
        return self.threads.setdefault((event.pid, event.tid), OwnNames())


def _text(args: dict[str, Any], *keys: str) -> str:
    for key in keys:
        value = args.get(key)
        if isinstance(value, str):
            return value
        if value is not None:
            return json.dumps(value, ensure_ascii=False)
    return ""


def _number(args: dict[str, Any]) -> int:
    value = args.get("sort_index")
    try:
        if isinstance(value, (int, float, str)):
            number = whole_number(value) if isinstance(value, str) else int(value)
            return max(-MAX_SORT, min(MAX_SORT, number))
    except (ValueError, OverflowError):
        pass
    return 0


def numeric_first(text: str) -> SortKey:
    """Return a sort key for a JSON text: numbers by value, then everything else by text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value == value:
        return (0, value, text)
    return (1, 0, text)


class LaneEntry(NamedTuple):
    """One lane to be written, in display order."""

    kind: LaneKind
    pid: str  # JSON texts
    tid: str
    name: str
    sort: int
    ids: int
    content: int | AsyncLane | CounterLane  # a thread's track number
    key: SortKey


class ProcessEntry(NamedTuple):
    """One process and its lanes, in display order."""

    pid: str
    names: OwnNames
    lanes: list[LaneEntry]
    empty: int  # threads that metadata name and nothing lies in


def thread_entry(track: int, pid: str, tid: str, names: Names) -> LaneEntry:
    thread = names.threads.get((pid, tid), OwnNames())
    key = (0, thread.sort, numeric_first(tid))
    return LaneEntry(LaneKind.THREAD, pid, tid, thread.name, thread.sort, 0, track, key)


def async_entry(lane: AsyncLane, pid: str, category: str, id_text: str) -> LaneEntry:
    key = (1, category, lane.pack, lane.id_kind > 0, numeric_first(id_text), lane.id_kind)
    return LaneEntry(LaneKind.ASYNC, pid, id_text, category, 0, lane.ids, lane, key)


def counter_entry(lane: CounterLane, pid: str, name: str, id_text: str) -> LaneEntry:
    key = (2, name, lane.id_kind > 0, numeric_first(id_text), lane.id_kind)
    return LaneEntry(LaneKind.COUNTER, pid, id_text, name, 0, 0, lane, key)


def _twin(pid: str) -> str:
    """Return the JSON text of a pid with quotes, or without: to rocprof 6 and "6" are one process."""
    return pid[1:-1] if pid.startswith('"') else f'"{pid}"'


def in_display_order(lanes: Iterable[LaneEntry], names: Names) -> list[ProcessEntry]:
    """Return all processes that hold a lane or have metadata: by sort index, numeric pid, text, what is no
    process last; in each its threads, then async lanes, then counters.
    """
    empty = names.empty()
    pids = (*names.processes, *empty, *(pid for pid, _ in names.threads))
    by_pid: dict[str, list[LaneEntry]] = {pid: [] for pid in pids}
    for lane in lanes:
        by_pid.setdefault(lane.pid, []).append(lane)
    twins = {pid: _twin(pid) for pid, own in by_pid.items() if own and pid not in names.processes}
    twins = {pid: twin for pid, twin in twins.items() if twin in names.processes and not by_pid[twin]}
    entries = [
        ProcessEntry(
            pid,
            names.processes.get(twins.get(pid, pid), OwnNames()),
            sorted(own, key=lambda e: e.key),
            empty.get(pid, 0),
        )
        for pid, own in by_pid.items()
        if pid not in twins.values()
    ]
    return sorted(entries, key=display_order)


def display_order(process: ProcessEntry) -> SortKey:
    """Return by what processes are sorted."""
    names = process.names
    return (stands_aside(process.pid, names.name), names.sort, *numeric_first(process.pid))
