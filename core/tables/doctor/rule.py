"""One rule of `tracelane doctor`: a function with its texts, limits, severity and source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..rule_threshold import Limits, RuleThreshold
from .recording import Exhibit, Recording

Severity: TypeAlias = Literal["note", "warning", "error"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""The gravest first."""

FORMAT = "Trace Event Format"
KINETO = "Kineto, output_json.cpp"
SPYRE = "torch-spyre's list of timestamp faults (#3274)"
SPYRE_OVERLAP = "torch-spyre #3538, #3583: work on one stream never overlaps"
SPYRE_COPIES = "torch-spyre #3727: asynchronous copies are stamped by the host"
AIUPTI = "kineto-spyre, AIUPTI activity buffers"
ANALYZER = "IBM's aiu-trace-analyzer, timesync.py"
TRACELENS = "AMD TraceLens #972"
PYTORCH = "PyTorch, torch.profiler"
"""Where rules come from."""


@dataclass(frozen=True)
class Diagnosis:
    """What a rule says of one file; `severity` where it is not the one of the rule.

    A diagnosis with a count of 0 is none.
    """

    count: int
    text: str
    evidence: tuple[Exhibit, ...] = ()
    severity: Severity | None = None


Examine: TypeAlias = Callable[[Recording, Limits], Diagnosis | None]


@dataclass(frozen=True)
class DoctorRule:
    """A rule of the doctor: when it speaks, how grave that is, and what it distorts."""

    id: str
    severity: Severity
    threshold: RuleThreshold
    distorts: str
    examine: Examine

    def __call__(self, recording: Recording) -> Diagnosis | None:
        """Return what the rule says of a file; None for nothing."""
        diagnosis = self.examine(recording, self.threshold.limits)
        return diagnosis if diagnosis is not None and diagnosis.count else None


def doctor_rule(
    id: str, severity: Severity, threshold: RuleThreshold, distorts: str
) -> Callable[[Examine], DoctorRule]:
    """Make a rule of a function that gets a recording and the limits."""
    return lambda examine: DoctorRule(id, severity, threshold, distorts, examine)
