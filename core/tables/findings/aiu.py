"""Rules about the AIU's runtime, by the names of its calls (their case differs between versions)."""

from __future__ import annotations

import re

import numpy as np

from ...base.units import format_ns, format_share
from ..op_events import RUNTIME
from .facts import Facts, counted, share
from .finding import Found, Verdict
from .rules import RULES

CONVERT = re.compile(r"^aiuDataConvert$", re.IGNORECASE)
LAUNCH = re.compile(r"^aiuLaunch(DMI|DMO)?ControlBlocks$", re.IGNORECASE)
BARRIERS = re.compile(r"^(aiuRDMABarrier\d|aiuPrepareAndSyncRDMA|aiuCommsCollBarrier)$", re.IGNORECASE)
WAITING = re.compile(r"^(aiuScheduleWait|aiuWaitForQueueCapacity|aiuCommsWorkSchedWait)$", re.IGNORECASE)
GRAPH = re.compile(
    r"^(aiuInitGraph|aiuCompileGraph|aiuInitScheduler|aiuCreateVirtualAddresses)$", re.IGNORECASE
)


def convert(facts: Facts) -> Verdict:
    """Data is converted on the host."""
    return _family(
        facts, "aiu-convert", CONVERT, "Converting data between the host's and the device's format"
    )


def launching(facts: Facts) -> Verdict:
    """Launches of control blocks take long."""
    return _family(facts, "aiu-launch", LAUNCH, "Launching control blocks")


def barriers(facts: Facts) -> Verdict:
    """Ranks wait for each other."""
    return _family(facts, "aiu-barriers", BARRIERS, "RDMA barriers and their preparation")


def waiting(facts: Facts) -> Verdict:
    """The host waits for the scheduler while the device does nothing."""
    return _family(
        facts, "aiu-waits", WAITING, "Waiting for the scheduler while the device does nothing", True
    )


def graph(facts: Facts) -> Verdict:
    """Graphs are set up and compiled."""
    return _family(facts, "aiu-graph", GRAPH, "Setting up and compiling graphs")


def _family(
    facts: Facts, rule: str, pattern: re.Pattern[str], what: str, spare_busy: bool = False
) -> Verdict:
    host = facts.host
    places = host.named(pattern, RUNTIME)
    if not len(places):
        return None
    claim = host.union(places)
    if spare_busy:
        if not facts.works:
            return facts.no_device
        claim = claim.without(facts.busy)
    part = share(claim.length, facts.span_ns)
    if part < RULES[rule].limits["share"]:
        return None
    longest = int(places[np.argmax((host.ends - host.starts)[places])])
    name = host.label(int(host.name[longest]))
    text = (
        f"{what} takes {format_ns(claim.length)}, {format_share(part)} of the time looked at, in "
        f"{counted(len(places), 'call')}"
    )
    return Found(text, (facts.on_host(f"the longest: {name}", longest),), claim)
