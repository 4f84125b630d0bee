"""Findings as a table, for CSV and for the panel."""

from __future__ import annotations

from ..table import Column, Table
from .finding import Findings

COLUMNS = (
    Column("rule", "rule", "text"),
    Column("kind", "kind", "text"),
    Column("claimed_ns", "claims", "ns"),
    Column("share", "of the time", "share"),
    Column("in_steps", "in steps", "count"),
    Column("of_steps", "of steps", "count"),
    Column("finding", "finding", "text"),
    Column("threshold", "speaks when", "text"),
    Column("from", "from", "text"),
    Column("helps", "usually helps", "text"),
)


def findings_table(found: Findings) -> Table:
    """Return a row per finding, losses first, most time first."""
    rows = [
        {
            "rule": finding.rule,
            "kind": "note" if finding.note else "loss",
            "claimed_ns": finding.claimed_ns,
            "share": finding.share,
            "in_steps": finding.in_steps,
            "of_steps": finding.of_steps,
            "finding": finding.text,
            "threshold": finding.threshold,
            "from": finding.origin,
            "helps": finding.helps,
        }
        for finding in found.findings
    ]
    return Table.from_rows("findings", "Findings", found.scope, COLUMNS, rows)
