"""One rule: the function that judges, and what the table of rules says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, TypeAlias

from ..rule_threshold import Limits, threshold_text
from .facts import SourceFacts
from .finding import Evidence, Finding, Kind, Need, Observation, Outcome
from .meanwhile import Activity

Judge: TypeAlias = Callable[[SourceFacts, Limits], Outcome]
GUIDE = "Hugging Face, Profiling in PyTorch"
PYTORCH = "PyTorch, Profiling to understand torch.compile performance"
HTA = "Holistic Trace Analysis"
TENSORBOARD = "torch-tb-profiler's recommendations"
AIU = "kineto-spyre, AIU runtime events"
"""Where rules come from."""

STALLS = (
    *("recompiled", "compile-time", "profiler", "graph-capture", "first-use", "aiu-graph", "first-kernel"),
    *("dataloader", "sync-in-loop", "transfer-bound", "aiu-convert", "device-allocations", "step-gap"),
    *("host-pause", "cold-start"),
    *("short-kernels", "aiu-launch", "overhead-bound", "launch-gaps", "graph-breaks", "host-hotspot"),
    *("many-calls", "late-first-op", "compiled-overhead", "aiu-waits", "sync", "device-idle"),
)
"""Rules about devices that wait for the host, from what is the reason to what only says that they do."""


def effects_of(rule: str) -> tuple[str, ...]:
    """Return the rules about waiting for the host that one of them explains where both speak of one time."""
    return STALLS[STALLS.index(rule) + 1 :]


@dataclass(frozen=True)
class Rule:
    """One rule, which decorates the function that judges: what it is called, when it speaks (the test has the
    keys of the limits in braces), where that comes from, and what usually helps.
    """

    id: str
    title: str
    test: str
    origin: str
    limits: Limits = field(default_factory=dict)
    _: KW_ONLY
    helps: str
    kind: Kind = "loss"
    always: bool = False  # however little time it claims
    needs: tuple[Need, ...] = ()  # whose slices it cannot judge without
    explains: tuple[str, ...] = ()  # rules whose findings are its effects
    anywhere: bool = False  # also what lies outside the time that is looked at counts
    held_up: bool = False  # where there are devices, only that time counts in which the host holds them up
    first: bool = False  # about what the trace lacks: stands before all others
    meanwhile: tuple[Activity, ...] = ()  # of idle time it claims that in which the host does one of these
    judge: Judge = lambda facts, limits: None

    def __call__(self, judge: Judge) -> Rule:
        """Return the rule with the function that judges a source by the limits."""
        return replace(self, judge=judge)

    @property
    def threshold(self) -> str:
        """When it speaks, in words."""
        return threshold_text(self.test, self.limits)

    def finding(self, text: str, evidence: tuple[Evidence, ...], **others: Any) -> Finding:
        """Return a finding of this rule with its texts; `others` are the other fields."""
        texts = {"threshold": self.threshold, "origin": self.origin, "helps": self.helps}
        return Finding(self.id, self.title, text, evidence, **({"kind": self.kind} | texts | others))

    def outcome(self, facts: SourceFacts) -> Outcome:
        """Return what the rule says of one source, or what the source lacks; judged once, whoever asks."""
        known = facts.outcomes.get(self.id)
        if known is None or known[0] is not self:
            known = facts.outcomes[self.id] = (self, self._outcome(facts))
        return known[1]

    def _outcome(self, facts: SourceFacts) -> Outcome:
        if "device" in self.needs and not facts.has_devices:
            return facts.no_device
        if "host" in self.needs and not len(facts.host):
            return facts.no_host
        outcome = self.judge(facts, self.limits)
        if not isinstance(outcome, Observation):
            return outcome
        claim = outcome.claim if self.first or self.anywhere else outcome.claim.clipped(*facts.span)
        if not self.first and facts.has_devices and claim.length:
            claim = claim.without(facts.untrusted)
            if not claim.length:
                return None
        if self.held_up and facts.has_devices:
            claim = claim.intersection(facts.held_up)
        if self.meanwhile and facts.has_devices:
            own = facts.meanwhile.of(*self.meanwhile)
            claim = claim.intersection(own.union(facts.busy, facts.waiting))
        ns = None if outcome.ns is None else min(outcome.ns, claim.length)
        return replace(outcome, claim=claim, ns=ns)
