"""What the viewer is to show, as a value: which traces, in which view; and what comes after it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from tracelane.core.base.errors import UsageError
from tracelane.core.base.output import terminal_size
from tracelane.core.base.safe_text import safe

from .trace_options import TraceOptions, typed_window

if TYPE_CHECKING:
    from tracelane.core.base.errors import DamagedIndexError, TracelaneError
    from tracelane.core.store.opened import CaptureStore
    from tracelane.core.trace import Trace
    from tracelane.tui.config import Config
    from tracelane.tui.session import Session
    from tracelane.tui.times import TimeFrame
    from tracelane.tui.view_state import Carried, Next, Prepared

TITLE_CELLS = 24
"""Roughly what titles take of the width; the viewer fits the window to its real width."""
BY_HOST = "host"
"""What groups the ranks of a store at first."""

View: TypeAlias = Literal["asked for", "kept", "fresh"]
"""Which view a trace is opened in: of options, of the last time, or its own."""


class ViewOptions(NamedTuple):
    """The view that options ask for."""

    part: TraceOptions = TraceOptions()
    span: str | None = None
    baseline: str | None = None
    search: str | None = None

    @property
    def are_given(self) -> bool:
        part = self.part
        times = (part.begin, part.end, part.tz, part.step_name, self.span, self.baseline)
        return any((*times, part.lanes, part.where, part.device_offsets, self.search))


class LeftView(NamedTuple):
    """A viewer that was left: what for, and what it showed last."""

    following: Next | None  # None: the user has quit
    is_ready: bool  # all of the trace was there
    trace: Trace
    before: Carried | None  # its view, where that stays
    config: Config


class ViewRequest(NamedTuple):
    """What the viewer is to show."""

    options: TraceOptions
    view_options: ViewOptions = ViewOptions()
    marks: str | None = None  # a file with marks to be added
    is_fresh: bool = False
    against: str | None = None  # a run that is shown below
    traces_of_store: str = ""  # where the traces of a store are, where it does not say
    store: CaptureStore | None = None  # once it is open
    grouping: str = BY_HOST  # what groups its ranks
    before: Carried | None = None  # the view until now, which stays
    notes: tuple[str, ...] = ()  # what is said as soon as it is shown
    rebuilt: tuple[Path | None, ...] = ()  # indexes that were damaged and discarded

    @property
    def view(self) -> View:
        """Which view is shown: with a second run, logs or added marks it is not that of the last time."""
        if self.view_options.are_given or self.options.logs or self.marks or self.against:
            return "asked for"
        return "fresh" if self.is_fresh else "kept"

    @property
    def theme(self) -> str:
        """The colours until now, "" for those of the settings."""
        return "" if self.before is None else self.before.theme

    def after(self, left: LeftView) -> ViewRequest | None:
        """Return what is shown after a viewer that was left, None where the user has quit. Raises the damage
        of an index that was rebuilt for it already.
        """
        from tracelane.core.index.changes import finished_name
        from tracelane.tui.view_state import GroupRanks, OpenCapture, OpenRank, Reopen, ShowAgainst

        after = self._replace(before=None, notes=() if left.is_ready else self.notes)
        match left.following:
            case OpenRank():  # all ranks again, once that one is left
                return after._replace(before=left.before)
            case GroupRanks(by):
                return after._replace(grouping=by)
            case OpenCapture(number):
                return after._replace(options=replace(self.options, capture=str(number)))
            case ShowAgainst(path):
                return after._replace(against=path or None)
            case Reopen(damage):
                if damage is not None:
                    after = _with_rebuilt(after, damage)
                traces = tuple(map(finished_name, self.options.traces))
                options = replace(self.options, traces=traces)  # whose files are looked at anew
                return after._replace(options=options, store=None, before=left.before)
            case None:
                return None

    def without_what_failed(self, error: TracelaneError) -> ViewRequest | None:
        """Return what is shown where this cannot be opened, and says why: the first of two runs, or ranks by
        host; None where nothing less is asked for.
        """
        if self.against:
            return self._replace(against=None, notes=(f"against {self.against}: {error}",))
        if self.grouping != BY_HOST and isinstance(error, UsageError):  # no file says so
            return self._replace(grouping=BY_HOST, notes=(str(error),))
        return None

    def prepared(self, trace: Trace) -> Prepared:
        """Return what the viewer shows of a trace: with the logs, marks and views that it had `before`, else
        with those that were asked for.
        """
        from tracelane.core.export.marks import read_marks
        from tracelane.core.logs.counters import with_cheap_lanes
        from tracelane.tui import view_state

        before = self.before
        trace = with_logs(with_cheap_lanes(trace), self.view_options.part)
        if self.marks:
            view_state.import_marks(trace, Path(self.marks))
        if before is not None:
            if before.marks is not None and (marks := read_marks(before.marks)):
                view_state.keep_marks(trace, marks)
            trace = view_state.with_logs_of(before, trace)
            session, history = view_state.session_over(before, trace), view_state.history_over(before, trace)
            return view_state.Prepared(trace, session, self.notes, history, before.computed)
        if self.view_options.are_given:
            width, _ = terminal_size()
            session = session_of_options(trace, self.view_options, width)
        else:
            session = None if self.is_fresh else view_state.saved_session(trace)

        def offers() -> tuple[str, ...]:
            has_logs = bool(self.view_options.part.logs)
            offer = "" if has_logs else offered_log(trace, "{{smi}} adds its power and load lanes")
            return (offer,) if offer else ()

        return view_state.Prepared(trace, session, self.notes, offers=offers)


def _with_rebuilt(request: ViewRequest, damage: DamagedIndexError) -> ViewRequest:
    if damage.folder in request.rebuilt:
        raise damage
    notes = (f"{damage}; it was rebuilt",)
    return request._replace(notes=notes, rebuilt=(*request.rebuilt, damage.folder))


def with_logs(trace: Trace, options: TraceOptions) -> Trace:
    if not options.logs:
        return trace
    from tracelane.core.logs.overlay import open_overlay

    return open_overlay(trace, options.logs, options.log_options)


def offered_log(trace: Trace, how: str) -> str:
    """Return a line that offers the aiu-smi log beside the trace and says how to lay it over; empty where
    there is none.
    """
    from tracelane.core.logs.header import nearby_logs

    logs = nearby_logs(trace)
    if not logs:
        return ""
    more = f" (and {len(logs) - 1} more)" if len(logs) > 1 else ""
    return f"Found {safe(logs[0].name)}{more}: {how.format(path=safe(str(logs[0])))}"


def session_of_options(trace: Trace, view_options: ViewOptions, width: int) -> Session:
    """Return the view that the options ask for; where they leave something open, the trace's first view."""
    from tracelane.core.trace.device_clocks import with_device_clocks
    from tracelane.tui.actions.clocks import with_clocks
    from tracelane.tui.actions.view import first_session, view_of
    from tracelane.tui.draw.lane_choice import only_lanes
    from tracelane.tui.steps import step_marks
    from tracelane.tui.times import parse_range, time_frame

    part, cells = view_options.part, max(1, width - TITLE_CELLS)
    session = first_session(trace, cells)._replace(only=part.lanes or "", zone=part.tz or "")
    session = session._replace(search=view_options.search or "", filter=part.where or "")
    if session.only:
        only_lanes(trace, session.only)  # an expression that takes too long is said now
    if part.device_offsets:
        session = with_clocks(trace, session, with_device_clocks(trace, session.clocks, part.device_offsets))
    if part.step_name:
        if not step_marks(trace, session.clocks, part.step_name):
            raise UsageError(f"--step-name: no slice is called {part.step_name}")
        session = session._replace(steps=part.step_name)
    frame = time_frame(trace, session.clocks, session.zone, steps=session.steps)
    if view_options.span is not None:
        session = session._replace(range=parse_range(view_options.span, frame))
    if view_options.baseline is not None:
        session = session._replace(baseline=parse_range(view_options.baseline, frame))
    if part.begin is None and part.end is None:
        return session
    start, stop = _window(trace, part, frame)
    return session._replace(viewport=view_of(start, stop, cells), cursor=start)


def _window(trace: Trace, part: TraceOptions, frame: TimeFrame) -> tuple[int, int]:
    """Return the time from --from to --to, as far as the trace has it; UsageError where it has none."""
    start, stop = typed_window(part.begin, part.end, frame, trace.opening_span)
    low, high = trace.span
    if stop <= low or start >= max(high, low + 1):
        raise UsageError("--from must be before --to, and within the trace")
    return max(start, low), min(stop, max(high, start + 1))
