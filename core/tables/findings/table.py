"""The analysis of findings: a row per finding, and what could not be judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...base.errors import UsageError
from ..schema import Column, TableSchema
from ..scope import Scope
from ..table import Table, Tables
from .finding import Findings
from .forms import finding_row
from .saved import saved_findings

if TYPE_CHECKING:
    from ..summary import Summary

FINDINGS = TableSchema(
    "findings",
    "Findings",
    (
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
        Column("title", "title", "text", detail=True),
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
    "not_judged", "Not checked", (Column("rule", "rule", "text"), Column("reason", "reason", "text"))
)
WHOLE = "findings look at all slices of a range: --lanes and --where leave out what they need"


def analyse_findings(scope: Scope, baseline: Summary | None = None) -> Tables:
    """Return what the rules find in a scope, and the rules that the trace has not the data for.

    With the summary of a baseline, rules that compare two runs judge by it.
    """
    if scope.lanes is not None or scope.where is not None:
        raise UsageError(WHOLE)
    if baseline is None:
        verdicts = saved_findings(scope)
    else:
        from .baseline import baseline_of
        from .judge import findings

        verdicts = findings(scope, baseline_of(baseline))
    missing = [{"rule": rule, "reason": reason} for rule, reason in verdicts.not_judged]
    tables = {
        "findings": lambda: findings_table(verdicts, scope.origin),
        "not_judged": lambda: Table.from_rows(NOT_JUDGED, verdicts.scope, missing),
    }
    return Tables(verdicts.scope, scope.origin, tables)


def findings_table(findings: Findings, origin: int) -> Table:
    """Return a row per finding, losses first, most time first; evidence counts from the origin."""
    rows = [finding_row(finding, origin) for finding in findings.findings]
    return Table.from_rows(FINDINGS, findings.scope, rows)
