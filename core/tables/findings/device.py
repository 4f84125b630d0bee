"""Rules about how busy devices are, and what they wait for: the host, copies, the devices of other ranks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from math import inf
from pathlib import Path

import numpy as np

from ...base.arrays import EMPTY, I64, Intervals, distinct, merge, sum_of
from ...base.kineto import NOTED_COLLECTIVES
from ...base.units import about_ns, count_of, format_ratio, format_share
from ..device.gap import busiest_in
from ..device.states import BUSY
from ..frame.kinds import KernelType
from ..host.op_events import OP, RUNTIME
from ..peers.skew import Skew
from ..rule_threshold import OWN, Limits
from .facts import SourceFacts, share
from .finding import Evidence, NotJudged, Observation, Outcome, brief
from .kernels import kernels_alike
from .limiting_work import limiting_work
from .rule import GUIDE, HTA, TENSORBOARD, Rule, effects_of

LIMITS: Mapping[KernelType, str] = {
    "compute": "the device is the limit",
    "communication": "other ranks or the network are the limit",
    "memory": "copies are the limit",
}
"""What limits a device that is busy, by the type of work that it does most."""
WORDS = {"memory": "copies"}
COLLECTIVE = re.compile("^(" + "|".join(NOTED_COLLECTIVES) + "|c10d::)")
OF_DEVICES = re.compile(r"^[nrh]ccl:")
"""Annotations of collectives that devices do."""
EVENT_SHARE = 0.1
"""From this share of the idle time on it is told for how long streams wait for an event."""
BEFORE_SHARE = 0.5
"""From this share of the idle time on it is told, where no cause is known, that it precedes all work."""
EVIDENCE = 3
"""Collectives that are named as evidence."""


@Rule(
    "rank-imbalance",
    "One rank keeps the others waiting",
    "ranks do nothing but wait in collectives for one of them for at least {share} of the time, "
    "{share} and {most_share} longer than it waits for others, or, of more than two, {most_share} "
    "of all that ranks wait",
    f"{HTA}, whose straggler rule knows few collectives by name; the limit is {OWN}",
    {"share": 0.03, "most_share": 0.5},
    helps=(
        "Look at what this rank does before it comes: more or slower work (uneven batches, experts or "
        "tables), input, another host or a slower device. The ranks that wait are not the slow ones."
    ),
    explains=("communication", "device-hotspot", "aiu-barriers", *effects_of("sync-in-loop")),
)
def rank_imbalance(facts: SourceFacts, limits: Limits) -> Outcome:
    skew = facts.capture.skew
    # Of several ranks in the only file each is a process.
    process = facts.part.process if len(facts.scope.trace.indexes) == 1 else None
    column = skew.columns.get(facts.source if process is None else process)
    if not len(skew) or column is None:
        return NotJudged("no collective is on two ranks")
    if column != int(skew.caused.argmax()):
        return None

    def title_of(column: int) -> str:
        source, trace = skew.sources[column], facts.scope.trace
        if process is not None:
            return next(part.title for part in facts.capture.parts(0) if part.process == source)
        rank = trace.rank(source)
        return Path(trace.indexes[source].path).name if rank is None else f"rank {rank}"

    # When devices of other ranks do nothing but wait for a peer.
    held = reduce(Intervals.union, (one.waiting for one in facts.capture.everyone if one is not facts), EMPTY)
    awaited = awaited_rank(skew, facts.span_ns, limits, _rank_title(facts), title_of, held, facts.waiting)
    if awaited is None:
        return None
    observation, rows = awaited
    evidence = tuple(
        facts.slice(
            each.label if process is not None else f"{each.label}{_meanwhile(facts, each)}",
            int(skew.positions[skew.last_entry[row]]),
            (each.start, each.end),
        )
        for row, each in zip(rows.tolist(), observation.evidence)
    )
    return replace(observation, evidence=evidence)


def _meanwhile(facts: SourceFacts, window: Evidence) -> str:
    """Return what the host of a rank does while the others wait for it, nothing where it does many things."""
    span = window.start, window.end
    doing = busiest_in(facts.scope.trace, facts.source, span, facts.scope.clocks)
    return f"; meanwhile its host is in {brief(doing)}" if doing else ""


def _rank_title(facts: SourceFacts) -> str:
    """Return the name of the source, or of the rank in it, at the beginning of a sentence."""
    file = Path(facts.index.path).name
    if facts.part.title:
        return facts.part.title.capitalize()
    if facts.rank is None:
        return file
    return f"Rank {facts.rank}" + (f" ({file})" if facts.is_numbered else "")


def awaited_rank(
    skew: Skew,
    span_ns: int,
    limits: Limits,
    title: str,
    title_of: Callable[[int], str],
    held: Intervals = EMPTY,
    waiting: Intervals | None = None,
) -> tuple[Observation, I64] | None:
    """Return what is said of the rank that the others wait for most, called `title`, in so much time, and the
    collectives of `skew` that it came last to, first those with most waiting; None where they wait for it
    little, or as long as it waits for them. `title_of` names a column of `skew`.

    `held`: when other ranks do nothing but wait, empty where that is not known (ranks with one device between
    them do not tell); `waiting`: when this one does nothing else.
    """
    column = int(skew.caused.argmax())
    caused = int(skew.caused[column])
    rows = skew.awaiting(column)
    claim = merge(skew.first_start[rows], skew.last_start[rows])
    if held.length:
        claim = claim.intersection(held)
    # Where it is chance that makes ranks wait for one another, each waits as long as it keeps others waiting.
    least = limits["share"] * span_ns
    own = skew.waiting(column) if waiting is None else skew.waiting(column).intersection(waiting)
    is_most = len(skew.sources) > 2 and caused >= limits["most_share"] * sum_of(skew.caused)
    is_late = claim.length - own.length >= max(least, limits["most_share"] * claim.length)
    if not caused or claim.length < least or not (is_most or is_late):
        return None
    evidence = tuple(
        Evidence(
            f"{skew.families[int(skew.family[row])][1]}, for which the others wait "
            f"{about_ns(int(skew.waited[row]))}",
            int(skew.first_start[row]),
            int(skew.last_start[row]),
        )
        for row in rows[:EVIDENCE].tolist()
    )
    others, waits = len(skew.sources) - 1, f"{about_ns(caused)} for it"
    who = (
        f"the other {others:,} ranks wait {waits} in total" if others > 1 else f"the other rank waits {waits}"
    )
    text = f"{title} is last in {len(rows):,} of {count_of(len(skew), 'collective')}: {who}"
    rest = skew.caused.copy()
    rest[column] = 0
    second = int(rest.argmax())
    if 2 * rest[second] >= caused:  # another rank costs at least half as much
        text += f"; for {title_of(second)}, last to {int(skew.came_last[second]):,} of them, the others wait "
        text += about_ns(int(rest[second]))
    short = f"{title} is last in {len(rows):,} of {len(skew):,}, others wait {about_ns(caused)}"
    return Observation(text, evidence, claim, times=skew.last_start[rows], short=short), rows


@Rule(
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
    meanwhile=("operator", "runtime", "allocation"),
)
def overhead_bound(facts: SourceFacts, limits: Limits) -> Outcome:
    # From the first start to the last end of what is no wait: the time in which it gives the device work.
    issuing = facts.active & ~facts.waits
    if not issuing.any():
        return None
    runs = np.unique(facts.work.name_number, return_counts=True)[1]
    if len(facts.steps or ()) < 2 and (runs == 1).all():
        return NotJudged("all work ran once: in a first pass the host prepares what it later has")
    low, high = int(facts.host.starts[issuing].min()), int(facts.host.ends[issuing].max())
    host, busy = _host_working(facts).clipped(low, high), facts.busy.length
    blamed = host.without(facts.busy).without(facts.waiting)
    idle_ns = facts.busy.gaps(low, high).length
    if (
        not busy
        or busy >= limits["busy_share"] * (high - low)
        or host.length < limits["ratio"] * busy
        or blamed.length < limits["host_share"] * idle_ns
    ):
        return None
    used = format_share(share(busy, facts.span_ns))
    text = (
        f"The host works {about_ns(host.length)} to give the device {about_ns(busy)} of work: "
        f"{format_ratio(host.length / busy)} times as long; {_devices(facts)} is busy in only {used} of "
        f"{about_ns(facts.span_ns)}"
    )
    short = f"Host {about_ns(host.length)}, device {about_ns(busy)}"
    own = issuing & (facts.host.kinds == OP)
    if own.any():
        most = facts.host.label(int(np.argmax(facts.host.sums(own, facts.own_ns))))
        short += f", most in {brief(most, 20)}"
    return Observation(text, facts.longest_windows("longest idle gap", facts.idle), blamed, short=short)


def _host_working(facts: SourceFacts) -> Intervals:
    """Return the time in which some thread runs an operator or call that neither waits for the device nor for
    a copy, and that the profiler does not hold up: a launch waits for the profiler's buffer, an operator for
    what the profiler does within it.
    """
    host = facts.host
    calls = facts.active & (host.kinds == RUNTIME)
    ends = np.sort(host.ends[facts.profiler])
    last = np.searchsorted(ends, host.ends[calls], "right")
    held = host.narrow(calls, last > np.searchsorted(ends, host.starts[calls], "right"))
    busy = host.time_of_threads(facts.outermost, facts.waits | facts.transfers | held)
    working = busy.union(host.union(held).without(facts.profiling))
    for lane, (time, _) in facts.profiled.items():
        working = working.without(time.without(host.union(facts.outermost & (host.lanes != lane))))
    return working


@Rule(
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
    whole = facts.running.without(kernels).length
    least = max(limits["host_share"] * whole, limits["share"] * facts.span_ns)
    if not claim.length or claim.length < least:
        return None
    host = facts.host
    most = int(np.argmax(host.sums(facts.transfers, host.self_ns)))
    text = (
        f"For {about_ns(claim.length)} of {about_ns(facts.span_ns)} the host waits for copies while no "
        f"kernel runs, most of it in {host.label(most)}"
    )
    short = f"The host waits {about_ns(claim.length)} for copies in {brief(host.label(most))}"
    return Observation(text, (facts.most_of("the longest", facts.transfers, claim),), claim, short=short)


@Rule(
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
    busy, idle = facts.busy.length, facts.idle
    if not idle.length or busy >= limits["busy_share"] * (facts.span_ns - facts.awaiting.length):
        return None
    if facts.is_apart:  # the time until it works is between two clocks, and nobody's
        return None
    used = format_share(share(busy, facts.span_ns))
    text = f"{_device_is(facts)} busy in only {used} of {about_ns(facts.span_ns)}"
    profiling = facts.profiling.without(facts.busy).length
    if profiling:
        text += f"; {about_ns(profiling)} of the idle time is the profiler's own and not counted"
    doing = facts.doing_at_longest(idle)
    text += f"; at the longest the host is in {doing}{facts.waited_for(doing, idle)}" if doing else ""
    begin, first = facts.span[0], facts.working_span[0]
    if not doing and share(idle.clipped(begin, first).length, idle.length) >= BEFORE_SHARE:
        text += f"; the first work begins after {about_ns(first - begin)}"
    if share(facts.event_waits.length, idle.length) >= EVENT_SHARE:
        text += f"; for {about_ns(facts.event_waits.length)} of it a stream waits for an event"
    short = f"{about_ns(idle.length)} of {about_ns(facts.span_ns)} idle"
    short += f", the host in {brief(doing, 22)}" if doing else ""
    return Observation(
        text,
        facts.longest_windows("longest idle gap", idle),
        idle,
        work=distinct(facts.work_after(idle)[1].position),
        short=short,
    )


def _devices(facts: SourceFacts) -> str:
    """Return what the source's devices are called within a sentence."""
    devices = sum(1 for _ in facts.work.by("device_row"))
    return f"at least one of {devices} devices" if devices > 1 else facts.device_title


def _device_is(facts: SourceFacts) -> str:
    """Return the beginning of a sentence about the source's devices."""
    name = _devices(facts)
    return f"{name[0].upper()}{name[1:]} is"


@Rule(
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
    return _busy_device(facts, (limits["busy_share"], inf), LIMITS)


@Rule(
    "device-busy",
    "What the device does",
    "a device is busy at least {busy_share} of the time looked at, waiting for peers aside, and less than "
    "{bound_share}, from where on it is the limit",
    OWN,
    {"busy_share": 0.5, "bound_share": 0.8},
    helps=(
        "Both count here: what the device does, and what it waits for in the rest of the time. `breakdown` "
        "and `idle` say how much either is, `kernels` and `efficiency` what could be shorter."
    ),
    kind="headline",
    needs=("device",),
)
def device_busy(facts: SourceFacts, limits: Limits) -> Outcome:
    return _busy_device(facts, (limits["busy_share"], limits["bound_share"]), {})


def _busy_device(
    facts: SourceFacts, between: tuple[float, float], limited_by: Mapping[KernelType, str]
) -> Observation | None:
    """Return what is said of the busiest device where its busy share is in a range, and of what limits it by
    the type of its work.
    """
    if not facts.states or not facts.span_ns:
        return None
    busiest = max(facts.states, key=lambda state: state.busy_ns)
    row = [one.device for one in facts.work.devices].index(busiest.device.device)
    busy = facts.in_states(*BUSY, of=busiest)
    part = share(busy.length, facts.span_ns)
    if not between[0] <= part < between[1]:
        return None
    times = busiest.ns
    of_kind = {
        "compute": times["compute"],
        "communication": times["collective_moving"] + times["collective_unsplit"],
        "memory": times["copy"],
    }
    kind = max(LIMITS, key=of_kind.__getitem__)
    is_preparing = times["prepare"] > of_kind[kind]
    device = _device_is(facts)
    if len(facts.states) > 1:
        device = f"{busiest.device.title}, the busiest of {len(facts.states)} devices, is"
    text = (
        f"{device} busy in {format_share(part)} of {about_ns(facts.span_ns)}, mostly with "
        f"{'the preparation of work' if is_preparing else WORDS.get(kind, kind)}"
    )
    text += f": {limited_by[kind]}" if kind in limited_by and not is_preparing else ""
    most = limiting_work(facts, facts.work[facts.work.device_row == row], kind)
    longest = () if most is None else (most.longest,)
    text += "" if most is None else most.text
    short = f"{busiest.device.title} is busy in {format_share(part)}"
    short += "" if most is None else f", {most.short}"
    evidence = (*longest, *facts.longest_windows("longest stretch of work", busy))
    positions = distinct(facts.work.position[facts.work.device_row == row])
    helps = "" if most is None else most.helps
    return Observation(text, evidence, busy, work=positions, helps=helps, short=short)


@Rule(
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
        if facts.host.matching(OF_DEVICES).any():  # calls that only start what was not recorded
            return None
        claim = facts.host.union(facts.host.matching(COLLECTIVE, OP))
        what = "collective operators on the host"
    part = share(claim.length, facts.span_ns)
    if not claim.length or part <= limits["share"]:
        return None
    text = f"{about_ns(claim.length)}, {format_share(part)} of {about_ns(facts.span_ns)}, is {what}"
    waiting = facts.waiting.intersection(claim).length
    if waiting:
        text += f"; for {about_ns(waiting)} of it another rank had yet to come"
    short = f"{about_ns(claim.length)} of {brief(_most_communicating(facts))}, not hidden"
    return Observation(text, facts.longest_windows("longest", claim), claim, short=short)


def _most_communicating(facts: SourceFacts) -> str:
    """Return the name of the collective that takes most time, on devices or without them on the host."""
    work = facts.work[facts.work.is_type("communication")]
    if len(work):
        alike, names = kernels_alike(work)
        return str(names[int(np.argmax(alike.sums(work.dur)))])
    own = facts.host.matching(COLLECTIVE, OP)
    if not own.any():
        return "communication"
    return facts.host.label(int(np.argmax(facts.host.totals(own))))


@Rule(
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
    short = f"{count_of(count, 'copy', 'copies')} of {about_ns(claim.length)} that nothing hides"
    return Observation(text, facts.longest_windows("longest copying", claim), claim, short=short)
