"""`tracelane view`: traces in the viewer, or one picture of them in print."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from tracelane.core.base.errors import UsageError
from tracelane.core.base.output import print_coloured, print_text, terminal_size

from .options import STDIN, is_store_path
from .streams import can_draw, has_colours, take_keyboard
from .trace_options import TraceOptions
from .view_request import ViewOptions, ViewRequest, offered_log, session_of_options, with_logs
from .viewer import first_start_notes, open_request, show_last_picture, view_until_quit, viewer_host

if TYPE_CHECKING:
    from tracelane.core.trace import Trace
    from tracelane.tui.device_facts import KnownFacts
    from tracelane.tui.session import Session

MAX_WAIT_S = 2.0
"""A printed picture waits so long until it is known what devices did, and what costs time."""
NOT_COUNTED = (
    "What devices did is not counted after 2 s: their lines are outlines; `tracelane breakdown` waits for it",
    "What costs time is not known after 2 s: `tracelane findings` waits for it",
)
PICTURE_WIDTH = 120
PICTURE_HEIGHT = 40


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
    from tracelane.core.index.opening import Gathering

    if options.step is not None and span is not None:
        raise UsageError("--step is a range of its own: give it without --from, --to and --range")
    span = span if options.step is None else f"step:{options.step}"
    part = replace(options.with_window_of_step(), where=_parsed(options.where))
    view_options = ViewOptions(part, span, baseline, _parsed(search))
    request = ViewRequest(options, view_options, marks, fresh, against, traces_of_store)
    _check(request)
    is_whole = not (view_options.are_given or options.logs or against is not None)
    if as_text:
        if is_store_path(options.traces[0]):
            raise UsageError("--text is for traces: a capture store has `tracelane findings`")
        if not is_whole:
            raise UsageError("--text is about a whole trace: `tracelane findings` takes a part of one")
        _print_words(options.read(options.index_options._replace(force=options.force)))
        return
    if can_draw():
        request = request._replace(notes=first_start_notes())
    with viewer_host(log_file) as host:
        show_last_picture(request, host.screen)
        request, opened = open_request(request, host.screen, options.force)
        if isinstance(opened, Gathering) or (can_draw() and take_keyboard()):
            view_until_quit(request, opened, host)
            return
    if sys.stdout.isatty() and not can_draw() and is_whole and opened.answers is None:
        _print_words(opened)
        return
    _print(with_logs(opened, options), view_options, width, height)
    if not options.logs and (offer := offered_log(opened, "--smi {path} adds its lanes")):
        print_text(offer)


def _check(request: ViewRequest) -> None:
    """Check what can be checked before anything is read; UsageError and UnreadableError say what is wrong."""
    from tracelane.core.index.inputs import check_there

    options = request.options
    if options.traces.count(STDIN) > 1:
        raise UsageError("standard input (-) can be opened once only")
    if options.lanes:
        from tracelane.core.base.pattern import Pattern

        Pattern(options.lanes, ignore_case=True).check("--lanes")
    if request.against is not None and options.logs:
        raise UsageError("--against shows two runs, and logs belong to one: open them with it alone")
    if options.cards:
        options.log_options  # noqa: B018 - wrong ones are said
    check_there((*options.traces, *options.logs, *filter(None, (request.against, request.marks))))


def _parsed(text: str | None) -> str | None:
    """Return a filter's text without what surrounds it; UsageError where it means nothing."""
    if text is None:
        return None
    from tracelane.core.query.filter import parse

    return parse(text).text


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
