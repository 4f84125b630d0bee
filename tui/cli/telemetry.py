"""`tracelane telemetry`: what was understood of logs, how their clocks fit a trace, energy per step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracelane.core.base.errors import UsageError
from tracelane.core.base.output import print_pieces, print_text

from .forms import arranged, print_tables
from .opened import chosen_trace
from .options import FORMAT, JSON, OUT, SORT, TRACES, choice_options, completed, with_index_options
from .scoped import FROM, STEP_NAME, TO, TZ, Times, range_of, steps_there, table_style
from .smi import log_options, smi_options
from .values import WholeNumber

if TYPE_CHECKING:
    from tracelane.core.index.choice import Choice
    from tracelane.core.index.options import IndexOptions


@click.command()
@TRACES
@smi_options
@click.option(
    "--by",
    type=click.Choice(["step", "kernel"]),
    help="Add means, greatest values and energy per step, or the energy by name of kernels.",
)
@FROM
@TO
@TZ
@click.option(
    "--step",
    metavar="N",
    help="Only this step; nth:K: the K-th, nth:-1 the last.",
    shell_complete=completed("steps"),
)
@STEP_NAME
@SORT
@click.option("--limit", type=WholeNumber(1), help="The number of rows of the first table.")
@FORMAT
@JSON
@OUT
@choice_options
@with_index_options
def telemetry(
    traces: tuple[str, ...],
    logs: tuple[str, ...],
    log_zone: str | None,
    lag: float | None,
    cards: tuple[str, ...],
    by: str | None,
    begin: str | None,
    end: str | None,
    tz: str | None,
    step: str | None,
    step_name: str | None,
    sort: str | None,
    limit: int | None,
    form: str,
    as_json: bool,
    index_options: IndexOptions,
    choice: Choice,
) -> None:
    """Report what telemetry logs hold, how their clocks fit a trace, and the trace's own counters.

    Without --smi it reads the aiu-smi logs beside the trace. With --by step: power, energy, busy time and
    temperature of each step; with --step, or --from and --to: of that range, or of its steps. With --by
    kernel: the energy by name of the kernels and copies that ran for many sampling intervals in all. --sort,
    --limit and CSV are for the table of steps, kernels or the range, else for the trace's counters, else for
    the logs.
    """
    from tracelane.core.export.formats import json_pieces, json_rows, json_table
    from tracelane.core.index.inputs import check_there
    from tracelane.core.logs.counter_table import counters_table
    from tracelane.core.logs.describe import describe, logs_table
    from tracelane.core.logs.log import open_log
    from tracelane.core.logs.nearby import nearby_logs
    from tracelane.core.logs.opening import check_cards, open_overlay
    from tracelane.core.logs.wall import Wall
    from tracelane.core.tables.scope import Scope
    from tracelane.tui.text.table import table_text
    from tracelane.tui.text.telemetry import log_text, steps_text

    options, times = log_options(log_zone, lag, cards), Times.of_window(begin, end, step, tz)
    check_there((*traces, *logs))
    trace = chosen_trace(traces, index_options, choice)
    if step_name is not None:
        steps_there(trace, "--step-name", step_name)
    paths = logs or tuple(map(str, nearby_logs(trace)))
    within = range_of(trace, times, step_name)
    counters = counters_table(trace, within)
    for_logs = by is not None or log_zone is not None or lag is not None or cards
    if not paths and (for_logs or not len(counters)):
        has_none = "" if len(counters) else ", and the trace has no counters"
        raise UsageError(f"no log is given (--smi LOG), no aiu-smi log lies beside the trace{has_none}")
    wall = Wall(trace)
    descriptions: list[dict[str, Any]] = []
    steps = None
    if wall.base is None and paths:
        if by is not None or within is not None:
            raise UsageError(wall.missing)
        opened = [open_log(path) for path in paths]
        check_cards(opened, options)
        descriptions = [{**describe(log), "reason": wall.missing} for log in opened]
    elif paths:
        overlay = open_overlay(trace, paths, options)
        descriptions = [describe(one.log, one.proposal) for one in overlay.placed]
        if by is not None or within is not None:
            from tracelane.core.logs.kernels import kernels_table
            from tracelane.core.logs.steps import NamedRange, ranges_table, steps_table

            if by == "kernel":
                steps = kernels_table(overlay, within, trace.clocks)
            elif by is not None or within is None:
                steps = steps_table(overlay, within, trace.clocks, step_name)
            else:
                steps = ranges_table(overlay, [NamedRange(step or "range", *within)], trace.clocks)
    if steps is not None:
        steps = arranged(steps, sort, limit)
    elif len(counters):
        counters = arranged(counters, sort, limit)
    form, scope = "json" if as_json else form, Scope(trace, within, clocks=trace.clocks).text
    if form == "json":
        tables = {"logs": json_rows(descriptions), "counters": json_table(counters)}
        notes = list(counters.notes)
        if steps is not None:
            tables[f"{by}s" if by else "range"] = json_table(steps)
            notes = [*steps.notes, *notes]
        print_pieces(json_pieces("telemetry", scope, 0, tables, notes))
        return
    if form != "text":
        every = [counters, logs_table(descriptions, scope)]
        if steps is not None:
            every.insert(0, steps.counted_from(trace.opening_span[0]))
        print_tables(form, f"telemetry: {scope}", [table for table in every if len(table)])
        return
    labels = {key: device.label for key, device in wall.devices.items()}
    if len(trace.sources) > 1:
        names = [Path(source.path).name for source in trace.sources]
        labels = {key: f"{labels[key]} of {names[device.source]}" for key, device in wall.devices.items()}
    texts = [log_text(entry, labels) for entry in descriptions]
    if steps is not None:
        texts.append(steps_text(steps, trace.opening_span[0]))
    if len(counters):
        texts.append(table_text(counters, table_style().plain))
    print_text("\n\n".join(texts))
