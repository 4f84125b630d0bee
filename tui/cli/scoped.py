"""Options that say what a table speaks of and how it is printed, for all commands that print tables."""

from __future__ import annotations

import re
import shutil
import sys
from typing import TYPE_CHECKING

import click

from tracelane.core.base.errors import UsageError

if TYPE_CHECKING:
    from tracelane.core.analysis.scope import Scope
    from tracelane.core.trace import Trace

DEFAULT_WIDTH = 160
"""Columns of a table where nothing says how wide the terminal is."""

FROM = click.option(
    "--from", "begin", metavar="TIME", help="Count from here: +12.5ms, @µs, 09:28:06.1 or step:4."
)
TO = click.option("--to", "end", metavar="TIME", help="Count up to here; of a step, up to its end.")
STEP = click.option("--step", metavar="N", help="Count this step only.")
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


def scope_of(
    trace: Trace,
    begin: str | None,
    end: str | None,
    step: str | None = None,
    lanes: str | None = None,
    where: str | None = None,
) -> Scope:
    """Return the scope that these options mean; UsageError where they mean nothing."""
    from tracelane.core.analysis.scope import Scope
    from tracelane.core.query.filter import parse
    from tracelane.core.query.hits import matches

    if step is not None and (begin is not None or end is not None):
        raise UsageError("--step is a range of its own: give it without --from and --to")
    span = range_of(trace, begin, end) if step is None else step_range(trace, step)
    label = f"step {step}" if step is not None else ""
    chosen = None if where is None else matches(trace, parse(where)).where
    return Scope(trace, span, lanes_of(trace, lanes), chosen, label=label)


def step_range(trace: Trace, step: str) -> tuple[int, int] | None:
    """Return [start, end) of a step: the profiler's, else of those that `tracelane steps` finds."""
    from tracelane.core.analysis.step_choice import find_steps

    if trace.steps:
        return range_of(trace, f"step:{step}", None)
    found = [steps for source in range(len(trace.indexes)) if (steps := find_steps(trace, source))]
    spans = [
        (int(steps.starts[i]), int(steps.ends[i]))
        for steps in found
        for i, label in enumerate(steps.labels)
        if label == step.strip()
    ]
    if not found:
        raise UsageError("--step: this trace has no steps, and nothing in it repeats")
    if not spans:
        labels = found[0].labels
        raise UsageError(f"--step: no step {step}; there are {labels[0]} to {labels[-1]}, {found[0].choice}")
    return min(start for start, _ in spans), max(end for _, end in spans)


def range_of(trace: Trace, begin: str | None, end: str | None) -> tuple[int, int] | None:
    """Return [start, end) in trace time of --from and --to, None when neither is given."""
    from tracelane.tui.clock import time_frame
    from tracelane.tui.times import parse_span

    if begin is None and end is None:
        return None
    frame = time_frame(trace)
    start, stop = trace.span
    if begin is not None:
        start, reach = parse_span(begin, frame)
        stop = reach if reach > start else stop  # a step alone means all of it
    if end is not None:
        stop = parse_span(end, frame)[1]
    if stop <= start:
        raise UsageError("--from must lie before --to, and within the trace")
    return start, stop


def lanes_of(trace: Trace, pattern: str | None) -> list[int] | None:
    """Return the places of the lanes whose title matches, None without a pattern."""
    if not pattern:
        return None
    try:
        wanted = re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise UsageError(f"--lanes is no regular expression: {error}") from None
    titles = ((lane.index, f"{lane.process.title} {lane.title}") for lane in trace.lanes)
    found = [place for place, title in titles if wanted.search(title)]
    if not found:
        raise UsageError(f"no lane has a title in which {pattern!r} is found")
    return found


def terminal_width() -> int:
    """Return the columns of the terminal, DEFAULT_WIDTH where output goes elsewhere."""
    return shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns if sys.stdout.isatty() else DEFAULT_WIDTH
