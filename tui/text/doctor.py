"""What the doctor says as lines for a terminal: what is wrong, what it affects, where to look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

from tracelane.core.base.arrays import I64
from tracelane.core.base.moments import origin_text
from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import format_count, format_ns
from tracelane.core.tables.table import Tables
from tracelane.tui.text.findings import place_text
from tracelane.tui.text.table import TableStyle, table_text

INDENT = "   "
LEAST_WIDTH = 40


def doctor_text(tables: Tables, width: int, order: I64 | None = None, limit: int | None = None) -> str:
    """Return all findings as text of at most `width` columns, the sum of the events, the devices' clocks."""
    width = max(width, LEAST_WIDTH)
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
    if len(tables["clocks"]):
        lines += ["", table_text(tables["clocks"], TableStyle(width))]
    return "\n".join(lines)


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
