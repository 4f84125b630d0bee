"""`tracelane view`: open traces in the viewer, or print one picture where there is no terminal."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracelane.core.base.errors import UsageError
from tracelane.core.base.safe_text import safe

from .options import DECODER, FORCE, INDEX_DIR, STDIN, TRACES, choice_options
from .smi import log_options, smi_options
from .terminal import can_draw, take_keyboard, wants_colour

if TYPE_CHECKING:
    from tracelane.core.index.choice import Choice
    from tracelane.core.trace import Trace
    from tracelane.tui.session import Session

PICTURE_WIDTH = 120
PICTURE_HEIGHT = 40
TITLE_CELLS = 24
"""Roughly what titles take of the width; the viewer fits the window to its real width."""


@click.command()
@TRACES
@click.option("--from", "begin", metavar="TIME", help="Show from here: +12.5ms, @µs, 09:28:06.1 or step:4.")
@click.option("--to", "end", metavar="TIME", help="Show up to here; of a step, up to its end.")
@click.option("--lanes", metavar="REGEX", help="Show only lanes whose title matches.")
@click.option("--width", type=click.IntRange(20, 1000), help="Columns of the printed picture.")
@click.option("--height", type=click.IntRange(4, 1000), help="Lines of the printed picture.")
@click.option("--tz", metavar="ZONE", help="Zone of wall times: Europe/Zurich, +02:00, UTC; else local.")
@click.option("--fresh", is_flag=True, help="Begin as at first, not with the view of the last time.")
@choice_options
@smi_options
@DECODER
@INDEX_DIR
@FORCE
def view(
    traces: tuple[str, ...],
    begin: str | None,
    end: str | None,
    lanes: str | None,
    width: int | None,
    height: int | None,
    tz: str | None,
    fresh: bool,
    logs: tuple[str, ...],
    log_zone: str | None,
    lag: float | None,
    cards: tuple[str, ...],
    decoder: str,
    index_dir: Path | None,
    force: bool,
    choice: Choice,
) -> None:
    """Open traces in the viewer; several are shown together.

    `-` reads from standard input, a directory stands for the traces in it. Where stdout is no terminal (or
    TERM is unset or dumb) one picture and a summary are printed instead.
    """
    if traces.count(STDIN) > 1:
        raise UsageError("standard input (-) can be opened once only")
    if lanes:
        _check(lanes)
    options = log_options(log_zone, lag, cards)
    if tz:
        from tracelane.tui.zone import zone_of

        zone_of(tz)

    from tracelane.core.trace import open_trace
    from tracelane.tui.text.progress import ProgressBar

    with ProgressBar(_title(traces)) as progress:
        trace = open_trace(
            traces, index_dir=index_dir, decoder=decoder, force=force, choice=choice, progress=progress
        )
    offer = ""
    if logs:
        from tracelane.core.overlay.lay_over import lay_over

        trace = lay_over(trace, logs, options)
    else:
        offer = offered_log(trace)
    if can_draw() and take_keyboard():
        _show(trace, begin, end, lanes, tz, offer, fresh)
    else:
        _print(trace, begin, end, lanes, tz, width, height)
        if offer:
            print(offer)


def offered_log(trace: Trace) -> str:
    """Return a line that offers the aiu-smi log beside the trace, empty where there is none."""
    from tracelane.core.overlay.beside import logs_beside

    beside = logs_beside(trace)
    if not beside:
        return ""
    more = f" (and {len(beside) - 1} more)" if len(beside) > 1 else ""
    return f"{safe(beside[0].name)}{more} lies beside the trace: --smi {safe(str(beside[0]))} lays it over"


def _show(
    trace: Trace,
    begin: str | None,
    end: str | None,
    lanes: str | None,
    tz: str | None,
    offer: str,
    fresh: bool,
) -> None:
    from tracelane.core.index.packing import packing
    from tracelane.tui.app import TracelaneApp
    from tracelane.tui.viewer.marks import saved_session

    columns = shutil.get_terminal_size((80, 24)).columns
    asked = any((begin, end, lanes, tz))
    if asked:
        session: Session | None = asked_session(trace, begin, end, lanes, columns, tz)
    else:
        session = None if fresh else saved_session(trace)
    app = TracelaneApp(trace, session, notes=(offer,) if offer else ())
    with packing(trace.indexes):
        app.run()
    app.save_view()
    if app.return_code:
        raise click.exceptions.Exit(app.return_code)


def _print(
    trace: Trace,
    begin: str | None,
    end: str | None,
    lanes: str | None,
    tz: str | None,
    width: int | None,
    height: int | None,
) -> None:
    from tracelane.tui.text.picture import picture, plain_picture
    from tracelane.tui.text.summary import summary, writable

    size = shutil.get_terminal_size((PICTURE_WIDTH, PICTURE_HEIGHT))
    width, height = width or size.columns, height or size.lines
    session = asked_session(trace, begin, end, lanes, width, tz)
    if wants_colour():
        from rich.console import Console

        Console(width=width).print(picture(trace, session, width, height), soft_wrap=True)
    else:
        print(plain_picture(trace, session, width, height))
    print(writable(summary(trace, lanes=False)))


def asked_session(
    trace: Trace, begin: str | None, end: str | None, lanes: str | None, width: int, tz: str | None = None
) -> Session:
    """Return the view that the options ask for; where they leave something open, the trace's first view."""
    from tracelane.tui.actions.view import first_session, view_of
    from tracelane.tui.clock import time_frame
    from tracelane.tui.times import parse_span

    cells = max(1, width - TITLE_CELLS)
    session = replace(first_session(trace, cells), only=lanes or "", zone=tz or "")
    if begin is None and end is None:
        return session
    frame = time_frame(trace, session.clocks, session.zone)
    start, stop = trace.opening_span
    if begin is not None:
        start, reach = parse_span(begin, frame)
        stop = reach if reach > start else stop  # a step alone means all of it
    if end is not None:
        stop = parse_span(end, frame)[1]
    low, high = trace.span
    if stop <= start or stop <= low or start >= max(high, low + 1):
        raise UsageError("--from must lie before --to, and within the trace")
    start, stop = max(start, low), min(stop, max(high, start + 1))
    return replace(session, viewport=view_of(start, stop, cells), cursor=start)


def _check(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise UsageError(f"--lanes is no regular expression: {error}") from None


def _title(paths: tuple[str, ...]) -> str:
    name = "standard input" if paths[0] == STDIN else Path(paths[0]).name
    return name if len(paths) == 1 else f"{name} and {len(paths) - 1} more"
