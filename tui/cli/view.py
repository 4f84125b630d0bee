"""The command that opens traces in the viewer or prints one picture of them, and what there is to open."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic, time
from typing import TYPE_CHECKING, NamedTuple

from tracelane.core.base.errors import UsageError
from tracelane.core.base.output import print_coloured, print_text, terminal_size
from tracelane.core.base.safe_text import safe

from .commands import command_named
from .opened import TraceOptions, typed_window
from .options import STDIN, is_store_path
from .printing import can_draw, has_colours, take_keyboard
from .viewing import View, Viewing, viewer_host

if TYPE_CHECKING:
    from tracelane.core.trace import Trace
    from tracelane.tui.device_facts import KnownFacts
    from tracelane.tui.session import Session
    from tracelane.tui.times import TimeFrame
    from tracelane.tui.view_state import Carried, Prepared

    from ..screens.lists import ListedTrace


MAX_WAIT_S = 2.0
"""A printed picture waits so long until it is known what devices did, and what costs time."""
NOT_COUNTED = (
    "What devices did is not counted after 2 s: their lines are outlines; `tracelane breakdown` waits for it",
    "What costs time is not known after 2 s: `tracelane findings` waits for it",
)
PICTURE_WIDTH = 120
PICTURE_HEIGHT = 40
TITLE_CELLS = 24
"""Roughly what titles take of the width; the viewer fits the window to its real width."""


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


def run_view(
    options: TraceOptions,
    span: str | None,
    baseline: str | None,
    against: str | None,
    marks: str | None,
    search: str | None,
    width: int | None,
    height: int | None,
    as_text: bool,
    fresh: bool,
    traces_of_store: str,
    log_file: str | None,
) -> None:
    from tracelane.core.index.inputs import check_there
    from tracelane.core.index.opening import Gathering

    if options.traces.count(STDIN) > 1:
        raise UsageError("standard input (-) can be opened once only")
    if options.lanes:
        from tracelane.core.base.pattern import Pattern

        Pattern(options.lanes, ignore_case=True).check("--lanes")
    if against is not None and options.logs:
        raise UsageError("--against shows two runs, and logs belong to one: open them with it alone")
    if options.step is not None and span is not None:
        raise UsageError("--step is a range of its own: give it without --from, --to and --range")
    span = span if options.step is None else f"step:{options.step}"
    part = replace(options.with_window_of_step(), where=_parsed(options.where))
    if options.cards:
        options.log_options  # noqa: B018 - wrong ones are said before reading
    check_there((*options.traces, *options.logs, *(path for path in (against, marks) if path)))
    preparation = Preparation(ViewOptions(part, span, baseline, _parsed(search)), marks, fresh)
    is_whole = not (preparation.view_options.are_given or options.logs or against is not None)
    if as_text:
        if is_store_path(options.traces[0]):
            raise UsageError("--text is for traces: a capture store has `tracelane findings`")
        if not is_whole:
            raise UsageError("--text is about a whole trace: `tracelane findings` takes a part of one")
        _print_words(options.read(options.index_options._replace(force=options.force)))
        return
    viewing = Viewing(options, preparation.prepare, traces_of_store, against, preparation.view)
    with viewer_host(log_file) as host:
        viewing.glance(host.screen)
        opened = viewing.open(host.screen, options.force)
        if isinstance(opened, Gathering) or (can_draw() and take_keyboard()):
            viewing.show(opened, host)
            return
    if sys.stdout.isatty() and not can_draw() and is_whole and opened.answers is None:
        _print_words(opened)
        return
    _print(_with_logs(opened, options), preparation.view_options, width, height)
    if not options.logs and (offer := offered_log(opened, "--smi {path} adds its lanes")):
        print_text(offer)


class Preparation(NamedTuple):
    """What is laid over a trace, and in which view it is shown, when it is opened first and anew."""

    view_options: ViewOptions
    marks: str | None
    fresh: bool

    @property
    def view(self) -> View:
        """Which view is shown first: with logs or marks to be added it is another one than the last time."""
        is_asked_for = self.view_options.are_given or self.view_options.part.logs or self.marks
        return "asked for" if is_asked_for else "fresh" if self.fresh else "kept"

    def prepare(self, trace: Trace, before: Carried | None) -> Prepared:
        """Return what the viewer shows of a trace; `before`: what it showed of it until now: opened
        anew the trace has the marks, logs and views that it had.
        """
        from tracelane.core.export.marks import read_marks
        from tracelane.core.logs.counters import with_cheap_lanes
        from tracelane.tui import view_state

        trace = _with_logs(with_cheap_lanes(trace), self.view_options.part)
        if self.marks:
            view_state.import_marks(trace, Path(self.marks))
        if before is not None:
            if before.marks is not None and (marks := read_marks(before.marks)):
                view_state.keep_marks(trace, marks)
            trace = view_state.with_logs_of(before, trace)
            session, history = view_state.session_over(before, trace), view_state.history_over(before, trace)
            return view_state.Prepared(trace, session, (), history, before.computed)
        if self.view_options.are_given:
            width, _ = terminal_size()
            session = session_of_options(trace, self.view_options, width)
        else:
            session = None if self.fresh else view_state.saved_session(trace)

        def offers() -> tuple[str, ...]:
            has_logs = bool(self.view_options.part.logs)
            offer = "" if has_logs else offered_log(trace, "{{smi}} adds its power and load lanes")
            return (offer,) if offer else ()

        return view_state.Prepared(trace, session, offers=offers)


def _with_logs(trace: Trace, options: TraceOptions) -> Trace:
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


def _print(trace: Trace, view_options: ViewOptions, width: int | None, height: int | None) -> None:
    from tracelane.tui.text.picture import picture, plain_picture
    from tracelane.tui.text.summary import summary, writable

    columns, lines = terminal_size(PICTURE_WIDTH, PICTURE_HEIGHT)
    width, height = width or columns, height or lines
    session = session_of_options(trace, view_options, width)
    known, size = _counted(trace, session), (width, height)
    if has_colours(can_draw()):
        from rich.console import Console

        console = Console(width=width, force_terminal=True)  # colours were asked for, whatever this writes to
        with console.capture() as drawn:
            console.print(picture(trace, session, size, known=known), soft_wrap=True)
        print_coloured(drawn.get(), end="")
    else:
        print_text(plain_picture(trace, session, size, known=known))
    print_text(writable(summary(trace, lanes=False)))


def _print_words(trace: Trace) -> None:
    """Print the verdict and what takes most time, then what the trace is, as lines that are read aloud."""
    from tracelane.core.tables.frame.scope import Scope
    from tracelane.core.tables.overview.overview import saved_overview
    from tracelane.core.tables.worker import findings_by_worker
    from tracelane.tui.device_shares import device_facts
    from tracelane.tui.text.overview import overview_text
    from tracelane.tui.text.summary import summary, writable

    scope = Scope(trace, clocks=trace.clocks)
    facts = device_facts(scope)
    groups = saved_overview(scope, facts.states.of_devices)
    print_text(writable(overview_text(scope, facts.spent, groups, findings_by_worker(scope))))
    print_text(writable(summary(trace, lanes=False)))


def _counted(trace: Trace, session: Session) -> KnownFacts:
    """Return what devices did and what costs time, as far as MAX_WAIT_S are enough."""
    from tracelane.core.base.errors import Cancelled
    from tracelane.core.logs.more_sources import own_clocks, own_trace
    from tracelane.core.tables.frame.scope import Scope
    from tracelane.core.tables.worker import findings_by_worker
    from tracelane.tui.device_facts import KnownFacts
    from tracelane.tui.device_shares import device_facts
    from tracelane.tui.draw.verdict import VerdictFacts

    until, facts, verdict = monotonic() + MAX_WAIT_S, None, VerdictFacts(missing=NOT_COUNTED)
    own = own_trace(trace)
    scope = Scope(own, clocks=own_clocks(own, session.clocks), cancelled=lambda: monotonic() > until)
    with suppress(Cancelled):
        facts = device_facts(scope)
        leading = findings_by_worker(scope).leading
        verdict = verdict._replace(leading=None if leading is None else leading.as_leading, is_judged=True)
    return KnownFacts.of(facts, verdict)


def session_of_options(trace: Trace, view_options: ViewOptions, width: int) -> Session:
    """Return the view that the options ask for; where they leave something open, the trace's first view."""
    from tracelane.core.trace.device_clocks import with_device_clocks
    from tracelane.tui.actions.clocks import with_clocks
    from tracelane.tui.actions.view import first_session, view_of
    from tracelane.tui.draw.lane_choice import only_lanes
    from tracelane.tui.steps import step_marks
    from tracelane.tui.times import parse_range, time_frame

    part, cells = view_options.part, max(1, width - TITLE_CELLS)
    session = replace(first_session(trace, cells), only=part.lanes or "", zone=part.tz or "")
    session = replace(session, search=view_options.search or "", filter=part.where or "")
    if session.only:
        only_lanes(trace, session.only)  # an expression that takes too long is said now
    if part.device_offsets:
        session = with_clocks(trace, session, with_device_clocks(trace, session.clocks, part.device_offsets))
    if part.step_name:
        if not step_marks(trace, session.clocks, part.step_name):
            raise UsageError(f"--step-name: no slice is called {part.step_name}")
        session = replace(session, steps=part.step_name)
    frame = time_frame(trace, session.clocks, session.zone, steps=session.steps)
    if view_options.span is not None:
        session = replace(session, range=parse_range(view_options.span, frame))
    if view_options.baseline is not None:
        session = replace(session, baseline=parse_range(view_options.baseline, frame))
    if part.begin is None and part.end is None:
        return session
    start, stop = _window(trace, part, frame)
    return replace(session, viewport=view_of(start, stop, cells), cursor=start)


def _window(trace: Trace, part: TraceOptions, frame: TimeFrame) -> tuple[int, int]:
    """Return the time from --from to --to, as far as the trace has it; UsageError where it has none."""
    start, stop = typed_window(part.begin, part.end, frame, trace.opening_span)
    low, high = trace.span
    if stop <= low or start >= max(high, low + 1):
        raise UsageError("--from must be before --to, and within the trace")
    return max(start, low), min(stop, max(high, start + 1))


def _parsed(text: str | None) -> str | None:
    """Return a filter's text without what surrounds it; UsageError where it means nothing."""
    if text is None:
        return None
    from tracelane.core.query.filter import parse

    return parse(text).text


RECENT = 10
NOTHING = (
    "no traces here and none opened lately: try `tracelane TRACE`, `tracelane demo` or `tracelane --help`"
)


def pick() -> int:
    """List what can be opened; on a terminal open what is chosen of it. Return the exit code."""
    from tracelane.core.index.inputs import traces_in

    here = traces_in(Path(os.curdir))
    folders = [path for path in sorted(Path(os.curdir).glob("*/")) if len(traces_in(path)) > 1]
    known = {path.absolute() for path in here}
    choices = [*here, *folders, *(path for path in _recent() if path not in known)]
    if not choices:
        print_text(NOTHING, error=True)
        return 0
    if not (sys.stdin.isatty() and can_draw()):
        for choice in choices:
            print_text(safe(str(choice)))
        return 0
    from tracelane.core.base.private import config_path

    from ..config import read_config
    from ..screens.lists import TraceList

    chosen = TraceList(_listed(choices), read_config(config_path())).run()
    if chosen is None:
        return 0
    command_named("view").main(["--", str(choices[chosen])], "tracelane", standalone_mode=False)
    return 0


def _listed(paths: Sequence[Path]) -> list[ListedTrace]:
    from tracelane.core.index.inputs import traces_in

    from ..screens.lists import ListedTrace

    listed = []
    for path in paths:
        files = traces_in(path)  # none in a file
        states = [each.stat() for each in files or [path]]
        age = time() - max(state.st_mtime for state in states)
        listed.append(ListedTrace(str(path), sum(state.st_size for state in states), age, len(files)))
    return listed


def _recent() -> list[Path]:
    """Return the paths of recently opened traces that still exist, the latest first."""
    from tracelane.core.index.cached import list_cache

    return [path for path in (Path(entry.path) for entry in list_cache()) if path.is_file()][:RECENT]
