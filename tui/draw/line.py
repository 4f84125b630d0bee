"""What a line of the lane area stands for, and the keys that name lanes and processes in a session."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from tracelane.core.index.format import LaneKind
from tracelane.core.trace import Lane, Process, Trace

from ..session import LaneKey, RowKey
from .ranks import Halves, rank_heads

_DIGITS = re.compile(r"\d+")


class LineKind(IntEnum):
    """What a line of the lane area shows."""

    PROCESS = 0  # title of a process; folded: busy time of its lanes beside it
    ROW = 1  # one row of a lane
    LANE = 2  # a folded lane: busy time in one line
    MORE = 3  # "+n rows" of a deep lane
    QUIET = 4  # "n quiet threads"
    NOTE = 5  # what is not shown, counted
    RULE = 6  # between pinned lanes and the others
    MISSING = 7  # a rank whose file is not there yet, and why
    DELTA = 8  # between two runs: how much longer each step of the second takes
    RANKS = 9  # some of many ranks that are folded: when they wait and are waited for


class Half(IntEnum):
    """Which lines of a row a line is: a row has one, or two where a device works in it."""

    WHOLE = 0
    UPPER = 1
    LOWER = 2


class Line(NamedTuple):
    """One line of the lane area. `depth` counts the lane's rows from 0; -1 for lines that are no row."""

    kind: LineKind
    title: str
    process: Process | None = None
    lane: Lane | None = None
    depth: int = -1
    folded: bool = False
    overlap: bool = False  # the row is an extra one for slices that overlap without nesting
    pinned: bool = False
    members: tuple[int, ...] = ()  # lanes that a QUIET line stands for
    part: str = ""  # of RANK_PARTS, that a line of a folded rank shows; empty: all that its devices do
    halves: Halves = ()  # the ranks of a RANKS line
    frames: range = range(0)  # depths of the Python frames that the row stands for, itself among them
    half: Half = Half.WHOLE  # that the line shows of its row

    @property
    def row_key(self) -> RowKey | None:
        """Name of the row, None for lines that are no row of a lane."""
        if self.lane is None or self.kind not in (LineKind.ROW, LineKind.LANE):
            return None
        return RowKey(lane_key(self.lane), max(0, self.depth))

    def holds(self, key: RowKey | None) -> bool:
        if key is not None and self.kind is LineKind.RANKS:
            return any(rank.source == key.lane.source for rank in self.ranks)
        if key is None or (max(0, self.depth) != key.depth and key.depth not in self.frames):
            return False
        own = self.row_key
        return own is not None and own.lane == key.lane

    @property
    def ranks(self) -> tuple[Process, ...]:
        """The ranks of a RANKS line."""
        return tuple(rank for half in self.halves for rank in half)

    def of_latest(self, latest: Sequence[int]) -> Line:
        """Return a RANKS line as one of its latest rank, by the sources of all ranks, the latest first; any
        other line as it is.
        """
        own = {rank.source: rank for rank in self.ranks}
        chosen = next((own[source] for source in latest if source in own), None)
        return self if chosen is None else self._replace(process=chosen)

    @property
    def fold_key(self) -> LaneKey | tuple[int, str] | None:
        """What Session.folded and unfolded call it."""
        if self.lane is not None:
            return lane_key(self.lane)
        if self.process is not None:
            return process_key(self.process)
        return None


def lane_key(lane: Lane) -> LaneKey:
    return LaneKey(
        lane.source, lane.pid, lane.tid, int(lane.kind), "" if lane.kind == LaneKind.THREAD else lane.name
    )


def process_key(process: Process) -> tuple[int, str]:
    return (process.source, process.pid)


def holders(trace: Trace, process: Process) -> set[tuple[int, str]]:
    """Return the keys of what a process's lanes fold into: the process itself, and its rank."""
    rank = rank_heads(trace).get(process.source)
    return {process_key(process)} | (set() if rank is None else {process_key(rank)})


def alike(title: str) -> str:
    """Return a title with its digits stripped: what `hidden_alike` compares."""
    return _DIGITS.sub("#", title).strip()


def has_overlaps(lane: Lane, depth: int) -> bool:
    """Tell whether a row is an extra one, for slices that overlap others without nesting in them."""
    slices_rows = len(lane.rows) - (1 if lane.instants else 0)
    return bool(lane.overlapping) and lane.depth <= depth < slices_rows
