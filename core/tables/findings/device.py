"""Rules about how busy the devices are, and what they wait for."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from ...base.units import count_of, format_ns, format_share
from ..kinds import KERNEL_TYPES, KernelType
from ..op_events import OP
from ..rule_threshold import OWN, Limits, RuleThreshold
from ..step_sets import COLLECTIVE_OPS
from .facts import SourceFacts, share
from .finding import Observation, Outcome
from .rule import GUIDE, TENSORBOARD, rule

LIMITS: Mapping[KernelType, str] = {
    "compute": "the device is the limit",
    "communication": "other ranks or the network are the limit",
    "memory": "copies are the limit",
    "sync": "the device is the limit",
}
"""What limits a device that is busy, by the type of work that it does most."""
COLLECTIVE = re.compile("^(" + "|".join(COLLECTIVE_OPS) + ")")


@rule(
    "overhead-bound",
    "Overhead-bound",
    RuleThreshold(
        (
            "in the time in which the host gives the device work (waits and blocking copies aside) the "
            "host works at least {ratio} times as long as the device, during at least {host_share} of "
            "the device's idle time; the device for less than {busy_share} of it"
        ),
        f"{GUIDE}; utilisation below 50 %: {TENSORBOARD}",
        {"busy_share": 0.5, "ratio": 2, "host_share": 0.5},
    ),
    helps=(
        "Fewer and larger kernels: a larger batch, fusion (torch.compile), graphs (CUDA graphs, whole-graph "
        "launches); less Python between launches."
    ),
    needs=("device", "host"),
)
def overhead_bound(facts: SourceFacts, limits: Limits) -> Outcome:
    """The host takes longer to give the work than the device to do it."""
    low, high = facts.host_window
    host, busy = facts.host_working.clipped(low, high), facts.busy.length
    blamed, idle_ns = host.without(facts.busy), facts.busy.gaps(low, high).length
    if (
        busy >= limits["busy_share"] * (high - low)
        or host.length < limits["ratio"] * busy
        or blamed.length < limits["host_share"] * idle_ns
    ):
        return None
    times = f", {host.length / busy:.1f} times as long" if busy else ""
    used = share(busy, facts.span_ns)
    text = (
        f"The host works {format_ns(host.length)} to give the device {format_ns(busy)} of work{times}; "
        f"{facts.device_is} busy in only {format_share(used)} of {format_ns(facts.span_ns)}, "
        f"and idle in {format_share(1 - used)}"
    )
    return Observation(text, facts.longest_windows("longest idle gap", facts.all_idle), blamed)


@rule(
    "transfer-bound",
    "Bound by copies that block the host",
    RuleThreshold(
        (
            "copies to and from the device that the host waits for, while no kernel runs, take at least "
            "{share} of the time in which the host works or waits"
        ),
        f"{GUIDE} (blocking copies); the limit is {OWN}",
        {"share": 0.5},
    ),
    helps=(
        "Copy once, before the loop; keep data on the device; copy from pinned memory with "
        "non_blocking=True, beside compute; leave out .item(), .cpu() and prints."
    ),
    needs=("device",),
)
def transfer_bound(facts: SourceFacts, limits: Limits) -> Outcome:
    """The host spends its time in copies."""
    claim = facts.transferring
    if not claim.length:
        return None
    whole = facts.host.union(np.flatnonzero(facts.active)).length
    part = share(claim.length, whole)
    if part < limits["share"]:
        return None
    host = facts.host
    most = int(np.argmax(host.sums(facts.transfers, host.self_ns)))
    text = (
        f"{format_share(part)} of the host's time goes into copies that it waits for, most in "
        f"{host.label(most)}: {format_ns(claim.length)} of {format_ns(whole)}, while no kernel runs"
    )
    return Observation(text, (facts.longest_on_host("the longest", facts.transfers),), claim)


@rule(
    "device-idle",
    "Device idle",
    RuleThreshold(
        (
            "the device is busy less than {busy_share} of the time looked at, and neither the host's "
            "work nor blocking copies account for the idle time (else it is overhead-bound or "
            "transfer-bound)"
        ),
        TENSORBOARD,
        {"busy_share": 0.5},
    ),
    helps=(
        "Look at what the longest gaps wait for: input, another rank, a synchronisation, work that is not "
        "traced."
    ),
    needs=("device",),
)
def device_idle(facts: SourceFacts, limits: Limits) -> Outcome:
    """The device does little, and the trace does not show that the host is to blame."""
    busy = facts.busy.length
    if busy >= limits["busy_share"] * facts.span_ns:
        return None
    if any(isinstance(other(facts), Observation) for other in (overhead_bound, transfer_bound)):
        return None
    text = (
        f"{facts.device_is} busy in only {format_share(share(busy, facts.span_ns))} of "
        f"{format_ns(facts.span_ns)}"
    )
    profiling = facts.busy.gaps(*facts.span).length - facts.all_idle.length
    if profiling:
        text += f"; of the idle time {format_ns(profiling)} are the profiler's own and not counted"
    idle = facts.all_idle
    return Observation(
        text, facts.longest_windows("longest idle gap", idle), idle, work=np.unique(facts.work_after(idle))
    )


@rule(
    "device-bound",
    "Device-bound",
    RuleThreshold(
        "a device is busy at least {busy_share} of the time looked at",
        f"{GUIDE} (compute-bound); the limit is {OWN}",
        {"busy_share": 0.8},
    ),
    helps=(
        "The host keeps up: faster kernels are what helps. Start with those that take most time; lower "
        "precision, better tiling, fusion of what only moves memory; where it is communication, less of it."
    ),
    needs=("device",),
)
def device_bound(facts: SourceFacts, limits: Limits) -> Outcome:
    """The device is the limit: of several the busiest one."""
    devices = list(facts.work.by("device_row"))
    claims = [work.union() for work in devices]
    bound = [at for at, one in enumerate(claims) if one.length >= limits["busy_share"] * facts.span_ns]
    if not facts.span_ns or not bound:
        return None
    at = max(bound, key=lambda at: claims[at].length)
    work, claim = devices[at], claims[at]
    kind = max(KERNEL_TYPES, key=lambda name: work.union(work.is_type(name)).length)
    device = facts.device_is
    if len(devices) > 1:
        device = f"{work.first_device.title}, the busiest of {len(devices)} devices, is"
    text = (
        f"{device} busy in {format_share(share(claim.length, facts.span_ns))} of "
        f"{format_ns(facts.span_ns)}, mostly {kind}: {LIMITS[kind]}"
    )
    evidence = facts.longest_windows("longest stretch of work", claim)
    all_bound = facts.work[np.isin(facts.work.device_row, [devices[at].device_row[0] for at in bound])]
    return Observation(text, evidence, all_bound.union(), work=np.unique(all_bound.position))


@rule(
    "communication",
    "Exposed communication",
    RuleThreshold(
        (
            "communication that no compute hides takes more than {share} of the step time (without "
            "steps: of the time looked at)"
        ),
        f"{TENSORBOARD}, which counts hidden communication too",
        {"share": 0.1},
    ),
    helps=(
        "Overlap it with compute (larger or earlier buckets), communicate less often (gradient "
        "accumulation) or less (compression, sharding)."
    ),
)
def exposed_communication(facts: SourceFacts, limits: Limits) -> Outcome:
    """Communication that nothing hides."""
    limit = limits["share"]
    if len(facts.work):
        claim = facts.types["communication"].without(facts.types["compute"])
        what = "communication that no compute hides"
    else:
        rows = facts.host.matching(COLLECTIVE, OP)
        claim = facts.host.union(rows)
        what = "collective operators on the host"
    whole = facts.judged.length
    inside = claim.intersection(facts.judged)
    if not inside.length or inside.length <= limit * whole:
        return None
    text = (
        f"{format_ns(inside.length)}, {format_share(share(inside.length, whole))} of {_of(facts)}, is {what}"
    )
    return Observation(text, facts.longest_windows("longest", inside), inside)


@rule(
    "copies",
    "Copies (DMA)",
    RuleThreshold(
        "copies that no compute hides take at least {share} of the device's busy time",
        f"analyses of AIU traces (DMA share); the limit is {OWN}",
        {"share": 0.2},
    ),
    helps=(
        "Keep data on the device between steps, copy in larger pieces, from pinned memory, asynchronously "
        "beside compute."
    ),
    needs=("device",),
)
def exposed_copies(facts: SourceFacts, limits: Limits) -> Outcome:
    """Copies that nothing hides."""
    is_copy = facts.work.is_kind("copy")
    count, claim = int(np.count_nonzero(is_copy)), facts.work.union(is_copy).without(facts.types["compute"])
    part = share(claim.length, facts.busy.length)
    if not claim.length or part < limits["share"]:
        return None
    text = (
        f"{count_of(count, 'copy takes', 'copies take')} {format_ns(claim.length)} that no compute hides: "
        f"{format_share(part)} of the time in which the device works"
    )
    return Observation(text, facts.longest_windows("longest copying", claim), claim)


def _of(facts: SourceFacts) -> str:
    return "the step time" if facts.steps is not None else "the time looked at"
