"""All rules over all files of a trace, and the sum of their events by kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...base.errors import UsageError
from ...base.installed import adding_packages
from ..device.doubts import untrusted_table
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.table import Table, Tables, row_of_object
from . import rules_device, rules_reading, rules_recording
from .rule import SEVERITIES, TERMS, Diagnosis, DoctorRule, Recording, event_terms

RULES: tuple[DoctorRule, ...] = tuple(
    each
    for file in (rules_reading, rules_device, rules_recording)
    for each in vars(file).values()
    if isinstance(each, DoctorRule)
)
FAILED = 1
DOCTOR = TableSchema(
    "doctor",
    "Doctor",
    (
        Column("rule", "rule", "text"),
        Column("severity", "severity", "text"),
        Column("count", "count", "count"),
        Column("text", "what", "text"),
        Column("distorts", "distorts", "text"),
        Column("evidence", "evidence", "object"),
        Column("source", "from", "text", detail=True),
        Column("threshold", "reported when", "text", detail=True),
        Column("file", "file", "text", detail=True),
    ),
    keys=("rule", "file"),
)
EVENTS = TableSchema(
    "events",
    "Events",
    (
        Column("file", "file", "text", detail=True),
        Column("term", "term", "text", detail=True),
        Column("counts", "events", "text"),
        Column("count", "count", "count"),
    ),
    keys=("file", "term"),
)
CLOCKS = TableSchema(
    "clocks",
    "Clocks of devices",
    (
        Column("file", "file", "text", detail=True),
        Column("device", "device", "text"),
        Column("pairs", "work with a launch", "count"),
        Column("early", "begins before it", "count"),
        Column("lead_ns", "by up to", "ns"),
        Column("offset_ns", "proposed shift", "ns", statistic=True),
        Column("delay_median_ns", "delay after it, median", "ns"),
        Column("delay_p95_ns", "p95", "ns"),
    ),
    keys=("file", "device"),
)
WHOLE = "doctor looks at whole files: --from, --to, --step, --lanes and --where leave out what it needs"


def analyse_doctor(scope: Scope, strict: bool = False, recount: bool = False) -> Tables:
    """Return what the rules find, the events by kind, and the devices' clocks, file by file; with `recount`
    what an independent reading of the files comes to, in place of all that.
    """
    if scope.range is not None or scope.lanes is not None or scope.where is not None:
        raise UsageError(WHOLE)
    if recount:
        from .recount_tables import recount_tables  # brings ijson

        return recount_tables(scope, strict)
    recordings = [Recording(scope, source) for source in range(len(scope.trace.indexes))]
    rows = []
    for recording in recordings:
        for rule in RULES:
            scope.check()
            if (diagnosis := rule.diagnosis(recording)) is not None:
                rows.append(_row(rule, diagnosis, recording))
    rows.sort(key=lambda row: SEVERITIES.index(row["severity"]))
    counts = {f"{severity}s": sum(row["severity"] == severity for row in rows) for severity in SEVERITIES}
    fails = bool(counts["errors"] or counts["warnings"] or (strict and counts["notes"]))
    notes = [f"added by another package, {line}" for line in adding_packages()]
    totals = {**counts, "failed": fails}
    makers = {
        "doctor": lambda: Table.from_rows(DOCTOR, scope.text, rows, totals=totals, notes=notes),
        "events": lambda: _events_table(scope, recordings),
        "clocks": lambda: _clocks_table(scope, recordings),
        "untrusted": lambda: untrusted_table(scope, [one for part in recordings for one in part.untrusted]),
    }
    return Tables(scope.text, scope.origin, makers)


def said_before_recount(scope: Scope, strict: bool = False, recount: bool = False) -> str:
    """Return how long a recount takes, which depends on ijson; "" without one."""
    if not recount:
        return ""
    from .recount_tables import estimate

    return estimate(scope)


def doctor_exit_code(tables: Tables) -> int:
    """Return the exit code: 1 from a warning on, of strict ones from a note on."""
    return FAILED if tables.totals["failed"] else 0


def _row(rule: DoctorRule, diagnosis: Diagnosis, recording: Recording) -> dict[str, Any]:
    return {
        "rule": rule.id,
        "severity": diagnosis.severity or rule.severity,
        "count": diagnosis.count,
        "text": diagnosis.text,
        "distorts": rule.distorts,
        "evidence": [exhibit.row(recording.scope.origin) for exhibit in diagnosis.evidence],
        "source": rule.origin,
        "threshold": rule.threshold,
        "file": Path(recording.index.path).name,
    }


def _events_table(scope: Scope, recordings: list[Recording]) -> Table:
    rows = [
        {"file": Path(recording.index.path).name, "term": term, "counts": TERMS[term], "count": count}
        for recording in recordings
        for term, count in event_terms(recording.index).items()
    ]
    total = sum(int(recording.index.read_report["events"]) for recording in recordings)
    return Table.from_rows(EVENTS, scope.text, rows, totals={"events": total})


def _clocks_table(scope: Scope, recordings: list[Recording]) -> Table:
    rows = [
        row_of_object(
            CLOCKS.columns,
            clock,
            file=Path(recording.index.path).name,
            device=clock.title,
            offset_ns=clock.proposed_ns if clock.needs_shift else None,
            delay_median_ns=clock.middle_ns,
            delay_p95_ns=clock.late_ns,
        )
        for recording in recordings
        for clock in recording.clocks
    ]
    return Table.from_rows(CLOCKS, scope.text, rows)


def doctor_rules_table() -> str:
    """Return all rules as Markdown, for the docs."""
    lines = ["| rule | severity | reported when | distorts | from |", "|---|---|---|---|---|"]
    lines += [
        f"| `{rule.id}` | {rule.severity} | {rule.threshold} | {rule.distorts} | {rule.origin} |"
        for rule in RULES
    ]
    return "\n".join(lines) + "\n"
