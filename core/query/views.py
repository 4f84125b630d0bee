"""Plain values that a Trace returns: sources, processes, lanes, rows, steps, flows, links of a chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..base.ids import SliceId
from ..index.format import LaneKind, LaneRole, RowKind
from ..index.lanes import stands_aside

COMPUTED = "computed"
"""The form of a source that was computed, in place of a file's."""


@dataclass(frozen=True)
class SourceInfo:
    """One file of the trace: its path, what was read of it, and its problems."""

    number: int
    path: str
    form: str
    read_report: dict[str, Any]
    problems: tuple[dict[str, Any], ...]
    base_time_ns: int | None
    manifest: dict[str, Any]
    notes: tuple[str, ...] = ()  # about the cache, in plain words
    events: tuple[str, ...] = ()  # what had to be done in the cache to open it

    @property
    def is_computed(self) -> bool:
        """Whether it is no file and no log, but was computed from the trace."""
        return self.form == COMPUTED

    @property
    def is_file(self) -> bool:
        """Whether it is a file of events, not a log or something computed."""
        return bool(self.manifest.get("source"))


@dataclass(frozen=True)
class Process:
    """A process of a source; `lanes` are indices in `Trace.lanes`. `pid` is JSON text."""

    source: int
    number: int  # in the source's process table
    pid: str
    name: str
    labels: str
    title: str
    lanes: range
    empty: int

    @property
    def aside(self) -> bool:
        """Whether this is no process but the profiler's own notes, or events without a pid."""
        return stands_aside(self.pid, self.name)


@dataclass(frozen=True)
class Lane:
    """A thread, stream, async or counter track. Times are lane time in ns; `pid`, `tid` are JSON text."""

    source: int
    process: Process
    index: int  # in Trace.lanes
    number: int  # in the source's lane table
    kind: LaneKind
    role: LaneRole
    pid: str
    tid: str
    name: str
    title: str
    rows: range  # row numbers of the source
    depth: int
    slices: int
    unclosed: int
    instants: int
    samples: int
    overlapping: int
    start: int
    end: int


@dataclass(frozen=True)
class Row:
    """A handle on one row of a lane; `index` values of queries count within it. Times are lane time in ns."""

    source: int
    number: int  # row number in the source
    lane: int  # index in Trace.lanes
    depth: int
    kind: RowKind
    count: int
    start: int
    end: int
    series: str  # counters: which series
    pid: str


@dataclass(frozen=True)
class Step:
    """One iteration marked by the profiler, in trace time."""

    label: str
    start: int
    end: int
    id: SliceId


@dataclass(frozen=True)
class SliceFlow:
    """One flow between slices; None where an end lies in no slice."""

    category: str
    source: SliceId | None
    target: SliceId | None


@dataclass(frozen=True)
class Link:
    """One slice of a kernel's chain; `via` says how it is linked to the one before, "" for the first."""

    role: str
    via: str
    id: SliceId
    name: str
    short_name: str
    category: str
    start: int  # trace time
    duration: int
