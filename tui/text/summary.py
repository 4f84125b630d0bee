"""What a trace is, in words for people and as the object that `info --json` prints."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tracelane.core.base.output import writes_unicode
from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import count_of, format_count, format_ns
from tracelane.core.index.format import LaneKind
from tracelane.core.tables.device.untrusted_periods import untrusted
from tracelane.core.tables.frame.schema import Column, TableSchema
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.frame.table import Table

if TYPE_CHECKING:
    from tracelane.core.trace import Lane, SourceInfo, Trace

SCHEMA = 1
COUNTS = ("events", "slices", "instants", "counter_samples", "metadata", "async_spans")
TERMS = ("pairs", "counter_events", "flow_events", "async_events", "empty")
"""Further kinds of events: with slices, instants, metadata, what is unmatched and what is lost they add up to
all events of a file.
"""
FLOW_COUNTS = ("starts", "steps", "ends", "paired", "orphan_starts", "orphan_ends")
PROBLEM = ("kind", "count", "offset", "message")
NAMES = {
    "metadata": ("metadata event",),
    "unmatched_begin": ("begin without an end", "begins without an end"),
    "unmatched_end": ("end without a begin", "ends without a begin"),
    "mismatched_ends": ("end that names another slice", "ends that name another slice"),
    "empty_counters": ("counter event without a number", "counter events without a number"),
    "without_time": ("event without a usable time", "events without a usable time"),
    "not_objects": ("element that is no object", "elements that are no objects"),
    "negative_durations": ("negative duration", "negative durations"),
    "missing_durations": ("missing duration", "missing durations"),
    "repaired": ("event repaired", "events repaired"),
    "oversized": ("event too large to keep whole", "events too large to keep whole"),
    "unreadable": ("event unreadable", "events unreadable"),
}
"""Counts whose key is not their name."""
TROUBLE = tuple(key for key in NAMES if key != "metadata")
COUNTED = ("slices", "depth", "overlapping", "instants", "samples")
"""What a lane's row counts."""
LANES_SHOWN = 12
"""Lanes told of each process; the rest are counted."""


def trace_info(trace: Trace, source: int = 0) -> dict[str, Any]:
    """Return the object of `info --json` for one source of a trace; times in exact ns as in the file."""
    info = trace.sources[source]
    read_report: Mapping[str, Any] = info.read_report
    flows: Mapping[str, Mapping[str, int]] = read_report.get("flows", {})
    return {
        "schema": SCHEMA,
        "path": str(info.path),
        "form": info.form,
        "producer": trace.producer(source),
        **{key: int(read_report.get(key, 0)) for key in COUNTS},
        "instants": int(read_report.get("instant_events", 0)),
        **{key: int(read_report.get(key, 0)) for key in TERMS},
        "flows": {
            category: {key: int(counts.get(key, 0)) for key in FLOW_COUNTS}
            for category, counts in flows.items()
        },
        **{key: int(read_report.get(key, 0)) for key in TROUBLE},
        "problems": [{key: problem.get(key) for key in PROBLEM} for problem in info.problems],
        "notes": [*info.notes, *trace.capture_notes(source)],
        "untrusted": [
            {
                "device": "" if one.device is None else one.device.label,
                "trouble": one.trouble,
                "start_ns": one.start,
                "end_ns": one.end,
                "count": one.count,
            }
            for one in untrusted(Scope(trace, source=source))
        ],
        "start_ns": info.manifest.get("start_ns"),
        "end_ns": info.manifest.get("end_ns"),
        "base_time_ns": info.base_time_ns,
        "processes": [
            {
                "pid": _value(process.pid),
                "name": process.name,
                "labels": process.labels,
                "lanes": [_lane(trace.lanes[number]) for number in process.lanes],
            }
            for process in trace.processes
            if process.source == source
        ],
    }


LANES = TableSchema(
    "lanes",
    "Lanes",
    (
        Column("file", "file", "text"),
        Column("process", "process", "text"),
        Column("lane", "lane", "text"),
        Column("kind", "kind", "text"),
        Column("role", "role", "text"),
        *(Column(key, key, "count") for key in COUNTED),
    ),
)
EVENT_COUNTS = TableSchema(
    "counts",
    "Events",
    (Column("file", "file", "text"), Column("what", "what", "text"), Column("count", "count", "count")),
)


def info_tables(trace: Trace) -> list[Table]:
    """Return how much of what each source holds, and its lanes."""
    names = [str(source.path) for source in trace.sources]
    counts = [
        {"file": name, "what": key.replace("_", " "), "count": value}
        for source, name in enumerate(names)
        for key, value in trace_info(trace, source).items()
        if key in (*COUNTS, *TERMS, *TROUBLE) and isinstance(value, int)
    ]
    lanes = [
        {
            "file": names[lane.source],
            "process": lane.process.title,
            "lane": lane.title,
            "kind": LaneKind(lane.kind).name.lower(),
            "role": lane.role.name.lower(),
            **{key: getattr(lane, key) for key in COUNTED},
        }
        for lane in trace.lanes
    ]
    return [Table.from_rows(EVENT_COUNTS, "all", counts), Table.from_rows(LANES, "all", lanes)]


def _lane(lane: Lane) -> dict[str, Any]:
    return {
        "tid": _value(lane.tid),
        "name": lane.name,
        "kind": LaneKind(lane.kind).name.lower(),
        "role": lane.role.name.lower(),
        "slices": lane.slices,
        "depth": lane.depth,
        "rows": len(lane.rows),
        "overlapping": lane.overlapping,
    }


def _value(text: str) -> Any:
    """Return the JSON value that a pid's or tid's text stands for; the text where JSON cannot say it."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, float) and not math.isfinite(value) else value


def summary(trace: Trace, lanes: bool = True) -> str:
    """Return what was read, in a few lines per source; `lanes` lists processes and lanes too."""
    return "\n".join(line for number in range(len(trace.sources)) for line in _source(trace, number, lanes))


def _source(trace: Trace, number: int, lanes: bool) -> Iterator[str]:
    info = trace.sources[number]
    read_report: Mapping[str, Any] = info.read_report
    if "instant_events" in read_report:
        read_report = {**read_report, "instants": read_report["instant_events"]}
    if "events" not in read_report:  # a telemetry log
        yield f"{safe(str(info.path))} · {info.form} · {_counted(read_report, 'counter_samples')}"
        yield from _problems(info)
        yield from (f"  {safe(note)}" for note in info.notes)
        return
    start, end = info.manifest.get("start_ns"), info.manifest.get("end_ns")
    aside = len(trace.on_other_clock(number)) + trace.marks_on_other_clock(number)
    if aside and (own := trace.span_on_clock(number)) is not None:
        start, end = own
    span = f" · {format_ns(end - start)}" if start is not None and end is not None else ""
    span += f", {count_of(aside, 'event')} on another clock aside" if aside else ""
    yield f"{safe(str(info.path))} · {info.form} · {_counted(read_report, 'events')}{span}"
    counted = [_counted(read_report, key) for key in COUNTS[1:] if read_report.get(key)]
    if counted:
        yield "  " + ", ".join(counted)
    for category, flows in read_report.get("flows", {}).items():
        orphans = f", {format_count(flows['orphan_starts'])} starts" if flows["orphan_starts"] else ""
        orphans += f", {format_count(flows['orphan_ends'])} ends" if flows["orphan_ends"] else ""
        alone = f" · alone: {orphans[2:]}" if orphans else ""
        paired, ends = format_count(flows["paired"]), format_count(flows["ends"])
        yield f"  flows {safe(category) or '(no category)'}: {paired} of {ends} ends paired{alone}"
    trouble = [_counted(read_report, key) for key in TROUBLE if read_report.get(key)]
    if trouble:
        yield "  " + ", ".join(trouble)
    yield from _problems(info)
    yield from (f"  {safe(note)}" for note in (*info.notes, *trace.capture_notes(number)))
    if lanes and (producer := trace.producer(number)):
        yield f"  written by {producer}"
    if lanes:
        yield from _processes(trace, number)


def _problems(info: SourceInfo) -> Iterator[str]:
    for problem in info.problems:
        where = "" if problem.get("offset") is None else f", first at byte {problem['offset']:,}"
        yield f"  ! {safe(problem['message'])} ({format_count(problem['count'])}×{where})"


def _processes(trace: Trace, source: int) -> Iterator[str]:
    for process in trace.processes:
        if process.source != source:
            continue
        empty = f" · {count_of(process.empty, 'empty lane')}" if process.empty else ""
        yield f"  {safe(process.title)}{empty}"
        lanes = process.lanes[:LANES_SHOWN]
        for lane in (trace.lanes[number] for number in lanes):
            yield f"    {safe(lane.title).rstrip(': ')}: {_content(lane)}"
        if len(process.lanes) > len(lanes):
            yield f"    … {count_of(len(process.lanes) - len(lanes), 'more lane')}"


def _content(lane: Lane) -> str:
    parts = []
    if lane.slices:
        parts.append(f"{count_of(lane.slices, 'slice')}, depth {lane.depth}")
    if lane.overlapping:
        parts.append(f"{format_count(lane.overlapping)} overlapping")
    if lane.unclosed:
        parts.append(f"{format_count(lane.unclosed)} never closed")
    if lane.instants:
        parts.append(count_of(lane.instants, "instant"))
    if lane.samples:
        parts.append(count_of(lane.samples, "sample"))
    return ", ".join(parts)


def _counted(read_report: Mapping[str, Any], key: str) -> str:
    return count_of(int(read_report.get(key, 0)), *NAMES.get(key, (key.removesuffix("s").replace("_", " "),)))


def writable(text: str) -> str:
    """Return a text in ASCII where the locale has nothing else."""
    if writes_unicode():
        return text
    from ..draw.glyphs import ascii_text  # brings rich, which a summary can do without

    return ascii_text(text)
