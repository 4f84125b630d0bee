"""One rule of the doctor: a decorated function with its words, limits, severity and source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ...base.units import format_ns
from .recording import Exhibit, Recording

Severity: TypeAlias = Literal["note", "warning", "error"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""The gravest first."""

OWN = "our own choice"
FORMAT = "Trace Event Format"
KINETO = "Kineto, output_json.cpp"
SPYRE = "torch-spyre's list of timestamp faults (#3274)"
SPYRE_OVERLAP = "torch-spyre #3538, #3583: work on one stream never overlaps"
SPYRE_COPIES = "torch-spyre #3727: asynchronous copies are stamped by the host"
AIUPTI = "kineto-spyre, AIUPTI activity buffers"
PYTORCH = "PyTorch, torch.profiler"
"""Where rules come from."""


@dataclass(frozen=True)
class Diagnosis:
    """What a rule says of one file; `severity` where it is not the rule's own."""

    count: int
    text: str
    evidence: tuple[Exhibit, ...] = ()
    severity: Severity | None = None


@dataclass(frozen=True)
class DoctorRule:
    """A rule; `test` says when it speaks, its limits in braces. A limit ending in `_ns` is a time, in `share`
    a share of 1.
    """

    id: str
    severity: Severity
    test: str
    distorts: str
    source: str
    judge: Callable[[Recording, Mapping[str, float]], Diagnosis | None]
    limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def threshold(self) -> str:
        """The test with its limits filled in."""
        return self.test.format(**{key: _limit_text(key, limit) for key, limit in self.limits.items()})

    def __call__(self, recording: Recording) -> Diagnosis | None:
        """Return what the rule says of a file; None for nothing."""
        return self.judge(recording, self.limits)


def doctor_rule(
    id: str, severity: Severity, test: str, distorts: str, source: str, **limits: float
) -> Callable[[Callable[[Recording, Mapping[str, float]], Diagnosis | None]], DoctorRule]:
    """Make a rule of a function that gets a recording and the limits."""

    def decorate(judge: Callable[[Recording, Mapping[str, float]], Diagnosis | None]) -> DoctorRule:
        return DoctorRule(id, severity, test, distorts, source, judge, limits)

    return decorate


def _limit_text(key: str, limit: float) -> str:
    if key.endswith("share"):
        return f"{limit * 100:g} %"
    return format_ns(int(limit)) if key.endswith("_ns") else f"{limit:g}"
