"""What was read of each file and what was not: the read report, problems first, with their byte offsets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tracelane.core.base.units import format_count
from tracelane.core.read.problem import DAMAGED, UNVERIFIED
from tracelane.core.trace import SourceInfo

_KINDS: tuple[tuple[str, str], ...] = (
    ("slices", "slices: X events with a usable time, and matched B/E pairs"),
    ("instants", "instants"),
    ("counter_samples", "counter samples"),
    ("async_spans", "async spans"),
    ("metadata", "metadata events: names, labels, sort orders"),
    ("unmatched_begin", "B without E: drawn to the end of the lane, marked"),
    ("unmatched_end", "E without B: shown as instants"),
)
LOST_TERMS = {"without_time": "without a usable time", "not_objects": "no objects"}
"""Terms of the read report for events that stand in no lane, in words; those that are unreadable are told as
problems.
"""
LOSSES = frozenset({"repaired", "oversized", "unreadable", "truncated", DAMAGED, UNVERIFIED})
"""Kinds of problems that the header speaks of; the others are in the panel only."""


class ReadReportRow(NamedTuple):
    """A line of the read report: what, how many, the first byte offset where that matters, in words."""

    source: str
    what: str
    number: int | None  # of a note: none
    offset: int | None
    text: str


def read_report_state(sources: Sequence[SourceInfo]) -> tuple[str, bool]:
    """Return one line on how reading went, and whether all is well."""
    events = sum(int(source.read_report.get("events", 0)) for source in sources)
    losses: list[tuple[str, int, int | None]] = []
    for source in sources:
        for problem in source.problems:
            if problem["kind"] in LOSSES:
                losses.append((problem["kind"], int(problem["count"]), problem.get("offset")))
        for term, text in LOST_TERMS.items():
            if (count := int(source.read_report.get(term, 0))) > 0:
                losses.append((text, count, None))
    if not losses:
        return (f"✓ all {format_count(events)} events read" if events else "no events in it"), True
    parts = []
    for kind in dict.fromkeys(entry[0] for entry in losses):
        if kind in (DAMAGED, UNVERIFIED):
            continue
        same = [entry for entry in losses if entry[0] == kind]
        offset = same[0][2]
        where = f" at byte {format_count(offset)}" if offset is not None and len(same) == 1 else ""
        parts.append(f"{format_count(sum(entry[1] for entry in same))} {kind}{where}")
    damage = [f"damaged at byte {format_count(at or 0)}: copy it again" for at in _damaged_at(losses)]
    return f"{format_count(events)} read, {', '.join([*damage, *parts])}", False


def _damaged_at(losses: Sequence[tuple[str, int, int | None]]) -> list[int | None]:
    """Return at which byte of its file the first packed one is damaged."""
    return [at for kind, _, at in losses if kind in (DAMAGED, UNVERIFIED)][:1]


def read_report_rows(sources: Sequence[SourceInfo]) -> list[ReadReportRow]:
    """Return the read report of all files: problems first, then notes, then what was read."""
    problems, notes, contents = [], [], []
    for source in sources:
        name = Path(str(source.path)).name if len(sources) > 1 else ""
        for one in source.problems:
            row = ReadReportRow(name, one["kind"], int(one["count"]), one.get("offset"), one["message"])
            problems.append(row)
        notes += [ReadReportRow(name, "note", None, None, note) for note in source.notes]
        report = source.read_report
        if "events" in report:
            events = int(report["events"])
            contents.append(ReadReportRow(name, "events", events, None, "everything in the event array"))
        for key, text in _KINDS:
            if count := int(report.get(key, 0)):
                contents.append(ReadReportRow(name, key.replace("_", " "), count, None, text))
        for category, ends in sorted((report.get("flows") or {}).items()):
            text = (
                f"{format_count(ends['starts'])} starts, {format_count(ends['ends'])} ends, "
                f"{format_count(ends['paired'])} paired; without the other side: "
                f"{format_count(ends['orphan_starts'])} starts, {format_count(ends['orphan_ends'])} ends"
            )
            contents.append(ReadReportRow(name, f"flow {category}".strip(), int(ends["paired"]), None, text))
    return [*problems, *notes, *contents]
