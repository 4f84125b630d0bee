"""All rules over all files of a scope: each cause with what it explains, by the time that they cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Final

import numpy as np

from ...base.intervals import EMPTY, Intervals
from ...base.units import format_ns
from ..frame_columns import work_of
from ..scope import Scope
from .baseline import Baseline
from .causes import HOLDING, Claim, claims_of, listed_by_cause, together
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
        text += f", without what is absurdly far from the rest: {format_ns(high - low)}"
    missing: dict[str, str] = {}
    judged: list[tuple[SourceFacts, dict[str, Observation]]] = []
    capture = CaptureFacts(scope, baseline)
    by_source = {}
    for source in scope.sources:
        stray = 0 if scope is whole else _pieces(whole, source) - _pieces(scope, source)
        by_source[source] = [SourceFacts(part, stray, capture) for part in capture.parts(source)]
    for parts in by_source.values():
        reasons: dict[str, list[str]] = {}
        for facts in parts:
            observations, lacking = _observed(facts)
            judged.append((facts, observations))
            for rule, reason in lacking.items():
                reasons.setdefault(rule, []).append(reason)
        for rule, why in reasons.items():
            if len(why) == len(parts):
                missing.setdefault(rule, why[0])
    by_rule: dict[str, list[Finding]] = {}
    for finding in _findings_of(judged):
        by_rule.setdefault(finding.rule, []).append(finding)
    listed = listed_by_cause([together(alike) for alike in by_rule.values()])
    not_judged = tuple((rule, missing[rule]) for rule in RULES if rule in missing and rule not in by_rule)
    return Findings(text, listed, not_judged)


def _observed(facts: SourceFacts) -> tuple[dict[str, Observation], dict[str, str]]:
    """Return what the rules observe in one rank, by rule, and why others could not judge."""
    observations: dict[str, Observation] = {}
    lacking: dict[str, str] = {}
    for rule in RULES.values():
        facts.scope.check()
        outcome = rule(facts)
        if isinstance(outcome, NotJudged):
            lacking[rule.id] = outcome.reason
        elif outcome is not None and (
            rule.kind != "loss"
            or rule.always
            or share(outcome.claimed_ns, facts.span_ns)
            >= max(FLOOR_SHARE, rule.threshold.limits.get("claim_share", 0))
        ):
            observations[rule.id] = outcome
    return observations, lacking


def _findings_of(judged: Sequence[tuple[SourceFacts, Mapping[str, Observation]]]) -> Iterator[Finding]:
    """Yield the findings of each rank, what one rank does to the others taken from theirs."""
    for facts, observations in judged:
        others = [theirs for other, theirs in judged if other is not facts]
        elsewhere = {
            rule: reduce(Intervals.union, (theirs[rule].claim for theirs in others if rule in theirs), EMPTY)
            for rule in HOLDING
        }
        claims = claims_of(observations, elsewhere)
        for rule, observation in observations.items():
            claim = claims.get(rule)
            if claim is None and RULES[rule].kind != "loss":
                claim = Claim(observation, observation.claimed_ns)
            finding = None if claim is None else _in_full(RULES[rule], claim, facts)
            if finding is not None:
                yield finding


def _length(span: tuple[int, int]) -> int:
    return span[1] - span[0]


def _pieces(scope: Scope, source: int) -> int:
    return len(work_of(replace(scope, source=source)))


def _in_full(rule: Rule, claim: Claim, facts: SourceFacts) -> Finding | None:
    """Return the finding in full, None where too little is left to be worth a line: a device is called idle
    where that is not explained for the most part, else the finding is a headline.
    """
    kind, ns, observation = rule.kind, claim.ns, claim.observation
    if rule.id == "device-idle" and 2 * ns < observation.claimed_ns:
        kind = "headline"
    ns = 0 if kind == "headline" else ns
    whole = facts.span[1] - facts.span[0] if rule.first else facts.span_ns
    part = min(1.0, share(ns, whole))  # a wait may be longer, after the time that is looked at
    if kind == "loss" and part < FLOOR_SHARE and not (rule.always or claim.caused_by):
        return None
    hit, total = _recurrence(observation, facts)
    return Finding(
        rule.id,
        rule.title,
        observation.text,
        observation.evidence,
        ns,
        part,
        kind,
        str(rule.threshold),
        rule.threshold.origin,
        rule.helps,
        hit,
        total,
        (facts.source,),
        _part_title(facts),
        caused_by=claim.caused_by if kind == "loss" else "",
        caused_ns=claim.caused_ns if kind == "loss" else 0,
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
