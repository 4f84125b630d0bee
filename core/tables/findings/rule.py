"""One rule: the function that judges, and what the table of rules says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..rule_threshold import Limits, RuleThreshold
from .finding import Outcome

if TYPE_CHECKING:
    from .facts import SourceFacts

Judge: TypeAlias = "Callable[[SourceFacts, Limits], Outcome]"
Need: TypeAlias = Literal["device", "host"]

GUIDE = "Hugging Face, Profiling in PyTorch"
PYTORCH = "PyTorch, Profiling to understand torch.compile performance"
HTA = "Holistic Trace Analysis"
TENSORBOARD = "torch-tb-profiler's recommendations"
AIU = "kineto-spyre, AIU runtime events"
"""Where rules come from."""


@dataclass(frozen=True)
class Rule:
    """One rule: what it is called, when it speaks, what usually helps, and the function that judges."""

    id: str
    title: str
    threshold: RuleThreshold
    helps: str
    judge: Judge
    note: bool = False  # a fact for reading on, no loss
    always: bool = False  # however little time it claims
    needs: tuple[Need, ...] = ()  # whose slices it cannot judge without

    def __call__(self, facts: SourceFacts) -> Outcome:
        """Return what the rule says of one source, or what the source lacks."""
        for need in self.needs:
            lacking = facts.lacking(need)
            if lacking is not None:
                return lacking
        return self.judge(facts, self.threshold.limits)


def rule(
    id: str,
    title: str,
    threshold: RuleThreshold,
    *,
    helps: str,
    note: bool = False,
    always: bool = False,
    needs: tuple[Need, ...] = (),
) -> Callable[[Judge], Rule]:
    """Make a rule of the function that judges a source by the limits of the threshold."""
    return lambda judge: Rule(id, title, threshold, helps, judge, note, always, needs)
