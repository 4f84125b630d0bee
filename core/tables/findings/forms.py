"""Findings as an analysis and as JSON, stored beside the index of a whole trace, and as Markdown."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from ...base.arrays import I64
from ...base.errors import UsageError
from ...base.private import read_sealed_json
from ...base.progress import CancelledCallback, never
from ...base.safe_text import markdown_words
from ...base.units import about_ns, format_share
from ...query.views import SliceId
from ..frame.cached import cache_file, is_whole, write_cached
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.table import Answers, Table, Tables
from .finding import Baseline, Evidence, Finding, Findings
from .leading import NAME, SCHEMA

if TYPE_CHECKING:
    from ..compare.summary import Summary

FIELDS = {
    **{name: name for name in ("rule", "title", "kind", "caused_by", "caused_ns", "claimed_ns", "share")},
    **{name: name for name in ("in_steps", "of_steps", "threshold", "helps")},
    "finding": "text",
    "short": "short",
    "place": "of_part",
    "places": "parts",
    "from": "origin",
}
"""Keys of a row, and the fields of a finding that they hold as they are."""


def findings_object(findings: Findings, origin: int) -> dict[str, Any]:
    """Return the JSON object; times of evidence are ns since the origin (trace time)."""
    return {
        "schema": SCHEMA,
        "table": "findings",
        "scope": findings.scope,
        "rows": [finding_row(finding, origin) for finding in findings.findings],
        "not_judged": [{"rule": rule, "reason": reason} for rule, reason in findings.not_judged],
    }


def findings_of(form: dict[str, Any], origin: int) -> Findings:
    """Return the findings of such an object; KeyError, TypeError or ValueError where it is none."""
    if form["schema"] != SCHEMA:
        raise ValueError("another schema")
    findings = []
    for row in form["rows"]:
        evidence = []
        for one in row["evidence"]:
            slice_id = SliceId(int(one["source"]), int(one["ordinal"])) if "ordinal" in one else None
            start, end = (int(one[key]) + origin for key in ("start_ns", "end_ns"))
            evidence.append(Evidence(str(one["label"]), start, end, slice_id))
        values = {name: row[key] for key, name in FIELDS.items()}
        findings.append(Finding(**values, sources=tuple(row["sources"]), evidence=tuple(evidence)))
    missing = tuple((str(entry["rule"]), str(entry["reason"])) for entry in form["not_judged"])
    return Findings(str(form["scope"]), tuple(findings), missing)


def findings_from(tables: Tables, order: I64 | None = None, limit: int | None = None) -> Findings:
    """Return the findings that such tables hold, sorted and cut as the command line says."""
    return findings_of(
        {
            "schema": SCHEMA,
            "scope": tables.scope,
            "rows": list(tables["findings"].rows(order, limit)),
            "not_judged": list(tables["not_judged"].rows()),
        },
        tables.origin_ns,
    )


def findings_markdown(findings: Findings) -> str:
    """Return the findings as a numbered list, for an issue or a report."""
    lines = [f"**Findings** ({markdown_words(findings.scope)})", ""]
    if not findings.findings:
        lines.append("Nothing found.")
    for number, finding in enumerate(findings.findings, 1):
        claim, text = markdown_words(claim_text(finding)), markdown_words(finding.text)
        lines.append(f"{number}. **{markdown_words(finding.title)}** ({claim}): {text}.")
        lines.append(f"   Usually helps: {finding.helps}")
        lines.append(f"   (`{finding.rule}`: {finding.threshold}; from: {finding.origin})")
    if findings.not_judged:
        missing = [f"`{rule}`: {markdown_words(why)}" for rule, why in findings.not_judged]
        lines += ["", "Not checked: " + "; ".join(missing) + "."]
    return "\n".join(lines) + "\n"


def claim_text(finding: Finding) -> str:
    """Return what a finding claims and in how many steps, for people."""
    parts = [finding.recurrence]
    if finding.note:
        parts.insert(0, "a note")
    elif finding.kind == "headline":
        parts.insert(0, "the time as a whole")
    elif finding.claimed_ns:
        parts.insert(0, f"{about_ns(finding.claimed_ns)}, {format_share(finding.share)} of the time")
    elif not finding.caused_ns:
        parts.insert(0, "no time lost")
    if finding.caused_ns:
        more = " more" if finding.claimed_ns else ""
        parts.insert(1 if more else 0, f"{about_ns(finding.caused_ns)}{more} by {finding.caused_by}")
    if finding.of_part:
        kinds = (("rank ", "on", "ranks"), ("process ", "in", "processes"), ("", "in", "files"))
        word, kind = next(words for start, *words in kinds if finding.of_part.startswith(start))
        several = f"{word} {finding.parts} {kind}, most " if finding.parts > 1 else ""
        parts.append(f"{several}{word} {finding.of_part}")
    return "; ".join(parts)


def finding_row(finding: Finding, origin: int) -> dict[str, Any]:
    """Return a finding as a row of its table; times of evidence are ns since the origin (trace time)."""
    row = {key: getattr(finding, name) for key, name in FIELDS.items()}
    evidence = [
        {"label": one.label, "start_ns": one.start - origin, "end_ns": one.end - origin}
        | ({} if one.slice is None else {"source": one.slice.source, "ordinal": one.slice.ordinal})
        for one in finding.evidence
    ]
    return row | {"note": finding.note, "sources": list(finding.sources), "evidence": evidence}


class JudgedAnswers(Answers):
    """Answers of a capture store that has findings, too."""

    @abstractmethod
    def findings(self, cancelled: CancelledCallback = never) -> Findings:
        """Return the findings about all ranks, or about two runs. Raises Cancelled."""


def saved_findings(scope: Scope) -> Findings:
    """Return the findings of a scope; those of a whole trace are computed once and stored."""
    if isinstance(scope.trace.answers, JudgedAnswers):
        return scope.trace.answers.findings(scope.cancelled)
    if (stored := stored_findings(scope)) is not None:
        return stored
    from .judge import findings  # all the rules, which reading findings does not need

    answer = findings(scope)
    if is_whole(scope):
        write_cached(cache_file(scope, NAME), findings_object(answer, 0))
    return answer


def stored_findings(scope: Scope) -> Findings | None:
    """Return the findings stored of a whole trace, None where there are none; takes no time."""
    if scope.trace.answers is not None or not is_whole(scope):
        return None
    try:
        return findings_of(read_sealed_json(cache_file(scope, NAME)), 0)
    except (OSError, KeyError, TypeError, ValueError):
        return None


FINDINGS = TableSchema(
    "findings",
    "Findings",
    (
        Column("rule", "rule", "text"),
        Column("kind", "kind", "text"),
        Column("claimed_ns", "cost", "ns"),
        Column("share", "of the time", "share"),
        Column("in_steps", "in steps", "count"),
        Column("of_steps", "of steps", "count"),
        Column("finding", "finding", "text"),
        Column("threshold", "reported when", "text"),
        Column("from", "from", "text"),
        Column("helps", "usually helps", "text"),
        Column("title", "title", "text", detail=True),
        Column("short", "in short", "text", detail=True),
        Column("caused_by", "caused by", "text", detail=True),
        Column("caused_ns", "by its cause", "ns", detail=True),
        Column("place", "place", "text", detail=True),
        Column("places", "places", "count", detail=True),
        Column("note", "note", "number", detail=True),
        Column("sources", "files", "object", detail=True),
        Column("evidence", "evidence", "object", detail=True),
    ),
)
NOT_JUDGED = TableSchema(
    "not_judged",
    "Not checked",
    (
        Column("rule", "rule", "text"),
        Column("reason", "reason", "text"),
    ),
)
WHOLE = "findings look at all slices of a range: --lanes and --where leave out what they need"


def analyse_findings(scope: Scope, baseline: Summary | None = None) -> Tables:
    """Return what the rules find in a scope, and the rules that the trace has not the data for.

    With the summary of a baseline, rules that compare two runs judge by it.
    """
    if scope.lanes is not None or scope.where is not None:
        raise UsageError(WHOLE)
    if baseline is None:
        return tables_of(saved_findings(scope), scope.origin)
    from ..compile.compile_phases import FUNCTION_NAME
    from .judge import findings

    values = {name: metric.value for name, metric in baseline.metrics.items()}
    compiled = any(values.get(f"compile.{name}") for name in ("regions", "graphs"))
    compiled |= any(FUNCTION_NAME.fullmatch(name) for name in baseline.tables["ops"].texts("name"))
    steps, length_ns = int(values.get("step.count") or 0), values.get("step.length.median")
    return tables_of(findings(scope, Baseline(baseline.title, compiled, steps, length_ns)), scope.origin)


def tables_of(findings: Findings, origin: int) -> Tables:
    """Return a row per finding, losses first, most time first, and the rules that could not be judged;
    evidence counts from the origin.
    """
    rows = [finding_row(finding, origin) for finding in findings.findings]
    missing = [{"rule": rule, "reason": reason} for rule, reason in findings.not_judged]
    tables = {
        "findings": lambda: Table.from_rows(FINDINGS, findings.scope, rows),
        "not_judged": lambda: Table.from_rows(NOT_JUDGED, findings.scope, missing),
    }
    return Tables(findings.scope, origin, tables)
