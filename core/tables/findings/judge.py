"""All rules over all files of a scope, ranked by the time they claim."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from ...base.units import format_ns
from ..frame_columns import work_of
from ..scope import Scope
from .baseline import Baseline
from .facts import CaptureFacts, SourceFacts, share
from .finding import Finding, Findings, NotJudged, Observation
from .rule import Rule
from .rules import RULES

FLOOR_SHARE: Final = 0.01
"""A loss that claims a smaller share of the time that was looked at is left out."""
STRAY_NS: Final = 1_000_000_000
"""A trace no longer than this (ns) is looked at as a whole: work that begins late in it is no outlier."""


def findings(scope: Scope, baseline: Baseline | None = None) -> Findings:
    """Return what the rules find in a scope, the files and the ranks of a file judged one by one; some
    compare it with a baseline.

    Where something lies absurdly far from the rest, only the bulk of the trace is looked at. A rule that
    holds in several files or ranks gives one finding, for the one in which it claims most.
    """
    text, whole = scope.text, scope
    if scope.range is None and scope.trace.has_outliers and _length(scope.trace.span) > STRAY_NS:
        scope = replace(scope, range=scope.trace.opening_span)
        low, high = scope.trace.opening_span
        text += f", but for what lies absurdly far from the rest: {format_ns(high - low)}"
    by_rule: dict[str, list[Finding]] = {}
    missing: dict[str, str] = {}
    capture = CaptureFacts(scope, baseline)
    for source in range(len(scope.trace.indexes)):
        if scope.source is not None and scope.source != source:
            continue
        stray = 0 if scope is whole else _pieces(whole, source) - _pieces(scope, source)
        parts = [SourceFacts(part, stray, capture) for part in capture.parts(source)]
        for rule in RULES.values():
            outcomes = []
            for facts in parts:
                scope.check()
                outcomes.append(outcome := rule(facts))
                if isinstance(outcome, Observation) and (finding := _weighed(rule, outcome, facts)):
                    by_rule.setdefault(rule.id, []).append(finding)
            reasons = [outcome.reason for outcome in outcomes if isinstance(outcome, NotJudged)]
            if len(reasons) == len(parts):
                missing.setdefault(rule.id, reasons[0])
    merged = [_together(alike) for alike in by_rule.values()]
    order = list(RULES)
    merged.sort(key=lambda finding: (finding.note, -finding.claimed_ns, order.index(finding.rule)))
    not_judged = tuple((rule, why) for rule, why in missing.items() if rule not in by_rule)
    return Findings(text, tuple(merged), not_judged)


def _length(span: tuple[int, int]) -> int:
    return span[1] - span[0]


def _pieces(scope: Scope, source: int) -> int:
    return len(work_of(replace(scope, source=source)))


def _weighed(rule: Rule, observation: Observation, facts: SourceFacts) -> Finding | None:
    """Return the finding in full, None where it claims too little to be worth a line."""
    part = share(observation.claimed_ns, facts.span_ns)
    if part < FLOOR_SHARE and not (rule.note or rule.always):
        return None
    hit, total = _recurrence(observation, facts)
    return Finding(
        rule.id,
        rule.title,
        observation.text,
        observation.evidence,
        observation.claimed_ns,
        part,
        rule.note,
        str(rule.threshold),
        rule.threshold.origin,
        rule.helps,
        hit,
        total,
        (facts.source,),
        _part_title(facts),
    )


def _part_title(facts: SourceFacts) -> str:
    """Return which of several files and ranks is meant: a file by its rank, else by its name; "" where there
    is but one.
    """
    if len(facts.scope.trace.indexes) < 2:
        return facts.part.title
    file = Path(facts.index.path).name if facts.rank is None or facts.is_numbered else f"rank {facts.rank}"
    return f"{facts.part.title} of {file}" if facts.part.title else file


def _recurrence(observation: Observation, facts: SourceFacts) -> tuple[int, int]:
    """Return the number of steps in which the observation occurs, and the number of all steps."""
    steps = facts.steps
    if steps is None:
        return 0, 0
    if observation.work is not None and facts.scope.attribute == "launch":
        at = facts.steps_of(observation.work)
        return len(np.unique(at[at >= 0])), len(steps)
    claim = observation.claim
    times = np.sort(claim.starts if observation.times is None else observation.times)
    begun = np.searchsorted(times, steps.ends) > np.searchsorted(times, steps.starts)
    covered = claim.covered(steps.starts, steps.ends) > 0
    return int(np.count_nonzero(begun | covered)), len(steps)


def _together(alike: list[Finding]) -> Finding:
    """Return several findings of one rule as one; time that they share counts once."""
    first = max(alike, key=lambda finding: finding.claimed_ns)
    sources = dict.fromkeys((first.sources[0], *(finding.sources[0] for finding in alike)))
    return replace(first, sources=tuple(sources), parts=len(alike))
