"""The analysis of findings: a row per finding, and what could not be judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...base.errors import UsageError
from ..schema import Column, TableSchema, columns_from
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
    columns_from("""
        rule: text, kind: text, claimed_ns = cost, share = of the time, in_steps, of_steps,
        finding: text, threshold: text = reported when, from: text, helps: text = usually helps,
        title: text (detail), caused_by: text (detail), caused_ns = by its cause (detail),
        place: text (detail), places (detail), note: number (detail), sources: object = files (detail),
        evidence: object (detail)
    """),
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
    return tables_of(verdicts, scope.origin)


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
