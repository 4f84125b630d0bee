"""The findings of a store: each rule once for all ranks, and the rank that the others wait for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..base.ids import SliceId
from ..tables.findings.causes import listed_by_cause, together
from ..tables.findings.facts import share
from ..tables.findings.finding import Evidence, Finding, Findings
from ..tables.findings.forms import findings_of
from ..tables.findings.ranks import awaited_rank
from ..tables.findings.rules import RULES
from .opened import CaptureStore

IMBALANCE = "rank-imbalance"


def findings_of_store(store: CaptureStore) -> Findings:
    """Return the findings of all ranks: each rule once, with the rank in which it claims most time, and the
    rank that the others wait for.
    """
    by_rule: dict[str, list[Finding]] = {}
    missing: dict[str, str] = {}
    for number, rank in enumerate(store.ranks):
        try:
            judged = findings_of(rank.findings, 0)
        except (KeyError, TypeError, ValueError):
            raise rank.shelf.damaged(f"the findings of {rank.title} are none") from None
        for finding in judged.findings:
            if finding.rule != IMBALANCE:
                moved = _moved_evidence(finding.evidence, number, int(store.offsets[number]))
                own = replace(finding, sources=(number,), of_part=rank.title, evidence=moved)
                by_rule.setdefault(finding.rule, []).append(own)
        for rule, reason in judged.not_judged:
            missing.setdefault(rule, reason)
    merged = [together(alike) for alike in by_rule.values()]
    awaited = _imbalance(store)
    if awaited is not None:
        merged.append(awaited)
    judged_rules = {finding.rule for finding in merged}
    left = tuple(
        (rule, why) for rule, why in missing.items() if rule not in judged_rules and rule != IMBALANCE
    )
    return Findings(store.scope, listed_by_cause([one for one in merged if one.rule in RULES]), left)


def _moved_evidence(evidence: Sequence[Evidence], number: int, offset: int) -> tuple[Evidence, ...]:
    return tuple(
        replace(
            each,
            start=each.start + offset,
            end=each.end + offset,
            slice=None if each.slice is None else SliceId(number, each.slice.ordinal),
        )
        for each in evidence
    )


def _imbalance(store: CaptureStore) -> Finding | None:
    """Return the finding about the rank that the others wait for most, None where no rank waits."""
    skew, rule = store.skew, RULES[IMBALANCE]
    if not len(skew):
        return None
    titles = [store.ranks[source].title for source in skew.sources]
    column = int(skew.caused.argmax())
    span = max((end - start for start, end in (rank.span for rank in store.ranks)), default=0)
    limits = rule.threshold.limits
    awaited = awaited_rank(skew, span, limits, titles[column].capitalize(), titles.__getitem__)
    if awaited is None:
        return None
    return Finding(
        rule=rule.id,
        title=rule.title,
        text=awaited.text,
        evidence=awaited.evidence,
        claimed_ns=awaited.claim.length,
        share=share(awaited.claim.length, span),
        kind=rule.kind,
        threshold=str(rule.threshold),
        origin=rule.threshold.origin,
        helps=rule.helps,
        in_steps=0,
        of_steps=0,
        sources=(skew.sources[column],),
        of_part=titles[column],
    )
