"""A report in Markdown for a performance issue: environment, where the time goes, findings; and one in HTML,
with pictures of the timeline.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..base.safe_text import markdown_block, markdown_cell, markdown_words, safe
from ..base.units import format_count, format_ns
from ..tables.device.breakdown import device_table
from ..tables.device.kernels import kernels
from ..tables.findings.finding import Findings
from ..tables.findings.forms import findings_markdown
from ..tables.frame.frame_columns import timed_work
from ..tables.frame.metrics import percentile
from ..tables.frame.scope import Scope
from ..tables.frame.table import Table
from ..tables.registry import BY_NAME
from ..tables.steps.steps import analyse_steps, host_runs_ahead
from ..trace.step_spans import StepSpans, step_spans
from .formats import as_markdown
from .html_page import flame, page_end, page_head, page_table
from .timeline_svg import beginning, timeline_svg

if TYPE_CHECKING:
    from ..trace import Trace

ROWS = 15
STEPS = 20
ALL_SLICES = "Over all slices of that time: findings need also those that lanes and filters leave out."
EARLIER = (
    "of the earlier run: its date, its commit (SHA), and what else differed (versions, settings, machine)"
)
CHECKLIST = (
    "the workload: model, batch size, input shapes, type of numbers, number of devices, eager or compiled",
    "a reproducer: the script, its arguments, and where the model and data come from",
    "the commit (SHA) of the code, and of torch and the device's stack where they were built by hand",
    "versions that are not in the trace: torch, driver, firmware, compiler, container image",
    "environment variables that change the run (PYTORCH_*, TORCH_*, the device's own)",
    "what was expected, and where that comes from: another device, another version, a calculation",
)


class Printed(NamedTuple):
    """Parts of the report that `tui` draws: the ops as PyTorch prints them, a picture of a step, the logs in
    words.
    """

    ops: str
    picture: str
    telemetry: str = ""


class Example(NamedTuple):
    """The part of the trace that the report shows: the step of median length, else the scope itself."""

    label: str
    start: int
    end: int


def example_of(scope: Scope) -> Example:
    """Return the step whose wall time is the median of those in the scope, else the whole of the scope."""
    low, high = scope.range or scope.opening_span
    steps = steps_inside(scope)
    if steps is None or not len(steps):
        return Example("", low, high)
    wall = steps.ends - steps.starts
    at = int(np.flatnonzero(wall == percentile(wall, 50))[0])
    return Example(f"step {steps.labels[at]}", int(steps.starts[at]), int(steps.ends[at]))


def steps_inside(scope: Scope) -> StepSpans | None:
    """Return the steps that lie in the scope's range wholly, None where the trace has none."""
    steps = step_spans(scope.trace, scope.clocks, scope.steps or None)
    if steps is None or scope.range is None:
        return steps
    inside = np.flatnonzero((steps.starts >= scope.range[0]) & (steps.ends <= scope.range[1]))
    labels = tuple(steps.labels[at] for at in inside.tolist())
    return replace(steps, labels=labels, starts=steps.starts[inside], ends=steps.ends[inside])


def report(
    scope: Scope,
    title: str,
    findings: Findings,
    printed: Printed,
    read_report: Sequence[str],
    against: tuple[Sequence[tuple[str, str]], Sequence[Table]] | None = None,
) -> str:
    """Return the report; `read_report` says in lines what was read and what was not, `against` has the sides
    and tables of a comparison with an earlier run.
    """
    parts = [
        f"# Performance report: {markdown_words(title)}",
        _summary(scope, read_report),
        _environment(scope),
    ]
    if against is not None:
        parts.append(_against(*against))
    parts += [_steps(scope), _table("Device time", device_table(timed_work(scope)), "no device worked")]
    whole = "" if scope.lanes is None and scope.where is None else f"{ALL_SLICES}\n\n"
    parts += [f"## Findings\n\n{whole}{_bare(findings_markdown(findings))}"]
    parts += [f"## Ops, as PyTorch prints them\n\n{markdown_block(printed.ops)}"]
    parts += [_table("Kernels", kernels(scope), "nothing ran on a device", ROWS)]
    if printed.telemetry:
        parts.append(f"## Telemetry\n\n{markdown_block(printed.telemetry)}")
    example = example_of(scope)
    items = CHECKLIST if against is None else (EARLIER, *CHECKLIST)
    parts.append(
        f"## A picture of {markdown_words(example.label or 'it all')}\n\n{markdown_block(printed.picture)}"
    )
    parts.append("## Still to add by hand\n\n" + "\n".join(f"- [ ] {item}" for item in items))
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _summary(scope: Scope, read_report: Sequence[str]) -> str:
    lines = [f"The numbers cover: {markdown_words(scope.text)}.", *read_report]
    steps = steps_inside(scope)
    if steps is None or not len(steps):
        lines.append(
            "Iterations: none; neither a profiler nor an engine marked any, and nothing repeats as they do."
        )
    else:
        wall, table = steps.ends - steps.starts, analyse_steps(scope)["steps"]
        ahead = float(table.totals["ahead"] or 0)
        lengths = table.numbers("length_ns") if ahead and len(table) else wall
        lines.append(
            f"Iterations: {format_count(len(steps))} ({markdown_words(f'{steps.choice}: {steps.reason}')}), "
            f"median {format_ns(percentile(lengths, 50))}, p95 {format_ns(percentile(lengths, 95))}."
        )
        if ahead:
            lines.append(f"T{host_runs_ahead(percentile(wall, 50), ahead)[1:]}.")
    return "\n".join(f"- {line}" for line in lines)


def _environment(scope: Scope) -> str:
    pairs = environment(scope.trace)
    lines = ["## Environment", "", "| what | value |", "| --- | --- |"]
    lines += [f"| {markdown_cell(what)} | {markdown_cell(value)} |" for what, value in pairs]
    return "\n".join(lines if pairs else ["## Environment", "", "The trace does not say."])


def _steps(scope: Scope) -> str:
    tables = analyse_steps(scope)
    table = tables["steps"]
    if not len(table):
        return "## Steps\n\n" + "\n".join(map(markdown_words, table.notes))
    return _table("Steps", table, "", STEPS) + "\n\n" + _bare(as_markdown(tables["groups"]))


def _against(titles: Sequence[tuple[str, str]], tables: Sequence[Table]) -> str:
    """Return what `diff` prints: the sides, the metrics with their noise, the rows that changed most."""
    lines = [f"- {side}: {markdown_words(title)}" for side, title in titles]
    parts = ["## What changed", "\n".join(lines)]
    for table in tables:
        if len(table):
            notes = "".join(f"\n\n{markdown_words(note)}" for note in table.notes)
            parts.append(
                f"### {table.title}\n\n{_bare(as_markdown(replace(table, notes=()), limit=ROWS))}{notes}"
            )
    return "\n\n".join(parts)


def _table(title: str, table: Table, nothing: str, limit: int | None = None) -> str:
    if not len(table):
        return f"## {title}\n\n{nothing or 'nothing in it'}"
    text = _bare(as_markdown(table, limit=limit))
    if limit is not None and len(table) > limit:
        text += f"\n\n{len(table) - limit:,} more of {len(table):,} rows."
    return f"## {title}\n\n{text}"


def _bare(text: str) -> str:
    """Return a table's Markdown without the line that names it."""
    return text.partition("\n\n")[2].strip("\n")


KNOWN = {
    "schemaVersion": "Kineto schema",
    "host_name": "host",
    "trace_id": "trace id",
    "record_shapes": "record_shapes",
    "profile_memory": "profile_memory",
    "with_stack": "with_stack",
    "with_flops": "with_flops",
    "with_modules": "with_modules",
}
"""Keys of a trace's envelope and what the report calls them, in this order: versions and settings."""
DEVICE_KEYS = ("deviceProperties", "computeProperties")
SPOKEN_OF = frozenset(
    {*KNOWN, *DEVICE_KEYS, "distributedInfo", "traceName", "displayTimeUnit", "baseTimeNanoseconds", "INFO"}
)
MAX_LENGTH = 300


def environment(trace: Trace) -> list[tuple[str, str]]:
    """Return (what, value) pairs of all files' envelopes; what files agree on stands once."""
    pairs: dict[tuple[str, str], None] = {}
    for index in trace.indexes:
        pairs.update(dict.fromkeys(_entries(index.envelope)))
    return list(pairs)


def _entries(envelope: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key in DEVICE_KEYS:
        alike: dict[str, list[str]] = {}
        devices = envelope.get(key)
        for device in devices if isinstance(devices, list) else []:
            if isinstance(device, dict):
                alike.setdefault(_short(", ".join(_properties(device))), []).append(
                    str(device.get("id", "?"))
                )
        for text, numbers in alike.items():
            yield f"device{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}", text
    group = envelope.get("distributedInfo")
    if isinstance(group, dict):
        entries = [
            f"{key} {group[key]}" for key in ("backend", "rank", "world_size", "pg_count") if key in group
        ]
        yield "distributed", _short(", ".join(entries))
    for key, name in KNOWN.items():
        if key in envelope:
            yield name, _short(envelope[key])
    for key, value in envelope.items():
        if key not in SPOKEN_OF:
            yield key, _short(value)


def _properties(device: Mapping[str, Any]) -> Iterator[str]:
    """Yield the name, then the other plain values, with their keys."""
    if "name" in device:
        yield str(device["name"])
    for key, value in device.items():
        if key not in ("id", "name") and isinstance(value, str | int | float):
            yield f"{key} {value}"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return beginning(" ".join(text.split()), MAX_LENGTH)


WIDTH = 1180
PICTURE_ROWS = 50
SECTIONS = (
    ("breakdown", "", "How devices spend their time", 0, ""),
    ("steps", "", "Steps", 30, ""),
    ("findings", "", "What stands out", 20, ""),
    ("kernels", "", "Kernels", 20, "total_ns"),
    ("ops", "", "Ops", 20, "self_cpu_ns"),
    ("idle", "gaps", "Longest gaps", 15, ""),
    ("launches", "", "Launches", 15, ""),
)
"""(analysis, table or "" for its first, heading, rows or 0 for all, the column that is greatest first)."""


def html_report(scope: Scope, title: str) -> Iterator[str]:
    """Yield the page of a scope piece by piece; nothing in it is loaded from elsewhere. Raises Cancelled."""
    trace = scope.trace
    name = escape(safe(title))
    yield page_head(title, has_flame=True)
    yield f"<h1>{name}</h1><p>{escape(safe(scope.text))}</p>"
    window = scope.range or scope.opening_span
    yield f"<h2>The timeline</h2><p>{format_ns(window[1] - window[0])}</p>"
    yield f'<div class="picture">{timeline_svg(scope, WIDTH, PICTURE_ROWS)}</div>'
    example = example_of(scope)
    if example.label and (example.start, example.end) != window:
        yield f"<h2>{escape(safe(example.label[:1].upper() + example.label[1:]))}</h2>"
        picture = timeline_svg(scope, WIDTH, PICTURE_ROWS, (example.start, example.end))
        yield f'<div class="picture">{picture}</div>'
    for analysis, table, heading, limit, sort in SECTIONS:
        scope.check()
        tables = BY_NAME[analysis].run(scope)
        yield from _section(heading, tables[table] if table else tables.main, limit, sort)
    yield "<h2>Call tree</h2><p>Each call as wide as its time; a click zooms to it, one beside it back.</p>"
    yield from flame(trace, BY_NAME["tree"].run(scope).main)
    facts = [(escape(safe(what)), escape(safe(value))) for what, value in environment(trace)]
    rows = "".join(f"<tr><th>{what}</th><td>{value}</td></tr>" for what, value in facts)
    if rows:
        yield f'<h2>Environment</h2><div class="picture"><table>{rows}</table></div>'
    yield page_end(has_flame=True)


def _section(heading: str, table: Table, limit: int, sort: str) -> Iterator[str]:
    yield f"<h2>{escape(heading)}</h2>"
    if not len(table):
        notes = "".join(f"<div>{escape(safe(note))}</div>" for note in table.notes)
        yield f"<p>nothing in it</p>{notes}"
        return
    ordered = table.sort(sort) if sort and sort in table.data else table
    yield page_table(ordered, limit or len(table))
