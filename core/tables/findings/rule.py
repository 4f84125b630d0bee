"""One rule: the function that judges, and what the table of rules says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from ...base.units import format_ns
from .finding import Outcome

if TYPE_CHECKING:
    from .facts import SourceFacts

Limits: TypeAlias = Mapping[str, float]
Judge: TypeAlias = "Callable[[SourceFacts, Limits], Outcome]"
Need: TypeAlias = Literal["device", "host"]

OWN = "our own choice"
GUIDE = "Hugging Face, Profiling in PyTorch"
PYTORCH = "PyTorch, Profiling to understand torch.compile performance"
HTA = "Holistic Trace Analysis"
TENSORBOARD = "torch-tb-profiler's recommendations"
AIU = "kineto-spyre, AIU runtime events"
"""Where rules come from."""


@dataclass(frozen=True)
class Rule:
    """One rule; `test` says when it speaks, its limits in braces. A key ending in `share` is a share of 1, in
    `_ns` a time.
    """

    id: str
    title: str
    test: str
    origin: str  # where it comes from
    helps: str
    judge: Judge
    limits: Limits = field(default_factory=dict)
    note: bool = False  # a fact for reading on, no loss
    always: bool = False  # however little time it claims
    needs: tuple[Need, ...] = ()  # whose slices it cannot judge without

    def __call__(self, facts: SourceFacts) -> Outcome:
        """Return what the rule says of one source, or what the source lacks."""
        for need in self.needs:
            lacking = facts.lacking(need)
            if lacking is not None:
                return lacking
        return self.judge(facts, self.limits)

    @property
    def threshold(self) -> str:
        """The test with its limits filled in."""
        return self.test.format(**{key: _limit_text(key, limit) for key, limit in self.limits.items()})


def rule(
    id: str,
    title: str,
    test: str,
    *,
    origin: str,
    helps: str,
    limits: Limits | None = None,
    note: bool = False,
    always: bool = False,
    needs: tuple[Need, ...] = (),
) -> Callable[[Judge], Rule]:
    """Make a rule of the function that judges a source by these limits."""
    return lambda judge: Rule(id, title, test, origin, helps, judge, dict(limits or {}), note, always, needs)


def _limit_text(key: str, limit: float) -> str:
    if key.endswith("share"):
        return f"{limit * 100:g} %"
    return format_ns(limit) if key.endswith("_ns") else f"{limit:g}"
