"""Plain values that a Trace returns: identities of slices, sources, processes, lanes, rows, steps,
flows, links of a chain; and the titles of processes, lanes and ranks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.safe_text import safe
from ..index.format import LaneKind, LaneRole, RowKind
from ..index.pids import SHARED_PID

if TYPE_CHECKING:
    from ..base.pattern import Pattern
    from ..index.member import Member


COMPUTED = "computed"
"""The form of a source that was computed, in place of a file's."""


@dataclass(frozen=True)
class EventId:
    """What is named by the ordinal of an event in its source's event array: an identity that outlives a
    process. One kind of thing never equals another.
    """

    source: int
    ordinal: int


class SliceId(EventId):
    """A slice, named by its (begin) event. Rows, marks, flows and hits name slices by it."""


class SourceInfo(NamedTuple):
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


class Process(NamedTuple):
    """A process of a source; `lanes` are indices in `Trace.lanes`. `pid` is JSON text."""

    source: int
    number: int  # in the source's process table
    pid: str
    name: str
    labels: str
    title: str
    lanes: range
    empty: int
    aside: bool = False
    """Whether this is no process but the profiler's own notes, or events without a pid beside others."""


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


class SliceDetail(NamedTuple):
    """One slice in full; times are ns, the position that in the index."""

    id: SliceId
    position: int
    name: str
    category: str
    duration: int
    self_time: int
    children: int
    overlap: bool
    unclosed: bool
    clamped: bool
    end_ordinal: int | None


class Step(NamedTuple):
    """One iteration marked by the profiler, in trace time."""

    label: str
    start: int
    end: int
    id: SliceId


class SliceFlow(NamedTuple):
    """One flow between slices; None where an end lies in no slice."""

    category: str
    source: SliceId | None
    target: SliceId | None


class Link(NamedTuple):
    """One slice of a kernel's chain; `via` says how it is linked to the one before, "" for the first."""

    role: str
    via: str
    id: SliceId
    name: str
    short_name: str
    category: str
    start: int  # trace time
    duration: int


def plain(text: str) -> str:
    """Return the JSON text of a pid, tid or id as people write it: strings without their quotes, pids without
    the mark of a device that shares one (core/index/shared_pids.py).
    """
    if text.startswith('"'):
        try:
            return safe(str(json.loads(text)))
        except (ValueError, RecursionError):
            return safe(text)
    return safe(text.removesuffix(SHARED_PID))


def id_value(text: str) -> Any:
    """Return the value of the JSON text of a pid or tid; the text itself where it is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def process_title(pid: str, name: str, labels: str) -> str:
    """Return a process's title: name, pid and labels, as in "python 1488737 · AIU 0"."""
    title, marks = safe(name).strip(), safe(labels).strip()
    number = plain(pid).strip()
    if number in ("", "null"):
        number = "" if title else "(no process)"
    head = title if title == number else " ".join(part for part in (title, number) if part)
    if title.endswith(f" {number}"):
        head = title  # as in "MTIA 17"
    elif not title and number and number.lstrip("-")[:1].isdigit():
        head = f"process {number}"
    return f"{head} · {marks}" if marks and marks != title else head


def lane_title(kind: LaneKind, tid: str, name: str, ids: int = 0) -> str:
    """Return a lane's title: thread name or number, async category and id, counter name."""
    title, number = safe(name).strip(), plain(tid).strip()
    if kind is LaneKind.COUNTER:
        counter = title or "(counter)"
        return f"{counter} {number}" if number not in ("", "null") else counter
    if kind is LaneKind.ASYNC:
        category = title or "async"
        if ids > 1:
            return f"{category} ({ids:,} ids)"
        return f"{category} {number}" if number not in ("", "null") else category
    if title:
        return title
    if number in ("", "null"):
        return "(no thread)"
    return f"thread {number}" if number.lstrip("-")[:1].isdigit() else number


def rank_titles(members: Sequence[Member]) -> Mapping[int, str]:
    """Return by source what its rank is called, "rank 1 · host"; nothing where there are not two ranks.
    Files of two runs have titles, too.
    """
    titles = {
        source: f"{member.title} · {member.host}" if member.host else member.title
        for source, member in enumerate(members)
        if member.rank is not None or member.side
    }
    return titles if len(titles) > 1 else {}


def names_rank(pattern: Pattern, title: str) -> bool:
    """Tell whether a pattern means a rank: it matches its title from the start on, and whole words of it, so
    that "rank 1" is not rank 10 and "1" is no rank.
    """
    end = pattern.end_of_match(title)
    if not end:
        return False
    return end == len(title) or not (title[end - 1].isalnum() and title[end].isalnum())
