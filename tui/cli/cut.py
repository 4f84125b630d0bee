"""`tracelane cut`: a window of a trace as a small trace of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracelane.core.base.errors import UsageError
from tracelane.core.base.output import print_text
from tracelane.core.base.pattern import Pattern
from tracelane.core.base.safe_text import safe

from .opened import chosen_trace
from .options import DEVICE_OFFSET, TRACE, choice_options, completed, with_index_options
from .scoped import STEP_NAME, TZ, Times, range_of, steps_there

if TYPE_CHECKING:
    from tracelane.core.export.cut import Cut
    from tracelane.core.index.choice import Choice
    from tracelane.core.index.options import IndexOptions
    from tracelane.core.trace import Trace


@click.command()
@TRACE
@click.option("--from", "begin", metavar="TIME", help="Begin: +12.5ms, @µs as in the file, 09:28:06, step:4.")
@click.option("--to", "end", metavar="TIME", help="End; without it that of the step, or of the trace.")
@TZ
@click.option(
    "--step",
    metavar="N",
    help="Cut out this step; nth:K: the K-th, nth:-1 the last.",
    shell_complete=completed("steps"),
)
@STEP_NAME
@click.option("--lanes", metavar="REGEX", help="Only lanes whose title, or whose process's, matches.")
@click.option(
    "-o",
    "--out",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write; packed when it is called *.gz.",
)
@DEVICE_OFFSET
@choice_options
@with_index_options
def cut(
    trace: str,
    begin: str | None,
    end: str | None,
    tz: str | None,
    step: str | None,
    step_name: str | None,
    lanes: str | None,
    out: Path,
    device_offsets: tuple[str, ...],
    index_options: IndexOptions,
    choice: Choice,
) -> None:
    """Write a window of a trace as a trace of its own: slices that overlap it, exactly as in the source."""
    from tracelane.core.tables.device_clocks import with_device_clocks
    from tracelane.tui.text.progress import ProgressBar

    times = Times.of_window(begin, end, step, tz)
    if times.begin is None and times.end is None:
        raise UsageError("say what to cut: --from TIME and --to TIME, or --step 4")
    opened = chosen_trace([trace], index_options, choice)
    if opened.source_count != 1:
        raise UsageError(
            f"{trace} holds {opened.source_count} traces: cut them one by one, of ranks with --rank N"
        )
    if step_name is not None:
        steps_there(opened, "--step-name", step_name)
    window = range_of(opened, times, step_name) or opened.span
    chosen = None if lanes is None else _lanes(opened, lanes)
    with ProgressBar(Path(trace).name) as progress:
        clocks = with_device_clocks(opened, opened.clocks, device_offsets)
        done = opened.cut(0, window, out, clocks, lanes=chosen, progress=progress)
    print_text(_cut_text(done, out))


def _lanes(trace: Trace, pattern: str) -> list[int]:
    titles = Pattern(pattern, ignore_case=True)
    titles.check("--lanes")
    own = titles.matches_in([lane.title for lane in trace.lanes])
    process = titles.matches_in([lane.process.title for lane in trace.lanes])
    numbers = [lane.number for lane, *hits in zip(trace.lanes, own, process) if any(hits)]
    if not numbers:
        raise UsageError(f"no lane has a title in which {pattern!r} is found")
    return numbers


def _cut_text(done: Cut, out: Path) -> str:
    kinds = {
        "slice": done.slices,
        "instant": done.instants,
        "counter sample": done.samples,
        "flow": done.flows,
        "metadata event": done.metadata,
    }
    counts = [f"{count:,} {kind}{'s' if count != 1 else ''}" for kind, count in kinds.items() if count]
    text = safe(f"{out}: {', '.join(counts)}")
    if done.left_out:
        text += f"\ntoo large to be kept: {safe(', '.join(done.left_out))}"
    return text
