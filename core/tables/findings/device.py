"""Rules about how busy the devices are, and what they wait for."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from ...base.units import about_ns, count_of, format_share
from ..device_state import COMPUTE, COPY, MOVING, UNSPLIT
from ..kinds import KernelType
from ..op_events import OP
from ..rule_threshold import OWN, Limits
from ..step_sets import COLLECTIVE_OPS
from .facts import SourceFacts, share
from .finding import Observation, Outcome
from .rule import GUIDE, TENSORBOARD, effects_of, rule

LIMITS: Mapping[KernelType, str] = {
    "compute": "the device is the limit",
    "communication": "other ranks or the network are the limit",
    "memory": "copies are the limit",
}
"""What limits a device that is busy, by the type of work that it does most."""
WORDS = {"memory": "copies"}
COLLECTIVE = re.compile("^(" + "|".join(COLLECTIVE_OPS) + "|c10d::)")


@rule(
    "overhead-bound",
    "Overhead-bound",
    "in the time in which the host gives the device work (waits and blocking copies aside) the "
    "host works at least {ratio} times as long as the device, during at least {host_share} of "
    "the device's idle time; the device for less than {busy_share} of it",
    f"{GUIDE}; utilisation below 50 %: {TENSORBOARD}",
    {"busy_share": 0.5, "ratio": 2, "host_share": 0.5},
    helps=(
        "Fewer and larger kernels: a larger batch, fusion (torch.compile), graphs (CUDA graphs, whole-graph "
        "launches); less Python between launches."
    ),
    needs=("device", "host"),
    explains=effects_of("overhead-bound"),
)
def overhead_bound(facts: SourceFacts, limits: Limits) -> Outcome:
    low, high = facts.host_window
    host, busy = facts.host_working.clipped(low, high), facts.busy.length
    blamed = host.without(facts.busy).without(facts.waiting)
    idle_ns = facts.busy.gaps(low, high).length
    if (
        not busy
        or busy >= limits["busy_share"] * (high - low)
        or host.length < limits["ratio"] * busy
        or blamed.length < limits["host_share"] * idle_ns
    ):
        return None
    used = share(busy, facts.span_ns)
    text = (
        f"The host works {about_ns(host.length)} to give the device {about_ns(busy)} of work: "
        f"{host.length / busy:.3g} times as long; {facts.device_is} busy in only {format_share(used)} of "
        f"{about_ns(facts.span_ns)}"
    )
    return Observation(text, facts.longest_windows("longest idle gap", facts.idle), blamed)


@rule(
    "transfer-bound",
    "Bound by copies that block the host",
    "copies to and from the device that the host waits for take at least {host_share} of the time in "
    "which the host works or waits while no kernel runs, and {share} of the time looked at",
    f"{GUIDE} (blocking copies); the limits are {OWN}",
    {"share": 0.1, "host_share": 0.5},
    helps=(
        "Copy once, before the loop; keep data on the device; copy from pinned memory with "
        "non_blocking=True, beside compute; leave out .item(), .cpu() and prints."
    ),
    needs=("device",),
    explains=(*effects_of("transfer-bound"), "copies", "pageable-copies"),
)
def transfer_bound(facts: SourceFacts, limits: Limits) -> Outcome:
    claim = facts.transferring
    kernels = facts.types["compute"].union(facts.types["communication"])
    whole = facts.host.union(np.flatnonzero(facts.active)).without(kernels).length
    least = max(limits["host_share"] * whole, limits["share"] * facts.span_ns)
    if not claim.length or claim.length < least:
        return None
    host = facts.host
    most = int(np.argmax(host.sums(facts.transfers, host.self_ns)))
    text = (
        f"For {about_ns(claim.length)} of {about_ns(facts.span_ns)} the host waits for copies while no "
        f"kernel runs, most of it in {host.label(most)}"
    )
    return Observation(text, (facts.longest_on_host("the longest", facts.transfers),), claim)


@rule(
    "device-idle",
    "Device idle",
    "the device is busy less than {busy_share} of the time looked at, a server's without requests "
    "aside; a headline where other findings explain most of the idle time",
    TENSORBOARD,
    {"busy_share": 0.5},
    helps=(
        "Look at what the longest gaps wait for: input, another rank, a synchronisation, work that is not "
        "traced."
    ),
    needs=("device",),
)
def device_idle(facts: SourceFacts, limits: Limits) -> Outcome:
    busy = facts.busy.length
    if busy >= limits["busy_share"] * (facts.span_ns - facts.awaiting.length):
        return None
    used = format_share(share(busy, facts.span_ns))
    text = f"{facts.device_is} busy in only {used} of {about_ns(facts.span_ns)}"
    profiling = facts.profiling.without(facts.busy).length
    if profiling:
        text += f"; {about_ns(profiling)} of the idle time is the profiler's own and not counted"
    idle = facts.idle
    return Observation(
        text,
        facts.longest_windows("longest idle gap", idle),
        idle,
        work=np.unique(facts.work_after(idle)[1].position),
    )


@rule(
    "device-bound",
    "Device-bound",
    "a device is busy at least {busy_share} of the time looked at, waiting for peers aside",
    f"{GUIDE} (compute-bound); the limit is {OWN}",
    {"busy_share": 0.8},
    helps=(
        "The host keeps up: faster kernels are what helps. Start with those that take most time; lower "
        "precision, better tiling, fusion of what only moves memory; where it is communication, less of it."
    ),
    kind="headline",
    needs=("device",),
)
def device_bound(facts: SourceFacts, limits: Limits) -> Outcome:
    if not facts.states or not facts.span_ns:
        return None
    busiest = max(facts.states, key=lambda state: state.busy_ns)
    work = facts.work[facts.work.device_row == facts.row_of(busiest)]
    busy = facts.in_states(COMPUTE, MOVING, UNSPLIT, COPY, of=busiest)
    part = share(busy.length, facts.span_ns)
    if part < limits["busy_share"]:
        return None
    times = busiest.ns
    of_kind = {
        "compute": times["compute"],
        "communication": times["collective_moving"] + times["collective_unsplit"],
        "memory": times["copy"],
    }
    kind = max(LIMITS, key=of_kind.__getitem__)
    device = facts.device_is
    if len(facts.states) > 1:
        device = f"{busiest.device.title}, the busiest of {len(facts.states)} devices, is"
    text = (
        f"{device} busy in {format_share(part)} of {about_ns(facts.span_ns)}, mostly with "
        f"{WORDS.get(kind, kind)}: {LIMITS[kind]}"
    )
    evidence = facts.longest_windows("longest stretch of work", busy)
    return Observation(text, evidence, busy, work=np.unique(work.position))


@rule(
    "communication",
    "Exposed communication",
    "communication that no compute hides takes more than {share} of the time looked at",
    f"{TENSORBOARD}, which counts hidden communication too",
    {"share": 0.1},
    helps=(
        "Overlap it with compute (larger or earlier buckets), communicate less often (gradient "
        "accumulation) or less (compression, sharding)."
    ),
)
def exposed_communication(facts: SourceFacts, limits: Limits) -> Outcome:
    if facts.has_devices:
        claim = facts.types["communication"].without(facts.types["compute"]).without(facts.launching_late)
        claim = claim.union(facts.host_collectives.intersection(facts.idle))
        what = "communication that no compute hides"
    else:
        claim = facts.host.union(facts.host.matching(COLLECTIVE, OP))
        what = "collective operators on the host"
    part = share(claim.length, facts.span_ns)
    if not claim.length or part <= limits["share"]:
        return None
    text = f"{about_ns(claim.length)}, {format_share(part)} of {about_ns(facts.span_ns)}, is {what}"
    waiting = facts.waiting.intersection(claim).length
    if waiting:
        text += f"; for {about_ns(waiting)} of it another rank had yet to come"
    return Observation(text, facts.longest_windows("longest", claim), claim)


@rule(
    "copies",
    "Copies (DMA)",
    "copies that no compute hides take at least {share} of the device's busy time",
    f"analyses of AIU traces (DMA share); the limit is {OWN}",
    {"share": 0.2},
    helps=(
        "Keep data on the device between steps, copy in larger pieces, from pinned memory, asynchronously "
        "beside compute."
    ),
    needs=("device",),
    explains=("pageable-copies",),
)
def exposed_copies(facts: SourceFacts, limits: Limits) -> Outcome:
    is_copy = facts.work.is_kind("copy")
    count = int(np.count_nonzero(is_copy))
    claim = facts.work.union(is_copy).without(facts.types["compute"]).without(facts.untrusted)
    part = share(claim.length, facts.busy.length)
    if not claim.length or part < limits["share"]:
        return None
    text = (
        f"{count_of(count, 'copy takes', 'copies take')} {about_ns(claim.length)} that no compute hides: "
        f"{format_share(part)} of the time in which the device works"
    )
    return Observation(text, facts.longest_windows("longest copying", claim), claim)
