"""Findings as a JSON object and back, and as Markdown."""

from __future__ import annotations

from typing import Any

from ...base.arrays import I64
from ...base.ids import SliceId
from ...base.safe_text import markdown_words
from ...base.units import about_ns, format_share
from ..table import Tables
from .finding import Evidence, Finding, Findings

SCHEMA = 1
FIELDS = {
    **{name: name for name in ("rule", "title", "kind", "caused_by", "caused_ns", "claimed_ns", "share")},
    **{name: name for name in ("in_steps", "of_steps", "threshold", "helps")},
    "finding": "text",
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
    rows = tuple(_finding(row, origin) for row in form["rows"])
    missing = tuple((str(entry["rule"]), str(entry["reason"])) for entry in form["not_judged"])
    return Findings(str(form["scope"]), rows, missing)


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
    evidence = [_evidence_row(evidence, origin) for evidence in finding.evidence]
    return row | {"note": finding.note, "sources": list(finding.sources), "evidence": evidence}


def _evidence_row(evidence: Evidence, origin: int) -> dict[str, Any]:
    row: dict[str, Any] = {
        "label": evidence.label,
        "start_ns": evidence.start - origin,
        "end_ns": evidence.end - origin,
    }
    if evidence.slice is not None:
        row |= {"source": evidence.slice.source, "ordinal": evidence.slice.ordinal}
    return row


def _finding(row: dict[str, Any], origin: int) -> Finding:
    values = {name: row[key] for key, name in FIELDS.items()}
    evidence = tuple(_evidence(entry, origin) for entry in row["evidence"])
    return Finding(**(values | {"sources": tuple(row["sources"]), "evidence": evidence}))


def _evidence(row: dict[str, Any], origin: int) -> Evidence:
    slice_id = SliceId(int(row["source"]), int(row["ordinal"])) if "ordinal" in row else None
    return Evidence(str(row["label"]), int(row["start_ns"]) + origin, int(row["end_ns"]) + origin, slice_id)
