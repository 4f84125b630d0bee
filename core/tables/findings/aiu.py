"""Rules about the AIU's runtime, by the names of its calls (their case differs between versions)."""

from __future__ import annotations

import re

from ...base.units import count_of, format_ns, format_share
from ..op_events import RUNTIME
from ..rule_threshold import OWN, Limits, RuleThreshold
from .facts import SourceFacts, share
from .finding import Observation, Outcome
from .rule import AIU, rule

CONVERT = re.compile(r"^aiuDataConvert$|^Compute of (?!.*SenFusedDeviceNode)", re.IGNORECASE)
LAUNCH = re.compile(r"^aiuLaunch(DMI|DMO)?ControlBlocks$", re.IGNORECASE)
BARRIERS = re.compile(
    r"^(aiuRDMABarrier\d|(aiu)?PrepareAndSyncRDMA|aiuCommsCollBarrier|Barrier\d)\b|\bBarrier:", re.IGNORECASE
)
WAITING = re.compile(
    r"^(aiuWaitForQueueCapacity|aiuCommsWorkSchedWait)$|\b(aiu)?ScheduleWait\b"
    r"|\bWaitForCompletionAndReturnStatus\b",
    re.IGNORECASE,
)
GRAPH = re.compile(
    r"^(aiuInitGraph|aiuCompileGraph|aiuInitScheduler|aiuCreateVirtualAddresses)$|^(SchedulerConstruct|CreatePipoIovas)\b",
    re.IGNORECASE,
)


@rule(
    "aiu-convert",
    "Data conversion on the host",
    RuleThreshold(
        "aiuDataConvert takes at least {share} of the time looked at",
        f"{AIU}; the limit is {OWN}",
        {"share": 0.05},
    ),
    helps="Keep tensors in the device's format between calls; transfer less, convert once.",
)
def convert(facts: SourceFacts, limits: Limits) -> Outcome:
    """Data is converted on the host."""
    return _family(facts, limits, CONVERT, "Converting data between the host's and the device's format")


@rule(
    "aiu-launch",
    "Launching control blocks",
    RuleThreshold(
        "launches of control blocks (aiuLaunch…ControlBlocks) take at least {share} of the time looked at",
        f"{AIU}; the limit is {OWN}",
        {"share": 0.05},
    ),
    helps="Fewer, larger kernels; look whether the launch waits for room on the device.",
)
def launching(facts: SourceFacts, limits: Limits) -> Outcome:
    """Launches of control blocks take long."""
    return _family(facts, limits, LAUNCH, "Launching control blocks")


@rule(
    "aiu-barriers",
    "RDMA barriers",
    RuleThreshold(
        "RDMA barriers and preparation take at least {share} of the time looked at",
        f"{AIU}; the limit is {OWN}",
        {"share": 0.05},
    ),
    helps="Ranks wait for each other: compare them, the last to arrive does the most.",
)
def barriers(facts: SourceFacts, limits: Limits) -> Outcome:
    """Ranks wait for each other."""
    return _family(facts, limits, BARRIERS, "RDMA barriers and their preparation")


@rule(
    "aiu-waits",
    "Waiting for the AIU's scheduler",
    RuleThreshold(
        (
            "waits for the scheduler or for room in the queue while the device is not busy take at least "
            "{share} of the time looked at"
        ),
        f"{AIU}; the limit is {OWN}",
        {"share": 0.05},
    ),
    helps=(
        "Look at what the device did before: the wait is for what is not traced (preparation, other ranks)."
    ),
)
def waiting(facts: SourceFacts, limits: Limits) -> Outcome:
    """The host waits for the scheduler while the device does nothing."""
    return _family(facts, limits, WAITING, "Waiting for the scheduler while the device does nothing", True)


@rule(
    "aiu-graph",
    "Graph set-up and compilation",
    RuleThreshold(
        "aiuInitGraph, aiuCompileGraph and what they prepare take at least {share} of the time looked at",
        f"{AIU}; the limit is {OWN}",
        {"share": 0.05},
    ),
    helps="Warm up before recording; keep compiled graphs between runs.",
)
def graph(facts: SourceFacts, limits: Limits) -> Outcome:
    """Graphs are set up and compiled."""
    return _family(facts, limits, GRAPH, "Setting up and compiling graphs")


def _family(
    facts: SourceFacts, limits: Limits, pattern: re.Pattern[str], what: str, spare_busy: bool = False
) -> Outcome:
    host = facts.host
    rows = host.matching(pattern, RUNTIME)
    if not len(rows):
        return None
    claim = host.union(rows)
    if spare_busy:
        if not facts.works:
            return facts.no_device
        claim = claim.without(facts.busy)
    part = share(claim.length, facts.span_ns)
    if part < limits["share"]:
        return None
    text = (
        f"{what} takes {format_ns(claim.length)}, {format_share(part)} of the time looked at, in "
        f"{count_of(len(rows), 'call')}"
    )
    return Observation(text, (facts.longest_on_host("the longest", rows),), claim)
