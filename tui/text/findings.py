"""Findings and what the doctor says as lines for a terminal: what it is, what it affects, where to look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

from tracelane.core.base.arrays import I64
from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import format_count, format_moment, format_ns, origin_text, ts_text
from tracelane.core.tables.findings.finding import Finding, Findings
from tracelane.core.tables.findings.forms import claim_text
from tracelane.core.tables.frame.table import Tables
from tracelane.tui.text.table import TableStyle, table_text

INDENT = "   "
MIN_WIDTH = 40
FAR_NS = 3600 * 10**9


def findings_text(findings: Findings, width: int, origin: int) -> str:
    """Return all findings as text of at most `width` columns; evidence stands at +time since the origin."""
    width = max(width, MIN_WIDTH)
    lines = [safe(f"Findings: {findings.scope}")]
    if not findings.findings:
        lines.append("nothing found")
    for headline in findings.of_kind("headline"):
        lines += wrap(safe(f"{headline.title}: {headline.text}."), width, subsequent_indent=INDENT)
    for number, finding in enumerate(findings.losses, 1):
        margin = INDENT if finding.caused_by else ""
        title = f"{number}. {finding.title}: {claim_text(finding)}"
        lines += ["", margin + safe(title)]
        room = width - len(margin) - len(INDENT)
        lines += [margin + INDENT + line for line in finding_lines(finding, room, origin)]
    if notes := findings.of_kind("note"):
        lines += ["", f"Seen, nothing to do: {len(notes)}"]
        for note in notes:
            lines += wrap(safe(f"- {note.title}: {note.text}."), width, subsequent_indent="  ")
    if findings.not_judged:
        lines += ["", *missing_lines(findings, width)]
    if any(finding.evidence for finding in findings.findings):
        lines += ["", *wrap(origin_text(origin), width)]
    return "\n".join(lines)


def missing_lines(findings: Findings, width: int) -> list[str]:
    """Return which rules could not be judged, by the reason."""
    why: dict[str, list[str]] = {}
    for rule, reason in findings.not_judged:
        why.setdefault(reason, []).append(rule)
    texts = (safe(f"not checked, as {reason}: {', '.join(rules)}") for reason, rules in why.items())
    return [line for text in texts for line in wrap(text, width, subsequent_indent=INDENT)]


def finding_lines(finding: Finding, width: int, origin: int, threshold: bool = False) -> Iterator[str]:
    """Yield one finding's sentence, evidence and help; with `threshold` also when and why its rule speaks."""
    yield from wrap(f"{safe(finding.text)}.", width)
    for evidence in finding.evidence:
        length, moment = format_ns(evidence.end - evidence.start), place_text(evidence.start - origin, origin)
        yield from wrap(f"- {safe(evidence.label)}: {length} at {moment}", width, subsequent_indent="  ")
    yield from wrap(f"helps: {finding.helps}", width, subsequent_indent="  ")
    if threshold:
        yield from wrap(f"reported when {finding.threshold}", width, subsequent_indent="  ")
        yield from wrap(f"from: {finding.origin}", width, subsequent_indent="  ")


def place_text(start: int, origin: int) -> str:
    """Return where evidence stands that starts so long after the origin. Far from it that would be days and
    hours: then the time as it stands in the file.
    """
    return ts_text(start + origin) if abs(start) >= FAR_NS else format_moment(start)


def doctor_text(tables: Tables, width: int, order: I64 | None = None, limit: int | None = None) -> str:
    """Return all findings as text of at most `width` columns, the sum of the events, the devices' clocks."""
    width = max(width, MIN_WIDTH)
    table = tables.main
    lines = [safe(f"Doctor: {tables.scope}")]
    for row in table.rows(order, limit):
        lines += ["", *_row_lines(row, width, tables.origin_ns)]
    if not len(table):
        lines.append("nothing is wrong")
    if limit is not None and len(table) > limit:
        lines += ["", f"… {len(table) - limit} more"]
    if any("start_ns" in evidence for row in table.rows(order, limit) for evidence in row["evidence"]):
        lines += ["", *wrap(origin_text(tables.origin_ns), width)]
    lines += ["", *wrap(_sum_text(tables), width, subsequent_indent=INDENT)]
    for note in table.notes:
        lines += wrap(safe(note), width, subsequent_indent=INDENT)
    if len(tables["clocks"]):
        lines += ["", table_text(tables["clocks"], TableStyle(width))]
    return "\n".join(lines)


def recount_text(tables: Tables, width: int) -> str:
    """Return a sentence for each file, and the first difference where there is one."""
    rows = list(tables["recount"].rows())
    texts = [row["text"] if len(rows) == 1 else f"{row['file']}: {row['text']}" for row in rows]
    lines = (wrap(safe(text), max(width, MIN_WIDTH), subsequent_indent=INDENT) for text in texts)
    return "\n".join(line for each in lines for line in each)


def _row_lines(row: Mapping[str, Any], width: int, origin: int) -> Iterator[str]:
    yield from wrap(
        safe(f"{row['severity']}: {row['text']} ({row['rule']})"), width, subsequent_indent=INDENT
    )
    texts = [f"affects: {row['distorts']}"]
    texts += [f"look at {_place_text(evidence, origin)}" for evidence in row["evidence"]]
    texts.append(f"reported when {row['threshold']}; from: {row['source']}")
    for text in texts:
        yield from wrap(safe(text), width, initial_indent=INDENT, subsequent_indent=INDENT + "  ")


def _place_text(evidence: Mapping[str, Any], origin: int) -> str:
    parts = [str(evidence["label"])]
    if "start_ns" in evidence:
        length = format_ns(evidence["end_ns"] - evidence["start_ns"])
        parts.append(f"at {place_text(evidence['start_ns'], origin)}, {length} long")
    if "ordinal" in evidence:
        parts.append(f"event {evidence['ordinal']}")
    if "offset" in evidence:
        parts.append(f"byte {format_count(evidence['offset'])}")
    return ", ".join(parts)


def _sum_text(tables: Tables) -> str:
    sums: dict[str, int] = {}
    for row in tables["events"].rows():
        sums[row["term"]] = sums.get(row["term"], 0) + row["count"]
    terms = [f"{format_count(count)} {term.replace('_', ' ')}" for term, count in sums.items() if count]
    return f"{format_count(tables['events'].totals['events'])} events = {' + '.join(terms) or '0'}"
