"""What the options of a command say, and the one way to open the traces that they name."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracelane.core.base.errors import UnreadableError, UsageError
from tracelane.core.base.heap import keep_memory
from tracelane.core.base.output import StatusLine, print_text
from tracelane.core.base.safe_text import safe
from tracelane.core.index.captures import ALL, Choice, ResolvedFiles, left_out_text
from tracelane.core.index.options import BUFFERS, IndexOptions
from tracelane.tui.text.progress import ProgressBar

from .options import STDIN, Options, is_store_path, split_side

if TYPE_CHECKING:
    from tracelane.core.logs.overlay import LogOptions
    from tracelane.core.tables.frame.scope import Scope
    from tracelane.core.tables.frame.table import Tables
    from tracelane.core.tables.selection import Selection
    from tracelane.core.trace import Trace
    from tracelane.tui.times import TimeFrame


class TraceOptions(Options):
    """What the options of a command say, and the one way to open what they name."""

    def complete(self) -> TraceOptions:
        """Return the same of traces by the names that they have once they are complete."""
        return replace(self, traces=tuple(map(complete_side, self.traces)))

    @cached_property
    def index_options(self) -> IndexOptions:
        """Where indexes lie and how they are built."""
        return IndexOptions(
            self.index_dir,
            threads=self.threads,
            force=self.force,
            cache_limit=self.cache_limit,
            buffers=BUFFERS if self.buffers is None else self.buffers,
            ts_unit=self.ts_unit,
            captures=self.captures,
        )

    @cached_property
    def choice(self) -> Choice:
        """Which of several captures is meant."""
        return Choice(self.run or "", self.capture or "", self.rank or "")

    @property
    def of_all_captures(self) -> TraceOptions:
        """The same where all captures are meant unless --capture says otherwise."""
        return replace(self, capture=self.capture or ALL)

    @property
    def selection(self) -> Selection:
        """The part of a trace that is meant, but for its range."""
        from tracelane.core.tables.selection import Selection

        return Selection(
            step=self.step,
            lanes=self.lanes,
            where=self.where,
            step_name=self.step_name,
            attribute=self.attribute,
            device_offsets=self.device_offsets,
        )

    @property
    def log_options(self) -> LogOptions:
        """How to lay the logs over a trace; UsageError for what is not ID=PID."""
        from tracelane.core.logs.overlay import LogOptions

        pairs = {}
        for text in self.cards:
            card, equals, pid = text.partition("=")
            if not equals or not card.strip() or not pid.strip():
                raise UsageError(f"--smi-device takes ID=PID, such as 0=0, not {text!r}")
            pairs[card.strip()] = pid.strip()
        return LogOptions(self.log_zone or "", self.lag, pairs)

    @property
    def is_about_clocks(self) -> bool:
        """Whether anything is said of clocks or devices of logs, which means nothing without a log."""
        return self.log_zone is not None or self.lag is not None or bool(self.cards)

    @property
    def title(self) -> str:
        """What the traces are called."""
        return ", ".join(Path(trace).name for trace in self.traces)

    @property
    def bar_title(self) -> str:
        """What the traces are called while they are read."""
        first, *others = self.traces
        name = "standard input" if first == STDIN else Path(first).name
        return f"{name} and {len(others)} more" if others else name

    @cached_property
    def files(self) -> ResolvedFiles:
        """The files that the traces stand for, each looked at once; UsageError for a store among them."""
        from tracelane.core.index.opening import resolve_files

        with ProgressBar(self.bar_title) as progress:
            return resolve_files(
                self.paths, self.choice, self.index_dir, ts_unit=self.ts_unit, progress=progress
            )

    @property
    def paths(self) -> tuple[str, ...]:
        """The traces as they were given; UsageError for a store among them."""
        for path in filter(is_store_path, self.traces):
            from tracelane.core.store.tables import STORE_TABLES

            tables = ", ".join(STORE_TABLES)
            raise UsageError(f"{path} is a store of summaries, which has {tables}: this needs traces")
        return self.traces

    def with_window_of_step(self) -> TraceOptions:
        """Return the same with --step as --from; UsageError where both are given."""
        if self.step is None:
            return self
        if self.begin is not None or self.end is not None:
            raise UsageError("--step is a range of its own: give it without --from and --to")
        return replace(self, begin=f"step:{self.step}", step=None)

    def of_sides(self) -> TraceOptions:
        """Return what holds for traces that are compared with these: the same ranks and step names."""
        return TraceOptions(
            step_name=self.step_name,
            rank=self.rank,
            threads=self.threads,
            index_dir=self.index_dir,
            cache_limit=self.cache_limit,
            buffers=self.buffers,
            force=self.force,
            ts_unit=self.ts_unit,
        )

    def store_tables(self, name: str, options: dict[str, Any]) -> Tables | None:
        """Return an analysis over a capture store, None where the traces are none. Raises UsageError."""
        if len(self.traces) != 1 or not is_store_path(self.traces[0]):
            return None
        from tracelane.core.store.opened import open_store
        from tracelane.core.store.tables import store_tables

        parts = (self.begin, self.end, self.step, self.step_name, self.skip_first, self.lanes, self.where)
        if any(part is not None for part in parts) or self.device_offsets or self.choice.ranks:
            raise UsageError(
                f"{self.traces[0]} is a store of summaries of whole traces: a part needs the trace of a rank"
            )
        return store_tables(open_store(self.traces[0]), name, options)

    def read(self, options: IndexOptions | None = None) -> Trace:
        """Open the traces and say nothing of it."""
        from tracelane.core.trace import open_trace

        with ProgressBar(self.bar_title) as progress:
            return open_trace(
                self.files, options or self.index_options, choice=self.choice, progress=progress
            )

    def open(self) -> Trace:
        """Open the traces; which of several captures is open is said on stderr.

        Raises UnreadableError for a file without events, of which nothing can be said.
        """
        from tracelane.core.read.problem import has_no_event_array
        from tracelane.core.tables.settings import check_settings

        check_settings()
        trace = self.read()
        keep_memory()
        if all(has_no_event_array(source.problems) for source in trace.sources):
            raise UnreadableError(f"{trace.members[0].path}: no trace events in it")
        for event in dict.fromkeys(event for source in trace.sources for event in source.events):
            print_text(f"tracelane: {event}", error=True)
        if left_out := left_out_text(trace.captures, trace.open_capture):
            print_text(left_out, error=True)
        return trace

    def scope(self) -> Scope:
        """Open the traces and return the part of them that is meant; UsageError where it means nothing."""
        from tracelane.core.tables.selection import selected_scope

        trace = self.open()
        if self.step is not None and (self.begin is not None or self.end is not None or self.skip_first):
            raise UsageError("--step is a range of its own: give it without --from, --to and --skip-first")
        if self.skip_first and self.begin is not None:
            raise UsageError("--from and --skip-first both say where to begin: give one of them")
        label, span = "", self.window(trace)
        if self.skip_first:
            span = self._window_after(trace, self.skip_first, trace.span[1] if span is None else span[1])
            steps = f"{self.skip_first} steps" if self.skip_first > 1 else "step"
            label = f"after the first {steps}"
        return selected_scope(trace, span, self.selection, label)

    def window(self, trace: Trace) -> tuple[int, int] | None:
        """Return [start, end) in trace time of --from and --to, None when neither is given."""
        from tracelane.core.tables.selection import steps_there

        if self.step_name is not None:
            steps_there(trace, "--step-name", self.step_name)
        if self.begin is None and self.end is None:
            return None
        from tracelane.tui.times import time_frame

        frame = time_frame(trace, trace.clocks, self.tz or "", steps=self.step_name or "")
        return typed_window(self.begin, self.end, frame, trace.span)

    def _window_after(self, trace: Trace, skipped: int, end: int) -> tuple[int, int]:
        """Return [start of the step after the first ones, end) in trace time."""
        from tracelane.core.tables.selection import steps_there

        steps = steps_there(trace, "--skip-first", self.step_name)
        if skipped >= len(steps):
            raise UsageError(f"--skip-first: there are only {len(steps):,} steps, {steps.choice}")
        start = int(steps.starts[skipped])
        if end <= start:
            raise UsageError("--to must be after the steps that --skip-first leaves out")
        return start, end


def typed_window(
    begin: str | None, end: str | None, frame: TimeFrame, span: tuple[int, int]
) -> tuple[int, int]:
    """Return [start, end) of two times as they are typed, of `span` where one is missing; UsageError where
    nothing lies between them.
    """
    from tracelane.tui.times import parse_span

    start, stop = span
    if begin is not None:
        start, reach = parse_span(begin, frame)
        stop = reach if reach > start else stop  # a step alone means all of it
    if end is not None:
        stop = parse_span(end, frame)[1]
    if stop <= start:
        raise UsageError("--from must be before --to, and within the trace")
    return start, stop


POLL_S = 0.5


def complete_side(text: str) -> str:
    """Return a trace, or a side of a comparison, by the name that the trace has once it is complete."""
    path, part = split_side(text)
    (name,) = wait_for((path,))
    return f"{name}:{part}" if part else name


def wait_for(traces: tuple[str, ...]) -> tuple[str, ...]:
    """Return what traces are called once they are complete; Ctrl+C ends the wait as it ends the program.

    A line of stderr is written over; where that is no terminal, there is a line for each new reason.
    """
    from tracelane.core.index.changes import Following

    following, line, said = Following(traces), StatusLine(), ("", "")
    try:
        while lacking := following.look().awaited:
            awaited = lacking[0]
            text = f"waiting: {awaited.text} (Ctrl+C ends)"
            if line.is_live:
                line.show(text)
            elif said != (awaited.path, awaited.why):
                print_text(safe(text), error=True)
            said = (awaited.path, awaited.why)
            time.sleep(POLL_S)
    finally:
        line.clear()
    return following.names
