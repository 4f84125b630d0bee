"""All rules over all files of a scope, ranked by the time they claim."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from ...base.units import format_ns
from ..scope import Scope
from ..work import rank_of, work_of
from .facts import CaptureFacts, SourceFacts, share
from .finding import Finding, Findings, NotJudged, Observation
from .rule import Rule
from .rules import RULES

FLOOR_SHARE: Final = 0.01
"""A loss that claims less of the time that was looked at is left out."""


def findings(scope: Scope) -> Findings:
    """Return what the rules find in a scope, the files judged one by one.

    Where something lies absurdly far from the rest, only the bulk of the trace is looked at. A rule that
    holds in several files is told once, for the file in which it claims most.
    """
    text, whole = scope.text, scope
    if scope.range is None and scope.trace.has_outliers:
        scope = replace(scope, range=scope.trace.opening_span)
        low, high = scope.trace.opening_span
        text += f", but for what lies absurdly far from the rest: {format_ns(high - low)}"
    told: dict[str, list[Finding]] = {}
    missing: dict[str, str] = {}
    capture = CaptureFacts(scope)
    for source in range(len(scope.trace.indexes)):
        if scope.source is not None and scope.source != source:
            continue
        stray = 0 if scope is whole else _pieces(whole, source) - _pieces(scope, source)
        facts = SourceFacts(scope, source, stray, capture)
        for rule in RULES.values():
            scope.check()
            verdict = rule(facts)
            if isinstance(verdict, Observation):
                finding = _weighed(rule, verdict, facts)
                if finding is not None:
                    told.setdefault(rule.id, []).append(finding)
            elif isinstance(verdict, NotJudged):
                missing.setdefault(rule.id, verdict.reason)
    merged = [_together(alike) for alike in told.values()]
    order = list(RULES)
    merged.sort(key=lambda finding: (finding.note, -finding.claimed_ns, order.index(finding.rule)))
    not_judged = tuple((rule, why) for rule, why in missing.items() if rule not in told)
    return Findings(text, tuple(merged), not_judged)


def _pieces(scope: Scope, source: int) -> int:
    return sum(len(work) for work in work_of(replace(scope, source=source)))


def _weighed(rule: Rule, found: Observation, facts: SourceFacts) -> Finding | None:
    """Return the finding in full, None where it claims too little to be told."""
    part = share(found.claimed_ns, facts.span_ns)
    if part < FLOOR_SHARE and not (rule.note or rule.always):
        return None
    hit, total = _recurrence(found, facts)
    return Finding(
        rule.id,
        rule.title,
        found.text,
        found.evidence,
        found.claimed_ns,
        part,
        rule.note,
        rule.threshold,
        rule.origin,
        rule.helps,
        hit,
        total,
        (facts.source,),
        _place(facts),
    )


def _place(facts: SourceFacts) -> str:
    """Return which of several files is meant: by its rank, else by its name; "" where it is the only one."""
    if len(facts.scope.trace.indexes) < 2:
        return ""
    rank = rank_of(facts.index, -1)
    return f"rank {rank}" if rank >= 0 else Path(facts.index.path).name


def _recurrence(found: Observation, facts: SourceFacts) -> tuple[int, int]:
    """Return (in how many steps it occurs, of how many)."""
    steps = facts.steps
    if steps is None:
        return 0, 0
    times = np.sort(found.claim.starts if found.times is None else found.times)
    begun = np.searchsorted(times, steps.ends) > np.searchsorted(times, steps.starts)
    covered = found.claim.covered(steps.starts, steps.ends) > 0
    return int((begun | covered).sum()), len(steps)


def _together(alike: list[Finding]) -> Finding:
    """Return one finding for those of one rule in several files: what overlaps is not added up."""
    first = max(alike, key=lambda finding: finding.claimed_ns)
    sources = (first.sources[0], *(f.sources[0] for f in alike if f is not first))
    return replace(first, sources=sources)
