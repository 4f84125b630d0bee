"""`tracelane view`: open traces in the viewer, or print one picture where there is no terminal."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from tracelane.core.base.errors import UsageError
from tracelane.core.base.output import print_coloured, print_text
from tracelane.core.base.safe_text import safe

from .hosting import viewer_host
from .options import DEVICE_OFFSET, STDIN, TRACES, choice_options, completed, with_index_options
from .scoped import TZ
from .smi import SmiOptions, smi_options
from .terminal import can_draw, take_keyboard, wants_colour
from .values import WholeNumber
from .viewing import Viewing

if TYPE_CHECKING:
    from tracelane.core.index.choice import Choice
    from tracelane.core.index.options import IndexOptions
    from tracelane.core.logs.overlay import LogOptions
    from tracelane.core.trace import Trace
    from tracelane.tui.carried import Carried
    from tracelane.tui.prepared import Prepared
    from tracelane.tui.session import Session
    from tracelane.tui.times import TimeFrame

PICTURE_WIDTH = 120
PICTURE_HEIGHT = 40
TITLE_CELLS = 24
"""Roughly what titles take of the width; the viewer fits the window to its real width."""


class ViewOptions(NamedTuple):
    """The view that options ask for."""

    begin: str | None = None
    end: str | None = None
    span: str | None = None
    baseline: str | None = None
    lanes: str | None = None
    tz: str | None = None
    search: str | None = None
    where: str | None = None
    steps: str | None = None
    device_offsets: tuple[str, ...] = ()


@click.command()
@TRACES
@click.option("--from", "begin", metavar="TIME", help="Show from here: +12.5ms, @µs, 09:28:06.1 or step:4.")
@click.option("--to", "end", metavar="TIME", help="Show up to here; of a step, up to its end.")
@click.option(
    "--step",
    metavar="N",
    help="Show this step, and take it as the range; nth:K: the K-th, nth:-1 the last.",
    shell_complete=completed("steps"),
)
@click.option("--range", "span", metavar="FROM..TO", help="Take this as the range; or step:4, mark:NAME.")
@click.option("--baseline", metavar="FROM..TO", help="Compare the tables with this range or step.")
@click.option(
    "--step-name",
    "steps",
    metavar="NAME",
    help="Take the slices of this name for steps, numbers in it aside.",
)
@click.option("--marks", metavar="FILE", help="Add the marks that :save marks wrote to a file.")
@click.option("--lanes", metavar="REGEX", help="Show only lanes whose title matches.")
@click.option("--search", metavar="FILTER", help="Mark the slices that match, as / does.")
@click.option(
    "--where",
    metavar="FILTER",
    help="Draw only the slices that match, as :filter does.",
)
@click.option("--width", type=WholeNumber(20, 1000), help="Columns of the printed picture.")
@click.option("--height", type=WholeNumber(4, 1000), help="Lines of the printed picture.")
@TZ
@click.option("--fresh", is_flag=True, help="Start with a fresh view, not with that of the last time.")
@click.option("--log", "log_file", metavar="FILE", help="Write what the viewer does, and errors, to a file.")
@click.option(
    "--traces", "traces_of_store", metavar="WHERE", default="", help="The folder of a store's traces."
)
@choice_options
@smi_options
@DEVICE_OFFSET
@with_index_options
def view(
    traces: tuple[str, ...],
    begin: str | None,
    end: str | None,
    step: str | None,
    span: str | None,
    baseline: str | None,
    steps: str | None,
    marks: str | None,
    lanes: str | None,
    search: str | None,
    where: str | None,
    width: int | None,
    height: int | None,
    tz: str | None,
    fresh: bool,
    traces_of_store: str,
    log_file: str | None,
    smi: SmiOptions,
    device_offsets: tuple[str, ...],
    index_options: IndexOptions,
    choice: Choice,
) -> None:
    """Open traces in the viewer; several are shown together.

    `-` reads from standard input, a directory stands for the traces in it. Where stdout is no terminal (or
    TERM is unset or dumb) one picture and a summary are printed instead.
    """
    from tracelane.core.index.gathering import Gathering
    from tracelane.core.index.inputs import check_there

    if traces.count(STDIN) > 1:
        raise UsageError("standard input (-) can be opened once only")
    _check_lanes(lanes)
    if step is not None:
        if begin is not None or end is not None or span is not None:
            raise UsageError("--step is a range of its own: give it without --from, --to and --range")
        begin = span = f"step:{step}"
    options = smi.log_options
    check_there((*traces, *smi.paths, *([marks] if marks else [])))
    view_options = ViewOptions(
        begin, end, span, baseline, lanes, tz, _parsed(search), _parsed(where), steps, device_offsets
    )
    preparation = Preparation(view_options, smi.paths, options, marks, fresh)
    viewing = Viewing(traces, index_options, choice, preparation.prepare, traces_of_store)
    with viewer_host(log_file) as host:
        opened = viewing.open(index_options.force)
        if isinstance(opened, Gathering) or (can_draw() and take_keyboard()):
            viewing.show(opened, host)
            return
    _print(_with_logs(opened, smi.paths, options), view_options, width, height)
    if not smi.paths and (offer := offered_log(opened, "--smi {path} lays it over")):
        print_text(offer)


@dataclass(frozen=True)
class Preparation:
    """What is laid over a trace, and in which view it is shown, when it is opened first and anew."""

    view_options: ViewOptions
    logs: tuple[str, ...]
    log_options: LogOptions
    marks: str | None
    fresh: bool

    def prepare(self, trace: Trace, before: Carried | None) -> Prepared:
        """Return what the viewer shows of a trace; `before`: what it showed of it until now."""
        from tracelane.core.logs.counters import with_cheap_lanes
        from tracelane.tui.view_state import import_marks

        trace = _with_logs(with_cheap_lanes(trace), self.logs, self.log_options)
        if self.marks:
            import_marks(trace, Path(self.marks))
        return self._first(trace) if before is None else self._anew(trace, before)

    def _first(self, trace: Trace) -> Prepared:
        from tracelane.tui.prepared import Prepared

        offer = "" if self.logs else offered_log(trace, "{{smi}} adds its power and load lanes")
        return Prepared(trace, _first_view(trace, self.view_options, self.fresh), (offer,) if offer else ())

    @staticmethod
    def _anew(trace: Trace, before: Carried) -> Prepared:
        """Return the trace with the marks, logs and views that it had before it was opened anew."""
        from tracelane.core.export.marks import read_marks
        from tracelane.tui.carried import history_over, session_over, with_logs_of
        from tracelane.tui.prepared import Prepared
        from tracelane.tui.view_state import keep_marks

        if before.marks is not None and (marks := read_marks(before.marks)):
            keep_marks(trace, marks)
        trace = with_logs_of(before, trace)
        session = session_over(before, trace)
        return Prepared(trace, session, (), history_over(before, trace), before.computed)


def _check_lanes(expression: str | None) -> None:
    """Raise UsageError where --lanes is no regular expression."""
    if expression:
        from tracelane.core.base.pattern import Pattern

        Pattern(expression, ignore_case=True).check("--lanes")


def _with_logs(trace: Trace, logs: tuple[str, ...], options: LogOptions) -> Trace:
    if not logs:
        return trace
    from tracelane.core.logs.opening import open_overlay

    return open_overlay(trace, logs, options)


def offered_log(trace: Trace, how: str) -> str:
    """Return a line that offers the aiu-smi log beside the trace and says how to lay it over; empty where
    there is none.
    """
    from tracelane.core.logs.nearby import nearby_logs

    logs = nearby_logs(trace)
    if not logs:
        return ""
    more = f" (and {len(logs) - 1} more)" if len(logs) > 1 else ""
    return f"Found {safe(logs[0].name)}{more}: {how.format(path=safe(str(logs[0])))}"


def _first_view(trace: Trace, view_options: ViewOptions, fresh: bool) -> Session | None:
    """Return the view that options ask for, else the one of the last time, None for the trace's own."""
    from tracelane.tui.view_state import saved_session

    if any(view_options):
        return session_of_options(trace, view_options, shutil.get_terminal_size((80, 24)).columns)
    return None if fresh else saved_session(trace)


def _print(trace: Trace, view_options: ViewOptions, width: int | None, height: int | None) -> None:
    from tracelane.tui.text.picture import picture, plain_picture
    from tracelane.tui.text.summary import summary, writable

    size = shutil.get_terminal_size((PICTURE_WIDTH, PICTURE_HEIGHT))
    width, height = width or size.columns, height or size.lines
    session = session_of_options(trace, view_options, width)
    if wants_colour():
        from rich.console import Console

        console = Console(width=width)
        with console.capture() as drawn:
            console.print(picture(trace, session, (width, height)), soft_wrap=True)
        print_coloured(drawn.get(), end="")
    else:
        print_text(plain_picture(trace, session, (width, height)))
    print_text(writable(summary(trace, lanes=False)))


def session_of_options(trace: Trace, view_options: ViewOptions, width: int) -> Session:
    """Return the view that the options ask for; where they leave something open, the trace's first view."""
    from tracelane.core.tables.device_clocks import with_device_clocks
    from tracelane.tui.actions.clocks import with_clocks
    from tracelane.tui.actions.view import first_session, view_of
    from tracelane.tui.clock import time_frame
    from tracelane.tui.draw.only import only_lanes
    from tracelane.tui.steps import step_marks
    from tracelane.tui.times import parse_range

    cells = max(1, width - TITLE_CELLS)
    session = replace(first_session(trace, cells), only=view_options.lanes or "", zone=view_options.tz or "")
    session = replace(session, search=view_options.search or "", filter=view_options.where or "")
    if session.only:
        only_lanes(trace, session.only)  # an expression that takes too long is said now
    if view_options.device_offsets:
        session = with_clocks(
            trace, session, with_device_clocks(trace, session.clocks, view_options.device_offsets)
        )
    if view_options.steps:
        if not step_marks(trace, session.clocks, view_options.steps):
            raise UsageError(f"--step-name: no slice is called {view_options.steps}")
        session = replace(session, steps=view_options.steps)
    frame = time_frame(trace, session.clocks, session.zone, steps=session.steps)
    if view_options.span is not None:
        session = replace(session, range=parse_range(view_options.span, frame))
    if view_options.baseline is not None:
        session = replace(session, baseline=parse_range(view_options.baseline, frame))
    if view_options.begin is None and view_options.end is None:
        return session
    start, stop = _window(trace, view_options.begin, view_options.end, frame)
    return replace(session, viewport=view_of(start, stop, cells), cursor=start)


def _window(trace: Trace, begin: str | None, end: str | None, frame: TimeFrame) -> tuple[int, int]:
    """Return the time from --from to --to, as far as the trace has it; UsageError where it has none."""
    from tracelane.tui.times import parse_span

    start, stop = trace.opening_span
    if begin is not None:
        start, reach = parse_span(begin, frame)
        stop = reach if reach > start else stop  # a step alone means all of it
    if end is not None:
        stop = parse_span(end, frame)[1]
    low, high = trace.span
    if stop <= start or stop <= low or start >= max(high, low + 1):
        raise UsageError("--from must be before --to, and within the trace")
    return max(start, low), min(stop, max(high, start + 1))


def _parsed(text: str | None) -> str | None:
    """Return a filter's text without what surrounds it; UsageError where it means nothing."""
    if text is None:
        return None
    from tracelane.core.query.filter import parse

    return parse(text).text
