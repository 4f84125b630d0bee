"""The command that says what logs beside a trace hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tracelane.core.base.errors import UsageError
from tracelane.core.export.formats import json_pieces, json_rows, json_table
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
from tracelane.core.tables.scope import Scope
from tracelane.core.tables.table import Table, Tables
from tracelane.tui.text.table import table_text
from tracelane.tui.text.telemetry import log_text, steps_text

from .opened import TraceOptions
from .printing import Printout, arranged, print_output, table_style


def run_telemetry(options: TraceOptions, by: str | None) -> None:
    """Report what telemetry logs hold, how their clocks fit a trace, and the trace's own counters.

    Without --smi it reads the aiu-smi logs beside the trace. With --by step: power, energy, busy time and
    temperature of each step; with --step, or --from and --to: of that range, or of its steps. With --by
    kernel: the energy by name of the kernels and copies that ran for many sampling intervals in all. --sort,
    --limit and CSV are for the table of steps, kernels or the range, else for the trace's counters, else for
    the logs.
    """
    log_options, ranged = options.log_options, options.with_window_of_step()
    check_there((*options.traces, *options.logs))
    trace = ranged.open()
    grouping = LogGrouping(by, ranged.window(trace), options.step, options.step_name)
    counters = counters_table(trace, grouping.within)
    paths = options.logs or tuple(map(str, nearby_logs(trace)))
    if not paths and (by is not None or options.is_about_clocks or not len(counters)):
        has_none = "" if len(counters) else ", and the trace has no counters"
        raise UsageError(f"no log given (--smi LOG), no aiu-smi log beside the trace{has_none}")
    wall = Wall(trace)
    descriptions, sums = _read_logs(wall, paths, bool(options.logs), log_options, grouping)
    if sums is not None:
        sums = arranged(sums, options.sort, options.limit)
    elif len(counters):
        counters = arranged(counters, options.sort, options.limit)
    scope = Scope(trace, grouping.within, clocks=trace.clocks).text
    answer = TelemetryAnswer(scope, trace.opening_span[0], descriptions, counters, sums)
    print_output(
        Printout("telemetry", Tables.of(*answer.tables)),
        options.form,
        json=lambda _: _json(answer, grouping.name),
        text=lambda _: [_text(answer, _device_labels(wall))],
    )


@dataclass(frozen=True)
class LogGrouping:
    """How the values of logs are summed up: by step, by kernel, or over a range; not at all without both."""

    by: str | None
    within: tuple[int, int] | None
    step: str | None
    step_name: str | None

    @property
    def is_given(self) -> bool:
        """Whether there is to be a table of sums."""
        return self.by is not None or self.within is not None

    @property
    def name(self) -> str:
        """The name of the table of sums in JSON."""
        return f"{self.by}s" if self.by else "range"

    def table(self, overlay: Overlay) -> Table | None:
        """Return the table of sums, None where there is to be none."""
        clocks = overlay.own.clocks
        if self.by == "kernel":
            return kernels_table(overlay, self.within, clocks)
        if self.by is not None:
            return steps_table(overlay, self.within, clocks, self.step_name)
        if self.within is not None:
            return ranges_table(overlay, [NamedRange(self.step or "range", *self.within)], clocks)
        return None


@dataclass(frozen=True)
class TelemetryAnswer:
    """What is printed: descriptions of the logs, the trace's counters, and sums over the logs."""

    scope: str
    start_ns: int  # from which people count
    descriptions: list[dict[str, Any]]
    counters: Table
    sums: Table | None

    @property
    def tables(self) -> list[Table]:
        """The tables that have rows, that of sums first."""
        first = [] if self.sums is None else [replace(self.sums, begins_ns=self.start_ns)]
        tables = [*first, self.counters, logs_table(self.descriptions, self.scope)]
        return [table for table in tables if len(table)]


def _read_logs(
    wall: Wall, paths: Sequence[str], named: bool, options: LogOptions, grouping: LogGrouping
) -> tuple[list[dict[str, Any]], Table | None]:
    """Return what the logs are, and the sums over those of the trace's run.

    Raises UsageError where there are to be sums and the wall time lacks, or a log that is named is of another
    run, or all that lie beside the trace are.
    """
    if not paths:
        return [], None
    if wall.base is not None:
        placed, overlay = read_logs(wall.trace, paths, options, named and grouping.is_given)
        if overlay is None and grouping.is_given:
            raise UsageError(placed[0].refusal)
        sums = None if overlay is None else grouping.table(overlay)
        return [describe(one.log, one.proposal) for one in placed], sums
    if grouping.is_given:
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


def _json(answer: TelemetryAnswer, name: str) -> Iterator[str]:
    tables = {"logs": json_rows(answer.descriptions), "counters": json_table(answer.counters)}
    notes = list(answer.counters.notes)
    if answer.sums is not None:
        tables[name] = json_table(answer.sums)
        notes = [*answer.sums.notes, *notes]
    return json_pieces("telemetry", answer.scope, 0, tables, notes)


def _text(answer: TelemetryAnswer, labels: dict[str, str]) -> str:
    texts = [log_text(entry, labels) for entry in answer.descriptions]
    if answer.sums is not None:
        texts.append(steps_text(answer.sums, answer.start_ns))
    if len(answer.counters):
        texts.append(table_text(answer.counters, table_style().plain))
    return "\n\n".join(texts)
