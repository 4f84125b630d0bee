"""One file as the doctor's rules see it, computed when first used, and what a rule of the doctor is."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ...base.arrays import I64, AnyArray
from ...base.kineto import NODE, OPS, WORK
from ...base.short_names import short_name
from ...base.vendors import VENDORS
from ...index.store import Index
from ...query.lookup import category_mask
from ...trace.device_clocks import DeviceClock, device_clocks
from ...trace.devices import is_aiu
from ..device.untrusted import LostCalls, Untrusted
from ..frame.frame import Frame
from ..frame.frame_columns import work_of
from ..frame.scope import Scope
from ..rule_threshold import Limits, threshold_text

FIRST = 3
"""So many places are named as evidence."""
CUDA_12, HOPPER = 12_000, 9
"""`cuda_runtime_version` and `computeMajor` from which on a kernel may begin before the one before ends."""
NVIDIA = re.compile(next(vendor.models for vendor in VENDORS if vendor.models))
"""Names of devices; the capability of others means something else."""


class Exhibit(NamedTuple):
    """A place to look at: trace time in ns, an event's ordinal, a byte of the file as it
    is without compression; None where that is not known.
    """

    label: str
    start: int | None = None
    end: int | None = None
    ordinal: int | None = None
    offset: int | None = None

    def row(self, origin: int) -> Mapping[str, Any]:
        """Return it as a JSON object without what is not known; times count from the origin."""
        times = {"start_ns": self.start, "end_ns": self.end}
        values = {key: None if value is None else value - origin for key, value in times.items()}
        values |= {"ordinal": self.ordinal, "offset": self.offset}
        return {"label": self.label} | {key: value for key, value in values.items() if value is not None}


class Recording:
    """One source of a trace."""

    def __init__(self, scope: Scope, source: int) -> None:
        self.scope = replace(scope, source=source)
        self.source = source
        self.index: Index = scope.trace.indexes[source]

    @cached_property
    def is_pytorch(self) -> bool:
        """Whether it has operators of PyTorch: nodes of other tools have no such options."""
        return bool((OPS - {NODE}) & set(self.index.categories))

    @cached_property
    def is_aiu(self) -> bool:
        return is_aiu(self.index)

    @cached_property
    def may_overlap(self) -> bool:
        """Whether kernels of a stream overlap by right: from CUDA 12 or capability 9.0 on the next one may
        begin before the one before has ended (programmatic dependent launch). XLA does not say which it is:
        its slices have no categories.
        """
        if not self.is_aiu and not WORK & set(self.index.categories):
            return True
        version, devices = self.index.envelope.get("cuda_runtime_version"), self.index.device_properties
        nvidia = [one.get("computeMajor") for one in devices if NVIDIA.search(str(one.get("name")))]
        return any(
            type(number) is int and number >= least
            for number, least in ((version, CUDA_12), *((major, HOPPER) for major in nvidia))
        )

    @cached_property
    def work(self) -> Frame:
        return work_of(self.scope)

    @cached_property
    def timed_work(self) -> Frame:
        """Its device work by stream and start, without what has lost its times."""
        return self.work[~np.isin(self.work.position, self.lost.untimed)].in_order()

    @cached_property
    def lost(self) -> LostCalls:
        """What of its device work is missing, or has no usable times."""
        return LostCalls(self.scope, self.source)

    @cached_property
    def untrusted(self) -> tuple[Untrusted, ...]:
        """The time of its devices that cannot be trusted."""
        return tuple(self.lost.periods())

    @cached_property
    def kernels(self) -> Frame:
        """The part of it that neither copies nor sets memory."""
        return self.timed_work[~self.timed_work.is_type("memory")]

    @cached_property
    def clocks(self) -> tuple[DeviceClock, ...]:
        """What the times of its devices' work say of their clocks."""
        return device_clocks(self.scope.trace, self.scope.clocks, self.source)

    def of_categories(self, categories: Container[str]) -> I64:
        return np.flatnonzero(category_mask(self.index, categories)[self.index.column("slices.category")])

    def starts(self, positions: AnyArray) -> I64:
        """Return when slices begin, trace time in ns."""
        return self.scope.starts(self.source, positions)

    def ends(self, positions: AnyArray) -> I64:
        """Return when slices end, trace time in ns."""
        return self.starts(positions) + self.index.duration(np.asarray(positions))

    def name(self, position: int) -> str:
        number = int(self.index.column("slices.name")[position])
        return short_name(self.index.string(number)) or "(blank name)"

    def exhibit(self, label: str, position: int) -> Exhibit:
        one = np.array([position], np.int64)
        ordinal = int(self.index.column("slices.ordinal")[position])
        return Exhibit(label, int(self.starts(one)[0]), int(self.ends(one)[0]), ordinal)

    def slices(self, label: str, positions: AnyArray | list[int]) -> tuple[Exhibit, ...]:
        """Return the first slices as places to look at, their names behind the label."""
        return tuple(self.exhibit(f"{label}: {self.name(int(at))}", int(at)) for at in positions[:FIRST])


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
    """A rule of the doctor, which decorates the function that examines: how grave it is, when it speaks (the
    test has the keys of the limits in braces), where that comes from, and what it distorts.
    """

    id: str
    severity: Severity
    test: str
    origin: str
    limits: Limits = field(default_factory=dict)
    _: KW_ONLY
    distorts: str
    examine: Examine = lambda recording, limits: None

    def __call__(self, examine: Examine) -> DoctorRule:
        """Return the rule with the function that gets a recording and the limits."""
        return replace(self, examine=examine)

    @property
    def threshold(self) -> str:
        """When it speaks, in words."""
        return threshold_text(self.test, self.limits)

    def diagnosis(self, recording: Recording) -> Diagnosis | None:
        """Return what the rule says of a file; None for nothing."""
        diagnosis = self.examine(recording, self.limits)
        return diagnosis if diagnosis is not None and diagnosis.count else None


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
    return {term: int(index.read_report[term]) for term in TERMS}
