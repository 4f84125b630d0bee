"""Options that say what a table speaks of and how it is printed, for all commands that print tables."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from tracelane.core.base.errors import UsageError
from tracelane.core.tables.selection import Selection, selected_scope
from tracelane.core.tables.selection import steps_there as steps_there

from .options import completed
from .values import WholeNumber

if TYPE_CHECKING:
    from tracelane.core.tables.scope import Scope
    from tracelane.core.trace import Trace
    from tracelane.tui.text.table import TableStyle

UNCUT = 1 << 30
DEFAULT_WIDTH = 160
"""Columns of a table where nothing says how wide the terminal is."""

FROM = click.option(
    "--from", "begin", metavar="TIME", help="Count from here: +12.5ms, @µs, 09:28:06.1 or step:4."
)
TO = click.option("--to", "end", metavar="TIME", help="Count up to here; of a step, up to its end.")
STEP_NAME = click.option(
    "--step-name", metavar="NAME", help="Use the slices of this name as steps, whatever numbers it holds."
)
STEP = click.option(
    "--step",
    metavar="N",
    help="Count this step only; nth:K: the K-th, nth:-1 the last.",
    shell_complete=completed("steps"),
)
ATTRIBUTE = click.option(
    "--attribute",
    type=click.Choice(["launch", "window"]),
    default="launch",
    show_default=True,
    help="Which step device work belongs to: the one that launched it, or the one it ran in.",
)
SKIP_FIRST = click.option(
    "--skip-first",
    type=WholeNumber(0),
    metavar="N",
    help="Leave out the first N steps, and what comes before them.",
)
LANES = click.option(
    "--lanes",
    metavar="REGEX",
    help="Count only lanes whose title matches.",
    shell_complete=completed("lanes"),
)
WHERE = click.option(
    "--where",
    metavar="FILTER",
    help="Count only slices that match: nccl cat:kernel dur>1ms lane:'stream 0'.",
    shell_complete=completed("terms"),
)


def _check_zone(_: click.Context, __: click.Parameter, zone: str | None) -> str | None:
    if zone:
        from tracelane.tui.zone import zone_of

        zone_of(zone)
    return zone


TZ = click.option(
    "--tz",
    metavar="ZONE",
    callback=_check_zone,
    help="Zone of wall times: Europe/Zurich, +02:00, UTC; else local.",
)


@dataclass(frozen=True)
class Times:
    """Where a range begins and ends, as it was typed, and the zone of its wall times."""

    begin: str | None = None
    end: str | None = None
    tz: str | None = None

    @classmethod
    def of_window(cls, begin: str | None, end: str | None, step: str | None, tz: str | None) -> Times:
        """Return what --from and --to say, or the window of --step; UsageError for both."""
        if step is None:
            return cls(begin, end, tz)
        if begin is not None or end is not None:
            raise UsageError("--step is a range of its own: give it without --from and --to")
        return cls(f"step:{step}", None, tz)


def scope_of_options(trace: Trace, times: Times, chosen: Selection, skip_first: int | None = None) -> Scope:
    """Return the scope that these options mean; UsageError where they mean nothing."""
    if chosen.step is not None and (times.begin is not None or times.end is not None or skip_first):
        raise UsageError("--step is a range of its own: give it without --from, --to and --skip-first")
    if skip_first and times.begin is not None:
        raise UsageError("--from and --skip-first both say where to begin: give one of them")
    if chosen.step_name is not None:
        steps_there(trace, "--step-name", chosen.step_name)
    label, span = "", range_of(trace, times, chosen.step_name)
    if skip_first:
        span = range_after(trace, skip_first, trace.span[1] if span is None else span[1], chosen.step_name)
        label = f"after the first {skip_first} steps" if skip_first > 1 else "after the first step"
    return selected_scope(trace, span, chosen, label)


def range_after(trace: Trace, skipped: int, end: int, step_name: str | None) -> tuple[int, int]:
    """Return [start of the step after the first ones, end) in trace time."""
    steps = steps_there(trace, "--skip-first", step_name)
    if skipped >= len(steps):
        raise UsageError(f"--skip-first: there are only {len(steps):,} steps, {steps.choice}")
    start = int(steps.starts[skipped])
    if end <= start:
        raise UsageError("--to must be after the steps that --skip-first leaves out")
    return start, end


def range_of(trace: Trace, times: Times, step_name: str | None = None) -> tuple[int, int] | None:
    """Return [start, end) in trace time of --from and --to, None when neither is given."""
    from tracelane.tui.clock import time_frame
    from tracelane.tui.times import parse_span

    if times.begin is None and times.end is None:
        return None
    frame = time_frame(trace, trace.clocks, times.tz or "", steps=step_name or "")
    start, stop = trace.span
    if times.begin is not None:
        start, reach = parse_span(times.begin, frame)
        stop = reach if reach > start else stop  # a step alone means all of it
    if times.end is not None:
        stop = parse_span(times.end, frame)[1]
    if stop <= start:
        raise UsageError("--from must be before --to, and within the trace")
    return start, stop


def terminal_width() -> int:
    """Return how wide drawings and wrapped text are: the terminal, COLUMNS, else DEFAULT_WIDTH."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns
    return DEFAULT_WIDTH


def table_style() -> TableStyle:
    """Return how tables are printed: as wide as the terminal and with colours as `has_colours` says.

    Into a pipe or file nothing is cut, unless COLUMNS says how wide it is.
    """
    from tracelane.tui.text.table import TableStyle

    is_terminal = sys.stdout.isatty()
    is_known = is_terminal or os.environ.get("COLUMNS", "").isdecimal()
    return TableStyle(terminal_width() if is_known else UNCUT, has_colours(is_terminal))


def has_colours(is_terminal: bool) -> bool:
    """Tell whether tables have colours: where a terminal is no dumb one, unless the environment says so or
    not. NO_COLOR comes first (no-color.org), then FORCE_COLOR and CLICOLOR_FORCE, then CLICOLOR=0.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return is_terminal and os.environ.get("TERM") != "dumb" and os.environ.get("CLICOLOR") != "0"
