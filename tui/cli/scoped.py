"""Options that say what a table speaks of and how it is printed, for all commands that print tables."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tracelane.core.base.errors import UsageError
from tracelane.core.base.pattern import Pattern

if TYPE_CHECKING:
    from tracelane.core.tables.scope import Attribute, Scope
    from tracelane.core.tables.step_spans import StepSpans
    from tracelane.core.trace import Trace

DEFAULT_WIDTH = 160
"""Columns of a table where nothing says how wide the terminal is."""
NTH = re.compile(r"nth:(-?\d+)")

FROM = click.option(
    "--from", "begin", metavar="TIME", help="Count from here: +12.5ms, @µs, 09:28:06.1 or step:4."
)
TO = click.option("--to", "end", metavar="TIME", help="Count up to here; of a step, up to its end.")
STEP_NAME = click.option(
    "--step-name", metavar="NAME", help="Take the slices of this name (numbers aside) for steps."
)
STEP = click.option("--step", metavar="N", help="Count this step only; nth:K: the K-th, nth:-1 the last.")
ATTRIBUTE = click.option(
    "--attribute",
    type=click.Choice(["launch", "window"]),
    default="launch",
    show_default=True,
    help="Which step device work belongs to: the one that launched it, or the one it ran in.",
)
SKIP_FIRST = click.option(
    "--skip-first",
    type=click.IntRange(0),
    metavar="N",
    help="Leave out the first N steps, and what lies before them.",
)
LANES = click.option("--lanes", metavar="REGEX", help="Count only lanes whose title matches.")
WHERE = click.option(
    "--where", metavar="FILTER", help="Count only slices that match: nccl cat:kernel dur>1ms lane:'stream 0'."
)
FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv", "md"]),
    default="table",
    show_default=True,
    help="How to print it.",
)


def scope_of_options(
    trace: Trace,
    begin: str | None,
    end: str | None,
    step: str | None = None,
    lanes: str | None = None,
    where: str | None = None,
    skip_first: int | None = None,
    device_offsets: Sequence[str] = (),
    step_name: str | None = None,
    attribute: Attribute = "launch",
) -> Scope:
    """Return the scope that these options mean; UsageError where they mean nothing."""
    from tracelane.core.query.filter import parse
    from tracelane.core.query.hits import matches
    from tracelane.core.tables.attribution import scope_of_step
    from tracelane.core.tables.device_clocks import with_device_clocks
    from tracelane.core.tables.scope import Scope

    if step is not None and (begin is not None or end is not None or skip_first):
        raise UsageError("--step is a range of its own: give it without --from, --to and --skip-first")
    if skip_first and begin is not None:
        raise UsageError("--from and --skip-first both say where to begin: give one of them")
    if step_name is not None:
        steps_there(trace, "--step-name", step_name)
    label, span = "", range_of(trace, begin, end, step_name)
    if skip_first:
        span = range_after(trace, skip_first, trace.span[1] if span is None else span[1], step_name)
        label = f"after the first {skip_first} steps" if skip_first > 1 else "after the first step"
    clocks = with_device_clocks(trace, trace.clocks, device_offsets)
    chosen = None if where is None else matches(trace, parse(where), clocks).where
    scope = Scope(
        trace,
        span,
        matching_lanes(trace, lanes),
        chosen,
        clocks,
        label=label,
        steps=step_name or "",
        attribute=attribute,
    )
    if step is None:
        return scope
    steps = steps_there(trace, "--step", step_name)
    return scope_of_step(scope, steps, step_place(steps, step))


def step_place(steps: StepSpans, step: str) -> int:
    """Return which of the steps that `tracelane steps` finds is meant, by its label or as nth:K."""
    wanted = step.strip()
    if match := NTH.fullmatch(wanted):
        place = int(match[1])
        if not -len(steps) <= place < len(steps):
            raise UsageError(f"--step: there are {len(steps):,} steps, nth:0 to nth:{len(steps) - 1}")
        place %= len(steps)
    else:
        places = [at for at, label in enumerate(steps.labels) if label == wanted]
        if not places:
            ends = f"{steps.labels[0]} to {steps.labels[-1]}"
            raise UsageError(f"--step: no step {wanted}; there are {ends}, {steps.choice}")
        if len(places) > 1:
            raise UsageError(
                f"--step: {len(places):,} steps are called {wanted}: say which, nth:{places[0]} is the first"
            )
        place = places[0]
    return place


def range_after(trace: Trace, skipped: int, end: int, step_name: str | None) -> tuple[int, int]:
    """Return [start of the step after the first ones, end) in trace time."""
    steps = steps_there(trace, "--skip-first", step_name)
    if skipped >= len(steps):
        raise UsageError(f"--skip-first: there are only {len(steps):,} steps, {steps.choice}")
    start = int(steps.starts[skipped])
    if end <= start:
        raise UsageError("--to must lie after the steps that --skip-first leaves out")
    return start, end


def steps_there(trace: Trace, option: str, step_name: str | None) -> StepSpans:
    """Return the trace's steps, those of a name if one is given; UsageError where there are none."""
    from tracelane.core.tables.step_spans import step_spans

    steps = step_spans(trace, trace.clocks, step_name or None)
    if steps is None and step_name:
        raise UsageError(f"--step-name: no slice is called {step_name}")
    if steps is None:
        raise UsageError(f"{option}: this trace has no steps, and nothing in it repeats")
    return steps


def range_of(
    trace: Trace, begin: str | None, end: str | None, step_name: str | None = None
) -> tuple[int, int] | None:
    """Return [start, end) in trace time of --from and --to, None when neither is given."""
    from tracelane.tui.clock import time_frame
    from tracelane.tui.times import parse_span

    if begin is None and end is None:
        return None
    frame = time_frame(trace, trace.clocks, steps=step_name or "")
    start, stop = trace.span
    if begin is not None:
        start, reach = parse_span(begin, frame)
        stop = reach if reach > start else stop  # a step alone means all of it
    if end is not None:
        stop = parse_span(end, frame)[1]
    if stop <= start:
        raise UsageError("--from must lie before --to, and within the trace")
    return start, stop


def matching_lanes(trace: Trace, pattern: str | None) -> list[int] | None:
    """Return the places of the lanes whose title matches, or their rank's; None without a pattern."""
    from tracelane.core.query.rank_titles import names_rank, rank_titles

    if not pattern:
        return None
    wanted = Pattern(pattern, ignore_case=True)
    wanted.check("--lanes")
    titles = rank_titles(trace.members).items()
    ranks = {source for source, title in titles if names_rank(wanted, title)}
    hits = wanted.found_in([f"{lane.process.title} {lane.title}" for lane in trace.lanes])
    found = [lane.index for lane, hit in zip(trace.lanes, hits) if hit or lane.source in ranks]
    if not found:
        raise UsageError(f"no lane has a title in which {pattern!r} is found")
    return found


def terminal_width() -> int:
    """Return the columns of the terminal, DEFAULT_WIDTH where output goes elsewhere."""
    return shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns if sys.stdout.isatty() else DEFAULT_WIDTH
