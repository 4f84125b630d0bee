"""Which finding explains which: each stretch of time is claimed once, by the cause before its effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ...base.intervals import EMPTY, Intervals
from .facts import share
from .finding import Finding, Observation
from .rule import Rule
from .rules import CAUSES_FIRST, REST, RULES

EXPLAINED: Final = 0.5
"""A finding of whose time a cause explains at least this share is an effect of that cause."""
LEFT: Final = 0.1
"""A finding with less than this share of its time left stands below the one that claims most of it."""
SPREADING: Final = frozenset({"rank-imbalance"})
"""Rules whose time is later than what caused it: ranks wait for one that was held up before. They are
explained by as much time, whenever it was."""
TAKEN_OUT: Final = "first-use"
"""The rule whose time is taken out of what others judge: what it explains nearly whole is not told."""
HOLDING: Final = frozenset({"rank-imbalance", "uneven-kernel"})
"""Rules about one rank that explain why others wait at the time."""


@dataclass(frozen=True, eq=False)
class Claim:
    """What an observation claims once its causes have had theirs; `caused_ns` is what they have of it."""

    observation: Observation
    ns: int
    caused_by: str = ""
    caused_ns: int = 0


def claims_of(
    observations: Mapping[str, Observation], elsewhere: Mapping[str, Intervals]
) -> dict[str, Claim]:
    """Return what the observed losses of one rank claim; `elsewhere` are claims of other ranks' findings that
    explain this one's, by rule.
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
            claims[rule.id] = Claim(observation, observation.claimed_ns)
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
        cause, caused_ns = _cause_of(rule, observation, explained)
        if not cause and rest.length < LEFT * observation.claim.length:
            cause, caused_ns = _most_of(observation, claims)
        if cause and share(caused_ns, observation.claim.length) >= EXPLAINED:
            origin = origins.get(cause, "")
            cause = origin if origin and rule.id in RULES[origin].explains else cause
            origins[rule.id] = cause
            ns = max(0, ns - caused_ns) if rule.id in SPREADING else ns
            if cause != TAKEN_OUT or ns >= LEFT * whole or rule.id == REST:
                claims[rule.id] = Claim(observation, ns, cause, min(whole, caused_ns))
        else:
            claims[rule.id] = Claim(observation, ns)
        of_others = elsewhere.get(rule.id, EMPTY)
        explained[rule.id] = observation.claim.union(observation.reach).union(of_others)
        claimed = claimed.union(observation.claim)
    return claims


def _cause_of(rule: Rule, observation: Observation, explained: Mapping[str, Intervals]) -> tuple[str, int]:
    """Return the rule that explains most of an observation, and how much of its time (ns)."""
    spreads = rule.id in SPREADING
    length = observation.claim.length
    causes = [
        (min(length, claim.length) if spreads else claim.intersection(observation.claim).length, cause)
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
    they explain, each followed by the latter; headlines, notes.
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
        return not RULES[finding.rule].first, -cost(finding) - finding.caused_ns, number[finding.rule]

    listed: list[Finding] = []

    def add(finding: Finding) -> None:
        listed.append(finding)
        for effect in sorted(effects.get(finding.rule, ()), key=rank_of_cost):
            add(effect)

    for finding in sorted((one for one in effects.get("", ()) if one.kind == "loss"), key=rank_of_cost):
        add(finding)
    rest = [finding for finding in findings if finding.kind != "loss"]
    rest.sort(key=lambda finding: (finding.kind == "note", -finding.claimed_ns, number[finding.rule]))
    return (*listed, *rest)


def together(alike: Sequence[Finding]) -> Finding:
    """Return several findings of one rule as one; time that they share counts once."""
    first = max(alike, key=lambda finding: (finding.claimed_ns + finding.caused_ns, finding.kind == "loss"))
    sources = dict.fromkeys((first.sources[0], *(finding.sources[0] for finding in alike)))
    return replace(first, sources=tuple(sources), parts=len(alike))
