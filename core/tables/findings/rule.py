"""One rule as the table of rules states it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...base.units import format_ns

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
    origin: str
    helps: str
    limits: Mapping[str, float]
    note: bool = False  # a fact for reading on, no loss
    always: bool = False  # told however little time it claims

    @property
    def threshold(self) -> str:
        """The test with its limits filled in."""
        return self.test.format(**{key: _shown(key, limit) for key, limit in self.limits.items()})


def _shown(key: str, limit: float) -> str:
    if key.endswith("share"):
        return f"{limit * 100:g} %"
    return format_ns(limit) if key.endswith("_ns") else f"{limit:g}"
