"""One rule of `tracelane doctor`: a function with its texts, limits, severity and source; and the sum
of a file's events by kind, in which every event is counted in exactly one term.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ...index.store import Index
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


TERMS: Mapping[str, str] = {
    "slices": "slices: complete events, and begins with their end",
    "pairs": "ends that close a begin",
    "instant_events": "instants, and events of other phases",
    "counter_events": "counter events",
    "flow_events": "flow events",
    "metadata": "metadata",
    "async_events": "async events",
    "unmatched_begin": "begins without an end",
    "unmatched_end": "ends without a begin",
    "without_time": "events without a usable time",
    "empty": "empty objects",
    "not_objects": "elements that are no objects",
    "unreadable": "events that could not be read",
}
"""Term -> what it counts."""


def event_terms(index: Index) -> dict[str, int]:
    """Return the number of events of each term, in the order of TERMS."""
    return {term: read_report_count(index, term) for term in TERMS}


def event_total(index: Index) -> int:
    """Return how many events a file has, the unreadable ones with them."""
    return read_report_count(index, "events")


def read_report_count(index: Index, name: str) -> int:
    """Return a count of the read report."""
    return int(index.read_report[name])
