"""The commands that say what a trace holds, and the logs that lie beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tracelane.core.base.errors import UsageError
from tracelane.core.base.safe_text import json_text
from tracelane.core.export.formats import json_pieces, json_rows, json_table
from tracelane.core.export.listing import Listing
from tracelane.core.index.inputs import check_there
from tracelane.core.logs.header import nearby_logs
from tracelane.core.logs.log import open_log
from tracelane.core.logs.overlay import LogOptions, Overlay, check_cards, read_logs
from tracelane.core.logs.stamps import Wall
from tracelane.core.logs.telemetry_tables import (
    NamedRange,
    counters_table,
    describe,
    kernels_table,
    logs_table,
    ranges_table,
    steps_table,
)
from tracelane.core.read.reader import scanner_name
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.frame.table import Table, Tables
from tracelane.tui.text.summary import info_tables, summary, trace_info, writable

from .printing import Printout, arranged, as_text, print_output
from .trace_options import TraceOptions


def run_info(options: TraceOptions) -> None:
    (trace,), opened = options.traces, options.of_all_captures.read()
    scanner = scanner_name(options.index_options.decoder)
    # A file as it was typed; of a folder which file it is.
    paths = [source.path if Path(trace).is_dir() else trace for source in opened.sources]
    print_output(
        Printout("info", Tables.of(*info_tables(opened))),
        options.form,
        json=lambda _: (
            json_text({**trace_info(opened, number), "path": str(path), "scanner": scanner}) + "\n"
            for number, path in enumerate(paths)
        ),
        text=lambda _: [writable(summary(opened)) + f"\n  scanner: {scanner}"],
    )


def run_telemetry(options: TraceOptions, by: str | None) -> None:
    log_options, ranged = options.log_options, options.with_window_of_step()
    check_there((*options.traces, *options.logs))
    trace = ranged.open()
    within = ranged.window(trace)
    counters = counters_table(trace, within)
    paths = options.logs or tuple(map(str, nearby_logs(trace)))
    if not paths and (by is not None or options.is_about_clocks or not len(counters)):
        has_none = "" if len(counters) else ", and the trace has no counters"
        if has_none and within is not None and len(counters_table(trace, None)):
            has_none = ", and no counter of the trace has a sample in that range"
        raise UsageError(f"no log given (--smi LOG), no aiu-smi log beside the trace{has_none}")
    wall, zero = Wall(trace), trace.opening_span[0]
    has_sums = by is not None or within is not None
    logs, overlay = _read_logs(wall, paths, bool(options.logs), log_options, has_sums)
    sums = None
    if overlay is not None and has_sums:
        sums = arranged(_sums(overlay, by, within, options), options.sort, options.limit)
    elif len(counters):
        counters = arranged(counters, options.sort, options.limit)
    scope = Scope(trace, within, clocks=trace.clocks).text
    own = [] if sums is None else [sums]
    tables = [*(replace(table, begins_ns=zero) for table in own), counters, logs_table(logs, scope)]
    in_json = {"logs": json_rows(logs), "counters": json_table(counters)}
    in_json |= {f"{by}s" if by else "range": json_table(table) for table in own}
    notes = [note for table in (*own, counters) for note in table.notes]

    def text(_: Listing) -> list[str]:
        from tracelane.tui.text.telemetry import log_text, steps_text  # brings rich, as no other form does

        texts = [log_text(entry, _device_labels(wall)) for entry in logs]
        texts += [steps_text(table, zero) for table in own]
        return ["\n\n".join([*texts, *([as_text(counters)] if len(counters) else [])])]

    print_output(
        Printout("telemetry", Tables.of(*filter(len, tables))),
        options.form,
        json=lambda _: json_pieces("telemetry", scope, 0, in_json, notes),
        text=text,
    )


def _sums(overlay: Overlay, by: str | None, within: tuple[int, int] | None, options: TraceOptions) -> Table:
    """Return the values of logs summed up by step, by kernel, or over a range."""
    clocks = overlay.own.clocks
    if by == "kernel":
        return kernels_table(overlay, within, clocks)
    if by is None and within is not None:
        return ranges_table(overlay, [NamedRange(options.step or "range", *within)], clocks)
    return steps_table(overlay, within, clocks, options.step_name)


def _read_logs(
    wall: Wall, paths: Sequence[str], named: bool, options: LogOptions, has_sums: bool
) -> tuple[list[dict[str, Any]], Overlay | None]:
    """Return what the logs are, and the trace with those of its run.

    Raises UsageError where there are to be sums and the wall time lacks, or a log that is named is of another
    run, or all that lie beside the trace are.
    """
    if not paths:
        return [], None
    if wall.base is not None:
        placed, overlay = read_logs(wall.trace, paths, options, named and has_sums)
        if overlay is None and has_sums:
            raise UsageError(placed[0].refusal)
        return [describe(one.log, one.proposal) for one in placed], overlay
    if has_sums:
        raise UsageError(wall.missing)
    logs = [open_log(path) for path in paths]
    check_cards(logs, options)
    return [{**describe(log), "reason": wall.missing} for log in logs], None


def _device_labels(wall: Wall) -> dict[str, str]:
    """Return what each device is called, with its file where there are several."""
    sources = wall.trace.sources
    if len(sources) == 1:
        return {key: device.label for key, device in wall.devices.items()}
    names = [Path(source.path).name for source in sources]
    return {key: f"{device.label} of {names[device.source]}" for key, device in wall.devices.items()}
