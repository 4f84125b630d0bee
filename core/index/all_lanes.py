"""All lanes to the columns in display order; where it pays a copy of this process writes the latter half."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..base.errors import CacheError, Cancelled
from ..base.progress import CancelledCallback, Progress, ProgressCallback
from ..ingest.columns import U32
from .asyncs import AsyncLane, Asyncs
from .beside import Beside
from .columns_out import Columns
from .contents import of_thread, put_in_order
from .counters import CounterLane, Counters
from .flows import FlowEnds
from .gather import ByLane
from .lane_out import LaneWriter, Written
from .lanes import LaneEntry

STAGE = "index"
REST = "rest"
"""Folder of the columns that a copy writes."""
WORTH_IT = 1 << 17
"""Fewer events are not worth a copy's beginning and the putting behind."""
MANY = 1 << 20
"""After lanes of so many slices, memory of what they were made of is given back."""


@dataclass(frozen=True)
class Lane:
    """A lane to be written: its process, the numbers of its texts, and its number among those of threads."""

    entry: LaneEntry
    process: int
    tid: int
    name: int
    thread: int | None


@dataclass(frozen=True)
class Contents:
    """Where the contents of lanes are found."""

    threads: ByLane
    asyncs: Asyncs
    counters: Counters
    ends: FlowEnds

    def size(self, lane: Lane) -> int:
        """Return how many events a thread's lane has, 0 for others: these are short."""
        return 0 if lane.thread is None else self.threads.size(lane.thread)


@dataclass(frozen=True)
class _Rest:
    """What a copy has written."""

    written: Written
    entries: dict[str, dict[str, object]]  # of the columns
    bound: dict[int, U32]  # what the flow events of each thread belong to


class AllLanes:
    """Writes lanes that were numbered before."""

    def __init__(
        self,
        contents: Contents,
        folder: Path,
        let_go: Callable[[], None],
        progress: ProgressCallback,
        cancelled: CancelledCallback,
    ) -> None:
        """`folder`: the index; `let_go` gives back memory of what lanes were made of."""
        self._contents, self._folder, self._let_go = contents, folder, let_go
        self._progress, self._cancelled = progress, cancelled

    def write(self, lanes: Sequence[Lane], writer: LaneWriter, apart: bool) -> None:
        """Write all lanes; with `apart` a copy may take half of them. Raises CacheError and Cancelled."""
        cut = self._half(lanes) if apart else len(lanes)
        rest, written = lanes[cut:], writer.written
        with Beside(lambda: self._write_rest(rest, writer.categories), bool(rest), self._folder) as beside:
            for number, lane in enumerate(lanes[:cut], 1):
                before = written.slices
                self._write_lane(lane, writer)
                if written.slices - before >= MANY:
                    self._let_go()
                if number % 64 == 0 or number == len(lanes):
                    self._progress(Progress(STAGE, number, len(lanes), written.slices))
            if rest:
                self._take(beside.result(), writer)
                self._progress(Progress(STAGE, len(lanes), len(lanes), written.slices))

    def _half(self, lanes: Sequence[Lane]) -> int:
        """Return how many lanes have about half of the events; all, where writing the rest apart is not worth
        it.
        """
        before = np.cumsum([0, *map(self._contents.size, lanes)])
        cut = int(np.abs(2 * before - before[-1]).argmin())
        return cut if before[-1] - before[cut] >= WORTH_IT else len(lanes)

    def _write_rest(self, lanes: Sequence[Lane], categories: int) -> _Rest:
        """Write lanes to columns of their own."""
        folder = self._folder / REST
        shutil.rmtree(folder, ignore_errors=True)  # of a copy that was ended
        try:
            folder.mkdir()
        except OSError as error:
            raise CacheError(f"cannot write the index ({folder}): {error.strerror or error}") from error
        with Columns(folder) as columns:
            writer = LaneWriter(columns, categories)
            for lane in lanes:
                self._write_lane(lane, writer)
            columns.finish()
            threads = [lane.thread for lane in lanes if lane.thread is not None]
            return _Rest(writer.written, columns.entries, self._contents.ends.bound_in(threads))

    def _take(self, rest: _Rest, writer: LaneWriter) -> None:
        """Put behind what was written apart."""
        self._contents.ends.take(rest.bound, writer.written.slices)
        with Columns(self._folder / REST) as columns:
            columns.entries |= rest.entries
            writer.take(rest.written, columns)
        shutil.rmtree(self._folder / REST)

    def _write_lane(self, lane: Lane, writer: LaneWriter) -> None:
        if self._cancelled():
            raise Cancelled
        contents, entry, content = self._contents, lane.entry, lane.entry.content
        place = (lane.process, lane.tid, lane.name)
        if isinstance(content, AsyncLane):
            writer.lane(entry, *place, *contents.asyncs.contents(content))
        elif isinstance(content, CounterLane):
            writer.counter(entry, *place, contents.counters.contents(content))
        elif lane.thread is not None:
            events = contents.threads.of(lane.thread)
            put_in_order(events)
            slices, instants, unmatched = of_thread(events)
            writer.lane(entry, *place, slices, instants, contents.ends.in_lane(lane.thread))
            writer.written.unmatched_end += unmatched
