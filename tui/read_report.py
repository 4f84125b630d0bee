"""What was read of each file and what was not: the read report, problems first, with their byte offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tracelane.core.base.units import format_count

_KINDS: tuple[tuple[str, str], ...] = (
    ("slices", "slices: X events with a usable time, and matched B/E pairs"),
    ("instants", "instants"),
    ("counter_samples", "counter samples"),
    ("async_spans", "async spans"),
    ("metadata", "metadata events: names, labels, sort orders"),
    ("unmatched_begin", "B without E: drawn to the end of the lane, marked"),
    ("unmatched_end", "E without B: shown as instants"),
)


class SourceLike(Protocol):
    """One file of a trace, as far as its read report goes."""

    @property
    def path(self) -> Any:
        """Where it lies."""
        ...

    @property
    def read_report(self) -> Mapping[str, Any]:
        """Counts of everything read."""
        ...

    @property
    def problems(self) -> Sequence[Any]:
        """What was not whole: kind, count, offset, message each."""
        ...


@dataclass(frozen=True)
class ReadReportRow:
    """A line of the read report: what, how many, the first byte offset where that matters, in words."""

    source: str
    what: str
    count: int | None  # of a note: none
    offset: int | None
    text: str


def read_report_state(sources: Sequence[SourceLike]) -> tuple[str, bool]:
    """Return one line on how reading went, and whether all is well."""
    events = sum(int(source.read_report.get("events", 0)) for source in sources)
    losses = []
    for source in sources:
        for kind, count, offset, _ in _problems(source):
            losses.append((kind, count, offset))
        losses += [
            (text, count, None)
            for term, text in LOST_TERMS.items()
            if (count := int(source.read_report.get(term, 0))) > 0
        ]
    noted = [entry for entry in losses if entry[0] in LOSSES or entry[0] in LOST_TERMS.values()]
    if not noted and not events:
        return "no events in it", True
    if not noted:
        return f"✓ all {format_count(events)} events read", True
    parts = []
    for kind in dict.fromkeys(entry[0] for entry in noted):
        same = [entry for entry in noted if entry[0] == kind]
        offset = same[0][2]
        where = f" at byte {format_count(offset)}" if offset is not None and len(same) == 1 else ""
        parts.append(f"{format_count(sum(entry[1] for entry in same))} {kind}{where}")
    return f"{format_count(events)} read, {', '.join(parts)}", False


LOST_TERMS = {"without_time": "without a usable time", "not_objects": "no objects"}
"""Terms of the read report for events that stand in no lane, in words; those that are unreadable are told as
problems.
"""
LOSSES = frozenset({"repaired", "oversized", "unreadable", "truncated", "damaged"})
"""Kinds of problems that the header speaks of; the others are in the panel only."""


def read_report_rows(sources: Sequence[SourceLike]) -> list[ReadReportRow]:
    """Return the read report of all files: problems first, then notes, then what was read."""
    rows: list[ReadReportRow] = []
    several = len(sources) > 1
    for source in sources:
        name = Path(str(source.path)).name if several else ""
        for kind, count, offset, message in _problems(source):
            rows.append(ReadReportRow(name, kind, count, offset, message))
    for source in sources:
        name = Path(str(source.path)).name if several else ""
        rows += [ReadReportRow(name, "note", None, None, note) for note in getattr(source, "notes", ())]
    for source in sources:
        name = Path(str(source.path)).name if several else ""
        read_report = source.read_report
        if "events" in read_report:
            rows.append(
                ReadReportRow(
                    name, "events", int(read_report["events"]), None, "everything in the event array"
                )
            )
        for key, text in _KINDS:
            if count := int(read_report.get(key, 0)):
                rows.append(ReadReportRow(name, key.replace("_", " "), count, None, text))
        for category, ends in sorted((read_report.get("flows") or {}).items()):
            text = (
                f"{format_count(ends['starts'])} starts, {format_count(ends['ends'])} ends, "
                f"{format_count(ends['paired'])} paired; without the other side: "
                f"{format_count(ends['orphan_starts'])} starts, {format_count(ends['orphan_ends'])} ends"
            )
            rows.append(ReadReportRow(name, f"flow {category}".strip(), int(ends["paired"]), None, text))
    return rows


def _problems(source: SourceLike) -> list[tuple[str, int, int | None, str]]:
    problems = []
    for problem in source.problems:
        if isinstance(problem, Mapping):
            problems.append(
                (problem["kind"], int(problem["count"]), problem.get("offset"), problem["message"])
            )
        else:
            problems.append((problem.kind, int(problem.count), problem.offset, problem.message))
    return problems
