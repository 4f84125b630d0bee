"""The commands that write traces: in the formats of other programs, a part of one, a small one to try."""

from __future__ import annotations

from pathlib import Path

import click

from tracelane.core.base.errors import UsageError
from tracelane.core.base.output import print_text
from tracelane.core.base.pattern import Pattern
from tracelane.core.base.safe_text import safe
from tracelane.core.demo.trace import write_demo
from tracelane.core.export.cut import Cut, cut_scope
from tracelane.core.python.exporting import writer_of
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import Trace
from tracelane.core.trace.device_clocks import with_device_clocks
from tracelane.tui.text.progress import ProgressBar

from .commands import command_named
from .trace_options import TraceOptions


def run_export(options: TraceOptions, out: Path) -> None:
    write = writer_of(out)
    scope = options.scope()
    with ProgressBar(out.name) as progress:
        done = write(scope, out, options.title, progress)
    print_text(safe(f"{out}: {done}"))


def run_cut(options: TraceOptions, out: Path) -> None:
    options = options.with_window_of_step()
    if options.begin is None and options.end is None:
        raise UsageError("say what to cut: --from TIME and --to TIME, or --step 4")
    trace, (path,) = options.open(), options.traces
    if trace.source_count != 1:
        raise UsageError(
            f"{path} holds {trace.source_count} traces: cut them one by one, of ranks with --rank N"
        )
    window = options.window(trace) or trace.span
    chosen = None if options.lanes is None else _lanes(trace, options.lanes)
    with ProgressBar(Path(path).name) as progress:
        clocks = with_device_clocks(trace, trace.clocks, options.device_offsets)
        done = cut_scope(Scope(trace, window, chosen, clocks=clocks), out, progress)
    print_text(_cut_text(done, out))


def _lanes(trace: Trace, pattern: str) -> list[int]:
    titles = Pattern(pattern, ignore_case=True)
    titles.check("--lanes")
    own = titles.matches_in([lane.title for lane in trace.lanes])
    process = titles.matches_in([lane.process.title for lane in trace.lanes])
    numbers = [lane.index for lane, *hits in zip(trace.lanes, own, process) if any(hits)]
    if not numbers:
        raise UsageError(f"no lane title matches {pattern!r}")
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


def run_demo(out: Path, no_open: bool) -> None:
    paths = write_demo(out)
    for path in paths:
        print_text(safe(str(path)), error=not no_open)
    if not no_open:
        traces = tuple(str(path) for path in paths if path.suffix == ".json")
        click.get_current_context().invoke(command_named("view"), traces=traces)
