"""Rules about the AIU's runtime, by the names of its calls (their case differs between versions)."""

from __future__ import annotations

import re

import numpy as np

from ...base.units import about_ns, count_of, format_share
from ..host.op_events import RUNTIME
from ..rule_threshold import OWN, Limits
from .facts import SourceFacts, share
from .finding import Observation, Outcome
from .rule import AIU, STALLS, Rule, effects_of

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


def _family(
    id: str, title: str, test: str, pattern: re.Pattern[str], what: str, helps: str, spare_busy: bool = False
) -> Rule:
    """Make the rule that a family of calls takes much of the time; `what` names them in the finding.

    Time counts in which devices wait for the host; with `spare_busy` all in which none works.
    """

    def examine(facts: SourceFacts, limits: Limits) -> Outcome:
        host = facts.host
        own = host.matching(pattern, RUNTIME)
        if not own.any():
            return None
        claim = host.union(own)
        if spare_busy and not facts.has_devices:
            return facts.no_device
        if facts.has_devices:
            claim = claim.intersection(facts.idle if spare_busy else facts.held_up)
        part = share(claim.length, facts.span_ns)
        if part < limits["share"]:
            return None
        text = (
            f"{what} takes {about_ns(claim.length)}, {format_share(part)} of the time looked at, in "
            f"{count_of(int(np.count_nonzero(own)), 'call')}"
        )
        short = f"{what} takes {about_ns(claim.length)}, {format_share(part)} of the time"
        return Observation(text, (facts.longest_on_host("the longest", own),), claim, short=short)

    test, origin = f"{test} at least {{share}} of the time looked at", f"{AIU}; the limit is {OWN}"
    explains = effects_of(id) if id in STALLS else ()
    rule = Rule(
        id, title, test, origin, {"share": 0.05}, helps=helps, explains=explains, held_up=not spare_busy
    )
    return rule(examine)


CONVERSION = _family(
    "aiu-convert",
    "Data conversion on the host",
    "aiuDataConvert takes",
    CONVERT,
    "Converting data between the host's and the device's format",
    "Keep tensors in the device's format between calls; transfer less, convert once.",
)
LAUNCHING = _family(
    "aiu-launch",
    "Launching control blocks",
    "launches of control blocks (aiuLaunch…ControlBlocks) take",
    LAUNCH,
    "Launching control blocks",
    "Fewer, larger kernels; look whether the launch waits for room on the device.",
)
RANK_BARRIERS = _family(
    "aiu-barriers",
    "RDMA barriers",
    "RDMA barriers and preparation take",
    BARRIERS,
    "RDMA barriers and their preparation",
    "Ranks wait for each other: compare them, the last to arrive does the most.",
)
SCHEDULER_WAITS = _family(
    "aiu-waits",
    "Waiting for the AIU's scheduler",
    "waits for the scheduler or for room in the queue while the device is not busy take",
    WAITING,
    "Waiting for the scheduler while the device does nothing",
    "Look at what the device did before: the wait is for what is not traced (preparation, other ranks).",
    spare_busy=True,
)
GRAPH_SETUP = _family(
    "aiu-graph",
    "Graph set-up and compilation",
    "aiuInitGraph, aiuCompileGraph and what they prepare take",
    GRAPH,
    "Setting up and compiling graphs",
    "Warm up before recording; keep compiled graphs between runs.",
)
