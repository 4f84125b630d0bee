"""The front door: `open_trace(paths)` gives a Trace, and a Trace answers everything the viewer asks."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..base.arrays import U32
from ..base.clock import NO_CLOCKS, Clocks
from ..base.progress import CancelledCallback, ProgressCallback, never, no_progress
from ..index.analyzer import analyzer_notes
from ..index.captures import Capture, Choice
from ..index.format import LaneKind, LaneRole, RowKind
from ..index.member import Member
from ..index.options import DEFAULT_OPTIONS, IndexOptions
from ..index.store import Index
from ..index.ts_unit import time_notes
from ..query.own_clock import OwnClock, own_clock, span_of_clocks
from ..query.views import Lane, Link, Process, Row, SourceInfo, Step
from .slices import TraceSlices

if TYPE_CHECKING:
    from ..index.captures import ResolvedFiles
    from ..index.changes import State
    from ..index.opening import Opened, OpenedFiles
    from ..index.store import Verification
    from ..query.steps import SourceStep as LaneStep
    from .alignment import Alignment

NEWEST = Choice()


class Trace(TraceSlices):
    """An opened capture of one or several sources. Immutable; every answer depends on its arguments only.

    Query methods take and give trace time (lane time + the clocks' offset), in integer ns.
    """

    missing: frozenset[int] = frozenset()
    """The sources whose files are being read or cannot be: they have no lanes, and wall times alone set the
    clocks of the others.
    """
    opens: Mapping[str, int] = MappingProxyType({})
    """In the picture of a capture store: the rank that a lane stands for, by the lane's tid; Enter opens that
    rank.
    """

    folders: tuple[str, ...] = ()
    """The folders that a user named to open it."""

    answers: object | None = None
    """In the picture of a capture store and of two runs: what `Answers` of core.tables asks in place of the
    drawn slices.
    """

    def __init__(
        self,
        indexes: Sequence[Index],
        members: Sequence[Member] = (),
        captures: Sequence[Capture] = (),
        open_capture: int | None = None,
        missing: frozenset[int] = frozenset(),
    ) -> None:
        """Hold indexes and the files they belong to; `captures` are all that could be opened,
        `open_capture` is the number of the open one; the indexes of those that are `missing` are empty.
        """
        super().__init__(indexes, members)
        self.missing = missing
        self.captures, self.open_capture = tuple(captures), open_capture

    @property
    def below_logs(self) -> Trace:
        """The trace without the logs that it is shown with."""
        return self

    def with_below_logs(self, below: Trace) -> Trace:
        """Return another trace under the logs that this one is shown with."""
        return below

    @property
    def minor_lanes(self) -> Sequence[Lane]:
        """The lanes that stay hidden until somebody asks for them."""
        return ()

    @property
    def files(self) -> tuple[SourceInfo, ...]:
        """The sources that are files or logs: what is computed has no file of its own."""
        return tuple(source for source in self.sources if not source.is_computed)

    @cached_property
    def alignment(self) -> Alignment:
        """The clocks of the ranks; none where fewer than two sources are ranks."""
        from .alignment import align_processes, align_ranks  # a trace of one rank is drawn without it

        if len(self.members) < 2:
            return align_processes(self)
        return align_ranks(self.indexes, self.members, self.missing)

    @property
    def clocks(self) -> Clocks:
        """The clocks that the trace opens with: its ranks aligned."""
        from ..index.flex import is_flex  # as above

        # Several files, or a job trace, whose processes are ranks.
        may_hold_ranks = len(self.members) > 1 or (len(self.indexes) == 1 and is_flex(self.indexes[0]))
        return self.alignment.clocks if may_hold_ranks else NO_CLOCKS

    @cached_property
    def span(self) -> tuple[int, int]:
        """(start, end) in trace time over everything that is drawn, under the clocks it opens with."""
        return self.span_at(self.clocks)

    @cached_property
    def opening_span(self) -> tuple[int, int]:
        """(start, end) of what stands on the trace's clock: what the first window shows."""
        return self.opening_span_at(self.clocks)

    def opening_span_at(self, clocks: Clocks) -> tuple[int, int]:
        """Return the same under other clocks than those that the trace opens with."""
        whole = self.span_at(clocks)
        start, end = self._window(clocks) or whole
        return start, whole[1] if whole[1] == end + 1 else end

    def _window(self, clocks: Clocks) -> tuple[int, int] | None:
        if any(pid for _, pid in clocks.offsets):
            return None  # of one source whose processes have clocks of their own: all that it holds
        return span_of_clocks([(own, clocks.offset(source)) for source, own in enumerate(self._own_clocks)])

    @cached_property
    def _own_clocks(self) -> Sequence[OwnClock]:
        return [own_clock(index) for index in self.indexes]

    def on_other_clock(self, source: int) -> U32:
        """Return the positions, ascending, of the slices of a source that stand on another clock than it."""
        return self._own_clocks[source].others

    @cached_property
    def slices_elsewhere(self) -> int:
        """How many slices stand on another clock than the rest of their file."""
        return sum(len(own.others) for own in self._own_clocks)

    @cached_property
    def marks_elsewhere(self) -> int:
        """How many samples of counters and instants stand on another clock than the rest of their file."""
        return sum(own.marks for own in self._own_clocks)

    def marks_on_other_clock(self, source: int) -> int:
        """Return how many samples and instants of a source stand on another clock than it."""
        return self._own_clocks[source].marks

    def span_on_clock(self, source: int) -> tuple[int, int] | None:
        """Return (start, end) of what stands on the clock of a source, lane time; None of an empty one."""
        return self._own_clocks[source].span

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The profiler's steps in time order, under the clocks that the trace opens with."""
        return self.steps_at(self.clocks)

    def steps_at(self, clocks: Clocks = NO_CLOCKS) -> tuple[Step, ...]:
        """Return the profiler's steps in time order, in trace time under these clocks."""
        steps = []
        for source, source_steps in enumerate(self._lane_steps):
            for step in source_steps:
                self._remember(step.id, step.position)
                lane = self.lanes[self.lane_bases[source] + step.lane]
                offset = clocks.offset(source, lane.pid)
                steps.append(Step(step.label, step.start + offset, step.end + offset, step.id))
        return tuple(sorted(steps, key=lambda step: (step.start, step.end)))

    # -- files -------------------------------------------------------------------------------------------

    def defer_checks(self, verification: Verification | None = None) -> Verification:
        """Have large columns checked by a thread while they are drawn, not when they are used first: by
        `verification`, else by what does so already, or a new one.
        """
        from ..index.store import Verification  # a command that prints checks columns first

        if verification is None:
            return Verification.of(self.indexes)
        verification.attach(self.indexes)
        return verification

    def states_read(self) -> dict[str, State]:
        """Return the files as they were when they were read; pipes and logs are none."""
        from ..index.changes import states_read

        return states_read(self.indexes)

    @cached_property
    def _lane_steps(self) -> list[Sequence[LaneStep]]:
        from ..query.steps import steps_of

        return [steps_of(index, source) for source, index in enumerate(self.indexes)]


def open_trace(
    paths: str | Path | Sequence[str | Path] | ResolvedFiles,
    options: IndexOptions = DEFAULT_OPTIONS,
    *,
    index_dir: Path | None = None,
    choice: Choice = NEWEST,
    progress: ProgressCallback = no_progress,
    cancelled: CancelledCallback = never,
) -> Trace:
    """Open trace files, or what they were resolved to, indexing those that are not indexed yet.

    Of several captures among them the newest is opened, unless the choice is another; what is left out, and
    which ranks are missing, is told in the notes. In a folder what is no trace is skipped and named in the
    notes, unless nothing else is there. Raises UnreadableError when an input is no trace, UsageError for a
    choice that leaves nothing, CacheError when no index can be written anywhere. `index_dir` is short for
    the option of this name.
    """
    from ..index.opening import open_indexes

    opened = open_indexes(
        [paths] if isinstance(paths, str | Path) else paths,
        options if index_dir is None else options._replace(index_dir=index_dir),
        choice=choice,
        progress=progress,
        cancelled=cancelled,
    )
    return trace_of_opened(opened)


def trace_of(path: str | Path, index: Index) -> Trace:
    """Return the trace of one file whose index is open already."""
    from ..index.opening import opened_alone

    return trace_of_opened(opened_alone(path, index))


def trace_of_opened(opened: Opened) -> Trace:
    """Return the trace of indexes that are open already."""
    trace = Trace(opened.indexes, opened.members, opened.captures, opened.current)
    trace.folders = opened.folders
    for index in opened.indexes:
        index.notes += (*time_notes(index, time.time_ns()), *analyzer_notes(index.envelope))
    if trace.clocks is not NO_CLOCKS and trace.alignment.text:
        opened.indexes[0].notes += (trace.alignment.text,)
    return trace


def trace_so_far(files: OpenedFiles) -> Trace:
    """Return the trace of those files that are there; the others are missing."""
    return Trace(files.indexes, files.members, missing=files.missing)


__all__ = [
    "Lane",
    "LaneKind",
    "LaneRole",
    "Link",
    "Process",
    "Row",
    "RowKind",
    "SourceInfo",
    "Trace",
    "open_trace",
    "trace_of",
    "trace_of_opened",
    "trace_so_far",
]
