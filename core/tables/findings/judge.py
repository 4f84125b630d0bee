"""All rules, the functions with the decorator `Rule` in the files of this folder, over all files of a scope:
each cause with what it explains, by the time that they cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from ...base.arrays import EMPTY, Intervals, distinct
from ...base.units import format_ns
from ..frame.frame_columns import work_of
from ..frame.scope import Scope
from .facts import CaptureFacts, SourceFacts, share
from .finding import Baseline, Finding, Findings, NotJudged, Observation
from .rule import Rule

FILES: Final = (
    *("device", "efficiency", "gaps", "kernels", "memory", "one_call", "host"),
    *("steps", "compiled", "capture", "clocks", "aiu"),
)
"""The files with rules, in the order in which the rules are listed."""
RULES: Final[Mapping[str, Rule]] = {
    each.id: each
    for file in FILES
    for each in vars(import_module(f".{file}", __package__)).values()
    if isinstance(each, Rule)
}
REST: Final = "device-idle"
"""The rule that is about what time the others leave."""
CAUSES_FIRST: Final = tuple(
    RULES[rule]
    for rule in TopologicalSorter(
        {
            rule: [cause.id for cause in RULES.values() if rule in cause.explains or rule == REST != cause.id]
            for rule in RULES
        }
    ).static_order()
)
"""All rules, each after those that explain it. Raises CycleError where two explain each other."""
EXPLAINED: Final = 0.5
"""A finding of whose time a cause explains at least this share is an effect of that cause."""
LEFT: Final = 0.1
"""A finding with less than this share of its time left stands below the one that claims most of it."""
SPREADING: Final = frozenset({"rank-imbalance"})
"""Rules whose time is later than what caused it: ranks wait for one that was held up before. They are
explained by as much time, whenever it was, that this rank has more of a cause than the others have: what all
ranks have alike, a slow loader say, makes none of them late."""
TAKEN_OUT: Final = "first-use"
"""The rule whose time is taken out of what others judge: what it explains nearly whole is not told."""
HOLDING: Final = frozenset({"rank-imbalance", "uneven-kernel"})
"""Rules about one rank that explain why others wait at the time."""


@dataclass(frozen=True, eq=False)
class Claim:
    """What an observation claims once its causes have had theirs: so many ns, of a time that no other claim
    has any of; `caused_ns` is what its causes have of it.
    """

    observation: Observation
    ns: int
    time: Intervals
    caused_by: str = ""
    caused_ns: int = 0


def claims_of(
    observations: Mapping[str, Observation], elsewhere: Mapping[str, Intervals], usual: Mapping[str, int]
) -> dict[str, Claim]:
    """Return what the observed losses of one rank claim; `elsewhere` are claims of other ranks' findings that
    explain this one's, by rule, and `usual` is how long (ns) the other ranks' own claims are, in the median.
    """
    explained = dict(elsewhere)
    claimed = EMPTY
    claims: dict[str, Claim] = {}
    origins: dict[str, str] = {}
    for rule in CAUSES_FIRST:
        observation = observations.get(rule.id)
        if observation is None or rule.kind != "loss":
            continue
        if rule.first:  # its time is left out by the others
            claims[rule.id] = Claim(observation, observation.claimed_ns, EMPTY)
            continue
        rest = observation.claim.without(claimed)
        for cause, claim in elsewhere.items():
            rest = rest.without(claim) if rule.id in RULES[cause].explains else rest
        whole = observation.claimed_ns
        ns = (
            rest.length
            if observation.ns is None
            else round(whole * share(rest.length, observation.claim.length))
        )
        cause, caused_ns = _cause_of(rule, observation, explained, usual)
        if not cause and rest.length < LEFT * observation.claim.length:
            cause, caused_ns = _most_of(observation, claims)
        if cause and share(caused_ns, observation.claim.length) >= EXPLAINED:
            origin = origins.get(cause, "")
            cause = origin if origin and rule.id in RULES[origin].explains else cause
            origins[rule.id] = cause
            ns = max(0, ns - caused_ns) if rule.id in SPREADING else ns
            if cause in claims and not len(claims[cause].observation.reach):
                # Others may have some of what the cause observed.
                caused_ns = min(caused_ns, claims[cause].ns)
            if cause != TAKEN_OUT or ns >= LEFT * whole or rule.id == REST:
                claims[rule.id] = Claim(observation, ns, rest, cause, min(max(0, whole - ns), caused_ns))
        else:
            claims[rule.id] = Claim(observation, ns, rest)
        of_others = elsewhere.get(rule.id, EMPTY)
        explained[rule.id] = observation.claim.union(observation.reach, of_others)
        claimed = claimed.union(observation.claim)
    return claims


def _cause_of(
    rule: Rule, observation: Observation, explained: Mapping[str, Intervals], usual: Mapping[str, int]
) -> tuple[str, int]:
    """Return the rule that explains most of an observation, and how much of its time (ns)."""

    def explained_ns(cause: str, claim: Intervals) -> int:
        if rule.id in SPREADING:
            return min(observation.claim.length, max(0, claim.length - usual.get(cause, 0)))
        return claim.intersection(observation.claim).length

    causes = [
        (explained_ns(cause, claim), cause)
        for cause, claim in explained.items()
        if rule.id in RULES[cause].explains
    ]
    ns, cause = max(causes, key=lambda pair: pair[0], default=(0, ""))
    return (cause, ns) if ns else ("", 0)


def _most_of(observation: Observation, claims: Mapping[str, Claim]) -> tuple[str, int]:
    """Return the rule that claims most of an observation's time, whatever it explains, and how much (ns)."""
    parts = [
        (claim.observation.claim.intersection(observation.claim).length, rule)
        for rule, claim in claims.items()
        if not claim.caused_by and not RULES[rule].first
    ]
    ns, rule = max(parts, key=lambda pair: pair[0], default=(0, ""))
    return rule, ns


def listed_by_cause(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return findings as they are listed: what the trace lacks, losses by what they cost together with what
    they explain, each followed by the latter; headlines, notes. Headlines come first where all
    losses are small.
    """
    number = {rule: at for at, rule in enumerate(RULES)}
    present = {finding.rule for finding in findings if finding.kind == "loss"}
    findings = [
        finding if finding.caused_by in present else replace(finding, caused_by="", caused_ns=0)
        for finding in findings
    ]
    effects: dict[str, list[Finding]] = {}
    for finding in findings:
        effects.setdefault(finding.caused_by, []).append(finding)

    def cost(finding: Finding) -> int:
        return finding.claimed_ns + sum(effect.claimed_ns for effect in effects.get(finding.rule, ()))

    def rank_of_cost(finding: Finding) -> tuple[bool, int, int]:
        return not is_about_trust(finding), -cost(finding) - finding.caused_ns, number[finding.rule]

    listed: list[Finding] = []

    def add(finding: Finding) -> None:
        listed.append(finding)
        for effect in sorted(effects.get(finding.rule, ()), key=rank_of_cost):
            add(effect)

    for finding in sorted((one for one in effects.get("", ()) if one.kind == "loss"), key=rank_of_cost):
        add(finding)
    others = sorted(
        (finding for finding in findings if finding.kind != "loss"),
        key=lambda finding: (-finding.claimed_ns, number[finding.rule]),
    )
    headlines = [finding for finding in others if finding.kind == "headline"]
    notes = [finding for finding in others if finding.kind == "note"]

    def matters(loss: Finding) -> bool:
        share = loss.share + sum(effect.share for effect in effects.get(loss.rule, ()))
        return is_about_trust(loss) or share >= LEADING_SHARE

    first = (listed, headlines) if any(map(matters, listed)) else (headlines, listed)
    return (*first[0], *first[1], *notes)


def is_about_trust(finding: Finding) -> bool:
    """Tell whether a finding is about so much that the trace lacks that it stands before all others."""
    return RULES[finding.rule].first and max(finding.share, finding.of_launches) >= TRUST_SHARE


def together(alike: Sequence[Finding]) -> Finding:
    """Return several findings of one rule as one; time that they share counts once."""
    first = max(alike, key=lambda finding: (finding.claimed_ns + finding.caused_ns, finding.kind == "loss"))
    sources = dict.fromkeys((first.sources[0], *(finding.sources[0] for finding in alike)))
    return replace(first, sources=tuple(sources), parts=len(alike))


TRUST_SHARE: Final = 0.05
"""What the trace lacks is read first where it is so much of the time, or of the calls that start work."""
LEADING_SHARE: Final = 0.05
"""What says how the devices were used as a whole is read before losses that all cost a smaller share."""
FEW_OF_MOST: Final = 0.05
"""A step has so much of what the one with most of it has, or it does not count."""
FLOOR_SHARE: Final = 0.01
"""A loss that claims a smaller share of the time that was looked at is left out."""


def findings(scope: Scope, baseline: Baseline | None = None) -> Findings:
    """Return what the rules find in a scope, the files and the ranks of a file judged one by one; some
    compare it with a baseline.

    Where something stands on another clock, only the rest of the trace is looked at. A rule that
    holds in several files or ranks gives one finding, for the one in which it claims most.
    """
    text, whole = scope.text, scope
    if scope.range is None and scope.trace.slices_elsewhere:
        scope = replace(scope, range=scope.opening_span)
        low, high = scope.opening_span
        text += f", without what is on another clock: {format_ns(high - low)}"
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
        outcome = rule.outcome(facts)
        if isinstance(outcome, NotJudged):
            lacking[rule.id] = outcome.reason
        elif outcome is not None and (
            rule.kind != "loss"
            or rule.always
            or share(outcome.claimed_ns, facts.span_ns) >= max(FLOOR_SHARE, rule.limits.get("claim_share", 0))
        ):
            observations[rule.id] = outcome
    return observations, lacking


def _findings_of(judged: Sequence[tuple[SourceFacts, Mapping[str, Observation]]]) -> Iterator[Finding]:
    """Yield the findings of each rank, what one rank does to the others taken from theirs."""
    claimed = {
        rule: [one[rule].claim if rule in one else EMPTY for _, one in judged]
        for rule in {*HOLDING, *(rule for _, observations in judged for rule in observations)}
    }
    lengths = {rule: [claim.length for claim in claims] for rule, claims in claimed.items()}
    of_others = {rule: unions_of_others(claimed[rule]) for rule in HOLDING}
    for number, (facts, observations) in enumerate(judged):
        elsewhere = {rule: claims[number] for rule, claims in of_others.items()}
        usual = {
            rule: round(median((*lengths[rule][:number], *lengths[rule][number + 1 :])))
            for rule in observations
            if len(judged) > 1
        }
        claims = claims_of(observations, elsewhere, usual)
        for rule, observation in observations.items():
            claim = claims.get(rule)
            if claim is None and RULES[rule].kind != "loss":
                claim = Claim(observation, observation.claimed_ns, EMPTY)
            finding = None if claim is None else _in_full(RULES[rule], claim, facts)
            if finding is not None:
                yield finding


def unions_of_others(claims: Sequence[Intervals]) -> list[Intervals]:
    """Return for each what all others are together."""
    before = accumulate(claims[:-1], Intervals.union, initial=EMPTY)
    after = [*accumulate(reversed(claims[1:]), Intervals.union, initial=EMPTY)]
    return [one.union(another) for one, another in zip(before, reversed(after))]


def late_rank(scope: Scope) -> int | None:
    """Return the rank that a finding says keeps the others waiting, None where none does: its file, of
    several ranks in the only file its process. Raises Cancelled.
    """
    capture, rule = CaptureFacts(scope), RULES["rank-imbalance"]
    everyone = [SourceFacts(part, 0, capture) for source in scope.sources for part in capture.parts(source)]
    for facts in everyone:
        observation = rule.outcome(facts)
        if (
            isinstance(observation, Observation)
            and share(observation.claimed_ns, facts.span_ns) >= FLOOR_SHARE
        ):
            process = facts.part.process if len(scope.trace.indexes) == 1 else None
            return facts.source if process is None else process
    return None


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
    caused = {"caused_by": claim.caused_by, "caused_ns": claim.caused_ns} if kind == "loss" else {}
    cost: dict[str, object] = {
        "claimed_ns": ns,
        "share": part,
        "kind": kind,
        "in_steps": hit,
        "of_steps": total,
        **caused,
    }
    if observation.helps:
        cost["helps"] = observation.helps
    cost |= {"short": observation.short, "of_launches": observation.of_launches}
    where = {"sources": (facts.source,), "of_part": _part_title(facts)}
    return rule.finding(observation.text, observation.evidence, **cost, **where)


def _part_title(facts: SourceFacts) -> str:
    """Return which of several files and ranks is meant: a file by its rank, else by its name; "" where there
    is but one.
    """
    if len(facts.scope.trace.indexes) < 2:
        return facts.part.title
    file = Path(facts.index.path).name if facts.rank is None or facts.is_numbered else f"rank {facts.rank}"
    return f"{facts.part.title} of {file}" if facts.part.title else file


def _recurrence(observation: Observation, facts: SourceFacts) -> tuple[int, int]:
    """Return the number of steps in which the observation occurs, and the number of all steps; of time that
    is claimed, those that have as much as a twentieth of the step with most of it.
    """
    steps = facts.steps
    if steps is None:
        return 0, 0
    if observation.work is not None and facts.scope.attribute == "launch":
        at = facts.steps_of(observation.work)
        return len(distinct(at[at >= 0])), len(steps)
    covered = observation.claim.covered(steps.starts, steps.ends)
    held = (covered > 0) & (covered >= FEW_OF_MOST * covered.max(initial=0))
    if observation.times is not None or not held.any():
        times = np.sort(observation.claim.starts if observation.times is None else observation.times)
        held |= np.searchsorted(times, steps.ends) > np.searchsorted(times, steps.starts)
    return int(np.count_nonzero(held)), len(steps)


def rules_table() -> str:
    """Return all rules as Markdown, for the docs."""
    lines = ["| rule | reported when | from | what usually helps |", "|---|---|---|---|"]
    for rule in RULES.values():
        kind = "" if rule.kind == "loss" else f" (a {rule.kind})"
        lines.append(f"| `{rule.id}`{kind}: {rule.title} | {rule.threshold} | {rule.origin} | {rule.helps} |")
    return "\n".join(lines) + "\n"
